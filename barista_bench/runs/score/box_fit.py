"""Check that the boxes of a run's answers are read in the format in which they were written.

With a wrong scale or order, answers are readable but all wrong, and no status shows this. This module reads answers
again in every known format and compares them with the reference. Parsers never see the reference. The result describes
the run and does not change scores.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import sqrt
from typing import Final

from barista_bench.core.boxes import BOX_ORDERS, BoxFormat, Xyxy
from barista_bench.core.example import Example, Prediction
from barista_bench.core.guarding import guard
from barista_bench.core.task import Task
from barista_bench.metrics.interaction_f1.scoring import box_iou
from barista_bench.runs.score.results import FEWEST_BOXES, BoxFit
from barista_bench.runs.score.samples import ScoredSample

KNOWN_FORMATS: Final = tuple(BoxFormat(order, scale) for order in BOX_ORDERS for scale in (1000, 1, None, 100))
MOST_EXAMPLES = 200
"""Maximum number of examples that are checked, evenly spread over the run."""
MOST_BOXES = 50
"""Maximum number of boxes per image that are checked, for answer and reference each."""
LONGEST = 20_000
"""Maximum characters of an answer that is checked."""
GOOD_IOU = 0.5
"""Minimum mean best IoU for the format in use to count as right."""
LEAST_IOU = 0.35
"""Minimum mean best IoU for another format to count as the right format."""
LEAST_GAIN = 0.25
"""Minimum gain in mean best IoU of another format.

Its IoU must also be twice as high and gain three standard errors.
"""
TIE = 0.02
"""Difference in mean best IoU below which two formats tie. The format with the scale in use then counts."""
ROOM = 0.05
"""Fraction of the frame's side by which a box may extend beyond the frame."""

Boxes = dict[int, list[Xyxy]]
"""Maps each image to its boxes in pixels."""


def box_fit(task: Task, box_format: BoxFormat, samples: Sequence[ScoredSample]) -> BoxFit | None:
    """Return how well the boxes of a run fit if read in `box_format`, or None if too few answers have boxes.

    Raises TaskError if the task cannot return its boxes.
    """
    chosen = _spread([sample for sample in samples if _has_boxes(sample)])
    boxes = [_boxes(task, sample.example, sample.prediction) for sample in chosen]
    ious = [_iou(true, answered) for true, answered in boxes]
    answered_ious = [iou for iou in ious if iou is not None]
    better: tuple[float, float, str] | None = None
    if not answered_ious or statistics.fmean(answered_ious) < GOOD_IOU:
        for other in sorted(KNOWN_FORMATS, key=lambda other: (other.scale != box_format.scale, other.order)):
            gain = _gain(ious, _read_again(task, other, chosen)) if other != box_format else None
            if gain and (better is None or gain[0] > better[0] + TIE):
                better = (*gain, str(other))
    if better is None and len(answered_ious) < FEWEST_BOXES:
        return None
    counts = [_odd_counts(sample.example, answered) for sample, (_, answered) in zip(chosen, boxes, strict=True)]
    total, without_area, outside = map(sum, zip(*counts, strict=True))
    return BoxFit(
        format=str(box_format),
        answers=len(chosen),
        mean_best_iou=better[1] if better else statistics.fmean(answered_ious),
        boxes=total,
        without_area=without_area,
        outside=outside,
        better_format=better[2] if better else None,
        better_iou=better[0] if better else None,
    )


def _has_boxes(sample: ScoredSample) -> bool:
    """Return whether a sample may have boxes: it has an answer, and the question contains a frame size."""
    text = sample.record.text
    return sample.is_counted and bool(text) and len(text or "") <= LONGEST and _size(sample.example) is not None


def _size(example: Example) -> tuple[int, int] | None:
    width, height = example.inputs.get("frame_width"), example.inputs.get("frame_height")
    is_known = isinstance(width, int) and isinstance(height, int) and min(width, height) > 0
    return (width, height) if is_known else None  # type: ignore[return-value]


def _spread(samples: Sequence[ScoredSample]) -> list[ScoredSample]:
    """Return one sample per example, evenly spread."""
    by_example = {sample.example.example_id: sample for sample in samples}
    return list(by_example.values())[:: max(1, -(-len(by_example) // MOST_EXAMPLES))]


def _read_again(task: Task, box_format: BoxFormat, samples: Iterable[ScoredSample]) -> list[float | None]:
    """Return the mean best IoU of each answer, read in a format."""
    ious = []
    for sample in samples:
        with guard(task, "parse", sample.example):
            parsed = task.parse(sample.record.text or "", sample.example.inputs, box_format)
        ious.append(_iou(*_boxes(task, sample.example, parsed if isinstance(parsed, Prediction) else None)))
    return ious


def _gain(ious: Sequence[float | None], other_ious: Sequence[float | None]) -> tuple[float, float] | None:
    """Compare another format with the format in use, over answers with boxes in either format.

    Return the mean best IoU in the other format and in the format in use, or None if the other format is not far
    better.
    """
    pairs = [(own or 0.0, other or 0.0) for own, other in zip(ious, other_ious, strict=True) if own is not other]
    if len(pairs) < FEWEST_BOXES:
        return None
    own_mean, other_mean = (statistics.fmean(column) for column in zip(*pairs, strict=True))
    error = statistics.stdev(other - own for own, other in pairs) / sqrt(len(pairs))
    is_high = other_mean >= max(LEAST_IOU, 2 * own_mean)
    is_gain = other_mean - own_mean >= max(LEAST_GAIN, 3 * error)
    return (other_mean, own_mean) if is_high and is_gain else None


def _boxes(task: Task, example: Example, prediction: Prediction | None) -> tuple[Boxes, Boxes]:
    """Return the true boxes and the answered boxes of a sample, as they are drawn."""
    with guard(task, "overlays", example):
        overlays = task.overlays(example, prediction)
    true: Boxes = defaultdict(list)
    answered: Boxes = defaultdict(list)
    for overlay in overlays:
        if overlay.mask is None and overlay.kind != "given":
            boxes = (true if overlay.kind == "reference" else answered)[overlay.image]
            if len(boxes) < MOST_BOXES:
                boxes.append(overlay.box)
    return true, answered


def _iou(true: Boxes, answered: Boxes) -> float | None:
    """Return the mean best IoU over the true boxes or the answered boxes, whichever are fewer. None if either is empty.

    So missed or invented objects do not hide how well the other boxes fit.
    """
    if not true or not answered:
        return None
    ious = []
    for image in true.keys() & answered.keys():
        fewer, others = sorted((true[image], answered[image]), key=len)
        ious += [max(box_iou(box, other) for other in others) for box in fewer]
    return statistics.fmean(ious) if ious else 0.0


def _odd_counts(example: Example, answered: Boxes) -> tuple[int, int, int]:
    """Count the boxes of an answer, the boxes under a pixel in width or height, and the boxes that leave the frame."""
    boxes = [box for boxes in answered.values() for box in boxes]
    width, height = _size(example) or (1, 1)
    without_area = sum(x1 - x0 < 1 or y1 - y0 < 1 for x0, y0, x1, y1 in boxes)
    edges = [max(-x0 / width, -y0 / height, x1 / width - 1, y1 / height - 1) for x0, y0, x1, y1 in boxes]
    return len(boxes), without_area, sum(edge > ROOM for edge in edges)
