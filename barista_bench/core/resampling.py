"""Confidence intervals: a bootstrap over resampling units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from barista_bench.core.example import Example, Scored, content_seed
from barista_bench.core.guarding import guarded, unit_of
from barista_bench.core.statistics import Floats, SampleStatistics
from barista_bench.core.task import Task

RESAMPLES = 1000
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval, and what it rests on: `units` resampling units were resampled `resamples` times.

    `method` is "bca", or "percentile" where bias and acceleration cannot be told (a figure that hardly varies).
    Fewer than about 10 units give intervals that are too narrow: say so where they are shown.
    """

    low: float
    high: float
    level: float
    method: Literal["bca", "percentile"]
    units: int
    resamples: int


def unit_resamples(count: int, resamples: int, seed: int) -> Floats:
    """(resamples, count) how often each resampling unit is taken, as many in all as there are, with replacement."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(count, np.full(count, 1 / count), size=resamples).astype(np.float64)


def bootstrap_seed(units: Iterable[str]) -> int:
    """The seed of a bootstrap, the same for the same units in any order, so that comparisons share resamples."""
    return content_seed("bootstrap", *sorted(set(units)))


class ResampledRun(NamedTuple):
    """The samples of one run: what their figures are made of, and the resampling unit of each of them."""

    statistics: SampleStatistics
    units: tuple[str, ...]

    @classmethod
    def of(cls, task: Task, samples: Sequence[Scored], about: Example | str) -> ResampledRun:
        """The run of these samples. `about` is the example or the runs that errors name. Raises TaskError."""
        with guarded(task, "statistics", about):
            statistics = task.statistics(samples)
        return cls(statistics, tuple(unit_of(task, sample.example) for sample in samples))

    def subset(self, samples: Sequence[int]) -> ResampledRun:
        """Some of the samples, by their positions."""
        return ResampledRun(self.statistics.subset(samples), tuple(self.units[at] for at in samples))


def figures_of(runs: Sequence[ResampledRun], units: Sequence[str], weights: Floats) -> dict[str, Floats]:
    """(D,) a figure, mean over runs, for (D, V) weights of the V `units`: those figures that every run has."""
    column = {unit: at for at, unit in enumerate(units)}
    by_run = []
    for run in runs:
        columns = np.array([column[unit] for unit in run.units], dtype=np.int64)
        by_run.append(run.statistics.resampled_figures(weights, columns))
    shared = [name for name in by_run[0] if all(name in figures for figures in by_run)]
    return {name: np.mean([figures[name] for figures in by_run], axis=0) for name in shared}


def run_intervals(runs: Sequence[ResampledRun], *, resamples: int = RESAMPLES) -> dict[str, Interval]:
    """An interval for each figure, mean over these runs, over the resampling units of their samples.

    None at all for fewer than two units, and none for a figure that neither the samples nor any resample of them has.
    """
    units = sorted({unit for run in runs for unit in run.units})
    if len(units) < 2:
        return {}
    values = figures_of(runs, units, interval_weights(units, resamples))
    intervals = {name: resampled_interval(resampled, len(units)) for name, resampled in values.items()}
    return {name: interval for name, interval in intervals.items() if interval is not None}


def ratio_interval(
    part: Floats, whole: Floats, *, runs: Sequence[int], units: Sequence[str], resamples: int = RESAMPLES
) -> Interval | None:
    """The interval of sum(part) / sum(whole), taken of each run and averaged over runs: means, fractions, pooled rates.

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
    return resampled_interval(values, len(names))


def interval_weights(units: Sequence[str], resamples: int) -> Floats:
    """(1 + V + D, V) the V units as they are, without each in turn, and as they are resampled."""
    count = len(units)
    return np.vstack([np.ones(count), 1 - np.eye(count), unit_resamples(count, resamples, bootstrap_seed(units))])


def resampled_interval(values: Floats, count: int, level: float = LEVEL) -> Interval | None:
    """The interval of a figure from its (1 + V + D,) values by rows of `interval_weights`; `count` is V, at least 2."""
    return interval(float(values[0]), values[1 + count :], values[1 : 1 + count], units=count, level=level)


def interval(
    point: float, resampled: Floats, jackknife: Floats | None = None, *, units: int, level: float = LEVEL
) -> Interval | None:
    """The interval of one figure, which it holds.

    Args:
        point: the figure itself.
        resampled: (D,) of each resample; NaN are passed over.
        jackknife: (V,) the figure without each unit in turn, for BCa; None for the plain percentiles.
        units: how many units were resampled.
        level: fraction of cases in which the interval should hold the true value.

    Returns:
        None where the point or all resamples are NaN.
    """
    present = np.sort(resampled[~np.isnan(resampled)])
    if np.isnan(point) or not len(present):
        return None
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    bca_tails = None if jackknife is None else _bca_tails(point, present, jackknife, tails)
    low, high = np.quantile(present, tails if bca_tails is None else bca_tails)
    low, high = min(float(low), point), max(float(high), point)
    return Interval(low, high, level, "percentile" if bca_tails is None else "bca", units, len(present))


def _bca_tails(point: float, resampled: Floats, jackknife: Floats, tails: Floats) -> Floats | None:
    """The BCa tails, at which to cut instead of at `tails`; None where bias or acceleration are not defined."""
    from scipy.special import ndtr, ndtri  # when asked for: it takes longer to load than most commands run

    below = ((resampled < point).sum() + (resampled <= point).sum()) / (2 * len(resampled))
    influences = jackknife.mean() - jackknife
    total = float((influences**2).sum())
    if not 0 < below < 1 or not total > 0:  # also where a figure is NaN without some unit
        return None
    bias, acceleration = ndtri(below), float((influences**3).sum()) / (6 * total**1.5)
    z = bias + ndtri(tails)
    cuts = ndtr(bias + z / (1 - acceleration * z))
    return np.asarray(cuts) if np.isfinite(cuts).all() and cuts[0] < cuts[1] else None
