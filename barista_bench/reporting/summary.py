"""Tables over all tasks and models at once. Like `tables`, they name no benchmark and no task."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from barista_bench.reporting.analyses import is_unranked
from barista_bench.runs.score.costs import COST_NAMES
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.tables import Cell, Column, Row, Table, number, number_columns, text_columns, words

TaskRuns = tuple[str, Mapping[str, ScoredRun]]
"""A task's heading, and its runs by model label."""


def models_of(tasks: Sequence[TaskRuns]) -> list[str]:
    """All model labels, in the order in which they are first seen."""
    return list(dict.fromkeys(label for _, runs in tasks for label in runs))


def by_benchmark(tasks: Sequence[TaskRuns]) -> dict[str, list[TaskRuns]]:
    """The tasks of each benchmark, in their order."""
    parts: dict[str, list[TaskRuns]] = {}
    for heading, runs in tasks:
        for name in dict.fromkeys(run.task.benchmark for run in runs.values()):
            parts.setdefault(name, []).append((heading, runs))
    return parts


def by_group(tasks: Sequence[TaskRuns]) -> list[Table]:
    """One table a metadata key of the results' breakdowns: the mean sample score by value and model, tasks beside.

    The first row of a value is the mean over all models, each weighing the same as in the published tables, without
    people and baselines: what chance and the reference itself score says nothing of a value. Samples that were not
    scored are left out; keys of one value alone make no table.
    """
    tables = []
    several = by_benchmark(tasks)
    for benchmark, part in several.items():
        keys = dict.fromkeys(key for _, runs in part for run in runs.values() for key in run.results.breakdowns)
        for key in keys:
            table = _by_key(part, key)
            if table is not None:
                title = f"All tasks{f' of {benchmark}' if len(several) > 1 else ''} by {words(key)}"
                tables.append(replace(table, title=title, drawn="heat"))
    return tables


def _by_key(tasks: Sequence[TaskRuns], key: str) -> Table | None:
    broken_down = [
        (heading, runs) for heading, runs in tasks if any(key in run.results.breakdowns for run in runs.values())
    ]
    columns = [*text_columns(words(key), "model")]
    blocks: list[dict[str, dict[str, list[float]]]] = []
    for heading, runs in broken_down:
        names = dict.fromkeys(words(run.task.sample_score) for run in runs.values())
        columns.append(Column(", ".join(names), heading))
        blocks.append({label: _values(run, key) for label, run in runs.items()})
    values = sorted({value for block in blocks for by_value in block.values() for value in by_value})
    if len(values) < 2:
        return None
    models = models_of(broken_down)
    unranked = {label for _, runs in broken_down for label, run in runs.items() if is_unranked(run)}
    judged = [label for label in models if label not in unranked]
    rows: list[Row] = []
    for value in values:
        if len(judged) > 1:
            rows.append((value, ALL_MODELS, *(_over_models(block, judged, value) for block in blocks)))
        for label in models:
            cells = [_mean_cell(block.get(label, {}).get(value, [])) for block in blocks]
            rows.append((value, label, *cells))
    note = "Mean sample score over runs and examples; how many samples stands below."
    if len(judged) > 1:
        left = f", without {', '.join(label for label in models if label in unranked)}" if unranked else ""
        note += f" {ALL_MODELS}: the mean of the models' means{left}."
    return Table.of("", columns, rows, note)


ALL_MODELS = "all models"


def _values(run: ScoredRun, key: str) -> dict[str, list[float]]:
    """The sample scores of each value of a metadata key."""
    values: dict[str, list[float]] = defaultdict(list)
    for sample in run.samples:
        score = sample.scores.get(run.task.sample_score)
        known = score is not None and math.isfinite(score) and sample.counts
        if known and key in sample.example.metadata:
            values[str(sample.example.metadata[key])].append(float(score or 0.0))
    return values


def _mean_cell(scores: Sequence[float]) -> Cell:
    if not scores:
        return Cell(None)
    return Cell(math.fsum(scores) / len(scores), notes=(f"{number(len(scores))} samples",))


def _over_models(block: Mapping[str, Mapping[str, Sequence[float]]], models: Sequence[str], value: str) -> Cell:
    of_models = [scores for label in models if (scores := block.get(label, {}).get(value))]
    if not of_models:
        return Cell(None)
    means = [math.fsum(scores) / len(scores) for scores in of_models]
    return Cell(math.fsum(means) / len(means), notes=(f"{len(of_models)} models",))


def tokens(tasks: Sequence[TaskRuns]) -> Table | None:
    """Mean tokens a sample by task and model; None where no model counts tokens."""
    models = models_of(tasks)
    of_runs = [{label: run.results.timing.costs for label, run in runs.items()} for _, runs in tasks]
    said = {name for by_label in of_runs for costs in by_label.values() for name in costs}
    names = [name for name in COST_NAMES if name in said and name.endswith("_tokens")]
    if not names:
        return None
    columns = [*text_columns("task")]
    for label in models:
        columns += number_columns(label, *(name.removesuffix("_tokens") for name in names))
    rows = []
    for (heading, _), by_label in zip(tasks, of_runs, strict=True):
        known = [by_label.get(label, {}).get(name) for label in models for name in names]
        rows.append((heading, *(f"{cost.mean:,.0f}" if cost else None for cost in known)))
    note = (
        "Mean over the samples of which the log says it; output includes thinking, and input what was cached. "
        "Repetitions of a greedy answer, which is generated once, count 0."
    )
    return Table.of("Tokens a sample", columns, rows, note)
