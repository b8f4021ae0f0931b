"""Tables over all tasks and models at once. Like `tables`, they name no benchmark and no task."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from barista_bench.reporting.tables import NOTHING, Cell, Column, Table, figure_cell, number, words
from barista_bench.running.results import Results
from barista_bench.running.scoring import ScoredRun
from barista_bench.task import Status

TaskRuns = tuple[str, Mapping[str, ScoredRun]]
"""A task's heading, and its runs by model label."""


def models_of(tasks: Sequence[TaskRuns]) -> list[str]:
    """All model labels, in the order in which they are first seen."""
    return list(dict.fromkeys(label for _, runs in tasks for label in runs))


def scores(tasks: Sequence[TaskRuns]) -> Table:
    """Models by tasks: the primary figure with its interval, and below it what it stands on."""
    columns = [Column("model", numeric=False)]
    for heading, runs in tasks:
        primaries = dict.fromkeys(words(run.results.primary) for run in runs.values())
        columns.append(Column(", ".join(primaries), heading))
    rows = [
        (Cell(label), *(_score(runs[label].results) if label in runs else Cell(NOTHING) for _, runs in tasks))
        for label in models_of(tasks)
    ]
    note = (
        "Primary figure of each task: mean ± standard deviation over runs, 95% interval over videos, share of answered "
        "samples, and every status other than ok."
    )
    return Table("Scores", tuple(columns), tuple(rows), note)


def _score(results: Results) -> Cell:
    coverage = results.coverage
    share = f"{100 * coverage.answered / coverage.expected:.1f} % answered" if coverage.expected else ""
    counts = {status: coverage.statuses.get(str(status), 0) for status in Status if status is not Status.OK}
    unusual = [f"{number(count)} {words(status)}" for status, count in counts.items() if count]
    missing = coverage.expected - sum(coverage.statuses.values())
    unusual += [f"{number(missing)} not run"] if missing > 0 else []
    cell = figure_cell(results.figures.get(results.primary))
    notes = tuple(note for note in (*cell.notes, share, *unusual) if note)
    return replace(cell, notes=notes, warn=not coverage.complete)


def by_group(tasks: Sequence[TaskRuns]) -> list[Table]:
    """One table a metadata key of the results' breakdowns: values by tasks, mean sample score over all models.

    Samples that were not scored are left out; keys of one value alone make no table.
    """
    keys = list(dict.fromkeys(key for _, runs in tasks for run in runs.values() for key in run.results.breakdowns))
    tables = []
    for key in keys:
        columns = [Column(words(key), numeric=False)]
        blocks = []
        for heading, runs in tasks:
            names = dict.fromkeys(words(run.task.sample_score) for run in runs.values())
            columns.append(Column(", ".join(names), heading))
            blocks.append(_means(list(runs.values()), key))
        values = sorted({value for block in blocks for value in block})
        rows = [(Cell(value), *(block.get(value, Cell(NOTHING)) for block in blocks)) for value in values]
        note = "Mean sample score over all models, runs and examples; how many samples stands below."
        if len(rows) > 1:
            tables.append(Table(f"All tasks by {words(key)}", tuple(columns), tuple(rows), note))
    return tables


def _means(runs: Sequence[ScoredRun], key: str) -> Mapping[str, Cell]:
    values: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        for sample in run.samples:
            score = sample.scores.get(run.task.sample_score)
            known = score is not None and math.isfinite(score) and sample.record.status is not Status.INFRA_ERROR
            if known and key in sample.example.metadata:
                values[str(sample.example.metadata[key])].append(float(score or 0.0))
    return {
        value: Cell(number(math.fsum(found) / len(found)), notes=(f"{number(len(found))} samples",))
        for value, found in values.items()
    }


def tokens(tasks: Sequence[TaskRuns]) -> Table | None:
    """Mean tokens a sample by task and model; None where no model counts tokens."""
    models = models_of(tasks)
    own = [Column(name, label) for label in models for name in ("input", "output")]
    columns = [Column("task", numeric=False), *own]
    rows = []
    for heading, runs in tasks:
        cells = [Cell(heading)]
        for label in models:
            found = [sample.record for sample in runs[label].samples] if label in runs else []
            cells += [Cell(_mean([record.input_tokens for record in found]))]
            cells += [Cell(_mean([record.output_tokens for record in found]))]
        rows.append(tuple(cells))
    if all(cell.text == NOTHING for row in rows for cell in row[1:]):
        return None
    note = "Mean over the samples of which the model said it; the answer's tokens include its reasoning."
    return Table("Tokens a sample", tuple(columns), tuple(rows), note)


def _mean(values: Sequence[int | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{sum(known) / len(known):,.0f}" if known else NOTHING
