"""Measure what a model answers about one fact in several tasks. A fact is one row of the annotation file.

A fact is a relation, an attribute or an activity of the scene graph (`Task.asked_facts`). Tasks ask for it as a tuple,
a box, a choice, a sentence, an instruction or a rationale. A model contradicts itself on a fact if its answer in one
task is right and its answer in another task is wrong, since it cannot believe both. No judge is needed. But if a judge
ranks a text task, a text is right if its score is at least `propagation.RIGHT`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np

from barista_bench.core.example import graph_span
from barista_bench.core.guarding import attempt
from barista_bench.core.intervals import Interval, ratio_interval
from barista_bench.runs.score.samples import ScoredSample
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.stats.breakdowns import answer_failures
from barista_bench.stats.propagation import RIGHT

PRIOR = "prior"


class FactKey(NamedTuple):
    """A fact in one repetition of a run. `fact` names its kind and row, such as `relation:12`."""

    repetition: int
    video_id: str
    fact: str

    @property
    def kind(self) -> str:
        return self.fact.partition(":")[0]


class TaskKey(NamedTuple):
    benchmark: str
    task: str


FactAnswers = Mapping[FactKey, Mapping[TaskKey, Sequence[bool]]]
"""Tells, for one model, whether each answer about a fact is right, by fact and task."""


@dataclass(frozen=True, slots=True)
class FactConsistency:
    """How often a model contradicts itself on the facts that at least two tasks asked it for.

    `rate` is the fraction of contradicted facts. [low, high] is its interval over videos, or None with fewer than two
    videos.
    """

    model: str
    facts: int
    contradicted: int
    rate: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class FormatRow:
    """A task's answers about facts that another task also asks for.

    `right` is the fraction of right answers. A model knows a fact if it is right about the fact in another task.
    `right_if_known` is the fraction of right answers about known facts, or None if the model knows no fact.
    """

    model: str
    benchmark: str
    task: str
    facts: int
    right: float
    known: int
    right_if_known: float | None


@dataclass(frozen=True, slots=True)
class PriorRow:
    """A model's fraction of right answers about one kind of fact in a benchmark.

    `above` is the difference to the fraction of `prior`, with its interval [low, high] over videos.
    """

    model: str
    benchmark: str
    kind: str
    answers: int
    right: float
    prior: float
    above: float
    low: float | None
    high: float | None


def fact_answers(runs: Iterable[ScoredRun]) -> FactAnswers:
    """Return, by fact and task, whether the answers in one model's runs are right."""
    answers: dict[FactKey, dict[TaskKey, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        task = TaskKey(run.task.benchmark, run.task.name)
        for sample in run.samples:
            if sample.record.is_finished:
                video_id = graph_span(sample.example).video_id
                for fact, is_right in _verdicts(run, sample).items():
                    answers[FactKey(sample.record.repetition, video_id, fact)][task].append(is_right)
    return answers


def _verdicts(run: ScoredRun, sample: ScoredSample) -> dict[str, bool]:
    """Return whether an answer is right about each fact of its example."""
    example = sample.example
    facts = attempt(run.task, "asked_facts", example, lambda: run.task.asked_facts(example), {})
    if run.judged is not None and sample.prediction is not None:
        score = run.score_of(sample)
        return {} if score is None else dict.fromkeys(facts, score >= RIGHT)
    failures = [set(failure.objects) for failure in answer_failures(run.task, sample)] if facts else []
    if sample.prediction is None:
        return dict.fromkeys(facts, False)
    return {fact: not any(failed.issuperset(objects) for failed in failures) for fact, objects in facts.items()}


def fact_consistency(model: str, answers: FactAnswers) -> FactConsistency | None:
    """Return how often a model contradicts itself, or None if no two tasks ask for the same fact."""
    rows = [(key, _contradicts(by_task)) for key, by_task in answers.items() if len(by_task) > 1]
    if not rows:
        return None
    ends = _interval([(key, float(contradicted)) for key, contradicted in rows])
    count = sum(contradicted for _, contradicted in rows)
    return FactConsistency(model, len(rows), count, count / len(rows), *_ends(ends))


def _contradicts(by_task: Mapping[TaskKey, Sequence[bool]]) -> bool:
    """Return whether an answer in one task is right and an answer in another task is wrong."""
    right = {task for task, answers in by_task.items() if any(answers)}
    wrong = {task for task, answers in by_task.items() if not all(answers)}
    return any(one != other for one in right for other in wrong)


def format_rows(model: str, answers: FactAnswers) -> Iterator[FormatRow]:
    """Yield a row for each task that shares facts with another task."""
    rows: dict[TaskKey, list[tuple[float, bool]]] = defaultdict(list)
    for by_task in answers.values():
        for task, verdicts in by_task.items() if len(by_task) > 1 else ():
            is_known = any(any(others) for other, others in by_task.items() if other != task)
            rows[task].append((fmean(verdicts), is_known))
    for task, values in sorted(rows.items()):
        known = [score for score, is_known in values if is_known]
        score = fmean(score for score, _ in values)
        yield FormatRow(model, *task, len(values), score, len(known), fmean(known) if known else None)


def prior_rows(model: str, answers: FactAnswers, prior: FactAnswers) -> Iterator[PriorRow]:
    """Yield a row for each benchmark and kind of fact about which both the model and `prior` answered.

    Only tasks that both answered count. All repetitions of the model are compared with the first repetition of `prior`.
    """
    groups: dict[tuple[str, str], list[tuple[FactKey, float, float]]] = defaultdict(list)
    for key, by_task in answers.items():
        prior_by_task = prior.get(key._replace(repetition=0), {})
        for task in by_task.keys() & prior_by_task.keys():
            groups[task.benchmark, key.kind].append((key, fmean(by_task[task]), fmean(prior_by_task[task])))
    for (benchmark, kind), rows in sorted(groups.items()):
        right, guessed = fmean(row[1] for row in rows), fmean(row[2] for row in rows)
        ends = _interval([(key, one - other) for key, one, other in rows], low=-1.0)
        yield PriorRow(model, benchmark, kind, len(rows), right, guessed, right - guessed, *_ends(ends))


def _interval(rows: Sequence[tuple[FactKey, float]], low: float = 0.0) -> Interval | None:
    """Return the interval over videos for the mean of values. Values range from `low` to 1."""
    return ratio_interval(
        np.array([value for _, value in rows]),
        np.ones(len(rows)),
        repetitions=[key.repetition for key, _ in rows],
        units=[key.video_id for key, _ in rows],
        bounds=(low, 1.0),
    )


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    return (interval.low, interval.high) if interval else (None, None)
