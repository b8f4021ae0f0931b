"""Look at the answers after each block of examples, and find the tasks that need no more answers.

A look reads the logs of all processes and uses only complete blocks. Short answers arrive first, so the order of
arrival is biased. Blocks are looked at one after the other. So the decision depends on the answers, not on the moment
of reading.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from barista_bench.core.statistics import adjust_p_values
from barista_bench.runs.decide.contest import Contest
from barista_bench.runs.score.stopping import StoppedRun


class WatchedContest(ABC):
    """A contest and the log of its answers.

    Args:
        videos: (E,) the video of each example.

    Attributes:
        is_asked: (E,) whether the log has a record of every repetition of an example. Failed answers count too.
    """

    def __init__(self, contest: Contest, videos: Sequence[str]) -> None:
        self.contest, self._videos = contest, videos
        self.is_asked: NDArray[np.bool_] = np.zeros(len(videos), dtype=bool)

    @abstractmethod
    def read(self) -> None:
        """Read all records that the logs have now."""

    @abstractmethod
    def write(self, decision: StoppedRun) -> str:
        """Write a decision to the run folder, and return it in words."""

    @property
    def complete_blocks(self) -> int:
        """Return how many blocks, from the first, have all their examples asked."""
        open_blocks = [self.contest.order.block_of[index] for index in np.flatnonzero(~self.is_asked).tolist()]
        return min(open_blocks, default=len(self.contest.order.block_ends))

    def decision(self, units: int, alpha: float, tasks: int) -> StoppedRun:
        """Return the decision from the first `units` units."""
        positions = [position for unit in self.contest.order.units[:units] for position in unit]
        return self.contest.decision(units, alpha, tasks, len({self._videos[index] for index in positions}))


class Stopping:
    """The tasks of one start that stop when they are decided. They share `alpha` by Holm's procedure.

    Attributes:
        decided: position of a task -> the number of units that decided it.
    """

    def __init__(self, watched: Sequence[WatchedContest], alpha: float) -> None:
        self.watched, self._alpha = watched, alpha
        self.decided: dict[int, int] = {}
        self._p_values = [1.0] * len(watched)
        self._blocks = 0

    def open_blocks(self) -> Iterator[tuple[int, frozenset[int]]]:
        """Yield each block with the positions of the tasks that need it. Look at the answers before each block."""
        for block in range(max(len(each.contest.order.block_ends) for each in self.watched)):
            self.look()
            if len(self.decided) == len(self.watched):
                return
            yield block, frozenset(range(len(self.watched))) - self.decided.keys()
        self.look()

    def look(self) -> None:
        """Read the logs, and record each task that they decide."""
        for place, each in enumerate(self.watched):
            if place not in self.decided:
                each.read()
        while under_way := self._under_way():
            if any(self.watched[place].complete_blocks <= self._blocks for place in under_way):
                return
            self._decide(under_way)
            self._blocks += 1

    def _under_way(self) -> list[int]:
        """Return the undecided tasks that have a next block."""
        lengths = [len(each.contest.order.block_ends) for each in self.watched]
        return [index for index, length in enumerate(lengths) if index not in self.decided and self._blocks < length]

    def _decide(self, under_way: Sequence[int]) -> None:
        ends = {place: self.watched[place].contest.order.block_ends[self._blocks] for place in under_way}
        contests = {place: self.watched[place].contest for place in under_way}
        for place, contest in contests.items():
            if contest.goal.kind == "within":
                low, high = contest.interval(ends[place], self._alpha / len(self.watched))
                self._p_values[place] = 0.0 if (high - low) / 2 <= contest.goal.value else 1.0
            else:
                self._p_values[place] = contest.p_value(ends[place])
        adjusted = adjust_p_values(self._p_values)
        self.decided |= {place: ends[place] for place in under_way if adjusted[place] <= self._alpha}

    def record(self) -> dict[int, str]:
        """Write the decisions of tasks that stopped before their last example.

        Return them in words, by task position.
        """
        said = {}
        for place, units in self.decided.items():
            each = self.watched[place]
            if not each.is_asked.all():
                said[place] = each.write(each.decision(units, self._alpha, len(self.watched)))
        return said
