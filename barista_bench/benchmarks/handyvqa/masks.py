"""Masks of questions and answers: COCO run lengths, checked before pycocotools reads them, united, resized, scored."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from PIL import Image
from pycocotools import mask as coco_mask

from barista_bench.metrics.region_boundary.scoring import boundary_f, region_j
from barista_bench.scene_graph import Rle, decode_mask, encode_mask
from barista_bench.scene_graph.masks import mask_boxes, run_problems

Size = tuple[int, int]
"""(height, width) in pixels, as in COCO's run lengths."""

MAX_COUNTS = 2**20
"""Characters of one mask in an answer: outlines of 1080p take some thousands."""


class MaskScore(NamedTuple):
    """Region similarity and contour accuracy of one frame, 0 to 1."""

    j: float
    f: float


def damage(counts: Sequence[str], size: Size) -> str | None:
    """What is wrong with the first compressed run lengths that do not fill `size`; None where all are sound."""
    return next((problem for problem in run_problems(counts, size[0] * size[1]) if problem), None)


def union(counts: Sequence[str], size: Size) -> Rle:
    """One mask of several sound ones; without any, the empty one."""
    if not counts:
        return empty_mask(size)
    if len(counts) == 1:
        return Rle(counts=counts[0], size=size)
    merged = coco_mask.merge([{"size": list(size), "counts": text.encode("ascii")} for text in counts])
    return Rle(counts=merged["counts"].decode("ascii"), size=size)


def empty_mask(size: Size) -> Rle:
    """The mask without foreground: one run of background."""
    made = coco_mask.frPyObjects({"size": list(size), "counts": [size[0] * size[1]]}, *size)
    return Rle(counts=made["counts"].decode("ascii"), size=size)


def box_mask(box: Sequence[float], size: Size) -> Rle:
    """The mask of the pixels whose corner lies in [x0, y0, x1, y1], far edges exclusive."""
    mask = np.zeros(size, dtype=bool)
    x0, y0, x1, y1 = (max(0, round(number)) for number in box)
    mask[y0:y1, x0:x1] = True
    return encode_mask(mask)


def bounds(rle: Rle) -> tuple[float, float, float, float] | None:
    """The tight box [x0, y0, x1, y1] of a sound mask, far edges exclusive; None where it is empty."""
    x, y, width, height = mask_boxes([rle.counts], *rle.size)[0].tolist()
    return (x, y, x + width, y + height) if width and height else None


def resized(rle: Rle, size: Size) -> Rle:
    """A sound mask at another size, by the nearest pixel."""
    if rle.size == size:
        return rle
    image = Image.fromarray(decode_mask(rle)).resize((size[1], size[0]), Image.Resampling.NEAREST)
    return encode_mask(np.asarray(image, dtype=bool))


def thinned_size(width: int, height: int, max_side: int | None) -> tuple[int, int]:
    """(width, height) scaled down until the longer side is `max_side` pixels; never up.

    >>> thinned_size(1920, 1080, 480), thinned_size(320, 240, 480)
    ((480, 270), (320, 240))
    """
    longer = max(width, height)
    if max_side is None or longer <= max_side:
        return width, height
    return max(1, round(width * max_side / longer)), max(1, round(height * max_side / longer))


@lru_cache(maxsize=2**14)
def score_frame(predicted: str, true: str, size: Size) -> MaskScore:
    """J and F (DAVIS) of two sound masks of one size; kept, since tables score the same masks many times over."""
    pair = tuple({"size": list(size), "counts": counts} for counts in (predicted, true))
    return MaskScore(region_j(*pair), boundary_f(*pair))
