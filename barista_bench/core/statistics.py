"""Figures from samples, stated once: what each sample adds, what is made of the weighted sum, and its intervals.

A task turns the samples of one run into `SampleStatistics`: answers are compared with the reference there, once.
Everything else is a question of weights. The published figures count every sample once; a bootstrap and a permutation
test count it as often as a resample takes it; a breakdown counts the samples of a group; the score of one sample counts
it alone.

The bootstrap resamples videos, or what else a task keeps together (`Task.resampling_unit`), with replacement: samples
of one video resemble each other, and so do the runs of one example. All samples and runs of a resampled video come
along, and figures are averaged over runs, as the published one is. Intervals are bias-corrected and accelerated (BCa;
Efron 1987, doi:10.1080/01621459.1987.10478410), with one video left out at a time for the acceleration; the plain
percentiles where that cannot be told. Resamples depend on the videos alone: models which answered the same set are
resampled alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from barista_bench.core.example import Scored, content_seed

if TYPE_CHECKING:
    from barista_bench.core.task import Task

Floats: TypeAlias = NDArray[np.float64]
Row: TypeAlias = Mapping[Hashable, float]
"""What one sample adds, by name."""
Sums: TypeAlias = Mapping[Hashable, Floats]
"""(D,) of what all samples of each of D resamples add, by name."""
Figures: TypeAlias = dict[str, Floats]
"""(D,) a figure of each resample; NaN where a resample has none."""


WIDTH = 8
"""Columns from which on a product of matrices adds up as that of a wide table does."""
RESAMPLES_AT_ONCE = 256


class SampleStatistics(ABC):
    """What the figures of the samples of one run are made of, worked out once; S samples in their order."""

    @abstractmethod
    def figures(self, weights: Floats) -> Figures:
        """The figures of D resamples.

        Args:
            weights: (D, S) how often each resample takes each sample, whole numbers of 0 and more.
        """

    def resampled(self, weights: Floats, units: NDArray[np.int64]) -> Figures:
        """As `figures`, where samples are resampled with what they belong to.

        Args:
            weights: (D, V) how often each resample takes each of V units.
            units: (S,) the one that each sample belongs to.
        """
        return self.figures(weights[:, units])

    @abstractmethod
    def scores(self) -> dict[str, Floats]:
        """(S,) the figures of each sample alone, by the names that stand for one sample."""

    @abstractmethod
    def among(self, samples: Sequence[int]) -> SampleStatistics:
        """The statistics of some of the samples, by their positions, in that order."""

    def tables(self) -> dict[str, Any]:
        """What is shown beside the figures of all samples: counts, and figures by group. JSON values."""
        return {}

    def published(self) -> dict[str, Any]:
        """The figures that all samples together have, and the tables."""
        once = self.figures(np.ones((1, self.size)))
        return {**{name: float(value[0]) for name, value in once.items() if not np.isnan(value[0])}, **self.tables()}

    @property
    @abstractmethod
    def size(self) -> int:
        """S."""


class SumStatistics(SampleStatistics):
    """Statistics of figures that are functions of sums over samples.

    Args:
        rows: (S,) what each sample adds; a name that a row leaves out counts 0 there.
        figures: from sums of any resamples to figures; `n`, if no row has it, counts samples.
        sample_scores: figure to the name that it has in the score of one sample; here each by its own name.
        tables: from the sums over all samples to what is shown beside the figures.

    >>> rows = [{"right": 1.0}, {"right": 0.0}]
    >>> accuracy = SumStatistics(rows, lambda sums: {"accuracy": share(sums["right"], sums["n"])})
    >>> accuracy.published(), accuracy.figures(np.array([[1.0, 0.0], [2.0, 1.0]]))["accuracy"].round(2).tolist()
    ({'accuracy': 0.5}, [1.0, 0.67])
    """

    def __init__(
        self,
        rows: Sequence[Row],
        figures: Callable[[Sums], Figures],
        *,
        sample_scores: Mapping[str, str] | None = None,
        tables: Callable[[Row], dict[str, Any]] | None = None,
    ) -> None:
        self._names: dict[Hashable, int] = {"n": 0}
        places = [self._names.setdefault(name, len(self._names)) for row in rows for name in row]
        lines = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        self._table: NDArray[Any] = np.zeros((len(rows), len(self._names)))
        self._table[:, 0] = 1.0
        self._table[lines, places] = np.fromiter(chain.from_iterable(row.values() for row in rows), np.float64)
        with np.errstate(invalid="ignore"):  # of what is no number
            small = self._table.astype(np.int8)
        if np.array_equal(small, self._table):  # counts of single samples, an eighth of the memory
            self._table = small
        self._finalise, self._sample_scores, self._tables = figures, sample_scores, tables

    def among(self, samples: Sequence[int]) -> SumStatistics:
        part = copy(self)
        part._table = self._table[np.asarray(samples, dtype=np.int64)]
        return part

    @property
    def size(self) -> int:
        return len(self._table)

    def figures(self, weights: Floats) -> Figures:
        # Not a matrix product for the plain sum: its order of summing, and with it the last digit, is the machine's.
        plain = weights.shape[0] == 1 and bool((weights == 1).all())
        return self._defined(self._total()[None] if plain else weights.astype(np.float64, copy=False) @ self._table)

    def resampled(self, weights: Floats, units: NDArray[np.int64]) -> Figures:
        """Whole numbers, whose sums are exact in any order, are added up by resampling unit first."""
        whole = np.asarray((np.rint(self._table) == self._table).all(axis=0))
        sums = np.empty((len(weights), len(whole)))
        order = np.argsort(units, kind="stable")
        present, starts = np.unique(units[order], return_index=True)
        by_cluster = np.zeros((weights.shape[1], int(whole.sum())))
        by_cluster[present] = np.add.reduceat(self._table[order][:, whole], starts, axis=0, dtype=np.float64)
        sums[:, whole] = weights @ by_cluster
        if not whole.all():
            # Wide enough for a product of matrices: that of a matrix and a column adds up in another order.
            count = int((~whole).sum())
            others = np.zeros((len(self._table), max(WIDTH, count)))
            others[:, :count] = self._table[:, ~whole]
            for start in range(0, len(weights), RESAMPLES_AT_ONCE):
                part = weights[start : start + RESAMPLES_AT_ONCE]
                sums[start : start + RESAMPLES_AT_ONCE, ~whole] = (part[:, units] @ others)[:, :count]
        return self._defined(sums)

    def _defined(self, sums: Floats) -> Figures:
        """The figures of these sums, NaN where there is no sample."""
        figures = self._finalised(sums)
        empty = sums[:, 0] == 0
        return {name: np.where(empty, np.nan, values) for name, values in figures.items()} if empty.any() else figures

    def scores(self) -> dict[str, Floats]:
        alone = self._finalised(self._table.astype(np.float64))
        names = {name: name for name in alone} if self._sample_scores is None else self._sample_scores
        return {names[name]: alone[name] for name in names}

    def tables(self) -> dict[str, Any]:
        if self._tables is None:
            return {}
        return self._tables(dict(zip(self._names, self._total().tolist(), strict=True)))

    def _total(self) -> Floats:
        if self._table.dtype == np.int8:
            return self._table.sum(axis=0, dtype=np.float64)
        return np.add.accumulate(self._table, axis=0)[-1] if len(self._table) else np.zeros(len(self._names))

    def _finalised(self, sums: Floats) -> Figures:
        return self._finalise({name: sums[:, at] for name, at in self._names.items()})


def mean_statistics(
    scores: Sequence[Mapping[str, float]],
    answered: Sequence[bool],
    *,
    tables: Callable[[Row], dict[str, Any]] | None = None,
) -> SumStatistics:
    """Statistics of figures that are plain means over samples, and `coverage`, the share of readable answers.

    >>> mean_statistics([{"accuracy": 1.0}, {"accuracy": 0.0}], [True, False]).published()
    {'accuracy': 0.5, 'coverage': 0.5}
    """
    names = list(dict.fromkeys(name for score in scores for name in score))
    rows: list[Row] = []
    for score, is_answered in zip(scores, answered, strict=True):
        rows.append({**dict[Hashable, float](score.items()), "answered": float(is_answered)})

    def means(sums: Sums) -> Figures:
        return {
            **{name: share(sums[name], sums["n"]) for name in names},
            "coverage": share(sums["answered"], sums["n"]),
        }

    return SumStatistics(rows, means, sample_scores={name: name for name in names}, tables=tables)


def share(part: Floats, whole: Floats, nothing: float | Floats = np.nan) -> Floats:
    """part / whole, and `nothing` where whole is 0.

    >>> share(np.array([1.0, 0.0]), np.array([2.0, 0.0]), 1.0).tolist()
    [0.5, 1.0]
    """
    return np.asarray(np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), nothing))


RESAMPLES = 1000
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval, and what it rests on: `units` videos were resampled `resamples` times.

    `method` is "bca", or "percentile" where bias and acceleration cannot be told (a figure that hardly varies).
    Fewer than about 10 units give intervals that are too narrow: say so where they are shown.
    """

    low: float
    high: float
    level: float
    method: Literal["bca", "percentile"]
    units: int
    resamples: int


