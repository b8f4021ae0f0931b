"""Compare answers in a view with plain answers, and answers with own aids with answers with true aids.

All scores are means of sample scores over the examples that have the view or the aid. So they are paired within
examples.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from barista_bench.aids.task_aids import Aid
from barista_bench.aids.texts import AidBook
from barista_bench.aids.views import View
from barista_bench.core.example import Example, Prediction, Scored
from barista_bench.core.intervals import SCORE
from barista_bench.core.task import Task
from barista_bench.diagnosis.conditions import Condition, PlannedExample, true_aids
from barista_bench.diagnosis.estimates import UnitMeans, estimate_of
from barista_bench.diagnosis.records import ComparedMeans, SameAnswer
from barista_bench.runs.score.samples import ScoredSample

MAX_TEXT: Final = 160
"""Characters of an answer that sentences show."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers by condition, example and repetition. Only examples with an answer in every condition are included."""

    task: Task
    planned: list[PlannedExample]
    samples: Mapping[Condition, Mapping[str, Sequence[ScoredSample]]]

    def scores(self, planned: PlannedExample, condition: Condition) -> list[ScoredSample]:
        return list(self.samples[condition][planned.example.example_id])

    def each_score(self, planned: PlannedExample, condition: Condition) -> list[float]:
        """Return the sample score of each repetition."""
        return [sample.scores[self.task.sample_score] for sample in self.scores(planned, condition)]

    def score(self, planned: PlannedExample, condition: Condition, asked: Example | None = None) -> float:
        """Return the mean sample score over repetitions. `asked` is the question in the answers' view."""
        if asked is None:
            return float(np.mean(self.each_score(planned, condition)))
        scored = [Scored(asked, sample.prediction) for sample in self.scores(planned, condition)]
        return float(np.mean(self.task.statistics(scored).scores()[self.task.sample_score]))


def same_answer(task: Task, given: Sequence[tuple[Example, str, Prediction | None]]) -> SameAnswer | None:
    """Return the answer to nearly all questions, or a favoured choice. Answers are (question, text, parsed answer).

    Answers are the same if their texts are, or if they choose the same letter or the same text of a choice.
    """
    counts, right = Counter[str](), Counter[str]()
    for example, text, prediction in given:
        choices = task.choices(example)
        if choices and prediction is not None:
            counts.update(_choice_names(choices, task.answered_choices(prediction)))
        else:
            counts[" ".join(text.split())] += 1
        if labels := task.correct_choices(example):
            right.update(_choice_names(choices, labels))
    ((text, count),) = counts.most_common(1)
    printable = textwrap.shorten("".join(filter(str.isprintable, text)), MAX_TEXT, placeholder=" …")
    same = SameAnswer(text=printable, count=count, answers=len(given), right=right[text] if right else None)
    return same if len(given) > 1 and (same.is_nearly_all or same.is_favoured) else None


def _choice_names(choices: Mapping[str, str], labels: Sequence[str]) -> list[str]:
    """Return the names under which an answer is counted: the texts of its choices first, then labels."""
    return list(dict.fromkeys(("; ".join(choices[label] for label in labels), ", ".join(labels))))


def compared_views(book: AidBook, answers: Answers) -> list[ComparedMeans]:
    """Compare each view with the plain answers to the same questions.

    Mirrored and reversed questions are split into questions whose answer changes and questions whose answer must not
    change.
    """
    found = []
    for view in dict.fromkeys(view for each in answers.planned for view in each.views):
        groups: dict[bool, list[tuple[str, float, float]]] = {}
        for each in answers.planned:
            viewed = book.viewed(each.example, view) if view in each.views else None
            if viewed is None:
                continue
            changes = viewed.example.target != each.example.target
            row = (answers.task.resampling_unit(each.example), answers.score(each, ()))
            groups.setdefault(changes, []).append((*row, answers.score(each, (view,), viewed.example)))
        found += [compare_scores(_name(view, changes), groups[changes]) for changes in sorted(groups, reverse=True)]
    return found


def _name(view: View, changes: bool) -> str:
    if view not in ("mirrored", "reversed"):
        return view
    return view if changes else f"{view}, same answer"


def compared_own(answers: Answers) -> list[ComparedMeans]:
    """Compare each aid with the model's own answers with the true aid."""
    aids: dict[Aid, list[tuple[str, float, float]]] = {}
    for each in answers.planned:
        for aid in each.own:
            unit = answers.task.resampling_unit(each.example)
            scores = answers.score(each, true_aids([aid.level])), answers.score(each, (aid,))
            aids.setdefault(aid, []).append((unit, *scores))
    return [compare_scores(f"own {aid.level}", rows) for aid, rows in aids.items()]


def compare_scores(name: str, rows: Sequence[tuple[str, float, float]]) -> ComparedMeans:
    """Compare the scores of examples, given as (unit, score before, score after)."""
    units = [unit for unit, _, _ in rows]
    first, second = (np.array([row[place] for row in rows]) for place in (1, 2))
    means = UnitMeans(units)

    return ComparedMeans(
        name=name,
        examples=len(rows),
        before=estimate_of(means.mean(first), SCORE),
        after=estimate_of(means.mean(second), SCORE),
        change=estimate_of(means.mean(second - first)),
    )
