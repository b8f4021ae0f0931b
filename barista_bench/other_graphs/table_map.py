"""Defines the map of `import-graph --from table`: the tool of an export, or the meaning of each table's columns.

A new tool needs four files:

1. `other_graphs/__init__.py`: its name in `Tool`.
2. A module of that name beside this one; `labelme.py` is short. Its `add_rows` reads the files, and adds their records
   as rows. `drawing.py` makes the shape of a row from boxes, polygons and bitmaps.
3. A module of that name beside `tests/other_graphs/samples/labelme.py`, with a small export for all tests of tools.
4. docs/other_graphs.md: a row in "Annotations of other tools". `python -m tests.other_graphs.odd_files` writes a column
   of "Odd files".

`rows.py` defines the rows. `Rows` reads files, finds the videos of records, and counts records that are lost.
`table.py` calls `add_rows`, reads the tables of the map, and makes a scene graph of the rows of each video (`RowGraph`,
`row_graph.py`). `importing.py` writes it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias, get_args

import msgspec

from barista_bench.errors import ConfigError
from barista_bench.files.reading import load_yaml, read_bounded
from barista_bench.other_graphs import Tool
from barista_bench.other_graphs.drawing import Layout, Unit
from barista_bench.scene_graph.release import Terms

Section: TypeAlias = Literal["objects", "attributes", "relations", "activities", "process_steps"]
VIDEO = "{video}"
_MAX_MAP = 2**20
_REMEDY = "compare with the map in docs/other_graphs.md"


class AnyTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table. The text fields name columns, or keys of records.

    Args:
        file: path below the source. `{video}` in it is the video's name, if there is one file per video.
        list: key of the list of records, if the JSON file itself is not a list.
        video: the video's name, its file, or its folder of pictures.
        frames: format of moments: frame numbers from 0 or 1, seconds, or names of pictures. Required in a table with
            moments, since whole seconds look like frame numbers.
    """

    file: str
    list: str | None = None
    video: str | None = None
    frames: Literal["from_0", "from_1", "seconds", "names"] | None = None


class ObjectTable(AnyTable, frozen=True, kw_only=True):
    """Objects on frames.

    Args:
        id: identifies an object across frames; without it, each row is a separate object.
        box: a column of four numbers, or four columns.
        box_is: meaning of the four numbers.
        unit: the unit of boxes and polygons.
        mask: polygons or run lengths as in COCO, or the path of a PNG below the source. A mask has priority over a box.
    """

    frame: str
    category: str
    id: str | None = None
    box: str | tuple[str, str, str, str] | None = None
    box_is: Layout = "xywh"
    unit: Unit = "pixels"
    mask: str | None = None


class SpanTable(AnyTable, frozen=True, kw_only=True):
    """A table with time spans.

    Without `end`, a row holds only on its first frame. `end_is` defines if a row also holds on the frame `end`.
    """

    start: str | None = None
    end: str | None = None
    end_is: Literal["included", "excluded"] = "included"


class AttributeTable(SpanTable, frozen=True, kw_only=True):
    """Attributes. Without `type`, the domain file's type for the value is used."""

    object: str
    value: str
    type: str | None = None


class RelationTable(SpanTable, frozen=True, kw_only=True):
    """Relations. Without `type`, the domain file's type for the predicate is used."""

    subject: str
    predicate: str
    object: str
    type: str | None = None


class SegmentTable(SpanTable, frozen=True, kw_only=True):
    """Activities or process steps."""

    name: str
    start: str


class TableMap(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A map from the tables of an export to scene graphs.

    Args:
        tool: the tool that made the export. Tables are read in addition to the export.
        export: a pattern for the tool's files below the source; by default the files that the tool usually writes.
        videos: path of a video below the source, with `{video}` in it. Without it, videos are found by their names.
        fps: frames per second of folders of pictures.
        complete: sections with complete annotation. For `objects`: each annotated frame has all objects of the source's
            categories.
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
    """Load the map of a tool by the tool's name, or load a map file.

    Raises:
        ConfigError: there is no such tool or file, or the file has an unknown field; the message names the field.
    """
    if name in get_args(Tool):
        return msgspec.convert({"tool": name}, TableMap)
    path = Path(name)
    if not path.is_file():
        raise ConfigError(f"--map: no file {name}. Fix: give {', '.join(get_args(Tool))}, or the path of a map")
    try:
        table_map = msgspec.convert(
            load_yaml(read_bounded(path, _MAX_MAP, remedy=_REMEDY, error=ConfigError), str(path)), TableMap
        )
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {error}. Fix: {_REMEDY}") from error
    objects = table_map.objects
    if table_map.tool is None and objects is None:
        raise ConfigError(f"{path}: has neither `tool` nor `objects`. Fix: {_REMEDY}")
    if objects and objects.box is None and objects.mask is None:
        raise ConfigError(f"{path}: objects: has neither `box` nor `mask`. Fix: name their columns")
    if objects and objects.video is None and VIDEO not in objects.file:
        raise ConfigError(f"{path}: objects: has no `video`. Fix: name its column, or write {VIDEO} in `file`")
    for section in ("objects", "attributes", "relations", "activities", "process_steps"):
        table: ObjectTable | SpanTable | None = getattr(table_map, section)
        if table and not table.frames and (isinstance(table, ObjectTable) or table.start):
            remedy = "write `frames: seconds`, from_0 (the first frame is 0), from_1, or names (of pictures)"
            raise ConfigError(f"{path}: {section}: has no `frames`, the unit of its moments. Fix: {remedy}")
    return table_map
