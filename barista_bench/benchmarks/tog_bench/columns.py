"""Define the columns of an example, parsed answers, and the forms of times in answers.

Times are in seconds. Boxes are [x0, y0, x1, y1] in pixels of the video on disk.
"""

from __future__ import annotations

from dataclasses import dataclass

from barista_bench.benchmarks.kinds.spans import TimeRange
from barista_bench.core.example import Inputs, Metadata, PixelBox, Target, TracedEvidence, TypedFields
from barista_bench.core.options import Count, Rate, Sampling


class InstructionInputs(Inputs):
    """The inputs of an example. `times` are the times of the shown frames; sizes are in pixels."""

    instruction: str
    times: list[float]
    frame_width: int
    frame_height: int
    duration: float


class RequiredObject(TypedFields):
    """An object that the instruction needs. `boxes[i]` is the object's place at `times[i]`."""

    category: str
    kind: str
    synonyms: list[str]
    intervals: list[TimeRange]
    times: list[float]
    boxes: list[PixelBox]

    @property
    def names(self) -> list[str]:
        """Return all right names; the category comes first."""
        return [self.category, *self.synonyms]


class RequiredObjects(Target):
    """All objects that the instruction needs."""

    objects: list[RequiredObject]


class InstructionMetadata(Metadata):
    """The keys of analysis. `rate` and `max_frames` determine the chosen frames. `unseen_objects` have no box at a
    shown frame.
    """

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


class InstructionEvidence(TracedEvidence):
    """The place of the instruction in the annotation files, and the frame size of the annotated boxes."""

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
    """One answered object. `malformed` means that a part of the object was unreadable."""

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
    """The shown frames of a video.

    Args:
        rate: frames per second; the frames are evenly spaced.
        max_frames: maximum number of frames per example; more frames are evenly thinned. None means no limit.
    """

    rate: Rate = 0.25
    max_frames: Count | None = None
