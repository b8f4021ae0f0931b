"""Compute scores from samples. Each score is defined once, as sample contributions and a function of their weighted
sum.

A task turns the samples of one repetition into `SampleStatistics`. This step compares each answer with the reference
once. All scores then differ only in weights. Published scores count every sample once. Intervals and permutation tests
count a sample as often as each resample takes it. A breakdown counts the samples of a group, and the score of one
sample counts only that sample.
"""

from __future__ import annotations

import functools
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Row: TypeAlias = Mapping[Hashable, float]
"""The numbers that one sample adds to the sums, by name."""
Sums: TypeAlias = Mapping[Hashable, Floats]
"""(D,) sums over the samples of each of D resamples, by name."""
Metrics: TypeAlias = dict[str, Floats]
"""(D,) values of each score, one per resample; NaN if a resample lacks the score."""


WIDE = 8
"""The number of columns from which a matrix product adds numbers in the same order as for a wide table."""
RESAMPLES_AT_ONCE = 256


class SampleStatistics(ABC):
    """The S samples of one repetition as numbers, in order. They are computed once, and all scores follow from them."""

    @abstractmethod
    def compute_metrics(self, weights: Floats) -> Metrics:
        """Return the scores of D resamples.

        Args:
            weights: (D, S) how often each resample takes each sample, as integers of at least 0.
        """

    def resampled_metrics(self, weights: Floats, units: NDArray[np.int64]) -> Metrics:
        """Return the scores of `compute_metrics` for resamples of complete units: a unit's samples are taken together.

        Args:
            weights: (D, V) how often each resample takes each of V units.
            units: (S,) the unit of each sample.
        """
        return self.compute_metrics(weights[:, units])

    @abstractmethod
    def scores(self) -> dict[str, Floats]:
        """Return the (S,) scores of each sample, by the names that apply to one sample."""

    @abstractmethod
    def subset(self, samples: Sequence[int]) -> SampleStatistics:
        """Return the statistics of the samples at these positions, in the given order."""

    def tables(self) -> dict[str, Any]:
        """Return the tables that are shown beside the scores of all samples: counts, and scores by group, as JSON
        values.
        """
        return {}

    def published_metrics(self) -> dict[str, Any]:
        """Return the scores of all samples together, and the tables."""
        metrics = self.compute_metrics(np.ones((1, self.size)))
        return {**{name: float(value[0]) for name, value in metrics.items() if not np.isnan(value[0])}, **self.tables()}

    @property
    @abstractmethod
    def size(self) -> int:
        """Return the number of samples, S."""


