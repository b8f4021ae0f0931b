"""Estimate each level's share of the gain from aids, with confidence intervals over videos.

All values are (1 + 2V,) arrays for V units (videos): the value with all units, the values without each unit in turn,
and the values with each unit only. They correspond to the rows of `core.intervals.interval_weights`. So differences
are paired, and intervals are computed as in the rest of the package.

    gain        Shapley value of a level in S(all aids) - S(none)
    inert       the same for the inert control
    share       gain - inert, signed

A share is computed from runs in four steps:

1. `diagnose_task` (`running.py`) scores the run of each condition, `OUT/<condition>/<task>`. It uses the examples that
   are answered in every condition of their plan (`conditions.py`), each with its mean score over repetitions.
2. Design `paths`: an example has one order of its levels, and is asked after each further aid. The gain of a level in
   an example is the score with its aid minus the score before it, or 0 if the example has no such aid. `path_metrics`
   takes the mean over examples. Orders are spread evenly, so this mean estimates the Shapley value.
   Design `full`: every set of levels is asked. `_game_metrics` (`running.py`) computes the primary metric for each set,
   and `game_metrics` its Shapley values (`shapley_value`).
3. The same is computed with inert aids, which hold as many true facts that the question does not need: `inert`.
4. `estimates_of` subtracts, and `estimate_of` adds the interval and the p-value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from barista_bench.aids.levels import LevelName
from barista_bench.core.intervals import DIFFERENCE, SCORE, Bounds, interval_weights, jackknife_error, metric_interval
from barista_bench.core.statistics import Floats
from barista_bench.diagnosis.conditions import LevelSet
from barista_bench.files.reading import Strict
from barista_bench.tables import RangedScore

_NO_ERROR: Final = 1e-9
BELIEF: Final = 0.1
"""Threshold for belief in any text: how much more often inert aids turn right answers wrong than true aids do."""
ALPHA: Final = 0.05
USED: Final = 0.5
"""Share of followed answers below which an aid counts as unused."""


class Estimate(Strict):
    """A value, its 95 % interval over videos, and the p-value of a two-sided test against zero.

    None if not available: the interval and the p-value need at least two videos.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None

    @property
    def in_words(self) -> str:
        if self.value is None:
            return "unknown"
        if self.low is None or self.high is None:
            return format_short(self.value)
        return f"{format_short(self.value)} [{format_short(self.low)}, {format_short(self.high)}]"

    @property
    def as_change(self) -> str:
        """Describe a change of the score: "rises by .21 [.15, .27]", "falls by .03 [-.01, .07]"."""
        if self.value is None or abs(self.value) < 0.005:
            return f"changes by {self.in_words}"
        if self.value > 0:
            return f"rises by {self.in_words}"
        ends = {} if self.low is None or self.high is None else {"low": -self.high, "high": -self.low}
        return f"falls by {Estimate(value=-self.value, **ends).in_words}"

    @property
    def cell(self) -> RangedScore | float | None:
        if self.value is None or self.low is None or self.high is None:
            return self.value
        return RangedScore(self.value, self.low, self.high)


class LevelEstimates(Strict):
    """The effects of the aids of one level.

    `uptake` is the share of answers that follow the false aid. `clear` is this share among the answers that agree with
    the false aid or with the truth, so other errors do not lower it.
    """

    gain: Estimate
    inert: Estimate
    share: Estimate
    first: Estimate
    last: Estimate
    uptake: Estimate
    clear: Estimate


@dataclass(frozen=True, slots=True)
class Estimates:
    """The estimates of one task and model.

    Args:
        plain: the score without aids.
        remainder: 1 minus the score with all aids.
        text: the score with all inert aids minus the score without aids, which is the effect of any text.
        belief: the score with all true aids minus the score with all inert aids, over answers that are right without
            aids.
    """

    plain: Estimate
    remainder: Estimate
    text: Estimate
    belief: Estimate
    levels: Mapping[LevelName, LevelEstimates]


