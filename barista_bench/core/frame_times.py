"""Hold when frames were filmed and which images of a prompt form a clip. Models receive nothing else about time.

The times of frames reach a model in four steps:

1. `ExampleSet.frame_times` (`data/dataset.py`) takes them from the example: `fps` of its metadata and the numbers of
   its frames (`Task.frame_times`; EgoCoT-Bench takes the times that its prompt names). If the example has no `fps`, the
   media give the times: the column `frame_seconds` of a built set, or the time stamps of the videos of a frozen file.
   `Task.image_frames` says which frame each image shows.
2. `runs/ask/asking.py` puts them into `Request.times` if the model is loaded with `frames_as=video`. Ablations
   (`models/ablations.py`) and aids (`runs/ask/aiding.py`) that remove or add images change the times too.
   `shuffled_frames` keeps them, because they would show the order. `annotate/describing.py` has requests of its own.
3. The engine asks `parts_with_clips`: two or more consecutive images become a `VideoClip`, whose times are the frames'
   own or those of the setting `video_fps`. Without times, the sample fails.
4. The engine sends `FrameTimes.metadata` with the clip, and asks that no frame is left out:
   - transformers (`models/local/inputs.py`, `_apply`): as `video_metadata` of the processor. If the processor tells its
     model one rate per video, this is the mean rate of the frames (`_shared_rate`, from `FrameTimes.rate`).
   - vLLM (`models/vllm/model.py`, `_call`): beside the frames of each video; `worker.py` passes both on.
   - a server (`models/served/requests.py`, `request_body`): in the field `media_io_kwargs.video`, which holds the times
     of one video. The frames are a data URL of JPEG files.

The identity of the model records this as `video_times` (`video_settings` of `models/base.py`). If a model is told the
frames' own times, they are a part of each sample's fingerprint.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Self

from barista_bench.core.prompt import ImagePart, Prompt, TextPart

_DECIMALS = 6  # decimals of a rate, in frames per second, that is computed from times


@dataclass(frozen=True, slots=True)
class FrameTimes:
    """The times of n frames, by their numbers in the video.

    Frame i is `indices[i] / fps` seconds after the first frame of the video.

    Args:
        fps: frames per second of the video as filmed, not of the frames shown.
        indices: n numbers from 0, in the order shown.
        frame_count: frames of the complete video; None if unknown.

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
        """Return the times of frames, given in seconds after the video's first frame.

        At the mean rate of the frames, each time becomes the nearest frame number.

        At a constant rate, these numbers are `indices`. The result is None if no frame is later than the first.
        """
        end, last = max(zip(seconds, indices, strict=True))
        if not (end > 0 and last > 0):
            return None
        fps = round(last / end, _DECIMALS)
        return cls(fps, tuple(round(second * fps) for second in seconds))

    def of_images(self, images: Sequence[int]) -> Self:
        """Return the times of some of the n frames, by their positions. A position may be repeated."""
        return type(self)(self.fps, tuple(self.indices[image] for image in images), self.frame_count)

    @property
    def seconds(self) -> tuple[float, ...]:
        return tuple(index / self.fps for index in self.indices)

    @property
    def span(self) -> int:
        """Return the distance from the first frame to the last, in frames of the video; 0 if all frames have the same
        time.
        """
        return max(self.indices) - min(self.indices)

    @property
    def rate(self) -> float:
        """Return the mean number of frames shown per second.

        Raises ZeroDivisionError if all frames have the same time.
        """
        return (len(self.indices) - 1) * self.fps / self.span

    @property
    def is_even(self) -> bool:
        """Whether the frames are evenly spaced, apart from rounding to whole frames."""
        steps = [after - before for before, after in pairwise(self.indices)]
        return max(steps) - min(steps) <= 1

    def metadata(self) -> dict[str, int | float | list[int]]:
        """Return the fields of transformers' `VideoMetadata`, which vLLM reads too.

        `total_num_frames` is the number of video frames that the shown frames cover. Processors that support a single
        rate compute `sampled_fps` from this number. Over the complete span, `sampled_fps` differs from `rate` by at
        most half a frame.
        """
        count = len(self.indices)
        stretch = round(count * self.span / (count - 1)) if count > 1 else 1
        extra = {} if self.frame_count is None else {"duration": self.frame_count / self.fps}
        return {"total_num_frames": max(count, stretch), "fps": self.fps, "frames_indices": list(self.indices), **extra}


@dataclass(frozen=True, slots=True)
class VideoClip:
    """Images of a request that form one video: the numbers of the images, and when each was filmed."""

    images: tuple[int, ...]
    times: FrameTimes


def parts_with_clips(
    prompt: Prompt, times: FrameTimes | None, fps: float | None
) -> list[TextPart | ImagePart | VideoClip]:
    """Return the prompt's parts as a chat holds them. Two or more consecutive images become one clip.

    Images of one moment stay images: two views of a frame are not a video.

    Args:
        times: times of the prompt's images; None if unknown.
        fps: frames per second from the first frame on. They replace the frames' times.

    Raises:
        ValueError: the times of the frames are needed, but they are unknown or do not match the images.
    """
    joined_parts = prompt.joined_parts
    count = sum(isinstance(part, ImagePart) for part in joined_parts)
    if times is not None and len(times.indices) != count:
        counts = f"it has {count} images, and the times of {len(times.indices)} frames"
        raise ValueError(f"{counts}. Fix: say in the task's `image_frames` which frame each image shows")
    parts: list[TextPart | ImagePart | VideoClip] = []
    for _, group in groupby(joined_parts, lambda part: isinstance(part, ImagePart)):
        neighbours = list(group)
        images = tuple(part.index for part in neighbours if isinstance(part, ImagePart))
        clip_times = times.of_images(images) if times is not None and images else None
        if len(images) < 2 or (clip_times is not None and not clip_times.span):
            parts += neighbours
        elif fps is not None:
            parts.append(VideoClip(images, FrameTimes(fps, tuple(range(len(images))))))
        elif clip_times is None:
            raise ValueError(
                "it is not known when its frames were filmed, neither by the example nor by its media. "
                "Fix: build the set again, or say video_fps (frames a second of those shown)"
            )
        else:
            parts.append(VideoClip(images, clip_times))
    return parts
