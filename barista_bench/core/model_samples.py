"""Hold the samples of models, from which benchmarks make counterparts of their papers' tables and figures.

Scores run from 0 to 1, regardless of the paper's scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TypeAlias

from barista_bench.core.example import Json, Scored
from barista_bench.core.task import Task


@dataclass(frozen=True, slots=True)
class ModelSamples:
    """One model's answers to one task, as input for tables.

    Args:
        model: label in the report.
        task: the task with the options and the protocol of the run.
        repetitions: scored samples of each repetition, in the order of the set. Samples that do not count are absent.
        judge_scores: scores by judge, then by `sample_name`, in the judge's own units. Unscored samples are absent.
        settings: the model's settings in the run, such as `frames` and `max_side`.
        name: the model's name, the same for all of its runs; empty if unknown.
    """

    model: str
    task: Task
    repetitions: tuple[tuple[Scored, ...], ...]
    judge_scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    settings: Mapping[str, Json] = field(default_factory=dict)
    name: str = ""


RepetitionsByModel: TypeAlias = Mapping[str, Sequence[Mapping[str, Json]]]
"""Maps each model to the published scores of its repetitions."""


def sample_name(example_id: str, repetition: int) -> str:
    """Return the name of a sample in `ModelSamples.judge_scores`; `repetition` counts from 0."""
    return f"{example_id}#{repetition}"


def mean_of_repetitions(repetitions: Sequence[Mapping[str, Json]], *path: str) -> float | None:
    """Return the mean of a published score over the repetitions that have this score.

    `path` is the sequence of keys that lead to the score through tables. The mean is None if no repetition has the
    score.
    """
    numbers = []
    for repetition in repetitions:
        value: Json = repetition
        for step in path:
            value = value.get(step) if isinstance(value, Mapping) else None
        if isinstance(value, int | float):
            numbers.append(float(value))
    return fmean(numbers) if numbers else None


def means_of_repetitions(
    repetitions: RepetitionsByModel, paths: Iterable[Sequence[str]]
) -> list[tuple[str | float | None, ...]]:
    """Return one row per model: the model's name, and `mean_of_repetitions` for each path."""
    columns = list(paths)
    return [
        (model, *(mean_of_repetitions(repetitions_of_model, *path) for path in columns))
        for model, repetitions_of_model in repetitions.items()
    ]
