"""Files of HanDyVQA records: where they lie, how a line or a file becomes a typed record, and what is refused.

The benchmark's public repository holds one JSON file an item, `<category>/<category>_0007.json`, with the keys
`question`, `options`, `correct_idx` (from 0) and, where a model has answered, `inference`. Its annotation files are not
public. So that everything has one form, the layout read here takes those files as they are, adds optional keys to them
(docs/handyvqa.md), and also takes many records in one file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Generic, TypeVar

import msgspec
from msgspec import Meta

from barista_bench.errors import DataError
from barista_bench.files.reading import bounded_bytes, bounded_lines, confined, name_problem
from barista_bench.media.video.frame_folder import natural_key
from barista_bench.scene_graph import Problem, ProblemLog

MCQ_CATEGORIES = ("action", "process", "location", "state", "parts", "objects")
RVOS_CATEGORIES = ("rvos_objects", "rvos_parts")
CATEGORIES = MCQ_CATEGORIES + RVOS_CATEGORIES

MAX_OPTIONS = 1000
"""The benchmark has 5 to 11. Answers can name the first 26 alone, by their letters."""
MAX_ITEM_BYTES = 16 * 2**20
"""Of one record: three masks of 1080p take some 20 KB."""
MAX_FILE_BYTES = 2**30
MAX_ITEMS = 200_000
"""Records of one category; the benchmark has 2,000."""
MAX_ANNOTATED = 1000
"""Annotated frames of one clip; the benchmark has three or so."""
_REWRITE = "correct the file, or write it again"

Text = Annotated[str, Meta(min_length=1, max_length=10_000)]
Line = Annotated[str, Meta(max_length=10_000)]
Index = Annotated[int, Meta(ge=0, lt=MAX_OPTIONS)]
AnyIndex = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
FrameNumber = Annotated[int, Meta(ge=0, lt=2**40)]
Second = Annotated[float, Meta(ge=0, le=10**7)]


class ClipRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A clip: of a video, what lies within 2.5 s of `centre_seconds`, or all of a video or a folder of frames.

    `fps` is for a folder of which `centre_seconds` picks a part.
    """

    video: Text | None = None
    frames: Text | None = None
    centre_seconds: Second | None = None
    fps: Annotated[float, Meta(gt=0, le=1000)] | None = None


