"""Scores samples by macro-F1 of each problem set and by means over sets, with the metric `sequence_matching`.

Two points are special to a run of the benchmark. First, a set is incomplete if videos are missing. It is scored over
the available videos and counted as incomplete. If all available videos have the same label, the standardised scores of
the right answer tie, and the set is not scored. Second, a video of Minecraft's first set may fit several descriptions.
A prediction of any of these is right. Any other prediction is a mistake about the first fitting description. The rule
of the released code for this case is not known.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from barista_bench.benchmarks.vista.columns import (
    MISSING_SCORE,
    LabelScores,
    MatchingInputs,
    MatchingMetadata,
    MatchingTarget,
)
from barista_bench.core.example import Json, Scored
from barista_bench.core.statistics import Floats, Metrics, Row, SampleStatistics, Sums, SumStatistics, fraction
from barista_bench.metrics.sequence_matching.inputs import LabelledScores
from barista_bench.metrics.sequence_matching.scoring import macro_f1, mean_with_interval, score_set

GROUPED_BY = ("environment", "level", "type")
LabelRow = list[float | None]
"""A score for each label of a set, in the set's order of labels; None for a label without a score."""


class AnsweredVideo(NamedTuple):
    """One sample: the indices of the fitting labels, and the scores of the released and of the strict reading.

    A reading without scores is None. `top1` is the share of right descriptions among those with the highest score.
    """

    inputs: MatchingInputs
    metadata: MatchingMetadata
    reference: tuple[int, ...]
    scores: LabelRow | None
    strict: LabelRow | None
    top1: float

    @classmethod
    def of(cls, sample: Scored) -> AnsweredVideo:
        inputs, labels = MatchingInputs.of(sample.example), MatchingTarget.of(sample.example).labels
        metadata = MatchingMetadata.of(sample.example)
        reference = tuple(inputs.labels.index(label) for label in labels)
        if sample.prediction is None:
            return cls(inputs, metadata, reference, None, None, 0.0)
        answer = LabelScores.read(sample.prediction.value)
        scores = [answer.scores.get(label) for label in inputs.labels]
        strict = None if answer.strict is None else [answer.strict.get(label) for label in inputs.labels]
        top1 = len(set(labels) & set(answer.best)) / len(answer.best)
        return cls(inputs, metadata, reference, scores, strict, top1)


@dataclass(frozen=True, slots=True)
class MatchedSet:
    """One problem set of one run.

    `f1` is macro-F1 of the released reading. It is None if the set cannot be scored, because only one video or only one
    label remains. `strict` is macro-F1 of the strict reading, where a video without strict scores is wrong. `majority`
    is macro-F1 of always answering the most frequent right label. `unread` counts videos without a readable answer.
    `ties` counts videos with several best labels. In this case the first label counts.
    """

    set_id: str
    metadata: MatchingMetadata
    f1: float | None
    strict: float | None
    majority: float | None
    videos: int
    unread: int
    ties: int

    @property
    def is_complete(self) -> bool:
        return self.videos == self.metadata.set_videos


