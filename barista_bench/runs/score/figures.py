"""Figures of scored samples by run, with their intervals: what a run's results and every analysis of it count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from barista_bench.core.bootstrap import DRAWS, LEVEL, Interval, run_intervals
from barista_bench.core.task import Scored, Task
from barista_bench.runs.score.results import Figure

if TYPE_CHECKING:
    from barista_bench.runs.score.scoring import ScoredRun, ScoredSample


def by_run(samples: Iterable[ScoredSample]) -> dict[int, list[ScoredSample]]:
    """Samples that count, by run."""
    runs: dict[int, list[ScoredSample]] = {}
    for sample in samples:
        if sample.counts:
            runs.setdefault(sample.record.run, []).append(sample)
    return dict(sorted(runs.items()))


def as_scored(samples: Iterable[ScoredSample]) -> list[Scored]:
    return [Scored(sample.example, sample.prediction) for sample in samples]


def intervals(
    task: Task, samples: Sequence[ScoredSample], *, draws: int = DRAWS, level: float = LEVEL
) -> dict[str, Interval]:
    """As `run_intervals`, of the samples that count."""
    return run_intervals(task, [as_scored(group) for group in by_run(samples).values()], draws=draws, level=level)


def interval_of(run: ScoredRun, *, draws: int = DRAWS, level: float = LEVEL) -> Mapping[str, Interval]:
    """Intervals of all figures of a scored run."""
    return intervals(run.task, run.samples, draws=draws, level=level)


def group_figures(
    task: Task, samples: Sequence[ScoredSample], groups: Sequence[Sequence[ScoredSample]], *, draws: int = DRAWS
) -> list[Figure | None]:
    """The primary figure of each group of samples, over its runs, with its interval over its clusters.

    `draws` are of the bootstrap, 0 for no intervals. None where no sample of a group counts, or where
    one of its runs has no such figure.
    """
    names = [{_named(sample) for sample in group} for group in groups]
    values: list[list[float]] = [[] for _ in groups]
    for own in by_run(samples).values():
        # Of draws that take the samples of a group once: `aggregate` also makes all other figures and tables.
        weights = np.array([[float(_named(sample) in group) for sample in own] for group in names])
        if not len(weights):
            continue
        found = task.resampled(as_scored(own), weights)[task.primary]
        for place in np.flatnonzero(weights.any(axis=1)).tolist():
            values[place].append(float(found[place]))
    return [
        _figure(own, intervals(task, group, draws=draws).get(task.primary) if draws else None)
        for own, group in zip(values, groups, strict=True)
    ]


def _figure(values: list[float], ends: Interval | None) -> Figure | None:
    if not values or np.isnan(values).any():
        return None
    return Figure(
        mean=float(np.mean(values)),
        std=float(np.std(values, ddof=1)) if len(values) > 1 else None,
        runs=values,
        low=ends.low if ends else None,
        high=ends.high if ends else None,
    )


def _named(sample: ScoredSample) -> tuple[str, int]:
    return sample.example.example_id, sample.record.run
