"""Compare pairs of models on the same examples: difference, interval, permutation test, effect size, Holm's correction.

Both models answered the same examples. So the test exchanges the models' names and measures the difference again. In
each permutation, all answers of some resampling units change sides (`Task.resampling_unit`: videos for most tasks), and
both scores are computed again. With few units all permutations are tried, and the p-value is exact (Fisher's
randomisation test, clustered by unit). With n units no p-value is below 2 / 2^n, so 5 or fewer units cannot show a
difference. Several comparisons are corrected together by Holm's step-down procedure (Holm 1979). The procedure does not
need independence.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, product
from typing import Literal, NamedTuple

import numpy as np

from barista_bench.core.example import Example, content_seed
from barista_bench.core.guarding import unit_of
from barista_bench.core.intervals import (
    CONFIDENCE,
    DIFFERENCE,
    PERMUTATIONS,
    ResampledRepetition,
    metric_interval,
    metrics_of_units,
)
from barista_bench.core.statistics import Floats, SumStatistics, adjust_p_values, fraction
from barista_bench.core.task import Task
from barista_bench.errors import DataError
from barista_bench.runs.score.comparability import ABOUT_EXAMPLES, differences
from barista_bench.runs.score.labels import run_labels
from barista_bench.runs.score.samples import ScoredSample, by_repetition
from barista_bench.runs.score.scoring import ScoredRun, split_stopped

TIE = 1e-12
"""Differences below this value are rounding errors."""
SURE_BELOW = 1 - CONFIDENCE
"""Corrected p-value below which a difference is called sure."""
Certainty = Literal["sure", "likely", "unclear", "too few", "none"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of two models on the same samples of a task. Differences are `first` minus `second`.

    `name` is the task's primary metric. Its `difference` is the mean over repetitions, with the interval [low, high]
    over `units` resampling units (`core.intervals`). `p_value` comes from a permutation test that swaps whole units
    between the two models. `p_adjusted` is Holm's correction over all comparisons made together. Fields `sample_*` hold
    these values for the mean sample score. `effect_size` is Cohen's d_z of the examples' sample scores (mean difference
    / its standard deviation), or None if no example differs. `wins`, `ties` and `losses` count examples by their mean
    sample score over repetitions.

    Only samples of both models are compared: `examples` of `expected_examples` examples with `runs` repetitions each,
    and `samples` of `expected_samples` samples. `first_missing` and `second_missing` count the samples that each run
    should have but lacks. Samples of repetitions that only one run has do not count as missing.
    """

    benchmark: str
    task: str
    first: str
    second: str
    name: str
    first_value: float
    second_value: float
    difference: float
    low: float | None
    high: float | None
    p_value: float
    p_adjusted: float
    sample_name: str
    sample_difference: float
    sample_low: float | None
    sample_high: float | None
    sample_p_value: float
    effect_size: float | None
    wins: int
    ties: int
    losses: int
    examples: int
    expected_examples: int
    units: int
    repetitions: int
    samples: int
    expected_samples: int
    first_missing: int = 0
    second_missing: int = 0

    @property
    def certainty(self) -> Certainty:
        """Return how certain the difference is.

        `sure`: `p_adjusted` is below 0.05. `likely`: only the uncorrected `p_value` is below 0.05. `none`: neither the
        score nor any example differs. `too few`: there are too few units for a p-value below 0.05.
        """
        if self.p_adjusted < SURE_BELOW:
            return "sure"
        if abs(self.difference) <= TIE and not self.wins and not self.losses:
            return "none"
        if 2 / 2**self.units >= SURE_BELOW:
            return "too few"
        return "likely" if self.p_value < SURE_BELOW else "unclear"

    @property
    def missing_by_model(self) -> dict[str, int]:
        """Map each model that lacks samples to the number of missing samples."""
        missing = ((self.first, self.first_missing), (self.second, self.second_missing))
        return {name: count for name, count in missing if count}


