"""Make tables about facts that several tasks ask for, and tables of scores by the visibility of objects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from barista_bench.core.example import Visibility
from barista_bench.data.dataset import ExampleSet
from barista_bench.data.visibility import graph_visibility
from barista_bench.reporting.analyses import FactAnalysis, is_unranked
from barista_bench.reporting.tables import metric_cell
from barista_bench.runs.score.results import MetricValue
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.tables import Cell, Column, Row, Table, number, number_columns, text_columns, words

BINS = 4
"""Number of quantile bins of a difficulty curve."""
MEASURES = {"area": "fraction of the frame", "seconds": "seconds in view", "hidden": "fraction hidden"}


def fact_tables(facts: FactAnalysis) -> Iterator[Table]:
    """Yield a table for each analysis that has rows."""
    rows: list[Row]
    if facts.consistency:
        columns = (*text_columns("model"), *number_columns("", "facts", "contradicted", "self-contradiction"))
        rows = [
            (row.model, row.facts, row.contradicted, _cell(row.rate, row.low, row.high)) for row in facts.consistency
        ]
        note = (
            "Facts of the scene graph that a model was asked in two tasks or more. It contradicts itself where an "
            "answer in one task is right and an answer in another is wrong. 95% interval over videos."
        )
        yield Table.of("Consistency of one fact", columns, rows, note)
    if facts.formats:
        heads = ("facts", "right", "known elsewhere", "right if known elsewhere")
        columns = (*text_columns("model", "benchmark", "task"), *number_columns("", *heads))
        rows = [
            (row.model, row.benchmark, words(row.task), row.facts, row.right, row.known, row.right_if_known)
            for row in facts.formats
        ]
        note = (
            "Facts that another task asks too. A model knows a fact if it is right about it in another task; the last "
            "column is what it can then write in this format."
        )
        yield Table.of("What is known, and what can be written", columns, rows, note)
    if facts.priors:
        heads = ("answers", "right", "prior", "above prior")
        columns = (*text_columns("model", "benchmark", "fact"), *number_columns("", *heads))
        rows = [
            (row.model, row.benchmark, row.kind, row.answers, row.right, row.prior, _cell(row.above, row.low, row.high))
            for row in facts.priors
        ]
        note = "Right answers of the model, and of `prior`, which sees no video, on the same facts."
        yield Table.of("Score above prior by fact", columns, rows, note)


def difficulty_tables(tasks: Sequence[Mapping[str, ScoredRun]]) -> Iterator[Table]:
    """Yield one curve per measure of visibility: mean sample scores by quantile bin of the measure and by benchmark.

    If no benchmark was generated from a graph, there is nothing to compare, and no curve. The scores come from the
    ranked models, or from all models if none is ranked. A measure with fewer than two bins has no curve.
    """
    all_runs = [run for by_label in tasks for run in by_label.values()]
    runs = [run for run in all_runs if not is_unranked(run)] or all_runs
    seen = {run.folder: _visibility_in_evidence(run.examples) for run in runs}
    if not any(seen.values()):
        return
    seen = {run.folder: seen[run.folder] or graph_visibility(run.examples) for run in runs}
    for measure, heading in MEASURES.items():
        scores: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for run in runs:
            for sample in run.samples:
                visibility = seen[run.folder].get(sample.example.example_id)
                value = getattr(visibility, measure, None)
                score = run.score_of(sample)
                if value is not None and score is not None:
                    scores[run.task.benchmark].append((float(value), score))
        values = np.array([value for rows in scores.values() for value, _ in rows])
        edges = np.unique(np.quantile(values, np.linspace(0, 1, BINS + 1))) if len(values) else values
        if len(edges) > 2:
            yield _curve(heading, scores, edges.tolist())


def _visibility_in_evidence(examples: ExampleSet) -> dict[str, Visibility]:
    rows = {example.example_id: example.evidence.get("visibility") for example in examples.examples}
    return {name: Visibility.read(row) for name, row in rows.items() if isinstance(row, dict)}


def _curve(heading: str, scores: Mapping[str, Sequence[tuple[float, float]]], edges: Sequence[float]) -> Table:
    rows: list[Row] = []
    for low, high in pairwise(edges):
        cells = []
        for pairs in scores.values():
            members = [score for value, score in pairs if low <= value < high or value == high == edges[-1]]
            mean = sum(members) / len(members) if members else None
            cells.append(Cell(mean, notes=(f"{number(len(members))} samples",) if members else ()))
        rows.append(((low + high) / 2, *cells))
    note = "Mean sample score in quantile bins, each at its middle, by the least visible object of a question."
    columns = (Column(heading), *(Column(name) for name in scores))
    return replace(Table.of(f"Difficulty by {heading}", columns, rows, note), drawn="line")


def _cell(mean: float, low: float | None, high: float | None) -> Cell:
    return metric_cell(MetricValue(mean=mean, std=None, repetitions=[mean], low=low, high=high))
