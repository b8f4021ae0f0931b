"""HanDyVQA's segmentation: the pixels of the objects, or of the part, that answer a question, on annotated frames.

Scored as the paper says (section 4.2): region similarity J and contour accuracy F of DAVIS on each annotated frame,
mean over all annotated frames of all questions. Several right options of one question are one region, their union. A
frame without a mask in a readable answer counts as an empty mask; without a readable answer each frame scores 0.

The paper's three settings are two options. `mode=sequential` (default) shows the whole clip, `mode=frame_wise` the
annotated frames alone. `truth_options` names the right options to the model instead of asking the question.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any, ClassVar, cast

import numpy as np
from PIL import Image

from barista_bench.benchmarks.handyvqa.clips import Shown
from barista_bench.benchmarks.handyvqa.common import MAX_SIDE, HandyvqaTask
from barista_bench.benchmarks.handyvqa.mask_answers import (
    FrameMask,
    mask_on,
    masks_of,
    masks_schema,
    parse_masks,
    written_masks,
)
from barista_bench.benchmarks.handyvqa.masks import (
    FrameScore,
    Size,
    bounds,
    box_mask,
    score_frame,
    thinned_size,
)
from barista_bench.benchmarks.handyvqa.release import Question
from barista_bench.benchmarks.pooling import Floats, ratio, weighted_sums
from barista_bench.core.options import Option
from barista_bench.core.prompt import BoxFormat, ImagePart, Prompt, TextPart
from barista_bench.core.task import (
    Example,
    Explanation,
    ExplanationRow,
    Failure,
    Fields,
    Json,
    Overlay,
    OverlayKind,
    ParseError,
    Prediction,
    Scored,
)
from barista_bench.errors import DataError

RIGHT_AT = 0.5
"""A frame whose J is higher counts as found, in explanations; DAVIS' recall has the same bound."""


MOST_OTHERS = 200
"""Examples that the prior is made from, evenly drawn: it is asked anew for every example."""


