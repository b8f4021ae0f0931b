"""The record of a run that stopped as soon as a question about its score was decided.

The score of a stopped run is biased, because the run stopped when the score looked clear. So the record has an interval
and no score. This module imports little, since a leaderboard Space loads it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from barista_bench.files.reading import Count, Line, Strict, read_model
from barista_bench.files.text_out import decimal
from barista_bench.files.writing import write_whole
from barista_bench.runs.described import DECISION_FILE

GoalKind: TypeAlias = Literal["decided", "above", "within", "decided-over-videos"]


class StoppedRun(Strict):
    """A decision and its basis.

    `target` is the score of `against`, the threshold of `above`, or the half width of `within`. [low, high] contains
    the score on all `examples` with probability 1 - `alpha` / `tasks`, regardless of the number of looks. `counted` is
    the number of examples behind the decision, each with all its repetitions. `tasks` is the number of tasks that share
    `alpha`. `condition` is an assumption of the decision in words, or empty.
    """

    until: GoalKind
    verdict: Literal["above", "below", "within"]
    metric: Line
    target: float
    against: Line = ""
    alpha: Annotated[float, Field(gt=0, lt=1)]
    tasks: Count = 1
    low: float
    high: float
    counted: Count
    examples: Count
    videos: Count
    repetitions: Count
    condition: Line = ""

    def sentence(self, label: str) -> str:
        """Return the decision in words. `label` names the run's model."""
        answers = f"{self.counted * self.repetitions:,} answers"
        condition = f" ({self.condition})" if self.condition else ""
        if self.until == "decided-over-videos":
            verdict = "better" if self.verdict == "above" else "worse"
            about = f"sure, p < {self.alpha:g}, over {self.videos} videos"
            return (
                f"{self.metric}: {label} is {verdict} than {self.against} ({about}), decided after {answers}{condition}"
            )
        beside = self.against or decimal(self.target)
        verdict = f"{label} {self.verdict} {beside}"
        if self.verdict == "within":
            verdict = f"{label} known within {self.target:g}"
        return f"on these {self.examples:,} questions: {verdict} in {self.metric}, decided after {answers}{condition}"

    @property
    def bounds(self) -> str:
        """Return the interval in words."""
        return f"at least {decimal(self.low)}, at most {decimal(self.high)}"


def write_decision(folder: Path, decision: StoppedRun) -> None:
    write_whole(folder / DECISION_FILE, decision.model_dump_json(indent=1) + "\n")


def read_decision(folder: Path) -> StoppedRun | None:
    """Return the decision in a folder, or None without a decision. Raises DataError if the file is damaged."""
    path = folder / DECISION_FILE
    return read_model(path, StoppedRun, what="no decision", remedy="start the run again") if path.exists() else None
