"""The counterparts of the papers' tables and figures: what a benchmark makes of its runs, printed like all else.

Names no benchmark: `Benchmark.paper_tables` gets the samples of every model, and gives tables and charts as data.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from barista_bench.benchmarks import Benchmark
from barista_bench.core.paper_tables import (
    ModelSamples,
    PaperChart,
    PaperTable,
    Point,
    Ranged,
    TableCell,
    sample_name,
)
from barista_bench.errors import BaristaError
from barista_bench.judging.judged_run import JudgedRun, raw_scores
from barista_bench.reporting.judges import labelled
from barista_bench.reporting.tables import NOTHING, Cell, Column, Table, interval, number
from barista_bench.runs.score.scoring import ScoredRun

LabelledRuns = Sequence[tuple[str, ScoredRun]]
"""Runs of one benchmark by their models' labels."""
Judged = Mapping[Path, Sequence[JudgedRun]]


@dataclass(frozen=True, slots=True)
class PaperPart:
    """One benchmark's tables and charts, a chart's numbers among the tables; `left_out` says why there are none."""

    benchmark: str
    heading: str
    tables: tuple[Table, ...] = ()
    charts: tuple[PaperChart, ...] = ()
    left_out: str = ""


def paper_part(benchmark: Benchmark, heading: str, runs: LabelledRuns, judged: Judged) -> PaperPart:
    """What `benchmark.paper_tables` makes of these runs."""
    if benchmark.paper_tables is None:
        return PaperPart(benchmark.name, heading)
    try:
        parts = benchmark.paper_tables([model_samples(label, run, judged.get(run.folder, ())) for label, run in runs])
    except BaristaError as error:
        return PaperPart(benchmark.name, heading, left_out=f"The tables of {heading}: {error}")
    charts = tuple(part for part in parts if isinstance(part, PaperChart))
    return PaperPart(benchmark.name, heading, as_tables(parts), charts)


def as_tables(parts: Sequence[PaperTable | PaperChart]) -> tuple[Table, ...]:
    """Tables as pages show them, and the numbers of charts."""
    return tuple(as_table(part) if isinstance(part, PaperTable) else numbers_of(part) for part in parts)


def model_samples(label: str, run: ScoredRun, judges: Sequence[JudgedRun]) -> ModelSamples:
    """A run as `paper_tables` takes it: a judge's score of a sample is the mean over its criteria, if it has all."""
    judged: dict[str, dict[str, float]] = {}
    for _, judge, judged_run in labelled([(label, judges)]):
        scores_of = judged.setdefault(judge, {})
        for (example_id, repetition), verdicts in judged_run.verdicts.items():
            scores = raw_scores(verdicts)
            if scores and len(scores) == len({verdict.criterion for verdict in verdicts}):
                scores_of[sample_name(example_id, repetition)] = statistics.fmean(scores.values())
    runs = tuple(tuple(sample.as_scored for sample in group.samples) for group in run.counted.values())
    return ModelSamples(label, run.task, runs, judged)


def as_table(paper: PaperTable) -> Table:
    """A column is numeric where nothing but numbers, and nothing at all, stands in it."""
    columns = tuple(
        Column(name, numeric=all(not isinstance(row[position], str) for row in paper.rows))
        for position, name in enumerate(paper.columns)
    )
    rows = tuple(tuple(_cell(cell) for cell in row) for row in paper.rows)
    return Table(paper.title, columns, rows, paper.note, folded=len(rows) > 30)


def numbers_of(chart: PaperChart) -> Table:
    """A row an x, a column a series."""
    xs = list(dict.fromkeys(point.x for series in chart.series for point in series.points))
    if all(isinstance(x, int | float) for x in xs):
        xs.sort(key=float)
    columns = (Column(chart.x, numeric=False), *(Column(series.name, chart.y) for series in chart.series))
    by_series = [{point.x: point for point in series.points} for series in chart.series]
    rows = tuple(
        (Cell(x if isinstance(x, str) else f"{x:g}"), *(_point(points.get(x)) for points in by_series)) for x in xs
    )
    return Table(f"{chart.title}: the numbers", columns, rows, chart.note, folded=True)


def _point(point: Point | None) -> Cell:
    if point is None or not math.isfinite(point.y):
        return Cell(NOTHING)
    if point.low is None or point.high is None:
        return Cell(number(point.y))
    return _cell(Ranged(point.y, point.low, point.high))


def _cell(cell: TableCell) -> Cell:
    if isinstance(cell, Ranged):
        return Cell(number(float(cell.value)), notes=(interval(float(cell.low), float(cell.high)),))
    if isinstance(cell, float) and not math.isfinite(cell):
        return Cell(NOTHING)
    return Cell(number(cell))
