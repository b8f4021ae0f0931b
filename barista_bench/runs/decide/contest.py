"""One question about one task: what is known of each example so far, and whether that decides the question.

A score is sum(part) / sum(whole) over the examples: a mean of sample scores (`whole` is 1), or micro F1 (2 TP over
2 TP + FP + FN). It is above c exactly where the sum of part - c * whole is above 0. A complete run, which is known in
advance, makes these terms vary less: its own terms at its own score add up to 0, and are subtracted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from barista_bench.core.betting import log_wealth, p_value
from barista_bench.core.statistics import Floats
from barista_bench.runs.decide.order import AskingOrder
from barista_bench.runs.score.stopping import GoalKind, StoppedRun

log = logging.getLogger(__name__)
_GRID, _HALVINGS = 33, 12
"""Steps of the search for the ends of an interval."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What to decide; `value` is the threshold of `above` and the half width of `within`."""

    kind: GoalKind
    value: float = 0.0


@dataclass(frozen=True, slots=True)
class Rival:
    """The complete run to compare with: its label, its score, and (E,) the terms of its examples, which add up to 0."""

    label: str
    score: float
    offsets: Floats


class Contest:
    """What is known of the examples of one task, and what follows from it.

    Args:
        least, most: (E, 2) part and whole of the worst and of the best answers to each example; the worst may have an
            infinite whole.
        rival: None for a threshold or a width.
        repetitions: answers of each example, whose terms are averaged.
        condition: what a decision that the score is above assumes, in words; empty for nothing.
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
        """The score to be above or below."""
        return self.rival.score if self.rival else self.goal.value

    def add(self, position: int, part: float, whole: float) -> None:
        """Take in one answer to the example at this position.

        An answer worse than the assumed worst disproves that bound: then nothing can be shown to be above.
        """
        self._sums[position] += part, whole
        self._counts[position] += 1
        if whole > self._least[position, 1]:
            log.warning(
                "%s: an answer is worse than assumed (%s): only below can be shown", self.metric, self.condition
            )
            self._least[:, 1] = np.inf

    def log_wealths(self, level: float, units: int, *, over_videos: bool = False) -> tuple[Floats, Floats]:
        """Return the (units,) logs of the wealth of the bettors that the score is above and below `level`.

        With `over_videos`, units are drawn from infinitely many, and the score is the mean of their means.
        """
        up = self._log_wealth(self._least, level, units, 1.0, over_videos)
        return up, self._log_wealth(self._most, level, units, -1.0, over_videos)

    def _log_wealth(self, worst: Floats, level: float, units: int, sign: float, over_videos: bool) -> Floats:
        """Return the wealth of one bettor: `worst` are its worst answers, which replace missing ones."""
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
        """Return the (U,) sums of part - level * whole of each unit, less the rival's."""
        whole = numbers[:, 1]
        weighted = np.where(np.isinf(whole), np.inf if level > 0 else 0.0, level * np.where(np.isinf(whole), 0, whole))
        terms = numbers[:, 0] - weighted - self._offsets
        return np.add.reduceat(terms[self._positions], self._starts)

    def p_value(self, units: int) -> float:
        """Return the p-value, valid at any time, of a score that is neither above nor below the target."""
        over_videos = self.goal.kind == "decided-over-videos"
        up, down = self.log_wealths(self.target, units, over_videos=over_videos)
        return p_value(up[-1], down[-1])

    def interval(self, units: int, alpha: float) -> tuple[float, float]:
        """Return the interval of the score on the whole set, from the first units."""
        needed = np.log(2 / alpha)
        low = _last_rejected(lambda level: self.log_wealths(level, units)[0][-1] >= needed, 0.0, 1.0)
        high = _last_rejected(lambda level: self.log_wealths(level, units)[1][-1] >= needed, 1.0, 0.0)
        return low, high

    def decision(self, units: int, alpha: float, tasks: int, videos: int) -> StoppedRun:
        """Return the record of a decision from the first units, of so many videos; `tasks` share `alpha`."""
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
    """Return the level nearest to `end` that is rejected, on a grid that is refined; `start` if none is."""
    levels: Sequence[float] = np.linspace(start, end, _GRID).tolist()
    rejected = [index for index, level in enumerate(levels) if is_rejected(level)]
    if not rejected or rejected[-1] == len(levels) - 1:
        return levels[rejected[-1]] if rejected else start
    inside, outside = levels[rejected[-1]], levels[rejected[-1] + 1]
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if is_rejected(middle) else (inside, middle)
    return inside