def estimate_of(values: Floats, bounds: Bounds = DIFFERENCE) -> Estimate:
    """Compute the estimate of a score from its (1 + 2V,) values."""
    point, count = float(values[0]), int((~np.isnan(values[1:].reshape(2, -1)[1])).sum())
    interval = metric_interval(values, bounds)
    if interval is None:
        return Estimate(value=None if math.isnan(point) else point)
    p = _p_of_zero(point, values[1 : 1 + (len(values) - 1) // 2], count)
    return Estimate(value=point, low=interval.low, high=interval.high, p=p)


def _p_of_zero(point: float, left_out: Floats, count: int) -> float:
    """Return the p-value of Student's test on the jackknife.

    If all units agree, return the probability that so many units agree by chance.
    """
    from scipy.special import stdtr

    error = jackknife_error(left_out[~np.isnan(left_out)])
    if error > _NO_ERROR:
        return float(2 * stdtr(count - 1, -abs(point) / error))
    return min(1.0, 2 * (0.5 / (0.5 + abs(point) / 2)) ** count)


def shapley_value(level: LevelName, levels: Iterable[LevelName], score: Callable[[LevelSet], Floats]) -> Floats:
    """Return the Shapley value of a level from the scores of all sets of levels."""
    others = [other for other in levels if other != level]
    count, total = len(others) + 1, np.zeros(1)
    for size in range(count):
        weight = math.factorial(size) * math.factorial(count - size - 1) / math.factorial(count)
        for told in map(frozenset, combinations(others, size)):
            total = total + weight * (score(told | {level}) - score(told))
    return total


class UnitMeans:
    """Computes means of samples for the rows of `interval_weights`. `units` names the unit of each sample."""

    def __init__(self, units: Sequence[str]) -> None:
        names = sorted(set(units))
        column = {unit: index for index, unit in enumerate(names)}
        self._columns: NDArray[np.intp] = np.array([column[unit] for unit in units], dtype=np.intp)
        self._weights = interval_weights(len(names))

    def sums(self, values: Floats) -> Floats:
        return self._weights @ np.bincount(self._columns, values, minlength=self._weights.shape[1])

    def mean(self, values: Floats, weights: Floats | None = None) -> Floats:
        """Return the means (1 + 2V,) of (S,) values, weighted by (S,) weights."""
        weights = np.ones_like(values) if weights is None else weights
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.sums(values * weights) / self.sums(weights)


@dataclass(frozen=True, slots=True)
class PathScores:
    """The scores of E examples along their orders of K levels.

    Args:
        units: (E,) the video of each example.
        position: (E, K) integers: the position of each level in the example's order, or -1 if the example has no such
            aid.
        true, inert: (E, K + 1) scores after each number of aids. After an example's last aid the score is repeated.
    """

    units: Sequence[str]
    levels: tuple[LevelName, ...]
    position: NDArray[np.int64]
    true: Floats
    inert: Floats


def gains_of_steps(scores: Floats, position: NDArray[np.int64]) -> Floats:
    """Return the gain of each level at its position (E, K). The gain is zero if the example has no such aid."""
    gains = np.diff(scores, axis=1)
    return np.where(position >= 0, np.take_along_axis(gains, np.maximum(position, 0), axis=1), 0.0)


def path_metrics(scores: PathScores) -> dict[str, Floats]:
    """Return the values of the design `paths` by name: `gain objects`, `plain`, ..."""
    means, position = UnitMeans(scores.units), scores.position
    gains, inert_gains = gains_of_steps(scores.true, position), gains_of_steps(scores.inert, position)
    told = position >= 0
    last_place = told.sum(axis=1, keepdims=True) - 1
    metrics = {"plain": means.mean(scores.true[:, 0]), "all": means.mean(scores.true[:, -1])}
    metrics["text"] = means.mean(scores.inert[:, -1] - scores.inert[:, 0])
    for index, level in enumerate(scores.levels):
        metrics[f"gain {level}"] = means.mean(gains[:, index])
        metrics[f"inert {level}"] = means.mean(inert_gains[:, index])
        is_told = means.mean(told[:, index].astype(float))
        for name, place in (("first", np.zeros_like(last_place)), ("last", last_place)):
            there = (told[:, index] & (position[:, index] == place[:, 0])).astype(float)
            metrics[f"{name} {level}"] = is_told * means.mean(gains[:, index], there)
    return metrics


def game_metrics(
    levels: tuple[LevelName, ...], true: Mapping[LevelSet, Floats], inert: Mapping[LevelSet, Floats]
) -> dict[str, Floats]:
    """Return the values of the design `full` by name, from the scores (1 + 2V,) of every set of levels."""
    everything, nothing = frozenset(levels), frozenset[LevelName]()
    metrics = {"plain": true[nothing], "all": true[everything], "text": inert[everything] - inert[nothing]}
    for level in levels:
        metrics[f"gain {level}"] = shapley_value(level, levels, true.__getitem__)
        metrics[f"inert {level}"] = shapley_value(level, levels, inert.__getitem__)
        metrics[f"first {level}"] = true[frozenset({level})] - true[nothing]
        metrics[f"last {level}"] = true[everything] - true[everything - {level}]
    return metrics


def belief_metric(units: Sequence[str], plain: Floats, true_all: Floats, inert_all: Floats) -> Floats:
    """Return the means (1 + 2V,) of `true_all - inert_all`, weighted by the scores without aids."""
    return UnitMeans(units).mean(true_all - inert_all, plain)


def uptake_metrics(units: Sequence[str], followed: Floats, kept: Floats) -> tuple[Floats, Floats]:
    """Return the values (1 + 2V,) of `uptake` and `clear`.

    Args:
        followed: (E,) share of the answers with the false aid that follow the aid. NaN if there is no such aid.
        kept: (E,) share of these answers that agree with the truth.
    """
    known = ~np.isnan(followed)
    follows, clear = np.where(known, followed, 0.0), np.where(known, followed + kept, 0.0)
    means = UnitMeans(units)
    with np.errstate(invalid="ignore", divide="ignore"):
        return means.mean(follows, known.astype(float)), means.sums(follows) / means.sums(clear)


def estimates_of(
    levels: tuple[LevelName, ...],
    metrics: Mapping[str, Floats],
    belief: Floats,
    uptakes: Mapping[LevelName, tuple[Floats, Floats]],
) -> Estimates:
    """Return all estimates from (1 + 2V,) values."""
    by_level = {
        level: LevelEstimates(
            gain=estimate_of(metrics[f"gain {level}"]),
            inert=estimate_of(metrics[f"inert {level}"]),
            share=estimate_of(metrics[f"gain {level}"] - metrics[f"inert {level}"]),
            first=estimate_of(metrics[f"first {level}"]),
            last=estimate_of(metrics[f"last {level}"]),
            uptake=estimate_of(uptakes[level][0], SCORE),
            clear=estimate_of(uptakes[level][1], SCORE),
        )
        for level in levels
    }
    return Estimates(
        plain=estimate_of(metrics["plain"], SCORE),
        remainder=estimate_of(1 - metrics["all"], SCORE),
        text=estimate_of(metrics["text"]),
        belief=estimate_of(belief),
        levels=by_level,
    )


def cause_p_value(estimates: LevelEstimates) -> float:
    """Return the larger p-value of `gain` and `share`.

    If an interval includes zero or less, or is missing, return 1, since the level is no cause.
    """
    tests = [(each.low or 0.0, each.p if each.p is not None else 1.0) for each in (estimates.gain, estimates.share)]
    return max(p for _, p in tests) if all(low > 0 for low, _ in tests) else 1.0


def is_unused(estimates: LevelEstimates) -> bool:
    """Return whether an aid is unused: few answers follow the false aid, and `clear` is not clearly above one half."""
    uptake, clear = estimates.uptake.high, estimates.clear.low
    return uptake is not None and uptake < USED and not (clear is not None and clear > USED)


def believes_any_text(estimates: Estimates) -> bool:
    """Return whether inert text turns many right answers wrong while true text of the same length does not."""
    text, belief = estimates.text, estimates.belief.low or 0.0
    return (text.value or 0.0) < 0 and text.p is not None and text.p < ALPHA and belief > BELIEF


def format_short(value: float) -> str:
    """Format a number with two decimals and without a leading zero, as in papers.

    >>> format_short(0.214), format_short(-0.03), format_short(1), format_short(-0.001)
    ('.21', '-.03', '1.00', '.00')
    """
    text = f"{value:.2f}"
    text = "0.00" if text == "-0.00" else text
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text
