"""Imports annotations of other tools as graphs, with a map: exports of a tool, and tables.

Tables are CSV files, JSON lines, or lists in JSON files. `table_map.py` begins with all steps.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import msgspec

from barista_bench.errors import ConfigError, DataError
from barista_bench.files.paths import confine, name_problem
from barista_bench.files.reading import read_bounded
from barista_bench.other_graphs import Tool
from barista_bench.other_graphs.drawing import Bits, bitmap_shape, box_shape, coco_shape, png_bits, polygon_shape
from barista_bench.other_graphs.row_graph import RowGraph
from barista_bench.other_graphs.rows import (
    OBJECTS,
    AttributeRow,
    Moment,
    ObjectRow,
    PredicateRow,
    Rows,
    SegmentRow,
    Shape,
    Span,
    VideoRows,
    reason_of,
)
from barista_bench.other_graphs.source import GraphSource, ImportedVideo, ImportTally, OpenedSource
from barista_bench.other_graphs.table_map import VIDEO, AnyTable, ObjectTable, SpanTable, load_map
from barista_bench.scene_graph.domain import Domain
from barista_bench.scene_graph.release import MALFORMED, Terms, replace_non_finite

_MAX_PICTURE = 2**26
_SETTINGS = {"file", "list", "frames", "box_is", "unit", "end_is"}
"""Fields of tables that do not name a column."""
_SECTIONS = ("attributes", "relations", "activities", "process_steps")
Record = Mapping[str, Any]


class TableSource(OpenedSource):
    """A folder of annotations that also contains the videos or pictures. All rows are kept in memory.

    Raises:
        DataError: a file is missing, has another format, or lacks a column that the map names.
    """

    def __init__(self, folder: Path, domain: Domain, map_name: str) -> None:
        self._map, self._rows, self._domain = load_map(map_name), Rows(folder), domain
        self._holders: dict[str, set[str]] = defaultdict(set)
        """Maps the key of an object to the ids of the videos that contain the object."""
        if self._map.tool:
            import_module(f"barista_bench.other_graphs.{self._map.tool}").add_rows(self._rows, self._map.export)
        self._add_tables()
        self._rows.sha256.update(msgspec.json.encode(self._map))
        self.video_ids = sorted(self._rows.videos)
        self.terms = self._map.terms

    @property
    def tally(self) -> ImportTally:
        return self._rows.tally

    def digest(self, video_id: str) -> str:
        return hashlib.sha256(self._rows.sha256.digest() + video_id.encode()).hexdigest()

    def read(self, video_id: str) -> ImportedVideo:
        return RowGraph(video_id, self._rows, self._domain, fps=self._map.fps, complete=self._map.complete).video()

    def _add_tables(self) -> None:
        """Add the rows of all tables. The table of objects is read first, since all other tables refer to it."""
        if self._map.objects:
            self._add(OBJECTS, self._map.objects)
        for video_id, video in self._rows.videos.items():
            for row in video.objects:
                self._holders[row.key].add(video_id)
        for section in _SECTIONS:
            if table := getattr(self._map, section):
                self._add(section, table)

    def _add(self, section: str, table: AnyTable) -> None:
        for path, name in _files(self._rows.source, table.file):
            for place, record in self._records(path, table, section):
                video = self._video(table, record, name)
                if isinstance(video, str):
                    self._rows.lose(place, video)
                    continue
                try:
                    if isinstance(table, ObjectTable):
                        self._add_object(table, video, record, place)
                    else:
                        _add_fact(section, table, video, record, place)
                except ValueError as error:
                    video.lose(place, str(error), section=section)

    def _records(self, path: Path, table: AnyTable, section: str) -> Iterator[tuple[str, Record]]:
        """Yield the records of a file, each with its place; invalid records count as lost."""
        data, place, suffix = self._rows.read(path), self._rows.place(path), path.suffix.lower()
        if suffix not in (".json", ".jsonl", ".ndjson"):
            yield from self._csv_records(path, data, table, section)
            return
        if suffix == ".json":
            raws: list[Any] = _items(path, data, table.list)
            places = [f"{place}: {table.list or 'record'}[{number}]" for number in range(len(raws))]
        else:
            raws = data.splitlines()
            places = [f"{place}: line {number}" for number in range(1, len(raws) + 1)]
        for where, raw in zip(places, raws, strict=True):
            try:
                if bytes(raw).strip():
                    yield where, msgspec.json.decode(raw, type=dict[str, Any])
            except MALFORMED as error:
                self._rows.lose(where, f"no JSON record ({reason_of(error)})", section)

    def _csv_records(self, path: Path, data: bytes, table: AnyTable, section: str) -> Iterator[tuple[str, Record]]:
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: is not UTF-8. Fix: save it as UTF-8") from error
        header = text.partition("\n")[0]
        lines = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=header.count))
        columns = lines.fieldnames or []
        for name, column in msgspec.structs.asdict(table).items():
            named = (column if isinstance(column, tuple) else (column,)) if name not in _SETTINGS else ()
            for missing in (one for one in named if one is not None and one not in columns):
                listed = ", ".join(columns)
                raise DataError(f"{path}: no column {missing!r}. Fix: name for `{name}` in the map one of {listed}")
        while True:
            try:
                record = next(lines, None)
            except csv.Error as error:
                self._rows.lose(f"{self._rows.place(path)}: line {lines.line_num}", str(error), section)
                continue
            if record is None:
                return
            yield f"{self._rows.place(path)}: line {lines.line_num}", record

    def _video(self, table: AnyTable, record: Record, name: str | None) -> VideoRows | str:
        """Return the video of a record, or the reason why the record has no video."""
        if name is None and table.video is None:
            columns = [getattr(table, one) for one in ("subject", "object") if hasattr(table, one)]
            keys = [_text(record, column) for column in columns]
            holders = [self._holders.get(key, set()) for key in keys]
            if lost := next((key for key, ids in zip(keys, holders, strict=True) if not ids), None):
                return f"object {lost!r} is in no video"
            ids = set.intersection(*holders) if holders else set(self._rows.videos)
            what = "its objects are" if holders else "it is"
            return self._rows.videos[ids.pop()] if len(ids) == 1 else f"{what} in {len(ids)} videos: map `video`"
        name = name or _text(record, table.video)
        if name in self._rows.videos:
            return self._rows.videos[name]
        if self._map.videos is None:
            path = self._rows.find(name)
            return self._rows.video(path) if path else f"not exactly one video below the source is named {name!r}"
        if problem := name_problem(name):
            return f"the video's name is not usable: {problem}"
        return self._rows.video(self._map.videos.replace(VIDEO, name), name)

    def _add_object(self, table: ObjectTable, video: VideoRows, record: Record, place: str) -> None:
        moment = _moment(table, record, table.frame)
        try:
            shape = self._shape(table, record)
        except ValueError as error:
            video.lose(place, str(error), moment=moment)
            return
        key = _text(record, table.id) if table.id else place
        self._rows.add_object(video, ObjectRow(place, key, _text(record, table.category), moment, shape))

    def _shape(self, table: ObjectTable, record: Record) -> Shape:
        mask = record.get(table.mask) if table.mask else None
        if isinstance(mask, str) and mask.strip()[:1] in ("[", "{"):
            mask = _json(mask, "mask")
        if isinstance(mask, str) and mask:
            return bitmap_shape(partial(self._mask_of_file, mask), 0, 0)
        if isinstance(mask, list) and mask and table.unit != "pixels":
            corners = [list(zip(piece[::2], piece[1::2], strict=True)) for piece in mask]
            return polygon_shape(corners, table.unit)
        if mask:
            return coco_shape(msgspec.json.encode(mask))
        if isinstance(table.box, tuple):
            box: Any = [record.get(column) for column in table.box]
        else:
            box = record.get(table.box) if table.box else None
            box = _json(box, "box") if isinstance(box, str) and box else box
        if not isinstance(box, list) or len(box) != 4 or any(number in (None, "") for number in box):
            raise ValueError("it has no mask, and no box of four numbers")
        return box_shape([_number(number, "box") for number in box], table.box_is, table.unit)

    def _mask_of_file(self, path: str) -> Bits:
        try:
            return png_bits(read_bounded(confine(self._rows.source, path), _MAX_PICTURE, remedy="name a PNG"))
        except DataError as error:
            raise ValueError("it cannot be read") from error


def _add_fact(section: str, table: AnyTable, video: VideoRows, record: Record, place: str) -> None:
    """Add a row of a section other than objects. Raises ValueError if its times cannot be read."""
    span = _span(table, record) if isinstance(table, SpanTable) else None
    columns = {name: getattr(table, name, None) for name in ("subject", "predicate", "object", "value", "type", "name")}
    texts = {name: _text(record, column) for name, column in columns.items()}
    kind = texts["type"] or None
    if section == "relations":
        row = PredicateRow(place, texts["subject"], texts["predicate"], texts["object"], kind, span)
        video.relations.append(row)
    elif section == "attributes" and not texts["value"]:
        video.tally.left_out["attributes without a value"] += 1
    elif section == "attributes":
        video.attributes.append(AttributeRow(place, texts["object"], texts["value"], kind, span))
    elif span:
        video.segments.append(SegmentRow(place, section, texts["name"], span))


def _items(path: Path, data: bytes, key: str | None) -> list[msgspec.Raw]:
    """Return the list in a JSON file; if the file itself is not a list, the list is at `key`."""
    try:
        content = msgspec.Raw(replace_non_finite(data))
        content = msgspec.json.decode(content, type=dict[str, msgspec.Raw])[key] if key else content
        return msgspec.json.decode(content, type=list[msgspec.Raw])
    except (*MALFORMED, KeyError) as error:
        what = f"no list at {key!r}" if key else "no list"
        raise DataError(f"{path}: {what} ({error}). Fix: name in `list` of the map where the records are") from error


def _files(source: Path, pattern: str) -> list[tuple[Path, str | None]]:
    """Return the files of a table, each with the name of its video if the path contains it."""
    if VIDEO not in pattern:
        return [(confine(source, pattern), None)]
    expression = re.compile("([^/]+)".join(map(re.escape, pattern.split(VIDEO))))
    names = [path.relative_to(source).as_posix() for path in sorted(source.glob(pattern.replace(VIDEO, "*")))]
    found = [(confine(source, name), match[1]) for name in names if (match := expression.fullmatch(name))]
    if not found:
        raise DataError(f"{source}: no file {pattern}. Fix: correct `file` in the map")
    return list(found)


def _text(record: Record, column: str | None) -> str:
    """Return a value as text, and a number as its digits; the text is empty if the value is missing."""
    value = record.get(column) if column else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _json(text: str, what: str) -> Any:  # noqa: ANN401
    try:
        return msgspec.json.decode(text)
    except MALFORMED as error:
        raise ValueError(f"its {what} is not JSON") from error


def _number(value: object, what: str) -> float:
    try:
        number = float(value) if isinstance(value, str | int | float) else float("nan")
    except ValueError:
        number = float("nan")
    if not abs(number) < 2**53:
        raise ValueError(f"a number of its {what} is missing or wrong")
    return number


def _moment(table: AnyTable, record: Record, column: str) -> Moment:
    """Return the moment in a column. Raises ValueError if the column has no moment."""
    if table.frames == "names":
        return _text(record, column).replace("\\", "/").rpartition("/")[2]
    number = _number(record.get(column), column)
    if table.frames == "seconds":
        return number
    if not number.is_integer():
        raise ValueError("a frame is not a whole number")
    return int(number) - (table.frames == "from_1")


def _span(table: SpanTable, record: Record) -> Span | None:
    """Return the span of a record; None if its table has no times."""
    if table.start is None:
        return None
    start = _moment(table, record, table.start)
    if table.end is None:
        return Span(start, start)
    return Span(start, _moment(table, record, table.end), table.end_is == "included")


def _open_without_map(folder: Path, domain: Domain) -> OpenedSource:
    raise ConfigError(
        f"--from table: {folder} could come from any tool. Fix: add --map {', '.join(get_args(Tool))}, or a map's path"
    )


SOURCE = GraphSource(
    name="table",
    terms=Terms(
        title="annotations of another tool",
        licence="other",
        licence_note="Not stated: the map of the import has no `terms`.",
        citation="",
        homepage="",
    ),
    open=_open_without_map,
    open_mapped=TableSource,
)
