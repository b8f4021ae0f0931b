"""Read a `coco_annotation.json` into typed records, and skip and report invalid records.

A file is decoded in one typed pass. Only if this pass fails, the file is read section by section and record by record.
Python's `json` writes NaN and Infinity, which are not JSON. Such a value invalidates only the record that contains it,
not the file.
"""

from __future__ import annotations

import math
import re
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal, NamedTuple, TypeVar, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from barista_bench.errors import DataError, with_remedy
from barista_bench.files.reading import as_utf8
from barista_bench.scene_graph.release import (
    MALFORMED,
    ReleaseAnnotation,
    ReleaseAttribute,
    ReleaseCategory,
    ReleaseCoverage,
    ReleaseFile,
    ReleaseRecord,
    ReleaseRelation,
    ReleaseSegment,
    ReleaseVideo,
    Text,
    replace_non_finite,
    restore_non_finite,
    tidy_name,
)
from barista_bench.scene_graph.shown_format import expected_shape

MAX_BYTES = 2**27
"""Maximum number of bytes of an annotation file; a full-scale file has about 9 MB."""
MAX_VALUES = 2_500_000
"""Maximum number of JSON values of one file, counted by commas; a full-scale file has about 300,000. A value can take
fifty times the memory of its text."""

Extras = dict[str, dict[str, msgspec.Raw]]
"""Fields that the format does not know, by place (`""` for the top level, `annotations[3]` for a record)."""

RecordT = TypeVar("RecordT", bound=ReleaseRecord)
_CANONICAL = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_RELEASE = msgspec.json.Decoder(ReleaseFile)
_RAW_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_RAW_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_IDS = ("id", "object_id", "source_object_id", "target_object_id", "activity_class_id")
_REQUIRED = ("video_metadata", "categories", "object_id_to_category_id", "annotations")
_RECORD_TYPES: dict[str, type[ReleaseRecord]] = {
    "categories": ReleaseCategory,
    "annotations": ReleaseAnnotation,
    "attributes": ReleaseAttribute,
    "relations": ReleaseRelation,
    "activities": ReleaseSegment,
    "process_steps": ReleaseSegment,
}

Severity = Literal["error", "warning"]

LISTED_PER_FILE = 1000
"""Maximum number of errors, and of warnings, that are stored for one file. Further ones are only counted."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in a file. An `error` loses a record or a video; a `warning` loses nothing.

    Args:
        file: path relative to the data root.
        key: place in the file, e.g. `annotations[12].bbox`; empty for the complete file.
        what: the problem, and how reading handled it.
        remedy: the action that the owner of the data can take.
    """

    severity: Severity
    file: str
    key: str
    what: str
    remedy: str

    def __str__(self) -> str:
        where = f"{self.file}: {self.key}" if self.key else self.file
        return with_remedy(f"{self.severity}: {where}: {self.what}", self.remedy)


