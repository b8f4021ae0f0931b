"""What `barista_bench.stats` finds, as tables and as a drawn graph. Names no benchmark and no task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from barista_bench.core.task import FAILURE_KINDS
from barista_bench.reporting.tables import (
    NOTHING,
    Block,
    Cell,
    Column,
    Table,
    cells,
    figure_cell,
    interval,
    number,
    number_columns,
    text_columns,
    words,
)
from barista_bench.reporting.tables import side_by_side as beside
from barista_bench.stats import (
    BaselineGap,
    BreakdownRow,
    Comparison,
    Consistency,
    FailureRow,
    PropagationEdge,
    PropagationGraph,
    RankAgreement,
)


def agreement(ranks: RankAgreement, benchmark: str = "") -> Table:
    """Kendall's tau-b between tasks."""
    columns = (Column("task", numeric=False), *(Column(words(task)) for task in ranks.tasks))
    rows = tuple(
        (
            Cell(words(task)),
            *(Cell(NOTHING if tau is None or s == t else f"{tau:+.2f}") for t, tau in enumerate(ranks.tau[s])),
        )
        for s, task in enumerate(ranks.tasks)
    )
    note = (
        f"Kendall's tau-b between the orders in which two tasks put {len(ranks.models)} models, by mean sample score. "
        "+1: the same order; 0: unrelated; none where a task does not tell the models apart. "
        f"The models: {', '.join(ranks.models)}."
    )
    return Table(f"Rank agreement between tasks{f' of {benchmark}' if benchmark else ''}", columns, rows, note)


def comparisons(compared: Sequence[Comparison], title: str = "Paired comparisons") -> Table:
    """One row a pair of models and task."""
    several = len({pair.benchmark for pair in compared}) > 1
    columns = (
        *text_columns("task", "first", "second", "figure"),
        *number_columns("pooled figure", "first", "second", "difference", "p", "p (Holm)"),
        *number_columns("sample score", "difference", "effect size"),
        *number_columns("examples", "first better", "equal", "second better", "compared"),
    )
    rows = tuple(
        cells(
            *(_task(pair, several), pair.first, pair.second, words(pair.name), pair.first_value, pair.second_value),
            Cell(_signed(pair.difference), notes=_interval(pair.low, pair.high)),
            *(_p(pair.p_value), _p(pair.p_adjusted)),
            Cell(_signed(pair.sample_difference), notes=_interval(pair.sample_low, pair.sample_high)),
            *(_signed(pair.effect_size), pair.wins, pair.ties, pair.losses),
            Cell(
                f"{number(pair.examples)} of {number(pair.expected_examples)}",
                warn=pair.samples < pair.expected_samples,
            ),
        )
        for pair in compared
    )
    note = (
        "First minus second on the samples that both have, with the 95% interval of a paired bootstrap over videos. "
        "p: permutation of whole videos between the two models; Holm's correction is over all rows. "
        "Effect size: Cohen's d of the examples' differences."
    )
    return Table(title, columns, rows, note, folded=len(rows) > 20)


def baselines(gaps: Sequence[BaselineGap]) -> Table:
    """What a score owes to images, their order, or anything but guessing."""
    several = len({gap.comparison.benchmark for gap in gaps}) > 1
    columns = (
        *text_columns("task", "model", "without"),
        *number_columns("", "model's figure", "baseline's figure", "gap", "p (Holm)"),
    )
    rows = tuple(
        cells(
            _task(gap.comparison, several),
            gap.model,
            _KINDS.get(gap.kind, words(gap.kind)),
            gap.comparison.first_value,
            gap.comparison.second_value,
            Cell(_signed(gap.comparison.difference), notes=_interval(gap.comparison.low, gap.comparison.high)),
            _p(gap.comparison.p_adjusted),
        )
        for gap in gaps
    )
    note = "A gap whose interval holds 0 says that the score does not need what the baseline goes without."
    return Table("Gap to baselines", columns, rows, note, folded=len(rows) > 20)


def _task(comparison: Comparison, several: bool) -> str:
    return f"{comparison.benchmark} / {words(comparison.task)}" if several else words(comparison.task)


