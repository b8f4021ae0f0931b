"""Decide which predictions are right, by COCO's greedy matching or by the best one-to-one assignment.

Both work on all images at once. The greedy rule follows pycocotools step by step, without crowd regions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .inputs import Examples, ImageInstances
from .overlap import Pairs, Shapes
from .values import Bools, Floats, Ints, as_sortable

# COCO's area ranges in square pixels, with both ends included: all, small, medium, large.
AREAS = np.array([[0, 1e10], [0, 32**2], [32**2, 96**2], [96**2, 1e10]])
THRESHOLDS = np.linspace(0.5, 0.95, 10)
MAX_DETECTIONS = 100


@dataclass(frozen=True, slots=True)
class Matches:
    """The matches of all images. Each image is matched once, and any images can be aggregated later in any order.

    Predictions (P columns: the best 100 per image and label) are in COCO's order of evaluation: by label, falling
    score, image, and place within the image. A is 4 (AREAS), T is 10 (IoU thresholds), R is 101 (recalls).

    * `right`: (A, T, P) matched to a reference of the area range.
    * `counted`: (A, T, P) right or wrong; other predictions belong to another area range and are left out.
    * `image`, `label`, `rank`, `block`: (P,). Rank counts from 0 within image and label. A block is a run of equal
      scores of one label, whose order depends on the order of images.
    * `reference_image`, `reference_label`: (G,); `in_range`: (A, G) True where the reference's area is in the range.
    * `recalls`: (R,); `single_precision`: results are rounded to float32.
    """

    right: Bools
    counted: Bools
    image: Ints
    label: Ints
    rank: Ints
    block: Ints
    reference_image: Ints
    reference_label: Ints
    in_range: Bools
    recalls: Floats
    n_images: int
    n_labels: int
    single_precision: bool = False


@dataclass(frozen=True, slots=True)
class Grouped:
    """Both sides, sorted by group (label, then image). Within a group, predictions are sorted by falling score.

    * `predicted` (P), `reference` (G): positions in the examples.
    * `rank` (P,): the rank within the group.
    * `pairs`: the pairs with an IoU of 0.5 or more, by position in these two orders.
    * `falling` (P,): positions in this order by falling score only, equal scores as in the examples.
    """

    predicted: Ints
    reference: Ints
    rank: Ints
    pairs: Pairs
    falling: Ints


def group(examples: Examples, shapes: Shapes) -> Grouped:
    """Sort both sides and find the pairs that overlap enough to match."""
    n_images, n_labels = len(examples.failed), len(examples.labels)

    def by_group(side: ImageInstances, start: Ints) -> tuple[Ints, Ints]:
        image, label = side.image[start], side.label[start]
        order = start[np.lexsort((as_sortable(image, n_images), as_sortable(label, n_labels)))]
        return order, (side.label * n_images + side.image)[order]

    falling = np.argsort(-examples.predicted.scores, kind="stable")
    predicted, predicted_group = by_group(examples.predicted, falling)
    reference, reference_group = by_group(examples.reference, np.arange(len(examples.reference.image)))
    rank = np.arange(len(predicted_group)) - np.searchsorted(predicted_group, predicted_group)
    pairs = shapes.overlaps(predicted, predicted_group, reference, reference_group, THRESHOLDS[0])
    place = np.empty_like(predicted)
    place[predicted] = np.arange(len(predicted))
    return Grouped(predicted, reference, rank, pairs, place[falling])


def match_greedily(examples: Examples, shapes: Shapes, grouped: Grouped, *, single_precision: bool = False) -> Matches:
    """Match like COCO, in all area ranges and at all thresholds. See `Matches`."""
    thresholds, recalls = single_precision_thresholds() if single_precision else (THRESHOLDS, np.linspace(0, 1, 101))
    best = _keep_best(grouped)
    in_range = _in_range(shapes.reference_area[best.reference])
    right, dismissed = _match(best, ~in_range, thresholds)
    outside = ~_in_range(shapes.predicted_area[best.predicted])
    counted = right | ~(dismissed | outside[:, :, None])
    label, score = examples.predicted.label[best.predicted], examples.predicted.scores[best.predicted]
    order = best.falling[np.argsort(as_sortable(label[best.falling], len(examples.labels)), kind="stable")]
    label, score = label[order], score[order]
    new_block = np.diff(label, prepend=-1) != 0
    new_block[1:] |= np.diff(score) != 0
    return Matches(
        right=np.ascontiguousarray(right[order].transpose(1, 2, 0)),
        counted=np.ascontiguousarray(counted[order].transpose(1, 2, 0)),
        image=examples.predicted.image[best.predicted][order],
        label=label,
        rank=best.rank[order],
        block=np.cumsum(new_block) - 1,
        reference_image=examples.reference.image[best.reference],
        reference_label=examples.reference.label[best.reference],
        in_range=np.ascontiguousarray(in_range.T),
        recalls=recalls,
        n_images=len(examples.failed),
        n_labels=len(examples.labels),
        single_precision=single_precision,
    )


def single_precision_thresholds() -> tuple[Floats, Floats]:
    """Return IoU thresholds (10,) and recalls (101,) in single precision, like torch.linspace with AVX2 or AVX-512.

    torch steps up from the start to the middle, then down from the end, and rounds once (fused multiply-add). Some
    values are a little high: a recall of 7 / 100 falls short of the eighth value.

    >>> iou, recall = single_precision_thresholds()
    >>> float(iou[1]), float(recall[7]), float(recall[10])
    (0.550000011920929, 0.07000000029802322, 0.09999999403953552)
    """
    return _single_linspace(0.5, 0.95, 10), _single_linspace(0.0, 1.0, 101)


def _single_linspace(start: float, end: float, count: int) -> Floats:
    low, high = float(np.float32(start)), float(np.float32(end))
    step = float((np.float32(end) - np.float32(start)) / np.float32(count - 1))
    rank = np.arange(count)
    values = np.where(rank < count // 2, low + step * rank, high - step * (count - 1 - rank))
    return values.astype(np.float32).astype(np.float64)


def _in_range(area: Floats) -> Bools:
    """Return whether each area lies in each of AREAS (n, 4).

    A box with one swapped pair of corners lies in no range.
    """
    size = area[:, None]
    inside: Bools = (size >= AREAS[:, 0]) & (size <= AREAS[:, 1])
    return inside


def _keep_best(grouped: Grouped) -> Grouped:
    """Keep only the best 100 predictions of each group."""
    is_best = grouped.rank < MAX_DETECTIONS
    if is_best.all():
        return grouped
    renumbered = np.cumsum(is_best) - 1
    pairs = grouped.pairs.keep_pairs(is_best[grouped.pairs.predicted])
    pairs = pairs._replace(predicted=renumbered[pairs.predicted])
    falling = renumbered[grouped.falling[is_best[grouped.falling]]]
    return Grouped(grouped.predicted[is_best], grouped.reference, grouped.rank[is_best], pairs, falling)


def _match(grouped: Grouped, ignored: Bools, thresholds: Floats) -> tuple[Bools, Bools]:
    """Return the matches (P, A, T) to references in the area range, and to ignored references outside this range."""
    pairs = grouped.pairs
    shape = (len(grouped.predicted), len(AREAS), len(thresholds))
    right, dismissed = np.zeros(shape, bool), np.zeros(shape, bool)
    enough = pairs.iou[:, None] >= thresholds
    alone = is_alone(pairs, len(grouped.predicted), len(grouped.reference))
    # A pair needs no contest if its two sides have no other overlaps.
    matched, beside = enough[alone][:, None, :], ignored[pairs.reference[alone]][:, :, None]
    right[pairs.predicted[alone]] = matched & ~beside
    dismissed[pairs.predicted[alone]] = matched & beside
    _contest(grouped, ~alone, enough, ignored, (right, dismissed))
    return right, dismissed


def is_alone(pairs: Pairs, n_predicted: int, n_reference: int) -> Bools:
    """Return whether both sides of each pair are in no other pair (n_pairs,)."""
    of_predicted = np.bincount(pairs.predicted, minlength=n_predicted)
    of_reference = np.bincount(pairs.reference, minlength=n_reference)
    alone: Bools = (of_predicted[pairs.predicted] == 1) & (of_reference[pairs.reference] == 1)
    return alone


def _contest(grouped: Grouped, contested: Bools, enough: Bools, ignored: Bools, out: tuple[Bools, Bools]) -> None:
    """Let the predictions of a group choose in turn, best score first.

    Round r is the r-th choice of all groups at once.

    A prediction takes the remaining reference with the highest sufficient IoU. Among equal references it takes the
    last. It takes an ignored reference only if no other reference remains.
    """
    rows = np.flatnonzero(contested)
    # Sort each prediction's pairs by rising IoU, so that the last available pair is the best.
    rows = rows[np.lexsort((grouped.pairs.iou[rows], grouped.pairs.predicted[rows]))]
    predicted, enough = grouped.pairs.predicted[rows], enough[rows]
    references, reference = np.unique(grouped.pairs.reference[rows], return_inverse=True)
    ignored = ignored[references]
    free = np.ones((len(references), len(AREAS), enough.shape[1]), bool)
    starts = np.flatnonzero(np.diff(predicted, prepend=-1))
    iou_rank = (np.arange(len(rows)) - np.repeat(starts, np.diff(starts, append=len(rows)))).astype(np.int32)
    # Ignored references rank below all others. So the ranks of all other references are raised by this much.
    lift = iou_rank.max(initial=0) + np.int32(1)
    for members in _rounds(predicted[starts], grouped.rank):
        pairs, first = _spans(starts, members, len(rows))
        who = reference[pairs]
        key = iou_rank[pairs][:, None] + lift * ~ignored[who]
        key = np.where(free[who] & enough[pairs][:, None, :], key[:, :, None], np.int32(-1))
        key = np.maximum.reduceat(key, first, axis=0)
        winner, area, threshold = np.nonzero(key >= 0)
        value = key[winner, area, threshold]
        free[reference[starts[members[winner]] + value % lift], area, threshold] = False
        for side, is_side in zip(out, (value >= lift, value < lift), strict=True):
            side[predicted[starts[members[winner[is_side]]]], area[is_side], threshold[is_side]] = True


def _rounds(predicted: Ints, rank: Ints) -> list[Ints]:
    """Return positions in `predicted` (sorted) by turn: first the first contestants of all groups, then the second.

    The third and later contestants follow in the same way.
    """
    if not len(predicted):
        return []
    head = predicted - rank[predicted]  # the group's first prediction
    turn = np.arange(len(predicted)) - np.searchsorted(head, head)
    order = np.argsort(turn, kind="stable")
    return np.split(order, np.cumsum(np.bincount(turn))[:-1])


def _spans(starts: Ints, members: Ints, end: int) -> tuple[Ints, Ints]:
    """Return the positions of all pairs of these members, and the start of each member's pairs in the result."""
    sizes = np.diff(starts, append=end)[members]
    first = np.cumsum(sizes) - sizes
    return np.arange(sizes.sum()) + np.repeat(starts[members] - first, sizes), first


