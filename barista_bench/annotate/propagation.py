"""Defines the interface of propagators, which make the masks between keyframes, and baselines that use no picture.

A keyframe gives masks by object. An empty mask means that the object is absent. If a keyframe does not mention an
object, the object is unknown there, and its mask comes from the nearest keyframes that mention it. Objects may overlap,
as a handle and its pitcher do, so each object is propagated separately. Masks stay run lengths and frames are streamed,
so memory does not grow with the length of the video.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco_mask

from barista_bench.errors import DataError
from barista_bench.media.video import FrameReader
from barista_bench.models.base import ModelIdentity
from barista_bench.scene_graph.masks import Rle

_DECODED_AT_ONCE = 8


class PropagatedMask(NamedTuple):
    """A mask of the frame's size, never empty. `confidence` is 0..1, and 1 for a keyframe's mask."""

    rle: Rle
    confidence: float


class FrameMasks(NamedTuple):
    """The objects seen on one frame, sorted by id. Objects that the propagator judges absent are left out."""

    frame: int
    masks: dict[str, PropagatedMask]


Keyframes: TypeAlias = Mapping[int, Mapping[str, Rle]]
"""Frame index to object id to mask; `parse_segmentations` has checked the masks, or `encode_mask` has made them."""


class Propagator(Protocol):
    """Propagates masks from the keyframes of a segment to all of its frames.

    `identity` is recorded in the provenance. It has the name, the revision of the weights, and the settings that change
    masks.
    """

    identity: ModelIdentity

    def reach(self, fps: float) -> int:
        """Return the largest distance between keyframes, in frames, that can be bridged at `fps` frames per second."""
        ...

    def propagate(self, frames: FrameReader, keyframes: Keyframes, span: range) -> Iterator[FrameMasks]:
        """Yield the masks on every frame of the span, in order, computed from the keyframes in both directions.

        Args:
            frames: the open video.
            keyframes: at least one keyframe; all keyframes are within the span.
            span: frame indices, step 1.

        Raises:
            DataError: there is no keyframe, one is outside the span, the span is outside the video, or a mask is not of
                the frames' size.
            VideoError: a frame cannot be decoded.
        """
        ...


def check_keyframes(frames: FrameReader, keyframes: Keyframes, span: range) -> None:
    """Raise DataError, with the video and the keyframe, for input that `Propagator.propagate` does not accept."""
    if span.step != 1 or not 0 <= span.start < span.stop <= len(frames):
        remedy = f"give consecutive frames of 0 to {len(frames) - 1}"
        raise DataError(f"{frames.path}: cannot propagate over {span}. Fix: {remedy}")
    outside = sorted(set(keyframes).difference(span))
    if outside or not keyframes:
        what = f"keyframe {outside[0]} is outside" if outside else "there is no keyframe on"
        remedy = "give masks on at least one frame of the span, and on no other"
        raise DataError(f"{frames.path}: {what} frames {span.start} to {span.stop - 1}. Fix: {remedy}")
    width, height = frames.size
    for frame, masks in sorted(keyframes.items()):
        for name, rle in masks.items():
            if rle.size != (height, width):
                sizes = f"{rle.size[1]}x{rle.size[0]} px, the video {width}x{height}"
                remedy = "give masks of the video's displayed size"
                raise DataError(f"{frames.path}: keyframe {frame}: the mask of {name!r} is {sizes}. Fix: {remedy}")


def decoded_frames(frames: FrameReader, order: Sequence[int]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Yield frames in the given order as RGB (height, width, 3); only a few are in memory at a time."""
    for start in range(0, len(order), _DECODED_AT_ONCE):
        block = order[start : start + _DECODED_AT_ONCE]
        yield from zip(block, frames.read(block), strict=True)


def is_empty(rle: Rle) -> bool:
    return not coco_mask.area({"size": list(rle.size), "counts": rle.counts.encode("ascii")})


def drawn_masks(masks: Mapping[str, Rle]) -> dict[str, Rle]:
    """Return the masks that are not empty, sorted by name."""
    return {name: rle for name, rle in sorted(masks.items()) if not is_empty(rle)}


def given_masks(masks: Mapping[str, Rle]) -> dict[str, PropagatedMask]:
    """Return the objects seen on a keyframe, with the keyframe's masks."""
    return {name: PropagatedMask(rle, 1.0) for name, rle in drawn_masks(masks).items()}


class _Mention(NamedTuple):
    """The state of an object on a keyframe: its mask, or None if the object is absent."""

    frame: int
    rle: Rle | None


class CopyNearest:
    """Copies the mask of the nearest keyframe, or of the earlier keyframe if two are equally near. A baseline.

    It uses no picture. The confidence only ranks frames by their distance to the nearest keyframe that mentions the
    object.
    """

    identity = ModelIdentity("copy_nearest")

    def reach(self, fps: float) -> int:
        return max(1, round(fps / 2))  # masks of moving objects agree by about two thirds over 25 frames at 30 fps

    def propagate(self, frames: FrameReader, keyframes: Keyframes, span: range) -> Iterator[FrameMasks]:
        check_keyframes(frames, keyframes, span)
        mentions: dict[str, list[_Mention]] = {}
        for frame, masks in sorted(keyframes.items()):
            for name, rle in masks.items():
                mentions.setdefault(name, []).append(_Mention(frame, None if is_empty(rle) else rle))
        names = sorted(mentions)
        for frame in span:
            propagated = {name: self._mask_at(mentions[name], frame) for name in names}
            yield FrameMasks(frame, {name: mask for name, mask in propagated.items() if mask is not None})

    def _mask_at(self, mentions: Sequence[_Mention], frame: int) -> PropagatedMask | None:
        later = bisect_left(mentions, frame, key=lambda mention: mention.frame)
        before, after = mentions[max(later - 1, 0)], mentions[min(later, len(mentions) - 1)]
        nearest = min(before, after, key=lambda mention: abs(mention.frame - frame))
        return None if nearest.rle is None else PropagatedMask(nearest.rle, 1 / (1 + abs(nearest.frame - frame)))
