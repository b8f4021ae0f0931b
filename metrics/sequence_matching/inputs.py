"""Check the inputs of the sequence_matching metric: problem sets, groups and options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from .rescaling import STANDARDISE, Scores

# Videos x labels, as nested lists, a numpy array or a torch tensor. None is a missing score or video.
RawScores = Any
# One label number per video, as a list, a numpy array or a torch tensor. None is an unlabelled video.
RawLabels = Any

MISSING = ("wrong", "drop")
TIES = ("lowest", "highest", "wrong")


@dataclass(frozen=True, slots=True)
class LabelledScores:
    """Scores (videos x labels, NaN where missing) and the true label of each video, None if it has no label.

    If `unanswered` is true, the model gave no answer for the set. All scores are then NaN, regardless of the options.
    """

    scores: Scores
    labels: list[int | None]
    unanswered: bool = False

    @classmethod
    def build(cls, scores: RawScores | None, labels: RawLabels, where: str = "", other: str = "") -> LabelledScores:
        """Build a checked problem set.

        Raises TypeError or ValueError. `where` and `other` name scores and labels in messages.
        """
        truth = as_labels(labels, other or "labels")
        matrix = [None] if scores is None else as_matrix(scores, where or "scores", len(truth))
        width = next((len(row) for row in matrix if row is not None), None)
        if width is None:
            # No video has scores, so the number of labels is unknown and does not matter.
            return cls(np.full((len(truth), 1), np.nan), truth, unanswered=True)
        for video, label in enumerate(truth):
            if label is not None and label >= width:
                raise ValueError(
                    f"{other or 'labels'}[{video}]: is {label}, but the scores are for {width} labels; "
                    f"give a number from 0 to {width - 1}, None for an unlabelled video"
                )
        rows = [[np.nan] * width if row is None else row for row in matrix]
        return cls(np.array(rows, dtype=np.float64), truth)


def as_plain(value: Any) -> Any:  # noqa: ANN401
    """Convert numpy arrays and torch tensors to Python lists. Other values stay unchanged."""
    return value.tolist() if hasattr(value, "tolist") else value


def as_list(raw: Any, where: str, remedy: str) -> Sequence[Any]:  # noqa: ANN401
    """Return a list, array or tensor as a sequence. Raises TypeError."""
    value = as_plain(raw)
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
        raise TypeError(f"{where}: is {raw!r} ({type(raw).__name__}); give {remedy}")
    return value


def as_labels(raw: RawLabels, where: str) -> list[int | None]:
    """Return the label number of each video. Raises TypeError or ValueError.

    >>> as_labels([0, None, 2], "references[0]")
    [0, None, 2]
    """
    labels = as_list(raw, where, "a list with the label number of each video")
    if not len(labels):
        raise ValueError(f"{where}: is empty; give a problem set with >= 1 video")
    return [_label(as_plain(label), f"{where}[{video}]") for video, label in enumerate(labels)]


def _label(value: object, where: str) -> int | None:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return None
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(
            f"{where}: is {value!r} ({type(value).__name__}), not an integer; "
            "give the label's number from 0, None for an unlabelled video"
        )
    if value < 0:
        raise ValueError(f"{where}: is {value}; give the label's number from 0, None for an unlabelled video")
    return int(value)


def as_matrix(raw: RawScores, where: str, n_videos: int) -> list[list[float] | None]:
    """Return the scores of a set with a row per video. A video without scores is None, and a missing score is NaN.

    >>> as_matrix([[1, None], None], "predictions[0]", 2)
    [[1.0, nan], None]
    """
    rows = as_list(raw, where, "one list of scores per video, None for a set without scores")
    if len(rows) != n_videos:
        raise ValueError(f"{where}: has scores for {len(rows)} videos, but {n_videos} have labels; give one list each")
    matrix: list[list[float] | None] = []
    for video, raw_row in enumerate(rows):
        if raw_row is None:
            matrix.append(None)
            continue
        row = as_list(raw_row, f"{where}[{video}]", "a list with a score per label, None for a video without scores")
        matrix.append([_score(as_plain(score), f"{where}[{video}][{label}]") for label, score in enumerate(row)])
    widths = {len(row) for row in matrix if row is not None}
    if len(widths) > 1 or 0 in widths:
        raise ValueError(f"{where}: its videos have {sorted(widths)} scores; give each a score per label of the set")
    return matrix


def _score(value: object, where: str) -> float:
    if value is None:
        return np.nan
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(
            f"{where}: is {value!r} ({type(value).__name__}), not a number; give a score, None for a missing one"
        )
    if np.isinf(float(value)):
        raise ValueError(f"{where}: is {value!r}; give a finite score, None for a missing one")
    return float(value)


def as_columns(predictions: Any, references: Any) -> tuple[Sequence[Any], Sequence[Any]]:  # noqa: ANN401
    """Check both columns. Raises TypeError unless both are lists, and ValueError unless both are equally long."""
    scores, labels = as_plain(predictions), as_plain(references)
    for name, column, raw in (("predictions", scores, predictions), ("references", labels, references)):
        if isinstance(column, str | bytes | Mapping) or not isinstance(column, Sequence):
            raise TypeError(f"{name}: is of type {type(raw).__name__}; give a list with one entry per problem set")
    if len(scores) != len(labels):
        raise ValueError(
            f"there are {len(scores)} predictions for {len(labels)} references; "
            "give one per problem set, None where the model has no scores"
        )
    return scores, labels


def as_groups(groups: Any, length: int) -> list[list[str]]:  # noqa: ANN401
    """Return the groups of each set without repetition. Raises TypeError or ValueError.

    >>> as_groups(["level_1", ["level_2", "permutation"], None], 3)
    [['level_1'], ['level_2', 'permutation'], []]
    """
    if groups is None:
        return [[] for _ in range(length)]
    column = as_list(groups, "groups", "a list with one entry per problem set")
    if len(column) != length:
        raise ValueError(f"groups: has {len(column)} entries for {length} problem sets; give one per set, or None")
    return [_names(entry, f"groups[{index}]") for index, entry in enumerate(column)]


def _names(entry: object, where: str) -> list[str]:
    if entry is None:
        return []
    names = [entry] if isinstance(entry, str) else as_list(entry, where, "a name, a list of names, or None")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{where}: {name!r} ({type(name).__name__}) is not a string; give the group's name")
    return list(dict.fromkeys(names))


def check_options(standardise: object, softmax: object, missing: object, ties: object) -> None:
    """Raise ValueError or TypeError for an unknown option."""
    for name, value, allowed in (("standardise", standardise, STANDARDISE), ("ties", ties, TIES)):
        if value not in allowed:
            raise ValueError(f"{name}: is {value!r}; give one of {', '.join(allowed)}")
    if not isinstance(softmax, bool):
        raise TypeError(f"softmax: is {softmax!r} ({type(softmax).__name__}); give True or False")
    if isinstance(missing, bool) or not isinstance(missing, Real):
        usable = isinstance(missing, str) and missing in MISSING
    else:
        usable = bool(np.isfinite(float(missing)))
    if not usable:
        raise ValueError(f"missing: is {missing!r}; give one of {', '.join(MISSING)}, or a score such as -0.1")
