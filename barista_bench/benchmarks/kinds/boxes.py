"""Define tasks whose answers are boxes on one image: reading, scores, failures, explanations and overlays.

An answer is a JSON object `{"bboxes": [[...], ...]}` in the model's box format, optionally with `scores`, or four
numbers in a row. The score is COCO's mean average precision: each example is an image, and its `category` is the label.
"""

from __future__ import annotations

import json
import random
import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from barista_bench.benchmarks.kinds.box_answers import (
    CENTRE_ON_GRID,
    FrameSize,
    box_failures,
    box_schema,
    box_size,
    box_text,
    frame_size,
    random_grid_box,
    read_pixels,
    write_grid,
)
from barista_bench.benchmarks.parsing import NOTHING_READ, cut_object, strip_fence
from barista_bench.core.boxes import BoxFormat, as_xyxy, four_numbers, write_box
from barista_bench.core.display import AnswerFailure, Explanation, Overlay
from barista_bench.core.example import (
    Example,
    Fields,
    Inputs,
    ParseError,
    PixelBox,
    Prediction,
    Scored,
    TypedFields,
    evidence_objects,
)
from barista_bench.core.prompt import object_schema
from barista_bench.core.statistics import Floats, Metrics, SampleStatistics
from barista_bench.core.task import Task
from barista_bench.files.reading import json_value
from barista_bench.metrics.interaction_f1.scoring import box_iou, greedy_pairs
from barista_bench.metrics.mean_ap.inputs import RawImage
from barista_bench.metrics.mean_ap.scoring import Evaluated, compute_metrics, evaluate_images, spread_of, tables

_INTEGERS = re.compile(r"(?<![\d.])(-?\d{1,9})" + r"\s*,\s*(-?\d{1,9})" * 3 + r"(?!\d|\.\d)")
_NUMBER = r"(-?\d{1,9}(?:\.\d{1,9})?)"
FRACTIONS = re.compile(r"(?<![\d.])" + rf"{_NUMBER}\s*,\s*" * 3 + rf"{_NUMBER}(?!\.?\d)")
NO_BOXES = ParseError("the answer holds neither a JSON object with bboxes nor four numbers in a row")


