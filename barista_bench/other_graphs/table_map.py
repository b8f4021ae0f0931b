"""The map of `import-graph --from table`: which tool made the annotations, or which columns of which tables hold what.

Tables are CSV, JSON lines, or lists in JSON. Each becomes rows (`rows.py`).
"""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from barista_bench.errors import ConfigError, DataError
from barista_bench.files.reading import confined, load_yaml, name_problem, read_bounded
from barista_bench.other_graphs.drawing import (
    Layout,
    Unit,
    bitmap_shape,
    box_shape,
    coco_shape,
    png_bits,
    polygon_shape,
)
from barista_bench.other_graphs.rows import (
    OBJECTS,
    AttributeRow,
    Moment,
    ObjectRow,
    RelationRow,
    Rows,
    SegmentRow,
    Shape,
    Span,
    VideoRows,
    reason_of,
)
from barista_bench.scene_graph.non_finite import replace_non_finite
from barista_bench.scene_graph.release import MALFORMED
from barista_bench.scene_graph.terms import Terms

Tool = Literal["coco", "coco_video", "label_studio", "labelme", "supervisely", "fiftyone"]
Section = Literal["objects", "attributes", "relations", "activities", "process_steps"]
_MAX_MAP, _MAX_PICTURE = 2**20, 2**26
_VIDEO = "{video}"
_REMEDY = "compare with the map in docs/other_graphs.md"
Record = Mapping[str, Any]


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table; text fields name columns, or keys of records (`a.b` is the key b of the record at a).

    Args:
        file: below the source. `{video}` in it is the video's name, for a file a video.
        list: where the list of records is, in a JSON file that is no list itself.
        video: the video's name, its file, or its folder of pictures.
        frames: how moments are written: frame numbers from 0 or 1, seconds, or names of pictures.
    """

    file: str
    list: str | None = None
    video: str | None = None
    frames: Literal["from_0", "from_1", "seconds", "names"] = "from_0"


class ObjectTable(_Table, frozen=True, kw_only=True):
    """Objects on frames.

    Args:
        id: equal for one object on all frames; without it, each row is an object of its own.
        box: a column of four numbers, or four columns.
        box_is: what the four numbers are.
        unit: of boxes and polygons.
        mask: polygons or run lengths as in COCO, or the path of a PNG below the source. It goes before the box.
    """

    frame: str
    category: str
    id: str | None = None
    box: str | tuple[str, str, str, str] | None = None
    box_is: Layout = "xywh"
    unit: Unit = "pixels"
    mask: str | None = None


class _SpanTable(_Table, frozen=True, kw_only=True):
    """Without `end`, a row holds on its first frame only; `end_is` says whether it holds on the frame `end`."""

    start: str | None = None
    end: str | None = None
    end_is: Literal["included", "excluded"] = "included"


class AttributeTable(_SpanTable, frozen=True, kw_only=True):
    """Attributes. Without `type`, it is the one that the domain file has the value in."""

    object: str
    value: str
    type: str | None = None


class RelationTable(_SpanTable, frozen=True, kw_only=True):
    """Relations. Without `type`, it is the one that the domain file has the predicate in."""

    subject: str
    predicate: str
    object: str
    type: str | None = None


class SegmentTable(_SpanTable, frozen=True, kw_only=True):
    """Activities or process steps."""

    name: str
    start: str


class TableMap(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A map.

    Args:
        tool: whose export it is; the tables come on top of it.
        export: the tool's files, as a pattern below the source; those that it usually writes by default.
        videos: path of a video below the source, with `{video}` in it. Without it, videos are found by their names.
        fps: frames a second of folders of pictures.
        complete: sections that leave nothing out. Of `objects`: on a frame that is annotated, everything of the
            categories that the source has is.
    """

    tool: Tool | None = None
    export: str | None = None
    videos: str | None = None
    fps: float | None = None
    objects: ObjectTable | None = None
    attributes: AttributeTable | None = None
    relations: RelationTable | None = None
    activities: SegmentTable | None = None
    process_steps: SegmentTable | None = None
    complete: tuple[Section, ...] = ("objects",)
    terms: Terms | None = None


