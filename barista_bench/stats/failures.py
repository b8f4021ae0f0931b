"""How often each kind of failure comes about, by the tasks' own accounts (`Task.failures`, `task.FAILURE_KINDS`)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barista_bench.core.task import FAILURE_KINDS, Status

if TYPE_CHECKING:
    from barista_bench.runs.score.scoring import ScoredRun


@dataclass(frozen=True, slots=True)
class FailureRow:
    """One kind of failure of a task (`task.FAILURE_KINDS` says what each means).

    `count` of them all in all, in `samples` of the task's samples, `share` of all scored ones.
    """

    task: str
    model: str
    kind: str
    count: int
    samples: int
    share: float


def failure_rows(run: ScoredRun) -> tuple[FailureRow, ...]:
    """One row for each kind that occurs, in the order of the vocabulary. Samples may fail in several ways."""
    scored = [sample for sample in run.samples if sample.record.status is not Status.INFRA_ERROR]
    counts: Counter[str] = Counter()
    samples: Counter[str] = Counter()
    for sample in scored:
        kinds = Counter(failure.kind for failure in run.task.failures(sample.example, sample.prediction))
        counts.update(kinds)
        samples.update(kinds.keys())
    return tuple(
        FailureRow(
            task=run.task.name,
            model=run.results.model.name,
            kind=kind,
            count=counts[kind],
            samples=samples[kind],
            share=samples[kind] / len(scored),
        )
        for kind in FAILURE_KINDS
        if counts[kind]
    )
