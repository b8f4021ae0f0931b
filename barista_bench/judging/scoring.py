"""From a judge's log to figures. Replies are read anew; nobody is asked.

Verdicts of G-Eval enter the metric `judge_score` as lists of draws; one that is unusable is None there and lowers the
coverage.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from barista_bench.core.task import Status
from barista_bench.judging.asking import draw_key
from barista_bench.judging.items import JudgedSample, distinct, judged_samples
from barista_bench.judging.judged_run import (
    MISSING,
    JudgedRun,
    Judgement,
    SampleVerdict,
    Verdicts,
    criteria_of,
    judged_run,
    write_judged_run,
)
from barista_bench.judging.offline import form_id
from barista_bench.judging.reasoning import METHOD as REASONING
from barista_bench.judging.reasoning_scoring import score_reasons
from barista_bench.judging.released_verdicts import METHOD as RELEASED
from barista_bench.judging.released_verdicts import score_released
from barista_bench.judging.results import MEAN
from barista_bench.judging.session import VERDICTS_FILE, JudgeDescription, judge_folders, read_judge
from barista_bench.judging.verdicts import Unusable, read_verdict
from barista_bench.judging.weighting import splits_ten, weighted_score
from barista_bench.metrics.judge_score.scoring import judge_score
from barista_bench.models import TokenLogprob
from barista_bench.runs.log.sample_log import SampleRecord, latest_records
from barista_bench.runs.score.scoring import ScoredRun

SCALE = 10.0
"""The highest score of G-Eval's form."""
Row = dict[str, list[float | None]] | None
"""A sample's draws by criterion, as the metric takes them."""


def score_judged(run: ScoredRun, folder: str | Path) -> JudgedRun:
    """The figures of one judge on a run; writes `results.json` and `scores.jsonl` to the judge's folder.

    Raises:
        DataError: the folder is no judge's.
    """
    judged, made = _judged(run, Path(folder))
    write_judged_run(judged, made)
    return judged


def read_judged_run(run: ScoredRun, folder: str | Path) -> JudgedRun:
    """As `score_judged`, of which nothing is written."""
    return _judged(run, Path(folder))[0]


def all_judged(run: ScoredRun) -> list[JudgedRun]:
    """The figures of every judge that a run has. Writes nothing."""
    return [read_judged_run(run, folder) for folder in judge_folders(run.folder)]


def _judged(run: ScoredRun, folder: Path) -> tuple[JudgedRun, Judgement]:
    described = read_judge(folder)
    make = {REASONING: score_reasons, RELEASED: score_released}.get(described.identity["method"], _score_forms)
    made = make(run, described, latest_records(folder / VERDICTS_FILE))
    return judged_run(run, folder, described, made), made


def _score_forms(run: ScoredRun, described: JudgeDescription, records: Mapping[str, SampleRecord]) -> Judgement:
    """What G-Eval makes of its log."""
    samples = judged_samples(run)
    criteria = criteria_of(described)
    split = splits_ten(tokens for record in records.values() if (tokens := _tokens(record)))
    by_item = {item.item: _verdicts(item.item, criteria, described, records, split) for item in distinct(samples)}
    used = _used(by_item, criteria, described, records)
    return _judgement(samples, criteria, by_item, used, whole=run.task.follows_paper)


def _judgement(
    samples: Sequence[JudgedSample],
    criteria: Sequence[str],
    by_item: Mapping[str, Verdicts],
    used: Sequence[SampleRecord],
    *,
    whole: bool,
) -> Judgement:
    verdicts = [by_item[one.item.item] if one.item else () for one in samples]
    rows = [_row(own, criteria) for own in verdicts]
    means = [_value(row, criteria, whole=whole) for row in rows]
    scoring = Counter(one.scoring for own in verdicts for one in own)
    return Judgement(
        scale=SCALE,
        samples=[one.sample for one in samples],
        verdicts=verdicts,
        answered=sum(one.item is not None for one in samples),
        values={MEAN: _scaled(means)}
        | {name: _scaled([_value(row, [name], whole=True) for row in rows]) for name in criteria},
        figures=lambda places: (
            _figures([rows[place] for place in places], criteria, "mean")
            | {MEAN: _mean([means[place] for place in places])}
        ),
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


def _value(row: Row, criteria: Sequence[str], *, whole: bool) -> float | None:
    """A sample's mean over criteria of the mean over draws, 0 to `SCALE`; None without any usable draw.

    `whole` wants one on each criterion; the release takes the mean of those that there are.
    """
    draws = [[score for score in row[name] if score is not None] for name in criteria] if row else []
    means = [statistics.fmean(own) for own in draws if own]
    return statistics.fmean(means) if means and not (whole and len(means) < len(criteria)) else None


def _scaled(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else value / SCALE for value in values]


def _mean(values: Sequence[float | None]) -> float | None:
    """From 0 to 1."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) / SCALE if known else None