class MatchedSets(SampleStatistics):
    """Means over the problem sets of a run, and over the run's samples. `sets` are in order of appearance.

    Args:
        videos: (S,) the samples, in any order.
        standardise: how scores are made comparable (see `sequence_matching`). The default is the released rule.
    """

    def __init__(self, videos: Sequence[AnsweredVideo], standardise: str = "label") -> None:
        self._videos, self._standardise = videos, standardise
        self._positions: dict[str, list[int]] = defaultdict(list)
        for index, video in enumerate(videos):
            self._positions[video.inputs.problem_set].append(index)
        self.sets = [
            match_set([videos[index] for index in positions], standardise) for positions in self._positions.values()
        ]
        rows: list[Row] = [
            {"top1": v.top1, "strict_format": float(v.strict is not None), "failed": float(v.scores is None)}
            for v in videos
        ]
        self._means = SumStatistics(rows, _means, sample_scores={name: name for name in ("top1", "strict_format")})

    @classmethod
    def of(cls, samples: Iterable[Scored], standardise: str = "label") -> MatchedSets:
        return cls(list(map(AnsweredVideo.of, samples)), standardise)

    @property
    def size(self) -> int:
        return len(self._videos)

    def subset(self, samples: Sequence[int]) -> MatchedSets:
        return MatchedSets([self._videos[index] for index in samples], self._standardise)

    def scores(self) -> dict[str, Floats]:
        """Return `top1` of each sample, and whether the sample's answer can be read strictly."""
        return self._means.scores()

    def compute_metrics(self, weights: Floats) -> Metrics:
        """Return `macro_f1` of the released reading, the strict reading and the majority baseline, and sample means.

        Resamples take complete sets (`Task.resampling_unit`). A set that is taken twice counts twice, with the same
        score. If a resample takes only a part of a set's samples (models that change sides), that part is scored as a
        separate set.
        """
        names = {"macro_f1": "f1", "macro_f1_strict": "strict", "majority_f1": "majority"}
        if len(weights) == 1 and (weights == 1).all():  # the same exact sum as in the metric
            means = {name: _mean(getattr(each, attribute) for each in self.sets) for name, attribute in names.items()}
            exact = {name: np.array([np.nan if value is None else value]) for name, value in means.items()}
            return {**exact, **self._means.compute_metrics(weights)}
        sums = {name: np.zeros((2, len(weights))) for name in names}
        for matched, positions in zip(self.sets, self._positions.values(), strict=True):
            for part, counts in self._parts(matched, positions, weights[:, positions]):
                for name, attribute in names.items():
                    value = getattr(part, attribute)
                    if value is not None:
                        sums[name] += np.array([[value], [1.0]]) * counts
        means_of_resamples = {name: fraction(total, count) for name, (total, count) in sums.items()}
        return {**means_of_resamples, **self._means.compute_metrics(weights)}

    def tables(self) -> dict[str, Any]:
        """Return the paper's interval over sets and counts, for all sets and by environment, level and type."""
        if not self.sets:
            return {}
        overall = {name: value for name, value in set_metrics(self.sets).items() if name != "coverage"}
        by_group: dict[str, dict[str, Json]] = {f"per_{key}": {} for key in GROUPED_BY}
        for key in GROUPED_BY:
            for value in sorted({getattr(each.metadata, key) for each in self.sets}):
                group = [each for each in self.sets if getattr(each.metadata, key) == value]
                by_group[f"per_{key}"][str(value)] = set_metrics(group)
        return {**overall, **by_group}

    def _parts(
        self, matched: MatchedSet, positions: Sequence[int], weights: Floats
    ) -> Iterator[tuple[MatchedSet, Floats]]:
        """Yield the parts of a set that resamples take together, as (scored part, (D,) number of times it is taken).

        `positions` (R,) index the set's samples. `weights` are (D, R).
        """
        if (weights == weights[:, :1]).all():
            yield matched, weights[:, 0]
            return
        patterns, pattern_of_resample = np.unique(weights, axis=0, return_inverse=True)
        for index, pattern in enumerate(patterns):
            if not pattern.any():
                continue
            takes_pattern = (pattern_of_resample.reshape(-1) == index).astype(np.float64)
            counts = {int(count) for count in pattern if count}
            # If all samples of a part are taken equally often, the part counts that often. Otherwise they repeat within
            # one set.
            repeats = pattern.astype(int) if len(counts) > 1 else (pattern > 0).astype(int)
            part = [self._videos[sample] for sample in np.repeat(positions, repeats)]
            yield (match_set(part, self._standardise), takes_pattern * (counts.pop() if len(counts) == 1 else 1))


