"""Score temporal segmentation of clips by frame accuracy, edit score and F1 of segments (Lea et al., arXiv 1611.05267).

A clip has one label per frame, in order. None is background. A segment is a run of frames with the same label. F1 is
computed at several overlaps. All scores range from 0 to 1. Needs numpy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Labels = Sequence[str | None]
RawLabels = Any  # a list with a text or None per frame
OVERLAPS = (10, 25, 50)
"""Minimum intersection over union of a matched segment, in percent."""


class LabelledRun(NamedTuple):
    """A run of frames [start, stop)."""

    label: str
    start: int
    stop: int


Runs = Sequence[LabelledRun]


def segments_of(labels: Labels) -> list[LabelledRun]:
    """Return the segments of a clip in order, without background.

    >>> [tuple(segment) for segment in segments_of(["pour", "pour", None, "pour", "stir"])]
    [('pour', 0, 2), ('pour', 3, 4), ('stir', 4, 5)]
    """
    segments, start = [], 0
    for label, run in groupby(labels):
        stop = start + sum(1 for _ in run)
        if label is not None:
            segments.append(LabelledRun(label, start, stop))
        start = stop
    return segments


def edit_score(predicted: Runs, reference: Runs) -> float:
    """Return 1 - Levenshtein distance of the two label sequences / length of the longer sequence. 1 if both are empty.

    >>> edit_score(segments_of(["a", "b", "a"]), segments_of(["a", "b"]))
    0.6666666666666667
    """
    longest = max(len(predicted), len(reference))
    distances = list(range(len(reference) + 1))
    for row, segment in enumerate(predicted, start=1):
        diagonal, distances[0] = distances[0], row
        for column, other in enumerate(reference, start=1):
            substituted = diagonal + (segment.label != other.label)
            diagonal = distances[column]
            distances[column] = min(substituted, diagonal + 1, distances[column - 1] + 1)
    return 1 - distances[-1] / longest if longest else 1.0


def matched_segments(predicted: Runs, reference: Runs, percent: int) -> dict[int, int]:
    """Map the position of each right predicted segment to the position of its reference segment.

    Both lists are in the order of time, as returned by `segments_of`.

    In this order, each prediction takes the reference segment of its label with the largest overlap (at a tie the
    earlier segment), if their intersection over union reaches `percent`. If this segment is already taken, the
    prediction is wrong and does not try another segment.
    """
    matches: dict[int, int] = {}
    used, first = set[int](), 0
    for position, segment in enumerate(predicted):
        while first < len(reference) and reference[first].stop <= segment.start:
            first += 1
        overlaps: dict[int, float] = {}
        for index in range(first, len(reference)):
            if reference[index].start >= segment.stop:
                break
            overlaps[index] = _overlap(segment, reference[index])
        best = max(overlaps, key=overlaps.__getitem__, default=None)
        if best is not None and 100 * overlaps[best] >= percent and best not in used:
            matches[position] = best
            used.add(best)
    return matches


def _overlap(first: LabelledRun, second: LabelledRun) -> float:
    """Return the intersection over union of the frames of two segments, or 0 if labels differ."""
    shared = min(first.stop, second.stop) - max(first.start, second.start)
    if first.label != second.label or shared <= 0:
        return 0.0
    return shared / (max(first.stop, second.stop) - min(first.start, second.start))


def clip_sums(prediction: Labels | None, reference: Labels) -> dict[Hashable, float]:
    """Return the contribution of a clip to the sums for `compute_metrics`.

    A prediction of None has no right frames and no segments.
    """
    predicted, true = segments_of(prediction or ()), segments_of(reference)
    return {
        "n": 1,
        "failed": prediction is None,
        "frames": len(reference),
        "right": sum(given == label for given, label in zip(prediction or (), reference, strict=False)),
        "edit": edit_score(predicted, true) if prediction is not None else 0.0,
        "predicted": len(predicted),
        "reference": len(true),
        **{f"matched_{percent}": len(matched_segments(predicted, true, percent)) for percent in OVERLAPS},
    }


def compute_metrics(sums: Mapping[Hashable, Floats]) -> dict[str, Floats]:
    """Return the scores (D,) of `temporal_segmentation` from the sums (D,) over D selections of clips."""
    segments = sums["predicted"] + sums["reference"]
    # If there are no segments but there is an answer, no segment is wrong.
    looked = np.where(sums["failed"] < sums["n"], 1.0, 0.0)
    return {
        "frame_accuracy": _fraction(sums["right"], sums["frames"]),
        "edit": _fraction(sums["edit"], sums["n"]),
        **{f"f1_{percent}": _fraction(2 * sums[f"matched_{percent}"], segments, looked) for percent in OVERLAPS},
        "coverage": 1 - _fraction(sums["failed"], sums["n"]),
    }


def _fraction(part: Floats, whole: Floats, nothing: Floats | float = np.nan) -> Floats:
    return np.asarray(np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), nothing))


def temporal_segmentation(predictions: Sequence[RawLabels | None], references: Sequence[RawLabels]) -> dict[str, Any]:
    """Score clips. `predictions[i]` answers `references[i]`; None means that there is no usable answer.

    A clip is a list with the label of each frame, or None for background. A prediction is as long as its reference.

    Returned: `frame_accuracy` over the frames of all clips, background included; `edit`, the mean over clips;
    `f1_10`, `f1_25`, `f1_50` over the segments of all clips; `n`, `n_failed`, `coverage`.

    Without segments F1 is 1, or 0 if no clip has an answer.

    Raises ValueError for no clips or unequal lengths, TypeError for wrong types; the message names the clip.

    >>> result = temporal_segmentation([["pour", "pour", "pour", None], None], [["pour", "pour", None, None], ["stir"]])
    >>> result["frame_accuracy"], result["edit"], result["f1_50"], result["coverage"]
    (0.6, 0.5, 0.6666666666666666, 0.5)
    """
    answers, expected = check_columns(predictions, references)
    if not expected:
        raise ValueError("predictions and references are empty: there is nothing to score; give >= 1 clip")
    totals: Counter[Hashable] = Counter()
    for prediction, reference in zip(answers, expected, strict=True):
        totals.update(clip_sums(prediction, reference))
    values = compute_metrics({name: np.array([float(total)]) for name, total in totals.items()})
    counts = {"n": int(totals["n"]), "n_failed": int(totals["failed"])}
    return {**{name: float(value[0]) for name, value in values.items()}, **counts}


def as_labels(raw: RawLabels, where: str, length: int | None = None) -> list[str | None]:
    """Check the labels of a clip. Raises TypeError or ValueError; the message starts with `where`."""
    if isinstance(raw, str | bytes | Mapping) or not isinstance(raw, Sequence | np.ndarray):
        raise TypeError(f"{where}: is {raw!r} ({type(raw).__name__}); give a list with the label of each frame")
    labels: list[Any] = list(raw)
    for frame, label in enumerate(labels):
        if label is not None and not isinstance(label, str):
            kind = type(label).__name__
            raise TypeError(
                f"{where}[{frame}]: is {label!r} ({kind}); give the frame's label as text, None for background"
            )
    if not labels:
        raise ValueError(f"{where}: is empty; give a clip of >= 1 frame")
    if length is not None and len(labels) != length:
        raise ValueError(f"{where}: has {len(labels)} labels, its reference {length}; give one label per frame")
    return labels


def check_columns(predictions: Any, references: Any) -> tuple[list[Labels | None], list[Labels]]:  # noqa: ANN401
    """Check both columns.

    Raises TypeError unless both are lists of clips, and ValueError unless both are equally long.
    """
    for name, column in (("predictions", predictions), ("references", references)):
        if column is None or isinstance(column, str | bytes | Mapping) or not hasattr(column, "__len__"):
            raise TypeError(f"{name}: is of type {type(column).__name__}; give a list with one entry per clip")
    if len(predictions) != len(references):
        raise ValueError(
            f"there are {len(predictions)} predictions for {len(references)} references; "
            "give one prediction per reference, None where there is no usable answer"
        )
    expected: list[Labels] = [as_labels(raw, f"references[{index}]") for index, raw in enumerate(references)]
    answers: list[Labels | None] = [
        None if raw is None else as_labels(raw, f"predictions[{index}]", len(expected[index]))
        for index, raw in enumerate(predictions)
    ]
    return answers, expected