def best_assignment(pairs: Pairs, threshold: float, n_predicted: int, n_reference: int) -> Ints:
    """Match as many pairs with this IoU as possible, each box once. Return the positions of the matched predictions.

    The number of matches in an image and label does not depend on an order, but the choice of predictions may.

    >>> pairs = Pairs(np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([0.9, 0.6, 0.7]))
    >>> best_assignment(pairs, 0.6, 2, 2).tolist(), best_assignment(pairs, 0.65, 2, 2).tolist()
    ([0, 1], [0])
    """
    pairs = pairs.keep_pairs(pairs.iou >= threshold)
    alone = is_alone(pairs, n_predicted, n_reference)
    options: dict[int, list[int]] = {}
    for predicted, reference in zip(pairs.predicted[~alone].tolist(), pairs.reference[~alone].tolist(), strict=True):
        options.setdefault(predicted, []).append(reference)
    matched: dict[int, int] = {}  # prediction -> reference
    matched_by: dict[int, int] = {}  # reference -> prediction
    for predicted in options:
        _augment(predicted, options, matched, matched_by)
    return np.sort(np.concatenate([pairs.predicted[alone], np.array(list(matched), np.int64)]))


def _augment(newcomer: int, options: dict[int, list[int]], matched: dict[int, int], matched_by: dict[int, int]) -> None:
    """Find a reference for the newcomer by breadth-first search. Other predictions may move to alternatives."""
    asked_by: dict[int, int] = {}  # reference -> the prediction that asked for it
    queue = [newcomer]
    for predicted in queue:
        for reference in options[predicted]:
            if reference in asked_by:
                continue
            asked_by[reference] = predicted
            if reference in matched_by:
                queue.append(matched_by[reference])
                continue
            while True:
                mover = asked_by[reference]
                given_up = matched.get(mover)
                matched[mover], matched_by[reference] = reference, mover
                if given_up is None:  # the newcomer held no reference
                    return
                reference = given_up
