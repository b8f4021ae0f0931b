"""From a judge's log to figures. Replies are read anew; nobody is asked.

Verdicts enter the metric `judge_score` as lists of draws; one that is unusable is None there and lowers the coverage.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from barista_bench import __version__
from barista_bench.analysis.intervals import ratio_interval
from barista_bench.atomic_files import replacing
from barista_bench.judging.asking import draw_key
from barista_bench.judging.items import JudgedSample, distinct, judged_samples
from barista_bench.judging.offline import form_id
from barista_bench.judging.reasoning import METHOD as REASONING
from barista_bench.judging.results import (
    MEAN,
    CategoryFigures,
    JudgedCoverage,
    JudgedResults,
    JudgeInfo,
    RubricInfo,
    write_judged,
)
from barista_bench.judging.session import VERDICTS_FILE, JudgeDescription, judge_folders, read_judge
from barista_bench.judging.verdicts import Unusable, read_verdict
from barista_bench.judging.weighting import splits_ten, weighted_score
from barista_bench.metrics.judge_score.scoring import judge_score
from barista_bench.models import TokenLogprob
from barista_bench.running.keys import digest
from barista_bench.running.log import SampleRecord, latest_records
from barista_bench.running.results import Figure
from barista_bench.running.scoring import ScoredRun, figure
from barista_bench.task import Status

RESULTS_FILE = "results.json"
SCORES_FILE = "scores.jsonl"
MISSING = "missing"
SCALE = 10.0
"""The highest score of G-Eval's form."""


@dataclass(frozen=True, slots=True)
class SampleVerdict:
    """One verdict on one sample.

    Args:
        score: from 0 to the judge's `scale` (10 for G-Eval), weighted where `scoring` says so; None where there is no
            usable verdict.
        status: of the reply, or `missing` where it was not asked for yet.
        scoring: weighted, inferred (weighted, with a split "10" inferred) or plain; empty without a score.
        text: the judge's reason, or why there is no score.
    """

    criterion: str
    draw: int
    score: float | None
    status: str
    scoring: str
    text: str


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """All that a report needs of one judge on one run. `verdicts` are by example id and run."""

    folder: Path
    run: ScoredRun
    results: JudgedResults
    verdicts: Mapping[tuple[str, int], tuple[SampleVerdict, ...]]


def score_judged(run: ScoredRun, folder: str | Path) -> JudgedRun:
    """The figures of one judge on a run; writes `results.json` and `scores.jsonl` to the judge's folder.

    Raises:
        DataError: the folder is no judge's.
    """
    folder = Path(folder)
    described = read_judge(folder)
    if described.identity["method"] == REASONING:
        # Imported here, since it is made of what this module defines.
        from barista_bench.judging.reasoning_scoring import score_reasons

        return score_reasons(run, folder, described)
    records = latest_records(folder / VERDICTS_FILE)
    samples = judged_samples(run)
    criteria = [criterion["name"] for criterion in described.rubric["criteria"]]
    split = splits_ten(tokens for record in records.values() if (tokens := _tokens(record)))
    by_item = {item.item: _verdicts(item.item, criteria, described, records, split) for item in distinct(samples)}
    verdicts = [by_item[one.item.item] if one.item else () for one in samples]
    results = _results(run, described, criteria, samples, verdicts, _used(by_item, criteria, described, records))
    _write_scores(samples, verdicts, folder / SCORES_FILE)
    write_judged(results, folder / RESULTS_FILE)
    keys = ((one.sample.example.example_id, one.sample.record.run) for one in samples)
    return JudgedRun(folder, run, results, dict(zip(keys, verdicts, strict=True)))


def all_judged(run: ScoredRun) -> list[JudgedRun]:
    """The figures of every judge that a run has."""
    return [score_judged(run, folder) for folder in judge_folders(run.folder)]


def _verdicts(
    item: str,
    criteria: Sequence[str],
    described: JudgeDescription,
    records: Mapping[str, SampleRecord],
    ten_is_split: bool,
) -> tuple[SampleVerdict, ...]:
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
    """The records that count, each once however many samples share it."""
    keys = (
        _key(item, criterion, described, draw)
        for item in items
        for criterion in criteria
        for draw in range(described.draws)
    )
    return [records[key] for key in keys if key in records]


def _results(
    run: ScoredRun,
    described: JudgeDescription,
    criteria: Sequence[str],
    samples: Sequence[JudgedSample],
    verdicts: Sequence[tuple[SampleVerdict, ...]],
    used: Sequence[SampleRecord],
) -> JudgedResults:
    identity, info = described.identity, run.results
    rows = [_row(one, criteria) for one in verdicts]
    labels = [one.sample.example.label for one in samples]
    places = [(one.sample.record.run, run.task.cluster(one.sample.example)) for one in samples]
    whole = judge_score(rows, labels, criteria=criteria, scale=SCALE)
    statuses = Counter(one.status for own in verdicts for one in own)
    scoring = Counter(one.scoring for own in verdicts for one in own)
    tokens_in, tokens_out = (sum(count or 0 for count in counts) for counts in _token_counts(used))
    return JudgedResults(
        barista_bench=__version__,
        method=identity["method"],
        judge=JudgeInfo(**{name: identity["model"][name] for name in ("name", "revision", "settings")}),
        generation=described.generation,
        rubric=RubricInfo(version=described.rubric["version"], sha256=identity["rubric"], criteria=list(criteria)),
        prompt_sha256=identity["prompt"],
        steps=identity["steps"],
        steps_sha256=digest(described.steps),
        draws=described.draws,
        model=info.model.name,
        model_revision=info.model.revision,
        dataset=info.dataset,
        runs=info.runs,
        coverage=JudgedCoverage(
            expected=info.coverage.expected,
            finished=len(samples),
            answered=sum(one.item is not None for one in samples),
            judged=whole["n"] - whole["n_failed"],
            verdicts={name: statuses[name] for name in (*map(str, Status), MISSING)},
        ),
        scoring={
            "weighted": scoring["weighted"] + scoring["inferred"],
            "inferred": scoring["inferred"],
            "plain": scoring["plain"],
        },
        scale=SCALE,
        figures=_figures(rows, places, criteria),
        sd_draws={MEAN: whole["sd_draws"]} | {name: whole["per_criterion"][name]["sd_draws"] for name in criteria},
        per_category=_per_category(samples, rows, places, criteria),
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cost=_cost(tokens_in, tokens_out, described.prices),
    )


