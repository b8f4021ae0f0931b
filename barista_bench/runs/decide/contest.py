"""Hold the known answers to each example of a task, and test whether they decide a question about the score.

A score is sum(part) / sum(whole) over the examples: a mean of sample scores (`whole` is 1), or micro F1 (2 TP over 2 TP
+ FP + FN). The score is above c exactly if the sum of part - c * whole is above 0. A complete run is known in advance,
and its terms at its own score add up to 0. Subtracting its terms makes the remaining terms vary less.

The mean of a finite set is tested from the first of its values in random order, by betting without replacement.
Follows Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting" (JRSS-B 86, 2024, online in
2023; arXiv 2010.09686), section 5 and the diversified bets of its appendix. A bettor stakes a fixed fraction of its
wealth on each next value. If the mean of the set is not above 0, the wealth is a supermartingale that starts at 1. By
Ville's inequality, the wealth then reaches 1 / alpha with probability alpha at most, however often it is checked.

All bettors here bet that a mean is *above* 0. To bet that a mean is below 0, negate values and bounds. There is one
bettor for each of `FRACTIONS`, and all start with equal shares of the wealth. Each factor of a bettor rises with the
current value and with all values before it. So the lowest possible value may stand for a value that is not known yet:
this only makes the wealth smaller.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from barista_bench.core.statistics import Floats
from barista_bench.runs.decide.order import AskingOrder
from barista_bench.runs.score.stopping import GoalKind, StoppedRun

FRACTIONS: Floats = np.geomspace(0.02, 0.95, 12)
"""The fraction of the wealth that each bettor stakes on a value."""
_ROUNDING = 1e-9
"""Sums smaller than this, relative to the number of values, are rounding errors."""

log = logging.getLogger(__name__)
_GRID, _HALVINGS = 33, 12
"""Grid points and halvings in the search for the ends of an interval."""


@dataclass(frozen=True, slots=True)
class Goal:
    """The question to decide. `value` is the threshold of `above` and the half width of `within`."""

    kind: GoalKind
    value: float = 0.0


@dataclass(frozen=True, slots=True)
class Rival:
    """The complete run to compare with: its label, its score, and its terms (E,), one per example.

    The terms add up to 0.
    """

    label: str
    score: float
    offsets: Floats


class Contest:
    """The known answers to the examples of one task, and the conclusions about its score.

    Args:
        least, most: (E, 2) part and whole of the worst and of the best possible answers to each example. The worst may
            have an infinite whole.
        rival: None for a threshold or a width.
        repetitions: number of answers per example. Their terms are averaged.
        condition: assumption of the decision that the score is above, in words. Empty if it assumes nothing.
    """

    def __init__(
        self,
        goal: Goal,
        order: AskingOrder,
        least: Floats,
        most: Floats,
        *,
        metric: str,
        rival: Rival | None = None,
        repetitions: int = 1,
        condition: str = "",
    ) -> None:
        self.goal, self.order, self.metric, self.rival = goal, order, metric, rival
        self.repetitions, self.condition = repetitions, condition
        self._least, self._most = least, most
        self._sums, self._counts = np.zeros_like(least), np.zeros(len(least))
        self._offsets = rival.offsets if rival else np.zeros(len(least))
        self._positions = np.array([position for unit in order.units for position in unit])
        self._starts = np.cumsum([0, *map(len, order.units)])[:-1]

    @property
    def target(self) -> float:
        """Return the score that decides between above and below."""
        return self.rival.score if self.rival else self.goal.value

    def add(self, position: int, part: float, whole: float) -> None:
        """Add one answer to the example at this position.

        An answer below the assumed worst disproves this bound. Then the score cannot be shown to be above any value.
        """
        self._sums[position] += part, whole
        self._counts[position] += 1
        if whole > self._least[position, 1]:
            log.warning(
                "%s: an answer is worse than assumed (%s): only below can be shown", self.metric, self.condition
            )
            self._least[:, 1] = np.inf

    def log_wealths(self, level: float, units: int, *, over_videos: bool = False) -> tuple[Floats, Floats]:
        """Return the log wealth (units,) of two bettors. One bets that the score is above `level`, the other below.

        With `over_videos`, units are drawn from an infinite population, and the score is the mean of the units' means.
        """
        up = self._log_wealth(self._least, level, units, 1.0, over_videos)
        return up, self._log_wealth(self._most, level, units, -1.0, over_videos)

    def _log_wealth(self, worst: Floats, level: float, units: int, sign: float, over_videos: bool) -> Floats:
        """Return one bettor's log wealth. `worst` holds the least favourable answers, which replace missing answers."""
        missing = (self.repetitions - self._counts)[:, None]
        known = (self._sums + missing * np.where(missing > 0, worst, 0.0)) / self.repetitions
        values, bounds = (sign * self._terms(numbers, level) for numbers in (known, worst))
        if over_videos:
            sizes = np.diff([*self._starts, len(self._positions)])
            values, bounds = values / sizes, bounds / sizes
            return log_wealth(values[:units], float(bounds.min()), count=None)
        rest = np.append(np.cumsum(bounds[::-1])[::-1][1:], 0.0)
        return log_wealth(values[:units], float(bounds.min()), count=len(values), rest=rest[:units])

    def _terms(self, numbers: Floats, level: float) -> Floats:
        """Return (U,) the sum of part - level * whole of each unit, minus the rival's terms."""
        whole = numbers[:, 1]
        weighted = np.where(np.isinf(whole), np.inf if level > 0 else 0.0, level * np.where(np.isinf(whole), 0, whole))
        terms = numbers[:, 0] - weighted - self._offsets
        return np.add.reduceat(terms[self._positions], self._starts)

    def p_value(self, units: int) -> float:
        """Return the p-value of the hypothesis that the score equals the target. It is valid at any time."""
        over_videos = self.goal.kind == "decided-over-videos"
        up, down = self.log_wealths(self.target, units, over_videos=over_videos)
        return p_value(up[-1], down[-1])

    def interval(self, units: int, alpha: float) -> tuple[float, float]:
        """Return the interval of the score on the whole set, computed from the first `units` units."""
        needed = np.log(2 / alpha)
        low = _last_rejected(lambda level: self.log_wealths(level, units)[0][-1] >= needed, 0.0, 1.0)
        high = _last_rejected(lambda level: self.log_wealths(level, units)[1][-1] >= needed, 1.0, 0.0)
        return low, high

    def decision(self, units: int, alpha: float, tasks: int, videos: int) -> StoppedRun:
        """Return the record of a decision from the first `units` units, which cover `videos` videos.

        `tasks` tasks share `alpha`.
        """
        low, high = self.interval(units, alpha / tasks)
        over_videos = self.goal.kind == "decided-over-videos"
        up, down = self.log_wealths(self.target, units, over_videos=over_videos)
        is_above = up[-1] > down[-1]
        return StoppedRun(
            until=self.goal.kind,
            verdict="within" if self.goal.kind == "within" else "above" if is_above else "below",
            metric=self.metric,
            target=self.target,
            against=self.rival.label if self.rival else "",
            alpha=alpha,
            tasks=tasks,
            low=low,
            high=high,
            counted=self.order.examples(units),
            examples=len(self._least),
            videos=videos,
            repetitions=self.repetitions,
            condition=self.condition if is_above or self.goal.kind == "within" else "",
        )


