"""Measure how tasks agree on the order of models, and how models and people agree on the same questions.

Orders: Kendall's tau-b (paper, A.7 and table 16). As in the paper, a model's score on a task is the mean of its sample
scores, pooled over examples and runs; for text tasks the judge's scores, if the runs have them (`ScoredRun.judged`).
Two tasks with a high tau order the models alike; a low or negative tau means that one order does not predict the other.

The agreement of people on answers is a ceiling for models that the reference does not show. Choices are compared by the
fraction of equal choices and by Krippendorff's alpha (Krippendorff, Content Analysis, 2004, chapter 11; nominal data).
Alpha corrects for agreement by chance. It allows any number of raters and missing answers. Other answers are scored by
the task itself: each answer of a pair is scored with the other answer as the reference.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean

import numpy as np
import pandas as pd

from barista_bench.core.example import Example, Prediction, Scored
from barista_bench.core.model_names import HUMAN
from barista_bench.core.task import Task
from barista_bench.errors import ConfigError, DataError
from barista_bench.runs.score.comparability import distinguishing_parts
from barista_bench.runs.score.labels import Labels, comparable_groups, run_labels
from barista_bench.runs.score.scoring import ScoredRun

FEWEST_MODELS = 3


@dataclass(frozen=True, slots=True)
class RankAgreement:
    """Kendall's tau-b between the orders of models by task (paper, A.7 and table 16).

    `means[m][t]` is the mean sample score of model m on task t over all examples and repetitions. `tau[s][t]` is
    symmetric with 1 on the diagonal. It is None if a task gives all models the same score.
    """

    tasks: tuple[str, ...]
    models: tuple[str, ...]
    means: tuple[tuple[float, ...], ...]
    tau: tuple[tuple[float | None, ...], ...]


def rank_agreement(runs: Sequence[ScoredRun], *, labels: Labels | None = None) -> RankAgreement:
    """Compare tasks over the models that have a run of every task. A model with two labels counts as two models.

    Args:
        runs: runs of any tasks. If there are several benchmarks, task names include the benchmark.
        labels: names of the models. The default is `run_labels`.

    Raises:
        ConfigError: there are fewer than two tasks, or fewer than three models with all tasks.
        DataError: a model has two comparable runs of one task.
    """
    labels = run_labels(runs) if labels is None else labels
    has_several = len({run.task.benchmark for run in runs}) > 1
    # Some runs of a task may not be comparable.
    distinctions = distinguishing_parts([run.results.comparability for run in runs])
    names = [
        f"{f'{run.task.benchmark} / ' if has_several else ''}{run.task.name}{f' ({difference})' if difference else ''}"
        f"{f': {run.score_note}' if run.score_note else ''}"
        for run, difference in zip(runs, distinctions, strict=True)
    ]
    means: dict[str, dict[str, float]] = {}
    for task, run in zip(names, runs, strict=True):
        model = labels[run.folder]
        if task in means.setdefault(model, {}):
            raise DataError(f"{run.folder}: a second run of {task} by {model}. Fix: name one run a model and task")
        if scores := [score for sample in run.samples if (score := run.score_of(sample)) is not None]:
            means[model][task] = float(np.mean(scores))
    tasks = tuple(dict.fromkeys(names))
    complete = {model: by_task for model, by_task in means.items() if len(by_task) == len(tasks)}
    if len(tasks) < 2 or len(complete) < FEWEST_MODELS:
        raise ConfigError(
            f"{len(complete)} models have runs of all {len(tasks)} tasks ({', '.join(tasks)}). "
            f"Fix: name runs of two tasks and {FEWEST_MODELS} models or more"
        )
    return agreement_of(tasks, {model: [by_task[task] for task in tasks] for model, by_task in complete.items()})


def agreement_of(tasks: Sequence[str], means: Mapping[str, Sequence[float]]) -> RankAgreement:
    """Compute the agreement from each model's mean scores. Scores are in the order of `tasks`."""
    table = pd.DataFrame(means.values())
    tau = table.corr(method="kendall").to_numpy()
    return RankAgreement(
        tuple(tasks),
        tuple(means),
        tuple(map(tuple, table.to_numpy().tolist())),
        tuple(tuple(None if np.isnan(value) else value for value in row) for row in tau.tolist()),
    )


log = logging.getLogger(__name__)

Answer = tuple[Example, Prediction]
Answers = dict[str, Answer]
"""Maps each example to one rater's readable answer."""


