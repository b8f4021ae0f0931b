"""Write a cross-judge analysis as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from barista_bench.judging.cross import CrossJudge
from barista_bench.judging.human import HumanAgreement
from barista_bench.tables import Table, markdown_page, number_columns, text_columns


def as_markdown(analysis: CrossJudge, human: Sequence[HumanAgreement] = ()) -> str:
    """Return a side-by-side table per metric, then tables of rankings and shifts, agreement, self-preference and
    people.
    """
    return markdown_page("Several judges on the same answers", _tables(analysis, human))


def _tables(analysis: CrossJudge, human: Sequence[HumanAgreement]) -> Iterator[Table]:
    for metric, judges in analysis.scores.items():
        models = dict.fromkeys(model for scores in judges.values() for model in scores)
        side_by_side = ((model, *(scores.get(model) for scores in judges.values())) for model in models)
        yield Table.of(metric, (*text_columns("model"), *number_columns("", *judges)), side_by_side)
    fractions = ((judge, *fraction) for judge, of_judge in analysis.coverage.items() for fraction in of_judge.items())
    coverage_rows = ((judge, model, _percent(fraction)) for judge, model, fraction in fractions)
    yield Table.of("Coverage", (*text_columns("judge", "model"), *number_columns("", "answers judged")), coverage_rows)
    columns = (*text_columns("metric", "judge", "other judge"), *number_columns("", "models", "tau-b", "shift"))
    comparison_rows = ((c.metric, *c.judges, len(c.models), c.tau, c.shift, c.shift_sd) for c in analysis.comparisons)
    yield Table.of("Rankings and shifts", (*columns, *number_columns("", "sd of shift")), comparison_rows)
    yield from answer_agreement(analysis)
    if analysis.own_vendor:
        metrics = number_columns("", "rank", "rank elsewhere", "gain", "gain of others", "preference")
        others = [f"{o.other_rank} ({o.other_judge})" for o in analysis.own_vendor]
        preference_rows = (
            (o.metric, o.judge, o.model, o.rank, other, o.gain, o.gain_of_others, o.preference)
            for o, other in zip(analysis.own_vendor, others, strict=True)
        )
        names = text_columns("metric", "judge", "model of its vendor")
        yield Table.of("Self-preference", (*names, *metrics), preference_rows)
    if human:
        metrics = number_columns("", "rated", "judged", "exact", "within 1", "QWK", "shift (points)")
        human_rows = ((h.judge, h.criterion, h.rated, h.n, h.exact, h.within_1, h.qwk, h.shift) for h in human)
        yield Table.of("Agreement with people", (*text_columns("judge", "criterion"), *metrics), human_rows)


def answer_agreement(analysis: CrossJudge) -> Iterator[Table]:
    """Yield tables that compare each pair of judges answer by answer. Pairs without common answers have no table."""
    if analysis.agreement:
        names = text_columns("criterion", "judge", "other judge", "n", "coverage")
        rows = (
            (a.criterion, *a.judges, str(a.n), _percent(a.coverage), a.exact, a.within_1, a.qwk, a.tau)
            for a in analysis.agreement
        )
        metrics = number_columns("", "exact", "within 1", "QWK", "tau-b")
        yield replace(Table.of("Answer by answer", (*names, *metrics), rows), drawn="heat")


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f}%"
