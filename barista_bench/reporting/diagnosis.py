"""Show the findings of `barista_bench.stats` as tables and as a graph, without code for single benchmarks or tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from barista_bench.core.display import FAILURE_KINDS
from barista_bench.files.text_out import decimal
from barista_bench.reporting.tables import p_text
from barista_bench.stats import (
    BaselineGap,
    Comparison,
    Consistency,
    FailureRow,
    PropagationEdge,
    PropagationGraph,
    RankAgreement,
    ThoughtBin,
)
from barista_bench.stats.baselines import KINDS
from barista_bench.stats.repetitions import RepeatedScore
from barista_bench.tables import (
    Bar,
    Cell,
    RangedScore,
    Row,
    Table,
    interval,
    number,
    number_columns,
    text_columns,
    words,
)


def agreement_table(ranks: RankAgreement, benchmark: str = "") -> Table:
    """Return the table of Kendall's tau-b between tasks."""
    columns = (*text_columns("task"), *number_columns("", *map(words, ranks.tasks)))
    rows = (
        (words(task), *(None if s == t else _format_signed(tau, 2) for t, tau in enumerate(ranks.tau[s])))
        for s, task in enumerate(ranks.tasks)
    )
    note = (
        f"Kendall's tau-b between the orders in which two tasks put {len(ranks.models)} models, by mean sample score. "
        "+1: the same order; 0: unrelated; none where a task does not tell the models apart. "
        f"The models: {', '.join(ranks.models)}."
    )
    title = f"Rank agreement between tasks{f' of {benchmark}' if benchmark else ''}"
    return replace(Table.of(title, columns, rows, note), drawn="heat")


def thoughts_table(models: Sequence[tuple[str, Sequence[ThoughtBin]]], primary: str) -> Table | None:
    """Return the primary score of each model by its number of thinking tokens, or None without thoughts."""
    bins_by_median = {label: {f"{each.tokens:g}": each for each in bins} for label, bins in models if bins}
    if not bins_by_median:
        return None
    columns = (*text_columns("tokens of thought"), *number_columns(words(primary), *bins_by_median))
    medians = sorted({median for bins in bins_by_median.values() for median in bins}, key=float)
    rows = (
        (Cell(median), *(_thought_cell(bins.get(median)) for bins in bins_by_median.values())) for median in medians
    )
    note = (
        "Samples of a model by how many tokens they thought, in bins of about as many samples, each at its median; "
        "with the 95% interval. Hard questions are thought about longer: a fall to the right is no harm of thinking."
    )
    return replace(Table.of("Score against tokens of thought", columns, rows, note), drawn="line")


def repetitions_table(models: Sequence[tuple[str, Sequence[RepeatedScore]]], score: str) -> Table | None:
    """Return one row per model and way to use repetitions, or None without repetitions."""
    rows = [
        (
            label,
            row.way,
            row.k,
            Cell(row.mean)
            if row.interval is None
            else Cell(
                RangedScore(row.mean, row.interval.low, row.interval.high),
                notes=(interval(row.interval.low, row.interval.high),),
            ),
            row.examples,
        )
        for label, rows_of_model in models
        for row in rows_of_model
    ]
    columns = (*text_columns("model", "way"), *number_columns("", "k", words(score), "examples"))
    note = (
        "From the logged repetitions of each example. Best of k is the mean over all choices of k repetitions, without "
        "replacement; of scores that are 0 or 1 it is pass@k, and it needs to know which answer is right. Of several "
        "answers that are as frequent, the majority is their mean."
    )
    return Table.of("Repetitions", columns, rows, note) if rows else None


def _thought_cell(thought_bin: ThoughtBin | None) -> Cell:
    if thought_bin is None:
        return Cell(None)
    metric, row = thought_bin.row.metric, thought_bin.row
    samples = f"{row.samples} samples, {row.value} tokens"
    if metric.low is None or metric.high is None:
        return Cell(metric.mean, notes=(samples,))
    return Cell(RangedScore(metric.mean, metric.low, metric.high), notes=(interval(metric.low, metric.high), samples))


def comparisons_table(pairs: Sequence[Comparison]) -> Table:
    """Return one row per pair of models of a task. The numbers of examples link to these examples."""
    columns = (
        *text_columns("first", "second"),
        *number_columns(words(pairs[0].name), "first", "second", "difference", "p", "p (Holm)"),
        *number_columns("sample score", "difference", "effect size"),
        *number_columns("examples", "first better", "equal", "second better", "compared"),
    )
    rows = (
        (
            *(pair.first, pair.second, pair.first_value, pair.second_value),
            Cell(_format_signed(pair.difference), notes=_interval(pair.low, pair.high)),
            *(p_text(pair.p_value), p_text(pair.p_adjusted)),
            Cell(_format_signed(pair.sample_difference), notes=_interval(pair.sample_low, pair.sample_high)),
            _format_signed(pair.effect_size),
            _count_cell(pair.wins, pair.first, pair.second),
            pair.ties,
            _count_cell(pair.losses, pair.second, pair.first),
            Cell(
                f"{number(pair.examples)} of {number(pair.expected_examples)}",
                notes=tuple(f"{name} lacks {missing:,} samples" for name, missing in pair.missing_by_model.items()),
                warn=bool(pair.missing_by_model),
            ),
        )
        for pair in pairs
    )
    note = (
        "First minus second on the samples that both have, with its 95% interval over resampling "
        "units. p: permutation of whole units between the two models; Holm's correction is over all tasks. "
        "Effect size: Cohen's d of the examples' differences."
    )
    return Table.of("Each model and the next", columns, rows, note)


