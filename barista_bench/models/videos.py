"""Frames as one video: which images of a request become one, and what is said of their times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Literal

from barista_bench.core.frame_times import FrameTimes
from barista_bench.core.prompt import ImagePart, TextPart

if TYPE_CHECKING:
    from barista_bench.models.base import ModelIdentity, Request

FramesAs = Literal["images", "video"]
TIMES_SETTING = "video_times"
"""Of a model's identity: what its processor is told of the times of frames. Models that see images lack it."""
OWN_TIMES = "own"
ONE_RATE = "own, one rate a video"


@dataclass(frozen=True, slots=True)
class VideoClip:
    """Images of a request that are one video, by their numbers, and when each was filmed."""

    images: tuple[int, ...]
    times: FrameTimes


def parts_with_clips(request: Request, fps: float | None) -> list[TextPart | ImagePart | VideoClip]:
    """The prompt's parts as chats hold them, where images that follow each other are one clip, if two or more.

    Images of one moment stay images: two views of a frame are no video.

    Args:
        fps: what is said instead of the frames' own times: so many a second, from the first one on.

    Raises:
        ValueError: the times of the frames are wanted, and not known, or those of others.
    """
    times, count = request.times, len(request.images)
    if times is not None and len(times.indices) != count:
        what = f"it has {count} images, and the times of {len(times.indices)} frames"
        raise ValueError(f"{what}. Remedy: say in the task's `image_frames` which frame each image shows")
    shown: list[TextPart | ImagePart | VideoClip] = []
    for _, run in groupby(request.prompt.joined, lambda part: isinstance(part, ImagePart)):
        parts = list(run)
        images = tuple(part.index for part in parts if isinstance(part, ImagePart))
        own = times.of(images) if times is not None and images else None
        if len(images) < 2 or (own is not None and not own.span):
            shown += parts
        elif fps is not None:
            shown.append(VideoClip(images, FrameTimes(fps, tuple(range(len(images))))))
        elif own is None:
            raise ValueError(
                "it is not known when its frames were filmed, neither by the example nor by its media. "
                "Remedy: build the set again, or say video_fps (frames a second of those shown)"
            )
        else:
            shown.append(VideoClip(images, own))
    return shown


def video_settings(frames_as: FramesAs, fps: float | None, input_names: Sequence[str] = ()) -> dict[str, str]:
    """The settings of videos in a model's identity; nothing where it sees images.

    Args:
        fps: what is said instead of the frames' own times.
        input_names: outputs of its processor, where that is known.
    """
    if frames_as == "images":
        return {}
    own = ONE_RATE if knows_one_rate(input_names) else OWN_TIMES
    return {"frames_as": frames_as, TIMES_SETTING: own if fps is None else f"{fps} a second"}


def sees_videos(identity: ModelIdentity) -> bool:
    """Whether this model is given frames as videos."""
    return TIMES_SETTING in identity.settings


def tells_own_times(identity: ModelIdentity) -> bool:
    """Whether the times of an example's frames are part of what this model is asked."""
    return identity.settings.get(TIMES_SETTING) in (OWN_TIMES, ONE_RATE)


def knows_one_rate(input_names: Sequence[str]) -> bool:
    """Whether a processor with these outputs tells its model one rate for a video, and not the time of each frame."""
    return bool({"second_per_grid_ts", "video_second_per_grid"} & set(input_names))
