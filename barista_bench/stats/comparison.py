"""Paired comparison of models on the same examples: difference, interval, permutation test, effect size, Holm.

Both models answered the same examples, so the test asks what would be if their names were exchanged: in each
permutation the answers of whole videos (or what else `Task.cluster` keeps together) change sides, and both figures are
aggregated anew. With few videos all permutations are tried and the p-value is exact (Fisher's randomisation test,
clustered by video). Several comparisons made together are corrected by Holm's step-down procedure (Holm 1979), which
needs no independence.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from barista_bench.core.bootstrap import (
    DRAWS,
    LEVEL,
    ClusteredRun,
    bootstrap_seed,
    figures_of,
    interval,
    interval_weights,
)
from barista_bench.core.statistics import Floats
from barista_bench.core.task import Task, content_seed
from barista_bench.errors import DataError
from barista_bench.runs.score.comparability import ABOUT_EXAMPLES, differences
from barista_bench.runs.score.figures import as_scored, by_run
from barista_bench.stats.labels import run_labels
from barista_bench.stats.types import Comparison

if TYPE_CHECKING:
    from barista_bench.runs.score.samples import ScoredSample
    from barista_bench.runs.score.scoring import ScoredRun

TIE = 1e-12
"""Differences that are smaller are rounding."""


class Compare(Protocol):
    """What compares two runs, as `compare_pair` does."""

    def __call__(self, first: ScoredRun, second: ScoredRun, *, draws: int = DRAWS) -> Comparison: ...


def compare_runs(runs: Sequence[ScoredRun], *, draws: int = DRAWS, level: float = LEVEL) -> tuple[Comparison, ...]:
    """Every pair of runs of the same task, in the order given, corrected together; models are called by `run_labels`.

    Raises:
        DataError: no task has two runs, or two runs of one task are not about the same examples by the same rules.
    """
    by_task: dict[tuple[str, str], list[ScoredRun]] = defaultdict(list)
    for run in runs:
        by_task[run.task.benchmark, run.task.name].append(run)
    pairs = [pair for group in by_task.values() for pair in combinations(group, 2)]
    if not pairs:
        raise DataError("no two runs are of the same task. Remedy: name two runs of one task or more")
    names = run_labels(runs)
    return corrected(
        [
            labelled(compare_pair(first, second, draws=draws, level=level), names[first.folder], names[second.folder])
            for first, second in pairs
        ]
    )


def compare_pair(first: ScoredRun, second: ScoredRun, *, draws: int = DRAWS, level: float = LEVEL) -> Comparison:
    """Two runs of one task; `p_adjusted` is `p_value`, as for a comparison made alone.

    Raises:
        DataError: the runs are not comparable (`running.comparability`), or share no finished sample.
    """
    refuse_different(first, second)
    common = _common(first, second)
    name = first.task.primary
    figure = _figure_difference(first, second, common, draws, level)
    sample = _sample_difference(first, common, draws, level)
    per_example = np.array(list(_by_example(first, common).values()))
    spread = float(per_example.std(ddof=1)) if len(per_example) > 1 else 0.0
    return Comparison(
        benchmark=first.task.benchmark,
        task=first.task.name,
        first=first.results.model.name,
        second=second.results.model.name,
        name=name,
        first_value=figure.first,
        second_value=figure.second,
        difference=figure.difference,
        low=figure.low,
        high=figure.high,
        p_value=figure.p_value,
        p_adjusted=figure.p_value,
        sample_name=first.task.sample_score,
        sample_difference=sample.difference,
        sample_low=sample.low,
        sample_high=sample.high,
        sample_p_value=sample.p_value,
        effect_size=float(per_example.mean()) / spread if spread > TIE else None,
        wins=int((per_example > TIE).sum()),
        ties=int((np.abs(per_example) <= TIE).sum()),
        losses=int((per_example < -TIE).sum()),
        examples=len(per_example),
        expected_examples=first.results.dataset.examples,
        videos=len(common.videos),
        runs=len(common.pairs),
        samples=sum(map(len, common.pairs)),
        expected_samples=max(first.results.coverage.expected, second.results.coverage.expected),
    )


def corrected(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The comparisons with `p_adjusted` by Holm's procedure over all of them."""
    adjusted = holm([item.p_value for item in comparisons])
    return tuple(replace(item, p_adjusted=p) for item, p in zip(comparisons, adjusted, strict=True))


