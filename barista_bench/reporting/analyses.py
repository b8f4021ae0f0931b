"""Apply all analyses of `barista_bench.stats` to the runs of a report."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from barista_bench.core.intervals import PERMUTATIONS
from barista_bench.core.model_names import ALTERED, HUMAN, SCRIPTED
from barista_bench.errors import BaristaError
from barista_bench.runs.score.labels import Labels, comparable_groups, run_labels
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.stats.agreement import FEWEST_MODELS, RankAgreement, rank_agreement
from barista_bench.stats.baselines import BaselineGap, Consistency, baseline_gaps, consistency
from barista_bench.stats.breakdowns import (
    FRAME_COUNT,
    BreakdownRow,
    FailureRow,
    ThoughtBin,
    breakdown_keys,
    breakdowns,
    by_thinking,
    failure_rows,
)
from barista_bench.stats.comparison import Comparison, compare_pair, correct_p_values, swapped_sides
from barista_bench.stats.facts import (
    PRIOR,
    FactConsistency,
    FormatRow,
    PriorRow,
    fact_answers,
    fact_consistency,
    format_rows,
    prior_rows,
)
from barista_bench.stats.propagation import PropagationGraph, cross_propagation, propagation

MOST_GROUPS = 12
REFERENCE = "oracle"
MAX_GRAPHS = 8
_NUMBERING = ("_index", "_indices")


@dataclass(frozen=True, slots=True)
class FactAnalysis:
    """Analyses of facts that several tasks ask for, by model: consistency, formats, and the distance to `prior`."""

    consistency: Sequence[FactConsistency] = ()
    formats: Sequence[FormatRow] = ()
    priors: Sequence[PriorRow] = ()


@dataclass(frozen=True, slots=True)
class Analyses:
    """The analyses of some runs. The report leaves out empty parts.

    `labels` are the models' names throughout the report. `comparisons` compare each model with the next one of its
    task, by the folder of the better run. `agreements` are by benchmark; the empty key is for all benchmarks. `facts`
    are about one fact in several tasks. `failures`, `breakdowns` (by key) and `thoughts` are by run folder. `left_out`
    lists the missing analyses with the reasons.
    """

    labels: Labels = field(default_factory=dict)
    comparisons: Mapping[Path, Comparison] = field(default_factory=dict)
    agreements: Sequence[tuple[str, RankAgreement]] = ()
    gaps: Sequence[BaselineGap] = ()
    consistency: Sequence[Consistency] = ()
    graphs: Sequence[PropagationGraph] = ()
    facts: FactAnalysis = field(default_factory=FactAnalysis)
    failures: Mapping[Path, Sequence[FailureRow]] = field(default_factory=dict)
    breakdowns: Mapping[Path, Mapping[str, Sequence[BreakdownRow]]] = field(default_factory=dict)
    thoughts: Mapping[Path, Sequence[ThoughtBin]] = field(default_factory=dict)
    left_out: Sequence[str] = ()


def analyse(runs: Sequence[ScoredRun], *, compare: bool = True, permutations: int = PERMUTATIONS) -> Analyses:
    """Make all analyses that the runs allow. `left_out` lists the missing analyses with the reasons.

    Args:
        runs: results of `score`.
        compare: whether to make the paired comparisons. They take longest.
        permutations: maximum number of permutations in the test of each comparison.
    """
    groups = list(comparable_groups(runs).values())
    labels = run_labels(runs)
    left_out: list[str] = []
    comparisons, gaps = dict[Path, Comparison](), list[BaselineGap]()
    if compare:
        compare_once = _cached_comparer(permutations)
        comparisons = dict(_comparisons(groups, labels, compare_once, left_out))
        gaps = list(_gaps(groups, labels, compare_once, left_out))
    return Analyses(
        labels=labels,
        comparisons=dict(zip(comparisons, correct_p_values(list(comparisons.values())), strict=True)),
        agreements=list(_agreements(runs, labels, left_out)),
        gaps=gaps,
        consistency=[replace(row, model=labels[run.folder]) for run in runs if (row := consistency(run)) is not None],
        graphs=list(_graphs(runs, labels, left_out)),
        facts=_facts(runs, labels),
        failures={run.folder: failure_rows(run) for run in runs},
        breakdowns={run.folder: _other_breakdowns(run) for run in runs},
        thoughts={run.folder: by_thinking(run) for run in runs},
        left_out=left_out,
    )


_Compare = Callable[[ScoredRun, ScoredRun], Comparison]


def _cached_comparer(permutations: int) -> _Compare:
    """Return a function that compares each pair of runs once. A model and a baseline occur as a pair and as a gap."""
    comparisons: dict[tuple[Path, Path], Comparison] = {}

    def compare(first: ScoredRun, second: ScoredRun) -> Comparison:
        key = first.folder, second.folder
        if key[::-1] in comparisons:
            return swapped_sides(comparisons[key[::-1]])
        if key not in comparisons:
            comparisons[key] = compare_pair(first, second, permutations=permutations)
        return comparisons[key]

    return compare


def _comparisons(
    groups: Sequence[Sequence[ScoredRun]], labels: Labels, compare: _Compare, left_out: list[str]
) -> Iterator[tuple[Path, Comparison]]:
    """Compare each model with the next model, since the certainty of a ranking depends on neighbours.

    Baselines have separate gaps. Baselines and people are compared only if there is no other model.
    """
    for group in groups:
        ranked = [run for run in best_first(group) if not is_unranked(run)]
        for first, second in pairwise(ranked or best_first(group)):
            names = labels[first.folder], labels[second.folder]
            try:
                yield first.folder, replace(compare(first, second), first=names[0], second=names[1])
            except BaristaError as error:
                left_out.append(f"Comparison of {names[0]} and {names[1]}: {error}")


def best_first(runs: Sequence[ScoredRun]) -> list[ScoredRun]:
    """Sort the runs of a task as in a leaderboard: models by primary score, then unranked runs."""

    def rank_key(run: ScoredRun) -> tuple[int, float]:
        metric = run.ranking_metric
        return rank_tier(run), -metric.mean if metric else math.inf

    return sorted(runs, key=rank_key)


def _gaps(
    groups: Sequence[Sequence[ScoredRun]], labels: Labels, compare: _Compare, left_out: list[str]
) -> Iterator[BaselineGap]:
    for group in groups:
        try:
            # The oracle is the reference itself, so it is far from any baseline.
            without_reference = [run for run in group if run.results.model.name != REFERENCE]
            yield from baseline_gaps(without_reference, labels=labels, compare=compare)
        except BaristaError as error:
            left_out.append(f"Gap to baselines: {error}")


def _agreements(runs: Sequence[ScoredRun], labels: Labels, left_out: list[str]) -> Iterator[tuple[str, RankAgreement]]:
    """Yield the rank agreement of each benchmark with several tasks, and of all benchmarks together.

    Only models that answered all tasks count. Scripted baselines and people do not count as models: a scale from chance
    to oracle would make any two tasks agree. They are included only if too few models would remain.
    """
    by_benchmark: dict[str, list[ScoredRun]] = defaultdict(list)
    for run in runs:
        by_benchmark[run.task.benchmark].append(run)
    parts = list(by_benchmark.items())
    if len(parts) > 1:
        parts.append(("", list(runs)))
    for benchmark, members in parts:
        ranked = [run for run in members if not is_unranked(run)]
        task_counts = Counter(labels[run.folder] for run in ranked)
        tasks = len(comparable_groups(members))
        if tasks < 2:
            continue
        complete_models = sum(count >= tasks for count in task_counts.values())
        try:
            yield benchmark, rank_agreement(ranked if complete_models >= FEWEST_MODELS else members, labels=labels)
        except BaristaError as error:
            scope = f" of {benchmark}" if benchmark and len(parts) > 1 else ""
            left_out.append(f"Rank agreement between tasks{scope}: {error}")


def rank_tier(run: ScoredRun) -> int:
    """Return 0 for ranked models, 1 for models trained on videos of these examples, 2 for people, or 3 for baselines.

    A baseline answers from the examples themselves, or is a model that sees less or is told more than other models,
    such as worked examples. A log that was read again has no rank: that reading was chosen after the scores were seen.
    """
    name = run.results.model.name
    is_altered = name.partition(":")[0] in ALTERED or "shots" in run.results.model.settings
    if name in SCRIPTED or is_altered or run.results.reading:
        return 3
    return 2 if name.startswith(f"{HUMAN}:") else int(bool(run.results.trained_on))


def is_unranked(run: ScoredRun) -> bool:
    """Return whether a run is listed with the ranked models but has no rank."""
    return rank_tier(run) > 0


def _graphs(runs: Sequence[ScoredRun], labels: Labels, left_out: list[str]) -> Iterator[PropagationGraph]:
    by_model: dict[tuple[str, str], list[ScoredRun]] = defaultdict(list)
    for run in runs:
        by_model[labels[run.folder], run.task.benchmark].append(run)
    with_pairs = {key: members for key, members in by_model.items() if len(members) > 1}
    ranked = {key: members for key, members in with_pairs.items() if not is_unranked(members[0])}
    graphs = list[PropagationGraph]()
    chosen = ranked or with_pairs  # As above, these are not models.
    parts = [(label, members, False) for (label, _), members in chosen.items()]
    for label in dict.fromkeys(label for label, _ in chosen):
        members = [run for run in runs if labels[run.folder] == label]
        parts += [(label, members, True)] if len({run.task.benchmark for run in members}) > 1 else []
    for label, members, is_across in parts:
        try:
            across = f"{label}, across benchmarks"
            graph = cross_propagation(members, across) if is_across else propagation(members, label=label)
        except BaristaError as error:
            left_out.append(f"Error propagation of {label}: {error}")
            continue
        erring = [edge for edge in graph.edges if edge.neither < edge.n]  # a model without errors has no propagation
        if any(edge.odds_ratio is not None for edge in erring):
            graphs.append(graph)
        elif erring:
            reason = "of any two tasks that share objects, one always or never errs about them"
            left_out.append(f"Error propagation of {label}: {reason}")
    yield from graphs[:MAX_GRAPHS]
    if len(graphs) > MAX_GRAPHS:
        left_out.append(f"Error propagation of {len(graphs) - MAX_GRAPHS} models: only {MAX_GRAPHS} are shown")


def _facts(runs: Sequence[ScoredRun], labels: Labels) -> FactAnalysis:
    by_model: dict[str, list[ScoredRun]] = defaultdict(list)
    for run in runs:
        by_model[labels[run.folder]].append(run)
    answers = {label: fact_answers(members) for label, members in by_model.items()}
    prior = fact_answers(run for run in runs if run.results.model.name == PRIOR)
    models = {label: each for label, each in answers.items() if by_model[label][0].results.model.name not in SCRIPTED}
    return FactAnalysis(
        list(filter(None, (fact_consistency(label, each) for label, each in answers.items()))),
        [row for label, each in answers.items() for row in format_rows(label, each)],
        [row for label, each in models.items() for row in prior_rows(label, each, prior)],
    )


def _other_breakdowns(run: ScoredRun) -> Mapping[str, Sequence[BreakdownRow]]:
    """Return the breakdowns that the results do not contain, without intervals, since intervals would take long.

    Keys that only number the frames, clips or questions of a video are left out, since they say nothing of a weakness.
    """
    known = run.results.breakdowns
    keys = [key for key in breakdown_keys(run) if key not in known and not key.endswith((FRAME_COUNT, *_NUMBERING))]
    return breakdowns(run, keys, intervals=False, most=MOST_GROUPS)
