"""What answers with aids tell: shares of the levels in what aids gain, with intervals over videos.

Everything here is made of figures by the rows of `core.resampling.interval_weights` (all units, without each in turn,
each alone), so that every difference is paired and every interval follows the one rule of the package.

    gain        Shapley value of a level in S(all aids) - S(none)
    inert       the same of its inert control
    share       gain - inert, signed
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from barista_bench.aids.levels import Level
from barista_bench.core.resampling import DIFFERENCE, SCORE, Bounds, figure_interval, interval_weights
from barista_bench.core.statistics import Floats
from barista_bench.diagnosis.conditions import LevelSet

_NO_ERROR: Final = 1e-9
BELIEF: Final = 0.1
"""How much more of what it had right an inert text must cost than a true one before a model believes any text."""
ALPHA: Final = 0.05
USED: Final = 0.5
"""An aid is used if answers follow it more often than this."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 95% interval over videos; p: of a two-sided test that it is zero. NaN: not to be had."""

    value: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True)
class LevelEstimates:
    """What the aids of one level do.

    `uptake` is the share of answers that follow the false aid; `clear` the same of those that agree with it or with the
    truth: other faults do not lower it.
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
        plain: the score without an aid.
        remainder: what is missing to a full score with all aids.
        text: what all inert aids together change: the effect of any text.
        belief: of what is right without aids, how much more inert aids cost than true ones.
    """

    plain: Estimate
    remainder: Estimate
    text: Estimate
    belief: Estimate
    levels: Mapping[Level, LevelEstimates]