def labelled(comparison: Comparison, first: str, second: str) -> Comparison:
    """The comparison under other names."""
    return replace(comparison, first=first, second=second)


def turned(comparison: Comparison) -> Comparison:
    """The same comparison seen from the other side."""
    one = comparison
    return replace(
        one,
        first=one.second,
        second=one.first,
        first_value=one.second_value,
        second_value=one.first_value,
        difference=-one.difference,
        low=_negative(one.high),
        high=_negative(one.low),
        sample_difference=-one.sample_difference,
        sample_low=_negative(one.sample_high),
        sample_high=_negative(one.sample_low),
        effect_size=_negative(one.effect_size),
        wins=one.losses,
        losses=one.wins,
    )


def _negative(value: float | None) -> float | None:
    return None if value is None else -value


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values, in the order given.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, at in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p_values[at]))
        adjusted[at] = largest
    return adjusted


def refuse_different(first: ScoredRun, second: ScoredRun) -> None:
    """Raise DataError where two runs may not share a rank; names what differs."""
    apart = differences(first.results.comparability, second.results.comparability)
    if not apart:
        return
    if not apart.keys() <= ABOUT_EXAMPLES or "examples" not in apart:
        told = "; ".join(f"{name}: {values}" for name, values in apart.items())
        raise DataError(
            f"{first.folder} and {second.folder} differ in their {told}. Remedy: compare runs of one task by one "
            "protocol, over the same split and limit, with the same options and in one wording"
        )
    ids = [{example.example_id for example in run.examples.examples} for run in (first, second)]
    alone = [sorted(ids[0] - ids[1]), sorted(ids[1] - ids[0])]
    alone_in = [
        f"{len(only)} only in {run.folder} ({only[0]}{', ...' if len(only) > 1 else ''})"
        for run, only in zip((first, second), alone, strict=True)
        if only
    ]
    what = " and ".join(alone_in) or "the same ids with other content"
    raise DataError(
        f"{first.folder} and {second.folder} are about different examples: {what}. "
        "Remedy: run both models on one dataset, with the same split and limit"
    )


class _Common(NamedTuple):
    """Samples that both runs finished: for each run index, pairs of the same example; and their clusters, sorted."""

    pairs: list[list[tuple[ScoredSample, ScoredSample]]]
    videos: list[str]


class _Difference(NamedTuple):
    first: float
    second: float
    difference: float
    low: float | None
    high: float | None
    p_value: float


def _common(first: ScoredRun, second: ScoredRun) -> _Common:
    """Run 0 of one with run 0 of the other, and so on, as far as both have them."""
    one, other = by_run(first.samples), by_run(second.samples)
    pairs = []
    for run in sorted(one.keys() & other.keys()):
        theirs = {sample.example.example_id: sample for sample in other[run]}
        found = [(s, theirs[s.example.example_id]) for s in one[run] if s.example.example_id in theirs]
        if found:
            pairs.append(found)
    if not pairs:
        raise DataError(
            f"{first.folder} and {second.folder} share no finished sample. Remedy: finish both runs, then compare"
        )
    return _Common(pairs, sorted({first.task.cluster(s.example) for group in pairs for s, _ in group}))


def _figure_difference(first: ScoredRun, second: ScoredRun, common: _Common, draws: int, level: float) -> _Difference:
    """Of the primary figure, aggregated anew for each draw and each permutation."""
    name, videos = first.task.primary, common.videos
    weights = interval_weights(videos, draws)
    one, other = (
        figures_of(_of_pairs(run, common, side), videos, weights)[name] for side, run in enumerate((first, second))
    )
    gap = one - other
    permuted = _permuted(first.task, common, swaps(len(videos), draws, _permutation_seed(common)))
    ends = _ends(gap, len(videos), level)
    return _Difference(float(one[0]), float(other[0]), float(gap[0]), *ends, p_value(permuted))


