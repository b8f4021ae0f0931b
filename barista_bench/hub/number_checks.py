"""Check the scores, counts and costs of results for contradictions. The leaderboard uses this light module too."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from barista_bench.core.status import Status
from barista_bench.errors import DataError
from barista_bench.judging.results import MEAN, CategoryMetrics, JudgedResults
from barista_bench.runs.described import MAX_REPETITIONS
from barista_bench.runs.score.costs import COST_NAMES, Cost
from barista_bench.runs.score.results import MetricValue, Results

_ROUNDING: Final = 1e-6
_READABLE: Final = (Status.OK, Status.TRUNCATED, Status.TRUNCATED_THINKING)
"""Statuses of samples whose answer may be readable."""


def require(is_met: bool, complaint: str, remedy: str) -> None:
    """Raise a DataError unless a rule is met."""
    if not is_met:
        raise DataError(f"{complaint}. Fix: {remedy}")


def check_numbers(results: Results, where: str) -> None:
    """Refuse results whose scores, intervals, repetitions, counts or costs contradict each other.

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
    repetitions, dataset, timing = results.repetitions, results.dataset, results.timing
    yield "repetitions", "" if 1 <= repetitions <= MAX_REPETITIONS else f"is {repetitions}"
    within = dataset.limit is None or dataset.examples <= dataset.limit
    yield "dataset.examples", "" if dataset.examples and within else f"is {dataset.examples}, limit {dataset.limit}"
    primary = results.metrics.get(results.primary)
    lacks = f"lacks the primary metric {results.primary!r:.80}"
    yield "metrics", lacks if primary is None else _outside(primary) and f"{results.primary} {_outside(primary)}"
    yield from _coverage(results)
    by_detail = {
        name: [detail.get(name) for detail in results.details]
        for name, value in (results.details[0] if results.details else {}).items()
        if isinstance(value, float) and all(name in detail for detail in results.details)
    }
    yield "metrics", "" if by_detail.keys() == results.metrics.keys() else "differ from those of details"
    for name, metric in results.metrics.items():
        yield f"metrics.{name}", _metric_complaint(metric, repetitions)
        yield (
            f"metrics.{name}.repetitions",
            "" if metric.repetitions == by_detail[name] else "differ from those of details",
        )
    for key, groups in results.breakdowns.items():
        for value, group in groups.items():
            is_part = 1 <= group.examples <= dataset.examples
            yield f"breakdowns.{key}.{value}.examples", "" if is_part else f"is {group.examples} of {dataset.examples}"
            yield f"breakdowns.{key}.{value}", _metric_complaint(group.metric, repetitions) or _outside(group.metric)
    if (fit := results.box_fit) is not None:
        is_fraction = max(fit.mean_best_iou, fit.better_iou or 0.0) <= 1 + _ROUNDING
        are_parts = max(fit.without_area, fit.outside) <= fit.boxes and fit.answers <= results.coverage.answered
        yield "box_fit", "" if is_fraction and are_parts else "has parts that are larger than the total"
    yield "dataset.part", "is a part of the set, which has no rank" if dataset.part else ""
    shots = results.model.settings.get("shots")
    yield "model.settings.shots", "" if shots is None else f"are {shots!r:.20}: no leaderboard takes worked examples"
    yield "reading", "is of a log read again after it was scored" if results.reading else ""
    if (letters := results.letters) is not None:
        is_part = letters.total == sum(letters.right.values()) <= results.coverage.answered
        yield "letters", "" if is_part else "do not add up"
    yield from _costs(timing.costs, sum(results.coverage.statuses.values()))
    yield from _tokens(timing.costs, timing.input_tokens, timing.output_tokens)


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
    noted = sum(results.notes.values())
    yield "notes", "" if noted <= finished else f"add up to {noted} of {finished} answers"
    is_earned = bool(coverage.answered) or not results.metrics[results.primary].mean
    yield "coverage.answered", "" if is_earned else f"is 0, and {results.primary} is not"


def _judged_complaints(judged: JudgedResults, results: Results) -> Complaints:
    coverage, verdicts, scoring = judged.coverage, judged.coverage.verdicts, judged.scoring
    expected, finished = results.coverage.expected, results.coverage.scored
    yield "coverage.expected", "" if coverage.expected == expected else f"is {coverage.expected} of {expected} samples"
    yield "coverage.finished", "" if coverage.finished == finished else f"is {coverage.finished}, of a run {finished}"
    is_part = 0 < coverage.judged <= finished and coverage.answered <= finished
    counts = f"{coverage.judged} judged and {coverage.answered} answered of {finished}"
    yield "coverage", "" if is_part else f"{counts} cannot be"
    forms = len(judged.rubric.criteria) * judged.verdicts_per_answer
    asked = {"g-eval": coverage.answered * forms, "reasoning": finished}.get(judged.method)
    given = sum(verdicts.values())
    is_asked = given <= finished * forms if asked is None else given == asked
    yield "coverage.verdicts", "" if judged.verdicts_per_answer and is_asked else f"add up to {given}"
    usable = sum(count for name, count in scoring.items() if name != "inferred")
    is_usable = usable == verdicts.get("ok", 0) and scoring.get("inferred", 0) <= scoring.get("weighted", 0)
    yield "scoring", "" if is_usable else f"adds up to {usable}, and {verdicts.get('ok', 0)} verdicts are usable"
    for name, metric in judged.metrics.items():
        top = 1.0 if name == MEAN else judged.tops.get(name, 1.0)
        yield f"metrics.{name}", _metric_complaint(metric, judged.repetitions) or _outside(metric, top)
    yield from _categories("per_category", judged.per_category, judged)
    for key, groups in judged.breakdowns.items():
        yield from _categories(f"breakdowns.{key}", groups, judged)
    yield from _costs(judged.costs, expected * forms)
    yield from _tokens(judged.costs, judged.input_tokens, judged.output_tokens)


def _categories(field: str, groups: Mapping[str, CategoryMetrics], judged: JudgedResults) -> Complaints:
    for name, total in (("judged", judged.coverage.judged), ("expected", judged.coverage.finished)):
        added = sum(getattr(group, name) for group in groups.values())
        yield f"{field}.{name}", "" if added == total else f"adds up to {added} of {total}"
    for value, group in groups.items():
        is_part = group.judged <= group.expected and 1 <= group.examples <= judged.dataset.examples
        yield f"{field}.{value}", "" if is_part else f"{group.judged} of {group.expected} cannot be"
        for name, metric in group.metrics.items():
            yield f"{field}.{value}.metrics.{name}", _metric_complaint(metric, judged.repetitions)


def _costs(costs: Mapping[str, Cost], samples: int) -> Complaints:
    for name, cost in costs.items():
        field = f"costs.{name}"
        yield field, "" if name in COST_NAMES else "is no cost"
        yield f"{field}.samples", "" if 1 <= cost.samples <= samples else f"is {cost.samples} of {samples}"
        is_mean = math.isclose(cost.mean, cost.total / cost.samples, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
        yield f"{field}.mean", "" if is_mean else f"is {cost.mean}, not {cost.total} / {cost.samples}"


def _tokens(costs: Mapping[str, Cost], input_tokens: int, output_tokens: int) -> Complaints:
    for name, total in (("input_tokens", input_tokens), ("output_tokens", output_tokens)):
        of_costs = costs[name].total if name in costs else 0
        yield name, "" if total == of_costs else f"is {total}, and costs.{name}.total {of_costs}"


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