class SumStatistics(SampleStatistics):
    """Statistics whose scores are functions of sums over samples.

    Args:
        rows: (S,) contribution of each sample. A name that is missing from a row counts as 0.
        metrics: function from the sums of resamples to scores. The sum `n` counts samples unless a row defines it.
        sample_scores: maps each score to its name for one sample; by default the names are equal.
        tables: function from the sums over all samples to tables shown beside the scores.

    >>> rows = [{"right": 1.0}, {"right": 0.0}]
    >>> accuracy = SumStatistics(rows, lambda sums: {"accuracy": fraction(sums["right"], sums["n"])})
    >>> resampled = accuracy.compute_metrics(np.array([[1.0, 0.0], [2.0, 1.0]]))
    >>> accuracy.published_metrics(), resampled[\"accuracy\"].round(2).tolist()
    ({'accuracy': 0.5}, [1.0, 0.67])
    """

    def __init__(
        self,
        rows: Sequence[Row],
        metrics: Callable[[Sums], Metrics],
        *,
        sample_scores: Mapping[str, str] | None = None,
        tables: Callable[[Row], dict[str, Any]] | None = None,
    ) -> None:
        self._names: dict[Hashable, int] = {"n": 0}
        columns = [self._names.setdefault(name, len(self._names)) for row in rows for name in row]
        row_numbers = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        self._table: NDArray[Any] = np.zeros((len(rows), len(self._names)))
        self._table[:, 0] = 1.0
        self._table[row_numbers, columns] = np.fromiter(chain.from_iterable(row.values() for row in rows), np.float64)
        with np.errstate(invalid="ignore"):  # divisions that give NaN
            as_int8 = self._table.astype(np.int8)
        if np.array_equal(as_int8, self._table):  # counts of single samples as int8, in an eighth of the memory
            self._table = as_int8
        self._metrics_of, self._sample_scores, self._tables = metrics, sample_scores, tables

    def subset(self, samples: Sequence[int]) -> SumStatistics:
        statistics = copy(self)
        statistics._table = self._table[np.asarray(samples, dtype=np.int64)]
        return statistics

    @property
    def size(self) -> int:
        return len(self._table)

    def compute_metrics(self, weights: Floats) -> Metrics:
        # The plain sum is no matrix product: its order of summing, and so the last digit, depends on the machine.
        is_plain_sum = weights.shape[0] == 1 and bool((weights == 1).all())
        sums = self._total()[None] if is_plain_sum else weights.astype(np.float64, copy=False) @ self._table
        return self._masked_metrics(sums)

    def resampled_metrics(self, weights: Floats, units: NDArray[np.int64]) -> Metrics:
        """Return the same as the base class, but faster.

        Integers are first summed by resampling unit, since sums of integers are exact in any order.
        """
        is_whole = np.asarray((np.rint(self._table) == self._table).all(axis=0))
        sums = np.empty((len(weights), len(is_whole)))
        order = np.argsort(units, kind="stable")
        present, starts = np.unique(units[order], return_index=True)
        by_unit = np.zeros((weights.shape[1], int(is_whole.sum())))
        by_unit[present] = np.add.reduceat(self._table[order][:, is_whole], starts, axis=0, dtype=np.float64)
        sums[:, is_whole] = weights @ by_unit
        if not is_whole.all():
            # Wide enough for a matrix product, since a product of a matrix and a column adds numbers in another order.
            count = int((~is_whole).sum())
            fractional = np.zeros((len(self._table), max(WIDE, count)))
            fractional[:, :count] = self._table[:, ~is_whole]
            for start in range(0, len(weights), RESAMPLES_AT_ONCE):
                chunk = weights[start : start + RESAMPLES_AT_ONCE]
                sums[start : start + RESAMPLES_AT_ONCE, ~is_whole] = (chunk[:, units] @ fractional)[:, :count]
        return self._masked_metrics(sums)

    def _masked_metrics(self, sums: Floats) -> Metrics:
        """Return the scores of these sums; NaN for resamples without samples."""
        metrics = self._unmasked_metrics(sums)
        empty = sums[:, 0] == 0
        return {name: np.where(empty, np.nan, values) for name, values in metrics.items()} if empty.any() else metrics

    def scores(self) -> dict[str, Floats]:
        metrics = self._unmasked_metrics(self._table.astype(np.float64))
        names = {name: name for name in metrics} if self._sample_scores is None else self._sample_scores
        return {names[name]: metrics[name] for name in names}

    def tables(self) -> dict[str, Any]:
        if self._tables is None:
            return {}
        return self._tables(dict(zip(self._names, self._total().tolist(), strict=True)))

    def column(self, name: Hashable) -> Floats:
        """Return the (S,) contributions of the samples to the sum `name`; zeros if no row has this name."""
        index = self._names.get(name)
        return np.zeros(self.size) if index is None else self._table[:, index].astype(np.float64)

    def _total(self) -> Floats:
        if self._table.dtype == np.int8:
            return self._table.sum(axis=0, dtype=np.float64)
        return np.add.accumulate(self._table, axis=0)[-1] if len(self._table) else np.zeros(len(self._names))

    def _unmasked_metrics(self, sums: Floats) -> Metrics:
        return self._metrics_of({name: sums[:, index] for name, index in self._names.items()})


class MicroF1(NamedTuple):
    """The columns of `SumStatistics` whose sums give a micro F1: 2 `matched` / (`predicted` + `reference`).

    `entry_tokens` is the fewest tokens of one entry of an answer. It bounds the number of entries that an answer can
    list.
    """

    matched: str
    predicted: str
    reference: str
    entry_tokens: int


def mean_statistics(
    scores: Sequence[Mapping[str, float]],
    readable: Sequence[bool],
    *,
    tables: Callable[[Row], dict[str, Any]] | None = None,
) -> SumStatistics:
    """Return statistics with plain means over samples, and `coverage`, the fraction of readable answers.

    >>> mean_statistics([{"accuracy": 1.0}, {"accuracy": 0.0}], [True, False]).published_metrics()
    {'accuracy': 0.5, 'coverage': 0.5}
    """
    names = list(dict.fromkeys(name for score in scores for name in score))
    rows: list[Row] = [
        {**dict[Hashable, float](score.items()), "answered": float(is_readable)}
        for score, is_readable in zip(scores, readable, strict=True)
    ]

    def means(sums: Sums) -> Metrics:
        return {
            **{name: fraction(sums[name], sums["n"]) for name in names},
            "coverage": fraction(sums["answered"], sums["n"]),
        }

    return SumStatistics(rows, means, sample_scores={name: name for name in names}, tables=tables)


def fraction(part: Floats, whole: Floats, nothing: float | Floats = np.nan) -> Floats:
    """Return part / whole, and `nothing` where whole is 0.

    >>> fraction(np.array([1.0, 0.0]), np.array([2.0, 0.0]), 1.0).tolist()
    [0.5, 1.0]
    """
    return np.asarray(np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), nothing))


def sum_in_order(values: Iterable[float]) -> float:
    """Return the sum, added one by one as in the release. From Python 3.12 on, `sum()` rounds differently."""
    return functools.reduce(operator.add, values, 0.0)


def adjust_p_values(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm's method, in the given order.

    >>> [round(p, 3) for p in adjust_p_values([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted
