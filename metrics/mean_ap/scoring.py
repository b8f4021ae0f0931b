"""Compute mean average precision of boxes or masks by COCO's rules, and scores that do not depend on an order.

The task is phrase grounding (BARISTA, arXiv 2605.12074, section A.2.1): find all instances of a phrase in an image.
The twelve statistics are computed as in pycocotools, without crowd regions. Boxes are (x0, y0, x1, y1) in pixels.
Needs numpy; masks need pycocotools.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from math import factorial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .accumulate import AT_50, AT_75, STATISTICS, Accumulated, accumulate, select, statistics
from .inputs import Examples, ImageInstances, IouType, RawImage, read_examples
from .matching import THRESHOLDS, Grouped, Matches, best_assignment, group, is_alone, match_greedily
from .overlap import Shapes
from .values import Bools, Floats, Ints
from .weighted import weighted_statistics

Rounding = Literal["none", "float32"]


@dataclass(frozen=True, slots=True)
class Evaluated:
    """All images, compared once. Aggregate them with `compute_metrics` and `spread_of`.

    I images, K labels, T = 10 IoU thresholds.

    * `matches`: for the twelve statistics; `overall`: these, counted over all images as given.
    * `hits`: (T, I) and `label_hits`: (T, K) predictions matched one to one, as many as possible at the threshold.
    * `n_predicted`, `n_reference`: (I,); `label_predicted`, `label_reference`: (K,).
    * `best_iou`: (I,) the mean over the image's predictions of their IoU with the best-fitting reference, 0 if either
      side is empty.
    * `labels`: K names; `failed`: (I,) True for images without a usable answer; `constant_scores`: all scores are
      equal, so the order of the images decides.
    """

    matches: Matches
    overall: Accumulated
    hits: Ints
    label_hits: Ints
    n_predicted: Ints
    n_reference: Ints
    label_predicted: Ints
    label_reference: Ints
    best_iou: Floats
    labels: list[str]
    failed: Bools
    constant_scores: bool


def evaluate_images(
    predictions: Sequence[RawImage | None],
    references: Sequence[RawImage],
    *,
    iou_type: IouType = "bbox",
    rounding: Rounding = "none",
) -> Evaluated:
    """Compare all images once. For the inputs, options and errors see `mean_ap`."""
    return evaluate_examples(read_examples(predictions, references, iou_type), rounding)


def evaluate_examples(examples: Examples, rounding: Rounding = "none") -> Evaluated:
    """Compare all images once, from the result of `read_examples`."""
    if rounding not in ("none", "float32"):
        raise ValueError(f"rounding is {rounding!r}; give 'none' or 'float32'")
    shapes = Shapes(examples)
    grouped = group(examples, shapes)
    predicted, reference, n_images, n_labels = (
        examples.predicted, examples.reference, len(examples.failed), len(examples.labels),
    )  # fmt: skip
    hits, label_hits = _count_hits(examples, grouped)
    scores = predicted.scores
    matches = match_greedily(examples, shapes, grouped) if rounding == "none" else match_rounded(examples)
    return Evaluated(
        matches=matches,
        overall=accumulate(matches),
        hits=hits,
        label_hits=label_hits,
        n_predicted=np.bincount(predicted.image, minlength=n_images),
        n_reference=np.bincount(reference.image, minlength=n_images),
        label_predicted=np.bincount(predicted.label, minlength=n_labels),
        label_reference=np.bincount(reference.label, minlength=n_labels),
        best_iou=_best_iou(examples, shapes),
        labels=examples.labels,
        failed=examples.failed,
        constant_scores=bool((scores == scores[0]).all()) if len(scores) else True,
    )


def match_rounded(examples: Examples) -> Matches:
    """Match like COCO, with the single-precision numbers that torchmetrics passes to pycocotools."""
    predicted = examples.predicted
    scores = predicted.scores.astype(np.float32).astype(np.float64)
    rounded = ImageInstances(predicted.image, predicted.label, predicted.boxes, scores, predicted.masks)
    examples = Examples(rounded, examples.reference, examples.labels, examples.failed)
    shapes = Shapes(examples, rounding="float32")
    return match_greedily(examples, shapes, group(examples, shapes), single_precision=True)


def _count_hits(examples: Examples, grouped: Grouped) -> tuple[Ints, Ints]:
    """Count the predictions that are matched one to one, per image (T, n_images) and per label (T, n_labels)."""
    image = examples.predicted.image[grouped.predicted]
    label = examples.predicted.label[grouped.predicted]
    sizes = len(grouped.predicted), len(grouped.reference)
    alone = is_alone(grouped.pairs, *sizes)  # alone at the lowest threshold, so alone at each threshold
    sure, contested = grouped.pairs.keep_pairs(alone), grouped.pairs.keep_pairs(~alone)
    matched = [
        np.concatenate([sure.predicted[sure.iou >= threshold], best_assignment(contested, threshold, *sizes)])
        for threshold in THRESHOLDS
    ]
    return (
        np.array([np.bincount(image[pairing], minlength=len(examples.failed)) for pairing in matched]),
        np.array([np.bincount(label[pairing], minlength=len(examples.labels)) for pairing in matched]),
    )


def _best_iou(examples: Examples, shapes: Shapes) -> Floats:
    """Return the mean over predictions of the highest IoU with any reference of the image (n_images,)."""
    predicted, reference = examples.predicted.image, examples.reference.image
    everything = np.arange(len(predicted)), predicted, np.arange(len(reference)), reference
    pairs = shapes.overlaps(*everything, minimum=np.nextafter(0, 1))
    best = np.zeros(len(predicted))
    starts = np.flatnonzero(np.diff(pairs.predicted, prepend=-1))
    best[pairs.predicted[starts]] = np.maximum.reduceat(pairs.iou, starts) if len(starts) else 0
    count = np.bincount(predicted, minlength=len(examples.failed))
    total = np.bincount(predicted, best, minlength=len(examples.failed))
    return np.asarray(total / np.maximum(count, 1))


def mean_ap(
    predictions: Sequence[RawImage | None],
    references: Sequence[RawImage],
    *,
    iou_type: IouType = "bbox",
    rounding: Rounding = "none",
) -> dict[str, Any]:
    """Score all images. `predictions[i]` answers `references[i]`; None means that there is no usable answer.

    An image is a dict: `boxes`, (n, 4) x0, y0, x1, y1 in pixels, lists, numpy or torch; `labels` (optional, but only
    on both sides together), one category per box, or one for all, str or int (compared as strings); `scores` of
    predictions (optional, default 1 for all). With `iou_type="segm"` give `masks`, COCO run-length encodings,
    instead of `boxes`. `rounding="float32"` computes in the single precision of torchmetrics, see README.md.

    Returned:
    * `map`, `map_50`, `map_75`, `map_small`, `map_medium`, `map_large`, `mar_1`, `mar_10`, `mar_100`, `mar_small`,
      `mar_medium`, `mar_large`: COCO's twelve statistics, 0 to 1, -1 without a reference. Equal scores are ranked in
      the order of the images as given, then of the predictions.
    * `f1@50`, `f1@[.5:.95]`, `precision@50`, `recall@50`: boxes matched one to one, as many as possible per image
      and label at each IoU threshold, counts pooled over all images. They depend on no order and on no score.
    * `mean_best_iou`: mean over images of Evaluated.best_iou.
    * `per_category`: per label `ap`, `ap_50`, `ap_75`, `ar_100` (None without a reference), `f1@50`, `f1@[.5:.95]`,
      n_predicted, support (references).
    * `constant_scores`: True if all scores are equal (see `tie_spread`).
    * `n`, `n_failed`, `coverage`: the number of images, the number without a usable answer, and the fraction with a
      usable answer.
    * `n_predicted`, `n_reference`: the numbers of boxes or masks.

    A failed image counts as an image without predictions: its references stay. Raises ValueError for no images,
    unequal lengths and bad numbers, and TypeError for wrong types; the message names the image and the field.

    >>> cups = {"boxes": [[10, 10, 50, 50], [60, 10, 100, 50]], "labels": "cup"}
    >>> result = mean_ap([{"boxes": [[10, 10, 50, 46]], "labels": "cup"}, None], [cups, cups])
    >>> round(result["map_50"], 4), round(result["map"], 4), result["mar_100"], result["f1@50"]
    (0.2574, 0.2317, 0.225, 0.4)
    >>> result["mean_best_iou"], result["coverage"], result["per_category"]["cup"]["support"]
    (0.45, 0.5, 4)
    """
    return summarise(evaluate_images(predictions, references, iou_type=iou_type, rounding=rounding))


def summarise(evaluated: Evaluated) -> dict[str, Any]:
    """Return the result of `mean_ap` from images that are already compared."""
    values = {name: float(value[0]) for name, value in compute_metrics(evaluated).items()}
    return {**{name: -1.0 if np.isnan(value) else value for name, value in values.items()}, **tables(evaluated)}


def compute_metrics(evaluated: Evaluated, weights: Floats | None = None) -> dict[str, Floats]:
    """Return the scores (D,) of `mean_ap`, without its tables, for D resamples of images.

    A score is NaN if its resample has no reference.

    Mean average precision is not a sum over images, so each resample counts the matches again, in image order. The
    other scores do not depend on an order.

    Args:
        evaluated: the comparison of I images.
        weights: (D, I) how often each resample takes each image. None takes each image once, which gives the published
            score.
    """
    matches = evaluated.matches
    if weights is None:
        coco = statistics(evaluated.overall, single_precision=matches.single_precision)[None]
    else:
        coco = weighted_statistics(matches, weights)
    coco = np.where(coco < 0, np.nan, coco)

    def total(values: Bools | Ints | Floats) -> Floats:
        numbers = values.astype(np.float64)
        return numbers.sum(axis=-1)[..., None] if weights is None else numbers @ weights.T.astype(np.float64)

    n, failed = total(np.ones(len(evaluated.failed))), total(evaluated.failed)
    hits, predicted, reference = total(evaluated.hits), total(evaluated.n_predicted), total(evaluated.n_reference)
    # Without references, an empty result is perfect only if there is an answer.
    looked = np.where(failed < n, 1.0, np.where(n > 0, 0.0, np.nan))
    f1 = looked * _f1(hits, predicted, reference)
    return {
        **dict(zip(STATISTICS, coco.T, strict=True)),
        "f1@50": f1[0],
        "f1@[.5:.95]": np.add.accumulate(f1)[-1] / len(f1),
        "precision@50": looked * _fraction(hits[0], predicted, reference == 0),
        "recall@50": looked * _fraction(hits[0], reference, predicted == 0),
        "mean_best_iou": _fraction(total(evaluated.best_iou), n, np.nan),
        "coverage": 1 - _fraction(failed, n, np.nan),
    }


def tables(evaluated: Evaluated) -> dict[str, Any]:
    """Return the tables of `mean_ap`."""
    return {
        "per_category": _per_category(evaluated),
        "constant_scores": evaluated.constant_scores,
        "n": len(evaluated.failed),
        "n_failed": int(evaluated.failed.sum()),
        "n_predicted": int(evaluated.n_predicted.sum()),
        "n_reference": int(evaluated.n_reference.sum()),
    }


def _fraction(part: NDArray[Any], whole: NDArray[Any], nothing: float | Bools) -> Floats:
    return np.asarray(np.where(whole > 0, part / np.where(whole > 0, whole, 1), nothing), dtype=np.float64)


def _f1(hits: NDArray[Any], predicted: NDArray[Any], reference: NDArray[Any]) -> Floats:
    """Return 2 hits / (predicted + references). If both sides are empty, the result is 1."""
    return _fraction(2.0 * hits, predicted + reference, 1.0)


def _per_category(evaluated: Evaluated) -> dict[str, dict[str, Any]]:
    """Return the scores of each label, sorted by label."""
    precision, recall = evaluated.overall.precision[0], evaluated.overall.recall[0]
    means = np.stack([precision.mean(axis=0), precision[AT_50], precision[AT_75], recall.mean(axis=0)])
    if evaluated.matches.single_precision:
        means = means.astype(np.float32).astype(np.float64)
    f1 = _f1(evaluated.label_hits, evaluated.label_predicted, evaluated.label_reference)
    columns = {
        **dict(zip(("ap", "ap_50", "ap_75", "ar_100"), means, strict=True)),
        "f1@50": f1[0],
        "f1@[.5:.95]": np.add.accumulate(f1)[-1] / len(f1),
        "n_predicted": evaluated.label_predicted,
        "support": evaluated.label_reference,
    }
    rows = {
        label: {name: None if np.isnan(column[code]) else column[code].item() for name, column in columns.items()}
        for code, label in enumerate(evaluated.labels)
    }
    return dict(sorted(rows.items()))


# Recall does not depend on the order of the images.
_PRECISIONS = STATISTICS[:6]


def spread_of(evaluated: Evaluated, *, orders: int = 100, seed: int = 0) -> dict[str, Any]:
    """Measure how much the average precisions depend on the order of the images.

    COCO ranks predictions of equal score in the order of the images. Without confidences all scores are equal. So this
    order decides, although it is unrelated to the model. Returned per precision (`map`, `map_50`, ...):

    * `canonical`: images in the order given, the published score;
    * `min`, `mean`, `max` over `orders` random orders of the images sampled with `seed`, or over all orders if there
      are no more than `orders`; `min` and `max` include the canonical order;
    * `lower`, `upper`: bounds for every order, which may not be reached: wrong predictions before right predictions
      of the same score, separately at each threshold, and the reverse.

    Also returned: `orders`, the number of orders computed, and `exhaustive`, True if these are all. Raises
    ValueError if orders < 1.

    >>> good = {"boxes": [[0, 0, 9, 9]]}
    >>> spread = spread_of(evaluate_images([{"boxes": [[50, 50, 59, 59]]}, good], [good, good]))
    >>> {name: round(value, 3) for name, value in spread["map"].items()}
    {'canonical': 0.252, 'min': 0.252, 'mean': 0.379, 'max': 0.505, 'lower': 0.252, 'upper': 0.505}
    >>> spread["orders"], spread["exhaustive"]
    (2, True)
    """
    if orders < 1:
        raise ValueError(f"orders is {orders}; give the number of orders of the images to try, 1 or more")
    matches = evaluated.matches
    # The position of images without predictions does not matter.
    movable = np.flatnonzero(evaluated.n_predicted)
    exhaustive = len(movable) < 20 and factorial(len(movable)) <= orders
    rng = np.random.default_rng(seed)
    every = (np.array(order, dtype=np.int64) for order in permutations(movable.tolist()))
    sampled = every if exhaustive else (rng.permutation(movable) for _ in range(orders))
    without_predictions = np.flatnonzero(evaluated.n_predicted == 0)
    values = np.array([_precisions(matches, np.concatenate([order, without_predictions])) for order in sampled])
    canonical, lower, upper = _precisions(matches), _precisions(matches, optimism=-1), _precisions(matches, optimism=1)
    all_values = np.vstack([values, canonical])
    low, high = all_values.min(axis=0), all_values.max(axis=0)
    # Clip, since the mean of equal numbers may be wrong in its last bit.
    columns = (canonical, low, values.mean(axis=0).clip(low, high), high, lower, upper)
    names = ("canonical", "min", "mean", "max", "lower", "upper")
    spread: dict[str, Any] = {
        statistic: {name: float(column[index]) for name, column in zip(names, columns, strict=True)}
        for index, statistic in enumerate(_PRECISIONS)
    }
    return spread | {"orders": len(values), "exhaustive": exhaustive}


def _precisions(matches: Matches, images: Ints | None = None, *, optimism: int = 0) -> Floats:
    accumulated = accumulate(matches, select(matches, images), optimism=optimism)
    return statistics(accumulated, single_precision=matches.single_precision)[: len(_PRECISIONS)]
