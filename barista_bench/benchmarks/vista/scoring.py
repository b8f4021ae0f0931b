"""From samples to macro-F1 a problem set and means over sets, by the metric `sequence_matching`.

Two things are particular to a run of the benchmark. A set may be incomplete, where videos are absent: it is scored over
what is there and counted as incomplete; where all that is there has one label, standardised scores of the right answer
tie, and it is not scored. And in Minecraft's first set a video fits several descriptions: a prediction
that is one of them is right, and any other one is a mistake about the first of them. Which way the released code takes
there is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from barista_bench.benchmarks.pooling import Floats
from barista_bench.benchmarks.vista.answers import MISSING
from barista_bench.core.task import Fields, Json, Prediction, Scored
from barista_bench.metrics.sequence_matching.inputs import ProblemSet as MetricSet
from barista_bench.metrics.sequence_matching.scoring import macro_f1, mean_with_interval, score_set

READINGS = ("scores", "strict")
"""Fields of a prediction: the released reading, and the strict one."""


@dataclass(frozen=True, slots=True)
class MatchedSet:
    """One problem set of one run. `f1` is None where it cannot be scored: one video, or one label is left of it.

    Args:
        set_id: which one.
        metadata: of its first example: environment, level, type, ...
        f1: macro-F1 by the released reading.
        strict: the same by the strict reading; a video without such a reading is wrong.
        majority: macro-F1 of always answering the label that is true most often.
        videos: samples of the set.
        expected: videos of the set in the release.
        unread: videos without a readable answer.
        ties: videos with several best labels, of which the first counts.
    """

    set_id: str
    metadata: Fields
    f1: float | None
    strict: float | None
    majority: float | None
    videos: int
    expected: int
    unread: int
    ties: int

    @property
    def is_complete(self) -> bool:
        return self.videos == self.expected


def by_set(samples: Iterable[Scored]) -> dict[str, list[Scored]]:
    """Samples by problem set, both in the order in which they come."""
    found: dict[str, list[Scored]] = {}
    for sample in samples:
        found.setdefault(str(sample.example.inputs["problem_set"]), []).append(sample)
    return found


def match(samples: Sequence[Scored], standardise: str = "label") -> MatchedSet:
    """Score the samples of one problem set. By the released reading a label without a score has -0.1.

    Args:
        samples: of one set.
        standardise: how scores are made comparable, as `sequence_matching` takes it; the released rule by default.
    """
    first = samples[0].example
    truths = [true_places(sample) for sample in samples]
    expected = int(cast("int", first.metadata["set_videos"]))
    rows, strict_rows = ([_row(sample, reading) for sample in samples] for reading in READINGS)
    released, ties = _scored(rows, truths, MISSING, standardise)
    # An answer that is exactly as asked reads the same both ways; encoders' answers always do.
    alike = rows == strict_rows and None not in rows
    strict = released if alike else _scored(strict_rows, truths, "wrong", standardise)[0]
    if len(samples) < expected and len({label for truth in truths for label in truth}) < 2:
        released = strict = None  # what is right would be decided by which label stands first
    return MatchedSet(
        set_id=str(first.inputs["problem_set"]),
        metadata=first.metadata,
        f1=released,
        strict=strict,
        majority=None if released is None else majority_f1(truths),
        videos=len(samples),
        expected=expected,
        unread=sum(sample.prediction is None for sample in samples),
        ties=ties,
    )


def true_places(sample: Scored) -> tuple[int, ...]:
    """The numbers of the labels that fit a video, from 0."""
    labels = labels_of(sample.example.inputs)
    return tuple(labels.index(label) for label in cast("Sequence[str]", sample.example.target["labels"]))


def labels_of(inputs: Fields) -> list[str]:
    return list(cast("Sequence[str]", inputs["labels"]))


def scores_of(prediction: Prediction, reading: str) -> Mapping[str, float] | None:
    return cast("Mapping[str, float] | None", prediction.value[reading])


def _row(sample: Scored, reading: str) -> list[float | None] | None:
    """The scores of one video in the order of its set's labels; None for one without any."""
    found = scores_of(sample.prediction, reading) if sample.prediction else None
    return None if found is None else [found.get(label) for label in labels_of(sample.example.inputs)]


def _scored(
    rows: Sequence[list[float | None] | None],
    truths: Sequence[tuple[int, ...]],
    missing: str | float,
    standardise: str,
) -> tuple[float | None, int]:
    """(macro-F1, ties) of one set."""
    problem = MetricSet.build(rows, [truth[0] for truth in truths])
    score = score_set(problem, missing=missing, standardise=standardise)
    if any(len(truth) > 1 for truth in truths) and score.macro_f1 is not None:
        problem = MetricSet.build(rows, _aimed_at(truths, score.predictions))
        score = score_set(problem, missing=missing, standardise=standardise)
    return score.macro_f1, score.n_ties