def _of_pairs(run: ScoredRun, common: _Common, side: int) -> list[ClusteredRun]:
    """What the figures of one side of the pairs are made of."""
    return [
        run.counted[group[0][side].record.run].among(pair[side] for pair in group).clustered for group in common.pairs
    ]


def _permuted(task: Task, common: _Common, flips: Floats) -> Floats:
    """(P,) the difference of the figure with the videos of each row of `flips` (P, V) changing sides."""
    total = np.zeros(len(flips))
    place = {video: at for at, video in enumerate(common.videos)}
    for group in common.pairs:
        # Side by side, so that the examples keep their order, on which some figures depend.
        both = as_scored(sample for pair in group for sample in pair)
        moved = flips[:, np.array([place[task.cluster(one.example)] for one, _ in group], dtype=np.int64)]
        one = np.stack([1 - moved, moved], axis=2).reshape(len(flips), -1)
        values = task.statistics(both).figures(np.vstack([one, 1 - one]))[task.primary]
        total += values[: len(flips)] - values[len(flips) :]
    return total / len(common.pairs)


def _sample_difference(first: ScoredRun, common: _Common, draws: int, level: float) -> _Difference:
    """Of the mean sample score."""
    name, videos = first.task.sample_score, common.videos
    place = {video: at for at, video in enumerate(videos)}
    sums = np.zeros((3, len(videos)))
    for group in common.pairs:
        for one, other in group:
            sums[:, place[first.task.cluster(one.example)]] += one.scores[name], other.scores[name], 1.0
    count = len(videos)
    totals = interval_weights(videos, draws) @ sums.T
    with np.errstate(invalid="ignore", divide="ignore"):
        one_mean, other_mean = totals[:, 0] / totals[:, 2], totals[:, 1] / totals[:, 2]
    gap = one_mean - other_mean
    flips = swaps(count, draws, _permutation_seed(common))
    permuted = (1 - 2 * flips) @ (sums[0] - sums[1]) / sums[2].sum()
    ends = _ends(gap, count, level)
    return _Difference(float(one_mean[0]), float(other_mean[0]), float(gap[0]), *ends, p_value(permuted))


def _ends(gap: Floats, videos: int, level: float) -> tuple[float | None, float | None]:
    if videos < 2:
        return None, None
    found = interval(float(gap[0]), gap[1 + videos :], gap[1 : 1 + videos], clusters=videos, level=level)
    return (found.low, found.high) if found else (None, None)


def swaps(videos: int, draws: int, seed: int) -> Floats:
    """(P, videos) which videos change sides, the first row none: all 2^videos ways if these are no more than `draws`.

    >>> swaps(2, 100, 0).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    if videos <= math.log2(draws):
        return np.array(list(product((0.0, 1.0), repeat=videos)))
    drawn = np.random.default_rng(seed).integers(2, size=(draws, videos)).astype(np.float64)
    return np.vstack([np.zeros(videos), drawn])


def p_value(permuted: Floats) -> float:
    """Two-sided: the share of permutations, the data as they are (the first) among them, that differ as much."""
    observed = abs(permuted[0])
    return float((np.abs(permuted) >= observed - TIE).mean())


def _by_example(first: ScoredRun, common: _Common) -> dict[str, float]:
    """Mean difference of the sample score over runs, by example."""
    name = first.task.sample_score
    gaps: dict[str, list[float]] = defaultdict(list)
    for group in common.pairs:
        for one, other in group:
            gaps[one.example.example_id].append(one.scores[name] - other.scores[name])
    return {example: math.fsum(values) / len(values) for example, values in gaps.items()}


def _permutation_seed(common: _Common) -> int:
    return content_seed("permutation", bootstrap_seed(common.videos))
