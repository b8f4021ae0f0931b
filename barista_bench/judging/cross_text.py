"""A cross-judge analysis as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from barista_bench.files.text_out import decimal, markdown
from barista_bench.judging.cross import CrossJudge
from barista_bench.judging.human import HumanAgreement


def as_markdown(analysis: CrossJudge, human: Sequence[HumanAgreement] = ()) -> str:
    """Side-by-side tables a metric, then rankings and shifts, agreement, self-preference and people."""
    parts = ["# Several judges on the same answers", *_side_by_side(analysis)]
    parts += ["## Rankings and shifts", _comparisons(analysis)]
    if analysis.agreement:
        rows = [
            [a.criterion, *a.judges, a.n, _share(a.coverage), _n(a.exact), _n(a.within_1), _n(a.qwk), _n(a.tau)]
            for a in analysis.agreement
        ]
        head = ["criterion", "judge", "other judge", "n", "coverage", "exact", "within 1", "QWK", "tau-b"]
        parts += ["## Answer by answer", _table(head, rows)]
    if analysis.own_family:
        rows = [
            [o.metric, o.judge, o.model, o.rank, f"{o.other_rank} ({o.other_judge})", _n(o.gain), _n(o.gain_of_others),
             _n(o.preference)]
            for o in analysis.own_family
        ]  # fmt: skip
        head = [
            "metric",
            "judge",
            "model of its family",
            "rank",
            "rank elsewhere",
            "gain",
            "gain of others",
            "preference",
        ]
        parts += ["## Self-preference", _table(head, rows)]
    if human:
        rows = [
            [h.judge, h.criterion, h.rated, h.n, _n(h.exact), _n(h.within_1), _n(h.qwk), _n(h.shift)] for h in human
        ]
        head = ["judge", "criterion", "rated", "judged", "exact", "within 1", "QWK", "shift (points)"]
        parts += ["## Agreement with people", _table(head, rows)]
    return "\n\n".join(parts) + "\n"


def _side_by_side(analysis: CrossJudge) -> Iterator[str]:
    for metric, judges in analysis.scores.items():
        models = dict.fromkeys(model for scores in judges.values() for model in scores)
        rows = [[model, *(_n(scores.get(model)) for scores in judges.values())] for model in models]
        yield f"## {markdown(metric)}\n\n{_table(['model', *judges], rows)}"
    rows = [
        [judge, model, _share(share)] for judge, shares in analysis.coverage.items() for model, share in shares.items()
    ]
    yield f"## Coverage\n\n{_table(['judge', 'model', 'answers judged'], rows)}"


def _comparisons(analysis: CrossJudge) -> str:
    rows = [[c.metric, *c.judges, len(c.models), _n(c.tau), _n(c.shift), _n(c.shift_sd)] for c in analysis.comparisons]
    return _table(["metric", "judge", "other judge", "models", "tau-b", "shift", "sd of shift"], rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(markdown(str(cell)) for cell in line)} |" for line in lines)


def _n(value: float | None) -> str:
    return "–" if value is None else decimal(value)


def _share(value: float) -> str:
    return f"{100 * value:.1f}%"
