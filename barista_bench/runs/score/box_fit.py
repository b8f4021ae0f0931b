"""Check that the boxes of a run's answers are read in the format in which they were written.

A wrong scale or order gives readable answers that are all wrong, and no status shows it. This module reads answers
again in every known format and compares them with the reference, which parsers never see. It describes the run, and
changes no score.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import sqrt
from typing import Final

from barista_bench.core.boxes import BOX_ORDERS, BoxFormat, Xyxy
from barista_bench.core.guarding import guard
from barista_bench.core.task import Example, Prediction, Task
from barista_bench.metrics.interaction_f1.scoring import box_iou
from barista_bench.runs.score.results import FEWEST_BOXES, BoxFit
from barista_bench.runs.score.samples import ScoredSample

KNOWN_FORMATS: Final = tuple(BoxFormat(order, scale) for order in BOX_ORDERS for scale in (1000, 1, None, 100))
MOST_EXAMPLES = 200
"""Examples that are looked at, evenly spread over the run."""
MOST_BOXES = 50
"""Boxes of one image that are looked at, of an answer and of the reference."""
LONGEST = 20_000
"""Characters of an answer that is looked at."""
GOOD_IOU = 0.5
"""Mean best IoU from which on boxes fit as they are read."""
LEAST_IOU = 0.35
"""Mean best IoU in another format from which on it can be the right one."""
LEAST_GAIN = 0.25
"""Minimum gain in mean best IoU of another format, which must also be twice as high and gain three standard errors."""
TIE = 0.02
"""Mean best IoU below which two formats are as good: the one with the scale that is used counts."""
ROOM = 0.05
"""Fraction of the frame's side by which a box may reach out of it."""

Boxes = dict[int, list[Xyxy]]
"""Boxes by image, in pixels."""


def box_fit(task: Task, box_format: BoxFormat, samples: Sequence[ScoredSample]) -> BoxFit | None:
    """Return how the boxes of a run, read in `box_format`, fit; None if too few answers have boxes.

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
    """Whether an answer may have boxes: the question contains the size of a frame, and there is an answer."""
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
    """Return the mean best IoU in another format, and as read, over answers with boxes in either; None unless far
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
    """Return the true and the answered boxes of a sample, as they are drawn."""
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
    """Return the mean of the best IoU over the fewer of true and answered boxes; None if either is empty.

    So neither missed nor invented objects hide how well the others fit.
    """
    if not true or not answered:
        return None
    ious = []
    for image in true.keys() & answered.keys():
        fewer, others = sorted((true[image], answered[image]), key=len)
        ious += [max(box_iou(box, other) for other in others) for box in fewer]
    return statistics.fmean(ious) if ious else 0.0


def _odd_counts(example: Example, answered: Boxes) -> tuple[int, int, int]:
    """Return the boxes of an answer, those narrower or lower than a pixel, and those that reach out of the frame."""
    boxes = [box for boxes in answered.values() for box in boxes]
    width, height = _size(example) or (1, 1)
    without_area = sum(x1 - x0 < 1 or y1 - y0 < 1 for x0, y0, x1, y1 in boxes)
    edges = [max(-x0 / width, -y0 / height, x1 / width - 1, y1 / height - 1) for x0, y0, x1, y1 in boxes]
    return len(boxes), without_area, sum(edge > ROOM for edge in edges)