class Segmentation(HandyvqaTask):
    """A category of questions that are answered by masks."""

    version = 1
    primary = "J_and_F"
    sample_score = "J_and_F"
    options: ClassVar[dict[str, Option]] = {
        "max_side": MAX_SIDE,
        "mode": Option(
            default="sequential",
            help="whether a model sees the whole clip, or its annotated frames alone",
            changes="prompt",
            choices=("sequential", "frame_wise"),
        ),
        "truth_options": Option(
            default=False,
            help="whether the right options are named to the model, instead of the question",
            changes="prompt",
        ),
    }

    def asked(self, question: Question, shown: Shown) -> tuple[Fields, Fields]:
        """Places of annotated frames, and their masks. Raises DataError where masks and frames differ in size."""
        height, width = question.annotated[0].mask.size
        facts = shown.facts
        if (facts.width, facts.height) != (width, height):
            raise DataError(
                f"{facts.path}: its frames are {facts.width}x{facts.height} px, the masks {width}x{height}. "
                "Remedy: fetch the video that was annotated"
            )
        if len(set(shown.always)) < len(shown.always):
            raise DataError(f"{facts.path}: two annotated moments are one frame. Remedy: join their targets")
        places = [shown.indices.index(frame) for frame in shown.always]
        return self.fields(question, places, len(shown.indices))

    @staticmethod
    def fields(question: Question, places: Sequence[int], count: int) -> tuple[Fields, Fields]:
        """`inputs` and `target`; `places` are those of the annotated frames among the example's `count`."""
        height, width = question.annotated[0].mask.size
        masks = [FrameMask(place, annotated.mask) for place, annotated in zip(places, question.annotated, strict=True)]
        phrases = [question.options[place] for place in question.correct]
        inputs: Fields = {
            "query": question.question,
            "frame_count": count,
            "frames": sorted(places),
            "width": width,
            "height": height,
        }
        return inputs, {"phrases": phrases, "masks": written_masks(sorted(masks, key=lambda mask: mask.frame))}

    def columns(self) -> tuple[dict[str, Any], dict[str, Any]]:
        from datasets import List, Value

        number, text = Value("int32"), Value("string")
        inputs = {"query": text, "frames": List(number), **dict.fromkeys(("frame_count", "width", "height"), number)}
        mask = {"frame": number, "rle": {"size": List(number), "counts": text}}
        return inputs, {"phrases": List(text), "masks": List(mask)}

    def request_inputs(self, example: Example) -> Fields:
        """The question for segmenters: `phrases` to look for, `frames` that count among the images they are given."""
        return {
            "query": example.inputs["query"],
            "phrases": self._phrases(example),
            "frames": self._wanted_images(example),
            "answer": "masks",
            "mode": str(self.option("mode")),
            "width": example.inputs["width"],
            "height": example.inputs["height"],
        }

    def prompt(self, example: Example, boxes: BoxFormat) -> Prompt:
        places, (height, width) = self._shown_places(example.inputs), _size(example)
        size = thinned_size(width, height, self.max_side)
        wanted = ", ".join(map(str, self._wanted_images(example)))
        what = "\n".join(f"- {phrase}" for phrase in self._phrases(example))
        wording = "named" if self.option("truth_options") else "question"
        asked = self.prompts.text(wording, what=what) if self.prompts.extra else what
        system, user = self.prompts.fill(
            frame_count=str(len(places)),
            last=str(len(places) - 1),
            frames=wanted,
            asked=asked,
            width=str(size[0]),
            height=str(size[1]),
        )
        return Prompt(system, (*map(ImagePart, range(len(places))), TextPart(user)))

    def shown(self, example: Example, images: Sequence[Image.Image]) -> tuple[Image.Image, ...]:
        """The images that the mode shows, scaled down to the option `max_side`."""
        return super().shown(example, [images[place] for place in self._shown_places(example.inputs)])

    def image_captions(self, example: Example) -> tuple[str, ...]:
        annotated = set(_places(example.inputs))
        return tuple(
            f"frame {example.frames[place].frame_index}" + (" (annotated)" if place in annotated else "")
            for place in self._shown_places(example.inputs)
        )

    def parse(self, text: str, inputs: Fields, boxes: BoxFormat) -> Prediction | ParseError:
        """The masks of annotated frames, in the size of the annotation: see `mask_answers`."""
        size = _size_of(inputs)
        width, height = thinned_size(size[1], size[0], self.max_side)
        return parse_masks(text, self._shown_places(inputs), _places(inputs), [size, (height, width)])

    def score(self, example: Example, prediction: Prediction | None) -> dict[str, float]:
        """Means of J and F over the example's annotated frames."""
        return _figures(_mean_score(frame_scores(example, prediction)))

    def aggregate(self, samples: Sequence[Scored]) -> dict[str, Json]:
        """Means over all annotated frames, and the shares of questions and frames that have an answer."""
        figures = {
            name: float(values[0]) for name, values in self.resampled(samples, np.ones((1, len(samples)))).items()
        }
        frames = sum(len(_places(sample.example.inputs)) for sample in samples)
        failed = sum(sample.prediction is None for sample in samples)
        return {**figures, "n": len(samples), "n_failed": failed, "n_frames": frames}

    def resampled(self, samples: Sequence[Scored], weights: Floats) -> dict[str, Floats]:
        sums = weighted_sums([_row(sample) for sample in samples], weights)
        j, f = (ratio(sums[name], sums["frames"]) for name in "JF")
        return {
            **_figures(FrameScore(j, f)),  # type: ignore[arg-type]  # arrays will do
            "J_recall": ratio(sums["found"], sums["frames"]),
            "frame_coverage": ratio(sums["masks"], sums["frames"]),
            "coverage": ratio(sums["answered"], sums["n"]),
        }

    def failures(self, example: Example, prediction: Prediction | None) -> tuple[Failure, ...]:
        """A failure for each annotated frame that is not found."""
        if prediction is None:
            return self.unreadable(example)
        found = []
        for (place, true), score in zip(masks_of(example.target), frame_scores(example, prediction), strict=True):
            said = bounds(mask_on(masks_of(prediction.value), place, true.size))
            if score.j > RIGHT_AT:
                continue
            if said is None:
                found.append(Failure("missed"))
            else:
                found.append(Failure("loose_mask" if score.j > 0 else "hallucinated"))
        return tuple(found)

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        scores = frame_scores(example, prediction)
        hits, misses, wrong = [], [], []
        for (place, true), score in zip(masks_of(example.target), scores, strict=True):
            name = f"frame {example.frames[place].frame_index}: J {score.j:.2f}, F {score.f:.2f}"
            is_empty = prediction is None or bounds(mask_on(masks_of(prediction.value), place, true.size)) is None
            if score.j > RIGHT_AT:
                hits.append(ExplanationRow("hit", name))
            elif is_empty:
                misses.append(ExplanationRow("miss", f"{name} (no mask)"))
            else:
                wrong.append(ExplanationRow("wrong", name))
        return Explanation((*hits, *misses, *wrong))

    def reference_answer(self, example: Example, boxes: BoxFormat) -> str:
        return self._answer(example, masks_of(example.target))

    def random_answer(self, example: Example, rng: random.Random, boxes: BoxFormat) -> str:
        """A rectangle anywhere on each annotated frame."""
        masks = []
        for place in _places(example.inputs):
            height, width = _size(example)
            xs, ys = sorted(rng.uniform(0, width) for _ in range(2)), sorted(rng.uniform(0, height) for _ in range(2))
            masks.append(FrameMask(place, box_mask((xs[0], ys[0], xs[1], ys[1]), (height, width))))
        return self._answer(example, masks)

    def prior_answer(self, example: Example, others: Sequence[Example], boxes: BoxFormat) -> str:
        """On every annotated frame the median box of the masks in some other videos; the middle without any."""
        step = max(1, len(others) // MOST_OTHERS)
        shares = [share for other in others[::step] for share in _relative_boxes(other)]
        if not shares:
            return self.centre_answer(example, boxes)
        height, width = _size(example)
        x0, y0, x1, y1 = np.median(shares, axis=0).tolist()
        usual = box_mask((x0 * width, y0 * height, x1 * width, y1 * height), (height, width))
        return self._answer(example, [FrameMask(place, usual) for place in _places(example.inputs)])

    def centre_answer(self, example: Example, boxes: BoxFormat) -> str:
        """The middle of each annotated frame, half as wide and as high."""
        height, width = _size(example)
        middle = box_mask((width / 4, height / 4, 3 * width / 4, 3 * height / 4), (height, width))
        return self._answer(example, [FrameMask(place, middle) for place in _places(example.inputs)])

    def answer_schema(self, example: Example) -> Fields | None:
        return masks_schema(len(self._shown_places(example.inputs)))

    def overlays(self, example: Example, prediction: Prediction | None) -> tuple[Overlay, ...]:
        """The tight boxes of true and answered masks; reports draw boxes, no masks."""
        said = [] if prediction is None else masks_of(prediction.value)
        return (*self._boxes(example, masks_of(example.target), "truth"), *self._boxes(example, said, "predicted"))

    def _boxes(self, example: Example, masks: Sequence[FrameMask], kind: OverlayKind) -> list[Overlay]:
        height, width = _size(example)
        scale = thinned_size(width, height, self.max_side)[0] / width
        images = {place: image for image, place in enumerate(self._shown_places(example.inputs))}
        found = []
        for place, mask in masks:
            box = bounds(mask)
            if box is not None:
                x0, y0, x1, y1 = (number * scale for number in box)
                found.append(Overlay(images[place], (x0, y0, x1, y1), kind, "box of the mask"))
        return found

    def _answer(self, example: Example, masks: Sequence[FrameMask]) -> str:
        images = {place: image for image, place in enumerate(self._shown_places(example.inputs))}
        return json.dumps({"masks": written_masks([FrameMask(images[place], mask) for place, mask in masks])})

    def _phrases(self, example: Example) -> list[str]:
        if self.option("truth_options"):
            return [str(phrase) for phrase in cast("Sequence[str]", example.target["phrases"])]
        return [str(example.inputs["query"])]

    def _shown_places(self, inputs: Fields) -> list[int]:
        """For each image that is shown, the place of its frame among the example's."""
        places = _places(inputs)
        return places if self.option("mode") == "frame_wise" else list(range(cast("int", inputs["frame_count"])))

    def _wanted_images(self, example: Example) -> list[int]:
        """Which of the images shown are annotated."""
        shown = self._shown_places(example.inputs)
        return [shown.index(place) for place in _places(example.inputs)]


class RvosObjects(Segmentation):
    """The objects that the hands use."""

    name = upstream_name = "rvos_objects"
    row_note = "frames of a clip, a question, and the masks of the objects that answer it on annotated frames"


class RvosParts(Segmentation):
    """The part of an object that is concerned."""

    name = upstream_name = "rvos_parts"
    row_note = "frames of a clip, a question, and the masks of the part that answers it on annotated frames"


def frame_scores(example: Example, prediction: Prediction | None) -> list[FrameScore]:
    """J and F of each annotated frame, in order."""
    truths = masks_of(example.target)
    if prediction is None:
        return [FrameScore(0.0, 0.0)] * len(truths)
    said = masks_of(prediction.value)
    return [score_frame(mask_on(said, place, true.size).counts, true.counts, true.size) for place, true in truths]


def _relative_boxes(example: Example) -> list[tuple[float, ...]]:
    """The tight boxes of an example's masks, in shares of the frame."""
    height, width = _size(example)
    found = [box for _, mask in masks_of(example.target) if (box := bounds(mask))]
    return [(x0 / width, y0 / height, x1 / width, y1 / height) for x0, y0, x1, y1 in found]


def _row(sample: Scored) -> dict[Any, float]:
    """What one sample adds to the sums that figures are made of."""
    scores = frame_scores(sample.example, sample.prediction)
    masks = [] if sample.prediction is None else masks_of(sample.prediction.value)
    return {
        "J": sum(score.j for score in scores),
        "F": sum(score.f for score in scores),
        "found": float(sum(score.j > RIGHT_AT for score in scores)),
        "masks": float(len(masks)),
        "frames": float(len(scores)),
        "answered": float(sample.prediction is not None),
        "n": 1.0,
    }


def _mean_score(scores: Sequence[FrameScore]) -> FrameScore:
    count = len(scores)
    return FrameScore(sum(score.j for score in scores) / count, sum(score.f for score in scores) / count)


def _figures(score: FrameScore) -> dict[str, Any]:
    return {"J": score.j, "F": score.f, "J_and_F": (score.j + score.f) / 2}


def _places(inputs: Fields) -> list[int]:
    """The places of the annotated frames among the example's."""
    return [int(place) for place in cast("Sequence[int]", inputs["frames"])]


def _size_of(inputs: Fields) -> Size:
    return int(cast("int", inputs["height"])), int(cast("int", inputs["width"]))


def _size(example: Example) -> Size:
    return _size_of(example.inputs)