def _aimed_at(truths: Sequence[tuple[int, ...]], predictions: Sequence[int | None]) -> list[int]:
    """Of several true labels the predicted one, else the first."""
    return [guess if guess in truth else truth[0] for truth, guess in zip(truths, predictions, strict=True)]


def majority_f1(truths: Sequence[tuple[int, ...]]) -> float:
    """Macro-F1 of answering every video of a set with the label that is true most often; of several, the lowest.

    >>> majority_f1([(0,), (1,), (1,)]), majority_f1([(0, 1), (1,)])
    (0.4, 1.0)
    """
    counts = Counter(label for truth in truths for label in truth)
    label = min(counts, key=lambda label: (-counts[label], label))
    return macro_f1(_aimed_at(truths, [label] * len(truths)), [label] * len(truths))


def figures(sets: Sequence[MatchedSet]) -> dict[str, Json]:
    """Unweighted means over sets with the released 95% interval, and what stands behind them.

    Figures that are not defined (no set can be scored; the interval of one set) are left out.
    """
    released = mean_with_interval([found.f1 for found in sets if found.f1 is not None])
    strict = mean_with_interval([found.strict for found in sets if found.strict is not None])
    majority = mean_with_interval([found.majority for found in sets if found.majority is not None])
    videos = sum(found.videos for found in sets)
    told: dict[str, Json] = {
        "macro_f1": released["mean"],
        "macro_f1_low": released["ci_low"],
        "macro_f1_high": released["ci_high"],
        "macro_f1_strict": strict["mean"],
        "majority_f1": majority["mean"],
        "coverage": 1 - sum(found.unread for found in sets) / videos if videos else None,
        "problem_sets": len(sets),
        "videos": videos,
        "unscored_problem_sets": sum(found.f1 is None for found in sets),
        "incomplete_problem_sets": sum(not found.is_complete for found in sets),
        "ties": sum(found.ties for found in sets),
    }
    return {name: value for name, value in told.items() if value is not None}


def groups(sets: Iterable[MatchedSet], key: str) -> dict[str, list[MatchedSet]]:
    """Sets by a key of their metadata, in the order of its values."""
    found: dict[Json, list[MatchedSet]] = {}
    for problem_set in sets:
        found.setdefault(problem_set.metadata[key], []).append(problem_set)
    return {str(value): found[value] for value in sorted(found, key=lambda value: (str(type(value)), value))}


def resampled(samples: Sequence[Scored], weights: Floats, standardise: str = "label") -> dict[str, Floats]:
    """Means over sets for many draws of samples: see `Task.resampled`.

    Draws take whole sets (`Task.cluster`): a set that is drawn twice counts twice, with the score that it has. Where
    draws take a part of a set's samples (models that change sides), that part is scored as a set of its own.
    """
    names = {"macro_f1": "f1", "macro_f1_strict": "strict", "majority_f1": "majority"}
    sums = {name: np.zeros((2, len(weights))) for name in names}
    places: dict[str, list[int]] = {}
    for at, sample in enumerate(samples):
        places.setdefault(str(sample.example.inputs["problem_set"]), []).append(at)
    for columns in places.values():
        own = [samples[at] for at in columns]
        for part, counts in _parts(own, weights[:, columns]):
            score = match(part, standardise)
            for name, attribute in names.items():
                value = getattr(score, attribute)
                if value is not None:
                    sums[name] += np.array([[value], [1.0]]) * counts
    with np.errstate(invalid="ignore"):
        return {name: total / count for name, (total, count) in sums.items()}


def _parts(samples: Sequence[Scored], weights: Floats) -> Iterable[tuple[Sequence[Scored], Floats]]:
    """(samples, (D,) how often each draw counts them): the parts of a set that draws take together.

    Args:
        samples: (R,) of one set.
        weights: (D, R).
    """
    if (weights == weights[:, :1]).all():
        return [(samples, weights[:, 0])]
    patterns, draws = np.unique(weights, axis=0, return_inverse=True)
    found = []
    for at, pattern in enumerate(patterns):
        if not pattern.any():
            continue
        drawn = (draws.reshape(-1) == at).astype(np.float64)
        times = {int(count) for count in pattern if count}
        # Taken alike, a part counts as often as it is taken; taken unevenly, its samples repeat within one set.
        repeats = pattern.astype(int) if len(times) > 1 else (pattern > 0).astype(int)
        part = [sample for sample, count in zip(samples, repeats, strict=True) for _ in range(count)]
        found.append((part, drawn * (times.pop() if len(times) == 1 else 1)))
    return found
