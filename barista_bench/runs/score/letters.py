"""Count the letters that a model answers and the letters that are right. A model may prefer a position to the content.

This module imports little, since a leaderboard Space loads it (`hub/board.py`).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from barista_bench.files.reading import Count, Strict

FEWEST = 12
"""Minimum number of answers for a note on their letters."""
DOMINANT = 0.8
"""Minimum share of the answers for a letter to dominate. It must also be right for at most half of the questions."""
_Letter = Annotated[str, StringConstraints(pattern=r"\A[A-Z]\z")]


class Letters(Strict):
    """Numbers of answers per answered letter, and of their questions per right letter."""

    answered: dict[_Letter, Count] = Field(max_length=26)
    right: dict[_Letter, Count] = Field(max_length=26)

    @property
    def total(self) -> int:
        return sum(self.answered.values())

    @property
    def bias(self) -> float:
        """Return the share of answers, from 0 to 1, whose letter would have to change to make both counts equal."""
        total = max(1, self.total)
        return sum(abs(self.answered.get(name, 0) - self.right.get(name, 0)) for name in self._names) / (2 * total)

    @property
    def favourite(self) -> str:
        """Return the letter whose share of answers exceeds its share of right answers the most.

        A tie goes to the first letter.
        """
        return max(self._names, key=lambda name: self.answered.get(name, 0) - self.right.get(name, 0))

    @property
    def in_words(self) -> str:
        """Return a clause with a remedy if a letter dominates, or an empty string."""
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