def read_boxes(text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
    """Read a JSON object with a list `bboxes` (or else `boxes`), or else every run of four numbers in the text.

    In the list, entries with at least four numbers count, and only their first four numbers are used. Numbers are
    rounded to integers unless the model writes fractions. A list `scores` in the same object counts if it has a number
    from 0 to 1 for every entry. A truncated object is read up to its last complete box, since half a number can look
    like a complete number.
    """
    body = strip_fence(text)
    decoded, unfinished = json_value(body), 0
    answer: Mapping[str, object] = decoded if isinstance(decoded, dict) else {}
    if not answer and (cut := cut_object(text, "bboxes") or cut_object(text, "boxes")):
        answer, unfinished = {**cut[1], "bboxes": cut[0].entries}, cut[0].unfinished
        if not cut[0].entries:
            return NO_BOXES
    entries = listed_boxes(answer)
    if entries is None:
        pattern = FRACTIONS if box_format.scale == 1 else _INTEGERS
        answer, entries = {}, [[float(number) for number in match.groups()] for match in pattern.finditer(body)]
    if not entries and not answer:
        return NO_BOXES
    parsed = [four_numbers(entry[:4]) if isinstance(entry, list) else None for entry in entries]
    boxes = [numbers for numbers in parsed if numbers is not None]
    if entries and not boxes:
        return NOTHING_READ
    if box_format.scale != 1:
        boxes = [[float(round(number)) for number in numbers] for numbers in boxes]
    dropped = len(entries) - len(boxes) + unfinished
    value: Fields = {"boxes": [read_pixels(numbers, inputs, box_format) for numbers in boxes]}
    if "scores" in answer:
        scores = _confidences(answer["scores"], len(entries))
        if scores is None:
            dropped += 1
        else:
            value["scores"] = [score for score, numbers in zip(scores, parsed, strict=True) if numbers is not None]
    return Prediction(value, dropped)


def listed_boxes(answer: Mapping[str, object]) -> list[object] | None:
    entries = answer["bboxes"] if "bboxes" in answer else answer.get("boxes")
    return entries if isinstance(entries, list) else None


def _confidences(scores: object, count: int) -> list[float] | None:
    """Return `scores` if they are `count` numbers in 0..1, or else None."""
    if not isinstance(scores, list) or len(scores) != count:
        return None
    is_usable = all(isinstance(s, int | float) and not isinstance(s, bool) and 0 <= s <= 1 for s in scores)
    return [float(s) for s in scores] if is_usable else None


SPREAD_ORDERS = 20
"""The number of random orders for the spread of the mean average precision. The bounds hold for all orders."""


class AnsweredBoxes(TypedFields):
    """A prediction: boxes [x0, y0, x1, y1] in pixels, and optionally a confidence from 0 to 1 for each box."""

    boxes: list[PixelBox]
    scores: list[float] | None = None

    def as_image(self, category: str) -> RawImage:
        scores = {"scores": self.scores} if self.boxes and self.scores is not None else {}
        return {"boxes": self.boxes, "labels": category, **scores}


class BoxStatistics(SampleStatistics):
    """COCO's mean average precision, and further scores. It is not a function of sums over samples.

    All confidences are 1, as in the release, unless every sample with boxes also has `scores`, which only the paper's
    protocol reads. A detector's confidences rank its boxes over all images. A mixture would compare answers with
    confidences to answers without.

    Args:
        answers: (S,) the answered boxes of each sample, which is one image; None without a readable answer.
        references: (S,) the true boxes of each sample.
    """

    def __init__(self, answers: Sequence[RawImage | None], references: Sequence[RawImage]) -> None:
        self._answers, self._references = answers, references

    @property
    def size(self) -> int:
        return len(self._references)

    @cached_property
    def evaluation(self) -> Evaluated:
        """Return the evaluation of all boxes, matched in torchmetrics' single precision."""
        has_scores = all("scores" in answer for answer in self._answers if answer and answer["boxes"])
        without_scores = [answer and {"boxes": answer["boxes"], "labels": answer["labels"]} for answer in self._answers]
        return evaluate_images(self._answers if has_scores else without_scores, self._references, rounding="float32")

    def compute_metrics(self, weights: Floats) -> Metrics:
        is_plain = weights.shape[0] == 1 and bool((weights == 1).all())
        return compute_metrics(self.evaluation, None if is_plain else weights)

    def scores(self) -> dict[str, Floats]:
        """Return the mean, over answered boxes, of the best IoU with a true box; 0 for an unreadable or empty
        answer.
        """
        best_ious = [
            [max(box_iou(box, true) for true in reference["boxes"]) for box in answer["boxes"]] if answer else []
            for answer, reference in zip(self._answers, self._references, strict=True)
        ]
        return {"mean_best_iou": np.array([sum(ious) / len(ious) if ious else 0.0 for ious in best_ious])}

    def subset(self, samples: Sequence[int]) -> BoxStatistics:
        return BoxStatistics(
            [self._answers[index] for index in samples], [self._references[index] for index in samples]
        )

    def tables(self) -> dict[str, Any]:
        spread = spread_of(self.evaluation, orders=SPREAD_ORDERS)
        return {**tables(self.evaluation), "tie_spread": {name: spread[name] for name in ("map", "map_50", "map_75")}}


class BoxTask(Task):
    """A task that asks for all boxes of something on one frame. `inputs` contain the frame's size (`FrameSize`)."""

    primary: ClassVar[str] = "map"
    primary_note: ClassVar[str] = (
        "Mean average precision of the boxes, over classes and IoU thresholds from 0.5 to 0.95."
    )
    sample_score: ClassVar[str] = "mean_best_iou"
    answer_note: ClassVar[str] = "JSON: boxes"
    inputs_type: ClassVar[type[Inputs]] = FrameSize

    @abstractmethod
    def subject(self, example: Example) -> str:
        """Return, in words, the thing that the boxes show."""

    @abstractmethod
    def category(self, example: Example) -> str:
        """Return the label of the example, by which mean average precision is averaged."""

    @abstractmethod
    def true_boxes(self, example: Example) -> list[PixelBox]:
        """Return the true boxes, [x0, y0, x1, y1] in pixels."""

    def parse(self, text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
        return read_boxes(text, inputs, box_format)

    def statistics(self, samples: Sequence[Scored]) -> BoxStatistics:
        """Return COCO's scores in the given order, in torchmetrics' single precision; see `BoxStatistics`."""
        categories = [self.category(sample.example) for sample in samples]
        return BoxStatistics(
            [
                AnsweredBoxes.read(sample.prediction.value).as_image(category) if sample.prediction else None
                for sample, category in zip(samples, categories, strict=True)
            ],
            [
                {"boxes": self.true_boxes(sample.example), "labels": category}
                for sample, category in zip(samples, categories, strict=True)
            ],
        )

    def facets(self, example: Example) -> Fields:
        return {"object_size": sorted({box_size(box) for box in self.true_boxes(example)})}

    def mistakes(self, example: Example, prediction: Prediction) -> Iterable[AnswerFailure]:
        """Return failures of all boxes without a partner at an IoU above 0.5, as in `explain`."""
        reference, predicted = self.true_boxes(example), answered_boxes(prediction)
        pairs = greedy_pairs([[box_iou(box, true) for box in predicted] for true in reference])
        return box_failures(reference, predicted, pairs, evidence_objects(example))

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        """Explain an answer by pairing boxes at an IoU above 0.5. The score also uses stricter thresholds."""
        phrase, reference, predicted = self.subject(example), self.true_boxes(example), answered_boxes(prediction)
        ious = [[box_iou(b, box) for b in predicted] for box in reference]
        pairs = dict(greedy_pairs(ious))
        return Explanation.of(
            (
                f"{phrase} at {box_text(reference[i])}: IoU {ious[i][j]:.2f} with {box_text(predicted[j])}"
                for i, j in sorted(pairs.items())
            ),
            (
                f"{phrase} at {box_text(box)}: best IoU {max(ious[i], default=0.0):.2f}"
                for i, box in enumerate(reference)
                if i not in pairs
            ),
            (
                f"box {box_text(box)}: best IoU {max(line[j] for line in ious):.2f}"
                for j, box in enumerate(predicted)
                if j not in pairs.values()
            ),
        )

    def overlays(self, example: Example, prediction: Prediction | None) -> tuple[Overlay, ...]:
        reference = [Overlay(0, as_xyxy(box), "reference", self.subject(example)) for box in self.true_boxes(example)]
        return (*reference, *(Overlay(0, as_xyxy(box), "predicted") for box in answered_boxes(prediction)))

    def answer_schema(self, example: Example) -> Fields:
        return object_schema({"bboxes": {"type": "array", "items": box_schema(example.inputs)}})

    def reference_answer(self, example: Example, box_format: BoxFormat) -> str:
        width, height = frame_size(example.inputs)
        boxes = [write_box(as_xyxy(box), box_format, width, height) for box in self.true_boxes(example)]
        return json.dumps({"bboxes": boxes})

    def random_answer(self, example: Example, rng: random.Random, box_format: BoxFormat) -> str:
        """Return one random box, since most questions are about one object."""
        return json.dumps({"bboxes": [write_grid(random_grid_box(rng), example.inputs, box_format)]})

    def centre_answer(self, example: Example, box_format: BoxFormat) -> str:
        return json.dumps({"bboxes": [write_grid(CENTRE_ON_GRID, example.inputs, box_format)]})


def answered_boxes(prediction: Prediction | None) -> list[PixelBox]:
    """Return the answered boxes, [x0, y0, x1, y1] in pixels; empty without a readable answer."""
    return AnsweredBoxes.read(prediction.value).boxes if prediction else []


class ObjectBoxTask(BoxTask):
    """A task that can ask where given objects are. Its true boxes are in the order of `evidence_objects`."""

    @classmethod
    @abstractmethod
    def object_question(
        cls, name: str, boxes: Mapping[str, PixelBox], frame: int, size: tuple[int, int], owner: Example
    ) -> Example:
        """Return a question for the boxes of all objects with one name, on one frame of the video of `owner`.

        Args:
            name: the name of the objects.
            boxes: maps object ids to true boxes, [x0, y0, x1, y1] in pixels.
            frame: index of the frame.
            size: (width, height) of the frame in pixels.
            owner: the example whose objects these are. Its facts on the video are copied.
        """