_KINDS = {
    "text_only": "images (text only)",
    "first_frame": "frames after the first",
    "shuffled_frames": "the order of frames",
    "chance": "anything (chance)",
    "prior": "anything but priors",
    "centre_box": "anything (central box)",
}


def consistency(runs: Sequence[Consistency]) -> Table:
    columns = (
        *text_columns("task", "model"),
        *number_columns("", "examples", "runs", "same answer", "same score", "spread of score"),
    )
    rows = tuple(
        cells(words(run.task), run.model, run.examples, run.runs, run.same_answer, run.same_score, run.spread)
        for run in runs
    )
    note = "Over pairs of runs of an example; the spread is the mean standard deviation of an example's score."
    return Table("Consistency over runs", columns, rows, note, folded=len(rows) > 20)


def failures(by_model: Sequence[tuple[str, Sequence[FailureRow]]]) -> Table | None:
    """Kinds of failure by model label, in the order of their description; None where nothing failed."""
    kinds = [
        kind for kind in FAILURE_KINDS if any(row.kind == kind and row.count for _, rows in by_model for row in rows)
    ]
    columns = text_columns("kind", "meaning")
    for label, _ in by_model:
        columns += number_columns(label, "failures", "samples", "share")
    lines = []
    for kind in kinds:
        of_kind = (next((row for row in rows if row.kind == kind), None) for _, rows in by_model)
        counts = ((row.count, row.samples, f"{100 * row.share:.1f} %") if row else (0, 0, NOTHING) for row in of_kind)
        lines.append(cells(words(kind), FAILURE_KINDS[kind], *(count for row in counts for count in row)))
    note = "One sample can fail in several ways; the share is of all scored samples."
    return Table("What went wrong", columns, tuple(lines), note) if lines else None


