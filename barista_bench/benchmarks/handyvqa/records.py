"""Files of HanDyVQA records: where they lie, how a line or a file becomes a typed record, and what is refused.

The benchmark's public repository holds one JSON file an item, `<category>/<category>_0007.json`, with the keys
`question`, `options`, `correct_idx` (from 0) and, where a model has answered, `inference`. Its annotation files are not
public. So that everything has one form, the layout read here takes those files as they are, adds optional keys to them
(docs/handyvqa.md), and also takes many records in one file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated, Generic, TypeVar

import msgspec
from msgspec import Meta

from barista_bench.errors import DataError
from barista_bench.files.bounded import bounded_bytes, bounded_lines
from barista_bench.files.paths import confined, name_problem
from barista_bench.media.video.frame_folder import natural_key
from barista_bench.scene_graph.problems import Problem, ProblemLog

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
class Item(Generic[RecordT_co]):
    """One record and where it stands: `file` relative to the folder read, `key` in it, `row` from 0."""

    item_id: str
    category: str
    record: RecordT_co
    file: str
    key: str
    row: int


@dataclass(frozen=True, slots=True)
class _Source:
    """One file; `category` is None where each record says its own."""

    path: Path
    name: str
    category: str | None
    is_single: bool = False


def read_items(root: Path, record_type: type[RecordT]) -> tuple[list[Item[RecordT]], list[Problem]]:
    """All records below a folder, or of one file, by category and id; what cannot be read costs one record.

    Below a folder count `<category>/*.json` (a record each), `<category>.json` (a list), `<category>.jsonl`, and other
    `*.jsonl` whose records name their `category`.

    Raises:
        DataError: there is nothing of that kind, or too much of it.
    """
    found: list[Item[RecordT]] = []
    problems: list[Problem] = []
    for source in _sources(root):
        log = ProblemLog(source.name)
        found += _items(source, record_type, log)
        problems += log
        if len(found) > MAX_ITEMS * len(CATEGORIES):
            raise DataError(f"{root}: more than {MAX_ITEMS} records a category. Remedy: name the right folder")
    kept: dict[tuple[str, str], Item[RecordT]] = {}
    for item in found:
        first = kept.setdefault((item.category, item.item_id), item)
        if first is not item:
            what = f"{item.category} has a record {item.item_id!r} in {first.file} already: left out"
            problems.append(
                Problem("error", item.file, _place(item.key, "id"), what, "give each record an id of its own")
            )
    order = {category: place for place, category in enumerate(CATEGORIES)}
    return sorted(kept.values(), key=lambda item: (order[item.category], natural_key(item.item_id))), problems


def _sources(root: Path) -> list[_Source]:
    if root.is_file():
        category = root.stem if root.stem in CATEGORIES else None
        return [_Source(root, root.name, category, root.suffix == ".json" and category is None)]
    if not root.is_dir():
        raise DataError(f"{root}: no such file or folder. Remedy: name the folder of the annotation files")
    found: list[_Source] = []
    for category in CATEGORIES:
        folder = root / category
        if folder.is_dir():
            names = sorted((path.name for path in folder.glob("*.json")), key=natural_key)
            found += [_Source(confined(root, category, name), f"{category}/{name}", category, True) for name in names]
        for name in (f"{category}.json", f"{category}.jsonl"):
            if (root / name).is_file():
                found.append(_Source(confined(root, name), name, category))
    named = {source.name for source in found}
    others = sorted(path.name for path in root.glob("*.jsonl") if path.name not in named)
    found += [_Source(confined(root, name), name, None) for name in others]
    if not found:
        raise DataError(
            f"{root}: no HanDyVQA records. Remedy: give a folder with <category>/*.json, <category>.json or *.jsonl; "
            f"the categories are {', '.join(CATEGORIES)}"
        )
    return found


def _items(source: _Source, record_type: type[RecordT], log: ProblemLog) -> Iterator[Item[RecordT]]:
    decoder = msgspec.json.Decoder(record_type)
    for row, (key, raw) in enumerate(_raw_records(source, log)):
        if len(raw) > MAX_ITEM_BYTES:
            log.error(key, f"{len(raw)} bytes are more than {MAX_ITEM_BYTES}: left out", "split the record")
            continue
        try:
            record = decoder.decode(raw)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            log.error(key, f"is no record ({error!s:.300}): left out", _REWRITE)
            continue
        category = _category(record, source, key, log)
        if category is None:
            continue
        item_id = record.id or (Path(source.name).stem if source.is_single else f"{category}_{row:04d}")
        wrong = name_problem(item_id)
        if wrong:
            log.error(
                _place(key, "id"), f"{item_id[:60]!r} is no name ({wrong}): left out", "use letters, digits and _"
            )
            continue
        yield Item(item_id, category, record, source.name, key, row)


def _category(record: ItemRecord, source: _Source, key: str, log: ProblemLog) -> str | None:
    """The category of a record; None, and a problem, where it has none or two."""
    place = _place(key, "category")
    said = record.category
    if said is None and source.category is None:
        log.error(place, "is missing: the record is left out", "name one of " + ", ".join(CATEGORIES))
    elif said is not None and said not in CATEGORIES:
        log.error(place, f"{said[:60]!r} is none: left out", "name one of " + ", ".join(CATEGORIES))
    elif said and source.category and said != source.category:
        log.error(place, f"{said!r} stands among {source.category!r}: left out", "move the record, or correct it")
    else:
        return said or source.category
    return None


def _raw_records(source: _Source, log: ProblemLog) -> Iterator[tuple[str, bytes | msgspec.Raw]]:
    """(where in the file, bytes) of each record."""
    try:
        if source.path.suffix == ".jsonl":
            lines = bounded_lines(source.path, MAX_ITEM_BYTES, overlong="cut", max_file=MAX_FILE_BYTES)
            yield from ((f"line {number}", line) for number, line in lines)
            return
        data = bounded_bytes(source.path, MAX_ITEM_BYTES if source.is_single else MAX_FILE_BYTES)
    except OSError as error:
        log.error("", f"cannot be read ({error.strerror}): left out", "check or split the file")
        return
    if source.is_single:
        yield "", data
        return
    try:
        listed = msgspec.json.decode(data, type=list[msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError) as error:
        log.error("", f"is no JSON list of records ({error}): left out", _REWRITE)
        return
    for place, raw in enumerate(listed):
        yield f"[{place}]", raw


def _place(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def letters(count: int) -> Sequence[str]:
    """The labels of `count` options: A, B, ..., Z, then 27, 28, ..., which cannot be read as letters of others."""
    return [*ascii_uppercase[:count], *map(str, range(len(ascii_uppercase) + 1, count + 1))]
