"""Intervals of figures by a bootstrap over videos, or what else a task keeps together (`Task.cluster`).

Samples of one video resemble each other, and so do the runs of one example. So videos are drawn with replacement, and
all samples and runs of a drawn video come along; pooled figures (micro F1, accuracy, mean average precision) are
aggregated anew for each draw (`Task.statistics`) and averaged over runs, as the published figure is.

The interval is the bias-corrected and accelerated one (BCa; Efron 1987, doi:10.1080/01621459.1987.10478410), which
leaves out one video at a time for the acceleration; the plain percentiles where that cannot be told. Draws depend on
the videos alone, so that models which answered the same set are resampled alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from barista_bench.core.example import Scored, content_seed
from barista_bench.core.interval import DRAWS as DRAWS
from barista_bench.core.interval import LEVEL as LEVEL
from barista_bench.core.interval import Interval as Interval
from barista_bench.core.statistics import Floats, SampleStatistics
from barista_bench.core.task import Task


def video_draws(videos: int, draws: int, seed: int) -> Floats:
    """(draws, videos) how often each video is taken, in draws of as many videos as there are, with replacement."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(videos, np.full(videos, 1 / videos), size=draws).astype(np.float64)


def without_each(videos: int) -> Floats:
    """(videos, videos) all but one, for the jackknife."""
    return 1 - np.eye(videos)


def bootstrap_seed(videos: Iterable[str]) -> int:
    return content_seed("bootstrap", *sorted(set(videos)))


class ClusteredRun(NamedTuple):
    """The samples of one run: what their figures are made of, and what each of them is drawn with."""

    statistics: SampleStatistics
    clusters: tuple[str, ...]

    @classmethod
    def of(cls, task: Task, samples: Sequence[Scored]) -> ClusteredRun:
        return cls(task.statistics(samples), tuple(task.cluster(sample.example) for sample in samples))

    def among(self, samples: Sequence[int]) -> ClusteredRun:
        """Some of the samples, by their positions."""
        return ClusteredRun(self.statistics.among(samples), tuple(self.clusters[at] for at in samples))


def figures_of(runs: Sequence[ClusteredRun], clusters: Sequence[str], weights: Floats) -> dict[str, Floats]:
    """(D,) a figure, mean over runs, for (D, V) weights of the V `clusters`; only figures that every run has."""
    column = {cluster: at for at, cluster in enumerate(clusters)}
    by_run = []
    for run in runs:
        columns = np.array([column[cluster] for cluster in run.clusters], dtype=np.int64)
        by_run.append(run.statistics.figures(weights[:, columns]))
    shared = [name for name in by_run[0] if all(name in figures for figures in by_run)]
    return {name: np.mean([figures[name] for figures in by_run], axis=0) for name in shared}


def run_intervals(runs: Sequence[ClusteredRun], *, draws: int = DRAWS, level: float = LEVEL) -> dict[str, Interval]:
    """An interval for each figure, mean over these runs, over the clusters of their samples.

    None at all for fewer than two clusters, and none for a figure that the samples, or no draw of them, have.
    """
    clusters = sorted({cluster for run in runs for cluster in run.clusters})
    if len(clusters) < 2:
        return {}
    values = figures_of(runs, clusters, interval_weights(clusters, draws))
    ends = {name: drawn_interval(drawn, len(clusters), level) for name, drawn in values.items()}
    return {name: interval for name, interval in ends.items() if interval is not None}


def ratio_interval(
    part: Floats,
    whole: Floats,
    *,
    runs: Sequence[int],
    clusters: Sequence[str],
    draws: int = DRAWS,
    level: float = LEVEL,
) -> Interval | None:
    """The interval of sum(part) / sum(whole), taken of each run and averaged over runs: means, shares, pooled rates.

    The draws are those that `run_intervals` makes of the same clusters. None for fewer than two clusters.

    Args:
        part: (S,) of each sample.
        whole: (S,) of each sample; ones for a plain mean.
        runs: (S,) the run that the sample is of.
        clusters: (S,) what it is drawn with.

    >>> ends = ratio_interval(np.array([1.0, 0, 1, 1]), np.ones(4), runs=[0] * 4, clusters=list("aabb"), draws=100)
    >>> (ends.low, ends.high, ends.clusters) if ends else None
    (0.5, 1.0, 2)
    """
    names = sorted(set(clusters))
    if len(names) < 2:
        return None
    row = {run: at for at, run in enumerate(sorted(set(runs)))}
    column = {cluster: at for at, cluster in enumerate(names)}
    cells = [row[run] for run in runs], [column[cluster] for cluster in clusters]
    sums = np.zeros((2, len(row), len(column)))
    np.add.at(sums[0], cells, part)
    np.add.at(sums[1], cells, whole)
    parts, wholes = sums @ interval_weights(names, draws).T
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.where(wholes > 0, parts / wholes, np.nan).mean(axis=0)
    return drawn_interval(values, len(names), level)


def interval_weights(clusters: Sequence[str], draws: int) -> Floats:
    """(1 + V + D, V) the V clusters as they are, without each in turn, and as they are drawn."""
    count = len(clusters)
    return np.vstack([np.ones(count), without_each(count), video_draws(count, draws, bootstrap_seed(clusters))])


def drawn_interval(values: Floats, count: int, level: float = LEVEL) -> Interval | None:
    """Of the (1 + V + D,) values that a figure takes by each row of `interval_weights`; `count` is V, two or more."""
    return interval(float(values[0]), values[1 + count :], values[1 : 1 + count], clusters=count, level=level)


def interval(
    point: float, drawn: Floats, left_out: Floats | None = None, *, clusters: int, level: float = LEVEL
) -> Interval | None:
    """The interval of one figure.

    Args:
        point: the figure itself.
        drawn: (D,) of each draw; NaN are passed over.
        left_out: (V,) without each video in turn, for BCa; None for the plain percentiles.
        clusters: how many videos were drawn from.
        level: share of cases in which the interval should hold the truth.

    Returns:
        None where the point or all draws are NaN.
    """
    present = np.sort(drawn[~np.isnan(drawn)])
    if np.isnan(point) or not len(present):
        return None
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    moved = None if left_out is None else _bca_tails(point, present, left_out, tails)
    low, high = np.quantile(present, tails if moved is None else moved)
    return Interval(float(low), float(high), level, "percentile" if moved is None else "bca", clusters, len(present))


def _bca_tails(point: float, drawn: Floats, left_out: Floats, tails: Floats) -> Floats | None:
    """Where to cut the draws instead of at `tails`; None where bias or acceleration are not defined."""
    below = ((drawn < point).sum() + (drawn <= point).sum()) / (2 * len(drawn))
    spread = left_out.mean() - left_out
    total = float((spread**2).sum())
    if not 0 < below < 1 or not total > 0:  # also where a figure is NaN without some video
        return None
    bias, acceleration = ndtri(below), float((spread**3).sum()) / (6 * total**1.5)
    z = bias + ndtri(tails)
    moved = ndtr(bias + z / (1 - acceleration * z))
    return np.asarray(moved) if np.isfinite(moved).all() and moved[0] < moved[1] else None