def compare_runs(
    runs: Sequence[ScoredRun], *, permutations: int = PERMUTATIONS, level: float = CONFIDENCE
) -> tuple[Comparison, ...]:
    """Compare every pair of runs of the same task, in the given order. Names come from `run_labels`.

    All p-values are corrected together. Runs that stopped early are left out; `StoppedRun` holds their results.

    Raises:
        DataError: no task has two runs, or two runs of a task differ in examples or rules.
    """
    by_task: dict[tuple[str, str], list[ScoredRun]] = defaultdict(list)
    runs, _ = split_stopped(runs)
    for run in runs:
        by_task[run.task.benchmark, run.task.name].append(run)
    pairs = [pair for group in by_task.values() for pair in combinations(group, 2)]
    if not pairs:
        raise DataError("no two runs are of the same task. Fix: name two runs of one task or more")
    names = run_labels(runs)
    comparisons = [(pair, compare_pair(*pair, permutations=permutations, level=level)) for pair in pairs]
    return correct_p_values(
        [replace(item, first=names[a.folder], second=names[b.folder]) for (a, b), item in comparisons]
    )


def compare_pair(
    first: ScoredRun, second: ScoredRun, *, permutations: int = PERMUTATIONS, level: float = CONFIDENCE
) -> Comparison:
    """Compare two runs of one task. For a single comparison, `p_adjusted` equals `p_value`.

    Raises:
        DataError: the runs are not comparable (`runs.score.comparability`), or share no finished sample.
    """
    refuse_different(first, second)
    common = _common_samples(first, second)
    name, score = first.task.primary, first.task.sample_score
    if first.judged and second.judged:
        name = score = first.score_note
    else:
        first, second = replace(first, judged=None), replace(second, judged=None)
    scored_pairs = _scored_pairs(first, second, common)
    mean_score = _difference(score, _sample_score_sides(first.task, score, scored_pairs), common, permutations, level)
    primary = mean_score
    if not first.judged:
        primary = _difference(name, _metric_sides(first, second, common), common, permutations, level)
    gaps: dict[str, list[float]] = defaultdict(list)
    for example, of_first, of_second in scored_pairs:
        gaps[example.example_id].append(of_first - of_second)
    per_example = np.array([math.fsum(values) / len(values) for values in gaps.values()])
    spread = float(per_example.std(ddof=1)) if len(per_example) > 1 else 0.0
    return Comparison(
        benchmark=first.task.benchmark,
        task=first.task.name,
        first=first.results.model.label,
        second=second.results.model.label,
        name=name,
        first_value=primary.first,
        second_value=primary.second,
        difference=primary.difference,
        low=primary.low,
        high=primary.high,
        p_value=primary.p_value,
        p_adjusted=primary.p_value,
        sample_name=score,
        sample_difference=mean_score.difference,
        sample_low=mean_score.low,
        sample_high=mean_score.high,
        sample_p_value=mean_score.p_value,
        effect_size=float(per_example.mean()) / spread if spread > TIE else None,
        wins=int((per_example > TIE).sum()),
        ties=int((np.abs(per_example) <= TIE).sum()),
        losses=int((per_example < -TIE).sum()),
        examples=len(per_example),
        expected_examples=first.results.dataset.examples,
        units=len(common.units),
        repetitions=len(common.pairs),
        samples=sum(map(len, common.pairs)),
        expected_samples=max(first.results.coverage.expected, second.results.coverage.expected),
        first_missing=first.results.coverage.missing,
        second_missing=second.results.coverage.missing,
    )


