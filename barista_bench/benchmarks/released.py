"""Frozen examples as a benchmark's own release writes them: reading records that others made, field by field.

What a release calls a field is not always documented. A record is therefore asked by several names at once: two that
disagree are an error, and where there is none the error lists the names wanted and those found. Nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar, cast

from barista_bench.benchmarks.parsing import is_text
from barista_bench.errors import DataError
from barista_bench.paths import confined, valid_video_id
from barista_bench.scene_graph import SceneGraph, VideoGraph
from barista_bench.scene_graph.release import ANNOTATION_FILE, VIDEO_FILE
from barista_bench.task import Fields, FrameRef
from barista_bench.video import open_reader

MAX_FRAMES = 1024
"""Frames of one example."""

_T = TypeVar("_T")


class Record:
    """One JSON object of somebody else's; `place` says in messages where it stands."""

    def __init__(self, values: object, place: str) -> None:
        if not isinstance(values, Mapping):
            raise DataError(f"{place} is {shown(values)}, not an object. Remedy: export the file again")
        self.values: Mapping[str, object] = values
        self.place = place

    def find(self, *names: str) -> tuple[str, object] | None:
        """The first of `names` that is here, with its value; None without any. Null counts as absent.

        Raises:
            DataError: two of them are here with different values.
        """
        found = [(name, self.values[name]) for name in names if self.values.get(name) is not None]
        for name, value in found[1:]:
            if value != found[0][1]:
                raise DataError(
                    f"{self.place}: {found[0][0]!r} and {name!r} say different things. Remedy: keep one of them"
                )
        return found[0] if found else None

    def get(self, *names: str) -> object:
        """The value under one of `names`.

        Raises:
            DataError: none of them is here; lists the keys that are.
        """
        found = self.find(*names)
        if found is None:
            keys = ", ".join(sorted(map(str, self.values))[:40]) or "none"
            raise DataError(
                f"{self.place}: no field {' or '.join(map(repr, names))}; the keys here are: {keys}. "
                "Remedy: give the field one of these names"
            )
        return found[1]

    def read(self, wanted: str, check: Callable[[object], _T | None], *names: str) -> _T:
        """The value under one of `names` as `check` makes it; `wanted` says in words what it must be.

        Raises:
            DataError: there is none, or `check` gives None.
        """
        value = self.get(*names)
        made = check(value)
        if made is None:
            raise self.wrong(names, wanted)
        return made

    def text(self, *names: str) -> str:
        return self.read("a text", lambda value: value if is_text(value) and value.strip() else None, *names)

    def integer(self, *names: str) -> int:
        return self.read("a whole number of 0 or more", index_number, *names)

    def items(self, *names: str) -> list[object]:
        return self.read("a list", lambda value: value if isinstance(value, list) else None, *names)

    def records(self, *names: str) -> list[Record]:
        """A list of objects, one of them at least."""
        listed = self.items(*names)
        if not listed:
            raise self.wrong(names, "a list with something in it")
        key = cast("tuple[str, object]", self.find(*names))[0]
        return [Record(item, f"{self.place}.{key}[{index}]") for index, item in enumerate(listed)]

    def among(self, *tiers: tuple[str, ...]) -> tuple[str, ...]:
        """The first tier with a name that is here: names of one tier mean the same, a later tier is less specific."""
        return next((tier for tier in tiers if self.find(*tier)), tuple(name for tier in tiers for name in tier))

    def wrong(self, names: tuple[str, ...], wanted: str) -> DataError:
        """The error for a field that is here but cannot be used."""
        name, value = self.find(*names) or (names[0], None)
        return DataError(f"{self.place}.{name} is {shown(value)}, not {wanted}. Remedy: correct it")


@dataclass(frozen=True, slots=True)
class ReleasedExample:
    """One line of a released frozen file: what all tasks have in common is checked, the rest left to the task."""

    example_id: str
    label: str
    frames: tuple[FrameRef, ...]
    data: Record
    metadata: Record

    @property
    def video_id(self) -> str:
        return self.frames[0].video_id

    def kept_metadata(self, ours: Fields) -> Fields:
        """`ours` with the release's own entries: those under other names, and the split and preparation it states."""
        theirs = cast("Fields", {name: value for name, value in self.metadata.values.items() if name != "protocol"})
        stated = {name: theirs[name] for name in ("split", "preparation") if is_text(theirs.get(name))}
        return {**theirs, **ours, **stated}


