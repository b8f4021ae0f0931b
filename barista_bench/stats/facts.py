"""One fact in several formats: what a model says of the same row of the annotation file in different tasks.

A fact is a relation, an attribute or an activity of the scene graph (`Task.asked_facts`); tasks ask for it as a tuple,
a box, a choice, a sentence, an instruction or a rationale. A model contradicts itself on a fact if its answer in one
task is right and its answer in another is wrong: both cannot be its belief. No judge is needed, except where a judge
ranks a text task: there a text is right from `propagation.RIGHT`.
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
from barista_bench.core.resampling import Interval, ratio_interval
from barista_bench.runs.score.samples import ScoredSample
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.stats.breakdowns import answer_failures
from barista_bench.stats.propagation import RIGHT

PRIOR = "prior"


class FactKey(NamedTuple):
    """A fact in one repetition of a run; `fact` is kind and row, `relation:12`."""

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
"""Of one model: whether each answer about a fact is right, by task."""


@dataclass(frozen=True, slots=True)
class FactConsistency:
    """The facts that a model was asked in two tasks or more, and the fraction of those it contradicts itself on.

    [low, high] is the interval over videos; None with fewer than two.
    """

    model: str
    facts: int
    contradicted: int
    rate: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class FormatRow:
    """One task's answers on facts that another task also asks: the fraction right, and right where the model knows.

    A model knows a fact if it is right about it in another task. `right_if_known` is None if it knows none.
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
    """A model's fraction of right answers on one kind of fact in a benchmark, and how far it is above `prior`."""

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
    """Return whether the answers of one model's runs are right, by fact and task."""
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
    """Return how often a model contradicts itself; None if no two tasks ask for the same fact."""
    rows = [(key, _contradicts(by_task)) for key, by_task in answers.items() if len(by_task) > 1]
    if not rows:
        return None
    ends = _interval([(key, float(contradicted)) for key, contradicted in rows])
    count = sum(contradicted for _, contradicted in rows)
    return FactConsistency(model, len(rows), count, count / len(rows), *_ends(ends))


def _contradicts(by_task: Mapping[TaskKey, Sequence[bool]]) -> bool:
    """Whether an answer in one task is right and one in another task is wrong."""
    right = {task for task, answers in by_task.items() if any(answers)}
    wrong = {task for task, answers in by_task.items() if not all(answers)}
    return any(one != other for one in right for other in wrong)


def format_rows(model: str, answers: FactAnswers) -> Iterator[FormatRow]:
    """Yield a row for each task that shares facts with another."""
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
    """Yield a row for each benchmark and kind of fact on which both a model and `prior` answered.

    Only tasks of both count; repetitions of the model are compared with the first of `prior`.
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
    """Return the interval over videos of the mean of values from `low` to 1."""
    return ratio_interval(
        np.array([value for _, value in rows]),
        np.ones(len(rows)),
        repetitions=[key.repetition for key, _ in rows],
        units=[key.video_id for key, _ in rows],
        bounds=(low, 1.0),
    )


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    return (interval.low, interval.high) if interval else (None, None)
