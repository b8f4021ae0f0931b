"""Make tables of judges for the runs of a section, and list the verdicts on each sample."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from barista_bench.core.status import Status, status_counts
from barista_bench.judging.config import OFFLINE
from barista_bench.judging.judged_run import MISSING, JudgedRun, SampleVerdict, judge_labels, raw_scores
from barista_bench.judging.results import MEAN, CategoryMetrics, JudgedResults
from barista_bench.reporting.tables import metric_cell
from barista_bench.tables import Cell, Column, Row, Table, number_columns, text_columns, words

LabelledJudge = tuple[str, str, JudgedRun]
"""A model's label, its judge's label, and the judge's results."""
SampleVerdicts = Mapping[tuple[str, int], tuple[tuple[str, str], ...]]
"""Maps (example id, repetition) to pairs of a judge with criterion and a verdict in words."""

OVERVIEW = "Judges"
"""Title of the table of all judges with one rubric."""
_UNUSABLE = [status for status in status_counts([]) if status != Status.OK] + [MISSING]


def labelled_judges(judged: Sequence[tuple[str, Sequence[JudgedRun]]]) -> list[LabelledJudge]:
    """Return one entry per model and judge, with the judges' names of `judge_labels`."""
    pairs = [(model, judged_run) for model, runs in judged for judged_run in runs]
    labels = judge_labels([judged_run for _, judged_run in pairs])
    return [(model, label, judged_run) for (model, judged_run), label in zip(pairs, labels, strict=True)]


def judge_tables(judges: Sequence[LabelledJudge]) -> tuple[Table, ...]:
    """Return the section's tables.

    Each rubric has separate tables, since scales differ. Without judges there are none.
    """
    by_rubric: dict[str, list[LabelledJudge]] = {}
    for judge in judges:
        by_rubric.setdefault(judge[2].results.rubric.sha256, []).append(judge)
    section_tables: list[Table] = []
    for members in by_rubric.values():
        results = [judged_run.results for _, _, judged_run in members]
        section_tables.append(_overview(members))
        section_tables += _tables_by_key("category", [each.per_category for each in results], members)
        for key in dict.fromkeys(key for each in results for key in each.breakdowns):
            section_tables += _tables_by_key(words(key), [each.breakdowns.get(key, {}) for each in results], members)
    return tuple(section_tables)


def judge_warnings(judges: Sequence[LabelledJudge]) -> list[str]:
    """Return warnings for readers who compare judged scores."""
    texts = [
        f"{model} as judged by {judge} is incomplete: {missing:,} verdicts are missing."
        for model, judge, judged_run in judges
        if (missing := judged_run.results.coverage.verdicts.get(MISSING, 0))
    ]
    if len({judged_run.results.rubric.sha256 for _, _, judged_run in judges}) > 1:
        texts.append("The judges used different rubrics: their scores cannot be compared.")
    return texts


def judge_verdicts(judges: Sequence[LabelledJudge], model: str, max_text: int) -> SampleVerdicts:
    """Return each judge's verdicts on each sample of a model. Reasons are cut at `max_text` characters."""
    lines_of: dict[tuple[str, int], list[tuple[str, str]]] = defaultdict(list)
    for label, judge, judged_run in judges:
        for sample, sample_verdicts in judged_run.verdicts.items() if label == model else ():
            lines_of[sample] += _verdict_lines(judge, sample_verdicts, judged_run.results.scale, max_text)
    return {sample: tuple(lines) for sample, lines in lines_of.items()}


def _overview(judges: Sequence[LabelledJudge]) -> Table:
    names = _compute_metrics(judges)
    spread = [
        name
        for name in names
        if any(judged_run.results.sd_of_verdicts.get(name) is not None for _, _, judged_run in judges)
    ]
    columns = [
        *text_columns("model", "judge"),
        *(Column(_with_end(name, judges), "score") for name in names),
        *(Column(words(name), "sd over verdicts") for name in spread),
        *number_columns("coverage (answers)", "judged %", "judged", "answered", "expected"),
        *number_columns("how scored", "verdicts", "weighted", "plain"),
        *number_columns("unusable verdicts", *map(words, _UNUSABLE)),
    ]
    rows = (_row(model, judge, judged_run.results, names, spread) for model, judge, judged_run in judges)
    rubric = judges[0][2].results.rubric
    note = (
        "Scores run from 0 to 1, or as their names say: mean ± standard deviation over repetitions, and below it the "
        "95% interval over resampling units; an unusable verdict counts in no mean. A judge's scores rank models under "
        "the same judge and rubric, and measure no absolute quality. "
        f"Rubric: {rubric.wording}, sha256 {rubric.sha256[:12]}."
    )
    if held_judges := dict.fromkeys(judge for _, judge, judged_run in judges if judged_run.results.is_held):
        note += f" {', '.join(held_judges)}: held to the form's JSON Schema while writing."
    if any(judged_run.results.judge.name in OFFLINE for _, _, judged_run in judges):
        note += " lexical counts shared words and oracle knows the reference: neither is a published measure."
    return Table.of(OVERVIEW, columns, rows, note)


