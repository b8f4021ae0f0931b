"""Score ViSTa's video-to-description matching: predictions by standardised scores, macro-F1 per problem set.

A problem set has some videos and some descriptions (labels). Each video fits one description. A model scores every
video with every label. Source: arXiv 2411.13211, section 4.1, and the released evaluation code. F1 ranges from 0 to 1.
Needs numpy.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import multimode
from typing import Any

import numpy as np

from .inputs import LabelledScores, RawLabels, RawScores, as_columns, as_groups, check_options
from .rescaling import best_labels, rescale

_Z95 = 1.96


@dataclass(frozen=True, slots=True)
class SetScore:
    """The result for a problem set.

    `predictions[v]` is a label or None. `macro_f1` is None if no video can be scored.
    """

    macro_f1: float | None
    majority_f1: float | None
    predictions: list[int | None]
    n_videos: int
    n_scored: int
    n_failed: int
    n_undefined: int
    n_ties: int


def macro_f1(truth: Sequence[int], predicted: Sequence[int | None]) -> float:
    """Return the mean F1 over the labels in the truth or the predictions. A prediction of None names no label.

    Equals scikit-learn's `f1_score(truth, predicted, average="macro", zero_division=0)`.

    >>> macro_f1([0, 1, 2], [0, 1, 1]), macro_f1([0, 1], [0, None])
    (0.5555555555555555, 0.5)
    """
    support, guess_counts = Counter(truth), Counter(label for label in predicted if label is not None)
    hits = Counter(label for label, guess in zip(truth, predicted, strict=True) if label == guess)
    labels = support.keys() | guess_counts.keys()
    return math.fsum(2 * hits[label] / (support[label] + guess_counts[label]) for label in labels) / len(labels)


def score_set(
    problem: LabelledScores,
    *,
    standardise: str = "label",
    softmax: bool = True,
    missing: str | float = "wrong",
    ties: str = "lowest",
) -> SetScore:
    """Score one problem set. `sequence_matching` describes the options.

    >>> problem = LabelledScores.build([[0.9, 0.8], [0.7, 0.2]], [1, 0])
    >>> score_set(problem).predictions, score_set(problem, standardise="raw").predictions
    ([1, 0], [0, 0])
    """
    scores = problem.scores
    if not isinstance(missing, str) and not problem.unanswered:
        scores = np.where(np.isnan(scores), float(missing), scores)
    failed = [all(row) for row in np.isnan(scores).tolist()]
    best = best_labels(rescale(scores, standardise, softmax=softmax))
    predictions = [_choose(labels, ties) for labels in best]
    # If scores cannot be compared (a set with a single video), this is not the model's mistake, so drop the video.
    undefined = [not labels and not gone for labels, gone in zip(best, failed, strict=True)]
    dropped = [left_out or (gone and missing == "drop") for left_out, gone in zip(undefined, failed, strict=True)]
    pairs = [
        (label, guess)
        for label, guess, out in zip(problem.labels, predictions, dropped, strict=True)
        if label is not None and not out
    ]
    truth, guesses = [label for label, _ in pairs], [guess for _, guess in pairs]
    # The baseline ignores scores, so it answers every labelled video.
    labelled = [label for label in problem.labels if label is not None]
    return SetScore(
        macro_f1=macro_f1(truth, guesses) if pairs else None,
        majority_f1=macro_f1(labelled, [min(multimode(labelled))] * len(labelled)) if pairs else None,
        predictions=predictions,
        n_videos=len(predictions),
        n_scored=len(pairs),
        n_failed=sum(failed),
        n_undefined=sum(undefined),
        n_ties=sum(len(labels) > 1 for labels in best),
    )


def _choose(labels: Sequence[int], ties: str) -> int | None:
    if not labels or (len(labels) > 1 and ties == "wrong"):
        return None
    return labels[-1] if ties == "highest" else labels[0]


def mean_with_interval(values: Sequence[float]) -> dict[str, float | None]:
    """Return the unweighted mean, its error sd / (sqrt(n) + 1e-6) with the sample sd, and the mean +- 1.96 errors.

    Without values, all results are None. With one value, the error and the interval are None.

    >>> mean_with_interval([0.25, 0.5])["mean"], mean_with_interval([0.5])["error"] is None
    (0.375, True)
    """
    n = len(values)
    mean = math.fsum(values) / n if n else None
    if mean is None or n < 2:
        return {"mean": mean, "error": None, "ci_low": None, "ci_high": None}
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    error = sd / (math.sqrt(n) + 1e-6)
    return {"mean": mean, "error": error, "ci_low": mean - _Z95 * error, "ci_high": mean + _Z95 * error}


def sequence_matching(
    predictions: Sequence[RawScores | None],
    references: Sequence[RawLabels],
    groups: Sequence[str | Sequence[str] | None] | None = None,
    *,
    standardise: str = "label",
    softmax: bool = True,
    missing: str | float = "wrong",
    ties: str = "lowest",
) -> dict[str, Any]:
    """Return the macro-F1 of each problem set, and its mean over sets, overall and per group.

    * `predictions[i]`: the scores of set i, videos x labels; a higher score fits better. None or NaN is a missing
      score; None can also replace a video or a set.
    * `references[i]`: the number (from 0) of the label of each video. None leaves a video unscored, but it still
      takes part in the standardisation.
    * `groups[i]`: the group of set i (a level, a type), a list of several groups, or None.
    * `standardise`, `softmax`: see `rescaling.rescale`; the defaults are ViSTa's metric.
    * `missing`: how missing scores are treated. "wrong" and "drop" leave a missing score out of the softmax and of
      the statistics; a video without any score is then wrong, or left out. A number replaces missing scores (ViSTa's
      code: -0.1), except in a set that is None, whose videos are wrong.
    * `ties`: among labels within 1e-9 of the maximum the "lowest" or "highest" number wins, or the video is "wrong".
      ViSTa's code leaves this open.

    Videos whose scores cannot be standardised (one video in the set; two with "leave_one_out") are dropped. A set
    without remaining videos has no score: it counts in `n` and `n_unscored`, not in the means.

    Returned, overall and in `per_group`:
    * `macro_f1`: unweighted mean over sets; `error`, `ci_low`, `ci_high`: see `mean_with_interval`.
    * `majority_f1`: the mean, over the same sets, for predicting each set's most frequent label.
    * `n`, `n_unscored`: the number of sets, and of sets without a score.
    * `n_failed`, `coverage`: the number of sets without any score of the model, and the fraction of the other sets.
    * `n_videos`, `n_videos_failed`, `video_coverage`: the same for videos; `n_undefined`: dropped videos; `n_ties`:
      videos with several best labels.

    Only overall: `per_set`, the fields of `SetScore` of each set.

    Raises ValueError for no sets, unequal lengths, ragged scores, unknown labels or options, and TypeError for wrong
    types.

    >>> result = sequence_matching([[[0.9, 0.8], [0.7, 0.2]], None], [[1, 0], [0, 1]], ["level_2", "level_3"])
    >>> result["macro_f1"], result["per_group"]["level_2"]["macro_f1"], result["coverage"]
    (0.5, 1.0, 0.5)
    """
    check_options(standardise, softmax, missing, ties)
    columns = as_columns(predictions, references)
    if not len(columns[0]):
        raise ValueError("predictions and references are empty: there is nothing to score; give >= 1 problem set")
    problems = [
        LabelledScores.build(*problem, f"predictions[{index}]", f"references[{index}]")
        for index, problem in enumerate(zip(*columns, strict=True))
    ]
    names = as_groups(groups, len(problems))
    scores = [
        score_set(problem, standardise=standardise, softmax=softmax, missing=missing, ties=ties) for problem in problems
    ]
    by_group: dict[str, list[SetScore]] = {}
    for score, groups_of_set in zip(scores, names, strict=True):
        for name in groups_of_set:
            by_group.setdefault(name, []).append(score)
    return _compute_metrics(scores) | {
        "per_group": {name: _compute_metrics(in_group) for name, in_group in sorted(by_group.items())},
        "per_set": [{name: getattr(score, name) for name in SetScore.__slots__} for score in scores],
    }


def _compute_metrics(scores: Sequence[SetScore]) -> dict[str, Any]:
    values = [score.macro_f1 for score in scores if score.macro_f1 is not None]
    majority = [score.majority_f1 for score in scores if score.majority_f1 is not None]
    interval = mean_with_interval(values)
    n_failed = sum(score.n_failed == score.n_videos for score in scores)
    n_videos, n_videos_failed = sum(score.n_videos for score in scores), sum(score.n_failed for score in scores)
    return {
        "macro_f1": interval.pop("mean"),
        **interval,
        "majority_f1": mean_with_interval(majority)["mean"],
        "n": len(scores),
        "n_unscored": len(scores) - len(values),
        "n_failed": n_failed,
        "coverage": 1 - n_failed / len(scores),
        "n_videos": n_videos,
        "n_videos_failed": n_videos_failed,
        "video_coverage": 1 - n_videos_failed / n_videos,
        "n_undefined": sum(score.n_undefined for score in scores),
        "n_ties": sum(score.n_ties for score in scores),
    }