def load_map(name: str) -> TableMap:
    """The map of a tool, by its name, or of a file.

    Raises:
        ConfigError: there is neither, or the file says something that maps do not have; names the field.
    """
    tools = Tool.__args__  # type: ignore[attr-defined]
    if name in tools:
        return msgspec.convert({"tool": name}, TableMap)
    path = Path(name)
    if not path.is_file():
        raise ConfigError(f"--map: no file {name}. Remedy: give {', '.join(tools)}, or the path of a map")
    try:
        table_map = msgspec.convert(
            load_yaml(read_bounded(path, _MAX_MAP, remedy=_REMEDY, error=ConfigError), str(path)), TableMap
        )
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {error}. Remedy: {_REMEDY}") from error
    objects = table_map.objects
    if table_map.tool is None and objects is None:
        raise ConfigError(f"{path}: says neither `tool` nor `objects`. Remedy: {_REMEDY}")
    if objects and objects.box is None and objects.mask is None:
        raise ConfigError(f"{path}: objects: has neither `box` nor `mask`. Remedy: name their columns")
    if objects and objects.video is None and _VIDEO not in objects.file:
        raise ConfigError(f"{path}: objects: has no `video`. Remedy: name its column, or write {_VIDEO} in `file`")
    return table_map


class TableReader:
    """Adds the rows of a map's tables."""

    def __init__(self, table_map: TableMap, rows: Rows) -> None:
        self._map, self._rows = table_map, rows
        self._holders: dict[str, set[str]] = defaultdict(set)
        """Key of an object to the ids of the videos that it is in."""

    def add_tables(self) -> None:
        """Read all tables; those of objects first, which the others tell of.

        Raises:
            DataError: a file is missing, is not of its format, or has no column that the map names.
        """
        if table := self._map.objects:
            self._add(OBJECTS, table, self._add_object)
        for video_id, video in self._rows.videos.items():
            for row in video.objects:
                self._holders[row.key].add(video_id)
        if attributes := self._map.attributes:
            self._add("attributes", attributes, self._add_attribute)
        if relations := self._map.relations:
            self._add("relations", relations, self._add_relation)
        if activities := self._map.activities:
            self._add("activities", activities, partial(self._add_segment, "activities"))
        if steps := self._map.process_steps:
            self._add("process_steps", steps, partial(self._add_segment, "process_steps"))

    def _add(self, section: str, table: Any, add: Callable[[Any, VideoRows, Record, str], None]) -> None:  # noqa: ANN401
        for path, name in _files(self._rows.source, table.file):
            place = str(path.relative_to(self._rows.source.resolve()))
            for where, record in self._records(path, place, table, section):
                found = self._video(table, record, name)
                if isinstance(found, str):
                    self._rows.lose(where, found)
                    continue
                try:
                    add(table, found, record, where)
                except ValueError as error:
                    found.lose(where, str(error), section=section)

    def _records(self, path: Path, place: str, table: _Table, section: str) -> Iterator[tuple[str, Record]]:
        """The records of a file, each with its place."""
        data = self._rows.read(path)
        if path.suffix.lower() == ".json":
            yield from self._items(path, data, table.list, f"{place}: {table.list or 'record'}", section)
        elif path.suffix.lower() in (".jsonl", ".ndjson"):
            for number, line in enumerate(data.splitlines(), start=1):
                if line.strip():
                    yield from self._decoded(line, f"{place}: line {number}", section)
        else:
            yield from self._csv_records(path, data, place, table, section)

    def _items(
        self, path: Path, data: bytes, key: str | None, place: str, section: str
    ) -> Iterator[tuple[str, Record]]:
        content: Any
        try:
            content = msgspec.Raw(replace_non_finite(data))
            for name in key.split(".") if key else ():
                content = msgspec.json.decode(content, type=dict[str, msgspec.Raw])[name]
            items = msgspec.json.decode(content, type=list[msgspec.Raw])
        except (*MALFORMED, KeyError) as error:
            what = f"no list at {key!r}" if key else "no list"
            raise DataError(f"{path}: {what} ({error}). Remedy: name in `list` where the records are") from error
        for number, item in enumerate(items):
            yield from self._decoded(item, f"{place}[{number}]", section)

    def _decoded(self, data: bytes | msgspec.Raw, place: str, section: str) -> Iterator[tuple[str, Record]]:
        try:
            yield place, msgspec.json.decode(data, type=dict[str, Any])
        except MALFORMED as error:
            self._rows.lose(place, f"no JSON record ({reason_of(error)})", section)

    def _csv_records(
        self, path: Path, data: bytes, place: str, table: _Table, section: str
    ) -> Iterator[tuple[str, Record]]:
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: is not UTF-8. Remedy: save it as UTF-8") from error
        lines = csv.DictReader(io.StringIO(text, newline=""), delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
        columns = lines.fieldnames or []
        settings = {"file", "list", "frames", "box_is", "unit", "end_is"}
        for name, column in msgspec.structs.asdict(table).items():
            for one in (column if isinstance(column, tuple) else (column,)) if name not in settings else ():
                if one is not None and one not in columns:
                    listed = ", ".join(columns)
                    raise DataError(f"{path}: no column {one!r}. Remedy: name for `{name}` one of {listed}")
        while True:
            try:
                record = next(lines)
            except StopIteration:
                return
            except csv.Error as error:
                self._rows.lose(f"{place}: line {lines.line_num}", str(error), section)
                continue
            yield f"{place}: line {lines.line_num}", record

    def _video(self, table: _Table, record: Record, name: str | None) -> VideoRows | str:
        """The video of a record, or why there is none."""
        if name is None and table.video is None:
            keys = [_text(record, getattr(table, one)) for one in ("subject", "object") if hasattr(table, one)]
            ids = set.intersection(*(self._holders.get(key, set()) for key in keys)) if keys else set()
            if not keys and len(self._rows.videos) == 1:
                ids = set(self._rows.videos)
            if len(ids) != 1:
                return f"it is of {len(ids)} videos: name the column `video` in the map" if ids else "of no video"
            return self._rows.videos[ids.pop()]
        name = name or _text(record, table.video)
        if not name:
            return "names no video"
        if name in self._rows.videos:
            return self._rows.videos[name]
        if self._map.videos is None:
            path = self._rows.find(name)
            return self._rows.video(path) if path else f"not exactly one video below the source is named {name!r}"
        if name_problem(name):
            return "the video's name is not usable as one"
        return self._rows.video(self._map.videos.replace(_VIDEO, name), name)

    def _add_object(self, table: ObjectTable, video: VideoRows, record: Record, place: str) -> None:
        moment = _moment(table, record, table.frame)
        try:
            shape = self._shape(table, record)
        except ValueError as error:
            video.lose(place, str(error), moment=moment)
            return
        key = _text(record, table.id) if table.id else place
        if not key:
            video.lose(place, "it has no id", moment=moment)
            return
        category = _text(record, table.category)
        self._rows.add_object(video, ObjectRow(place, key, category, moment, shape))

    def _shape(self, table: ObjectTable, record: Record) -> Shape:
        mask = _value(record, table.mask)
        if isinstance(mask, str) and mask.strip()[:1] in ("[", "{"):
            mask = _json(mask, "mask")
        if isinstance(mask, str) and mask:
            return bitmap_shape(partial(self._mask_of_file, mask), 0, 0)
        if mask:
            if isinstance(mask, list) and table.unit != "pixels":
                corners = [[tuple(pair) for pair in zip(piece[::2], piece[1::2], strict=True)] for piece in mask]
                return polygon_shape(corners, table.unit)
            return coco_shape(msgspec.json.encode(mask))
        if isinstance(table.box, tuple):
            box = [_value(record, column) for column in table.box]
        else:
            box = _value(record, table.box) or []
            box = _json(box, "box") if isinstance(box, str) else box
        if not isinstance(box, list) or len(box) != 4 or any(number in (None, "") for number in box):
            raise ValueError("it has no mask, and no box of four numbers")
        return box_shape([_number(number, "box") for number in box], table.box_is, table.unit)

    def _mask_of_file(self, path: str) -> Any:  # noqa: ANN401
        try:
            return png_bits(read_bounded(confined(self._rows.source, path), _MAX_PICTURE, remedy="name a PNG"))
        except DataError as error:
            raise ValueError("the file of the mask cannot be read") from error

    def _add_attribute(self, table: AttributeTable, video: VideoRows, record: Record, place: str) -> None:
        kind = _text(record, table.type) or None
        target, value = _text(record, table.object), _text(record, table.value)
        video.attributes.append(AttributeRow(place, target, value, kind, _span(table, record)))

    def _add_relation(self, table: RelationTable, video: VideoRows, record: Record, place: str) -> None:
        subject, predicate, target = (_text(record, name) for name in (table.subject, table.predicate, table.object))
        kind = _text(record, table.type) or None
        video.relations.append(RelationRow(place, subject, predicate, target, kind, _span(table, record)))

    def _add_segment(
        self,
        layer: Literal["activities", "process_steps"],
        table: SegmentTable,
        video: VideoRows,
        record: Record,
        place: str,
    ) -> None:
        span = _span(table, record)
        if span is not None:
            video.segments.append(SegmentRow(place, layer, _text(record, table.name), span))


def _files(source: Path, pattern: str) -> list[tuple[Path, str | None]]:
    """The files of a table, each with the name of its video where that is part of the path."""
    if _VIDEO not in pattern:
        return [(confined(source, pattern), None)]
    expression = re.compile("([^/]+)".join(map(re.escape, pattern.split(_VIDEO))))
    found = [
        (confined(source, name), match[1])
        for path in sorted(source.glob(pattern.replace(_VIDEO, "*")))
        if (match := expression.fullmatch(name := path.relative_to(source).as_posix()))
    ]
    if not found:
        raise DataError(f"{source}: no file {pattern}. Remedy: correct `file` in the map")
    return found


def _value(record: Record, column: str | None) -> Any:  # noqa: ANN401
    """The value of a column; of `a.b`, the value of b in the record at a."""
    if column is None or column in record:
        return record.get(column) if column else None
    value: Any = record
    for name in column.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _text(record: Record, column: str | None) -> str:
    """A value as text; a number as its digits."""
    value = _value(record, column)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _json(text: str, what: str) -> Any:  # noqa: ANN401
    try:
        return msgspec.json.decode(text)
    except MALFORMED as error:
        raise ValueError(f"its {what} is no JSON") from error


def _number(value: object, what: str) -> float:
    try:
        number = float(value) if isinstance(value, str | int | float) else float("nan")
    except ValueError:
        number = float("nan")
    if not abs(number) < 2**53:
        raise ValueError(f"a number of its {what} is missing or wrong")
    return number


def _moment(table: _Table, record: Record, column: str) -> Moment:
    """The moment in a column. Raises ValueError where there is none."""
    if table.frames == "names":
        if name := _text(record, column):
            return name.replace("\\", "/").rpartition("/")[2]
        raise ValueError(f"it has no {column!r}")
    number = _number(_value(record, column), column)
    if table.frames == "seconds":
        return number
    if not number.is_integer():
        raise ValueError("a frame is no whole number")
    return int(number) - (table.frames == "from_1")


def _span(table: _SpanTable, record: Record) -> Span | None:
    """When a record holds; None where its table has no times."""
    if table.start is None:
        return None
    start = _moment(table, record, table.start)
    if table.end is None:
        return Span(start, start)
    return Span(start, _moment(table, record, table.end), table.end_is == "included")
