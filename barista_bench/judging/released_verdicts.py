"""Read and write verdicts that came with an imported run. The judge of such a folder is never asked again.

The release (docs/upstream/barista.md, "Judges") gives every sample a score from 0 to 1 on each criterion, or a reason
for the missing score. All means, of samples and of the run, are over existing scores.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec

from barista_bench.core.statistics import sum_in_order
from barista_bench.core.status import Status
from barista_bench.judging.judge_folder import VERDICTS_FILE, JudgeDescription, judge_folder_name, write_json
from barista_bench.judging.judged_run import LogVerdicts, MetricValues, SampleVerdict
from barista_bench.judging.results import MEAN
from barista_bench.models import ModelIdentity
from barista_bench.runs.log.inputs import digest
from barista_bench.runs.log.sample_log import SampleLog, SampleRecord, counting_records
from barista_bench.runs.run_folder import JUDGE_FILE, JUDGES
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.version import __version__

METHOD: Final = "released"
SCALE = 10.0


class ReleasedScore(NamedTuple):
    """A criterion's score from 0 to 1 with the judge's reason. Without a score, `reason` says why it is missing."""

    score: float | None
    reason: str


class _Verdict(msgspec.Struct):
    """The `text` of a record in the judge's log."""

    criterion: str
    score: Annotated[float, msgspec.Meta(ge=0, le=1)] | None
    reason: str


SampleName = tuple[str, int]
"""Example id and repetition."""
ReleasedScores = Mapping[SampleName, Mapping[str, ReleasedScore]]
"""Scores by sample, then by criterion. Samples without verdicts are absent."""


def write_released_judge(run: Path, judge: str, provider: str | None, scores: ReleasedScores) -> Path:
    """Create a judge's folder from its verdicts, and return the folder."""
    criteria = list(dict.fromkeys(name for by_criterion in scores.values() for name in by_criterion))
    identity = {
        "method": METHOD,
        "model": asdict(ModelIdentity(judge, settings={"provider": provider, "harness": "released"})),
        "rubric": METHOD,
        "prompt": METHOD,
        "steps": "generate",
    }
    folder = run / JUDGES / judge_folder_name(judge, identity, {})
    with SampleLog(folder / VERDICTS_FILE) as log:
        for (example_id, number), by_criterion in scores.items():
            for criterion, (score, reason) in by_criterion.items():
                log.append(_verdict_record(example_id, number, _Verdict(criterion, score, reason)))
    description = JudgeDescription(
        identity=identity,
        generation={},
        steps={},
        verdicts_per_answer=1,
        rubric={"version": 0, "wording": "", "criteria": [{"name": name} for name in criteria]},
        prompt={},
        barista_bench=__version__,
    )
    write_json(folder / JUDGE_FILE, description)
    return folder


def verdict_key(example_id: str, repetition: int, criterion: str) -> str:
    """Return the key of one verdict in the judge's log."""
    return digest(METHOD, example_id, repetition, criterion)


def _verdict_record(example_id: str, repetition: int, verdict: _Verdict) -> SampleRecord:
    key = verdict_key(example_id, repetition, verdict.criterion)
    return SampleRecord(
        key=key,
        fingerprint=key,
        example_id=example_id,
        repetition=repetition,
        status=Status.INFRA_ERROR if verdict.score is None else Status.OK,
        # Reasons may hold lone surrogates. They are escaped here.
        text=json.dumps(msgspec.to_builtins(verdict)),
        error=verdict.reason if verdict.score is None else None,
    )


def read_released_scores(folder: Path) -> ReleasedScores:
    """Return the verdicts in a folder that `write_released_judge` created. An invalid line counts as not judged."""
    return _scores_by_sample(counting_records(folder / VERDICTS_FILE))


def _scores_by_sample(records: Mapping[str, SampleRecord]) -> ReleasedScores:
    scores: dict[SampleName, dict[str, ReleasedScore]] = {}
    for record in records.values():
        try:
            verdict = msgspec.convert(json.loads(record.text or ""), _Verdict)
        except (ValueError, RecursionError):
            continue
        by_criterion = scores.setdefault((record.example_id, record.repetition), {})
        by_criterion[verdict.criterion] = ReleasedScore(verdict.score, verdict.reason)
    return scores


def read_released_log(run: ScoredRun, judge: JudgeDescription, records: Mapping[str, SampleRecord]) -> LogVerdicts:
    """Return the verdicts on a run from the log of a released judge."""
    scores = _scores_by_sample(records)
    samples = [sample for sample in run.samples if sample.record.is_finished]
    sample_scores = [scores.get(sample.name, {}) for sample in samples]
    values = {MEAN: [mean_score([score for score, _ in by_criterion.values()]) for by_criterion in sample_scores]}
    for name in judge.criteria:
        values[name] = [by_criterion[name].score if name in by_criterion else None for by_criterion in sample_scores]
    keys = run.task.breakdown_keys
    return LogVerdicts(
        scale=SCALE,
        samples=samples,
        verdicts=[_verdicts(by_criterion) for by_criterion in sample_scores],
        metrics={name: MetricValues(column, _mean) for name, column in values.items()},
        records=list(records.values()),
        breakdown_keys=[key for key in keys if all(key in sample.example.metadata for sample in samples)],
    )


def _verdicts(scores: Mapping[str, ReleasedScore]) -> tuple[SampleVerdict, ...]:
    return tuple(
        SampleVerdict(name, 0, None, str(Status.INFRA_ERROR), "", reason)
        if score is None
        else SampleVerdict(name, 0, score * SCALE, str(Status.OK), "plain", reason)
        for name, (score, reason) in scores.items()
    )


def mean_score(scores: Sequence[float | None]) -> float | None:
    """Return the mean of the existing scores, added up one by one as in the release, or None without scores."""
    present = [score for score in scores if score is not None]
    return _mean(present) if present else None


def _mean(scores: Sequence[float]) -> float:
    return sum_in_order(scores) / len(scores)