def estimate_of(values: Floats, bounds: Bounds = DIFFERENCE) -> Estimate:
    """The estimate of a figure from its (1 + 2V,) values."""
    point, count = float(values[0]), int((~np.isnan(values[1:].reshape(2, -1)[1])).sum())
    interval = figure_interval(values, bounds)
    if interval is None:
        return Estimate(point, math.nan, math.nan, math.nan)
    return Estimate(
        point, interval.low, interval.high, _p_of_zero(point, values[1 : 1 + (len(values) - 1) // 2], count)
    )


def _p_of_zero(point: float, left_out: Floats, count: int) -> float:
    """Student's test of the jackknife; where all units have one value, how likely so many show no other kind."""
    from scipy.special import stdtr

    others = left_out[~np.isnan(left_out)]
    error = math.sqrt((count - 1) / count * float(((others - others.mean()) ** 2).sum()))
    if error > _NO_ERROR:
        return float(2 * stdtr(count - 1, -abs(point) / error))
    return min(1.0, 2 * (0.5 / (0.5 + abs(point) / 2)) ** count)


def shapley(level: Level, levels: Iterable[Level], score: Callable[[LevelSet], Floats]) -> Floats:
    """The Shapley value of a level in a game that gives each set of levels a score."""
    others = [other for other in levels if other != level]
    count, total = len(others) + 1, np.zeros(1)
    for size in range(count):
        weight = math.factorial(size) * math.factorial(count - size - 1) / math.factorial(count)
        for told in map(frozenset, combinations(others, size)):
            total = total + weight * (score(told | {level}) - score(told))
    return total


class UnitMeans:
    """Means of samples by the rows of `interval_weights`, from the unit that each sample belongs to."""

    def __init__(self, units: Sequence[str]) -> None:
        names = sorted(set(units))
        column = {unit: at for at, unit in enumerate(names)}
        self._columns: NDArray[np.intp] = np.array([column[unit] for unit in units], dtype=np.intp)
        self._weights = interval_weights(len(names))

    def sums(self, values: Floats) -> Floats:
        return self._weights @ np.bincount(self._columns, values, minlength=self._weights.shape[1])

    def mean(self, values: Floats, weights: Floats | None = None) -> Floats:
        """(1 + 2V,) the mean of (S,) values, weighted by (S,) weights."""
        weights = np.ones_like(values) if weights is None else weights
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.sums(values * weights) / self.sums(weights)


@dataclass(frozen=True, slots=True)
class PathScores:
    """The scores of E examples along their orders of K levels; all arrays are of floats.

    Args:
        units: (E,) the video of each.
        position: (E, K) the place of each level in the example's order; -1 where the example is not told it.
        true, inert: (E, K + 1) scores after so many steps; after an example's last step the score stays.
    """

    units: Sequence[str]
    levels: tuple[Level, ...]
    position: NDArray[np.int64]
    true: Floats
    inert: Floats


def _steps(scores: Floats, position: NDArray[np.int64]) -> Floats:
    """(E, K) what each level adds at its place; zero where the example is not told it."""
    gains = np.diff(scores, axis=1)
    return np.where(position >= 0, np.take_along_axis(gains, np.maximum(position, 0), axis=1), 0.0)


def path_figures(scores: PathScores) -> dict[str, Floats]:
    """The figures of the design `paths`, by name: `gain objects`, `plain`, ..."""
    means, position = UnitMeans(scores.units), scores.position
    gains, inert_gains = _steps(scores.true, position), _steps(scores.inert, position)
    told = position >= 0
    last_place = told.sum(axis=1, keepdims=True) - 1
    figures = {"plain": means.mean(scores.true[:, 0]), "all": means.mean(scores.true[:, -1])}
    figures["text"] = means.mean(scores.inert[:, -1] - scores.inert[:, 0])
    for at, level in enumerate(scores.levels):
        figures[f"gain {level}"] = means.mean(gains[:, at])
        figures[f"inert {level}"] = means.mean(inert_gains[:, at])
        is_told = means.mean(told[:, at].astype(float))
        for name, place in (("first", np.zeros_like(last_place)), ("last", last_place)):
            there = (told[:, at] & (position[:, at] == place[:, 0])).astype(float)
            figures[f"{name} {level}"] = is_told * means.mean(gains[:, at], there)
    return figures


def game_figures(
    levels: tuple[Level, ...], true: Mapping[LevelSet, Floats], inert: Mapping[LevelSet, Floats]
) -> dict[str, Floats]:
    """The figures of the design `full`, from the score of every set of levels, by the rows of `interval_weights`."""
    everything, nothing = frozenset(levels), frozenset[Level]()
    figures = {"plain": true[nothing], "all": true[everything], "text": inert[everything] - inert[nothing]}
    for level in levels:
        figures[f"gain {level}"] = shapley(level, levels, true.__getitem__)
        figures[f"inert {level}"] = shapley(level, levels, inert.__getitem__)
        figures[f"first {level}"] = true[frozenset({level})] - true[nothing]
        figures[f"last {level}"] = true[everything] - true[everything - {level}]
    return figures


def belief_figure(units: Sequence[str], plain: Floats, true_all: Floats, inert_all: Floats) -> Floats:
    """Of what is right without aids, how much more all inert aids cost than all true ones: (1 + 2V,)."""
    return UnitMeans(units).mean(true_all - inert_all, plain)


def uptake_figures(units: Sequence[str], followed: Floats, kept: Floats) -> tuple[Floats, Floats]:
    """`uptake` and `clear` by the rows of `interval_weights`.

    Args:
        followed: (E,) whether the answer to the false aid follows it; NaN where there is no such aid.
        kept: (E,) whether it agrees with the truth.
    """
    known = ~np.isnan(followed)
    follows, clear = np.where(known, followed, 0.0), np.where(known, followed + kept, 0.0)
    means = UnitMeans(units)
    with np.errstate(invalid="ignore", divide="ignore"):
        return means.mean(follows, known.astype(float)), means.sums(follows) / means.sums(clear)


def estimates_of(
    levels: tuple[Level, ...],
    figures: Mapping[str, Floats],
    belief: Floats,
    uptakes: Mapping[Level, tuple[Floats, Floats]],
) -> Estimates:
    """All estimates, from figures by the rows of `interval_weights`."""
    by_level = {
        level: LevelEstimates(
            gain=estimate_of(figures[f"gain {level}"]),
            inert=estimate_of(figures[f"inert {level}"]),
            share=estimate_of(figures[f"gain {level}"] - figures[f"inert {level}"]),
            first=estimate_of(figures[f"first {level}"]),
            last=estimate_of(figures[f"last {level}"]),
            uptake=estimate_of(uptakes[level][0], SCORE),
            clear=estimate_of(uptakes[level][1], SCORE),
        )
        for level in levels
    }
    return Estimates(
        plain=estimate_of(figures["plain"], SCORE),
        remainder=estimate_of(1 - figures["all"], SCORE),
        text=estimate_of(figures["text"]),
        belief=estimate_of(belief),
        levels=by_level,
    )


def cause_p(estimates: LevelEstimates) -> float:
    """The p value of a level as a cause: it must gain by itself, and gain more than inert text. 1 where it does not."""
    gain, share = estimates.gain, estimates.share
    return max(gain.p, share.p) if gain.value > 0 and share.value > 0 else 1.0


def is_unused(estimates: LevelEstimates) -> bool:
    """Whether an aid is not used: few answers follow a false one, and not most of those that are clear."""
    return estimates.uptake.high < USED and not estimates.clear.low > USED


def believes_any_text(estimates: Estimates) -> bool:
    """Whether inert text costs much of what the model has right, and true text of the same length does not."""
    return estimates.text.value < 0 and estimates.text.p < ALPHA and estimates.belief.low > BELIEF
