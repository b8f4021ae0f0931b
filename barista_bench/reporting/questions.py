"""Answer the key questions about a task's best model by a mark, a number, and the statistics behind them.

Answers come from `Analyses` and breakdowns without further computation. No code here is for single benchmarks or tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from barista_bench.core.model_names import GUESSES
from barista_bench.files.text_out import decimal
from barista_bench.reporting.analyses import REFERENCE, Analyses
from barista_bench.reporting.breakdowns import KeyGroups
from barista_bench.reporting.leaderboard import TaskStanding
from barista_bench.reporting.tables import p_text, shorten_name
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.stats import BaselineGap, Comparison
from barista_bench.tables import Cell, Row, Table, interval, number, text_columns, words

QUESTIONS = (
    "best model",
    "does it beat guessing?",
    "does it use the images?",
    "does the order of frames matter?",
    "what goes wrong most?",
    "where is it weakest?",
)
YES, LIKELY, NO, UNCLEAR = "yes", "likely", "no", "?"
_DOUBTS = {
    "likely": "likely: p is below 0.05 only before Holm's correction",
    "unclear": "which may be chance",
    "too few": "too few videos to tell",
    "none": "the same on every example",
}

Answers = tuple[Cell, ...]
"""One cell per question, with a mark or a name, a number, and the statistics as notes in sentences."""


def answer_questions(standing: TaskStanding, analyses: Analyses, breakdown: KeyGroups | None) -> Answers:
    """Answer `QUESTIONS` about the best model of a task. `breakdown` is the breakdown that separates models most."""
    label, run = next(iter(standing.runs.items()))
    if run.results.model.name == REFERENCE:
        return _answer_only("no model was asked")
    if run.ranking_metric is None:
        return _answer_only(label, "no scored sample")
    task = run.task.benchmark, run.task.name
    gaps = [
        gap for gap in analyses.gaps if gap.model == label and (gap.comparison.benchmark, gap.comparison.task) == task
    ]
    return (
        _best(label, run, analyses.comparisons.get(run.folder)),
        _compare_with_baselines([gap for gap in gaps if gap.kind in GUESSES], "no baseline that guesses was run"),
        _compare_with_baselines([gap for gap in gaps if gap.kind == "text_only"], f"not run: text_only:{label}"),
        _order(run, [gap for gap in gaps if gap.kind in ("shuffled_frames", "first_frame")], label),
        _commonest_failure(label, run, analyses),
        _weakest_group(label, run, breakdown),
    )


def _answer_only(text: str, extra: str = "") -> Answers:
    return (Cell(text, extra), *(Cell(None) for _ in QUESTIONS[1:]))


def _best(label: str, run: ScoredRun, ahead: Comparison | None) -> Cell:
    metric = run.ranking_metric
    mean = number(metric.mean) if metric else ""
    if ahead is None:
        return Cell(label, mean, notes=(f"No other model to compare {label} with.",))
    return Cell(label, mean, notes=(_sentence(ahead, ahead.second),))


def _compare_with_baselines(gaps: Sequence[BaselineGap], nothing: str) -> Cell:
    """Answer by the best of the baselines, with a sentence per baseline."""
    if not gaps:
        return Cell(None, notes=(f"{nothing[0].upper()}{nothing[1:]}.",))
    nearest = min(gaps, key=lambda gap: gap.comparison.difference)
    amount = f"{decimal(nearest.comparison.difference, sign=True)} against {words(nearest.kind)}"
    return Cell(_mark(nearest.comparison), amount, notes=tuple(_sentence(g.comparison, words(g.kind)) for g in gaps))


def _mark(pair: Comparison) -> str:
    if pair.certainty in ("unclear", "too few"):
        return UNCLEAR
    if pair.certainty == "none" or pair.difference <= 0:
        return NO
    return YES if pair.certainty == "sure" else LIKELY


def _order(run: ScoredRun, gaps: Sequence[BaselineGap], label: str) -> Cell:
    """Answer by the run on shuffled frames. The sentences also cover the run on only the first frame."""
    moments = max((len(set(example.frames)) for example in run.examples.examples), default=0)
    if moments < 2:
        return Cell(None, "one frame", notes=("Each example shows one frame.",))
    cell = _compare_with_baselines(
        [gap for gap in gaps if gap.kind == "shuffled_frames"], f"not run: shuffled_frames:{label}"
    )
    others = (_sentence(gap.comparison, words(gap.kind)) for gap in gaps if gap.kind != "shuffled_frames")
    return replace(cell, notes=(*cell.notes, *others))


def _sentence(pair: Comparison, other: str) -> str:
    """Describe the difference to another model or baseline, with interval, p-value and number of units."""
    ends = "" if pair.low is None or pair.high is None else f" {interval(pair.low, pair.high)}"
    doubt = _DOUBTS.get(pair.certainty)
    return (
        f"{number(pair.first_value)} against {number(pair.second_value)} of {other}: "
        f"{decimal(pair.difference, sign=True)}{ends}, p {p_text(pair.p_adjusted)} (Holm) "
        f"on {number(pair.units)} resampling units{f'; {doubt}' if doubt else ''}."
    )


def _commonest_failure(label: str, run: ScoredRun, analyses: Analyses) -> Cell:
    failures = analyses.failures.get(run.folder, ())
    total = sum(row.count for row in failures)
    if not total:
        return Cell("nothing")
    row = max(failures, key=lambda row: row.count)
    share = f"{number(row.count)} of {number(total)}"
    sentence = f"{share} failures are of the kind {words(row.kind)}; {100 * row.fraction:.1f}% of samples have one."
    return Cell(words(row.kind), share, notes=(sentence,), query=(("failure", row.kind), ("model", label)))


def _weakest_group(label: str, run: ScoredRun, breakdown: KeyGroups | None) -> Cell:
    """Return the group with the lowest primary score, with the highest score and the score of all examples."""
    groups = {
        value: of_value[label]
        for value, of_value in (breakdown.values.items() if breakdown else ())
        if label in of_value and of_value[label].examples > 1
    }
    if breakdown is None or len(groups) < 2:
        return Cell(None, notes=("No two groups of several examples.",))
    low, high = (choose(groups, key=lambda value: groups[value].metric.mean) for choose in (min, max))
    means = [number(groups[value].metric.mean) for value in (low, high)]
    worst, best = (shorten_name(value) or "none" for value in (low, high))
    if means[0] == means[1]:
        everywhere = groups[low].metric.mean == 0
        return Cell(
            "everywhere" if everywhere else "nowhere",
            means[0],
            notes=(f"{means[0]} in every group by {words(breakdown.key)}.",),
        )
    overall = run.results.primary_metric
    if overall and groups[low].metric.mean >= overall.mean:
        return Cell(None, notes=(f"No group by {words(breakdown.key)} is below all examples.",))
    of_all = f" and {number(overall.mean)} for all examples" if overall else ""
    metric = words(run.results.primary)
    sentence = f"{metric} by {words(breakdown.key)}: {means[0]} for {worst}, against {means[1]} for {best}{of_all}."
    query = (("key", breakdown.key), ("value", low), ("model", label))
    extra = f"{means[0]} on {number(groups[low].examples)} examples"
    return Cell(f"{words(breakdown.key)}: {worst}", extra, notes=(sentence,), query=query)


def question_table(title: str, tasks: Sequence[tuple[str, Answers]]) -> Table:
    """Return a table with a row per task, without the statistics."""
    rows: list[Row] = [(name, *(replace(cell, notes=()) for cell in cells)) for name, cells in tasks]
    note = (
        "About each task's best model. yes, no: p below 0.05 (permutation of resampling units, Holm), or no difference "
        "on any example; likely: p below 0.05 only before Holm's correction; ?: cannot be told."
    )
    return Table.of(f"Questions: {title}", text_columns("task", *QUESTIONS), rows, note)
