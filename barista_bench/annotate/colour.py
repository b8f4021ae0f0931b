"""Outlines decided by colour within a narrow rim: it helps objects of one colour and hurts others.

Pictures are RGB of the working size, (height, width, 3) bytes; masks are coverages 0..1 of the same size.
"""

from __future__ import annotations

from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from barista_bench.annotate.flow import Plane

Picture: TypeAlias = NDArray[np.uint8]
ColourTable: TypeAlias = NDArray[np.float32]
"""For each of 16 x 16 x 16 colours log P(colour | object) - log P(colour | what is around it)."""

_BINS = 16
_LEVELS = 256 // _BINS
_SURROUNDINGS = 12  # pixels around an object that it is to be told apart from
_RIM = 3  # pixels to either side of the outline that colour decides
_FEWEST_PIXELS = 60  # of object and surroundings: of fewer no histogram says anything
_FLOOR = 1e-4  # of a probability: a colour never seen proves nothing


def colour_table(picture: Picture, mask: Plane) -> ColourTable | None:
    """A table that separates an object's colours from those around it; None where either is too small."""
    inside = mask > 0.5
    outside = (_grown(inside, _SURROUNDINGS) > 0) & ~inside
    if min(inside.sum(), outside.sum()) < _FEWEST_PIXELS:
        return None
    codes = _codes(picture)
    inner, outer = (_histogram(codes[region]) for region in (inside, outside))
    return np.log((inner + _FLOOR) / (outer + _FLOOR))


def refine(mask: Plane, picture: Picture, table: ColourTable) -> Plane:
    """The mask with its rim decided by colour and by how far inside of the old outline a pixel lies."""
    inside = mask > 0.5
    rim = (_grown(inside, _RIM) > 0) & (_grown(~inside, _RIM) > 0)
    soft = np.clip(cv2.GaussianBlur(mask, (0, 0), _RIM / 2), 0.02, 0.98)
    log_odds = np.log(soft / (1 - soft)) + cv2.boxFilter(table[_codes(picture)], -1, (5, 5))
    return np.where(rim, 1 / (1 + np.exp(-log_odds)), mask).astype(np.float32)


def _grown(region: NDArray[np.bool_], radius: int) -> NDArray[np.uint8]:
    return cv2.dilate(region.astype(np.uint8), np.ones((2 * radius + 1, 2 * radius + 1), dtype=np.uint8))


def _codes(picture: Picture) -> NDArray[np.int64]:
    return (picture // _LEVELS).astype(np.int64) @ np.array([_BINS * _BINS, _BINS, 1])


def _histogram(codes: NDArray[np.int64]) -> NDArray[np.float32]:
    """Fractions of the colours, (16 * 16 * 16,), blurred between neighbours."""
    counts = np.bincount(codes, minlength=_BINS**3).reshape(_BINS, _BINS, _BINS)
    return (ndimage.gaussian_filter(counts.astype(np.float32), 0.8) / codes.size).ravel()
