"""Make the tables of a report, for one task and over all tasks. The page and the Markdown file show them.

Names of scores, metadata and details are printed unchanged. No code here is for single benchmarks or tasks.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence

from barista_bench.core.status import Status, status_counts
from barista_bench.files.text_out import shared_name
from barista_bench.judging.judged_run import JudgedRun
from barista_bench.runs.score.costs import COST_NAMES, cost_text
from barista_bench.runs.score.results import MetricValue, Results, tie_spread
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.stats import run_labels
from barista_bench.tables import (
    Bar,
    Cell,
    Column,
    Query,
    RangedScore,
    Row,
    Table,
    Value,
    interval,
    number,
    number_columns,
    text_columns,
    words,
)

STOPPED = "Stopped early"

MAX_ROWS = 100
"""Maximum rows of a details table. Models invent labels, and each label would be a row."""
MAX_NAME = 80
ABOUT_REFERENCE = ("examples", "support")
"""Columns that describe the examples, not the model. They are printed once if all models agree."""

LabelledResults = tuple[str, Results]
"""A model's label in this report, and the model's results."""
Block = Mapping[str, Mapping[str, Cell]]
"""The cells of one model, by row name and column name."""


def metric_cell(metric: MetricValue | None, query: Query = ()) -> Cell:
    """Return a cell with the mean and the standard deviation over repetitions, and the interval below."""
    if metric is None:
        return Cell(None)
    ends = None if metric.low is None or metric.high is None else (metric.low, metric.high)
    bar = Bar(metric.mean, metric.low, metric.high) if 0 <= metric.mean <= 1 else None
    spread = "" if metric.std is None else f"± {number(metric.std)}"
    value = RangedScore(metric.mean, *ends) if ends else metric.mean
    return Cell(value, spread, notes=(interval(*ends),) if ends else (), bar=bar, query=query)


def score_heading(run: ScoredRun) -> str:
    """Return the name of the score that ranks models: the judge's score, or the task's primary metric."""
    return run.score_note or words(run.results.primary)


def p_text(p: float) -> str:
    """
    >>> p_text(0.0004), p_text(0.5)
    ('< 0.001', '0.500')
    """
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def metrics_table(models: Sequence[LabelledResults]) -> Table:
    """Return one row per model with the primary score and all other scores."""
    primary = models[0][1].primary
    names = [primary, *(name for name in union(results.metrics for _, results in models) if name != primary)]
    columns = (*text_columns("model"), *number_columns("", *map(words, names)))
    rows = (
        (
            Cell(label, "" if results.coverage.is_complete else "incomplete", warn=not results.coverage.is_complete),
            *(metric_cell(results.metrics.get(name)) for name in names),
        )
        for label, results in models
    )
    note = (
        "Mean ± standard deviation over repetitions, and below it the 95% interval over resampling units where there "
        "is one. A sample without a readable answer counts as the protocol says."
    )
    return Table.of("Metrics", columns, rows, f"{note} {describe_ties(models)}".strip())


def coverage_table(models: Sequence[LabelledResults]) -> Table:
    """Return one row per model with the number of scored samples and the statuses of the remaining samples."""
    statuses = [*status_counts(status for _, results in models for status in results.coverage.statuses)]
    columns = (
        *text_columns("model"),
        Column("repetitions"),
        *number_columns("coverage (samples)", "answered %", "answered", "scored", "expected"),
        *number_columns("samples by status", *map(words, statuses), "not run"),
    )
    has_dropped = any(results.coverage.dropped for _, results in models)
    columns += number_columns("entries of answers", "dropped") if has_dropped else ()
    rows = []
    for label, results in models:
        samples = results.coverage
        fraction = f"{100 * samples.answered / samples.expected:.1f}%" if samples.expected else None
        counts = {status: samples.statuses.get(status, 0) for status in statuses}
        missing = max(0, samples.expected - sum(counts.values()))
        scored = Cell(samples.scored, warn=not samples.is_complete)
        by_status = (Cell(count, warn=status != Status.OK and count > 0) for status, count in counts.items())
        totals = fraction, samples.answered, scored, samples.expected
        dropped = (Cell(samples.dropped, warn=samples.dropped > 0),) if has_dropped else ()
        rows.append((label, results.repetitions, *totals, *by_status, Cell(missing, warn=missing > 0), *dropped))
    note = "Dropped entries could not be read: the answers count without them." if has_dropped else ""
    return Table.of("Coverage", columns, rows, note)


def positions_table(models: Sequence[LabelledResults]) -> Table | None:
    """Return one row per model with its answers and the right answers by letter.

    Return None if questions have no lettered choices.
    """
    found = [(label, results.letters) for label, results in models if results.letters is not None]
    names = sorted({name for _, letters in found for name in (*letters.answered, *letters.right)})
    if len(names) < 2:
        return None
    columns = (
        *text_columns("model"),
        *number_columns("", "position bias"),
        *number_columns("answered (right)", *names),
    )
    rows: Iterable[Sequence[Cell | str]] = (
        (
            label,
            Cell(letters.bias, warn=bool(letters.in_words)),
            *(Cell(letters.answered.get(name, 0), f"({letters.right.get(name, 0)})") for name in names),
        )
        for label, letters in found
    )
    note = (
        "Readable answers by letter, and how often each letter is right in their questions. Position bias is the "
        "fraction of answers whose letter would have to change for the two to agree. Guessing has some by chance."
    )
    return Table.of("Position bias", columns, rows, note)


def describe_ties(models: Sequence[LabelledResults]) -> str:
    """Return a sentence on the models whose score depends on the order of the examples, or an empty string."""
    spreads = [f"{label}: {spread}" for label, results in models if (spread := tie_spread(results))]
    if not spreads:
        return ""
    return (
        "All scores in their answers are equal, so that the order of the examples, which says nothing of a model, "
        f"decides {words(models[0][1].primary)} of {'; '.join(spreads)}."
    )


def detail_tables(models: Sequence[LabelledResults]) -> list[Table]:
    """Return every aggregate of the task that is a table, then the plain counts, averaged over repetitions."""
    keys = union(entry for _, results in models for entry in results.details)
    tables, counts = [], []
    for key in keys:
        values = [entry.get(key) for _, results in models for entry in results.details]
        if any(isinstance(value, dict) and value for value in values):
            blocks = [(label, _mean_block(results, key)) for label, results in models]
            title = words(f"scores_{key}" if key.startswith("per_") else key)
            tables.append(side_by_side(title[:1].upper() + title[1:], words(key.removeprefix("per_")), blocks))
        elif any(isinstance(value, int) and not isinstance(value, bool) for value in values):
            counts.append(key)
    if counts:
        rows = (
            (label, *(_mean([entry.get(key) for entry in results.details]) for key in counts))
            for label, results in models
        )
        columns = (*text_columns("model"), *number_columns("", *map(words, counts)))
        tables.append(Table.of("Counts", columns, rows, "Mean over repetitions."))
    return tables


def costs_table(models: Sequence[LabelledResults]) -> Table | None:
    """Return one row per model with the cost per answer and in total, or None if all costs are unknown."""
    logged_costs = union(results.timing.costs for _, results in models)
    names = [name for name in COST_NAMES if name in logged_costs]
    if not names:
        return None
    columns = (
        *text_columns("model"),
        *number_columns("a sample", *map(words, names)),
        *number_columns("in all", *map(words, names)),
    )
    rows = []
    for label, results in models:
        model_costs = [(name, results.timing.costs.get(name)) for name in names]
        totals = (cost_text(name, cost.total) if cost else None for name, cost in model_costs)
        mean_cells = []
        for name, cost in model_costs:
            partial = cost is not None and cost.samples != results.coverage.scored
            notes = (f"of {cost.samples:,} samples",) if cost and partial else ()
            mean_cells.append(Cell(cost_text(name, cost.mean) if cost else None, notes=notes))
        rows.append((label, *mean_cells, *totals))
    note = (
        "Input tokens include cached tokens, and output tokens include thinking. Seconds are seconds of generation. A "
        "value that the log lacks is left out. If only some samples have a value, their number stands below it. A "
        "greedy answer is generated once, so its repetitions count 0."
    )
    return Table.of("Costs", columns, rows, note)


def timing_table(models: Sequence[LabelledResults]) -> Table:
    stages = union(results.timing.seconds for _, results in models)
    columns = (
        *text_columns("model"),
        Column("sessions"),
        *number_columns("seconds", *map(words, stages)),
        Column("samples / s"),
    )
    rows = []
    for label, results in models:
        timing, total = results.timing, results.timing.seconds.get("total", 0.0)
        seconds = (f"{timing.seconds[stage]:,.1f}" if stage in timing.seconds else None for stage in stages)
        rate = f"{results.coverage.scored / total:,.2f}" if total > 0 else None
        rows.append((label, timing.sessions, *seconds, rate))
    note = "Seconds over all sessions; samples / s are scored samples by total time. Stages may overlap."
    return Table.of("Timing", columns, rows, note)


def provenance_table(models: Sequence[LabelledResults]) -> Table:
    """Return the table of settings, with one column per model."""
    facts = [(label, _facts(results)) for label, results in models]
    columns = text_columns("", *(label for label, _ in facts))
    rows = ((words(name), *(values.get(name) for _, values in facts)) for name in union(values for _, values in facts))
    return Table.of("Settings and versions", columns, rows)


def _facts(results: Results) -> dict[str, Value]:
    model, circumstances = results.model, results.circumstances
    return {
        "model": shared_name(model.name),
        "revision": model.revision or None,
        "protocol": results.protocol,
        "wording": results.prompts.wording,
        **{name: value if isinstance(value, int | float) else number(value) for name, value in circumstances.items()},
        "barista_bench": results.barista_bench,
        **results.versions,
    }


def side_by_side(title: str, key: str, blocks: Sequence[tuple[str, Block]]) -> Table:
    """Return one row per row name, with the models' columns side by side.

    Columns in which all models agree are left out.
    """
    names = union(block for _, block in blocks)
    columns_seen = union(row for _, block in blocks for row in block.values())
    common = [column for column in columns_seen if column in ABOUT_REFERENCE and _models_agree(column, names, blocks)]
    specific = [column for column in columns_seen if column not in common]
    columns = [*text_columns(key), *number_columns("", *map(words, common))]
    for label, _ in blocks:
        columns += number_columns(label, *map(words, specific))
    rows = []
    for name in names[:MAX_ROWS]:
        model_rows, empty = [block.get(name, {}) for _, block in blocks], Cell(None)
        row = [Cell(shorten_name(name))]
        row += [next((cells[column] for cells in model_rows if column in cells), empty) for column in common]
        row += [cells.get(column, empty) for cells in model_rows for column in specific]
        rows.append(row)
    note = f"The first {MAX_ROWS} of {len(names)} rows." if len(names) > MAX_ROWS else ""
    return Table.of(title, columns, rows, note)


def _models_agree(column: str, names: Sequence[str], blocks: Sequence[tuple[str, Block]]) -> bool:
    """Return whether all models agree in this column. A missing value agrees with every value."""
    return all(
        len({block[name][column].text for _, block in blocks if column in block.get(name, {})}) <= 1 for name in names
    )


def _mean_block(results: Results, key: str) -> Block:
    """Return one details entry. Each number is averaged over the repetitions that have it.

    Rows with the most support come first.
    """
    values: dict[str, dict[str, list[object]]] = {}
    for entry in results.details:
        table = entry.get(key)
        if not isinstance(table, dict):
            continue
        for name, row in table.items():
            fields = row if isinstance(row, dict) else {"value": row}
            for column, value in fields.items():
                values.setdefault(name, {}).setdefault(column, []).append(value)

    def support(item: tuple[str, Mapping[str, Sequence[object]]]) -> float:
        first, *_ = item[1].get("support", [0])
        return float(first) if isinstance(first, int | float) else 0.0

    ordered = sorted(values.items(), key=support, reverse=True)
    return {name: {column: Cell(_mean(run_values)) for column, run_values in row.items()} for name, row in ordered}


def _mean(values: Sequence[object]) -> Value:
    """Return the mean of numbers. If all counts are equal, the result stays an integer.

    If values are not numbers, return the first value as text.
    """
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if not numbers:
        return shorten_name(number(values[0] if values else None))
    if all(isinstance(value, int) for value in numbers):
        return numbers[0] if len(set(numbers)) == 1 else f"{statistics.fmean(numbers):,.1f}"
    return statistics.fmean(numbers)


def union(mappings: Iterable[Iterable[str]]) -> list[str]:
    """Return all keys in the order of their first occurrence."""
    return list(dict.fromkeys(key for mapping in mappings for key in mapping))


def shorten_name(text: str) -> str:
    """Cut a name to `MAX_NAME` letters, since models invent labels. A number gets three decimal places."""
    if re.fullmatch(r"-?\d+\.\d{4,}", text):
        return f"{float(text):.3f}"
    return text if len(text) <= MAX_NAME else text[: MAX_NAME - 1] + "…"


def stopped_table(runs: Sequence[ScoredRun], judges: Sequence[JudgedRun]) -> Table | None:
    """Return a table with a row per run and per judge that stopped early, or None if none did."""
    labels, rows = run_labels(runs), list[Row]()
    found = [(run, run.results.stopped, "") for run in runs]
    found += [(each.run, each.results.stopped, f" {shared_name(each.results.judge.name)}") for each in judges]
    for run, stopped, judge in found:
        if stopped is not None:
            label, dataset = labels[run.folder], run.results.dataset
            about = (label, f"{dataset.benchmark} / {words(dataset.task)}", words(stopped.metric) + judge)
            counted = f"{number(stopped.counted)} of {number(stopped.examples)} examples"
            counted += f", a part of the set ({dataset.part.words})" if dataset.part else ""
            rows.append((*about, stopped.low, stopped.high, counted, stopped.sentence(label)))
    columns = (
        *text_columns("model", "task", "metric"),
        *number_columns("", "at least", "at most"),
        *text_columns("counted", "decision"),
    )
    note = (
        "These runs or judges stopped as soon as a question was decided, so their scores would be biased. The interval "
        "holds the score on exactly these questions, however often one looked. Unlike the intervals of scores, it does "
        "not cover other videos."
    )
    return Table.of(STOPPED, columns, rows, note) if rows else None
