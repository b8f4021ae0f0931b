"""Figures of scored samples by repetition, with their intervals: what results and analyses of a run are made of."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from barista_bench.core.bootstrap import DRAWS, LEVEL, ClusteredRun, Interval, run_intervals
from barista_bench.core.task import Task
from barista_bench.runs.score.results import Figure

if TYPE_CHECKING:
    from barista_bench.runs.score.samples import ScoredSample
    from barista_bench.runs.score.scoring import ScoredRun


@dataclass(frozen=True, slots=True)
class CountedSamples:
    """The samples of one repetition of a run that count, compared with the truth once."""

    samples: tuple[ScoredSample, ...]
    clustered: ClusteredRun

    def among(self, samples: Iterable[ScoredSample]) -> CountedSamples:
        """Those that are among `samples`, in their order here."""
        names = {sample.name for sample in samples}
        positions = [at for at, sample in enumerate(self.samples) if sample.name in names]
        if len(positions) == len(self.samples):
            return self
        return CountedSamples(tuple(self.samples[at] for at in positions), self.clustered.among(positions))


Counted = Mapping[int, CountedSamples]
"""By repetition, in order."""


def counted_samples(task: Task, samples: Iterable[ScoredSample]) -> dict[int, CountedSamples]:
    """The samples that count, each with its scores: the only place where answers are compared with the truth."""
    counted = {}
    for run, group in by_repetition(samples).items():
        clustered = ClusteredRun.of(task, [sample.as_scored for sample in group])
        columns = clustered.statistics.scores()
        rows = zip(*(values.tolist() for values in columns.values()), strict=True)
        scored = (
            replace(sample, scores=dict(zip(columns, row, strict=True)))
            for sample, row in zip(group, rows, strict=True)
        )
        counted[run] = CountedSamples(tuple(scored), clustered)
    return counted


def by_repetition(samples: Iterable[ScoredSample]) -> dict[int, list[ScoredSample]]:
    """The samples that count, by repetition."""
    runs: dict[int, list[ScoredSample]] = {}
    for sample in samples:
        if sample.counts:
            runs.setdefault(sample.record.run, []).append(sample)
    return dict(sorted(runs.items()))


def group_figure(task: Task, counted: Counted, group: Iterable[ScoredSample], *, draws: int = DRAWS) -> Figure | None:
    """The primary figure of a group of samples, over its repetitions, with its interval over its clusters.

    Args:
        task: that was run.
        counted: all samples of the run that count.
        group: some of them.
        draws: of the bootstrap, 0 for no interval.

    Returns:
        None where no sample of the group counts, or where one of its repetitions has no such figure.
    """
    group, name = list(group), task.primary
    parts = [part.clustered for samples in counted.values() if (part := samples.among(group)).samples]
    values = [float(part.statistics.figures(np.ones((1, part.statistics.size)))[name][0]) for part in parts]
    if not values or np.isnan(values).any():
        return None
    return figure(values, run_intervals(parts, draws=draws).get(name) if draws else None)


def figure(values: Sequence[float], interval: Interval | None = None, *, is_even: bool = True) -> Figure:
    """Mean and sample standard deviation over repetitions; no deviation where they are over different examples."""
    return Figure(
        mean=statistics.fmean(values),
        std=statistics.stdev(values) if len(values) > 1 and is_even else None,
        runs=list(values),
        low=interval.low if interval else None,
        high=interval.high if interval else None,
    )


def intervals(counted: Counted, *, draws: int = DRAWS, level: float = LEVEL) -> dict[str, Interval]:
    """Of all figures, as `run_intervals` gives them."""
    return run_intervals([group.clustered for group in counted.values()], draws=draws, level=level)


def interval_of(run: ScoredRun, *, draws: int = DRAWS, level: float = LEVEL) -> dict[str, Interval]:
    """Intervals of all figures of a scored run."""
    return intervals(run.counted, draws=draws, level=level)