def match_set(videos: Sequence[AnsweredVideo], standardise: str = "label") -> MatchedSet:
    """Score the samples of one problem set. In the released reading, a label without a score has -0.1."""
    first, references = videos[0], [video.reference for video in videos]
    scores, strict_scores = [video.scores for video in videos], [video.strict for video in videos]
    f1, ties = _set_score(scores, references, MISSING_SCORE, standardise)
    # An answer in exactly the requested format has the same scores in both readings. This always holds for encoders.
    reads_same = scores == strict_scores and None not in scores
    strict = f1 if reads_same else _set_score(strict_scores, references, "wrong", standardise)[0]
    if len(videos) < first.metadata.set_videos and len({label for reference in references for label in reference}) < 2:
        f1 = strict = None  # the order of labels would decide
    return MatchedSet(
        set_id=first.inputs.problem_set,
        metadata=first.metadata,
        f1=f1,
        strict=strict,
        majority=None if f1 is None else majority_f1(references),
        videos=len(videos),
        unread=scores.count(None),
        ties=ties,
    )


def _set_score(
    rows: Sequence[LabelRow | None], references: Sequence[tuple[int, ...]], missing: str | float, standardise: str
) -> tuple[float | None, int]:
    """Return macro-F1 and the number of ties of one set."""
    problem = LabelledScores.build(rows, [reference[0] for reference in references])
    score = score_set(problem, missing=missing, standardise=standardise)
    if any(len(reference) > 1 for reference in references) and score.macro_f1 is not None:
        problem = LabelledScores.build(rows, _predicted_or_first(references, score.predictions))
        score = score_set(problem, missing=missing, standardise=standardise)
    return score.macro_f1, score.n_ties


def _predicted_or_first(references: Sequence[tuple[int, ...]], predictions: Sequence[int | None]) -> list[int]:
    """Return the true label of each video. If several fit, it is the predicted label if that fits, else the first."""
    return [
        guess if guess in reference else reference[0] for reference, guess in zip(references, predictions, strict=True)
    ]


def majority_f1(references: Sequence[tuple[int, ...]]) -> float:
    """Return macro-F1 of answering every video with the most frequent right label. At a tie, the lowest label wins.

    >>> majority_f1([(0,), (1,), (1,)]), majority_f1([(0, 1), (1,)])
    (0.4, 1.0)
    """
    counts = Counter(label for reference in references for label in reference)
    label = min(counts, key=lambda label: (-counts[label], label))
    return macro_f1(_predicted_or_first(references, [label] * len(references)), [label] * len(references))


def set_metrics(sets: Sequence[MatchedSet]) -> dict[str, Json]:
    """Return unweighted means over sets with the released 95% interval, and counts.

    Undefined scores are left out: the mean if no set can be scored, and the interval of a single set.
    """
    interval = mean_with_interval([each.f1 for each in sets if each.f1 is not None])
    videos = sum(each.videos for each in sets)
    metrics: dict[str, Json] = {
        "macro_f1": interval["mean"],
        "macro_f1_low": interval["ci_low"],
        "macro_f1_high": interval["ci_high"],
        "macro_f1_strict": _mean(each.strict for each in sets),
        "majority_f1": _mean(each.majority for each in sets),
        "coverage": 1 - sum(each.unread for each in sets) / videos if videos else None,
        "problem_sets": len(sets),
        "videos": videos,
        "unscored_problem_sets": sum(each.f1 is None for each in sets),
        "incomplete_problem_sets": sum(not each.is_complete for each in sets),
        "ties": sum(each.ties for each in sets),
    }
    return {name: value for name, value in metrics.items() if value is not None}


def _mean(values: Iterable[float | None]) -> float | None:
    """Return the mean over the sets that have a value."""
    return mean_with_interval([value for value in values if value is not None])["mean"]


def _means(sums: Sums) -> Metrics:
    means = {name: fraction(sums[name], sums["n"]) for name in ("top1", "strict_format")}
    return {**means, "coverage": 1 - fraction(sums["failed"], sums["n"])}
