"""Make the tables of a report over all tasks."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from barista_bench.reporting.analyses import is_unranked
from barista_bench.reporting.tables import union
from barista_bench.runs.score.costs import COST_NAMES
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.tables import Cell, Column, Row, Table, number, number_columns, text_columns, words

TaskRuns = tuple[str, Mapping[str, ScoredRun]]
"""A task's heading, and the task's runs by model label."""


def group_tables(tasks: Sequence[TaskRuns]) -> list[Table]:
    """Return one table per metadata key, with mean sample scores by value and model and a column per task.

    The first row of a value is the mean over all models, equally weighted as in the published tables. People and
    baselines are left out of this mean, since the scores of chance and the reference give no information about a value.
    Samples without a score are left out. A key with a single value has no table.
    """
    tables = []
    by_benchmark: dict[str, list[TaskRuns]] = {}
    for heading, runs in tasks:
        by_benchmark.setdefault(next(iter(runs.values())).task.benchmark, []).append((heading, runs))
    for benchmark, part in by_benchmark.items():
        scope = f" of {benchmark}" if len(by_benchmark) > 1 else ""
        keys = union(run.results.breakdowns for _, runs in part for run in runs.values())
        tables += [_by_key(part, key, f"All tasks{scope} by {words(key)}") for key in keys]
    return [table for table in tables if table is not None]


def _by_key(tasks: Sequence[TaskRuns], key: str, title: str) -> Table | None:
    tasks_with_key = [
        (heading, runs) for heading, runs in tasks if any(key in run.results.breakdowns for run in runs.values())
    ]
    columns = [*text_columns(words(key), "model")]
    for heading, runs in tasks_with_key:
        name = next(iter(runs.values())).score_note
        columns.append(
            Column(name or ", ".join(union([words(run.task.sample_score)] for run in runs.values())), heading)
        )
    blocks = [_group_scores(runs, key) for _, runs in tasks_with_key]
    values = sorted({value for block in blocks for _, value in block})
    if len(values) < 2:
        return None
    models = union(runs for _, runs in tasks_with_key)
    unranked = {label for _, runs in tasks_with_key for label, run in runs.items() if is_unranked(run)}
    ranked = [label for label in models if label not in unranked]
    rows: list[Row] = []
    for value in values:
        if len(ranked) > 1:
            ranked_scores = [[block[label, value] for label in ranked if (label, value) in block] for block in blocks]
            means = ([math.fsum(scores) / len(scores) for scores in task_scores] for task_scores in ranked_scores)
            rows.append((value, ALL_MODELS, *(_mean_cell(task_scores, "models") for task_scores in means)))
        rows += [
            (value, label, *(_mean_cell(block.get((label, value), []), "samples") for block in blocks))
            for label in models
        ]
    note = "Mean sample score over repetitions and examples; how many samples stands below."
    if len(ranked) > 1:
        left_out = f", without {', '.join(label for label in models if label in unranked)}" if unranked else ""
        note += f" {ALL_MODELS}: the mean of the models' means{left_out}."
    return replace(Table.of(title, columns, rows, note), drawn="heat")


ALL_MODELS = "all models"


def _group_scores(runs: Mapping[str, ScoredRun], key: str) -> dict[tuple[str, str], list[float]]:
    """Return the sample scores by model label and value of a metadata key."""
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    for label, run in runs.items():
        for sample in run.samples:
            score = run.score_of(sample)
            if score is not None and key in sample.example.metadata:
                scores[label, str(sample.example.metadata[key])].append(score)
    return scores


def _mean_cell(scores: Sequence[float], noun: str) -> Cell:
    """Return a cell with the mean, and the number of items below."""
    if not scores:
        return Cell(None)
    return Cell(math.fsum(scores) / len(scores), notes=(f"{number(len(scores))} {noun}",))


def tokens_table(tasks: Sequence[TaskRuns]) -> Table | None:
    """Return mean tokens per sample by task and model, or None if no model counts tokens."""
    models = union(runs for _, runs in tasks)
    costs_by_label = [{label: run.results.timing.costs for label, run in runs.items()} for _, runs in tasks]
    logged_costs = {name for by_label in costs_by_label for costs in by_label.values() for name in costs}
    names = [name for name in COST_NAMES if name in logged_costs and name.endswith("_tokens")]
    if not names:
        return None
    columns = [*text_columns("task")]
    for label in models:
        columns += number_columns(label, *(name.removesuffix("_tokens") for name in names))
    rows = []
    for (heading, _), by_label in zip(tasks, costs_by_label, strict=True):
        label_costs = [by_label.get(label, {}).get(name) for label in models for name in names]
        rows.append((heading, *(f"{cost.mean:,.0f}" if cost else None for cost in label_costs)))
    note = (
        "Mean over the samples of which the log says it; output includes thinking, and input what was cached. "
        "Repetitions of a greedy answer, which is generated once, count 0."
    )
    return Table.of("Tokens a sample", columns, rows, note)