def video_resamples(videos: int, resamples: int, seed: int) -> Floats:
    """(resamples, videos) how often each video is taken, as many in all as there are, with replacement."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(videos, np.full(videos, 1 / videos), size=resamples).astype(np.float64)


def without_each(videos: int) -> Floats:
    """(videos, videos) all but one, for the jackknife."""
    return 1 - np.eye(videos)


def bootstrap_seed(videos: Iterable[str]) -> int:
    return content_seed("bootstrap", *sorted(set(videos)))


class ResampledRun(NamedTuple):
    """The samples of one run: what their figures are made of, and the resampling unit of each of them."""

    statistics: SampleStatistics
    units: tuple[str, ...]

    @classmethod
    def of(cls, task: Task, samples: Sequence[Scored]) -> ResampledRun:
        return cls(task.statistics(samples), tuple(task.resampling_unit(sample.example) for sample in samples))

    def among(self, samples: Sequence[int]) -> ResampledRun:
        """Some of the samples, by their positions."""
        return ResampledRun(self.statistics.among(samples), tuple(self.units[at] for at in samples))


def figures_of(runs: Sequence[ResampledRun], units: Sequence[str], weights: Floats) -> dict[str, Floats]:
    """(D,) a figure, mean over runs, for (D, V) weights of the V `units`; only figures that every run has."""
    column = {unit: at for at, unit in enumerate(units)}
    by_run = []
    for run in runs:
        columns = np.array([column[unit] for unit in run.units], dtype=np.int64)
        by_run.append(run.statistics.resampled(weights, columns))
    shared = [name for name in by_run[0] if all(name in figures for figures in by_run)]
    return {name: np.mean([figures[name] for figures in by_run], axis=0) for name in shared}


def run_intervals(
    runs: Sequence[ResampledRun], *, resamples: int = RESAMPLES, level: float = LEVEL
) -> dict[str, Interval]:
    """An interval for each figure, mean over these runs, over the resampling units of their samples.

    None at all for fewer than two units, and none for a figure that neither the samples nor any resample of them has.
    """
    units = sorted({unit for run in runs for unit in run.units})
    if len(units) < 2:
        return {}
    values = figures_of(runs, units, interval_weights(units, resamples))
    ends = {name: resampled_interval(resampled, len(units), level) for name, resampled in values.items()}
    return {name: interval for name, interval in ends.items() if interval is not None}


def ratio_interval(
    part: Floats,
    whole: Floats,
    *,
    runs: Sequence[int],
    units: Sequence[str],
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Interval | None:
    """The interval of sum(part) / sum(whole), taken of each run and averaged over runs: means, shares, pooled rates.

    The resamples are those that `run_intervals` makes of the same units. None for fewer than two units.

    Args:
        part: (S,) of each sample.
        whole: (S,) of each sample; ones for a plain mean.
        runs: (S,) the run that the sample is of.
        units: (S,) the resampling unit.

    >>> ends = ratio_interval(np.array([1.0, 0, 1, 1]), np.ones(4), runs=[0] * 4, units=list("aabb"), resamples=100)
    >>> (ends.low, ends.high, ends.units) if ends else None
    (0.5, 1.0, 2)
    """
    names = sorted(set(units))
    if len(names) < 2:
        return None
    row = {run: at for at, run in enumerate(sorted(set(runs)))}
    column = {unit: at for at, unit in enumerate(names)}
    cells = [row[run] for run in runs], [column[unit] for unit in units]
    sums = np.zeros((2, len(row), len(column)))
    np.add.at(sums[0], cells, part)
    np.add.at(sums[1], cells, whole)
    parts, wholes = sums @ interval_weights(names, resamples).T
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.where(wholes > 0, parts / wholes, np.nan).mean(axis=0)
    return resampled_interval(values, len(names), level)


def interval_weights(units: Sequence[str], resamples: int) -> Floats:
    """(1 + V + D, V) the V units as they are, without each in turn, and as they are resampled."""
    count = len(units)
    return np.vstack([np.ones(count), without_each(count), video_resamples(count, resamples, bootstrap_seed(units))])


def resampled_interval(values: Floats, count: int, level: float = LEVEL) -> Interval | None:
    """Of the (1 + V + D,) values that a figure takes by each row of `interval_weights`; `count` is V, two or more."""
    return interval(float(values[0]), values[1 + count :], values[1 : 1 + count], units=count, level=level)


def interval(
    point: float, resampled: Floats, left_out: Floats | None = None, *, units: int, level: float = LEVEL
) -> Interval | None:
    """The interval of one figure.

    Args:
        point: the figure itself.
        resampled: (D,) of each resample; NaN are passed over.
        left_out: (V,) without each video in turn, for BCa; None for the plain percentiles.
        units: how many videos were resampled.
        level: share of cases in which the interval should hold the reference.

    Returns:
        None where the point or all resamples are NaN.
    """
    present = np.sort(resampled[~np.isnan(resampled)])
    if np.isnan(point) or not len(present):
        return None
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    moved = None if left_out is None else _bca_tails(point, present, left_out, tails)
    low, high = np.quantile(present, tails if moved is None else moved)
    return Interval(float(low), float(high), level, "percentile" if moved is None else "bca", units, len(present))


def _bca_tails(point: float, resampled: Floats, left_out: Floats, tails: Floats) -> Floats | None:
    """Where to cut the resamples instead of at `tails`; None where bias or acceleration are not defined."""
    from scipy.special import ndtr, ndtri  # when asked for: it takes longer to load than most commands run

    below = ((resampled < point).sum() + (resampled <= point).sum()) / (2 * len(resampled))
    spread = left_out.mean() - left_out
    total = float((spread**2).sum())
    if not 0 < below < 1 or not total > 0:  # also where a figure is NaN without some video
        return None
    bias, acceleration = ndtri(below), float((spread**3).sum()) / (6 * total**1.5)
    z = bias + ndtri(tails)
    moved = ndtr(bias + z / (1 - acceleration * z))
    return np.asarray(moved) if np.isfinite(moved).all() and moved[0] < moved[1] else None
