"""What the columns of an example hold, and what an answer is read as.

Times are in seconds, boxes [x0, y0, x1, y1] in pixels of the video as it lies on disk.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from barista_bench.core.example import PixelBox, TypedFields

TimeRange = Annotated[list[float], msgspec.Meta(min_length=2, max_length=2)]
"""[start, end] in seconds."""
Corners: TypeAlias = tuple[float, float, float, float]


class InstructionInputs(TypedFields):
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


class RequiredObjects(TypedFields):
    """All objects that the task takes."""

    objects: list[RequiredObject]


class InstructionMetadata(TypedFields):
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


class InstructionEvidence(TypedFields):
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


def corners(box: list[float]) -> Corners:
    x0, y0, x1, y1 = box
    return x0, y0, x1, y1


def ranges(intervals: list[TimeRange]) -> list[tuple[float, float]]:
    return [(start, end) for start, end in intervals]
