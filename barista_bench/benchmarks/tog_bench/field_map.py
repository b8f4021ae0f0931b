"""A field map says where another annotation layout keeps what ours needs: a YAML file, so that no code is written.

A path is a chain of keys and list indices joined by dots, read from the record at hand: `clip.size.0`. An empty path is
the record itself, `@` is the key (or index) under which it was found, and each leading `^` goes up to what holds it:
`^^.fps`. `records` alone may hold `*`, which means every entry: `videos.*.tasks.*`. Nothing of a map is ever executed.
`docs/tog_bench.md` shows maps for common layouts.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec

from barista_bench.errors import ConfigError, DataError
from barista_bench.files.bounded import read_bounded
from barista_bench.files.yaml_files import MAX_BYTES, load_yaml

MAX_DEPTH = 20
"""Steps of a path."""

Path_: TypeAlias = Annotated[str, msgspec.Meta(max_length=500)]
TimeUnit = Literal["seconds", "milliseconds", "frames", "clock"]
BoxOrder = Literal["xyxy", "yxyx", "xywh", "cxcywh"]


class MapRecord(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Base of a map's parts: a misspelt key is an error."""


class Lookup(MapRecord, frozen=True):
    """A value that is not simply copied.

    Args:
        at: path to it.
        value: a constant, instead of a path.
        values: their word to ours, for all words that occur.
        stem: take a file's path without folders and suffix: `clips/a.mp4` is `a`.
        add: text to put behind, e.g. `.frames`.
    """

    at: Path_ | None = None
    value: str | float | None = None
    values: Annotated[dict[str, str], msgspec.Meta(max_length=1_000)] | None = None
    stem: bool = False
    add: Annotated[str, msgspec.Meta(max_length=50)] = ""

    def __post_init__(self) -> None:
        if (self.at is None) == (self.value is None):
            raise ValueError("give either `at`, a path, or `value`, a constant")


Where: TypeAlias = Path_ | Lookup
FourPaths: TypeAlias = Annotated[list[Path_], msgspec.Meta(min_length=4, max_length=4)]


class VideoMap(MapRecord, frozen=True):
    """Where the facts of a task's video are, from the task's record."""

    id: Where
    width: Where
    height: Where
    fps: Where | None = None
    frame_count: Where | None = None
    scene: Where | None = None


class TaskMap(MapRecord, frozen=True):
    """Where a task's own fields are. Without an `id` of theirs, tasks are counted by video."""

    instruction: Where
    kind: Where
    id: Where | None = None


class IntervalMap(MapRecord, frozen=True):
    """Where an object's intervals are: one of them, or (`many`) a list. `start` and `end` are read from each."""

    at: Path_
    many: bool = False
    start: Path_ = "0"
    end: Path_ = "1"
    unit: TimeUnit = "seconds"


class BoxMap(MapRecord, frozen=True):
    """Where an object's boxes are: a list, or a mapping of times to boxes (then `time: "@"`).

    Args:
        at: path of the list or mapping, from the object.
        time: path of the time, from its entry.
        box: path of four numbers, from its entry, or four paths of a number each.
        unit: of the time.
        order: `xyxy` corners, `yxyx` likewise, `xywh` corner and size, `cxcywh` centre and size.
        scale: what a full side of the frame maps to, e.g. 1 or 1000; left out where boxes are in pixels.
    """

    at: Path_
    time: Path_ = "time"
    box: Path_ | FourPaths = "box"
    unit: TimeUnit = "seconds"
    order: BoxOrder = "xyxy"
    scale: Annotated[float, msgspec.Meta(gt=0, le=1_000_000)] | None = None


class ObjectMap(MapRecord, frozen=True):
    """Where objects of a task are, from its record; several maps where they stand in several lists.

    Args:
        category: from the object.
        intervals: likewise.
        boxes: likewise.
        at: one object, or (`many`) a list or mapping of them; empty where the record itself is the object.
        many: whether `at` holds several. Then it may be absent, and has none.
        kind: the task's where left out.
        synonyms: a list of names.
        id: of the physical object.
    """

    category: Where
    intervals: IntervalMap
    boxes: BoxMap
    at: Path_ = ""
    many: bool = False
    kind: Where | None = None
    synonyms: Path_ | None = None
    id: Where | None = None


