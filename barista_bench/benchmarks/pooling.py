"""Figures of many draws of samples at once, for tasks whose figures are made of sums over samples (`Task.resampled`).

A task says what one sample adds; here that is summed for all draws by one matrix product.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def weighted_sums(rows: Sequence[Mapping[Hashable, float]], weights: Floats) -> dict[Hashable, Floats]:
    """(D,) a name: the sums over samples of what they add, each counted as often as its draw takes it.

    Args:
        rows: (S,) what each sample adds, by name; 0 where it says nothing.
        weights: (D, S).

    >>> sums = weighted_sums([{"hits": 1}, {"hits": 2, "n": 1}], np.array([[1.0, 1.0], [2.0, 0.0]]))
    >>> sums["hits"].tolist(), sums["n"].tolist()
    ([3.0, 2.0], [1.0, 0.0])
    """
    names = {name: place for place, name in enumerate(dict.fromkeys(name for row in rows for name in row))}
    table = np.zeros((len(rows), len(names)))
    for at, row in enumerate(rows):
        for name, value in row.items():
            table[at, names[name]] = value
    sums = weights.astype(np.float64) @ table
    return {name: sums[:, place] for name, place in names.items()}


def ratio(part: Floats, whole: Floats, nothing: float | Floats = np.nan) -> Floats:
    """part / whole, and `nothing` where whole is 0.

    >>> ratio(np.array([1.0, 0.0]), np.array([2.0, 0.0]), 1.0).tolist()
    [0.5, 1.0]
    """
    return np.asarray(np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), nothing))


def mean_figures(scores: Sequence[Mapping[str, float]], failed: Sequence[bool], weights: Floats) -> dict[str, Floats]:
    """Plain means over samples of each score, and `coverage`; NaN for a draw without samples."""
    n = weights.sum(axis=1).astype(np.float64)
    rows: list[dict[Hashable, float]] = [dict(score.items()) for score in scores]
    for row, bad in zip(rows, failed, strict=True):
        row["failed"] = float(bad)
    sums = weighted_sums(rows, weights)
    coverage = 1 - ratio(sums.pop("failed"), n)
    return {**{str(name): ratio(total, n) for name, total in sums.items()}, "coverage": coverage}
