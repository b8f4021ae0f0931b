"""Measure the agreement of judges on the same answers: rank correlation, kappa, shares and calibration shift.

Rankings and the shift follow the BARISTA paper (arXiv 2605.12074), section A.6. Kappa and the fractions follow the page
of EgoCoT-Bench (arXiv 2605.19559), "Judge Validation". Kendall's tau-b needs scipy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from .scoring import as_column, as_names, as_sampled_scores, drop_missing, mean, positive, sample_sd

_PAIR_METRICS = ("exact", "within_1", "qwk", "tau_examples", "tau_models", "shift", "shift_sd", "shift_examples")


def kendall_tau_b(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Kendall's tau-b of two paired lists, from -1 to 1. It is None for a constant list or n < 2.

    The example is the accuracy in table 14, with one adjacent swap among five models.

    >>> round(kendall_tau_b([0.727, 0.701, 0.705, 0.691, 0.665], [0.596, 0.586, 0.577, 0.569, 0.552]), 9)
    0.8
    """
    _check_pairs(first, second)
    if len(set(first)) < 2 or len(set(second)) < 2:
        return None
    # imported here, since only the agreement needs scipy
    from scipy.stats import kendalltau  # type: ignore[import-untyped,unused-ignore]

    return float(kendalltau(first, second, variant="b").statistic)


