"""Compute COCO's twelve statistics of average precision and recall from matches.

A label's score is NaN if the label has no reference in the area range. If no label has a reference there, a statistic
is -1, as in pycocotools.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .matching import AREAS, Matches
from .values import Bools, Floats, Ints, as_sortable

STATISTICS = (
    "map", "map_50", "map_75", "map_small", "map_medium", "map_large",
    "mar_1", "mar_10", "mar_100", "mar_small", "mar_medium", "mar_large",
)  # fmt: skip
AT_50, AT_75 = 0, 5
"""Indices of the IoU thresholds 0.5 and 0.75."""


@dataclass(frozen=True, slots=True)
class Accumulated:
    """Per label (K): `precision` and `recall` (4 areas, T, K); `recall_1`, `recall_10` (T, K) of the best 1 and 10
    predictions per image and label, all areas; `support` (4, K) references.

    NaN without support.
    """

    precision: Floats
    recall: Floats
    recall_1: Floats
    recall_10: Floats
    support: Ints


@dataclass(frozen=True, slots=True)
class Selection:
    """The predictions to accumulate, in order. `columns` are columns of Matches, sorted by label and falling score.

    `multiplicity` (n_images,) is the number of times that each image is taken. References need this number.
    """

    columns: Ints | slice
    label: Ints
    rank: Ints
    multiplicity: Ints


def select(matches: Matches, images: ArrayLike | None = None) -> Selection:
    """Select the predictions of these images. `images` holds numbers from 0, in any order and with any repetitions.

    None takes all images as given. COCO ranks equal scores in the order of the images, so the order of `images`
    matters.
    """
    if images is None:
        return Selection(slice(None), matches.label, matches.rank, np.ones(matches.n_images, np.int64))
    image_numbers = np.asarray(images, dtype=np.int64)
    of_image = np.bincount(matches.image, minlength=matches.n_images)
    by_image = np.argsort(matches.image, kind="stable")
    sizes = of_image[image_numbers]
    start = (np.cumsum(of_image) - of_image)[image_numbers]
    columns = by_image[np.arange(sizes.sum()) + np.repeat(start - (np.cumsum(sizes) - sizes), sizes)]
    block = matches.block[columns]
    # without confidences there are as many blocks as labels
    n_blocks = int(matches.block[-1]) + 1 if len(block) else 0
    columns = columns[np.argsort(as_sortable(block, n_blocks), kind="stable")]
    multiplicity = np.bincount(image_numbers, minlength=matches.n_images)
    return Selection(columns, matches.label[columns], matches.rank[columns], multiplicity)


def accumulate(matches: Matches, selection: Selection | None = None, *, optimism: int = 0) -> Accumulated:
    """Return precision and recall per label, area range and threshold.

    With `optimism` 1, right predictions come before wrong predictions of the same score, with -1 after them. This is
    done separately at each threshold. So 1 gives an upper bound and -1 a lower bound over all orders of images.
    """
    selected = select(matches) if selection is None else selection
    shape = (len(AREAS), matches.right.shape[1], matches.n_labels)
    precision, recall = np.zeros(shape), np.zeros(shape)
    few = np.zeros((2, *shape[1:]))
    weights = selected.multiplicity[matches.reference_image]  # references count as often as their images are taken
    support = np.array(
        [np.bincount(matches.reference_label, weights * inside, minlength=shape[2]) for inside in matches.in_range]
    ).astype(np.int64)
    for area, references in enumerate(support):
        right, counted = _rows(matches.right[area], selected), _rows(matches.counted[area], selected)
        if optimism:
            order = np.argsort(2 * matches.block[selected.columns] - optimism * right, axis=1, kind="stable")
            right, counted = (np.take_along_axis(rows, order, axis=1) for rows in (right, counted))
        flat = np.flatnonzero(right)
        row, column = np.divmod(flat, max(right.shape[1], 1))
        segment = row * matches.n_labels + selected.label[column]
        hits = np.bincount(segment, minlength=shape[1] * shape[2]).reshape(shape[1:])
        recall[area] = hits
        needed = _count_needed(references, matches.recalls)
        precision[area] = _interpolate(_precisions(counted, selected.label, flat, segment, hits), hits, needed)
        if area == 0 and not optimism:
            for metrics, best in zip(few, (1, 10), strict=True):
                metrics[:] = np.bincount(segment[selected.rank[column] < best], minlength=hits.size).reshape(hits.shape)
    # a label without references has no recall and no precision
    total = np.where(support > 0, support, np.nan)
    precision = np.where(support[:, None] > 0, precision, np.nan)
    recall, few = recall / total[:, None], few / total[0]
    return Accumulated(precision, recall, few[0], few[1], support)


def _rows(values: Bools, selection: Selection) -> Bools:
    return values if isinstance(selection.columns, slice) else np.take(values, selection.columns, axis=1)


def _precisions(counted: Bools, labels: Ints, flat: Ints, segment: Ints, hits: Ints) -> Floats:
    """Return the precision at each right prediction: right / counted predictions up to this prediction.

    Predictions are counted per threshold and label. `flat` holds the positions of right predictions in `counted` (T,
    P). `segment` encodes their threshold and label in one number.
    """
    if not len(flat):
        return np.zeros(0)
    n_counted = np.cumsum(counted, axis=1, dtype=np.int32)
    start = np.searchsorted(labels, np.arange(hits.shape[1]))
    before = np.where(start > 0, n_counted[:, start - 1], 0)
    first = np.cumsum(hits) - hits.ravel()
    nth = np.arange(1, len(flat) + 1) - first[segment]
    precision: Floats = nth / (n_counted.ravel()[flat] - before.ravel()[segment] + np.spacing(1))
    return precision


def _count_needed(references: Ints, recalls: Floats) -> Ints:
    """Return the number of right predictions that each recall needs (K, R): the smallest j with j / references >=
    recall.
    """
    total = np.maximum(references, 1)[:, None]
    count = np.maximum(np.floor(recalls * total) - 1, 0)
    for _ in range(3):  # the product is rounded, so check the quotient
        count += count / total < recalls
    return np.asarray(count, dtype=np.int64)


def _interpolate(precisions: Floats, hits: Ints, needed: Ints) -> Floats:
    """Return the mean over all recalls of the best precision at this recall or higher (T, K).

    A recall that is not reached counts 0. Precision peaks at right predictions, so only right predictions are examined.
    """
    if not len(precisions):
        return np.zeros(hits.shape)
    best = np.zeros((*hits.shape, needed.shape[1]))
    offset = np.maximum(needed, 1) - 1
    reached = offset < hits[:, :, None]
    first = (np.cumsum(hits) - hits.ravel()).reshape(hits.shape)
    # Each block ends at the next recall's first right prediction. A label's first block starts at its first right
    # prediction.
    best[reached] = np.maximum.reduceat(precisions, (first[:, :, None] + offset)[reached])
    mean: Floats = np.maximum.accumulate(best[:, :, ::-1], axis=2).mean(axis=2)
    return mean


def statistics(accumulated: Accumulated, *, single_precision: bool = False) -> Floats:
    """Return COCO's twelve statistics (12,), named by STATISTICS. They are means over labels and thresholds, or -1."""
    precision, recall = accumulated.precision, accumulated.recall
    parts = [precision[0], precision[0, AT_50], precision[0, AT_75], *precision[1:]]
    parts += [accumulated.recall_1, accumulated.recall_10, *recall]
    present = [part[~np.isnan(part)] for part in parts]
    means = np.array([values.mean() if len(values) else -1.0 for values in present])
    return means.astype(np.float32).astype(np.float64) if single_precision else means
