"""Compute scores from a judge's log. Replies are parsed again, and the judge is not asked.

Scores leave missing and unusable verdicts out. Such verdicts lower the coverage.

With G-Eval, a sample's score on a criterion is the mean of its verdicts, and `mean` is the mean over criteria. For
reasoning (EgoCoT-Bench, arXiv 2605.19559, section 3.2.4), R is the mean score of all rationales, of right and wrong
answers alike. A missing rationale scores 0. SCR is the fraction of right answers whose rationale scores 2 or less. The
score of a group is computed over all its samples together.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from barista_bench.core.guarding import note_fault
from barista_bench.core.status import Status
from barista_bench.errors import TaskError
from barista_bench.judging.answers import REASONING, AnsweredRun, RunAnswers
from barista_bench.judging.judge_folder import VERDICTS_FILE, JudgeDescription, read_judge, verdict_keys
from barista_bench.judging.judged_run import (
    BY_RULE,
    MISSING,
    JudgedRun,
    LogVerdicts,
    MetricValues,
    SampleVerdict,
    Verdicts,
    raw_scores,
)
from barista_bench.judging.released_verdicts import METHOD as RELEASED, read_released_log
from barista_bench.judging.results import MEAN
from barista_bench.judging.verdicts import GEVAL_FORM, ReplyForm, read_verdict, splits_ten, weighted_score
from barista_bench.metrics.judge_score.egocot import spurious_correct_rate
from barista_bench.metrics.judge_score.scoring import judge_score
from barista_bench.models import TokenLogprob
from barista_bench.runs.ask.replies import Unusable
from barista_bench.runs.log.sample_log import SampleRecord, counting_records
from barista_bench.runs.run_folder import judge_folders
from barista_bench.runs.score.results import Results
from barista_bench.runs.score.scoring import ScoredRun, score
from barista_bench.runs.score.stopping import read_decision

_NO_REASONING = SampleVerdict(REASONING, 0, 0.0, str(Status.OK), BY_RULE, "no reasoning was given")


class ScoreJob(NamedTuple):
    """A run folder to score: the arguments of `score`."""

    folder: Path
    data: str | None
    root: Path | None
    options: Mapping[str, object] | None


def score_with_judges(job: ScoreJob) -> tuple[Results | None, tuple[str, ...]]:
    """Score a run folder and its judges. With other options, score only the run. Several processes call this function.

    The results are None if the task cannot score the run. The second value lists errors of tasks.
    """
    try:
        scored = score(job.folder, data=job.data, root=job.root, options=job.options)
    except TaskError as error:  # score the other runs anyway
        return None, (str(error),)
    for judge in [] if job.options else judge_folders(job.folder):
        try:
            score_judged(scored, judge)
        except TaskError as error:
            note_fault(scored.task, str(error))
    return scored.results, tuple(scored.task.faults)


def score_judged(run: ScoredRun, folder: str | Path) -> JudgedRun:
    """Return the scores of one judge on a run, and write `results.json` and `scores.jsonl` to the judge's folder.

    Raises DataError if the folder is not a judge's folder.
    """
    judged_run = read_judged_run(run, folder)
    judged_run.write()
    return judged_run


def read_judged_run(run: ScoredRun, folder: str | Path) -> JudgedRun:
    """Return the scores of one judge on a run, as `score_judged` does, without writing files."""
    folder = Path(folder)
    description = read_judge(folder)
    records = counting_records(folder / VERDICTS_FILE)
    if description.identity["method"] == RELEASED:
        log_verdicts = read_released_log(run, description, records)
    else:
        log_verdicts = read_replies(run, description, records)
    judged_run = JudgedRun.of(run, folder, description, log_verdicts)
    if judged_run.results.coverage.verdicts[MISSING] and (decision := read_decision(folder)) is not None:
        without = {"metrics": {}, "per_category": {}, "breakdowns": {}, "stopped": decision}
        return replace(judged_run, results=judged_run.results.model_copy(update=without))
    return judged_run


def all_judged(run: ScoredRun) -> list[JudgedRun]:
    """Return the scores of every judge of a run without writing files. Judges that stopped early are left out."""
    return [judged for judged in read_judges(run) if judged.results.stopped is None]


def read_judges(run: ScoredRun) -> list[JudgedRun]:
    """Return every judge of a run, including those that stopped early, without writing files."""
    return [read_judged_run(run, folder) for folder in judge_folders(run.folder)]


def read_replies(run: AnsweredRun, description: JudgeDescription, records: Mapping[str, SampleRecord]) -> LogVerdicts:
    """Return the verdicts in a judge's replies, for G-Eval or for reasoning. `records` maps keys to replies."""
    answers, keys, form = RunAnswers.of(run), verdict_keys(description), description.form
    criteria = description.criteria if form is GEVAL_FORM else [REASONING]
    ten_is_split = splits_ten(tokens for record in records.values() if (tokens := _token_logprobs(record)))
    verdicts: dict[str, Verdicts] = {}
    counting: list[SampleRecord] = []
    for answer in answers.distinct:
        repetitions = [(name, *repetition) for name in criteria for repetition in keys(answer.item, name).items()]
        verdicts[answer.item] = tuple(
            _verdict(name, repetition, records.get(key), form, ten_is_split=ten_is_split)
            for name, repetition, key in repetitions
        )
        counting += [records[key] for _, _, key in repetitions if key in records]
    unanswered = () if form is GEVAL_FORM else (_NO_REASONING,)
    by_sample = [verdicts[answer.item] if answer else unanswered for answer in answers.answers]
    log_verdicts = partial(
        LogVerdicts, scale=float(form.top), samples=answers.samples, verdicts=by_sample, records=counting
    )
    if form is GEVAL_FORM:
        metrics = _geval_metrics(by_sample, criteria, on_all_criteria=run.task.follows_paper)
        return log_verdicts(metrics=metrics, sd_of_verdicts=_sd_of_verdicts(by_sample, criteria))
    is_right = [sample.scores[run.task.sample_score] == 1 for sample in answers.samples]
    return log_verdicts(
        metrics=_reasoning_metrics([verdict.score for (verdict,) in by_sample], is_right),
        tops={"r": float(form.top)},
        breakdown_keys=run.task.breakdown_keys,
    )