@dataclass(frozen=True, slots=True)
class AnswerAgreement:
    """The agreement of `raters` on one task. Raters are a pair, all people, or all raters together.

    Args:
        examples: number of examples with answers of two or more raters. `pairs` counts the pairs of answers to one
            example.
        same: fraction of pairs with the same choice, or None if answers are not choices.
        alpha: Krippendorff's alpha of the choices: 1 for full agreement, 0 for chance. None if answers are not choices
            or all choices are equal.
        score: the task's sample score of one answer with the other answer as the reference. It is the mean over pairs
            and both directions, from 0 to 1. None if answers are choices.
    """

    benchmark: str
    task: str
    raters: tuple[str, ...]
    examples: int
    pairs: int
    same: float | None
    alpha: float | None
    score: float | None


def answer_agreement(runs: Sequence[ScoredRun]) -> tuple[AnswerAgreement, ...]:
    """Return, task by task, the agreement of each pair of comparable runs, then of all people, then of all runs.

    Groups of all people or all runs need at least three members. Only the first repetition of a run counts.
    `consistency` compares repetitions. Unreadable answers are skipped.

    Raises:
        ConfigError: no task can compare answers with each other. If some tasks can, the remaining tasks cause a
            warning.
        DataError: no example has readable answers from two runs of its task.
    """
    labels, rows, refusals = run_labels(runs), list[AnswerAgreement](), list[ConfigError]()
    for group in comparable_groups(runs).values():
        answers = {
            labels[run.folder]: {
                sample.example.example_id: (sample.example, sample.prediction)
                for sample in run.samples
                if sample.record.repetition == 0 and sample.prediction is not None
            }
            for run in group
        }
        people = tuple(labels[run.folder] for run in group if run.results.model.name.startswith(f"{HUMAN}:"))
        parties = [*combinations(answers, 2), *(raters for raters in (people, tuple(answers)) if len(raters) > 2)]
        try:
            task = group[0].task
            rows += filter(None, [agreement_between(task, raters, answers) for raters in dict.fromkeys(parties)])
        except ConfigError as error:
            refusals.append(error)
    if not rows and refusals:
        raise refusals[-1]
    if not rows:
        raise DataError(
            "no two runs have a readable answer to the same example. "
            "Fix: name finished runs of one task over the same examples, by the same rules"
        )
    for refusal in refusals:
        log.warning("agreement: %s", refusal)
    return tuple(rows)


def krippendorff_alpha(units: Iterable[Sequence[Hashable]]) -> float | None:
    """Return Krippendorff's alpha. `units` holds the raters' values for each unit.

    Return None if no unit has two values, or if all values are equal.

    >>> krippendorff_alpha(["aa", "bb", "ab", "a"]), krippendorff_alpha(["aa", "aa"])
    (0.4444444444444444, None)
    """
    counts = [Counter(values) for values in units if len(values) > 1]
    totals = sum(counts, Counter[Hashable]())
    n = totals.total()
    unequal = n * n - sum(count * count for count in totals.values())
    if not unequal:
        return None
    sizes = ((unit.total(), sum(count * count for count in unit.values())) for unit in counts)
    observed = math.fsum((m * m - equal) / (m - 1) for m, equal in sizes)
    return 1 - observed * (n - 1) / unequal


def agreement_between(task: Task, raters: tuple[str, ...], answers: Mapping[str, Answers]) -> AnswerAgreement | None:
    """Return the agreement of raters on one task, or None without a common example.

    Raises:
        ConfigError: the task cannot compare answers with each other.
    """
    by_example: dict[str, list[Answer]] = {}
    for rater in raters:
        for example_id, answer in answers[rater].items():
            by_example.setdefault(example_id, []).append(answer)
    units = [unit for unit in by_example.values() if len(unit) > 1]
    pairs = [pair for unit in units for pair in combinations(unit, 2)]
    if not pairs:
        return None
    same, alpha, score = None, None, None
    if task.choices(pairs[0][0][0]):
        choices = [[tuple(sorted(task.answered_choices(prediction))) for _, prediction in unit] for unit in units]
        same = fmean(first == second for unit in choices for first, second in combinations(unit, 2))
        alpha = krippendorff_alpha(choices)
    else:
        score = _mutual_score(task, pairs)
    return AnswerAgreement(task.benchmark, task.name, raters, len(units), len(pairs), same, alpha, score)


def _mutual_score(task: Task, pairs: Sequence[tuple[Answer, Answer]]) -> float:
    """Return the mean score over both directions of all pairs. Two empty answers agree.

    In each direction, one answer of the pair is scored with the other answer as the reference.
    """
    exchanged_samples, silent_scores = list[Scored](), list[float]()
    for (example, first), (_, second) in pairs:
        targets = task.as_target(example, first), task.as_target(example, second)
        for prediction, reference in ((second, targets[0]), (first, targets[1])):
            if reference is None:
                silent_scores.append(float(targets == (None, None)))
            else:
                exchanged_samples.append(Scored(replace(example, target=reference.write()), prediction))
    scores = task.statistics(exchanged_samples).scores()[task.sample_score].tolist() if exchanged_samples else []
    return fmean([*scores, *silent_scores])
