"""HOTA (Luiten et al., IJCV 2021; arXiv 2009.07736) and identity switches (CLEAR MOT) of masks over time.

HOTA matches predicted and true masks frame by frame at each of 19 thresholds of their intersection over union, and
weighs how many masks are found (DetA) and how well identities are kept (AssA). All but the switches run from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco_mask
from scipy.optimize import linear_sum_assignment

from .inputs import Frame, RawSequence, checked

ALPHAS = np.arange(1, 20) * 0.05
_SWITCH_AT = 0.5
_EPSILON = float(np.finfo(float).eps)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def tracking(predictions: Sequence[RawSequence | None], references: Sequence[RawSequence]) -> dict[str, Any]:
    """Score sequences: `predictions[i]` answers `references[i]`, a list with a dict of masks per frame.

    A dict gives compressed COCO run lengths by track id; ids of predictions and references need not be alike. A mask
    that is None or has no pixel is not there. A prediction of None is a sequence without an answer: all is missed.

    Returned: `HOTA`, `DetA`, `AssA`, `LocA` (means over the thresholds), `IDSW` (identity switches at 0.5), over all
    sequences together; `per_sequence`, the same of each; `n`, `n_failed`, `coverage`.

    Raises TypeError or ValueError, naming the sequence, the frame and the track.

    >>> left, right = {"size": [1, 4], "counts": "022"}, {"size": [1, 4], "counts": "22"}
    >>> swapped = tracking([[{1: left, 2: right}, {1: right, 2: left}]], [[{1: left, 2: right}] * 2])
    >>> round(swapped["HOTA"], 3), swapped["DetA"], round(swapped["AssA"], 3), swapped["IDSW"]
    (0.577, 1.0, 0.333, 2)
    """
    answers, expected = checked(predictions, references)
    if not expected:
        raise ValueError("predictions and references are empty: there is nothing to score; give >= 1 sequence")
    counts = list(map(_count, answers, expected))
    n_failed = answers.count(None)
    return {
        **_figures(counts),
        "per_sequence": [_figures([count]) for count in counts],
        "n": len(counts),
        "n_failed": n_failed,
        "coverage": 1 - n_failed / len(counts),
    }


@dataclass(frozen=True)
class SequenceCounts:
    """The counts of a sequence; arrays are (19,), one number a threshold."""

    matched: Ints
    others: Ints
    """Masks on either side that match none."""
    similarity: Floats
    """Sum of the intersections over union of matched masks."""
    association: Floats
    """Sum over matched masks of how well their two tracks cover each other, 0..1."""
    switches: int


SUMMED = ("matched", "others", "similarity", "association")
"""The fields of `SequenceCounts` whose sums over sequences `figures` takes."""


def sequence_counts(prediction: RawSequence | None, reference: RawSequence) -> SequenceCounts:
    """The counts of one sequence. Raises TypeError or ValueError."""
    ((answer,), (true,)) = checked([prediction], [reference])
    return _count(answer, true)


def figures(sums: Mapping[str, Floats]) -> dict[str, Floats]:
    """`HOTA`, `DetA`, `AssA` and `LocA`, each (...), of (..., 19) sums of what `SUMMED` names."""
    matched, others, similarity, association = (sums[name] for name in SUMMED)
    detection = matched / np.maximum(1, matched + others)
    assigned = association / np.maximum(1, matched)
    # Where nothing matches, what matches lies exactly (as TrackEval has it).
    location = np.where(matched > 0, similarity / np.maximum(1, matched), 1.0)
    by_threshold = {"HOTA": np.sqrt(detection * assigned), "DetA": detection, "AssA": assigned, "LocA": location}
    return {name: values.mean(axis=-1) for name, values in by_threshold.items()}


def _figures(counts: Sequence[SequenceCounts]) -> dict[str, Any]:
    sums = {name: np.sum([getattr(count, name) for count in counts], axis=0) for name in SUMMED}
    values = {name: float(value) for name, value in figures(sums).items()}
    return {**values, "IDSW": sum(count.switches for count in counts)}


@dataclass(frozen=True)
class _FrameOverlaps:
    """The tracks of one frame as indices, and the intersection over union of each true with each predicted mask."""

    true: Ints
    predicted: Ints
    iou: Floats


def _count(prediction: Sequence[Frame] | None, reference: Sequence[Frame]) -> SequenceCounts:
    prediction = [{}] * len(reference) if prediction is None else prediction
    true_index, predicted_index = (
        {track: index for index, track in enumerate(dict.fromkeys(track for frame in frames for track in frame))}
        for frames in (reference, prediction)
    )
    frames = [
        _FrameOverlaps(
            np.array([true_index[track] for track in true], dtype=np.int64),
            np.array([predicted_index[track] for track in answer], dtype=np.int64),
            _iou(true, answer),
        )
        for true, answer in zip(reference, prediction, strict=True)
    ]
    n_true = _lengths([frame.true for frame in frames], len(true_index))
    n_predicted = _lengths([frame.predicted for frame in frames], len(predicted_index))
    alignment = _alignment(frames, n_true, n_predicted)
    together = np.zeros((len(ALPHAS), *alignment.shape), dtype=np.int64)
    similarity = np.zeros(len(ALPHAS))
    for frame in frames:
        tracks = np.ix_(frame.true, frame.predicted)
        rows, columns = linear_sum_assignment(alignment[tracks] * frame.iou, maximize=True)
        iou = frame.iou[rows, columns]
        is_match = iou >= ALPHAS[:, None] - _EPSILON  # (19, pairs)
        together[:, frame.true[rows], frame.predicted[columns]] += is_match
        similarity += (is_match * iou).sum(axis=1)
    matched = together.sum(axis=(1, 2))
    covered = together / np.maximum(1, n_true[:, None] + n_predicted - together)
    return SequenceCounts(
        matched=matched,
        others=n_true.sum() + n_predicted.sum() - 2 * matched,
        similarity=similarity,
        association=(together * covered).sum(axis=(1, 2)),
        switches=_switches(frames, len(true_index)),
    )


def _lengths(tracks: Sequence[Ints], count: int) -> Ints:
    """On how many frames each of `count` tracks is."""
    lengths = np.zeros(count, dtype=np.int64)
    for frame in tracks:
        lengths[frame] += 1
    return lengths


def _iou(true: Frame, answer: Frame) -> Floats:
    if not true or not answer:
        return np.zeros((len(true), len(answer)))
    return np.asarray(coco_mask.iou(list(true.values()), list(answer.values()), [0] * len(answer)))


def _alignment(frames: Sequence[_FrameOverlaps], n_true: Ints, n_predicted: Ints) -> Floats:
    """How well each true track and each predicted one go together over the whole sequence, 0..1."""
    shared = np.zeros((len(n_true), len(n_predicted)))
    for frame in frames:
        rest = frame.iou.sum(axis=0)[None, :] + frame.iou.sum(axis=1)[:, None] - frame.iou
        tracks = np.ix_(frame.true, frame.predicted)
        shared[tracks] += np.divide(frame.iou, rest, out=np.zeros_like(frame.iou), where=rest > _EPSILON)
    return shared / (n_true[:, None] + n_predicted - shared)


def _switches(frames: Sequence[_FrameOverlaps], n_true: int) -> int:
    """How often a true track is matched by another predicted one than when it was last matched.

    Frames are matched one after the other; a pair of the frame before goes on as long as it overlaps by one half.
    """
    nobody = -1
    last = np.full(n_true, nobody)
    just_now = np.full(n_true, nobody)
    switches = 0
    for frame in frames:
        if not frame.true.size or not frame.predicted.size:
            continue
        goes_on = frame.predicted[None, :] == just_now[frame.true][:, None]
        score = np.where(frame.iou >= _SWITCH_AT - _EPSILON, 1000 * goes_on + frame.iou, 0)
        rows, columns = linear_sum_assignment(score, maximize=True)
        is_match = score[rows, columns] > _EPSILON
        true, predicted = frame.true[rows[is_match]], frame.predicted[columns[is_match]]
        switches += int(np.count_nonzero((last[true] != nobody) & (last[true] != predicted)))
        just_now[:] = nobody
        last[true] = just_now[true] = predicted
    return switches
