"""Samples of models, from which benchmarks make the counterparts of their papers' tables and figures.

Scores run from 0 to 1, regardless of the paper's scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TypeAlias

from barista_bench.core.task import Json, Scored, Task


@dataclass(frozen=True, slots=True)
class ModelSamples:
    """One model's answers to one task, from which tables are made.

    Args:
        model: label in the report.
        task: the task with the options and the protocol of the run.
        runs: scored samples of each run, in the order of the set; samples that do not count are absent.
        judge_scores: by judge, then by `sample_name`, in the judge's own units; unscored samples are absent.
    """

    model: str
    task: Task
    runs: tuple[tuple[Scored, ...], ...]
    judge_scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


RunsByModel: TypeAlias = Mapping[str, Sequence[Mapping[str, Json]]]
"""Model -> the published scores of each of its runs."""


def sample_name(example_id: str, run: int) -> str:
    """Return the name of a sample in `ModelSamples.judge_scores`; `run` counts from 0."""
    return f"{example_id}#{run}"


def run_mean(runs: Sequence[Mapping[str, Json]], *path: str) -> float | None:
    """Return the mean of a published score over the runs that have it; `path` leads to it through tables. None if none
    has.
    """
    numbers = []
    for run in runs:
        value: Json = run
        for step in path:
            value = value.get(step) if isinstance(value, Mapping) else None
        if isinstance(value, int | float):
            numbers.append(float(value))
    return fmean(numbers) if numbers else None


def run_means(runs: RunsByModel, paths: Iterable[Sequence[str]]) -> list[tuple[str | float | None, ...]]:
    """Return one row per model: its name, and `run_mean` of each path."""
    columns = list(paths)
    return [(model, *(run_mean(model_runs, *path) for path in columns)) for model, model_runs in runs.items()]
