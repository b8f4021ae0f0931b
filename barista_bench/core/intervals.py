"""Compute confidence intervals over resampling units, such as videos. They show which scores other units could give.

The same rules apply to every score of every command, except the scores of runs that stop early
(`runs/score/stopping.py`):

- The variance of a score is the jackknife's: how much the score changes when each unit in turn is left out.
- A score between two bounds (a score, 0 to 1; a difference of scores, -1 to 1) is treated as a fraction of independent
  trials. The number of trials is the number that would have this variance, reduced by Student's t for few units. The
  interval is Clopper and Pearson's for these trials. This is the interval of Korn and Graubard (Survey Methodology 24,
  1998) for proportions of clustered samples. It stays within the bounds and contains the score.
- If all units have the same value, the data do not show how other units differ. A kind of unit that does not occur
  among n units may have a frequency of up to 1 - 0.025^(1/n), and its value may be as far off as the bounds allow. At a
  bound this is Clopper and Pearson's interval of n trials: 4 of 4 videos without a mistake give [0.398, 1], 12 of 12
  give [0.735, 1].
- A score without bounds gets Student's interval.
- Fewer than two units give no interval.
- The level is `CONFIDENCE`. Tables and pages write "95%".

Only units with the score count: a score for hands depends only on the videos that show hands.

No random resamples are drawn, so there is no bootstrap and no seed. An interval of `results.json` needs four steps:

1. `counted_samples` (`runs/score/samples.py`) makes the task's statistics of each repetition, and names the unit of
   each sample: `Task.resampling_unit`, which is the video unless a task overrides it.
2. `interval_weights` makes 1 + 2V rows of weights for V units: all units, all but one unit each, and one unit each.
3. `metrics_of_units` computes every score for each row (`resampled_metrics` of `core/statistics.py`: weighted sums of
   samples), and takes the mean over repetitions.
4. `metric_interval` turns these 1 + 2V values into an interval, by the rules above.

`tests/stats/test_coverage.py` checks how often these intervals cover the true value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from barista_bench.core.example import Example, Scored
from barista_bench.core.guarding import guard, unit_of
from barista_bench.core.option_order import statistics_of
from barista_bench.core.statistics import Floats, SampleStatistics
from barista_bench.core.task import Task

CONFIDENCE = 0.95
PERMUTATIONS = 1000
"""Maximum number of permutations of a test (`stats.comparison`)."""
Bounds = tuple[float, float] | None
"""The minimum and maximum of a score; None if there is no bound."""
SCORE: Bounds = (0.0, 1.0)
DIFFERENCE: Bounds = (-1.0, 1.0)
_ROWS_AT_ONCE = 512
_ROUNDING = 1e-9
"""Standard errors smaller than this are rounding errors."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval. `units` is the number of resampling units that have the score.

    `method` is "effective trials", "unseen units" if all units have the same value, or "student" if the score has no
    bounds.
    """

    low: float
    high: float
    level: float
    method: Literal["effective trials", "unseen units", "student"]
    units: int


class ResampledRepetition(NamedTuple):
    """The samples of one repetition: the statistics of all samples, and the resampling unit of each sample."""

    statistics: SampleStatistics
    units: tuple[str, ...]

    @classmethod
    def of(cls, task: Task, samples: Sequence[Scored], about: Example | str) -> ResampledRepetition:
        """Return the repetition of these samples. `about` is the subject that errors name. Raises TaskError."""
        with guard(task, "statistics", about):
            statistics = statistics_of(task, samples)
        return cls(statistics, tuple(unit_of(task, sample.example) for sample in samples))

    def subset(self, samples: Sequence[int]) -> ResampledRepetition:
        """Return some of the samples, by their positions."""
        return ResampledRepetition(self.statistics.subset(samples), tuple(self.units[index] for index in samples))


def metrics_of(repetitions: Sequence[ResampledRepetition], units: Sequence[str], weights: Floats) -> dict[str, Floats]:
    """Return (D,) values per score for (D, V) weights of the V `units`.

    Values are means over repetitions. Scores that a repetition lacks are left out.
    """
    column = {unit: index for index, unit in enumerate(units)}
    by_repetition_index = []
    for repetition in repetitions:
        columns = np.array([column[unit] for unit in repetition.units], dtype=np.int64)
        by_repetition_index.append(repetition.statistics.resampled_metrics(weights, columns))
    shared = [name for name in by_repetition_index[0] if all(name in metrics for metrics in by_repetition_index)]
    return {name: np.mean([metrics[name] for metrics in by_repetition_index], axis=0) for name in shared}


def metrics_of_units(repetitions: Sequence[ResampledRepetition], units: Sequence[str]) -> dict[str, Floats]:
    """Return (1 + 2V,) values per score: the result of `metrics_of` for the rows of `interval_weights`."""
    count = len(units)
    blocks = [
        metrics_of(repetitions, units, interval_weights(count, range(start, min(start + _ROWS_AT_ONCE, 1 + 2 * count))))
        for start in range(0, 1 + 2 * count, _ROWS_AT_ONCE)
    ]
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def repetition_intervals(repetitions: Sequence[ResampledRepetition]) -> dict[str, Interval]:
    """Return an interval for each score, averaged over these repetitions. The units are those of their samples.

    The result is empty for fewer than two units. Scores that fewer than two units have are left out.
    """
    units = sorted({unit for repetition in repetitions for unit in repetition.units})
    if len(units) < 2:
        return {}
    intervals = {name: metric_interval(values) for name, values in metrics_of_units(repetitions, units).items()}
    return {name: interval for name, interval in intervals.items() if interval is not None}


def ratio_interval(
    part: Floats, whole: Floats, *, repetitions: Sequence[int], units: Sequence[str], bounds: Bounds = SCORE
) -> Interval | None:
    """Return the interval of sum(part) / sum(whole), averaged over repetitions.

    This covers means, fractions and pooled rates. The result is None for fewer than two units.

    Args:
        part: (S,) numerator of each sample.
        whole: (S,) denominator of each sample; ones for a plain mean.
        repetitions: (S,) the repetition of each sample.
        units: (S,) the resampling unit of each sample.
        bounds: bounds of the ratio.

    >>> ends = ratio_interval(np.array([1.0, 0, 1, 1]), np.ones(4), repetitions=[0] * 4, units=list("abcd"))
    >>> (round(ends.low, 3), round(ends.high, 3), ends.units) if ends else None
    (0.01, 1.0, 4)
    """
    names = sorted(set(units))
    if len(names) < 2:
        return None
    row = {repetition: index for index, repetition in enumerate(sorted(set(repetitions)))}
    column = {unit: index for index, unit in enumerate(names)}
    cells = [row[repetition] for repetition in repetitions], [column[unit] for unit in units]
    sums = np.zeros((2, len(row), len(column)))
    np.add.at(sums[0], cells, part)
    np.add.at(sums[1], cells, whole)
    totals = sums.sum(axis=2, keepdims=True)
    parts, wholes = np.concatenate([totals, totals - sums, sums], axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.where(wholes > 0, parts / wholes, np.nan).mean(axis=0)
    return metric_interval(values, bounds)


def interval_weights(count: int, rows: range | None = None) -> Floats:
    """Return (1 + 2V, V) weights, or only the rows in `rows`.

    The first row takes all V units. The next V rows leave out one unit each, and the last V rows take one unit each.
    """
    every = np.array(range(1 + 2 * count) if rows is None else rows)
    weights = np.repeat(every[:, np.newaxis] <= count, count, axis=1).astype(np.float64)
    (places,) = np.nonzero(every)
    weights[places, (every[places] - 1) % count] = every[places] > count
    return weights


def metric_interval(
    values: Floats, bounds: Bounds = SCORE, level: float = CONFIDENCE, *, telling: int | None = None
) -> Interval | None:
    """Return the interval of a score from its (1 + 2V,) values by the rows of `interval_weights`.

    Args:
        values: NaN where units lack the score.
        bounds: bounds of the score. A score outside the bounds has no interval.
        level: fraction of cases in which the interval should hold the true value.
        telling: number of units that inform about differences between units, if fewer units do so than have the score.

    Returns:
        None if the score is NaN, or if fewer than two units have the score or inform about differences.
    """
    point, (left_out, alone) = float(values[0]), values[1:].reshape(2, -1)
    has_metric = ~np.isnan(alone)
    count, others = int(has_metric.sum()), left_out[has_metric]
    units = count if telling is None else min(count, telling)
    if math.isnan(point) or count < 2 or np.isnan(others).any():
        return None
    error = jackknife_error(others)
    if units < 2 and error > _ROUNDING:
        return None
    known = np.append(others, point)
    if bounds is None or known.min() < bounds[0] - _ROUNDING or known.max() > bounds[1] + _ROUNDING:
        return _student(point, error, units, level)
    least, greatest = bounds
    span = greatest - least
    fraction, error = min(max((point - least) / span, 0.0), 1.0), error / span
    is_varied = error > _ROUNDING
    ends = _trial_ends(fraction, error, units, level) if is_varied else _unseen_ends(fraction, count, level)
    low, high = (least + span * end for end in ends)
    return Interval(
        min(low, point), max(high, point), level, "effective trials" if is_varied else "unseen units", count
    )


def jackknife_error(left_out: Floats) -> float:
    """Return the standard error of a score from its values (U,) without each unit in turn."""
    return math.sqrt((1 - 1 / len(left_out)) * float(((left_out - left_out.mean()) ** 2).sum()))


def _student(point: float, error: float, units: int, level: float) -> Interval | None:
    """Return Student's interval; None if all units are equal, since their spread is then unknown."""
    margin = _student_factor(units, level) * error
    return Interval(point - margin, point + margin, level, "student", units) if error > _ROUNDING else None


def _trial_ends(fraction: float, error: float, units: int, level: float) -> tuple[float, float]:
    """Return Clopper and Pearson's interval for the trials with this standard error, reduced by Student's t."""
    from scipy.special import betaincinv, ndtri  # imported on demand: this import takes longer than most commands

    tail = (1 - level) / 2
    trials = fraction * (1 - fraction) / error**2 * (float(ndtri(1 - tail)) / _student_factor(units, level)) ** 2
    hits, misses = trials * fraction, trials * (1 - fraction)
    low = float(betaincinv(hits, misses + 1, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, misses, 1 - tail)) if misses > 0 else 1.0
    return low, high


def _unseen_ends(fraction: float, units: int, level: float) -> tuple[float, float]:
    """Return the range of the mean if units of an unseen kind have the highest plausible frequency."""
    unseen = 1 - ((1 - level) / 2) ** (1 / units)
    return fraction - unseen * fraction, fraction + unseen * (1 - fraction)


def _student_factor(units: int, level: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(units - 1, (1 + level) / 2))
