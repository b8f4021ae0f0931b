"""Compute HOTA (Luiten et al., IJCV 2021; arXiv 2009.07736) and identity switches (CLEAR MOT) of masks over time.

HOTA matches predicted and true masks frame by frame at each of 19 thresholds of their intersection over union. It
measures how many masks are found (DetA) and how well identities persist (AssA). All scores except the switches range
from 0 to 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco_mask
from scipy.optimize import linear_sum_assignment

ALPHAS = np.arange(1, 20) * 0.05
_SWITCH_AT = 0.5
_EPSILON = float(np.finfo(float).eps)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
RawSequence = Any  # a list of frames, each a dict from track id to a compressed COCO RLE dict or None
Frame = dict[str, dict[str, Any]]
"""Maps track ids to COCO run lengths, with `size` as [height, width] and `counts` as bytes."""

_ADVICE = "give a COCO RLE dict with size and counts as pycocotools.mask.encode makes it"
_LONGEST_CODE = 7  # characters of a run: 35 bits exceed the pixels of any frame


def tracking(predictions: Sequence[RawSequence | None], references: Sequence[RawSequence]) -> dict[str, Any]:
    """Score sequences. `predictions[i]` answers `references[i]`, a list with a dict of masks per frame.

    A dict gives compressed COCO run lengths by track id. Predictions and references may use different ids. A mask that
    is None or has no pixels counts as absent. A prediction of None is a sequence without an answer, so all its masks
    are missed.

    Returned: `HOTA`, `DetA`, `AssA`, `LocA` (means over the thresholds), `IDSW` (identity switches at 0.5), over all
    sequences together; `per_sequence`, the same for each sequence; `n`, `n_failed`, `coverage`.

    Raises TypeError or ValueError, naming the sequence, the frame and the track.

    >>> left, right = {"size": [1, 4], "counts": "022"}, {"size": [1, 4], "counts": "22"}
    >>> swapped = tracking([[{1: left, 2: right}, {1: right, 2: left}]], [[{1: left, 2: right}] * 2])
    >>> round(swapped["HOTA"], 3), swapped["DetA"], round(swapped["AssA"], 3), swapped["IDSW"]
    (0.577, 1.0, 0.333, 2)
    """
    answers, expected = check_columns(predictions, references)
    if not expected:
        raise ValueError("predictions and references are empty: there is nothing to score; give >= 1 sequence")
    counts = list(map(_count, answers, expected))
    n_failed = answers.count(None)
    return {
        **_compute_metrics(counts),
        "per_sequence": [_compute_metrics([count]) for count in counts],
        "n": len(counts),
        "n_failed": n_failed,
        "coverage": 1 - n_failed / len(counts),
    }


@dataclass(frozen=True)
class SequenceCounts:
    """The counts of a sequence. Arrays are (19,), with one number per threshold."""

    matched: Ints
    others: Ints
    """Number of masks without a match, on both sides."""
    similarity: Floats
    """Sum of the intersections over union of matched masks."""
    association: Floats
    """Sum over matched masks of the mutual coverage of their two tracks, each from 0 to 1."""
    switches: int


SUMMED = ("matched", "others", "similarity", "association")
"""The fields of `SequenceCounts` that are summed over sequences for `compute_metrics`."""


def sequence_counts(prediction: RawSequence | None, reference: RawSequence) -> SequenceCounts:
    """Return the counts of one sequence. Raises TypeError or ValueError."""
    ((answer,), (true,)) = check_columns([prediction], [reference])
    return _count(answer, true)


def compute_metrics(sums: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return `HOTA`, `DetA`, `AssA` and `LocA`, each (...), from the sums (..., 19) of the fields in `SUMMED`."""
    matched, others, similarity, association = (sums[name] for name in SUMMED)
    detection = matched / np.maximum(1, matched + others)
    assigned = association / np.maximum(1, matched)
    # Without matches, LocA is 1, as in TrackEval.
    location = np.where(matched > 0, similarity / np.maximum(1, matched), 1.0)
    by_threshold = {"HOTA": np.sqrt(detection * assigned), "DetA": detection, "AssA": assigned, "LocA": location}
    return {name: values.mean(axis=-1) for name, values in by_threshold.items()}


