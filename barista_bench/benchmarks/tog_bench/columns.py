"""Columns of an example, answers as they are read, and points in time as models write them.

Times are in seconds, boxes [x0, y0, x1, y1] in pixels of the video as it lies on disk.
"""

from __future__ import annotations

from dataclasses import dataclass

from barista_bench.benchmarks.kinds.spans import TimeRange
from barista_bench.core.example import Evidence, Inputs, Metadata, PixelBox, Target, TypedFields
from barista_bench.core.options import Count, Rate, Sampling


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
    """The task's place in the annotation files, and the size that its boxes are annotated on."""

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


@dataclass(frozen=True, slots=True)
class TogSampling(Sampling):
    """The frames of a video that are shown.

    Args:
        rate: frames a second, evenly.
        max_frames: of one example at the most, evenly thinned; None for as many as `rate` gives.
    """

    rate: Rate = 0.25
    max_frames: Count | None = None
