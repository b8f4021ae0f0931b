"""Compare answers in a view with plain answers, and answers with own aids with answers with true aids.

All scores are means of sample scores over the examples that have the view or the aid. So they are paired within
examples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from barista_bench.aids.levels import Aid, View
from barista_bench.aids.texts import AidBook
from barista_bench.core.resampling import SCORE
from barista_bench.core.statistics import Floats
from barista_bench.core.task import Example, Scored, Task
from barista_bench.diagnosis.conditions import Condition, PlannedExample, true
from barista_bench.diagnosis.estimates import UnitMeans, estimate_of
from barista_bench.diagnosis.records import Compared, Measured
from barista_bench.runs.score.samples import ScoredSample

Samples = Callable[[PlannedExample, Condition], Sequence[ScoredSample]]


class Means(NamedTuple):
    """The interface that gives mean sample scores."""

    task: Task
    samples: Samples

    def score(self, planned: PlannedExample, condition: Condition, asked: Example | None = None) -> float:
        """Return the mean score of an example's answers over repetitions.

        `asked` is the question in the answers' view.
        """
        samples = self.samples(planned, condition)
        if asked is None:
            return float(np.mean([sample.scores[self.task.sample_score] for sample in samples]))
        scored = [Scored(asked, sample.prediction) for sample in samples]
        return float(np.mean(self.task.statistics(scored).scores()[self.task.sample_score]))


def compared_views(book: AidBook, means: Means, planned: Sequence[PlannedExample]) -> list[Compared]:
    """Compare each view with the plain answers to the same questions.

    Mirrored and reversed questions are split into questions whose answer changes and questions whose answer must not
    change.
    """
    found = []
    for view in dict.fromkeys(view for each in planned for view in each.views):
        groups: dict[bool, list[tuple[str, float, float]]] = {}
        for each in planned:
            viewed = book.viewed(each.example, view) if view in each.views else None
            if viewed is None:
                continue
            changes = viewed.example.target != each.example.target
            row = (means.task.resampling_unit(each.example), means.score(each, ()))
            groups.setdefault(changes, []).append((*row, means.score(each, (view,), viewed.example)))
        found += [compare_scores(_name(view, changes), groups[changes]) for changes in sorted(groups, reverse=True)]
    return found


def _name(view: View, changes: bool) -> str:
    if view not in ("mirrored", "reversed"):
        return view
    return view if changes else f"{view}, same answer"


def compared_own(means: Means, planned: Sequence[PlannedExample]) -> list[Compared]:
    """Compare each aid with the model's own answers with the true aid."""
    aids: dict[Aid, list[tuple[str, float, float]]] = {}
    for each in planned:
        for aid in each.own:
            unit = means.task.resampling_unit(each.example)
            scores = means.score(each, true([aid.level])), means.score(each, (aid,))
            aids.setdefault(aid, []).append((unit, *scores))
    return [compare_scores(f"own {aid.level}", rows) for aid, rows in aids.items()]


def compare_scores(name: str, rows: Sequence[tuple[str, float, float]]) -> Compared:
    """Compare the scores of examples, given as (unit, score before, score after)."""
    units = [unit for unit, _, _ in rows]
    first, second = (np.array([row[place] for row in rows]) for place in (1, 2))
    means = UnitMeans(units)

    def measured(values: Floats, **bounds: object) -> Measured:
        return Measured.of(estimate_of(means.mean(values), **bounds))  # type: ignore[arg-type]

    return Compared(
        name=name,
        examples=len(rows),
        before=measured(first, bounds=SCORE),
        after=measured(second, bounds=SCORE),
        change=measured(second - first),
    )
