"""When the frames of an example were filmed, as processors of videos are told it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

_DECIMALS = 6  # of frames a second that are found out of times


@dataclass(frozen=True, slots=True)
class FrameTimes:
    """Each of n frames by its number in its video: frame i stands `indices[i] / fps` seconds after the video's first.

    Args:
        fps: frames a second of the video as it was filmed, not of the frames that are shown.
        indices: n numbers from 0, in the order shown.
        frame_count: of the whole video; None where it is not known.

    Raises:
        ValueError: `fps` is not a positive number.
    """

    fps: float
    indices: tuple[int, ...]
    frame_count: int | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.fps) and self.fps > 0):
            raise ValueError(f"{self.fps} frames a second")

    @classmethod
    def of_seconds(cls, indices: Sequence[int], seconds: Sequence[float]) -> Self | None:
        """From the second of each frame after the video's first: its number is then the nearest one at the mean rate.

        At a rate that does not vary that is `indices`. None where there is no later frame than the first.
        """
        end, last = max(zip(seconds, indices, strict=True))
        if not (end > 0 and last > 0):
            return None
        fps = round(last / end, _DECIMALS)
        return cls(fps, tuple(round(second * fps) for second in seconds))

    def of(self, images: Sequence[int]) -> Self:
        """Those of some of the frames, by their place among the n; a place may come twice."""
        return type(self)(self.fps, tuple(self.indices[image] for image in images), self.frame_count)

    @property
    def seconds(self) -> tuple[float, ...]:
        return tuple(index / self.fps for index in self.indices)

    @property
    def span(self) -> int:
        """From the first to the last, in frames of the video; 0 where all are of one moment."""
        return max(self.indices) - min(self.indices)

    @property
    def rate(self) -> float:
        """Frames shown a second, in the mean. Raises ZeroDivisionError where all are of one moment."""
        return (len(self.indices) - 1) * self.fps / self.span

    @property
    def is_even(self) -> bool:
        """Whether they lie at equal distances, up to the rounding to whole frames."""
        steps = [after - before for before, after in pairwise(self.indices)]
        return max(steps) - min(steps) <= 1

    def metadata(self) -> dict[str, int | float | list[int]]:
        """The fields of transformers' `VideoMetadata`, which vLLM reads too.

        `total_num_frames` is how many frames of the video those shown stand for, since processors that know one rate
        alone make it of that: `sampled_fps`, which is `rate` up to half a frame over the whole stretch.
        """
        count = len(self.indices)
        stretch = round(count * self.span / (count - 1)) if count > 1 else 1
        known = {} if self.frame_count is None else {"duration": self.frame_count / self.fps}
        return {"total_num_frames": max(count, stretch), "fps": self.fps, "frames_indices": list(self.indices), **known}
