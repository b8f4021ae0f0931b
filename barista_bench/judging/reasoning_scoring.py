"""From a judge's log to R and SCR (EgoCoT-Bench, section 3.2.4). Replies are read anew; nobody is asked.

R is the mean score of all rationales, of right and wrong answers alike; a missing one scores 0. SCR is the share of
right answers whose rationale scores 2 or less. A verdict that is missing or unusable is in neither, and lowers the
coverage. Groups pool their samples.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from barista_bench import __version__
from barista_bench.analysis.intervals import ratio_interval
from barista_bench.atomic_files import replacing
from barista_bench.judging.reasoning import METHOD, ReasonedSample, rationales_of, reasoned_samples
from barista_bench.judging.results import (
    MEAN,
    CategoryFigures,
    JudgedCoverage,
    JudgedResults,
    JudgeInfo,
    RubricInfo,
    write_judged,
)
from barista_bench.judging.rubric_judge import ReasoningVerdict, reasoning_questions, reasoning_verdicts
from barista_bench.judging.scoring import MISSING, RESULTS_FILE, SCORES_FILE, JudgedRun, SampleVerdict
from barista_bench.judging.session import VERDICTS_FILE, JudgeDescription
from barista_bench.judging.verdicts import REASONING_FORM
from barista_bench.metrics.judge_score.egocot import SPURIOUS_AT, egocot_reasoning
from barista_bench.models import GenerationConfig
from barista_bench.running.keys import digest
from barista_bench.running.log import SampleRecord, latest_records
from barista_bench.running.results import Figure
from barista_bench.running.scoring import ScoredRun, figure
from barista_bench.task import Status

CRITERION = "reasoning"
SCALE = float(REASONING_FORM.top)


class _Row(NamedTuple):
    """One sample as figures are made of it; `score` is None without a usable verdict."""

    run: int
    cluster: str
    score: float | None
    right: bool
    empty: bool


def score_reasons(run: ScoredRun, folder: Path, described: JudgeDescription) -> JudgedRun:
    """The figures of one judge of reasons on a run; writes `results.json` and `scores.jsonl` to the judge's folder."""
    samples = reasoned_samples(run)
    records = latest_records(folder / VERDICTS_FILE)
    found, used = _verdicts(samples, described, records)
    verdicts = [found[one.name] for one in samples]
    rows = [_row(run, one, verdict) for one, verdict in zip(samples, verdicts, strict=True)]
    results = _results(run, described, samples, rows, verdicts, used)
    _write_scores(samples, verdicts, folder / SCORES_FILE)
    write_judged(results, folder / RESULTS_FILE)
    keys = ((one.sample.example.example_id, one.sample.record.run) for one in samples)
    return JudgedRun(folder, run, results, {key: (one,) for key, one in zip(keys, verdicts, strict=True)})


def _verdicts(
    samples: Sequence[ReasonedSample], described: JudgeDescription, records: Mapping[str, SampleRecord]
) -> tuple[dict[str, SampleVerdict], list[SampleRecord]]:
    """Each sample's verdict by name, and the records that count."""
    rationales = rationales_of(samples)
    generation = GenerationConfig(**{**described.generation, "stop": tuple(described.generation["stop"])})
    questions = reasoning_questions(rationales, described.identity["model"], generation)
    given = reasoning_verdicts(rationales, questions, records)
    asked = {question.keys[0] for question in questions}
    found = {one.name: _sample_verdict(one, given.get(one.name)) for one in samples}
    return found, [records[key] for key in sorted(asked & records.keys())]


def _sample_verdict(one: ReasonedSample, given: ReasoningVerdict | None) -> SampleVerdict:
    if one.is_empty or given is None:
        return SampleVerdict(CRITERION, 0, 0.0, str(Status.OK), "rule", "no reasoning was given")
    if given.verdict is None:
        status = MISSING if given.status is Status.INFRA_ERROR and given.error == "not asked" else str(given.status)
        return SampleVerdict(CRITERION, 0, None, status, "", given.error or "")
    return SampleVerdict(CRITERION, 0, float(given.verdict.score), str(Status.OK), "plain", given.verdict.reason)


def _row(run: ScoredRun, one: ReasonedSample, verdict: SampleVerdict) -> _Row:
    right = one.sample.scores[run.task.sample_score] == 1
    cluster = run.task.cluster(one.sample.example)
    return _Row(one.sample.record.run, cluster, verdict.score, right, one.is_empty)