def _count_cell(count: int, better: str, worse: str) -> Cell:
    return Cell(count, query=(("better", better), ("worse", worse)))


def baselines_table(gaps: Sequence[BaselineGap]) -> Table:
    """Return how much of a score is due to images, to their order, or to more than guessing."""
    has_several = len({gap.comparison.benchmark for gap in gaps}) > 1
    columns = (
        *text_columns("task", "model", "without"),
        *number_columns("", "model's score", "baseline's score", "gap", "p (Holm)"),
    )
    rows = (
        (
            f"{gap.comparison.benchmark} / {words(gap.comparison.task)}" if has_several else words(gap.comparison.task),
            gap.model,
            _WITHOUT[gap.kind],
            gap.comparison.first_value,
            gap.comparison.second_value,
            Cell(_format_signed(gap.comparison.difference), notes=_interval(gap.comparison.low, gap.comparison.high)),
            p_text(gap.comparison.p_adjusted),
        )
        for gap in gaps
    )
    note = "If the interval of a gap holds 0, the score may not need what the baseline lacks."
    return Table.of("Gap to baselines", columns, rows, note)


_ABLATIONS = "images (text only)", "frames after the first", "the order of frames"
_GUESSES = "anything (chance)", "anything but priors", "anything (central box)", "motion (first masks)"
_WITHOUT = dict(zip(KINDS, (*_ABLATIONS, *_GUESSES), strict=True))


def consistency_table(runs: Sequence[Consistency]) -> Table:
    columns = (
        *text_columns("task", "model"),
        *number_columns("", "examples", "repetitions", "same answer", "same score", "spread of score"),
    )
    rows = (
        (words(run.task), run.model, run.examples, run.repetitions, run.same_answer, run.same_score, run.spread)
        for run in runs
    )
    note = "Over pairs of repetitions of an example; the spread is the mean standard deviation of an example's score."
    return Table.of("Consistency over repetitions", columns, rows, note)


def failures_table(by_model: Sequence[tuple[str, Sequence[FailureRow]]]) -> Table | None:
    """Return the kinds of failure by model label, in the order of their descriptions, or None without failures."""
    labels = tuple(label for label, _ in by_model)
    rows_of = {(label, row.kind): row for label, model_rows in by_model for row in model_rows if row.count}
    kinds = [kind for kind in FAILURE_KINDS if any((label, kind) in rows_of for label in labels)]
    rows: list[Row] = [
        (
            Cell(words(kind), query=(("failure", kind),)),
            FAILURE_KINDS[kind],
            *(_failure_cell(label, row) if (row := rows_of.get((label, kind))) else Cell(None) for label in labels),
        )
        for kind in kinds
    ]
    note = (
        "The fraction of all scored samples that fail so, and behind it how often that happens: one sample can fail in "
        "several ways."
    )
    columns = (*text_columns("kind", "meaning"), *number_columns("", *labels))
    return replace(Table.of("What went wrong", columns, rows, note), drawn="stack") if rows else None


def _failure_cell(label: str, row: FailureRow) -> Cell:
    query = (("failure", row.kind), ("model", label))
    return Cell(f"{100 * row.fraction:.1f}%", f"{number(row.count)}×", bar=Bar(row.fraction), query=query)


def propagation_table(graph: PropagationGraph) -> Table:
    """Return one row per ordered pair of tasks. The page draws its arrows from the graph."""
    columns = (
        *text_columns("an error in", "goes with one in"),
        *number_columns("", "odds ratio", "objects", "videos"),
        *number_columns("second errs", "if the first erred", "if not"),
        *number_columns("objects by who erred", "both", "first only", "second only", "neither"),
    )
    rows = (
        (
            *(words(edge.source), words(edge.target), Cell(_ratio(edge.odds_ratio), notes=_ratio_interval(edge))),
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
    return Table.of(f"Error propagation: {graph.model}", columns, rows, note)


def _ratio_interval(edge: PropagationEdge) -> tuple[str, ...]:
    return () if edge.low is None or edge.high is None else (f"[{_ratio(edge.low)}, {_ratio(edge.high)}]",)


def _ratio(value: float | None) -> str | None:
    if value is None:
        return None
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _format_signed(value: float | None, digits: int = 3) -> str | None:
    return None if value is None else decimal(value, digits, sign=True)


def _interval(low: float | None, high: float | None) -> tuple[str, ...]:
    return () if low is None or high is None else (interval(low, high),)
