"""Compute the IoU of all pairs of predictions and references in the same group (image, or image and label).

Results equal pycocotools in each bit. A box is handled as its corner and its extent, as in COCO files.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .inputs import Examples, ImageInstances
from .values import Bools, Floats, Ints

# Pairs that are handled together. Their temporary memory must fit into the cache of the processor.
CHUNK = 100_000


class Pairs(NamedTuple):
    """Overlapping pairs, sorted by prediction and then reference, with positions (n,) and IoU (n,)."""

    predicted: Ints
    reference: Ints
    iou: Floats

    def keep_pairs(self, is_kept: Bools) -> Pairs:
        """Return the pairs for which `is_kept` (n,) is true."""
        return Pairs(self.predicted[is_kept], self.reference[is_kept], self.iou[is_kept])


class Shapes:
    """The boxes or masks of both sides, and their areas in pixels.

    Raises ValueError if masks of an image differ in size.

    `rounding="float32"` handles boxes as torchmetrics does: corners in single precision, and the extent as their
    difference in single precision.

    >>> from .inputs import read_examples
    >>> shapes = Shapes(read_examples([{"boxes": [[0, 0, 4, 2]]}], [{"boxes": [[0, 0, 2, 2], [9, 9, 9, 9]]}]))
    >>> shapes.predicted_area.tolist(), shapes.reference_area.tolist()
    ([8.0], [4.0, 0.0])
    >>> group, groups = np.zeros(1, int), np.zeros(2, int)
    >>> pairs = shapes.overlaps(np.arange(1), group, np.arange(2), groups, 0.5)
    >>> pairs.reference.tolist(), pairs.iou.tolist()
    ([0], [0.5])
    """

    def __init__(self, examples: Examples, rounding: str = "none") -> None:
        predicted, reference = examples.predicted, examples.reference
        boxes = extents(predicted.boxes, rounding), extents(reference.boxes, rounding)
        self._boxes = _Boxes(boxes[0]), _Boxes(boxes[1])
        self._masks = None if predicted.masks is None or reference.masks is None else (predicted.masks, reference.masks)
        if self._masks is None:
            areas = [side.area for side in self._boxes]
        else:
            from pycocotools import mask  # boxes do not need pycocotools

            _check_sizes(predicted, reference)
            areas = [np.array([mask.area(rle) for rle in masks], dtype=np.float64) for masks in self._masks]
        self.predicted_area, self.reference_area = areas

    def overlaps(
        self, predicted: Ints, predicted_group: Ints, reference: Ints, reference_group: Ints, minimum: float
    ) -> Pairs:
        """Return all pairs within a group with an IoU of at least `minimum` (> 0).

        `predicted` and `reference` are positions in an order that sorts their group ids; the positions in the result
        count along these two arrays.
        """
        lo, hi = (np.searchsorted(reference_group, predicted_group, side) for side in ("left", "right"))
        pairs = [Pairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
        for part in _parts(hi - lo):
            # Pair each prediction of the part with its references, lo to hi - 1.
            counts = hi[part] - lo[part]
            first = np.repeat(np.arange(part.start, part.stop), counts)
            second = lo[first] + np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
            if self._masks is None:
                touching, iou = _touching_pairs(self._boxes, predicted[first], reference[second])
                first, second = first[touching], second[touching]
            else:
                iou = _mask_iou(self._masks, predicted[first], reference[second])
            keep = iou >= minimum
            pairs.append(Pairs(first[keep], second[keep], iou[keep]))
        return Pairs(*(np.concatenate(column) for column in zip(*pairs, strict=True)))


def extents(boxes: Floats, rounding: str = "none") -> Floats:
    """Convert (n, 4) corners x0, y0, x1, y1 to x, y, width, height, in pixels.

    >>> extents(np.array([[1.0, 2.0, 4.0, 8.0]])).tolist()
    [[1.0, 2.0, 3.0, 6.0]]
    """
    corners = boxes.astype(np.float32) if rounding == "float32" else boxes
    return np.asarray(np.hstack([corners[:, :2], corners[:, 2:] - corners[:, :2]]), dtype=np.float64)


class _Boxes:
    """Edges and areas (n,) of boxes (n, 4) in x, y, width, height. Each array is gathered for many pairs."""

    def __init__(self, boxes: Floats) -> None:
        self.left, self.top, width, height = np.ascontiguousarray(boxes.T)
        self.right, self.bottom, self.area = self.left + width, self.top + height, width * height


def _touching_pairs(boxes: tuple[_Boxes, _Boxes], first: Ints, second: Ints) -> tuple[Ints, Floats]:
    """Return the pairs of boxes that have an area in common, and their IoU."""
    a, b = boxes
    width = np.minimum(a.right[first], b.right[second]) - np.maximum(a.left[first], b.left[second])
    touching = np.flatnonzero(width > 0)  # few pairs are left
    width, first, second = width[touching], first[touching], second[touching]
    height = np.minimum(a.bottom[first], b.bottom[second]) - np.maximum(a.top[first], b.top[second])
    common = width * height
    union = a.area[first] + b.area[second] - common
    inside = (height > 0) & (union > 0)
    return touching[inside], common[inside] / union[inside]


def _parts(counts: Ints) -> Iterator[slice]:
    """Cut predictions into runs of about CHUNK pairs. The pairs of a prediction stay together."""
    total = np.cumsum(counts)
    start = done = 0
    while start < len(counts):
        stop = max(int(np.searchsorted(total, done + CHUNK, side="right")), start + 1)
        yield slice(start, stop)
        start, done = stop, total[stop - 1]


def _mask_iou(masks: tuple[list[dict[str, object]], list[dict[str, object]]], first: Ints, second: Ints) -> Floats:
    """Return the IoU of pairs of masks, with one call of pycocotools per prediction."""
    from pycocotools import mask  # boxes do not need pycocotools

    iou = np.zeros(len(first))
    bounds = [*np.flatnonzero(np.diff(first, prepend=-1)).tolist(), len(first)]
    for start, stop in pairwise(bounds):
        others = [masks[1][index] for index in second[start:stop]]
        iou[start:stop] = mask.iou([masks[0][first[start]]], others, [0] * len(others))[0]
    return iou


def _check_sizes(first: ImageInstances, second: ImageInstances) -> None:
    sizes: dict[int, list[int]] = {}
    for side in (second, first):
        for image, rle in zip(side.image.tolist(), side.masks or [], strict=True):
            if sizes.setdefault(image, rle["size"]) != rle["size"]:
                raise ValueError(
                    f"image {image}: its masks have the sizes {sizes[image]} and {rle['size']}; "
                    "give all masks of an image in its own [height, width]"
                )
