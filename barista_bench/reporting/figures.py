"""Collect the figures of a report: its drawn tables, and further figures for papers.

`barista_bench.plots` draws the figures. This module has no code for single benchmarks or tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from barista_bench.errors import ConfigError
from barista_bench.judging.cross import cross_judge
from barista_bench.judging.cross_text import answer_agreement
from barista_bench.reporting.analyses import analyse, is_unranked
from barista_bench.reporting.leaderboard import without_ranks
from barista_bench.reporting.report import Report, Section, build_report, distinct_names
from barista_bench.reporting.tables import metric_cell, shorten_name
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.tables import Row, Table, number_columns, text_columns, words

KEYS = 3
"""Number of breakdowns to draw per task. The breakdowns that separate models most come first, as on the page."""
CLASSES = 20
"""Number of classes in a drawn confusion matrix. The most frequent classes are drawn."""
OTHER, UNREAD = "another class", "no readable answer"
_COSTS = ("output_tokens", "seconds")


def figures_of(runs: Sequence[ScoredRun]) -> dict[str, Table]:
    """Return all figures of a report on these runs, without comparisons."""
    return report_figures(build_report(runs, analyses=analyse(runs, compare=False)))


def report_figures(report: Report) -> dict[str, Table]:
    """Map file names to the figures of a report. Each figure is the table of its numbers."""
    tables: list[tuple[str, Table]] = []
    for board in report.boards:
        pictured_tables = without_ranks(board.table)
        tables += [("", pictured_tables), *(("", table) for table in _radar(pictured_tables))]
    tables += [("", table) for table in report.across]
    tables += [(part.heading, table) for part in report.papers for table in part.tables]
    for section in report.sections:
        of_section = (*section.metrics, *section.breakdowns[:KEYS], *section.failures, *_further_figures(section))
        tables += [(section.heading, table) for table in of_section]
    return drawn_tables(tables)


def drawn_tables(tables: Sequence[tuple[str, Table]]) -> dict[str, Table]:
    """Map file names to the tables that are drawn. `tables` pairs headings with tables."""
    to_draw = [(heading, table) for heading, table in tables if table.drawn and table.rows]
    names = distinct_names(f"{heading} {table.title.removesuffix(': the numbers')}" for heading, table in to_draw)
    return {name: table for name, (_, table) in zip(names, to_draw, strict=True)}


def _radar(board: Table) -> Iterator[Table]:
    """Yield a figure with the tasks of a leaderboard as axes, if there are at least three tasks."""
    if len(board.columns) > 3:
        columns = tuple(replace(column, name=column.name.partition(":")[0]) for column in board.columns)
        yield replace(board, title=f"Tasks: {board.title}", columns=columns, drawn="radar")


def _further_figures(section: Section) -> Iterator[Table]:
    """Yield the figures of a task that are not tables on the page."""
    ranked = [(name, run) for name, run in section.standing.runs.items() if not is_unranked(run)]
    if (costs := score_and_costs(ranked)) is not None:
        yield costs
    if (matrix := confusion_table(*(ranked or list(section.standing.runs.items()))[0])) is not None:
        yield matrix
    try:
        yield from answer_agreement(cross_judge([judged for _, _, judged in section.judged]))
    except ConfigError:  # there is a single judge, or judges cannot be compared
        return


def score_and_costs(models: Sequence[tuple[str, ScoredRun]]) -> Table | None:
    """Return the primary score and the cost of an answer in output tokens and seconds.

    Return None if fewer than two models have logs with these costs.
    """
    cost_names = [name for name in _COSTS if sum(name in run.results.timing.costs for _, run in models) > 1]
    if not cost_names:
        return None
    rows = []
    for label, run in models:
        costs = (run.results.timing.costs.get(name) for name in cost_names)
        rows.append((label, metric_cell(run.results.primary_metric), *(cost.mean if cost else None for cost in costs)))
    primary = words(models[0][1].results.primary)
    heads = (f"{words(name)} a sample" for name in cost_names)
    columns = (*text_columns("model"), *number_columns("", primary, *heads))
    return replace(Table.of(f"{primary} against costs", columns, rows), drawn="scatter")


def confusion_table(label: str, run: ScoredRun) -> Table | None:
    """Count samples by true class and answered class. A class is a text that is right in several examples.

    Return None if the task has no choices or fewer than two classes.
    """
    try:
        pairs = _choice_texts(run)
    except ConfigError:  # the task does not define the choices of an answer
        return None
    examples = Counter(right for _, right in {(example, right) for example, right, _ in pairs})
    classes = [name for name, count in examples.most_common(CLASSES) if count > 1]
    if len(classes) < 2:
        return None
    heads = (*classes, OTHER, UNREAD)
    counts = Counter((right, answered if answered in heads else OTHER) for _, right, answered in pairs)
    rows: list[Row] = [(shorten_name(right), *(counts[right, answered] for answered in heads)) for right in classes]
    columns = (*text_columns("true class"), *number_columns("", *map(shorten_name, heads)))
    title = f"Answered classes of {label}"
    note = f"Samples by their true class (rows) and the answered one, of the {len(classes)} most frequent classes."
    return replace(Table.of(title, columns, rows, note), drawn="heat")


def _choice_texts(run: ScoredRun) -> list[tuple[str, str, str]]:
    """Return the example, the right text and the answered text of each sample with one right choice."""
    rows = []
    for sample in run.samples:
        texts, right = run.task.choices(sample.example), run.task.correct_choices(sample.example)
        if sample.is_counted and len(right) == 1:
            answered = run.task.answered_choices(sample.prediction) if sample.prediction is not None else ()
            answer = texts.get(answered[0], OTHER) if answered else UNREAD
            rows.append((sample.example.example_id, texts[right[0]], answer))
    return rows