def _compute_metrics(counts: Sequence[SequenceCounts]) -> dict[str, Any]:
    sums = {name: np.sum([getattr(count, name) for count in counts], axis=0) for name in SUMMED}
    values = {name: float(value) for name, value in compute_metrics(sums).items()}
    return {**values, "IDSW": sum(count.switches for count in counts)}


@dataclass(frozen=True)
class _FrameOverlaps:
    """The tracks of one frame as indices, and the IoU of each true mask with each predicted mask."""

    true: Ints
    predicted: Ints
    iou: Floats


def _count(prediction: Sequence[Frame] | None, reference: Sequence[Frame]) -> SequenceCounts:
    prediction = [{}] * len(reference) if prediction is None else prediction
    # The number of frames of each track. Tracks are in the order of their first frames.
    lengths = [Counter(chain.from_iterable(frames)) for frames in (reference, prediction)]
    true_index, predicted_index = ({track: index for index, track in enumerate(tracks)} for tracks in lengths)
    n_true, n_predicted = (np.array(list(tracks.values()), dtype=np.int64) for tracks in lengths)
    frames = [
        _FrameOverlaps(
            np.array([true_index[track] for track in true], dtype=np.int64),
            np.array([predicted_index[track] for track in answer], dtype=np.int64),
            _iou(true, answer),
        )
        for true, answer in zip(reference, prediction, strict=True)
    ]
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


def _iou(true: Frame, answer: Frame) -> Floats:
    if not true or not answer:
        return np.zeros((len(true), len(answer)))
    return np.asarray(coco_mask.iou(list(true.values()), list(answer.values()), [0] * len(answer)))


def _alignment(frames: Sequence[_FrameOverlaps], n_true: Ints, n_predicted: Ints) -> Floats:
    """Return how well each true track fits each predicted track over the sequence, from 0 to 1."""
    shared = np.zeros((len(n_true), len(n_predicted)))
    for frame in frames:
        union = frame.iou.sum(axis=0)[None, :] + frame.iou.sum(axis=1)[:, None] - frame.iou
        tracks = np.ix_(frame.true, frame.predicted)
        shared[tracks] += np.divide(frame.iou, union, out=np.zeros_like(frame.iou), where=union > _EPSILON)
    return shared / (n_true[:, None] + n_predicted - shared)


def _switches(frames: Sequence[_FrameOverlaps], n_true: int) -> int:
    """Count how often a true track matches another predicted track than at its last match.

    Frames are matched one after the other. A pair of the previous frame persists while its overlap is at least one
    half.
    """
    no_prediction = -1
    last = np.full(n_true, no_prediction)
    just_now = np.full(n_true, no_prediction)
    switches = 0
    for frame in frames:
        if not frame.true.size or not frame.predicted.size:
            continue
        goes_on = frame.predicted[None, :] == just_now[frame.true][:, None]
        score = np.where(frame.iou >= _SWITCH_AT - _EPSILON, 1000 * goes_on + frame.iou, 0)
        rows, columns = linear_sum_assignment(score, maximize=True)
        is_match = score[rows, columns] > _EPSILON
        true, predicted = frame.true[rows[is_match]], frame.predicted[columns[is_match]]
        switches += int(np.count_nonzero((last[true] != no_prediction) & (last[true] != predicted)))
        just_now[:] = no_prediction
        last[true] = just_now[true] = predicted
    return switches


def check_columns(predictions: Any, references: Any) -> tuple[list[list[Frame] | None], list[list[Frame]]]:  # noqa: ANN401
    """Check both columns.

    Raises TypeError unless both are lists of sequences, and ValueError unless both are equally long.
    """
    for name, column in (("predictions", predictions), ("references", references)):
        _require_list(column, name, "one entry per sequence")
    if len(predictions) != len(references):
        raise ValueError(
            f"there are {len(predictions)} predictions for {len(references)} references; "
            "give one prediction per reference, None where there is no usable answer"
        )
    expected = [as_sequence(raw, f"references[{index}]") for index, raw in enumerate(references)]
    answers = [
        None if raw is None else as_prediction(raw, sequence, f"predictions[{index}]")
        for index, (raw, sequence) in enumerate(zip(predictions, expected, strict=True))
    ]
    return answers, expected


