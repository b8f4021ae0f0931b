"""Outlines that follow what is seen: intelligent scissors between two corners of a polygon.

The way between them is the one along the strongest edges (Mortensen, Barrett: Intelligent scissors, SIGGRAPH 1995).
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

_LEAST_MARGIN = 24  # pixels around the two corners within which the way may lie
_LONGEST = 512  # pixels between corners from which on the way is straight: it would take seconds

Corner = tuple[float, float]


def edge_between(picture: NDArray[np.uint8], start: Corner, end: Corner) -> list[tuple[int, int]]:
    """Pixels (x, y) from one corner to the other, both among them; `picture` is RGB, (height, width, 3)."""
    height, width = picture.shape[:2]
    (x0, y0), (x1, y1) = ((min(max(int(x), 0), width - 1), min(max(int(y), 0), height - 1)) for x, y in (start, end))
    if max(abs(x0 - x1), abs(y0 - y1)) > _LONGEST or (x0, y0) == (x1, y1):
        return [(x0, y0), (x1, y1)]
    left, top = max(min(x0, x1) - _LEAST_MARGIN, 0), max(min(y0, y1) - _LEAST_MARGIN, 0)
    crop = picture[top : max(y0, y1) + _LEAST_MARGIN, left : max(x0, x1) + _LEAST_MARGIN]
    scissors = cv2.segmentation.IntelligentScissorsMB()
    scissors.setEdgeFeatureCannyParameters(32, 100)
    scissors.setGradientMagnitudeMaxLimit(200)
    scissors.applyImage(np.ascontiguousarray(crop))
    scissors.buildMap((x0 - left, y0 - top))
    way = scissors.getContour((x1 - left, y1 - top)).reshape(-1, 2)
    return [(int(x) + left, int(y) + top) for x, y in way]