def _with_end(name: str, judges: Sequence[LabelledJudge]) -> str:
    """Return a score's name, with its maximum if the maximum is not 1."""
    tops = dict.fromkeys(
        judged_run.results.tops[name] for _, _, judged_run in judges if name in judged_run.results.tops
    )
    return f"{words(name)} (0 to {', '.join(f'{top:g}' for top in tops)})" if tops else words(name)


def _row(model: str, judge: str, results: JudgedResults, names: Sequence[str], spread: Sequence[str]) -> Row:
    coverage = results.coverage
    fraction = f"{100 * coverage.fraction:.1f}%" if coverage.expected else None
    return (
        *(model, judge),
        *(metric_cell(results.metrics.get(name)) for name in names),
        *(results.sd_of_verdicts.get(name) for name in spread),
        fraction,
        Cell(coverage.judged, warn=coverage.judged < coverage.answered),
        *(coverage.answered, coverage.expected, results.verdicts_per_answer),
        *(results.scoring.get(how, 0) for how in ("weighted", "plain")),
        *(Cell(count, warn=count > 0) for count in (coverage.verdicts.get(name, 0) for name in _UNUSABLE)),
    )


def _tables_by_key(
    key: str, parts: Sequence[Mapping[str, CategoryMetrics]], judges: Sequence[LabelledJudge]
) -> Iterator[Table]:
    """Yield a table of each judge's main score by the values of a key. A single value gives no table."""
    values = list(dict.fromkeys(value for part in parts for value in part))
    if len(values) < 2:
        return
    main_metrics = [_main_metric(judged_run.results) for _, _, judged_run in judges]
    rows: list[Row] = []
    for value in values:
        pairs = zip((part.get(value) for part in parts), main_metrics, strict=True)
        metrics = (category.metrics.get(name) if category else None for category, name in pairs)
        rows.append((value, *map(metric_cell, metrics)))
    columns = (*text_columns(key), *(Column(judge, model) for model, judge, _ in judges))
    mains = dict.fromkeys(_with_end(name, judges) for name in main_metrics)
    title = "mean over criteria" if list(mains) == [MEAN] else ", ".join(mains)
    yield Table.of(f"Judges by {key}: {title}", columns, rows)


def _main_metric(results: JudgedResults) -> str:
    """Return the name of the mean over criteria, or of the only criterion if the judge has no mean."""
    criteria = results.rubric.criteria
    return MEAN if MEAN in results.metrics or not criteria else criteria[0]


def _compute_metrics(judges: Sequence[LabelledJudge]) -> list[str]:
    """Return the names of a judge's scores: the mean if there are several criteria, each criterion, then other
    scores.
    """
    criteria = list(dict.fromkeys(name for _, _, judged_run in judges for name in judged_run.results.rubric.criteria))
    others = dict.fromkeys(name for _, _, judged_run in judges for name in judged_run.results.metrics if name != MEAN)
    names = dict.fromkeys([*criteria, *others])
    return [MEAN, *names] if len(criteria) > 1 else list(names)


def _verdict_lines(
    judge: str, verdicts: Sequence[SampleVerdict], scale: float, max_text: int
) -> Iterator[tuple[str, str]]:
    """Yield one line per criterion with its scores and the reason of the first usable verdict."""
    for criterion in dict.fromkeys(verdict.criterion for verdict in verdicts):
        repetitions = [verdict for verdict in verdicts if verdict.criterion == criterion]
        scores = ", ".join(
            words(repetition.status) if repetition.score is None else f"{repetition.score:.3g}"
            for repetition in repetitions
        )
        first = next((verdict for verdict in repetitions if verdict.score is not None), repetitions[0])
        how = f" ({words(first.scoring)})" if first.scoring else ""
        reason = first.text if len(first.text) <= max_text else f"{first.text[:max_text]} […]"
        yield f"{judge}, {words(criterion)}", f"{scores} of {scale:g}{how}: {reason}"


def sample_scores(judges: Sequence[LabelledJudge], model: str) -> dict[str, dict[tuple[str, int], float]]:
    """Map each judge's label to its mean score for each sample of a model."""
    return {
        judge: {
            name: statistics.fmean(scores.values())
            for name, sample_verdicts in judged_run.verdicts.items()
            if (scores := raw_scores(sample_verdicts))
        }
        for label, judge, judged_run in judges
        if label == model
    }
