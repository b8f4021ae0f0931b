"""Count the letters that a model answers, and those that are right: a model may prefer a position to what it sees.

Imports little, since a leaderboard Space reads it (`hub/board.py`).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from barista_bench.files.reading import Count, Strict

FEWEST = 12
"""Answers below which nothing is said of their letters."""
DOMINANT = 0.8
"""Share of the answers from which on a letter dominates, if it is right in at most half of them."""
_Letter = Annotated[str, StringConstraints(pattern=r"\A[A-Z]\z")]


class Letters(Strict):
    """Answers by letter, and the questions of these answers by right letter."""

    answered: dict[_Letter, Count] = Field(max_length=26)
    right: dict[_Letter, Count] = Field(max_length=26)

    @property
    def total(self) -> int:
        return sum(self.answered.values())

    @property
    def bias(self) -> float:
        """Return the share of answers whose letter would have to change for both counts to be equal: 0 to 1."""
        total = max(1, self.total)
        return sum(abs(self.answered.get(name, 0) - self.right.get(name, 0)) for name in self._names) / (2 * total)

    @property
    def favourite(self) -> str:
        """Return the letter that is answered most above its share of right answers; at a tie the first."""
        return max(self._names, key=lambda name: self.answered.get(name, 0) - self.right.get(name, 0))

    @property
    def in_words(self) -> str:
        """Return one clause if a letter dominates, with a remedy; else nothing."""
        name = self.favourite if self.total >= FEWEST else ""
        count, right = self.answered.get(name, 0), self.right.get(name, 0)
        if not name or count < DOMINANT * self.total or right > self.total / 2:
            return ""
        return (
            f"{count} of {self.total} answers are {name}, which is right in {right}: the model prefers a position. "
            "Fix: look at some answers, and ask again with --option order=circular, which counts no luck"
        )

    @property
    def _names(self) -> list[str]:
        return sorted(self.answered.keys() | self.right.keys())