class FieldMap(MapRecord, frozen=True):
    """A whole map.

    Args:
        name: for messages and results.
        records: path with `*` to the records, from the top of the file; a JSONL file is a list of its lines.
        video: see there.
        task: see there.
        objects: see there.
        grouped: several records with one task id are one task of several objects.
        recognised_by: keys of a record that tell the layout; for the packaged maps, which are tried in turn.
    """

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    records: Path_
    video: VideoMap
    task: TaskMap
    objects: Annotated[list[ObjectMap], msgspec.Meta(min_length=1, max_length=20)]
    grouped: bool = False
    recognised_by: list[str] = []

    def __post_init__(self) -> None:
        if self.grouped and self.task.id is None:
            raise ValueError("grouped records need task.id, by which they are grouped")


@dataclass(frozen=True, slots=True)
class Node:
    """A value of somebody else's file, and the way to it."""

    value: object
    key: str | int = ""
    parent: Node | None = None

    def child(self, step: str) -> Node:
        """One step down. Raises DataError where there is nothing."""
        if isinstance(self.value, Mapping) and step in self.value:
            return Node(self.value[step], step, self)
        if isinstance(self.value, list) and step.isascii() and step.isdigit() and len(step) < 8:
            place = int(step)
            if place < len(self.value):
                return Node(self.value[place], place, self)
        raise DataError(f"has no {step!r:.60}")

    def children(self) -> Iterator[Node]:
        """All entries of a list or a mapping. Raises DataError for anything else."""
        if isinstance(self.value, Mapping):
            yield from (Node(value, str(key), self) for key, value in self.value.items())
        elif isinstance(self.value, list):
            yield from (Node(value, place, self) for place, value in enumerate(self.value))
        else:
            raise DataError(f"holds {type(self.value).__name__}, not a list or an object")

    def at(self, path: str) -> Node:
        """What a path leads to. Raises DataError naming the step that leads nowhere."""
        node, rest = self, path
        while rest.startswith("^"):
            if node.parent is None:
                raise DataError(f"the path {path!r:.60} goes up beyond the top")
            node, rest = node.parent, rest[1:]
        for step in _steps(rest.removeprefix(".") if rest != path else rest):
            node = Node(node.key, "@", node) if step == "@" else node.child(step)
        return node

    def each(self, path: str) -> Iterator[Node]:
        """All that a path with `*` leads to, in the order of the file; entries without the way down are left out."""
        nodes: Iterator[Node] = iter((self,))
        for step in _steps(path):
            nodes = _spread(nodes) if step == "*" else _descended(nodes, step)
        yield from nodes


def _steps(path: str) -> Sequence[str]:
    steps = path.split(".") if path else []
    if len(steps) > MAX_DEPTH:
        raise DataError(f"the path {path!r:.60} has more than {MAX_DEPTH} steps")
    return steps


def _spread(nodes: Iterator[Node]) -> Iterator[Node]:
    for node in nodes:
        yield from node.children()


def _descended(nodes: Iterator[Node], step: str) -> Iterator[Node]:
    for node in nodes:
        yield node.child(step)


def load_field_map(path: Path) -> FieldMap:
    """A field map from a YAML file.

    Raises:
        ConfigError: there is no such file, or it is no field map; names file and key.
    """
    remedy = "write one, see docs/tog_bench.md"
    data = read_bounded(path, MAX_BYTES, what="no field map", remedy=remedy, error=ConfigError)
    return parse_field_map(data, str(path))


def parse_field_map(data: bytes, name: str) -> FieldMap:
    """A field map from the bytes of a YAML file. Raises ConfigError as `load_field_map` does."""
    content = load_yaml(data, name, remedy="correct that line; a lone * stands in quotes")
    try:
        return msgspec.convert(content, FieldMap)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{name}: {error}. Remedy: see the field maps of docs/tog_bench.md") from error


@functools.cache
def packaged_maps() -> tuple[FieldMap, ...]:
    """The field maps that come with the package, by name."""
    folder = resources.files(__package__).joinpath("maps")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".yaml")), key=lambda file: file.name)
    return tuple(parse_field_map(file.read_bytes(), f"maps/{file.name}") for file in files)
