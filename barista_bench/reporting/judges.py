"""What judges say about the runs of a section: tables, and the verdicts on each sample. Knows no task and no rubric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from barista_bench.judging.config import OFFLINE
from barista_bench.judging.results import MEAN, JudgedResults
from barista_bench.judging.scoring import MISSING, JudgedRun, SampleVerdict
from barista_bench.reporting.tables import NOTHING, Cell, Column, Table, figure_cell, number, words
from barista_bench.task import Status

LabelledJudge = tuple[str, str, JudgedRun]
"""A model's label, its judge's label, and what that judge says of it."""
SampleVerdicts = Mapping[tuple[str, int], tuple[tuple[str, str], ...]]
"""(example id, run) -> judge with criterion, and verdict in words."""

_UNUSABLE = [str(status) for status in Status if status is not Status.OK] + [MISSING]


def labelled(judged: Sequence[tuple[str, Sequence[JudgedRun]]]) -> list[LabelledJudge]:
    """One entry a model and judge; a folder's digest tells judges of one name apart."""
    found = []
    for model, runs in judged:
        names = [one.results.judge.name for one in runs]
        for one, name in zip(runs, names, strict=True):
            label = name if names.count(name) == 1 else f"{name} ({one.folder.name.rpartition('-')[2]})"
            found.append((model, label, one))
    return found


def tables(judges: Sequence[LabelledJudge]) -> tuple[Table, ...]:
    """The section's tables; none where nobody judged."""
    return (_overview(judges), *_by_category(judges)) if judges else ()


def warnings(judges: Sequence[LabelledJudge]) -> list[str]:
    """What a reader must know before comparing judged figures."""
    found = [
        f"{model} as judged by {judge} is incomplete: {one.results.coverage.verdicts[MISSING]:,} verdicts are missing."
        for model, judge, one in judges
        if one.results.coverage.verdicts[MISSING]
    ]
    if len({one.results.rubric.sha256 for _, _, one in judges}) > 1:
        found.append("The judges used different rubrics: their scores cannot be compared.")
    return found


def verdicts(judges: Sequence[LabelledJudge], model: str, max_text: int) -> SampleVerdicts:
    """What each judge says of each sample of one model, reasons cut at `max_text` characters."""
    found: dict[tuple[str, int], list[tuple[str, str]]] = {}
    for label, judge, one in judges:
        if label == model:
            for sample, own in one.verdicts.items():
                found.setdefault(sample, []).extend(_in_words(judge, own, max_text))
    return {sample: tuple(lines) for sample, lines in found.items()}


def _overview(judges: Sequence[LabelledJudge]) -> Table:
    criteria = _criteria(judges)
    columns = [
        *(Column(name, numeric=False) for name in ("model", "judge")),
        *(Column(words(name), "score, 0 to 1") for name in criteria),
        *(Column(words(name), "sd over draws") for name in criteria),
        *(Column(name, "coverage (answers)") for name in ("judged %", "judged", "answered", "expected")),
        *(Column(name, "how scored") for name in ("draws", "weighted", "plain")),
        *(Column(words(name), "unusable verdicts") for name in _UNUSABLE),
    ]
    rows = tuple(_row(model, judge, one.results, criteria) for model, judge, one in judges)
    note = (
        "Mean ± standard deviation over runs; an unusable verdict counts in no mean. A judge's scores rank models "
        "under the same judge and rubric, and measure no absolute quality."
    )
    if any(one.results.judge.name in OFFLINE for _, _, one in judges):
        note += " lexical counts shared words and oracle knows the reference: neither is a published measure."
    return Table("Judges", tuple(columns), rows, note)


def _row(model: str, judge: str, results: JudgedResults, criteria: Sequence[str]) -> tuple[Cell, ...]:
    coverage = results.coverage
    share = f"{100 * coverage.share:.1f} %" if coverage.expected else NOTHING
    return (
        Cell(model),
        Cell(judge),
        *(figure_cell(results.figures.get(name)) for name in criteria),
        *(Cell(number(results.sd_draws.get(name))) for name in criteria),
        Cell(share),
        Cell(number(coverage.judged), warn=coverage.judged < coverage.answered),
        Cell(number(coverage.answered)),
        Cell(number(coverage.expected)),
        Cell(number(results.draws)),
        Cell(number(results.scoring["weighted"])),
        Cell(number(results.scoring["plain"])),
        *(Cell(number(count), warn=count > 0) for count in (coverage.verdicts[name] for name in _UNUSABLE)),
    )


def _by_category(judges: Sequence[LabelledJudge]) -> Iterator[Table]:
    """The mean over criteria by category, as the paper's tables 11 and 15 have it."""
    categories = list(dict.fromkeys(name for _, _, one in judges for name in one.results.per_category))
    if len(categories) < 2:
        return
    rows = [
        (
            Cell(category),
            *(
                figure_cell(own.figures.get(MEAN) if (own := one.results.per_category.get(category)) else None)
                for _, _, one in judges
            ),
        )
        for category in categories
    ]
    columns = (Column("category", numeric=False), *(Column(judge, model) for model, judge, _ in judges))
    yield Table("Judges by category: mean over criteria", columns, tuple(rows), folded=len(rows) > 15)


def _criteria(judges: Sequence[LabelledJudge]) -> list[str]:
    """The mean where there are several criteria, then each of them."""
    names = list(dict.fromkeys(name for _, _, one in judges for name in one.results.rubric.criteria))
    return [MEAN, *names] if len(names) > 1 else names


def _in_words(judge: str, own: Sequence[SampleVerdict], max_text: int) -> Iterator[tuple[str, str]]:
    """One line a criterion: the scores of its draws, and the reason of the first usable one."""
    for criterion in dict.fromkeys(one.criterion for one in own):
        draws = [one for one in own if one.criterion == criterion]
        scores = ", ".join(words(one.status) if one.score is None else f"{one.score:.3g}" for one in draws)
        first = next((one for one in draws if one.score is not None), draws[0])
        how = f" ({words(first.scoring)})" if first.scoring else ""
        reason = first.text if len(first.text) <= max_text else f"{first.text[:max_text]} […]"
        yield f"{judge}, {words(criterion)}", f"{scores} of 10{how}: {reason}"
