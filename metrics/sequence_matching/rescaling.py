"""Turn raw scores of a ViSTa problem set into predictions, by softmax, standardisation and tied maxima.

Arrays are float64 (videos x labels). NaN marks a missing or undefined score. Needs numpy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]

STANDARDISE = ("label", "leave_one_out", "raw", "video", "video+label")
# This value is added to every standard deviation, as in the reference code.
EPSILON = 1e-6
# Scores this close are tied. Rounding noise (1e-16) over EPSILON stays below this value, and real differences lie
# above.
TIE_TOLERANCE = 1e-9


def softmax_over_labels(scores: Scores) -> Scores:
    """Return exp(s) / sum exp(s) of each video over all labels with a score. Missing scores stay NaN.

    >>> softmax_over_labels(np.array([[1.0, 1.0], [np.nan, 3.0]])).tolist()
    [[0.5, 0.5], [nan, 1.0]]
    """
    top = np.max(scores, axis=1, keepdims=True, initial=-np.inf, where=~np.isnan(scores))
    powers = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = np.nansum(powers, axis=1, keepdims=True)
    fractions: Scores = np.divide(powers, total, out=np.full_like(powers, np.nan), where=total > 0)
    return fractions


def z_scores(values: Scores, axis: int) -> Scores:
    """Return (x - mean) / (sd + 1e-6) along an axis, with the sample standard deviation (n - 1). NaN for n < 2.

    >>> z_scores(np.array([[1.0, 5.0], [3.0, np.nan]]), axis=0).round(3).tolist()
    [[-0.707, nan], [0.707, nan]]
    """
    count = np.sum(~np.isnan(values), axis=axis, keepdims=True).astype(np.float64)
    centred = values - np.divide(np.nansum(values, axis=axis, keepdims=True), count, where=count > 0, out=count * 0)
    squares = np.nansum(centred**2, axis=axis, keepdims=True)
    variance = np.divide(squares, count - 1, out=np.full_like(squares, np.nan), where=count > 1)
    standardised: Scores = centred / (np.sqrt(variance) + EPSILON)
    return standardised


def leave_one_out_z_scores(values: Scores) -> Scores:
    """Return each video's z-score per label, with the mean and sample standard deviation of the OTHER videos.

    NaN if fewer than two other videos have a score, so a set of two videos has only NaN.

    >>> leave_one_out_z_scores(np.array([[0.0], [2.0], [4.0]])).round(2).tolist()
    [[-2.12], [0.0], [2.12]]
    """
    result = np.full_like(values, np.nan)
    for video in range(len(values)):
        others = np.delete(values, video, axis=0)
        has_score = ~np.isnan(others)
        count = has_score.sum(axis=0).astype(np.float64)
        total = np.nansum(others, axis=0)
        mean = np.divide(total, count, out=np.zeros_like(total), where=count > 0)
        squares = np.nansum((others - mean) ** 2, axis=0)
        variance = np.divide(squares, count - 1, out=np.full_like(squares, np.nan), where=count > 1)
        result[video] = (values[video] - mean) / (np.sqrt(variance) + EPSILON)
    return result


def rescale(scores: Scores, standardise: str = "label", *, softmax: bool = True) -> Scores:
    """Return the scores to compare (videos x labels). An undefined score is NaN.

    First comes the softmax over labels (unless `softmax` is False), then
    * "label": z-scores of each label over the videos, which is ViSTa's metric;
    * "leave_one_out": the same, each video by the statistics of the others;
    * "raw": nothing;
    * "video": z-scores of each video over its labels;
    * "video+label": z-scores of each video, then of each label.

    >>> rescale(np.array([[3.0, 1.0], [9.0, 1.0]]), "raw", softmax=False).tolist()
    [[3.0, 1.0], [9.0, 1.0]]
    """
    values = softmax_over_labels(scores) if softmax else scores
    if standardise == "leave_one_out":
        return leave_one_out_z_scores(values)
    if standardise in ("video", "video+label"):
        values = z_scores(values, axis=1)
    return z_scores(values, axis=0) if standardise in ("label", "video+label") else values


def best_labels(values: Scores) -> list[list[int]]:
    """Return each video's labels with the highest value (within 1e-9), in ascending order. [] if no value is defined.

    >>> best_labels(np.array([[0.5, 0.5], [0.1, np.nan], [np.nan, np.nan]]))
    [[0, 1], [0], []]
    """
    top = np.max(values, axis=1, keepdims=True, initial=-np.inf, where=~np.isnan(values))
    return [np.flatnonzero(row).tolist() for row in values >= top - TIE_TOLERANCE]