def as_sequence(raw: RawSequence, where: str) -> list[Frame]:
    """Return the frames of a sequence without masks that are None or empty. All masks must have the same size.

    Raises TypeError or ValueError; the message starts with `where`.
    """
    _require_list(raw, where, "one dict of masks per frame")
    frames = [_as_frame(frame, f"{where}[{index}]") for index, frame in enumerate(raw)]
    sizes = sorted({tuple(mask["size"]) for frame in frames for mask in frame.values()})
    if len(sizes) > 1:
        raise ValueError(f"{where}: has masks of the sizes {sizes}; give masks of one size, [height, width]")
    return frames


def as_prediction(raw: RawSequence, reference: Sequence[Frame], where: str) -> list[Frame]:
    """Return the frames of a predicted sequence. Their number and size must match the reference's frames."""
    frames = as_sequence(raw, where)
    if len(frames) != len(reference):
        raise ValueError(f"{where}: has {len(frames)} frames, its reference {len(reference)}; give {{}} for no mask")
    size, true_size = (
        next((mask["size"] for frame in sequence for mask in frame.values()), None) for sequence in (frames, reference)
    )
    if size and true_size and size != true_size:
        raise ValueError(f"{where}: has masks of {size}, its reference of {true_size}; give masks of the same size")
    return frames


def _require_list(raw: object, where: str, of: str) -> None:
    if raw is None or isinstance(raw, str | bytes | Mapping) or not hasattr(raw, "__len__"):
        raise TypeError(f"{where}: is of type {type(raw).__name__}; give a list with {of}")


def _as_frame(raw: object, where: str) -> Frame:
    if not isinstance(raw, Mapping):
        raise TypeError(f"{where}: is of type {type(raw).__name__}; give a dict from track id to mask")
    if len(set(map(str, raw))) < len(raw):
        raise ValueError(f"{where}: has an id as number and as text, {sorted(map(str, raw))}; give one kind of ids")
    measured = {str(track): _as_mask(mask, f"{where}[{track!r}]") for track, mask in raw.items() if mask is not None}
    return {track: mask for track, (area, mask) in measured.items() if area}


def _as_mask(raw: object, where: str) -> tuple[int, dict[str, Any]]:
    """Return the number of pixels of a mask, and the mask's encoding."""
    if not isinstance(raw, Mapping) or not {"size", "counts"} <= raw.keys():
        raise TypeError(f"{where}: is {raw!r:.60}; {_ADVICE}")
    size, counts = np.asarray(raw["size"]), raw["counts"]
    if size.shape != (2,) or size.dtype.kind not in "iu" or size.min() < 1:
        raise ValueError(f"{where}: size is {raw['size']!r}; give [height, width] in pixels")
    if not isinstance(counts, str | bytes):
        raise TypeError(f"{where}: counts is of type {type(counts).__name__}; {_ADVICE}")
    encoded = counts.encode("utf-8") if isinstance(counts, str) else counts
    height, width = size.tolist()
    runs = _runs(encoded)
    if runs is None or runs.min() < 0 or runs.sum() != height * width:
        raise ValueError(f"{where}: counts does not fill the {height} x {width} pixels of size; {_ADVICE}")
    return int(runs[1::2].sum()), {"size": [height, width], "counts": encoded}


def _runs(counts: bytes) -> Ints | None:
    """Return the run lengths of a compressed string, background first, or None if the string is invalid.

    pycocotools does not check its input. The format has groups of five bits in characters from 48 on, low groups first,
    in two's complement. Bit 5 is set if the run continues. From the fourth run on, a value is the difference to the run
    two before.
    """
    symbols = np.frombuffer(counts, np.uint8).astype(np.int64) - 48
    if not symbols.size or symbols.min() < 0 or symbols.max() > 63 or symbols[-1] > 31:
        return None
    last = np.flatnonzero(symbols < 32)
    first = np.append(0, last[:-1] + 1)
    length = last - first + 1
    if length.max() > _LONGEST_CODE:
        return None
    runs = np.add.reduceat((symbols & 31) << 5 * (np.arange(symbols.size) - first.repeat(length)), first)
    runs -= (symbols[last] >> 4) << 5 * length
    runs[1::2].cumsum(out=runs[1::2])
    runs[2::2].cumsum(out=runs[2::2])
    return runs
