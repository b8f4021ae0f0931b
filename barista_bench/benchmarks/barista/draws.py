"""The tasks' figures for many draws of samples at once (`Task.resampled`): the same sums as their metrics pool.

`weights` is (D, S), how often each draw takes each sample; figures are (D,), NaN for a draw without samples.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from barista_bench.benchmarks.pooling import Floats, harmonic, mean_of_present, ratio, weighted_sums
from barista_bench.metrics.interaction_f1.scoring import FrameScore
from barista_bench.metrics.mean_ap.accumulate import STATISTICS
from barista_bench.metrics.mean_ap.scoring import Evaluated
from barista_bench.metrics.mean_ap.weighted import weighted_statistics

Row = Mapping[Hashable, float]


def interaction_figures(scores: Sequence[FrameScore], weights: Floats) -> dict[str, Floats]:
    """What `interaction_f1.pool` gives in figures; NaN where it says None."""
    sums = weighted_sums([_interaction_row(score) for score in scores], weights)
    n, matched = sums["n"], sums["matched"]
    precision, recall = ratio(matched, sums["predicted"], 0.0), ratio(matched, sums["reference"], 0.0)
    figures = {
        "precision": precision,
        "recall": recall,
        "f1": harmonic(precision, recall),
        "object_iou": ratio(sums["object_iou"], matched),
        "hand_iou": ratio(sums["hand_iou"], matched),
        "hand_type_accuracy": ratio(sums["hand_type"], matched),
        "no_detection_rate": ratio(sums["undetected"], sums["with_reference"]),
        "coverage": 1 - ratio(sums["failed"], n),
    }
    return {name: np.where(n > 0, values, np.nan) for name, values in figures.items()}


def _interaction_row(score: FrameScore) -> Row:
    asked = score.n_reference > 0
    return {
        "n": 1.0,
        "failed": float(score.failed),
        "matched": float(len(score.pairs)),
        "predicted": float(score.n_predicted),
        "reference": float(score.n_reference),
        "object_iou": sum(pair.object_iou for pair in score.pairs),
        "hand_iou": sum(pair.hand_iou for pair in score.pairs),
        "hand_type": float(sum(pair.hand_type_right for pair in score.pairs)),
        "with_reference": float(asked),
        "undetected": float(asked and score.n_predicted == 0),
    }


def choice_figures(
    right: Sequence[bool], readable: Sequence[bool], classes: Sequence[str], chances: Sequence[float], weights: Floats
) -> dict[str, Floats]:
    """What `choice_accuracy` gives in figures; `chances` are 1 / number of choices."""
    rows: list[Row] = [
        {
            "n": 1.0,
            "right": float(hit),
            "read": float(read),
            "chance": chance,
            ("class", name): 1.0,
            ("hit", name): float(hit),
        }
        for hit, read, name, chance in zip(right, readable, classes, chances, strict=True)
    ]
    sums = weighted_sums(rows, weights)
    n, names = sums["n"], dict.fromkeys(classes)
    by_class = [ratio(sums["hit", name], sums["class", name]) for name in names]
    present = [sums["class", name] > 0 for name in names]
    return {
        "accuracy": ratio(sums["right"], n),
        "accuracy_on_parsed": ratio(sums["right"], sums["read"]),
        "chance_level": ratio(sums["chance"], n),
        "class_mean_accuracy": mean_of_present(by_class, present, np.nan),
        "coverage": ratio(sums["read"], n),
    }


def box_figures(evaluated: Evaluated, weights: Floats) -> dict[str, Floats]:
    """What `mean_ap.summarise` gives in figures; -1, for nothing of a size, is NaN.

    Mean average precision is no sum: the same matches are counted anew for each draw, images in their order.
    """
    values = weighted_statistics(evaluated.matches, weights)
    values[(values < 0) | (weights.sum(axis=1) == 0)[:, None]] = np.nan
    return {**dict(zip(STATISTICS, values.T, strict=True)), **_order_free(evaluated, weights)}


def _order_free(evaluated: Evaluated, weights: Floats) -> dict[str, Floats]:
    """The figures that do not depend on the order of images."""
    n = weights.sum(axis=1)
    hits = weights @ evaluated.hits.T.astype(np.float64)
    predicted, reference = weights @ evaluated.n_predicted, weights @ evaluated.n_reference
    failed = weights @ evaluated.failed.astype(np.float64)
    # Nothing to find and nothing found is perfect only if somebody looked.
    looked = np.where(failed < n, 1.0, 0.0)
    f1 = looked[:, None] * ratio(2 * hits, (predicted + reference)[:, None] * np.ones_like(hits), 1.0)
    figures = {
        "f1@50": f1[:, 0],
        "f1@[.5:.95]": f1.mean(axis=1),
        "precision@50": looked * ratio(hits[:, 0], predicted, np.where(reference > 0, 0.0, 1.0)),
        "recall@50": looked * ratio(hits[:, 0], reference, np.where(predicted > 0, 0.0, 1.0)),
        "mean_best_iou": ratio(weights @ evaluated.best_iou, n),
        "coverage": 1 - ratio(failed, n),
    }
    return {name: np.where(n > 0, values, np.nan) for name, values in figures.items()}
