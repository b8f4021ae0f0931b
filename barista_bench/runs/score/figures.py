"""Figures of scored samples by run, with their intervals: what a run's results and every analysis of it count."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from barista_bench.core.bootstrap import DRAWS, LEVEL, ClusteredRun, Interval, run_intervals
from barista_bench.core.task import Scored, Task
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
        """Those of them that are among `samples`, in their own order."""
        names = {sample.name for sample in samples}
        positions = [at for at, sample in enumerate(self.samples) if sample.name in names]
        if len(positions) == len(self.samples):
            return self
        return CountedSamples(tuple(self.samples[at] for at in positions), self.clustered.among(positions))


Counted = Mapping[int, CountedSamples]
"""By repetition, in order."""


def counted_samples(task: Task, samples: Iterable[ScoredSample]) -> dict[int, CountedSamples]:
    """The samples that count, by repetition."""
    return {
        run: CountedSamples(tuple(group), ClusteredRun.of(task, as_scored(group)))
        for run, group in by_run(samples).items()
    }


def by_run(samples: Iterable[ScoredSample]) -> dict[int, list[ScoredSample]]:
    """Samples that count, by repetition."""
    runs: dict[int, list[ScoredSample]] = {}
    for sample in samples:
        if sample.counts:
            runs.setdefault(sample.record.run, []).append(sample)
    return dict(sorted(runs.items()))


def as_scored(samples: Iterable[ScoredSample]) -> list[Scored]:
    return [Scored(sample.example, sample.prediction) for sample in samples]


def intervals(counted: Counted, *, draws: int = DRAWS, level: float = LEVEL) -> dict[str, Interval]:
    """As `run_intervals`, of the samples that count."""
    return run_intervals([group.clustered for group in counted.values()], draws=draws, level=level)


def group_figures(
    task: Task, counted: Counted, groups: Sequence[Sequence[ScoredSample]], *, draws: int = DRAWS
) -> list[Figure | None]:
    """The primary figure of each group of samples, over its repetitions, with its interval over its clusters.

    `draws` are of the bootstrap, 0 for no intervals. None where no sample of a group counts, or where
    one of its repetitions has no such figure.
    """
    return [_group_figure(task.primary, counted, group, draws) for group in groups]


def _group_figure(name: str, counted: Counted, group: Sequence[ScoredSample], draws: int) -> Figure | None:
    parts = [part.clustered for whole in counted.values() if (part := whole.among(group)).samples]
    values = [float(part.statistics.figures(np.ones((1, part.statistics.size)))[name][0]) for part in parts]
    if not values or np.isnan(values).any():
        return None
    ends = run_intervals(parts, draws=draws).get(name) if draws else None
    return figure(values, ends)


def figure(values: Sequence[float], ends: Interval | None = None, *, is_even: bool = True) -> Figure:
    """Mean and sample standard deviation over repetitions; no deviation where they are over different examples."""
    return Figure(
        mean=statistics.fmean(values),
        std=statistics.stdev(values) if len(values) > 1 and is_even else None,
        runs=list(values),
        low=ends.low if ends else None,
        high=ends.high if ends else None,
    )


def interval_of(run: ScoredRun, *, draws: int = DRAWS, level: float = LEVEL) -> dict[str, Interval]:
    """Intervals of all figures of a scored run."""
    return intervals(run.counted, draws=draws, level=level)
