"""Score several answers to one question: the best of k, the majority's answer, and the answer that a judge prefers.

All values come from logged repetitions. `best of k` is the mean over all ways to take k of the n repetitions without
replacement. This estimate is unbiased. If scores are 0 or 1, it is pass@k (Chen et al., arXiv 2107.03374).
"""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import comb

import numpy as np

from barista_bench.core.guarding import guard, unit_of
from barista_bench.core.intervals import SCORE, Interval, ratio_interval
from barista_bench.errors import TaskError
from barista_bench.runs.score.samples import ScoredSample
from barista_bench.runs.score.scoring import ScoredRun

MOST_COLUMNS = 5
JudgeScores = Mapping[tuple[str, int], float]
"""Maps (example id, repetition) to a judge's score.

An answer without a score is never preferred to an answer with a score.
"""


@dataclass(frozen=True, slots=True)
class RepeatedScore:
    """The mean sample score of one way to use k of n repetitions, with its interval over resampling units."""

    way: str
    k: int
    mean: float
    interval: Interval | None
    examples: int


def best_of(scores: Sequence[float], by: Sequence[float], k: int) -> float:
    """Return the mean score of the repetition with the highest value in `by`, among k taken without replacement.

    If several repetitions are highest, each is taken equally often.

    >>> best_of([1, 0, 0, 0], [1, 0, 0, 0], 2), best_of([1, 0], [0, 5], 2), best_of([1, 0], [3, 3], 2)
    (0.5, 0.0, 0.5)
    """
    groups: dict[float, list[float]] = defaultdict(list)
    for score, value in zip(scores, by, strict=True):
        groups[value].append(score)
    total, below = 0.0, 0
    for value in sorted(groups):
        count = len(groups[value])
        chance = (comb(below + count, k) - comb(below, k)) / comb(len(scores), k)
        total += chance * statistics.fmean(groups[value])
        below += count
    return total


def repeated_scores(run: ScoredRun, judges: Mapping[str, JudgeScores] | None = None) -> list[RepeatedScore]:
    """Return the scores of all ways to use the repetitions of a run. Empty if there is only one repetition.

    Only examples with all repetitions count. `judges` maps each judge's label to its scores.

    Raises TaskError if the task's code fails.
    """
    groups = [group for group in _by_example(run) if len(group) == run.results.repetitions]
    if run.results.repetitions < 2 or not groups:
        return []
    name, units = run.task.sample_score, [unit_of(run.task, group[0].example) for group in groups]
    scores = [[sample.scores[name] for sample in group] for group in groups]

    def row(way: str, k: int, values: Sequence[float]) -> RepeatedScore:
        is_bounded = all(0 <= value <= 1 for value in values)
        part, whole = np.array(values), np.ones(len(values))
        ends = ratio_interval(
            part, whole, repetitions=[0] * len(values), units=units, bounds=SCORE if is_bounded else None
        )
        return RepeatedScore(way, k, statistics.fmean(values), ends, len(values))

    sizes = [
        *[k for k in (1, 2, 4, 8, 16, 32, 64) if k < run.results.repetitions][: MOST_COLUMNS - 1],
        run.results.repetitions,
    ]
    rows = [row("best of k (pass@k)", k, [best_of(each, each, k) for each in scores]) for k in sizes]
    votes = [_majority(run, group) for group in groups]
    rows.append(row("majority", run.results.repetitions, votes))
    for label, judged in (judges or {}).items():
        order = [[judged.get(sample.name, -np.inf) for sample in group] for group in groups]
        pairs = list(zip(scores, order, strict=True))
        rows += [row(f"best of k by {label}", k, [best_of(of, by, k) for of, by in pairs]) for k in sizes[1:]]
    return rows


def _by_example(run: ScoredRun) -> Iterator[list[ScoredSample]]:
    groups: dict[str, list[ScoredSample]] = defaultdict(list)
    for sample in run.samples:
        if sample.is_counted and run.task.sample_score in sample.scores:
            groups[sample.example.example_id].append(sample)
    yield from groups.values()


def _majority(run: ScoredRun, group: Sequence[ScoredSample]) -> float:
    """Return the score of the most frequent answer, or the mean score if several answers are equally frequent.

    Answers are equal if they name the same choices or are read as the same value. Unreadable answers count only if all
    answers are unreadable.
    """
    scores: dict[str, list[float]] = defaultdict(list)
    for sample in group:
        if sample.prediction is not None:
            answer: object = sample.prediction.value
            with suppress(TaskError), guard(run.task, "choices", sample.example):  # a task may not define choices
                if run.task.choices(sample.example):
                    answer = sorted(run.task.answered_choices(sample.prediction))
            scores[json.dumps(answer, sort_keys=True)].append(sample.scores[run.task.sample_score])
    if not scores:
        return statistics.fmean(sample.scores[run.task.sample_score] for sample in group)
    counts = Counter({answer: len(values) for answer, values in scores.items()})
    most = max(counts.values())
    return statistics.fmean(statistics.fmean(scores[answer]) for answer, count in counts.items() if count == most)