def correct_p_values(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Return the comparisons with `p_adjusted` set by Holm's procedure over all comparisons."""
    adjusted = adjust_p_values([item.p_value for item in comparisons])
    return tuple(replace(item, p_adjusted=p) for item, p in zip(comparisons, adjusted, strict=True))


def swapped_sides(comparison: Comparison) -> Comparison:
    """Return the comparison with the two models exchanged."""

    def negative(value: float | None) -> float | None:
        return None if value is None else -value

    return replace(
        comparison,
        first=comparison.second,
        second=comparison.first,
        first_value=comparison.second_value,
        second_value=comparison.first_value,
        difference=-comparison.difference,
        low=negative(comparison.high),
        high=negative(comparison.low),
        sample_difference=-comparison.sample_difference,
        sample_low=negative(comparison.sample_high),
        sample_high=negative(comparison.sample_low),
        effect_size=negative(comparison.effect_size),
        wins=comparison.losses,
        losses=comparison.wins,
        first_missing=comparison.second_missing,
        second_missing=comparison.first_missing,
    )


def refuse_different(first: ScoredRun, second: ScoredRun) -> None:
    """Raise DataError if the scores of two runs are not comparable. The message names the difference."""
    conditions = differences(first.results.comparability, second.results.comparability)
    if not conditions:
        return
    folders = f"{first.folder} and {second.folder}"
    if not conditions.keys() <= ABOUT_EXAMPLES or "examples" not in conditions:
        listed = "; ".join(f"{name}: {values}" for name, values in conditions.items())
        raise DataError(
            f"{folders} differ in their {listed}. Fix: compare runs of one task by one protocol, over the same "
            "split and limit, with the same options and in one wording"
        )
    ids = [{example.example_id for example in run.examples.examples} for run in (first, second)]
    lone_examples = [
        f"{len(lone_ids)} only in {run.folder} ({min(lone_ids)}{', ...' if len(lone_ids) > 1 else ''})"
        for run, lone_ids in ((first, ids[0] - ids[1]), (second, ids[1] - ids[0]))
        if lone_ids
    ]
    raise DataError(
        f"{folders} are about different examples: {' and '.join(lone_examples) or 'the same ids with other content'}. "
        "Fix: run both models on one dataset, with the same split and limit"
    )


Pairs = list[tuple["ScoredSample", "ScoredSample"]]
"""Pairs of answers of two models to the same examples."""


class _CommonSamples(NamedTuple):
    """The samples that both runs finished, as pairs by repetition, and the sorted names of their units."""

    pairs: list[Pairs]
    units: list[str]

    @property
    def permutation_seed(self) -> int:
        return content_seed("permutation", content_seed("bootstrap", *self.units))


def _common_samples(first: ScoredRun, second: ScoredRun) -> _CommonSamples:
    """Pair the samples of two runs: repetition 0 with repetition 0, and so on."""
    of_first, of_second = by_repetition(first.samples), by_repetition(second.samples)
    pairs = []
    for run in sorted(of_first.keys() & of_second.keys()):
        partners = {sample.example.example_id: sample for sample in of_second[run]}
        shared = [(s, partners[s.example.example_id]) for s in of_first[run] if s.example.example_id in partners]
        if shared:
            pairs.append(shared)
    if not pairs:
        raise DataError(
            f"{first.folder} and {second.folder} share no finished sample. Fix: finish both runs, then compare"
        )
    return _CommonSamples(pairs, sorted({unit_of(first.task, s.example) for group in pairs for s, _ in group}))


class _Sides(NamedTuple):
    """One repetition of two models on the same examples. In `exchangeable`, samples of the two models alternate."""

    first: ResampledRepetition
    second: ResampledRepetition
    exchangeable: ResampledRepetition


def _metric_sides(first: ScoredRun, second: ScoredRun, common: _CommonSamples) -> list[_Sides]:
    """Return the statistics of the primary metric, one entry per repetition."""

    sides = []
    for pairs in common.pairs:
        columns = zip((first, second), zip(*pairs, strict=True), strict=True)
        of_first, of_second = (run.counted[samples[0].record.repetition].subset(samples) for run, samples in columns)
        # Samples alternate, so that the examples keep their order. Some scores depend on this order.
        alternating = [sample.as_scored for pair in pairs for sample in pair]
        both = ResampledRepetition.of(first.task, alternating, f"{first.folder}, {second.folder}")
        sides.append(_Sides(of_first, of_second, both))
    return sides


ScoredPair = tuple[Example, float, float]
"""An example, and the scores of two models for their answers to it."""


def _scored_pairs(first: ScoredRun, second: ScoredRun, common: _CommonSamples) -> list[ScoredPair]:
    """Return the scores of all pairs whose two answers have a score. Raises DataError if there is no such pair."""
    pairs = [
        (one.example, of_first, of_second)
        for one, other in chain.from_iterable(common.pairs)
        if (of_first := first.score_of(one)) is not None and (of_second := second.score_of(other)) is not None
    ]
    if not pairs:
        raise DataError(f"{first.folder} and {second.folder}: no example has two verdicts. Fix: judge both runs")
    return pairs


def _sample_score_sides(task: Task, name: str, pairs: Sequence[ScoredPair]) -> list[_Sides]:
    """Return the statistics of the mean sample score: all repetitions pooled, a row for each side of each unit."""
    units = sorted({unit_of(task, example) for example, _, _ in pairs})
    rows: dict[tuple[str, int], dict[Hashable, float]] = {
        (unit, side): {"score": 0.0, "n": 0.0} for unit in units for side in (0, 1)
    }
    for example, *scores in pairs:
        for side, score in enumerate(scores):
            row = rows[unit_of(task, example), side]
            row["score"] += score
            row["n"] += 1
    statistics = SumStatistics(list(rows.values()), lambda sums: {name: fraction(sums["score"], sums["n"])})
    both = ResampledRepetition(statistics, tuple(unit for unit, _ in rows))
    return [_Sides(both.subset(range(0, len(rows), 2)), both.subset(range(1, len(rows), 2)), both)]


class _Difference(NamedTuple):
    first: float
    second: float
    difference: float
    low: float | None
    high: float | None
    p_value: float


def _difference(
    name: str, repetitions: Sequence[_Sides], common: _CommonSamples, permutations: int, level: float
) -> _Difference:
    first = metrics_of_units([sides.first for sides in repetitions], common.units)[name]
    second = metrics_of_units([sides.second for sides in repetitions], common.units)[name]
    gap = first - second
    # Units without a difference count as a single unit. They show how rare differences are, not how large they are.
    differing = int((np.abs(gap[1 + len(common.units) :]) > TIE).sum())
    interval = metric_interval(gap, DIFFERENCE, level, telling=differing + 1)
    flips = sampled_swaps(len(common.units), permutations, common.permutation_seed)
    permuted = np.mean([_permute(name, sides.exchangeable, common.units, flips) for sides in repetitions], axis=0)
    return _Difference(
        first=float(first[0]),
        second=float(second[0]),
        difference=float(gap[0]),
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        p_value=p_value(permuted),
    )


def _permute(name: str, exchangeable: ResampledRepetition, units: Sequence[str], flips: Floats) -> Floats:
    """Return the difference of the score (P,) after the units of each row of `flips` (P, V) change sides."""
    column = {unit: index for index, unit in enumerate(units)}
    moved = flips[:, [column[unit] for unit in exchangeable.units]]
    is_second = np.arange(moved.shape[1]) % 2
    side = np.abs(moved - is_second)  # 0 counts for the first model, 1 for the second
    values = exchangeable.statistics.compute_metrics(np.vstack([1 - side, side]))[name]
    return values[: len(flips)] - values[len(flips) :]


def sampled_swaps(units: int, most: int, seed: int) -> Floats:
    """Return which units change sides (P, units). In the first row no unit changes sides.

    If there are at most `most` ways (2^units), all of them are returned.

    >>> sampled_swaps(2, 100, 0).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    if units <= math.log2(most):
        return np.array(list(product((0.0, 1.0), repeat=units)))
    random = np.random.default_rng(seed).integers(2, size=(most, units)).astype(np.float64)
    return np.vstack([np.zeros(units), random])


def p_value(permuted: Floats) -> float:
    """Return the two-sided p-value: the fraction of permutations with at least the actual difference.

    The first entry of `permuted` is the difference in the actual data.
    """
    observed = abs(permuted[0])
    return float((np.abs(permuted) >= observed - TIE).mean())
