"""Rank models by the single rule of reports and the leaderboard Space. The Space imports this module, so it is
small.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean


def ranks(ends: Sequence[tuple[float, float] | None]) -> list[int | None]:
    """Return the rank of each score: 1 + the number of intervals that lie completely above the score's interval.

    Scores with overlapping intervals share a rank, unless another score lies between them. A score of None has no rank.

    >>> ranks([(0.7, 0.9), (0.6, 0.8), None, (0.1, 0.2)])
    [1, 1, None, 3]
    """
    return [None if own is None else 1 + sum(end[0] > own[1] for end in ends if end is not None) for own in ends]


def mean_rank(ranks_of_model: Sequence[int | None]) -> float | None:
    """Return the mean of a model's ranks over tasks, which have no common scale; None if a rank is missing.

    >>> mean_rank([1, 2]), mean_rank([1, None])
    (1.5, None)
    """
    known_ranks = [rank for rank in ranks_of_model if rank is not None]
    return round(fmean(known_ranks), 2) if len(known_ranks) == len(ranks_of_model) else None
