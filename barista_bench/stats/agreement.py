"""Whether tasks put models in the same order: Kendall's tau-b (paper, A.7 and table 16).

As in the paper, a model's score on a task is the mean of its sample scores, pooled over examples and runs. Two tasks
with a high tau order the models alike; a low or negative tau says that one order does not predict the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from barista_bench.errors import ConfigError, DataError
from barista_bench.runs.score.results import told_apart
from barista_bench.stats.labels import Labels, run_labels

if TYPE_CHECKING:
    from barista_bench.runs.score.scoring import ScoredRun

FEWEST_MODELS = 3


@dataclass(frozen=True, slots=True)
class RankAgreement:
    """Kendall's tau-b between the orders in which tasks put the models (paper, A.7 and table 16).

    `means[m][t]` is the mean sample score of model m on task t, pooled over examples and runs; `tau[s][t]` is
    symmetric with 1 on the diagonal, None where a task does not tell the models apart.
    """

    tasks: tuple[str, ...]
    models: tuple[str, ...]
    means: tuple[tuple[float, ...], ...]
    tau: tuple[tuple[float | None, ...], ...]


def rank_agreement(runs: Sequence[ScoredRun], *, labels: Labels | None = None) -> RankAgreement:
    """Over the models that have a run of every task; runs of one model with two labels are two models.

    Args:
        runs: of any tasks; where they are of several benchmarks, tasks are named after theirs, too.
        labels: what the models are called; by default `run_labels`.

    Raises:
        ConfigError: fewer than two tasks, or fewer than three models with all of them.
        DataError: a model has two comparable runs of one task.
    """
    called = run_labels(runs) if labels is None else labels
    names = _named(runs)
    means: dict[str, dict[str, float]] = {}
    for task, run in zip(names, runs, strict=True):
        model = called[run.folder]
        if task in means.setdefault(model, {}):
            raise DataError(f"{run.folder}: a second run of {task} by {model}. Remedy: name one run a model and task")
        means[model][task] = mean_sample_score(run)
    tasks = tuple(dict.fromkeys(names))
    complete = {model: by_task for model, by_task in means.items() if len(by_task) == len(tasks)}
    if len(tasks) < 2 or len(complete) < FEWEST_MODELS:
        raise ConfigError(
            f"{len(complete)} models have runs of all {len(tasks)} tasks ({', '.join(tasks)}). "
            f"Remedy: name runs of two tasks and {FEWEST_MODELS} models or more"
        )
    return agreement_of(tasks, {model: [by_task[task] for task in tasks] for model, by_task in complete.items()})


def _named(runs: Sequence[ScoredRun]) -> list[str]:
    """Each run's task; where its runs are not all comparable, with what tells them apart."""
    several = len({run.task.benchmark for run in runs}) > 1
    names = [f"{run.task.benchmark} / {run.task.name}" if several else run.task.name for run in runs]
    apart = told_apart([run.results.comparability for run in runs])
    return [f"{name} ({difference})" if difference else name for name, difference in zip(names, apart, strict=True)]


def agreement_of(tasks: Sequence[str], means: Mapping[str, Sequence[float]]) -> RankAgreement:
    """From each model's mean scores, in the order of `tasks`."""
    table = pd.DataFrame(means.values())
    tau = table.corr(method="kendall").to_numpy()
    return RankAgreement(
        tuple(tasks),
        tuple(means),
        tuple(map(tuple, table.to_numpy().tolist())),
        tuple(tuple(None if np.isnan(value) else value for value in row) for row in tau.tolist()),
    )


def mean_sample_score(run: ScoredRun) -> float:
    """The mean sample score over examples and runs."""
    scores = [s.scores[run.task.sample_score] for s in run.samples if s.counts]
    return float(np.mean(scores))