class RunLengths(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Compressed COCO run lengths; `size` is [height, width] in pixels."""

    size: tuple[Annotated[int, Meta(ge=1, le=8192)], Annotated[int, Meta(ge=1, le=8192)]]
    counts: Annotated[str, Meta(min_length=1, max_length=MAX_ITEM_BYTES)]


class TargetRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The mask of one right option on one frame."""

    option: Index
    segmentation: RunLengths


class AnnotatedRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One annotated frame, by its number in the video or folder, or by its second. No targets: nothing is visible."""

    frame: FrameNumber | None = None
    second: Second | None = None
    targets: Annotated[list[TargetRecord], Meta(max_length=MAX_OPTIONS)] = []


class ItemRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One question. Other keys than these are left alone: the public files hold a model's output too."""

    # The released script scores records whatever their texts and right options; two public ones have a blank option.
    question: Line | None = None
    options: Annotated[list[Line], Meta(min_length=1, max_length=MAX_OPTIONS)]
    correct_idx: Annotated[list[AnyIndex], Meta(max_length=MAX_OPTIONS)]
    id: Text | None = None
    category: str | None = None
    clip: ClipRecord | None = None
    split: Text = "test"
    annotated: Annotated[list[AnnotatedRecord], Meta(max_length=MAX_ANNOTATED)] = []


RecordT = TypeVar("RecordT", bound=ItemRecord)
RecordT_co = TypeVar("RecordT_co", bound=ItemRecord, covariant=True)


@dataclass(frozen=True, slots=True)
class RecordInFile(Generic[RecordT_co]):
    """One record and where it stands: `file` relative to the folder read, `key` in it, `row` from 0."""

    item_id: str
    category: str
    content: RecordT_co
    file: str
    key: str
    row: int

    def key_of(self, name: str) -> str:
        """Where in the file one of the record's keys stands."""
        return _joined(self.key, name)


@dataclass(frozen=True, slots=True)
class _RecordFile:
    """One file; `category` is None where each record says its own."""

    path: Path
    name: str
    category: str | None
    is_single: bool = False


def read_records(root: Path, record_type: type[RecordT]) -> tuple[list[RecordInFile[RecordT]], list[Problem]]:
    """All records below a folder, or of one file, by category and id; what cannot be read costs one record.

    Below a folder count `<category>/*.json` (a record each), `<category>.json` (a list), `<category>.jsonl`, and other
    `*.jsonl` whose records name their `category`.

    Raises:
        DataError: there is nothing of that kind, or too much of it.
    """
    kept: dict[tuple[str, str], RecordInFile[RecordT]] = {}
    problems: list[Problem] = []
    for file in _record_files(root):
        log = ProblemLog(file.name)
        for record in _records(file, record_type, log):
            first = kept.setdefault((record.category, record.item_id), record)
            if first is not record:
                what = f"{record.category} has a record {record.item_id!r} in {first.file} already: left out"
                log.error(record.key_of("id"), what, "give each record an id of its own")
        problems += log
        if len(kept) > MAX_ITEMS * len(CATEGORIES):
            raise DataError(f"{root}: more than {MAX_ITEMS} records a category. Remedy: name the right folder")
    order = {category: index for index, category in enumerate(CATEGORIES)}
    return sorted(kept.values(), key=lambda record: (order[record.category], natural_key(record.item_id))), problems


def _record_files(root: Path) -> list[_RecordFile]:
    if root.is_file():
        category = root.stem if root.stem in CATEGORIES else None
        return [_RecordFile(root, root.name, category, root.suffix == ".json" and category is None)]
    if not root.is_dir():
        raise DataError(f"{root}: no such file or folder. Remedy: name the folder of the annotation files")
    files: list[_RecordFile] = []
    for category in CATEGORIES:
        names = sorted((path.name for path in (root / category).glob("*.json")), key=natural_key)
        files += [_RecordFile(confined(root, category, name), f"{category}/{name}", category, True) for name in names]
        for name in (f"{category}.json", f"{category}.jsonl"):
            if (root / name).is_file():
                files.append(_RecordFile(confined(root, name), name, category))
    named = {file.name for file in files}
    others = sorted(path.name for path in root.glob("*.jsonl") if path.name not in named)
    files += [_RecordFile(confined(root, name), name, None) for name in others]
    if not files:
        raise DataError(
            f"{root}: no HanDyVQA records. Remedy: give a folder with <category>/*.json, <category>.json or *.jsonl; "
            f"the categories are {', '.join(CATEGORIES)}"
        )
    return files


def _records(file: _RecordFile, record_type: type[RecordT], log: ProblemLog) -> Iterator[RecordInFile[RecordT]]:
    decoder = msgspec.json.Decoder(record_type)
    for row, (key, raw) in enumerate(_raw_records(file, log)):
        if len(raw) > MAX_ITEM_BYTES:
            log.error(key, f"{len(raw)} bytes are more than {MAX_ITEM_BYTES}: left out", "split the record")
            continue
        try:
            content = decoder.decode(raw)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            log.error(key, f"is no record ({error!s:.300}): left out", _REWRITE)
            continue
        category = _category(content, file, _joined(key, "category"), log)
        if category is None:
            continue
        item_id = content.id or (Path(file.name).stem if file.is_single else f"{category}_{row:04d}")
        if wrong := name_problem(item_id):
            what = f"{item_id[:60]!r} is no name ({wrong}): left out"
            log.error(_joined(key, "id"), what, "use letters, digits and _")
            continue
        yield RecordInFile(item_id, category, content, file.name, key, row)


def _category(content: ItemRecord, file: _RecordFile, key: str, log: ProblemLog) -> str | None:
    """The category of a record; None, and a problem, where it has none or two."""
    name_one = "name one of " + ", ".join(CATEGORIES)
    if content.category is None and file.category is None:
        log.error(key, "is missing: the record is left out", name_one)
    elif content.category is not None and content.category not in CATEGORIES:
        log.error(key, f"{content.category[:60]!r} is none: left out", name_one)
    elif content.category and file.category and content.category != file.category:
        what = f"{content.category!r} stands among {file.category!r}: left out"
        log.error(key, what, "move the record, or correct it")
    else:
        return content.category or file.category
    return None


def _raw_records(file: _RecordFile, log: ProblemLog) -> Iterator[tuple[str, bytes | msgspec.Raw]]:
    """(where in the file, bytes) of each record."""
    try:
        if file.path.suffix == ".jsonl":
            lines = bounded_lines(file.path, MAX_ITEM_BYTES, overlong="cut", max_file=MAX_FILE_BYTES)
            yield from ((f"line {number}", line) for number, line in lines)
            return
        data = bounded_bytes(file.path, MAX_ITEM_BYTES if file.is_single else MAX_FILE_BYTES)
    except OSError as error:
        log.error("", f"cannot be read ({error.strerror}): left out", "check or split the file")
        return
    if file.is_single:
        yield "", data
        return
    try:
        listed = msgspec.json.decode(data, type=list[msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError) as error:
        log.error("", f"is no JSON list of records ({error}): left out", _REWRITE)
        return
    for index, raw in enumerate(listed):
        yield f"[{index}]", raw


def _joined(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name
