"""Everything that `barista_bench.analysis` has to say about the runs of a report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

from barista_bench.analysis import (
    BaselineGap,
    BreakdownRow,
    Comparison,
    Consistency,
    FailureRow,
    PropagationGraph,
    RankAgreement,
    baseline_gaps,
    breakdown,
    breakdown_keys,
    compare_pair,
    consistency,
    failure_rows,
    propagation,
    rank_agreement,
)
from barista_bench.analysis.comparison import corrected
from barista_bench.errors import BaristaError
from barista_bench.reporting.grouping import comparable, model_labels
from barista_bench.running.scoring import ScoredRun

DRAWS = 1000
"""Resamples of each comparison: enough for Holm's correction over a few dozen rows."""
ALL_PAIRS = 3
"""Models up to which all pairs are compared; of more, the best with each other one."""
MOST_GROUPS = 12
MAX_GRAPHS = 8


@dataclass(frozen=True, slots=True)
class TaskAnalyses:
    """Of the runs of one section: failures by run folder, and breakdowns by key and run folder."""

    failures: Mapping[Path, Sequence[FailureRow]] = field(default_factory=dict)
    breakdowns: Mapping[str, Mapping[Path, Sequence[BreakdownRow]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Analyses:
    """What was found; empty parts are left out of the report. `left_out` says what could not be made, and why."""

    comparisons: Sequence[Comparison] = ()
    agreement: RankAgreement | None = None
    gaps: Sequence[BaselineGap] = ()
    consistency: Sequence[Consistency] = ()
    graphs: Sequence[PropagationGraph] = ()
    failures: Mapping[Path, Sequence[FailureRow]] = field(default_factory=dict)
    breakdowns: Mapping[Path, Mapping[str, Sequence[BreakdownRow]]] = field(default_factory=dict)
    left_out: Sequence[str] = ()

    def of(self, runs: Sequence[ScoredRun]) -> TaskAnalyses:
        """The part about some runs."""
        keys = dict.fromkeys(key for run in runs for key in self.breakdowns.get(run.folder, {}))
        return TaskAnalyses(
            failures={run.folder: self.failures.get(run.folder, ()) for run in runs},
            breakdowns={
                key: {run.folder: self.breakdowns.get(run.folder, {}).get(key, ()) for run in runs} for key in keys
            },
        )


def analyse(runs: Sequence[ScoredRun], *, compare: bool = True, draws: int = DRAWS) -> Analyses:
    """All that the runs allow. What cannot be made of them is left out, and `left_out` says why.

    Args:
        runs: as `score` returns them.
        compare: whether to make the paired comparisons, which take longest.
        draws: resamples of each comparison.
    """
    groups = list(comparable(runs).values())
    left_out: list[str] = []
    comparisons, gaps = list[Comparison](), list[BaselineGap]()
    if compare:
        comparisons = list(_comparisons(groups, draws, left_out))
        gaps = list(_gaps(groups, draws, left_out))
    return Analyses(
        comparisons=corrected(comparisons),
        agreement=_agreement(runs, len(groups), left_out),
        gaps=gaps,
        consistency=[found for run in runs if (found := consistency(run)) is not None],
        graphs=list(_graphs(runs, left_out)),
        failures={run.folder: failure_rows(run) for run in runs},
        breakdowns={run.folder: _breakdowns(run) for run in runs},
        left_out=left_out,
    )


def _comparisons(groups: Sequence[Sequence[ScoredRun]], draws: int, left_out: list[str]) -> Iterator[Comparison]:
    for group in groups:
        labels = dict(zip((run.folder for run in group), model_labels(group), strict=True))
        best = max(group, key=_primary)
        pairs = [(best, run) for run in group if run is not best]
        for first, second in combinations(group, 2) if len(group) <= ALL_PAIRS else pairs:
            names = labels[first.folder], labels[second.folder]
            try:
                yield replace(compare_pair(first, second, draws=draws), first=names[0], second=names[1])
            except BaristaError as error:
                left_out.append(f"Comparison of {names[0]} and {names[1]}: {error}")


def _primary(run: ScoredRun) -> float:
    found = run.results.figures.get(run.results.primary)
    return found.mean if found else float("-inf")


def _gaps(groups: Sequence[Sequence[ScoredRun]], draws: int, left_out: list[str]) -> Iterator[BaselineGap]:
    for group in groups:
        try:
            yield from baseline_gaps(group, draws=draws)
        except BaristaError as error:
            left_out.append(f"Gap to baselines: {error}")


def _agreement(runs: Sequence[ScoredRun], tasks: int, left_out: list[str]) -> RankAgreement | None:
    if tasks < 2:
        return None
    try:
        return rank_agreement(runs)
    except BaristaError as error:
        left_out.append(f"Rank agreement between tasks: {error}")
        return None


def _graphs(runs: Sequence[ScoredRun], left_out: list[str]) -> Iterator[PropagationGraph]:
    by_model: dict[str, list[ScoredRun]] = defaultdict(list)
    for run in runs:
        by_model[run.results.model.name].append(run)
    several = {model: own for model, own in by_model.items() if len(own) > 1}
    for model, own in list(several.items())[:MAX_GRAPHS]:
        try:
            graph = propagation(own)
        except BaristaError as error:
            left_out.append(f"Error propagation of {model}: {error}")
            continue
        if any(edge.neither < edge.n for edge in graph.edges):  # a model that never errs has nothing to tell
            yield graph
    if len(several) > MAX_GRAPHS:
        left_out.append(f"Error propagation of {len(several) - MAX_GRAPHS} models: only {MAX_GRAPHS} are shown")


def _breakdowns(run: ScoredRun) -> Mapping[str, Sequence[BreakdownRow]]:
    """Without intervals, which would take long; those of the results' own breakdowns are left to them."""
    keys = [key for key in breakdown_keys(run) if key not in run.results.breakdowns]
    return {key: breakdown(run, key, draws=0, most=MOST_GROUPS) for key in keys}