def released_example(record: object, *, nested: bool = False) -> ReleasedExample:
    """Read what the lines of all tasks have in common (upstream.md 1.3). `mp4_path` is ignored: paths are made from
    the video's id and the data root, never taken from a file.

    Args:
        nested: whether video ids may be relative paths, as those of other benchmarks are.

    Raises:
        DataError: a field is missing or cannot be used.
    """
    line = Record(record, "the line")
    frames = tuple(_frame(item, nested) for item in line.records("frames"))
    if len(frames) > MAX_FRAMES or len({frame.video_id for frame in frames}) > 1:
        raise line.wrong(("frames",), f"up to {MAX_FRAMES} frames of one video")
    return ReleasedExample(
        example_id=line.text("example_id"),
        label=line.read("a text", lambda value: value if is_text(value) else None, "label")
        if line.find("label")
        else "",
        frames=frames,
        data=Record(line.get("task_data"), "task_data"),
        metadata=Record(line.get("metadata") if line.find("metadata") else {}, "metadata"),
    )


def _frame(item: Record, nested: bool) -> FrameRef:
    video_id = item.text("video_id")
    if not all(map(valid_video_id, video_id.split("/") if nested else [video_id])):
        raise item.wrong(("video_id",), "a relative path" if nested else "the name of one folder")
    return FrameRef(video_id, item.integer("frame_index"))


@dataclass(frozen=True)
class ReleaseRoot:
    """The release beside a frozen file, asked only for what the file leaves out; `path` None where there is none."""

    path: Path | None = None
    _sizes: dict[str, tuple[int, int]] = field(default_factory=dict)

    @cached_property
    def _graph(self) -> SceneGraph:
        if self.path is None:
            raise DataError("the release is needed. Remedy: say with --root where its videos and annotations lie")
        return SceneGraph(self.path)

    def video(self, video_id: str, what: str) -> VideoGraph:
        """The annotations of a video.

        Raises:
            DataError: there are none; says that the file leaves `what` out.
        """
        try:
            return self._graph[video_id]
        except DataError as error:
            raise DataError(f"the file holds no {what}, and the annotations are not at hand: {error}") from error

    def vocabulary(self) -> dict[str, list[str]]:
        """Relation type to values, over all videos: reads the whole release, once."""
        try:
            return self._vocabulary
        except DataError as error:
            raise DataError(f"the file holds no vocabulary, and the annotations are not at hand: {error}") from error

    @cached_property
    def _vocabulary(self) -> dict[str, list[str]]:
        return self._graph.relation_vocabulary()

    def frame_size(self, video_id: str) -> tuple[int, int]:
        """(width, height) in pixels, from the annotations, else from the video itself.

        Raises:
            DataError: neither is at hand.
        """
        if video_id not in self._sizes:
            self._sizes[video_id] = self._frame_size(video_id)
        return self._sizes[video_id]

    def _frame_size(self, video_id: str) -> tuple[int, int]:
        if self.path is None:
            raise DataError("the file holds no frame size. Remedy: say with --root where its videos lie")
        if confined(self.path, video_id, ANNOTATION_FILE).is_file():
            video = self._graph[video_id].video
            return video.width, video.height
        path = confined(self.path, video_id, VIDEO_FILE)
        if not path.is_file():
            raise DataError(f"the file holds no frame size, and {path} is missing. Remedy: fetch the video")
        with open_reader(path) as reader:
            return reader.size


def index_number(value: object) -> int | None:
    """A whole number of 0 or more that fits 31 bits; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None


def shown(value: object) -> str:
    """A value for a message: short, whatever it is."""
    text = repr(value) if not isinstance(value, Mapping | list) else f"a {type(value).__name__} of {len(value)}"
    return text if len(text) <= 80 else f"{text[:77]}..."
