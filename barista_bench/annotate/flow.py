"""Where the pixels of a frame come from: dense optical flow, composed from frame to frame back to a keyframe.

Flow is DIS (Kroeger et al., ECCV 2016; arXiv 1603.03590) with OpenCV's medium preset. A map gives for each pixel of a
frame its position in the keyframe, so that nothing blurs on the way, and an object costs one lookup. Positions are
(x, y) in pixels of the working size, x to the right and y down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

Gray: TypeAlias = NDArray[np.uint8]
Plane: TypeAlias = NDArray[np.float32]
"""One number a pixel of the working size, (height, width)."""

# Pixels that forward and backward flow may disagree by, and what beyond that takes confidence down to 1/e.
_FREE_DISAGREEMENT, _DISAGREEMENT = 1.0, 8.0
# Grey levels at which the confidence that a pixel shows what the keyframe shows has fallen to 1/e.
_GREY_ERROR = 12.0
# A correction moves a pixel less than this, and must agree better with the keyframe by this many grey levels.
_MOST_CORRECTION, _LEAST_GAIN = 6.0, 0.5


class MapToKeyframe(NamedTuple):
    """`positions` (height, width, 2): where each pixel of `frame` is in the keyframe; `confidence` 0..1 a pixel."""

    frame: int
    positions: Plane
    confidence: Plane


def maps_to_keyframe(grays: Mapping[int, Gray], order: Sequence[int]) -> Iterator[MapToKeyframe]:
    """The map of each frame of `order` into its first one, the keyframe, which comes first with the identity.

    Args:
        grays: grey pictures by frame index, all of the working size.
        order: neighbouring frames, forward or backward.
    """
    flow = cv2.DISOpticalFlow_create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
    keyframe = grays[order[0]]
    identity = _identity(keyframe)
    positions, agreement = identity, np.ones(keyframe.shape, dtype=np.float32)
    yield MapToKeyframe(order[0], positions, agreement)
    for before, frame in pairwise(order):
        gray = grays[frame]
        back = flow.calc(gray, grays[before], None)
        forth = flow.calc(grays[before], gray, None)
        origin = identity + back
        disagreement = np.linalg.norm(back + sample(forth, origin), axis=2)
        excess = np.maximum(disagreement - _FREE_DISAGREEMENT, 0)
        agreement = sample(agreement, origin) * np.exp(-excess / _DISAGREEMENT)
        positions = _anchored(sample(positions, origin), identity, keyframe, gray, flow)
        error = cv2.boxFilter(_difference(keyframe, positions, gray), -1, (7, 7))
        height, width = keyframe.shape
        x, y = positions[..., 0], positions[..., 1]
        is_inside = (x > -1) & (y > -1) & (x < width) & (y < height)
        yield MapToKeyframe(frame, positions, agreement * np.exp(-error / _GREY_ERROR) * is_inside)


def sample(image: NDArray[np.generic], positions: Plane, *, border: int = cv2.BORDER_REPLICATE) -> Plane:
    """The values of an image (height, width[, channels]) at positions between its pixels, bilinear."""
    return cv2.remap(image, positions[..., 0], positions[..., 1], cv2.INTER_LINEAR, borderMode=border)


def _identity(image: Gray) -> Plane:
    y, x = np.indices(image.shape, dtype=np.float32)
    return np.dstack([x, y])


def _anchored(positions: Plane, identity: Plane, keyframe: Gray, gray: Gray, flow: cv2.DISOpticalFlow) -> Plane:
    """Positions corrected by the flow that is left between the keyframe as mapped and the frame: this stops drift."""
    left_over = flow.calc(gray, sample(keyframe, positions), None)
    corrected = sample(positions, identity + left_over)
    gain = _difference(keyframe, positions, gray) - _difference(keyframe, corrected, gray)
    is_better = (cv2.boxFilter(gain, -1, (9, 9)) > _LEAST_GAIN) & (np.linalg.norm(left_over, axis=2) < _MOST_CORRECTION)
    return np.where(is_better[..., None], corrected, positions)


def _difference(keyframe: Gray, positions: Plane, gray: Gray) -> Plane:
    return np.abs(sample(keyframe, positions).astype(np.float32) - gray)