def quadratic_weighted_kappa(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Cohen's kappa with quadratic weights on the scores themselves.

    kappa = 1 - (mean squared difference of the pairs) / (mean squared difference of all pairings of the two lists). It
    is at most 1, and None if both lists hold the same constant. For integer scores, kappa equals scikit-learn's
    `cohen_kappa_score(..., weights="quadratic")` with `labels` set to the full scale. Without `labels`, scikit-learn
    counts the distance in ranks of the scores that occur.

    >>> quadratic_weighted_kappa([0, 5, 10], [0, 5, 10]), quadratic_weighted_kappa([0, 10], [10, 0])
    (1.0, -1.0)
    """
    _check_pairs(first, second)
    n = len(first)
    if len({*first, *second}) < 2:
        return None
    observed = math.fsum((a - b) ** 2 for a, b in zip(first, second, strict=True)) / n
    centres = [math.fsum(values) / n for values in (first, second)]
    variances = [
        math.fsum((value - centre) ** 2 for value in values) / n
        for values, centre in zip((first, second), centres, strict=True)
    ]
    # Equals the mean of (a - b)^2 over all n * n pairings.
    chance = math.fsum([*variances, (centres[0] - centres[1]) ** 2])
    return 1 - observed / chance


def calibration_shift(first: Sequence[float], second: Sequence[float], *, ddof: int = 0) -> dict[str, Any]:
    """Return the difference of two judges (second - first) over paired means. There is one pair of means per model.

    Returns `shift` (the mean difference), `sd` (its standard deviation over models, divisor n - `ddof`; None for n
    <= ddof), `differences` and `n`. `ddof=0` reproduces the paper's values.

    >>> shift = calibration_shift([0.702, 0.683, 0.674, 0.666, 0.647], [0.622, 0.607, 0.599, 0.587, 0.570])
    >>> round(shift["shift"], 3), round(shift["sd"], 3)
    (-0.077, 0.002)
    """
    _check_pairs(first, second)
    differences = [b - a for a, b in zip(first, second, strict=True)]
    metrics = {"shift": mean(differences), "sd": sample_sd(differences, ddof)}
    return {**metrics, "differences": differences, "n": len(differences)}


def _check_pairs(first: Sequence[float], second: Sequence[float]) -> None:
    if len(first) != len(second):
        raise ValueError(f"the lists have {len(first)} and {len(second)} scores; give pairs")


def judge_agreement(
    scores: Mapping[str, Sequence[Any]],
    models: Sequence[str | None] | None = None,
    *,
    judges: Sequence[str] | None = None,
    scale: float = 10.0,
    ddof: int = 0,
) -> dict[str, Any]:
    """Measure how far two or more judges agree on the same answers.

    `scores[judge][i]` is the judge's score of answer i, from 0 to `scale`: a number, a list of scores (their mean is
    taken), or None for no usable verdict. `models[i]` names the model that gave answer i; without names, the result
    has no scores of models. `judges` orders the judges (default: alphabetically); shifts are measured from the first
    judge of a pair. `ddof`: see `calibration_shift`.

    Returned:
    * `pairs`: one dict per pair of judges, over the answers that both scored: `judges`, `n`, `coverage` (of all
      answers); `exact`, `within_1`: fractions of equal scores and of scores at most 1 raw point apart; `qwk`;
      `tau_examples`: Kendall's tau-b of the answers; `shift_examples`: mean difference over answers. Over models:
      `per_model` (n, the two `means`, `shift`), `tau_models` of the means, `shift` and `shift_sd`, the mean and
      spread of the models' shifts. Shifts and means are rescaled to [0, 1].
    * `mean`: each score's mean over the pairs where it is defined.
    * `judges`; `n`: the number of answers; `n_failed`: answers that some judge did not score; `coverage`: the
      fraction of answers that all judges scored.

    An undefined score is None. Raises ValueError for fewer than two judges, no answers, unequal lengths or scores
    out of range, and TypeError for wrong types.

    >>> result = judge_agreement({"a": [8, 3, 5, None], "b": [7, 3, 2, 9]}, ["x", "y", "y", "x"])
    >>> pair = result["pairs"][0]
    >>> round(pair["exact"], 3), round(pair["within_1"], 3), pair["tau_models"], result["coverage"]
    (0.333, 0.667, 1.0, 0.75)
    >>> round(pair["shift"], 3)
    -0.125
    """
    top = positive(scale)
    columns = _columns(scores, judges, top)
    n = len(next(iter(columns.values())))
    if not n:
        raise ValueError("scores: are empty: there is nothing to compare; give >= 1 answer")
    names = as_names(models, "models", n)
    pairs = []
    for first, second in combinations(columns, 2):
        answers = zip(columns[first], columns[second], names, strict=True)
        rows = [(a, b, model) for a, b, model in answers if a is not None and b is not None]
        counts = {"judges": [first, second], "n": len(rows), "coverage": len(rows) / n}
        pairs.append({**counts, **_over_answers(rows, top), **_over_models(rows, top, ddof)})
    complete = sum(None not in row for row in zip(*columns.values(), strict=True))
    means = {key: mean([pair[key] for pair in pairs if pair[key] is not None]) for key in _PAIR_METRICS}
    return {
        "judges": list(columns),
        "pairs": pairs,
        "mean": means,
        "n": n,
        "n_failed": n - complete,
        "coverage": complete / n,
    }


def _columns(
    scores: Mapping[str, Sequence[Any]], judges: Sequence[str] | None, scale: float
) -> dict[str, list[float | None]]:
    if not isinstance(scores, Mapping):
        raise TypeError(f"scores: is of type {type(scores).__name__}; give a dict from judge to list of scores")
    order = sorted(scores) if judges is None else list(judges)
    if set(order) != set(scores) or len(order) != len(scores):
        raise ValueError(f"judges: is {judges!r} for the scores of {sorted(scores)}; name each judge once")
    if len(order) < 2:
        raise ValueError(f"scores: hold {len(order)} judges; give at least two")
    length: int | None = None
    columns: dict[str, list[float | None]] = {}
    for judge in order:
        column = as_column(scores[judge], f"scores[{judge!r}]", length)
        length = len(column)
        sampled_scores = [
            as_sampled_scores(raw, f"scores[{judge!r}][{index}]", scale) for index, raw in enumerate(column)
        ]
        columns[judge] = [mean(drop_missing(of_answer)) for of_answer in sampled_scores]
    return columns


_Rows = Sequence[tuple[float, float, str | None]]  # two judges' scores of an answer, and the model that answered


def _over_answers(rows: _Rows, scale: float) -> dict[str, Any]:
    left, right = [a for a, _, _ in rows], [b for _, b, _ in rows]
    # Means of scores carry rounding noise, but a difference of a whole point must still count as such.
    gaps = [abs(a - b) for a, b, _ in rows]
    return {
        "exact": mean([float(gap <= 1e-9) for gap in gaps]),
        "within_1": mean([float(gap <= 1 + 1e-9) for gap in gaps]),
        "qwk": quadratic_weighted_kappa(left, right),
        "tau_examples": kendall_tau_b(left, right),
        "shift_examples": mean([(b - a) / scale for a, b, _ in rows]),
    }


def _over_models(rows: _Rows, scale: float, ddof: int) -> dict[str, Any]:
    per_model: dict[str, Any] = {}
    for name in sorted({model for _, _, model in rows if model is not None}):
        pairs = [(a, b) for a, b, model in rows if model == name]
        means = [math.fsum(column) / len(pairs) / scale for column in zip(*pairs, strict=True)]
        per_model[name] = {"n": len(pairs), "means": means, "shift": means[1] - means[0]}
    first, second = ([metrics["means"][side] for metrics in per_model.values()] for side in (0, 1))
    shift = calibration_shift(first, second, ddof=ddof)
    return {
        # Rounding noise must not break a tie between models.
        "tau_models": kendall_tau_b(*([round(value, 12) for value in means] for means in (first, second))),
        "shift": shift["shift"],
        "shift_sd": shift["sd"],
        "per_model": per_model,
    }