def _last_rejected(is_rejected: Callable[[float], bool], start: float, end: float) -> float:
    """Search a refined grid for the rejected level nearest to `end`. Return `start` if no level is rejected."""
    levels: Sequence[float] = np.linspace(start, end, _GRID).tolist()
    rejected = [index for index, level in enumerate(levels) if is_rejected(level)]
    if not rejected or rejected[-1] == len(levels) - 1:
        return levels[rejected[-1]] if rejected else start
    inside, outside = levels[rejected[-1]], levels[rejected[-1] + 1]
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if is_rejected(middle) else (inside, middle)
    return inside


def log_wealth(values: Floats, floor: float, *, count: int | None, rest: Floats | None = None) -> Floats:
    """Return (n,) the log of the largest wealth so far after each value, for the bet that the mean is above 0.

    Args:
        values: (n,) the first values in random order.
        floor: a lower bound of every value of the set, known in advance. Minus infinity allows no bet.
        count: number of values of the set; None for values that are sampled independently.
        rest: (n,) after each value, the lowest possible sum of all later values; `count` times `floor` by default.

    >>> log_wealth(np.array([1.0, 1.0, 1.0]), -1.0, count=4).round(2).tolist()
    [0.23, 0.74, inf]
    """
    values = np.asarray(values, dtype=np.float64)
    number, sums = len(values), np.cumsum(values)
    log = np.zeros(number)
    if np.isfinite(floor) and number:
        means = np.zeros(number)  # means of the remaining values, if the mean of all values is 0
        if count is not None:
            means = -np.concatenate([[0.0], sums[:-1]]) / (count - np.arange(number))
        room = np.maximum(means - floor, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(room > _ROUNDING, (values - floor) / room, 1.0)
        steps = np.log1p(FRACTIONS[:, None] * (np.maximum(ratios, 0.0) - 1))
        log = np.logaddexp.reduce(np.cumsum(steps, axis=1), axis=0) - np.log(len(FRACTIONS))
    if count is not None:
        left = (count - np.arange(1, number + 1)) * floor if rest is None else rest
        log = np.where(sums + left > _ROUNDING * count, np.inf, log)
    return np.asarray(np.maximum.accumulate(np.maximum(log, 0.0)))


def p_value(log_up: float, log_down: float) -> float:
    """Return the p-value that a mean is neither above nor below, from the logs of both wealths; valid at any time."""
    return float(min(1.0, 2 * np.exp(-max(log_up, log_down))))
