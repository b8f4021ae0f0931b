"""From a judge's log to R and SCR (EgoCoT-Bench, section 3.2.4). Replies are read anew; nobody is asked.

R is the mean score of all rationales, of right and wrong answers alike; a missing one scores 0. SCR is the share of
right answers whose rationale scores 2 or less. A verdict that is missing or unusable is in neither, and lowers the
coverage. Groups pool their samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barista_bench.core.task import Status
from barista_bench.judging.judged_run import MISSING, Judgement, SampleVerdict
from barista_bench.judging.reasoning import ReasonedSample, rationales_of, reasoned_samples
from barista_bench.judging.results import MEAN
from barista_bench.judging.rubric_judge import ReasoningVerdict, reasoning_questions, reasoning_verdicts
from barista_bench.judging.session import JudgeDescription
from barista_bench.judging.verdicts import REASONING_FORM
from barista_bench.metrics.judge_score.egocot import SPURIOUS_AT, egocot_reasoning
from barista_bench.models import GenerationConfig
from barista_bench.runs.log.sample_log import SampleRecord
from barista_bench.runs.score.scoring import ScoredRun

CRITERION = "reasoning"
SCALE = float(REASONING_FORM.top)


class _Row(NamedTuple):
    """One sample as figures are made of it; `score` is None without a usable verdict."""

    score: float | None
    right: bool
    empty: bool


def score_reasons(run: ScoredRun, described: JudgeDescription, records: Mapping[str, SampleRecord]) -> Judgement:
    """What a judge of reasons makes of its log."""
    samples = reasoned_samples(run)
    found, used = _verdicts(samples, described, records)
    verdicts = [found[one.name] for one in samples]
    right = run.task.sample_score
    rows = [
        _Row(verdict.score, one.sample.scores[right] == 1, one.is_empty)
        for one, verdict in zip(samples, verdicts, strict=True)
    ]
    scoring = Counter(verdict.scoring for verdict in verdicts)
    return Judgement(
        scale=SCALE,
        tops={"r": SCALE},
        samples=[one.sample for one in samples],
        verdicts=[(verdict,) for verdict in verdicts],
        answered=sum(not one.is_empty for one in samples),
        values=_values(rows),
        figures=lambda places: _figures([rows[place] for place in places]),
        used=used,
        scoring={"weighted": 0, "inferred": 0, "plain": scoring["plain"], "rule": scoring["rule"]},
        sd_draws={MEAN: None, CRITERION: None},
        breakdown_keys=run.task.breakdown_keys,
    )


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


def _figures(rows: Sequence[_Row]) -> dict[str, float | None]:
    """`r` from 0 to 5, the same as `mean` and `reasoning` from 0 to 1, and `scr`."""
    found = egocot_reasoning(
        [row.score for row in rows], [row.right for row in rows], empty_reasoning=[row.empty for row in rows]
    )
    r, scr = found["r"], found["scr"]
    share = None if r is None else r / SCALE
    return {MEAN: share, CRITERION: share, "r": r, "scr": None if scr is None else scr / 100}


def _values(rows: Sequence[_Row]) -> dict[str, list[float | None]]:
    """What each sample has in the figures: its score, and for `scr` whether that is low, of right answers alone."""
    shares = [None if row.score is None else row.score / SCALE for row in rows]
    spurious = [float(row.score <= SPURIOUS_AT) if row.right and row.score is not None else None for row in rows]
    return {MEAN: shares, CRITERION: shares, "r": [row.score for row in rows], "scr": spurious}