_SHOWN = 500
"""Maximum number of characters that a problem shows of a text in a file."""


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]} ... {text[-_SHOWN // 2 :]}"


@dataclass(slots=True)
class ProblemLog:
    """Collects the problems of one file. Errors and warnings are limited separately."""

    file: str
    listed: list[Problem] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, severity: Severity, key: str, what: str, remedy: str) -> None:
        self.counts[severity] += 1
        if self.counts[severity] <= LISTED_PER_FILE:
            self.listed.append(Problem(severity, self.file, _shorten(key), _shorten(what), remedy))

    def error(self, key: str, what: str, remedy: str) -> None:
        self.add("error", key, what, remedy)

    def warning(self, key: str, what: str, remedy: str) -> None:
        self.add("warning", key, what, remedy)

    def __iter__(self) -> Iterator[Problem]:
        """Yield the recorded problems, then a problem that states the number of further ones."""
        yield from self.listed
        for severity in get_args(Severity):
            if (more := self.counts[severity] - LISTED_PER_FILE) > 0:
                what = f"{more} further {severity}(s), not listed"
                yield Problem(severity, self.file, "", what, "correct those listed")


class AnnotationColumns(NamedTuple):
    """The annotations as arrays with one entry per record. Reading records one by one takes longer than decoding them.

    `object` is an index of the object table, and -1 for an id that is not in the table. If `boxed` is false, `bbox` is
    (0, 0, 1, 1).
    """

    frame: NDArray[np.int64]
    object: NDArray[np.int32]
    boxed: NDArray[np.bool_]
    bbox: NDArray[np.float64]


class ReleaseRecords(msgspec.Struct):
    """A decoded file. `rows[section][i]` is the file index of the i-th valid record; an absent section is all valid."""

    release: ReleaseFile
    rows: dict[str, list[int]]
    extras: Extras
    _columns: AnnotationColumns | None = None

    def rows_of(self, section: str) -> Sequence[int]:
        """Return the file indices of the valid records."""
        return self.rows.get(section, range(len(getattr(self.release, section))))

    def keep(self, section: str, positions: list[int]) -> None:
        """Keep only the records of a section at `positions`, with their file indices."""
        rows = self.rows_of(section)
        self.rows[section] = [rows[position] for position in positions]
        records = getattr(self.release, section)
        setattr(self.release, section, [records[position] for position in positions])
        if section == "annotations" and self._columns:
            frame, item, boxed, bbox = self._columns
            self._columns = AnnotationColumns(frame[positions], item[positions], boxed[positions], bbox[positions])

    def annotation_columns(self) -> AnnotationColumns:
        """Return the valid annotations as arrays. Call this only when the object table is final."""
        if self._columns is None:
            self._columns = _annotation_columns(self.release)
        return self._columns

    def annotation_rows(self) -> NDArray[np.int64]:
        """Return the file indices of the valid annotations."""
        return np.asarray(self.rows_of("annotations"), dtype=np.int64)


def read_release(data: bytes, log: ProblemLog) -> ReleaseRecords:
    """Decode one annotation file.

    Raises:
        DataError: the complete file is unusable: it is not JSON, or has no frame size or no object table.
    """
    for what, count, most in (("bytes", len(data), MAX_BYTES), ("JSON values", data.count(b","), MAX_VALUES)):
        if count > most:
            remedy = "correct the file, or cut the video into parts"
            raise DataError(f"{log.file}: holds {count:,} {what}, more than {most:,}. Fix: {remedy}")
    data = as_utf8(data, log.file)
    try:
        release = _RELEASE.decode(data)
    except MALFORMED:
        return _read_by_record(replace_non_finite(data), log)
    if not release.video_metadata:
        raise DataError(f"{log.file}: video_metadata is empty. Fix: give width, height and frame_count")
    _unify_ids(release, log)
    return ReleaseRecords(release, {}, {})


def canonical_id(text: str) -> str:
    """Return an id in the release's spelling: a UUID in lower case with hyphens. Other ids are unchanged.

    >>> canonical_id("88ACDB91-6A48-5BF4-AEF8-195802A88B14"), canonical_id("cup-1")
    ('88acdb91-6a48-5bf4-aef8-195802a88b14', 'cup-1')
    """
    if _CANONICAL.fullmatch(text):
        return text
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return text


def _unify_ids(release: ReleaseFile, log: ProblemLog) -> None:
    """Unify the spelling of ids and categories in place. Categories are compared without extra spaces.

    Values and names of activities stay unchanged, since the released texts show them unchanged.
    """
    canonical_ids: dict[str, str] = {}

    def canonical(text: str) -> str:
        return canonical_ids.get(text) or canonical_ids.setdefault(text, canonical_id(text))

    for index, category in enumerate(release.categories):
        category.id, written = canonical(category.id), category.name
        category.name = tidy_name(written)
        if category.name != written:
            what = f"the name {written!r} is read as {category.name!r}"
            log.warning(f"categories[{index}].name", what, "write it without stray blanks")
    table: dict[str, str] = {}
    for object_id, category_id in release.object_id_to_category_id.items():
        if table.setdefault(canonical(object_id), canonical(category_id)) != canonical(category_id):
            what = "the object is there in another spelling with another category: the first one counts"
            log.warning(f"object_id_to_category_id[{object_id!r}]", what, "name each object once")
    release.object_id_to_category_id = table
    for annotation in release.annotations:
        if canonical(annotation.object_id) != annotation.object_id:
            annotation.object_id = canonical(annotation.object_id)
    for attribute in release.attributes:
        attribute.object_id = canonical(attribute.object_id)
    for relation in release.relations:
        relation.source_object_id = canonical(relation.source_object_id)
        relation.target_object_id = canonical(relation.target_object_id)
    for segment in chain(release.activities, release.process_steps):
        if segment.activity_class_id is not None:
            segment.activity_class_id = canonical(segment.activity_class_id)
    if release.coverage:
        release.coverage.hands = {canonical(hand): ranges for hand, ranges in release.coverage.hands.items()}


def _annotation_columns(release: ReleaseFile) -> AnnotationColumns:
    annotations, count = release.annotations, len(release.annotations)
    codes = {object_id: code for code, object_id in enumerate(release.object_id_to_category_id)}
    boxes = [annotation.bbox or (0.0, 0.0, 1.0, 1.0) for annotation in annotations]
    return AnnotationColumns(
        frame=np.fromiter([annotation.image_id for annotation in annotations], np.int64, count),
        object=np.fromiter([codes.get(annotation.object_id, -1) for annotation in annotations], np.int32, count),
        boxed=np.fromiter([annotation.bbox is not None for annotation in annotations], np.bool_, count),
        bbox=np.fromiter(chain.from_iterable(boxes), np.float64, 4 * count).reshape(-1, 4),
    )


def _read_by_record(data: bytes, log: ProblemLog) -> ReleaseRecords:
    try:
        sections = _RAW_OBJECT.decode(data)
    except MALFORMED as error:
        what = "the top level is not a JSON object" if isinstance(error, msgspec.ValidationError) else "not valid JSON"
        raise DataError(f"{log.file}: {what} ({error}). Fix: fetch or write the file again") from error
    missing = [name for name in _REQUIRED if name not in sections]
    if missing:
        remedy = f"write {', '.join(_REQUIRED)}, or fetch the file again"
        if "images" in sections:
            remedy = "it is a COCO file of pictures: import it by `barista-bench import-graph --from table --map coco`"
        raise DataError(f"{log.file}: top-level key {missing[0]!r} is missing. Fix: {remedy}")
    rows: dict[str, list[int]] = {}
    extras: Extras = {}
    records: dict[str, list[ReleaseRecord]] = {}
    videos = _video_metadata(sections.pop("video_metadata"), extras, log)
    for section, record_type in _RECORD_TYPES.items():
        raw = sections.pop(section, msgspec.Raw(b"[]"))
        records[section], rows[section] = _section_records(section, raw, record_type, extras, log)
    objects = _object_table(sections.pop("object_id_to_category_id"), log)
    coverage = _coverage(sections.pop("coverage", msgspec.Raw(b"null")), log)
    if sections:
        extras[""] = sections
        what = f"{len(sections)} top-level key(s) unknown to the format: kept, not used"
        log.warning(next(iter(sections)), what, "none needed if they are meant")
    tables = {"video_metadata": videos, "object_id_to_category_id": objects, "coverage": coverage}
    release = msgspec.convert({**tables, **records}, ReleaseFile, from_attributes=False)
    _unify_ids(release, log)
    return ReleaseRecords(release, rows, extras)


def _coverage(raw: msgspec.Raw, log: ProblemLog) -> ReleaseCoverage | None:
    """Return the coverage. If it cannot be read, return a coverage of nothing."""
    try:
        return msgspec.json.decode(raw, type=ReleaseCoverage | None)
    except MALFORMED as error:
        remedy = f"write {expected_shape(ReleaseCoverage)}, or leave it out"
        log.error("coverage", f"{error}: nothing counts as annotated completely", remedy)
        return ReleaseCoverage([])


def _section_records(
    section: str, raw: msgspec.Raw, record_type: type[RecordT], extras: Extras, log: ProblemLog
) -> tuple[list[RecordT], list[int]]:
    try:
        items = _RAW_LIST.decode(raw)
    except MALFORMED as error:
        log.error(section, f"not a list ({error}): the section is left out", "write a JSON list")
        return [], []
    decoder = msgspec.json.Decoder(record_type)
    records = [_record(f"{section}[{index}]", item, decoder, extras, log) for index, item in enumerate(items)]
    rows = [index for index, record in enumerate(records) if record is not None]
    return [record for record in records if record is not None], rows


def _record(
    key: str, raw: msgspec.Raw, decoder: msgspec.json.Decoder[RecordT], extras: Extras, log: ProblemLog
) -> RecordT | None:
    try:
        return decoder.decode(raw)
    except MALFORMED as error:
        first_error = str(error)
    try:
        fields = _RAW_OBJECT.decode(raw)
        known_fields = {name: fields.pop(name) for name in decoder.type.__struct_fields__ if name in fields}
        corrected = decoder.type is ReleaseVideo and _leave_out_durations(known_fields, key, log)
        corrected |= _write_ids_as_text(known_fields, key, log)
        # strict=False reads the release's "int-like" frame indices, e.g. "12".
        record = msgspec.json.decode(msgspec.json.encode(known_fields), type=decoder.type, strict=False)
    except MALFORMED as error:
        what, _, path = str(error).partition(" - at `$")
        if restore_non_finite(bytes(raw)) != bytes(raw):
            what += " (the record holds NaN or Infinity)"
        remedy = f"write {expected_shape(decoder.type)}"
        log.error(key + path.rstrip("`"), f"{what}: the record is left out", remedy)
        return None
    if fields:
        extras[key] = fields
        log.warning(key, f"unknown key {next(iter(fields))!r}: kept, not used", "none needed if it is meant")
    elif not corrected:
        log.warning(key, f"{first_error.partition(' - at ')[0]}: read as a number", "write a JSON number")
    return record


def _write_ids_as_text(known_fields: dict[str, msgspec.Raw], key: str, log: ProblemLog) -> bool:
    """Convert numeric ids, which other tools write, to text."""
    numbers = [name for name in _IDS if name in known_fields and bytes(known_fields[name]).isdigit()]
    for name in numbers:
        known_fields[name] = msgspec.Raw(b'"%s"' % bytes(known_fields[name]))
    if numbers:
        log.warning(f"{key}.{numbers[0]}", "the id is a number: read as text", 'write it in quotes: "7"')
    return bool(numbers)


def _leave_out_durations(known_fields: dict[str, msgspec.Raw], key: str, log: ProblemLog) -> bool:
    """Remove a frame rate or duration that is not finite. A video is usable without them."""
    is_changed = False
    for name in ("fps", "length_in_ms"):
        try:
            number = msgspec.json.decode(known_fields.get(name, b"null"), type=float | None, strict=False)
        except MALFORMED:
            number = math.nan
        if number is not None and not math.isfinite(number):
            del known_fields[name]
            log.error(f"{key}.{name}", "not a finite number: left out", "give a number")
            is_changed = True
    return is_changed


def _video_metadata(raw: msgspec.Raw, extras: Extras, log: ProblemLog) -> list[ReleaseVideo]:
    records, rows = _section_records("video_metadata", raw, ReleaseVideo, extras, log)
    if rows[:1] != [0]:
        causes = [problem.what for problem in log.listed if re.match(r"video_metadata(\[0\]|$)", problem.key)]
        cause = causes[-1] if causes else "the list is empty"
        raise DataError(f"{log.file}: video_metadata[0]: {cause}. Fix: give width, height and frame_count")
    return records


def _object_table(raw: msgspec.Raw, log: ProblemLog) -> dict[str, str]:
    try:
        entries = _RAW_OBJECT.decode(raw)
    except MALFORMED as error:
        raise DataError(
            f"{log.file}: object_id_to_category_id is not a JSON object ({error}). Fix: fetch the file again"
        ) from error
    table = {}
    for object_id, value in entries.items():
        try:
            msgspec.convert(object_id, Text)
            table[object_id] = str(msgspec.json.decode(value, type=Text | int))
        except MALFORMED as error:
            key = f"object_id_to_category_id[{object_id!r}]"
            log.error(key, f"{error}: the object is left out", 'write {"object id": "category id"}')
    return table