def _results(
    run: ScoredRun,
    described: JudgeDescription,
    samples: Sequence[ReasonedSample],
    rows: Sequence[_Row],
    verdicts: Sequence[SampleVerdict],
    used: Sequence[SampleRecord],
) -> JudgedResults:
    identity, info = described.identity, run.results
    statuses = Counter(verdict.status for verdict in verdicts)
    scoring = Counter(verdict.scoring for verdict in verdicts)
    tokens_in = sum(record.input_tokens or 0 for record in used)
    tokens_out = sum(record.output_tokens or 0 for record in used)
    return JudgedResults(
        barista_bench=__version__,
        method=METHOD,
        scale=SCALE,
        tops={"r": SCALE},
        judge=JudgeInfo(**{name: identity["model"][name] for name in ("name", "revision", "settings")}),
        generation=described.generation,
        rubric=RubricInfo(version=described.rubric["version"], sha256=identity["rubric"], criteria=[CRITERION]),
        prompt_sha256=identity["prompt"],
        steps="given",
        steps_sha256=digest(described.steps),
        draws=1,
        model=info.model.name,
        model_revision=info.model.revision,
        dataset=info.dataset,
        runs=info.runs,
        coverage=JudgedCoverage(
            expected=info.coverage.expected,
            finished=len(samples),
            answered=sum(not one.is_empty for one in samples),
            judged=sum(row.score is not None for row in rows),
            verdicts={name: statuses[name] for name in (*map(str, Status), MISSING)},
        ),
        scoring={"weighted": 0, "inferred": 0, "plain": scoring["plain"], "rule": scoring["rule"]},
        figures=_figures(rows),
        sd_draws={MEAN: None, CRITERION: None},
        per_category=_categories(rows, [one.sample.example.label for one in samples], samples),
        breakdowns={
            key: _categories(rows, [str(one.sample.example.metadata[key]) for one in samples], samples)
            for key in run.task.breakdown_keys
        },
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cost=_cost(tokens_in, tokens_out, described.prices),
    )


def _figures(rows: Sequence[_Row]) -> dict[str, Figure]:
    """`r` from 0 to 5, the same as `mean` and `reasoning` from 0 to 1, and `scr`, with their intervals."""
    by_run: dict[int, list[_Row]] = defaultdict(list)
    for row in rows:
        by_run[row.run].append(row)
    values: dict[str, list[float]] = defaultdict(list)
    for number in sorted(by_run):
        own = by_run[number]
        found = egocot_reasoning(
            [row.score for row in own], [row.right for row in own], empty_reasoning=[row.empty for row in own]
        )
        if found["r"] is not None:
            values["r"].append(found["r"])
            for name in (MEAN, CRITERION):
                values[name].append(found["r"] / SCALE)
        if found["scr"] is not None:
            values["scr"].append(found["scr"] / 100)
    return {
        name: _with_interval(figure(values[name]), rows, name) for name in (MEAN, CRITERION, "r", "scr") if values[name]
    }


def _with_interval(found: Figure, rows: Sequence[_Row], name: str) -> Figure:
    usable = [row for row in rows if row.score is not None and (row.right or name != "scr")]
    scores = np.array([row.score or 0.0 for row in usable])
    part = (scores <= SPURIOUS_AT).astype(np.float64) if name == "scr" else scores / (1 if name == "r" else SCALE)
    ends = ratio_interval(
        part,
        np.ones(len(usable)),
        runs=[row.run for row in usable],
        clusters=[row.cluster for row in usable],
    )
    return found.model_copy(update={"low": ends.low, "high": ends.high}) if ends else found


def _categories(
    rows: Sequence[_Row], labels: Sequence[str], samples: Sequence[ReasonedSample]
) -> dict[str, CategoryFigures]:
    groups: dict[str, list[int]] = defaultdict(list)
    for place, label in enumerate(labels):
        groups[label].append(place)
    return {
        label: CategoryFigures(
            examples=len({samples[place].sample.example.example_id for place in places}),
            expected=len(places),
            judged=sum(rows[place].score is not None for place in places),
            figures=_figures([rows[place] for place in places]),
        )
        for label, places in sorted(groups.items())
    }


def _cost(tokens_in: int, tokens_out: int, prices: Mapping[str, float | None]) -> float | None:
    """US dollars; prices are of a million tokens."""
    first, second = prices.get("input"), prices.get("output")
    return None if first is None or second is None else round((tokens_in * first + tokens_out * second) / 1e6, 6)


def _write_scores(samples: Sequence[ReasonedSample], verdicts: Sequence[SampleVerdict], path: Path) -> None:
    with replacing(path) as partial, partial.open("w", encoding="utf-8", errors="replace") as file:
        for one, verdict in zip(samples, verdicts, strict=True):
            about: dict[str, Any] = {
                "example_id": one.sample.example.example_id,
                "video_id": one.sample.example.video_id,
                "run": one.sample.record.run,
            }
            file.write(json.dumps(about | asdict(verdict), sort_keys=True) + "\n")