def breakdown(key: str, by_model: Sequence[tuple[str, Sequence[BreakdownRow]]], figure: str) -> Table | None:
    """The primary figure by group, models beside each other; None where there is one group alone."""
    blocks: list[tuple[str, Block]] = []
    for label, rows in by_model:
        ordered = sorted(rows, key=lambda row: (row.order, row.value))
        name = words(figure)
        block = {row.value: {"examples": Cell(number(row.examples)), name: figure_cell(row.figure)} for row in ordered}
        blocks.append((label, block))
    table = beside(f"By {words(key)}", words(key), blocks)
    return table if len(table.rows) > 1 else None


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A task: its dot at (`dot_x`, `y`), and its name at (`x`, `text_y`)."""

    name: str
    dot_x: float
    x: float
    y: float
    anchor: str
    text_y: float


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    """An arrow as an SVG path.

    `kind` is `together` where the interval of its odds ratio lies above 1, `apart` where below, else `unclear`; only
    the first two are labelled, so that the picture can be read.
    """

    path: str
    width: float
    kind: str
    label: str
    label_x: float
    label_y: float
    title: str


@dataclass(frozen=True, slots=True)
class DrawnGraph:
    """How errors of one task go with errors of another on the same objects, as a picture and as a table."""

    title: str
    width: int
    height: int
    nodes: tuple[DrawnNode, ...]
    edges: tuple[DrawnEdge, ...]
    table: Table


_WIDTH, _HEIGHT, _RADIUS, _NODE = 700, 540, 205.0, 9.0
_ALONG = 0.3
"""Where along an arrow its number stands: nearer to its start, since arrows cross in the middle."""


def drawn(graph: PropagationGraph) -> DrawnGraph | None:
    """The tasks on a circle, arrows from the task that erred first; None where nothing is shared."""
    if not graph.edges:
        return None
    places = {}
    for number_, task in enumerate(graph.tasks):
        angle = 2 * math.pi * number_ / len(graph.tasks) - math.pi / 2
        places[task] = (_WIDTH / 2 + _RADIUS * math.cos(angle), _HEIGHT / 2 + _RADIUS * math.sin(angle))
    return DrawnGraph(
        title=f"Error propagation: {graph.model}",
        width=_WIDTH,
        height=_HEIGHT,
        nodes=tuple(_node(task, *places[task]) for task in graph.tasks),
        edges=tuple(_edge(edge, places[edge.source], places[edge.target]) for edge in graph.edges),
        table=_edges(graph),
    )


def _node(task: str, x: float, y: float) -> DrawnNode:
    side = x - _WIDTH / 2
    anchor = "middle" if abs(side) < 20 else "start" if side > 0 else "end"
    shift = 0.0 if anchor == "middle" else math.copysign(18.0, side)
    text_y = y + 5 if shift else y + math.copysign(24.0, y - _HEIGHT / 2) + 4
    return DrawnNode(words(task), round(x, 1), round(x + shift, 1), round(y, 1), anchor, round(text_y, 1))


def _edge(edge: PropagationEdge, start: tuple[float, float], end: tuple[float, float]) -> DrawnEdge:
    """A bent arrow, so that both directions of a pair are seen. Thicker is a larger odds ratio."""
    (x0, y0), (x1, y1) = start, end
    length = math.hypot(x1 - x0, y1 - y0) or 1.0
    along, across = ((x1 - x0) / length, (y1 - y0) / length), ((y1 - y0) / length, (x0 - x1) / length)
    bend = 0.16 * length
    mid = ((x0 + x1) / 2 + across[0] * bend, (y0 + y1) / 2 + across[1] * bend)
    gap = _NODE + 8
    first = x0 + along[0] * gap + across[0] * 6, y0 + along[1] * gap + across[1] * 6
    last = x1 - along[0] * gap + across[0] * 6, y1 - along[1] * gap + across[1] * 6
    path = f"M{first[0]:.1f} {first[1]:.1f} Q{mid[0]:.1f} {mid[1]:.1f} {last[0]:.1f} {last[1]:.1f}"
    kind = _kind(edge)
    label = "" if kind == "unclear" or edge.odds_ratio is None else _ratio(edge.odds_ratio)
    width = 1.0 if edge.odds_ratio is None or not label else 1.4 + min(4.0, abs(math.log2(edge.odds_ratio))) * 0.8
    label_x, label_y = (_on_curve(*ends) for ends in zip(first, mid, last, strict=True))
    return DrawnEdge(
        path=path,
        width=round(width, 2),
        kind=kind,
        label=label,
        label_x=round(label_x, 1),
        label_y=round(label_y + 4, 1),
        title=f"{words(edge.source)} to {words(edge.target)}: odds ratio {_ratio(edge.odds_ratio)}, n {edge.n}",
    )


def _on_curve(first: float, middle: float, last: float) -> float:
    """One coordinate of the place `_ALONG` a quadratic curve."""
    rest = 1 - _ALONG
    return rest * rest * first + 2 * rest * _ALONG * middle + _ALONG * _ALONG * last


def _kind(edge: PropagationEdge) -> str:
    if edge.low is not None and edge.low > 1:
        return "together"
    return "apart" if edge.high is not None and edge.high < 1 else "unclear"


def _edges(graph: PropagationGraph) -> Table:
    columns = (
        *text_columns("an error in", "goes with one in"),
        *number_columns("", "odds ratio", "objects", "videos"),
        *number_columns("second errs", "if the first erred", "if not"),
        *number_columns("objects by who erred", "both", "first only", "second only", "neither"),
    )
    rows = tuple(
        cells(
            *(words(edge.source), words(edge.target), Cell(_ratio(edge.odds_ratio), notes=_ratios(edge))),
            *(edge.n, edge.videos, edge.risk_with, edge.risk_without),
            *(edge.both, edge.source_only, edge.target_only, edge.neither),
        )
        for edge in graph.edges
    )
    note = (
        "Over objects that both tasks ask about at the same time. Odds ratio with 1/2 added to each cell, and its 95% "
        "interval over videos; above 1, errors come together; none where a task always or never errs. An association, "
        "not proof of cause."
    )
    return Table(f"Error propagation: {graph.model}", columns, rows, note, folded=len(rows) > 15)


def _ratios(edge: PropagationEdge) -> tuple[str, ...]:
    return () if edge.low is None or edge.high is None else (f"[{_ratio(edge.low)}, {_ratio(edge.high)}]",)


def _ratio(value: float | None) -> str:
    if value is None:
        return NOTHING
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _signed(value: float | None) -> str:
    return NOTHING if value is None else f"{value:+.3f}"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _interval(low: float | None, high: float | None) -> tuple[str, ...]:
    return () if low is None or high is None else (interval(low, high),)
