"""Identities over segments: which objects of two segments are one, by the masks on the frames that both hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from barista_bench.annotate.propagation import FrameMasks
from barista_bench.errors import ConfigError, DataError
from barista_bench.scene_graph.masks import mask_ious


def link_identities(
    before: Sequence[FrameMasks], after: Sequence[FrameMasks], *, threshold: float = 0.5
) -> dict[str, str]:
    """The objects of the later segment that are objects of the earlier one: id in the later to id in the earlier.

    Two objects agree by the sum of their masks' intersections over union, divided by the number of frames on which
    either is seen. Each object is linked once at the most; the links are those of the highest agreement in sum.

    Args:
        before: masks of the earlier segment on the frames of the overlap, in order.
        after: masks of the later segment on the same frames.
        threshold: objects that agree less than this (0..1) are not linked.

    Raises:
        ConfigError: the threshold is not above 0 and at most 1.
        DataError: the frames are not the same.
    """
    if not 0 < threshold <= 1:
        raise ConfigError(f"threshold is {threshold}. Remedy: give a number above 0 and at most 1")
    if [frame.frame for frame in before] != [frame.frame for frame in after]:
        raise DataError("the overlap of two segments has other frames in each. Remedy: give those that both hold")
    names, others = (sorted({name for _, masks in frames for name in masks}) for frames in (before, after))
    shared, seen = np.zeros((2, len(names), len(others)))
    for (_, masks), (_, other_masks) in zip(before, after, strict=True):
        rows, columns = [name in masks for name in names], [name in other_masks for name in others]
        rles, other_rles = ([part[name].rle for name in sorted(part)] for part in (masks, other_masks))
        shared[np.ix_(rows, columns)] += mask_ious(rles, other_rles)
        seen += np.logical_or.outer(rows, columns)
    agreement = shared / np.maximum(seen, 1)
    # Below the threshold a pair must not take an object away from one above it.
    agreement[agreement < threshold] = 0
    pairs = zip(*linear_sum_assignment(agreement, maximize=True), strict=True)
    return {others[column]: names[row] for row, column in pairs if agreement[row, column]}
