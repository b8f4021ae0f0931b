"""Propagates masks by corners that Lucas-Kanade tracks, with one affine motion per object. A baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import cv2
import numpy as np
from numpy.typing import NDArray

from barista_bench.annotate.propagation import (
    FrameMasks,
    Keyframes,
    PropagatedMask,
    check_keyframes,
    decoded_frames,
    drawn_masks,
    given_masks,
    is_empty,
)
from barista_bench.media.video import FrameReader
from barista_bench.models.base import ModelIdentity
from barista_bench.scene_graph.masks import Rle, decode_mask, encode_mask

Gray = NDArray[np.uint8]
_CORNERS = 100
_SPACING = 3  # pixels between corners
_FEWEST = 4  # minimum number of corners to fit an affine motion to
_ERROR = 3.0  # pixels by which a corner may differ from the fitted motion


class LucasKanade:
    """Moves the mask of the nearest keyframe by the affine motion of the corners inside the mask.

    The confidence only ranks frames by their distance to the nearest keyframe.
    """

    identity = ModelIdentity("lucas_kanade", "1", {"opencv": cv2.__version__})

    def reach(self, fps: float) -> int:
        return max(1, round(fps / 2))

    def propagate(self, frames: FrameReader, keyframes: Keyframes, span: range) -> Iterator[FrameMasks]:
        """Return masks as in `Propagator.propagate`. The grey frames between two keyframes are in memory together."""
        check_keyframes(frames, keyframes, span)
        left: dict[str, Rle] = {}
        for before, after in pairwise([None, *sorted(keyframes), None]):
            start, last = span.start if before is None else before, span.stop - 1 if after is None else after
            if before is not None:
                left = drawn_masks({**left, **keyframes[before]})
            right = {} if after is None else drawn_masks(keyframes[after])
            stretch = range(start, last + 1)
            grays = [_gray(picture) for _, picture in decoded_frames(frames, stretch)]
            forward, backward = _carry(grays, left), _carry(grays[::-1], right)[::-1]
            for frame, of_left, of_right in zip(stretch, forward, backward, strict=True):
                is_left_nearer = after is None or (before is not None and frame - before <= after - frame)
                distance = frame - start if is_left_nearer else last - frame
                nearer, farther = (of_left, of_right) if is_left_nearer else (of_right, of_left)
                mentioned = keyframes.get(start if is_left_nearer else last, {})
                masks = {name: rle for name, rle in farther.items() if name not in mentioned} | nearer
                if frame == before:
                    yield FrameMasks(frame, {**_with_confidence(left, 0), **given_masks(keyframes[frame])})
                elif frame != after:
                    yield FrameMasks(frame, _with_confidence(masks, distance))
            left = forward[-1]


def _with_confidence(masks: Mapping[str, Rle], distance: int) -> dict[str, PropagatedMask]:
    return {name: PropagatedMask(rle, 1 / (1 + distance)) for name, rle in sorted(masks.items())}


def _gray(picture: NDArray[np.uint8]) -> Gray:
    return np.asarray(cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY), dtype=np.uint8)


def _carry(grays: Sequence[Gray], masks: Mapping[str, Rle]) -> list[dict[str, Rle]]:
    carried: list[dict[str, Rle]] = [{} for _ in grays]
    for name, rle in masks.items():
        for place, moved in zip(carried, _move(grays, rle), strict=True):
            if not is_empty(moved):
                place[name] = moved
    return carried


def _move(grays: Sequence[Gray], rle: Rle) -> Iterator[Rle]:
    """Yield the mask of the first frame, moved to each frame. It does not move if too few corners are tracked."""
    mask = np.asarray(decode_mask(rle), dtype=np.uint8)
    corners = cv2.goodFeaturesToTrack(grays[0], _CORNERS, 0.01, _SPACING, mask=mask)
    yield rle
    moved, now = rle, corners
    for previous, gray in pairwise(grays):
        if corners is not None and now is not None and len(now) >= _FEWEST:
            now, found, _ = cv2.calcOpticalFlowPyrLK(previous, gray, now, None)
            is_found = found.ravel() == 1
            corners, now = corners[is_found], now[is_found]
            motion = _motion(corners, now)
            if motion is not None:
                size = (mask.shape[1], mask.shape[0])
                moved = encode_mask(cv2.warpAffine(mask, motion, size, flags=cv2.INTER_NEAREST) > 0)
        yield moved


def _motion(corners: NDArray[np.float32], now: NDArray[np.float32]) -> NDArray[np.float64] | None:
    """Return the affine motion, shape (2, 3), of most corners; None if there are too few corners."""
    if len(corners) < _FEWEST:
        return None
    motion, inliers = cv2.estimateAffine2D(corners, now, ransacReprojThreshold=_ERROR)
    return None if motion is None or inliers.sum() < _FEWEST else np.asarray(motion, dtype=np.float64)