def _row(verdicts: Sequence[SampleVerdict], criteria: Sequence[str]) -> dict[str, list[float | None]] | None:
    """A sample's draws by criterion, as the metric takes them."""
    if not verdicts:
        return None
    return {name: [one.score for one in verdicts if one.criterion == name] for name in criteria}


Row = dict[str, list[float | None]] | None
Place = tuple[int, str]
"""The run of a sample, and its cluster (`Task.cluster`)."""


def _figures(rows: Sequence[Row], places: Sequence[Place], criteria: Sequence[str]) -> dict[str, Figure]:
    """Mean and spread over the model's runs, of the runs that have a verdict at all, and the interval over clusters."""
    by_run: dict[int, list[Row]] = defaultdict(list)
    for row, (number, _) in zip(rows, places, strict=True):
        by_run[number].append(row)
    values: dict[str, list[float]] = defaultdict(list)
    for number in sorted(by_run):
        found = judge_score(by_run[number], criteria=criteria, scale=SCALE)
        means = {MEAN: found["mean"]} | {name: found["per_criterion"][name]["mean"] for name in criteria}
        for name, value in means.items():
            if value is not None:
                values[name].append(value)
    return {name: _with_interval(figure(own), rows, places, criteria, name) for name, own in values.items()}


def _with_interval(
    found: Figure, rows: Sequence[Row], places: Sequence[Place], criteria: Sequence[str], name: str
) -> Figure:
    """An answer without a verdict on what `name` is about is in no mean, and weighs nothing in the draws either."""
    scores = [_score(row, criteria if name == MEAN else [name]) for row in rows]
    usable = [place for place, score in enumerate(scores) if score is not None]
    ends = ratio_interval(
        np.array([scores[place] for place in usable]) / SCALE,
        np.ones(len(usable)),
        runs=[places[place][0] for place in usable],
        clusters=[places[place][1] for place in usable],
    )
    return found.model_copy(update={"low": ends.low, "high": ends.high}) if ends else found


def _score(row: Row, criteria: Sequence[str]) -> float | None:
    """A sample's mean over criteria of the mean over draws, 0 to SCALE; None unless each has a usable draw."""
    means = []
    for name in criteria:
        draws = [score for score in row[name] if score is not None] if row else []
        if not draws:
            return None
        means.append(statistics.fmean(draws))
    return statistics.fmean(means)


def _per_category(
    samples: Sequence[JudgedSample], rows: Sequence[Row], places: Sequence[Place], criteria: Sequence[str]
) -> dict[str, CategoryFigures]:
    groups: dict[str, list[int]] = defaultdict(list)
    for at, one in enumerate(samples):
        groups[one.sample.example.label].append(at)
    found = {}
    for label, members in sorted(groups.items()):
        own = [rows[at] for at in members]
        failed = judge_score(own, criteria=criteria, scale=SCALE)["n_failed"]
        found[label] = CategoryFigures(
            examples=len({samples[at].sample.example.example_id for at in members}),
            expected=len(members),
            judged=len(members) - failed,
            figures=_figures(own, [places[at] for at in members], criteria),
        )
    return found


def _token_counts(records: Sequence[SampleRecord]) -> tuple[list[int | None], list[int | None]]:
    return [record.input_tokens for record in records], [record.output_tokens for record in records]


def _cost(tokens_in: int, tokens_out: int, prices: Mapping[str, float | None]) -> float | None:
    """US dollars; prices are of a million tokens."""
    first, second = prices.get("input"), prices.get("output")
    if first is None or second is None:
        return None
    return round((tokens_in * first + tokens_out * second) / 1e6, 6)


def raw_scores(verdicts: Sequence[SampleVerdict]) -> dict[str, float]:
    """A sample's score by criterion, in the judge's units, mean over its usable draws; criteria without are absent."""
    found: dict[str, list[float]] = defaultdict(list)
    for one in verdicts:
        if one.score is not None:
            found[one.criterion].append(one.score)
    return {name: statistics.fmean(values) for name, values in found.items()}


def _write_scores(samples: Sequence[JudgedSample], verdicts: Sequence[tuple[SampleVerdict, ...]], path: Path) -> None:
    with replacing(path) as partial, partial.open("w", encoding="utf-8", errors="replace") as file:
        for one, own in zip(samples, verdicts, strict=True):
            about: dict[str, Any] = {
                "example_id": one.sample.example.example_id,
                "video_id": one.sample.example.video_id,
                "run": one.sample.record.run,
            }
            for verdict in own:
                file.write(json.dumps(about | asdict(verdict), sort_keys=True) + "\n")
            if not own:
                file.write(json.dumps(about | {"status": "unanswered"}, sort_keys=True) + "\n")
