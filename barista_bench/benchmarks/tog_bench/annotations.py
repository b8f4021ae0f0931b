"""Our annotation format of ToG-Bench: instructions, and the objects that each takes, with times and boxes.

The official annotations are not published; `docs/tog_bench.md` describes this format and `schema.json` is its JSON
Schema (2020-12), exported from the records below. That page also shows how another layout is converted.

Times are seconds from the first frame. Boxes are [x0, y0, x1, y1] in pixels of a frame of the width and height that
the video's record states, with x0 < x1 and y0 < y1 (continuous corners: the width is x1 - x0).
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

FORMAT = "tog_bench"
MAX_SECONDS = 360_000.0
"""The longest video, in seconds (100 hours): more is a mistake or an attack."""
MAX_SIZE = 16_384
MAX_VIDEOS = 100_000
MAX_TASKS = 1_000_000
MAX_OBJECTS = 100
MAX_INTERVALS = 1_000
MAX_BOXES = 100_000
MAX_SYNONYMS = 100
NAME_LENGTH = 200
"""Characters of a category, a synonym or an id."""

Kind: TypeAlias = Literal["explicit", "implicit"]
Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_LENGTH)]
Seconds: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=MAX_SECONDS)]
Pixels: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=MAX_SIZE)]
# Half a frame outside on either side: trackers overshoot, and reading cuts boxes at the frame.
Coordinate: TypeAlias = Annotated[float, msgspec.Meta(ge=-MAX_SIZE, le=2 * MAX_SIZE)]
Corners: TypeAlias = tuple[Coordinate, Coordinate, Coordinate, Coordinate]


class Record(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, frozen=True):
    """Base of all records: a key that the format does not know is an error, not ignored."""


class BoxAt(Record, frozen=True):
    """One box: where the object is at `time` seconds."""

    time: Seconds
    box: Corners


class ObjectRecord(Record, frozen=True):
    """An object that the task takes.

    Args:
        category: its name.
        intervals: [[start, end], ...] in seconds, start <= end: when the object matters to the task.
        boxes: where it is, once a second, each time once.
        kind: whether the instruction names the object; the task's kind if left out.
        synonyms: other names that are right too.
        id: of the physical object, where several tasks share it.
    """

    category: Name
    intervals: Annotated[list[tuple[Seconds, Seconds]], msgspec.Meta(min_length=1, max_length=MAX_INTERVALS)]
    boxes: Annotated[list[BoxAt], msgspec.Meta(min_length=1, max_length=MAX_BOXES)]
    kind: Kind | None = None
    synonyms: Annotated[list[Name], msgspec.Meta(max_length=MAX_SYNONYMS)] = []
    id: Name | None = None


class TaskRecord(Record, frozen=True):
    """An instruction. `explicit` ones name what they take, `implicit` ones only say what is to be achieved."""

    id: Name
    video: Name
    instruction: Annotated[str, msgspec.Meta(min_length=1, max_length=10_000)]
    kind: Kind
    objects: Annotated[list[ObjectRecord], msgspec.Meta(min_length=1, max_length=MAX_OBJECTS)]


class VideoRecord(Record, frozen=True):
    """What boxes and times refer to.

    Args:
        id: the file's name below the media folder; `.mp4` is added to one without a suffix, and a folder of frames is
            called `<name>.frames`.
        width: of the frames that boxes are drawn on, in pixels.
        height: likewise.
        fps: frames a second; needed where the media are folders of frames.
        frame_count: frames.
        scene: kind of place, e.g. `Office`.
    """

    id: Name
    width: Pixels
    height: Pixels
    fps: Annotated[float, msgspec.Meta(gt=0, le=1000)] | None = None
    frame_count: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)] | None = None
    scene: Name | None = None


class AnnotationFile(Record, frozen=True):
    """One whole file."""

    format: Literal["tog_bench"]
    version: Literal[1]
    videos: Annotated[list[VideoRecord], msgspec.Meta(max_length=MAX_VIDEOS)]
    tasks: Annotated[list[TaskRecord], msgspec.Meta(max_length=MAX_TASKS)]


def encode(file: AnnotationFile) -> bytes:
    """The file's bytes: deterministic, keys in the order of the format."""
    return msgspec.json.encode(file)
