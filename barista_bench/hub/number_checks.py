"""Check that the scores and counts of results are possible. The leaderboard uses this light module too.

A forger can edit all numbers of a file together. `publish submission` therefore computes them again from the log.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from typing import Final

from barista_bench.core.status import Status
from barista_bench.errors import DataError
from barista_bench.judging.results import MEAN, JudgedResults
from barista_bench.runs.described import MAX_REPETITIONS
from barista_bench.runs.score.results import MetricValue, Results

_ROUNDING: Final = 1e-6
_READABLE: Final = (Status.OK, Status.TRUNCATED, Status.TRUNCATED_THINKING)
"""Statuses of samples whose answer may be readable."""


def require(is_met: bool, complaint: str, remedy: str) -> None:
    """Raise a DataError unless a rule is met."""
    if not is_met:
        raise DataError(f"{complaint}. Fix: {remedy}")


def check_numbers(results: Results, where: str) -> None:
    """Refuse results whose scores, intervals, repetitions or counts cannot be.

    Raises:
        DataError: a field is invalid. The message names the first such field.
    """
    for field, complaint in _complaints(results):
        require(not complaint, f"{where}: {field}: {complaint}", "score the run again")


def check_judged_numbers(judged: JudgedResults, results: Results, where: str) -> None:
    """Check the numbers of a judge's results. `results` are the results of the judged run."""
    for field, complaint in _judged_complaints(judged, results):
        require(not complaint, f"{where}: {field}: {complaint}", "run `barista-bench judge` again")


Complaints = Iterator[tuple[str, str]]
"""Pairs of a field and its fault. The fault is empty if the field is valid."""


def _complaints(results: Results) -> Complaints:
    repetitions, dataset = results.repetitions, results.dataset
    yield "repetitions", "" if 1 <= repetitions <= MAX_REPETITIONS else f"is {repetitions}"
    within = dataset.limit is None or dataset.examples <= dataset.limit
    yield "dataset.examples", "" if dataset.examples and within else f"is {dataset.examples}, limit {dataset.limit}"
    primary = results.metrics.get(results.primary)
    lacks = f"lacks the primary metric {results.primary!r:.80}"
    yield "metrics", lacks if primary is None else _outside(primary) and f"{results.primary} {_outside(primary)}"
    yield from _coverage(results)
    for name, metric in results.metrics.items():
        yield f"metrics.{name}", _metric_complaint(metric, repetitions)


def _coverage(results: Results) -> Complaints:
    coverage, examples, repetitions = results.coverage, results.dataset.examples, results.repetitions
    statuses = coverage.statuses
    unknown = [name for name in statuses if name not in list(Status)]
    yield "coverage.statuses", f"{unknown[0]!r:.80} is none" if unknown else ""
    asked = f"{examples} examples x {repetitions} runs were to be asked"
    yield (
        "coverage.expected",
        "" if coverage.expected == examples * repetitions else f"is {coverage.expected}, but {asked}",
    )
    finished = sum(count for name, count in statuses.items() if Status(name).is_outcome)
    are_scored = coverage.scored == finished and finished > 0
    yield "coverage.scored", "" if are_scored else f"is {coverage.scored}, and statuses of answers add up to {finished}"
    total = sum(statuses.values())
    yield "coverage.statuses", "" if total <= coverage.expected else f"add up to {total} of {coverage.expected} samples"
    least, most = statuses.get(Status.OK, 0), sum(statuses.get(name, 0) for name in _READABLE)
    are_read = least <= coverage.answered <= most
    yield "coverage.answered", "" if are_read else f"is {coverage.answered}, and by statuses {least} to {most}"
    is_earned = bool(coverage.answered) or not results.metrics[results.primary].mean
    yield "coverage.answered", "" if is_earned else f"is 0, and {results.primary} is not"


def _judged_complaints(judged: JudgedResults, results: Results) -> Complaints:
    coverage, run = judged.coverage, results.coverage
    is_of_run = (coverage.expected, coverage.finished) == (run.expected, run.scored)
    yield "coverage", "" if is_of_run else f"is of other samples than the run's {run.scored} of {run.expected}"
    is_part = 0 < coverage.judged <= run.scored and coverage.answered <= run.scored
    counts = f"{coverage.judged} judged and {coverage.answered} answered of {run.scored} cannot be"
    yield "coverage", "" if is_part else counts
    for name, metric in judged.metrics.items():
        top = 1.0 if name == MEAN else judged.tops.get(name, 1.0)
        yield f"metrics.{name}", _metric_complaint(metric, judged.repetitions) or _outside(metric, top)


def _metric_complaint(metric: MetricValue, repetitions: int) -> str:
    """Return the fault of a single score. Its repetitions, mean, deviation and interval must be consistent."""
    if not 1 <= len(metric.repetitions) <= repetitions:
        return f"has values of {len(metric.repetitions)} runs out of {repetitions}"
    if not _is_close(metric.mean, statistics.fmean(metric.repetitions)):
        return f"is {metric.mean}, which is not the mean of its repetitions"
    if metric.std is not None and (
        len(metric.repetitions) < 2 or not _is_close(metric.std, statistics.stdev(metric.repetitions))
    ):
        return f"has the deviation {metric.std}, which differs from its runs' deviation"
    if (metric.low is None) != (metric.high is None):
        return f"has half an interval, {metric.low} to {metric.high}"
    if metric.low is not None and metric.high is not None:
        low, high = metric.low, metric.high
        if not low - _ROUNDING <= metric.mean <= high + _ROUNDING:
            return f"is {metric.mean}, which its interval {low} to {high} does not hold"
    return ""


def _outside(metric: MetricValue, top: float = 1.0) -> str:
    values: Sequence[float | None] = [metric.mean, *metric.repetitions, metric.low, metric.high]
    return "" if all(value is None or 0 <= value <= top for value in values) else f"lies outside 0 to {top:g}"


def _is_close(value: float, other: float) -> bool:
    return math.isclose(value, other, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