def _verdict(
    criterion: str, repetition: int, record: SampleRecord | None, form: ReplyForm, *, ten_is_split: bool
) -> SampleVerdict:
    if record is None:
        return SampleVerdict(criterion, repetition, None, MISSING, "", "not asked yet")
    if record.status is not Status.OK or record.text is None:
        return SampleVerdict(criterion, repetition, None, str(record.status), "", record.error or "")
    reply = read_verdict(record.text, form)
    if isinstance(reply, Unusable):
        return SampleVerdict(criterion, repetition, None, str(Status.PARSE_ERROR), "", reply.why)
    tokens = _token_logprobs(record) if form is GEVAL_FORM else None
    weighted = weighted_score(tokens, reply.score, ten_is_split=ten_is_split)
    if weighted is None:
        return SampleVerdict(criterion, repetition, float(reply.score), str(Status.OK), "plain", reply.reason)
    scoring = "inferred" if weighted.inferred else "weighted"
    return SampleVerdict(criterion, repetition, weighted.score, str(Status.OK), scoring, reply.reason)


def _token_logprobs(record: SampleRecord) -> list[TokenLogprob] | None:
    """Return logged tokens in the form of a completion. None in the log stands for minus infinity."""
    if record.logprobs is None:
        return None
    return [
        TokenLogprob(token.token, _number(token.logprob), tuple((text, _number(value)) for text, value in token.top))
        for token in record.logprobs
    ]


def _number(logprob: float | None) -> float:
    return float("-inf") if logprob is None else logprob


def _geval_metrics(
    verdicts: Sequence[Verdicts], criteria: Sequence[str], *, on_all_criteria: bool
) -> dict[str, MetricValues]:
    """Return `mean` and the score on each criterion, from 0 to 1.

    The paper averages over samples with a verdict on all criteria. The release averages over all criteria with a
    verdict.
    """
    fewest = len(criteria) if on_all_criteria else 1
    samples = [raw_scores(of_sample) for of_sample in verdicts]
    means = [statistics.fmean(scores.values()) if len(scores) >= fewest else None for scores in samples]
    tenth = partial(_fraction, top=GEVAL_FORM.top)
    return {
        MEAN: MetricValues(means, tenth),
        **{name: MetricValues([scores.get(name) for scores in samples], tenth) for name in criteria},
    }


def _reasoning_metrics(scores: Sequence[float | None], is_right: Sequence[bool]) -> dict[str, MetricValues]:
    """Return `r` from 0 to 5, the same score from 0 to 1 as `mean` and `reasoning`, and `scr`."""
    fraction = MetricValues(scores, partial(_fraction, top=5))
    of_right = [score if right else None for score, right in zip(scores, is_right, strict=True)]
    return {
        MEAN: fraction,
        REASONING: fraction,
        "r": MetricValues(scores, statistics.fmean),
        "scr": MetricValues(of_right, _spurious_fraction),
    }


def _fraction(scores: Sequence[float], *, top: int) -> float:
    return statistics.fmean(scores) / top


def _spurious_fraction(scores: Sequence[float]) -> float:
    percentage = spurious_correct_rate(scores, [True] * len(scores))
    assert percentage is not None  # because there are scores
    return percentage / 100


def _sd_of_verdicts(verdicts: Sequence[Verdicts], criteria: Sequence[str]) -> dict[str, float | None]:
    """Return the spread of verdicts on the same answer. The metric `judge_score` defines this spread."""
    rows = [
        {name: [verdict.score for verdict in sample_verdicts if verdict.criterion == name] for name in criteria}
        if sample_verdicts
        else None
        for sample_verdicts in verdicts
    ]
    score = judge_score(rows, criteria=criteria, scale=GEVAL_FORM.top)
    return {MEAN: score["sd_of_verdicts"]} | {name: score["per_criterion"][name]["sd_of_verdicts"] for name in criteria}
