"""From a judge's log to figures. Replies are read anew; nobody is asked.

Verdicts of G-Eval enter the metric `judge_score` as lists of draws; one that is unusable is None there and lowers the
coverage.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from barista_bench.judging.asking import draw_key
from barista_bench.judging.items import JudgedSample, distinct, judged_samples
from barista_bench.judging.judged_run import (
    MISSING,
    JudgedRun,
    Judgement,
    SampleVerdict,
    Verdicts,
    criteria_of,
    write_judged_run,
)
from barista_bench.judging.offline import form_id
from barista_bench.judging.reasoning import METHOD as REASONING
from barista_bench.judging.reasoning_scoring import score_reasons
from barista_bench.judging.results import MEAN
from barista_bench.judging.session import VERDICTS_FILE, JudgeDescription, judge_folders, read_judge
from barista_bench.judging.verdicts import Unusable, read_verdict
from barista_bench.judging.weighting import splits_ten, weighted_score
from barista_bench.metrics.judge_score.scoring import judge_score
from barista_bench.models import TokenLogprob
from barista_bench.running.log import SampleRecord, latest_records
from barista_bench.running.scoring import ScoredRun
from barista_bench.task import Status

SCALE = 10.0
"""The highest score of G-Eval's form."""
Row = dict[str, list[float | None]] | None
"""A sample's draws by criterion, as the metric takes them."""


def score_judged(run: ScoredRun, folder: str | Path) -> JudgedRun:
    """The figures of one judge on a run; writes `results.json` and `scores.jsonl` to the judge's folder.

    Raises:
        DataError: the folder is no judge's.
    """
    folder = Path(folder)
    described = read_judge(folder)
    made = score_reasons if described.identity["method"] == REASONING else _score_forms
    return write_judged_run(run, folder, described, made(run, described, latest_records(folder / VERDICTS_FILE)))


def all_judged(run: ScoredRun) -> list[JudgedRun]:
    """The figures of every judge that a run has."""
    return [score_judged(run, folder) for folder in judge_folders(run.folder)]


def _score_forms(run: ScoredRun, described: JudgeDescription, records: Mapping[str, SampleRecord]) -> Judgement:
    """What G-Eval makes of its log."""
    samples = judged_samples(run)
    criteria = criteria_of(described)
    split = splits_ten(tokens for record in records.values() if (tokens := _tokens(record)))
    by_item = {item.item: _verdicts(item.item, criteria, described, records, split) for item in distinct(samples)}
    return _judgement(samples, criteria, by_item, _used(by_item, criteria, described, records))


def _judgement(
    samples: Sequence[JudgedSample],
    criteria: Sequence[str],
    by_item: Mapping[str, Verdicts],
    used: Sequence[SampleRecord],
) -> Judgement:
    verdicts = [by_item[one.item.item] if one.item else () for one in samples]
    rows = [_row(own, criteria) for own in verdicts]
    scoring = Counter(one.scoring for own in verdicts for one in own)
    return Judgement(
        scale=SCALE,
        samples=[one.sample for one in samples],
        verdicts=verdicts,
        answered=sum(one.item is not None for one in samples),
        values={MEAN: [_value(row, criteria) for row in rows]}
        | {name: [_value(row, [name]) for row in rows] for name in criteria},
        figures=lambda places: _figures([rows[place] for place in places], criteria, "mean"),
        used=used,
        scoring={
            "weighted": scoring["weighted"] + scoring["inferred"],
            "inferred": scoring["inferred"],
            "plain": scoring["plain"],
        },
        sd_draws=_figures(rows, criteria, "sd_draws"),
    )


def _verdicts(
    item: str,
    criteria: Sequence[str],
    described: JudgeDescription,
    records: Mapping[str, SampleRecord],
    ten_is_split: bool,
) -> Verdicts:
    return tuple(
        _verdict(criterion, draw, records.get(_key(item, criterion, described, draw)), ten_is_split=ten_is_split)
        for criterion in criteria
        for draw in range(described.draws)
    )


def _key(item: str, criterion: str, described: JudgeDescription, draw: int) -> str:
    return draw_key(form_id(item, criterion), described.key_identity, described.generation, draw)


def _verdict(criterion: str, draw: int, record: SampleRecord | None, *, ten_is_split: bool) -> SampleVerdict:
    if record is None:
        return SampleVerdict(criterion, draw, None, MISSING, "", "not asked yet")
    if record.status is not Status.OK or record.text is None:
        return SampleVerdict(criterion, draw, None, str(record.status), "", record.error or "")
    found = read_verdict(record.text)
    if isinstance(found, Unusable):
        return SampleVerdict(criterion, draw, None, str(Status.PARSE_ERROR), "", found.why)
    weighted = weighted_score(_tokens(record), found.score, ten_is_split=ten_is_split)
    if weighted is None:
        return SampleVerdict(criterion, draw, float(found.score), str(Status.OK), "plain", found.reason)
    scoring = "inferred" if weighted.inferred else "weighted"
    return SampleVerdict(criterion, draw, weighted.score, str(Status.OK), scoring, found.reason)


def _tokens(record: SampleRecord) -> list[TokenLogprob] | None:
    """Logged tokens as a completion has them; None stands for minus infinity there."""
    if record.logprobs is None:
        return None
    return [
        TokenLogprob(one.token, _number(one.logprob), tuple((token, _number(value)) for token, value in one.top))
        for one in record.logprobs
    ]


def _number(logprob: float | None) -> float:
    return float("-inf") if logprob is None else logprob


def _used(
    items: Mapping[str, object],
    criteria: Sequence[str],
    described: JudgeDescription,
    records: Mapping[str, SampleRecord],
) -> list[SampleRecord]:
    keys = (
        _key(item, criterion, described, draw)
        for item in items
        for criterion in criteria
        for draw in range(described.draws)
    )
    return [records[key] for key in keys if key in records]


def _row(verdicts: Verdicts, criteria: Sequence[str]) -> Row:
    if not verdicts:
        return None
    return {name: [one.score for one in verdicts if one.criterion == name] for name in criteria}


def _figures(rows: Sequence[Row], criteria: Sequence[str], figure: str) -> dict[str, float | None]:
    """A figure of the metric over all criteria, and of each."""
    found = judge_score(rows, criteria=criteria, scale=SCALE)
    return {MEAN: found[figure]} | {name: found["per_criterion"][name][figure] for name in criteria}


def _value(row: Row, criteria: Sequence[str]) -> float | None:
    """A sample's mean over criteria of the mean over draws, 0 to 1; None unless each has a usable draw."""
    means = []
    for name in criteria:
        draws = [score for score in row[name] if score is not None] if row else []
        if not draws:
            return None
        means.append(statistics.fmean(draws))
    return statistics.fmean(means) / SCALE
