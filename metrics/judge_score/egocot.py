"""EgoCoT-Bench's reasoning score R and spurious correct rate SCR (arXiv 2605.19559, section 3.2.4).

A judge gives each rationale a whole score S from 0 to 5. R is the mean of S over all samples, right or wrong;
SCR = 100 * sum I(correct) I(S <= 2) / sum I(correct) is the percentage of right answers with a bad rationale.
Groups and the total pool their samples (sample-weighted), which reproduces the published tables.
Needs the standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

from .scoring import SampledScore, as_column, as_names, as_plain, as_score, mean

# The four groups, their subtasks, and the number of samples per subtask in the whole benchmark (3,172). The sizes are
# not published. They follow from the published percentages.
EGOCOT_SIZES: dict[str, dict[str, int]] = {
    "EGP": {"AOG": 419, "HOA": 114, "MSP": 213},
    "STR": {"SR": 265, "LVR": 496, "HOTR": 32},
    "PCI": {"NSA": 392, "NAA": 198, "LCOI": 360},
    "HGR": {"PR": 233, "HGC": 238, "GOT": 212},
}
TOP_SCORE = 5
SPURIOUS_AT = 2


def spurious_correct_rate(
    scores: Sequence[float], correct: Sequence[bool], *, threshold: float = SPURIOUS_AT
) -> float | None:
    """Return the percentage of right answers whose rationale scores at most `threshold`, or None without right answers.

    >>> spurious_correct_rate([5, 2, 0, 3], [True, True, False, True]) == 100 / 3
    True
    """
    is_spurious = [score <= threshold for score, right in zip(scores, correct, strict=True) if right]
    return 100 * sum(is_spurious) / len(is_spurious) if is_spurious else None


def egocot_reasoning(
    scores: Sequence[float | None],
    correct: Sequence[bool | None],
    subtasks: Sequence[str | None] | None = None,
    *,
    empty_reasoning: Sequence[bool] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    threshold: float = SPURIOUS_AT,
) -> dict[str, Any]:
    """Return accuracy, R and SCR per subtask, per group and overall.

    Each value is computed over all its samples together.

    * `scores[i]`: the judge's integer score of rationale i, 0 to 5. None means no usable verdict; the sample then
      counts only for the accuracy.
    * `correct[i]`: True if the answer is right. None means no usable answer, which is wrong.
    * `empty_reasoning[i]`: True if the model gave no rationale. Its score is 0, even if `scores[i]` differs.
    * `subtasks[i]`: the subtask, or None.
    * `groups`: group -> subtasks, by default EgoCoT-Bench's 4 groups of 12 subtasks (`EGOCOT_SIZES`). A subtask
      outside all groups counts in `per_subtask` and overall.
    * `threshold`: the highest score at which a rationale counts as bad (2, inclusive, in the benchmark).

    Returned, overall and in each entry of `per_group` and `per_subtask`: `accuracy` (percent of all samples), `r` (0
    to 5) and `scr` (percent), `n`, `n_failed` (samples whose rationale has no verdict), `coverage` (the fraction of
    the other samples), `n_correct` (right and judged: the denominator of SCR), `n_spurious`. A score of nothing is
    None. Raises ValueError for no samples, unequal lengths or scores that are not integers from 0 to 5, and
    TypeError for wrong types.

    >>> result = egocot_reasoning([4, 2, None, 5], [True, True, True, False], ["AOG", "AOG", "SR", "SR"])
    >>> result["accuracy"], round(result["r"], 3), result["scr"], result["coverage"]
    (75.0, 3.667, 50.0, 0.75)
    >>> result["per_group"]["STR"]["scr"] is None
    True
    """
    column = as_column(scores, "scores")
    n = len(column)
    if not n:
        raise ValueError("scores: are empty: there is nothing to average; give >= 1 sample")
    right = [as_flag(raw, f"correct[{i}]") for i, raw in enumerate(as_column(correct, "correct", n))]
    flags = [False] * n if empty_reasoning is None else as_column(empty_reasoning, "empty_reasoning", n)
    empty = [as_flag(raw, f"empty_reasoning[{i}]") for i, raw in enumerate(flags)]
    judged = [0.0 if empty[i] else as_whole(raw, f"scores[{i}]") for i, raw in enumerate(column)]
    members: Mapping[str, Any] = EGOCOT_SIZES if groups is None else groups
    if not isinstance(members, Mapping):
        raise TypeError(f"groups: is of type {type(groups).__name__}; give a dict from group to its subtasks")
    samples = list(zip(judged, right, strict=True))
    by_subtask: dict[str, list[_Sample]] = {}
    for sample, name in zip(samples, as_names(subtasks, "subtasks", n), strict=True):
        if name is not None:
            by_subtask.setdefault(name, []).append(sample)
    pooled = {
        group: [sample for name in names for sample in by_subtask.get(name, [])] for group, names in members.items()
    }
    return _compute_metrics(samples, threshold) | {
        "per_group": {group: _compute_metrics(part, threshold) for group, part in pooled.items() if part},
        "per_subtask": {name: _compute_metrics(part, threshold) for name, part in sorted(by_subtask.items())},
    }


_Sample = tuple[SampledScore, bool]  # the rationale's score, and whether the answer is right


def _compute_metrics(samples: Sequence[_Sample], threshold: float) -> dict[str, Any]:
    judged = [(score, right) for score, right in samples if score is not None]
    scores, correct = [score for score, _ in judged], [right for _, right in judged]
    return {
        "accuracy": 100 * sum(right for _, right in samples) / len(samples),
        "r": mean(scores),
        "scr": spurious_correct_rate(scores, correct, threshold=threshold),
        "n": len(samples),
        "n_failed": len(samples) - len(judged),
        "coverage": len(judged) / len(samples),
        "n_correct": sum(correct),
        "n_spurious": sum(score <= threshold for score, right in judged if right),
    }


def as_whole(raw: object, where: str) -> SampledScore:
    """Return an integer score from 0 to 5, or None for no verdict. Raises TypeError or ValueError."""
    score = as_score(raw, where, TOP_SCORE)
    if score is not None and score != int(score):
        raise ValueError(f"{where}: is {raw!r}; the judge gives whole scores, None where there is no usable verdict")
    return score


def as_flag(raw: object, where: str) -> bool:
    """Return True or False. A missing value (None) gives False. Raises TypeError."""
    value = as_plain(raw)
    if value is None:
        return False
    if isinstance(value, Integral) and int(value) in (0, 1):
        return bool(value)
    raise TypeError(f"{where}: is {raw!r} ({type(raw).__name__}); give True or False")
