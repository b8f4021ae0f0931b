"""Columns of an example, answers as they are read, and points in time as models write them.

Times are in seconds, boxes [x0, y0, x1, y1] in pixels of the video as it lies on disk.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec

from barista_bench.benchmarks.clock_times import MAX_TEXT, read_seconds
from barista_bench.core.example import Evidence, Inputs, Metadata, PixelBox, Target, TypedFields
from barista_bench.core.sampling import Count, Rate, Sampling

TimeRange = Annotated[list[float], msgspec.Meta(min_length=2, max_length=2)]
"""[start, end] in seconds."""


class InstructionInputs(Inputs):
    """`times` are those of the frames shown; sizes in pixels."""

    instruction: str
    times: list[float]
    frame_width: int
    frame_height: int
    duration: float


class RequiredObject(TypedFields):
    """An object that the task takes; `boxes[i]` is where it is at `times[i]`."""

    category: str
    kind: str
    synonyms: list[str]
    intervals: list[TimeRange]
    times: list[float]
    boxes: list[PixelBox]

    @property
    def names(self) -> list[str]:
        """All names that are right, the category first."""
        return [self.category, *self.synonyms]


class RequiredObjects(Target):
    """All objects that the task takes."""

    objects: list[RequiredObject]


class InstructionMetadata(Metadata):
    """`rate` and `max_frames` are how frames were chosen; `unseen_objects` have no box at a frame shown."""

    split: str
    kind: str
    objects: str
    object_count: int
    unseen_objects: int
    categories: list[str]
    scene: str
    duration_bin: str
    rate: float
    max_frames: int | None


class InstructionEvidence(Evidence):
    """Where the task stands in the annotation files, and the size that its boxes are annotated on."""

    object_ids: list[str]
    file: str
    row: int
    annotated_width: int
    annotated_height: int


class AnsweredBox(TypedFields):
    """One answered box."""

    timestamp: float
    box: PixelBox


class AnsweredObject(TypedFields):
    """One answered object; `malformed` says that something of it could not be read."""

    name: str
    kind: str
    intervals: list[TimeRange]
    boxes: list[AnsweredBox]
    malformed: bool


class AnsweredObjects(TypedFields):
    """A prediction."""

    objects: list[AnsweredObject]


def ranges(intervals: list[TimeRange]) -> list[tuple[float, float]]:
    return [(start, end) for start, end in intervals]


SNAP = 0.25
"""Seconds that a time may be off from a frame's and still mean it."""

_FRAME = re.compile(r"\A\s*(?:frame|image)\s*#?\s*([0-9]{1,7})\s*\Z", re.IGNORECASE)


def read_time(value: object, shown: Sequence[float]) -> float | None:
    """Seconds of what a model wrote; None where it is no time.

    Beside what `read_seconds` reads, `frame 3` is the time of the third frame shown.

    Args:
        value: of any kind.
        shown: (n,) seconds of the frames shown, in order.

    >>> [read_time(value, [0.0, 4.0]) for value in (3, "3.5 s", "01:10", "Frame 2", "frame 9", "soon", -1, True)]
    [3.0, 3.5, 70.0, 4.0, None, None, None, None]
    """
    match = _FRAME.match(value) if isinstance(value, str) and len(value) <= MAX_TEXT else None
    if match is None:
        return read_seconds(value)
    number = int(match[1])
    return shown[number - 1] if 1 <= number <= len(shown) else None


def snapped(time: float, grid: Sequence[float]) -> float:
    """The time of the sorted grid that is meant: the nearest within `SNAP`, else the time itself, in milliseconds.

    >>> snapped(3.9, [0.0, 4.0]), snapped(5.12345, [0.0, 4.0]), snapped(4.2, [4.0, 4.3])
    (4.0, 5.123, 4.3)
    """
    index = bisect_left(grid, time)
    before = time - grid[index - 1] if index else math.inf
    after = grid[index] - time if index < len(grid) else math.inf
    if min(before, after) > SNAP + 1e-9:  # a hair wider, for times that are off by rounding alone
        return round(time, 3)
    return grid[index - 1] if before <= after else grid[index]


@dataclass(frozen=True, slots=True)
class TogSampling(Sampling):
    """Of frames of a video.

    Args:
        rate: frames a second, evenly.
        max_frames: of one example at the most, evenly thinned; None for as many as `rate` gives.
    """

    rate: Rate = 0.25
    max_frames: Count | None = None
