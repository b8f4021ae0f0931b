"""Compute DAVIS's region similarity J and contour accuracy F, on masks as arrays or COCO run lengths.

J is the intersection over union of two masks. F is the F-measure of their contours. A contour pixel counts as found if
the other contour has a pixel within a small radius. Both scores equal the evaluation of DAVIS 2017 bit for bit (Perazzi
et al., CVPR 2016; arXiv 1704.00675), but are computed inside the masks' bounding boxes and on run lengths. All scores
range from 0 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco_mask

from .masks import Bools, Ints, Mask, RawMask, RunMask, Window, as_masks

TOLERANCE = 0.008
_RECALL_AT = 0.5
_BINS = 4

RawSequence = Sequence[RawMask | None]


def region_j(prediction: RawMask, reference: RawMask) -> float:
    """Return the region similarity J of two masks of the same size. J is 1 if both are empty.

    A mask is an array or CPU tensor of shape (height, width) with booleans or integers, or a COCO RLE dict. Nonzero
    values are foreground. Raises TypeError or ValueError for other inputs.

    >>> region_j([[1, 1, 0]], [[0, 1, 1]]) == 1 / 3
    True
    >>> region_j({"size": [1, 3], "counts": [0, 2, 1]}, [[1, 1, 0]])
    1.0
    """
    return _region_j(*_pair(prediction, reference))


def boundary_f(prediction: RawMask, reference: RawMask, tolerance: float = TOLERANCE) -> float:
    """Return the contour accuracy F of two masks of the same size. `region_j` describes the forms of masks.

    A `tolerance` below 1 is a fraction of the image diagonal (rounded up to whole pixels). From 1 on it is in pixels.
    Two masks without a contour (empty, or the full image) score 1. If only one mask has a contour, they score 0.

    >>> square, moved = np.zeros((50, 50), bool), np.zeros((50, 50), bool)
    >>> square[10:20, 10:20] = moved[10:20, 12:22] = True
    >>> boundary_f(square, moved, tolerance=2), round(boundary_f(square, moved, tolerance=1), 3)
    (1.0, 0.55)
    """
    masks = _pair(prediction, reference)
    return _boundary_f(*masks, bound_pixels(masks[1].size, tolerance))


def track_j(prediction: RawSequence, reference: RawSequence) -> list[float]:
    """Return J of each frame of a track, or 0 if the prediction is None. Faster than `region_j` for many run lengths.

    >>> track_j([[[1, 1, 0]], None], [[[0, 1, 0]], [[0, 0, 0]]])
    [0.5, 0.0]
    """
    true = as_reference(reference, "reference")
    masks = as_prediction(prediction, true, "prediction")
    return [0.0 if mask is None else _region_j(mask, other) for mask, other in zip(masks, true, strict=True)]


def bound_pixels(size: tuple[int, int], tolerance: float = TOLERANCE) -> int:
    """Return the radius in pixels within which contours match, for an image of (height, width).

    >>> bound_pixels((1080, 1920)), bound_pixels((480, 854)), bound_pixels((480, 854), 3)
    (18, 8, 3)
    """
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 < tolerance < math.inf:
        raise ValueError(f"tolerance is {tolerance!r}; give a fraction of the diagonal below 1, or integer pixels")
    if tolerance >= 1:
        if tolerance != int(tolerance):
            raise ValueError(f"tolerance is {tolerance!r}; from 1 on it is a number of pixels and must be an integer")
        return int(tolerance)
    return math.ceil(tolerance * np.linalg.norm(size))


def _pair(prediction: RawMask, reference: RawMask) -> tuple[Mask, Mask]:
    predicted, true = as_masks([prediction, reference], ["prediction", "reference"])
    _check_sizes(predicted, true, "prediction")
    return predicted, true


def _check_sizes(prediction: Mask, reference: Mask, where: str) -> None:
    if tuple(prediction.size) != tuple(reference.size):
        (h, w), (height, width) = prediction.size, reference.size
        raise ValueError(f"{where}: is {h} x {w} pixels, the reference {height} x {width}; resize it (nearest pixel)")


def _region_j(prediction: Mask, reference: Mask) -> float:
    intersection = _intersection(prediction, reference)
    union = prediction.area + reference.area - intersection
    return intersection / union if union else 1.0


def _intersection(prediction: Mask, reference: Mask) -> int:
    """Count the pixels that are foreground in both masks."""
    if isinstance(prediction, RunMask) and isinstance(reference, RunMask):
        # Pass one pair per call, since pycocotools 2.0 with numpy 2 takes at most 255 masks at once.
        return int(coco_mask.area(coco_mask.merge([prediction.rle, reference.rle], intersect=True)))
    if prediction.box is None or reference.box is None:
        return 0
    a, b = prediction.box, reference.box
    window = Window(max(a.y0, b.y0), max(a.x0, b.x0), min(a.y1, b.y1), min(a.x1, b.x1))
    if window.y0 >= window.y1 or window.x0 >= window.x1:
        return 0
    return int(np.count_nonzero(prediction.window(window) & reference.window(window)))


def _boundary_f(prediction: Mask, reference: Mask, radius: int) -> float:
    window = _window_around(prediction, reference)
    if window is None:
        return 1.0
    predicted, true = prediction.window(window), reference.window(window)
    if true.strides[0] < true.strides[1]:  # run lengths decode column by column, which does not affect J and F
        predicted, true = predicted.T, true.T
    predicted, true = _contour(predicted), _contour(true)
    n_predicted, n_true = int(np.count_nonzero(predicted)), int(np.count_nonzero(true))
    if not n_predicted or not n_true:
        return 1.0 if n_predicted == n_true else 0.0
    points = _keys(predicted, radius), _keys(true, radius)
    precision = _count_near(*points, true, radius) / n_predicted
    recall = _count_near(*points[::-1], predicted, radius) / n_true
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def _window_around(prediction: Mask, reference: Mask) -> Window | None:
    """Return a window around both boxes with a margin of one pixel.

    A contour pixel may lie above or left of its object.

    The margin need not include the radius, since contour pixels are searched only from other contour pixels. `_contour`
    has a special rule for the image's last row and column. A window that ends before them is not affected: its last row
    and column are background.
    """
    boxes = [box for box in (prediction.box, reference.box) if box is not None]
    if not boxes:
        return None
    y0, x0 = min(box.y0 for box in boxes), min(box.x0 for box in boxes)
    y1, x1 = max(box.y1 for box in boxes), max(box.x1 for box in boxes)
    height, width = reference.size
    return Window(max(y0 - 1, 0), max(x0 - 1, 0), min(y1 + 1, height), min(x1 + 1, width))


def _contour(mask: Bools) -> Bools:
    """Return the pixels that differ from the pixel right, below, or right below (DAVIS' seg2bmap at the same size)."""
    contour = np.zeros(mask.shape, bool)
    right, down = mask[:, :-1] ^ mask[:, 1:], mask[:-1] ^ mask[1:]
    contour[:-1, :-1] = right[:-1] | right[1:] | down[:, :-1]
    contour[-1, :-1] = right[-1]
    contour[:-1, -1] = down[:, -1]
    return contour


def _keys(contour: Bools, radius: int) -> Ints:
    """Return each pixel as the number row * (width + radius) + column, in ascending order.

    So a part of a row is a range of numbers.

    Between rows, `radius` numbers are left out. So a range that leaves the image at the side does not reach another
    row.
    """
    width = contour.shape[1]
    flat = np.flatnonzero(contour).astype(np.int64)
    keys: Ints = flat + flat // width * radius
    return keys


def _count_near(points: Ints, targets: Ints, contour: Bools, radius: int) -> int:
    """Count the `points` with a pixel of `targets` within the Euclidean `radius`.

    `contour` is the image of `targets`.
    """
    stride = contour.shape[1] + radius
    if points.size > contour.size // 16:
        # So dense a contour is noise. Dilating the whole image is faster than looking up so many points row by row.
        rows, columns = np.divmod(points, stride)
        return int(np.count_nonzero(_dilated(contour, radius)[rows, columns]))
    ends, unmatched = np.append(targets, np.iinfo(np.int64).max), points
    for step in sorted(range(-radius, radius + 1), key=abs):  # one row of the disk per step; most points are found soon
        half = math.isqrt(radius * radius - step * step)
        first_key = unmatched + (step * stride - half)
        unmatched = unmatched[ends[np.searchsorted(targets, first_key)] > first_key + 2 * half]
        if not unmatched.size:
            break
    return int(points.size - unmatched.size)


def _dilated(contour: Bools, radius: int) -> Bools:
    """Return the pixels with a contour pixel within `radius`, by the distance to the next contour pixel in each row."""
    height, width = contour.shape
    columns = np.arange(width, dtype=np.int32)
    beyond = np.int32(2 * radius + width)
    before = columns - np.maximum.accumulate(np.where(contour, columns, -beyond), axis=1)
    after = np.minimum.accumulate(np.where(contour, columns, beyond)[:, ::-1], axis=1)[:, ::-1] - columns
    gap = np.minimum(before, after)
    is_near = np.zeros(contour.shape, bool)
    for step in range(min(radius, height - 1) + 1):
        reach = gap <= math.isqrt(radius * radius - step * step)
        is_near[step:] |= reach[: height - step]
        is_near[: height - step] |= reach[step:]
    return is_near


def sequence_statistics(values: Sequence[float] | NDArray[np.float64]) -> dict[str, float]:
    """Return DAVIS' summary of one object's scores by frame: mean, recall (share above 0.5) and decay.

    Decay is the mean of the first quarter of the frames minus the mean of the last (quarters share their end
    frames).

    >>> sequence_statistics([1.0, 0.75, 0.5, 0.25])
    {'mean': 0.625, 'recall': 0.5, 'decay': 0.5}
    """
    scores = np.asarray(values, np.float64)
    if scores.ndim != 1 or not scores.size:
        raise ValueError(f"values: has the shape {scores.shape}; give one score per frame, at least one")
    # DAVIS stores these in 8 bits, which overflow in sequences of more than 256 frames. Here they are full integers.
    ids = (np.round(np.linspace(1, scores.size, _BINS + 1) + 1e-10) - 1).astype(int)
    first, last = scores[: ids[1] + 1], scores[ids[-2] : ids[-1] + 1]
    return {
        "mean": float(scores.mean()),
        "recall": float((scores > _RECALL_AT).mean()),
        "decay": float(first.mean() - last.mean()),
    }


def region_boundary(
    predictions: Sequence[RawSequence | None], references: Sequence[RawSequence], *, tolerance: float = TOLERANCE
) -> dict[str, Any]:
    """Score object tracks. `predictions[i]` answers `references[i]`: one mask per scored frame, in order of time.

    A prediction of None is a track without an answer, and a frame of None is a frame without a mask. Both have J and
    F of 0, even where the reference is empty (an empty mask is an answer, and right there). Masks: see `region_j`.
    DAVIS leaves out the first and last frame of a semi-supervised track, so pass only the frames that count.

    Returned:
    * `J_mean`, `J_recall`, `J_decay`, `F_mean`, `F_recall`, `F_decay`, `J&F_mean`: the means over the objects
      (DAVIS) of the values of `sequence_statistics`; decay lies between -1 and 1.
    * `frame_J_mean`, `frame_F_mean`, `frame_J&F_mean`: the means over all frames of all objects.
    * `per_object`: per track the same seven scores, and `J` and `F`, the lists of its frames' scores.
    * `n`, `n_failed`, `coverage`: the number of tracks, the number that are None, and the fraction with an answer.
    * `n_frames`, `n_failed_frames`, `frame_coverage`: the same for frames; all frames of a failed track are failed.

    Raises TypeError or ValueError, naming the track and the frame.

    >>> empty, full = [[0, 0], [0, 0]], [[1, 1], [1, 1]]
    >>> result = region_boundary([[full, empty], None], [[full, empty], [empty]])
    >>> result["J_mean"], round(result["frame_J_mean"], 3), result["coverage"], result["n_failed_frames"]
    (0.5, 0.667, 0.5, 1)
    """
    check_columns(predictions, references)
    if not len(references):
        raise ValueError("predictions and references are empty: there is nothing to score; give >= 1 object track")
    pairs = enumerate(zip(predictions, references, strict=True))
    tracks = [_score_track(*pair, index, tolerance) for index, pair in pairs]
    objects = [metrics for metrics, _ in tracks]
    frames_j, frames_f = (np.concatenate([metrics[name] for metrics in objects]) for name in "JF")
    n_failed = sum(prediction is None for prediction in predictions)
    n_failed_frames = sum(failed for _, failed in tracks)
    means = {name: float(np.mean([metrics[name] for metrics in objects])) for name in objects[0] if name not in "JF"}
    return {
        **means,
        "frame_J_mean": float(frames_j.mean()),
        "frame_F_mean": float(frames_f.mean()),
        "frame_J&F_mean": float((frames_j.mean() + frames_f.mean()) / 2),
        "per_object": objects,
        "n": len(objects),
        "n_failed": n_failed,
        "coverage": 1 - n_failed / len(objects),
        "n_frames": frames_j.size,
        "n_failed_frames": n_failed_frames,
        "frame_coverage": 1 - n_failed_frames / frames_j.size,
    }


def check_columns(predictions: Any, references: Any) -> tuple[Sequence[Any], Sequence[Any]]:  # noqa: ANN401
    """Check both columns.

    Raises TypeError unless both are lists of tracks, and ValueError unless both are equally long.
    """
    for name, column in (("predictions", predictions), ("references", references)):
        _require_list(column, name, "one entry per object track")
    if len(predictions) != len(references):
        raise ValueError(
            f"there are {len(predictions)} predictions for {len(references)} references; "
            "give one prediction per reference, None where there is no usable answer"
        )
    return predictions, references


def _require_list(raw: object, where: str, of: str) -> None:
    if raw is None or isinstance(raw, str | bytes | Mapping) or not hasattr(raw, "__len__"):
        raise TypeError(f"{where}: is of type {type(raw).__name__}; give a list with {of}")


def as_track(raw: RawSequence, where: str) -> list[Mask | None]:
    """Return the masks of a track. A frame without a mask has None.

    Raises TypeError or ValueError starting with `where`.
    """
    _require_list(raw, where, "one mask per frame")
    numbers = [index for index, mask in enumerate(raw) if mask is not None]
    masks = as_masks([raw[index] for index in numbers], [f"{where}[{index}]" for index in numbers])
    mask_of: dict[int, Mask] = dict(zip(numbers, masks, strict=True))
    return [mask_of.get(index) for index in range(len(raw))]


def as_reference(raw: RawSequence, where: str) -> list[Mask]:
    """Return the masks of a reference track. It needs at least one frame and a mask in each frame."""
    masks = [mask for mask in as_track(raw, where) if mask is not None]
    if not masks or len(masks) != len(raw):
        raise ValueError(f"{where}: has {len(masks)} masks in {len(raw)} frames; give a mask (maybe empty) per frame")
    return masks


def as_prediction(raw: RawSequence, reference: Sequence[Mask], where: str) -> list[Mask | None]:
    """Return the masks of a predicted track. Their number and size must match the reference's masks."""
    masks = as_track(raw, where)
    if len(masks) != len(reference):
        raise ValueError(f"{where}: has {len(masks)} frames, its reference {len(reference)}; give None for no mask")
    for index, (mask, true) in enumerate(zip(masks, reference, strict=True)):
        if mask is not None:
            _check_sizes(mask, true, f"{where}[{index}]")
    return masks


def _score_track(
    prediction: RawSequence | None, reference: RawSequence, index: int, tolerance: float
) -> tuple[dict[str, Any], int]:
    """Return the scores of a track, as in `per_object`, and the number of its frames without a mask."""
    true = as_reference(reference, f"references[{index}]")
    masks = [None] * len(true) if prediction is None else as_prediction(prediction, true, f"predictions[{index}]")
    j, f = np.zeros(len(true)), np.zeros(len(true))
    for frame, (mask, target) in enumerate(zip(masks, true, strict=True)):
        if mask is not None:
            j[frame] = _region_j(mask, target)
            f[frame] = _boundary_f(mask, target, bound_pixels(target.size, tolerance))
    statistics = {"J": sequence_statistics(j), "F": sequence_statistics(f)}
    metrics: dict[str, Any] = {f"{of}_{name}": value for of, part in statistics.items() for name, value in part.items()}
    metrics |= {"J&F_mean": (metrics["J_mean"] + metrics["F_mean"]) / 2, "J": j.tolist(), "F": f.tolist()}
    return metrics, masks.count(None)
