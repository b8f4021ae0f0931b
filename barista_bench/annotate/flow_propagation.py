"""Propagates masks from keyframes by dense optical flow, without weights and on any machine; the offline default.

The masks of a frame come from the keyframes before and after it. They are weighted by nearness in time, and by how well
each keyframe explains the frame.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import cv2

from barista_bench.annotate.blending import (
    WORKING_SIDE,
    KnownMask,
    WarpedFrame,
    WorkingFrames,
    blend_frames,
    warp_from_keyframe,
)
from barista_bench.annotate.propagation import (
    FrameMasks,
    Keyframes,
    PropagatedMask,
    check_keyframes,
    given_masks,
    is_empty,
)
from barista_bench.errors import DataError
from barista_bench.media.video import FrameReader
from barista_bench.models.base import ModelIdentity

_REACH_S = 2.0
_LONGEST = 600  # frames between keyframes: a stretch is in memory as a whole, at 0.5 to 1.5 MB per frame

_RULES = "2"
"""Version of the rules. If masks were propagated with an earlier version, they are propagated again."""
KnownObjects: TypeAlias = dict[str, KnownMask]


class FlowPropagator:
    """Propagates masks by dense optical flow from the keyframes on both sides of a frame.

    The confidence of a mask is a product: how well the surer keyframe explains the object's pixels, times the agreement
    of both sides on these pixels.
    """

    def __init__(self) -> None:
        settings = {"method": "DIS medium", "opencv": cv2.__version__, "working_side": WORKING_SIDE}
        self.identity = ModelIdentity("flow", _RULES, settings)

    def reach(self, fps: float) -> int:
        return max(1, round(_REACH_S * fps))

    def propagate(self, frames: FrameReader, keyframes: Keyframes, span: range) -> Iterator[FrameMasks]:
        """Return masks as in `Propagator.propagate`.

        Also raises DataError if more than 600 frames in a row have no keyframe.
        """
        check_keyframes(frames, keyframes, span)
        indices = sorted(keyframes)
        for start, end in pairwise([span.start, *indices, span.stop - 1]):
            if end - start > _LONGEST:
                what = f"no keyframe between frames {start} and {end}, and flow bridges {_LONGEST} at most"
                raise DataError(f"{frames.path}: {what}. Fix: give a keyframe every second or two")
        from_left = _known_at_keyframes(frames, keyframes, indices)
        from_right = _known_at_keyframes(frames, keyframes, indices[::-1])
        _weaken_absences(frames, indices, from_left, from_right)
        _weaken_absences(frames, indices[::-1], from_right, from_left)
        for before, after in pairwise([None, *indices, None]):
            stretch = range(span.start if before is None else before, span.stop if after is None else after + 1)
            left = {} if before is None else from_left[before]
            right = {} if after is None else from_right[after]
            for frame_masks in _stretch_masks(frames, stretch, left, right):
                if frame_masks.frame == after:
                    bridged = {n: mask for n, mask in frame_masks.masks.items() if n not in keyframes[after]}
                    yield FrameMasks(after, dict(sorted((bridged | given_masks(keyframes[after])).items())))
                elif frame_masks.frame != before:  # this frame is also the end of the previous stretch
                    yield frame_masks


def _stretch_masks(frames: FrameReader, span: range, left: KnownObjects, right: KnownObjects) -> Iterator[FrameMasks]:
    working = WorkingFrames(frames, span)
    for frame, blends in blend_frames(working, span, left, right):
        masks = {}
        for name, (coverage, confidence) in blends.items():
            rle = working.enlarge(coverage)
            if not is_empty(rle):
                masks[name] = PropagatedMask(rle, confidence)
        yield FrameMasks(frame, masks)


def _given_objects(keyframes: Keyframes, frame: int) -> KnownObjects:
    return {name: KnownMask(rle, frame, 1.0) for name, rle in keyframes[frame].items()}


def _known_at_keyframes(frames: FrameReader, keyframes: Keyframes, order: Sequence[int]) -> dict[int, KnownObjects]:
    """Return the objects known at each keyframe.

    If a keyframe does not mention an object, the object's mask is propagated from the keyframe before it in `order`.

    Args:
        order: all keyframes, forward or backward.
    """
    known_at = {order[0]: _given_objects(keyframes, order[0])}
    for before, after in pairwise(order):
        unmentioned = {name: mask for name, mask in known_at[before].items() if name not in keyframes[after]}
        known_at[after] = _carry_masks(frames, before, after, unmentioned) | _given_objects(keyframes, after)
    return known_at


def _carry_masks(frames: FrameReader, start: int, end: int, known_objects: KnownObjects) -> KnownObjects:
    """Propagate objects that are known at one keyframe to the next.

    An object that gets lost on the way becomes unknown.
    """
    carried = {name: mask for name, mask in known_objects.items() if is_empty(mask.rle)}
    if len(carried) == len(known_objects):
        return carried
    working, warped = _warp(frames, start, end, known_objects)
    for name in known_objects.keys() - carried.keys():
        coverage = warped.objects[name].plane(warped.confidence.shape)
        region = coverage > 0.5
        if region.any():
            confidence = known_objects[name].confidence * warped.confidence_within(region)
            carried[name] = KnownMask(working.enlarge(coverage), known_objects[name].source, confidence)
    return carried


def _weaken_absences(
    frames: FrameReader, order: Sequence[int], known_at: dict[int, KnownObjects], opposite: Mapping[int, KnownObjects]
) -> None:
    """Reduce the confidence that an object is absent, if this was propagated past a keyframe that does not mention it.

    The confidence is multiplied by the confidence of the flow at the place where the other side sees the object. A
    propagated mask loses confidence in the same way.
    """
    for before, after in pairwise(order):
        doubted = {
            name: opposite[after][name].rle
            for name, mask in known_at[after].items()
            if mask.source != after and is_empty(mask.rle)
            if name in opposite[after] and not is_empty(opposite[after][name].rle)
        }
        if not doubted:
            continue
        working, warped = _warp(frames, before, after, {})
        for name, rle in doubted.items():
            region = working.shrink(rle) > 0.5
            if region.any():
                confidence = known_at[before][name].confidence * warped.confidence_within(region)
                known_at[after][name] = known_at[after][name]._replace(confidence=confidence)


def _warp(frames: FrameReader, start: int, end: int, objects: KnownObjects) -> tuple[WorkingFrames, WarpedFrame]:
    span = range(min(start, end), max(start, end) + 1)
    working = WorkingFrames(frames, span)
    (warped,) = deque(warp_from_keyframe(working, span if start < end else span[::-1], objects), maxlen=1)
    return working, warped
