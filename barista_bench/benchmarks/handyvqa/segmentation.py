"""Define HanDyVQA's segmentation: the pixels, on annotated frames, of the objects or the part that answer a question.

Scores are as in the paper (section 4.2): DAVIS' region similarity J and contour accuracy F on each annotated frame,
averaged over all annotated frames of all questions. Several right options of one question form one region, the union of
their masks. If a readable answer has no mask for a frame, the mask counts as empty. Without a readable answer, each
frame scores 0.

Three options give the paper's settings. `mode=sequential` (default) shows the complete clip, and `mode=frame_wise`
shows only the annotated frames. `truth_options` gives the model the names of the right options instead of the question.
`options_from` gives it the names of the options that another model chose, which is the paper's two-stage setting. Only
examples for which that model chose an option are asked.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import msgspec
from PIL import Image

from barista_bench.benchmarks.handyvqa.base_task import MAX_SIDE, ClipFrames, HandyvqaTask
from barista_bench.benchmarks.handyvqa.release import HandyvqaQuestion
from barista_bench.benchmarks.kinds.box_answers import CENTRE_FRACTIONS
from barista_bench.benchmarks.kinds.masks import (
    FOUND_J,
    FrameMask,
    MaskFields,
    MaskScore,
    Size,
    answered_masks,
    explain_masks,
    fraction_box_mask,
    frame_masks,
    mask_bounds,
    mask_of_frame,
    masks_schema,
    parse_masks,
    random_box_mask,
    reduced_size,
    score_frame,
    usual_box,
    write_masks,
)
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.display import AnswerFailure, Explanation, FailureKind, Overlay, OverlayKind
from barista_bench.core.example import Example, Fields, Inputs, ParseError, Prediction, Scored, Target, evidence_objects
from barista_bench.core.options import Option
from barista_bench.core.prompt import Prompt, PromptTexts
from barista_bench.core.statistics import Metrics, Row, Sums, SumStatistics, fraction
from barista_bench.errors import ConfigError, DataError
from barista_bench.scene_graph.release import PixelCount

MASKS = "rvos_"
"""Begins the names of these tasks, and the ids of their generated questions. The task or question with options follows.
"""
MAX_CLIP = 2**16
"""Maximum number of frames of a clip."""
PRIOR_EXAMPLES = 200
"""Maximum number of examples for the prior, evenly spaced. The prior is computed again for every example."""


class SegmentationInputs(Inputs):
    """`frames` are the indices of the annotated frames among the example's frames. Sizes are in pixels."""

    query: str
    frames: Annotated[list[int], msgspec.Meta(min_length=1)]
    frame_count: Annotated[int, msgspec.Meta(ge=1, le=MAX_CLIP)]
    width: PixelCount
    height: PixelCount

    def __post_init__(self) -> None:
        if not 0 <= min(self.frames) <= max(self.frames) < self.frame_count:
            raise ValueError(f"frames {self.frames!r:.80} are not all among the {self.frame_count} of the clip")

    @property
    def size(self) -> Size:
        return self.height, self.width


class SegmentationTarget(Target):
    """The texts of the right options, and the union of their masks on each annotated frame."""

    phrases: list[str]
    masks: list[MaskFields]


class SegmentationTask(HandyvqaTask):
    """A category of questions whose answers are masks."""

    version = 4
    primary = "J_and_F"
    primary_note = "Mean of J, the IoU of masks, and F, the F-measure of their contours."
    sample_score = "J_and_F"
    answer_note = "JSON: run-length masks"
    inputs_type = SegmentationInputs
    target_type = SegmentationTarget
    options: ClassVar[dict[str, Option]] = {
        "max_side": MAX_SIDE,
        "mode": Option(
            default="sequential",
            help="show the complete clip, or only its annotated frames",
            changes="prompt",
            choices=("sequential", "frame_wise"),
        ),
        "truth_options": Option(
            default=False, help="give the model the right choices instead of the question", changes="prompt"
        ),
        "options_from": Option(
            default=None,
            help=("run folder of the same questions with choices: give the model the choices that this run answered"),
            changes="prompt",
            kind=str,
            is_added=True,
            names_run=True,
        ),
    }

    def __init__(self, prompts: PromptTexts | None = None, *, options: Mapping[str, object] | None = None) -> None:
        super().__init__(prompts, options=options)
        if self.chosen["truth_options"] and self.chosen["options_from"] is not None:
            raise ConfigError("truth_options and options_from both name options. Fix: leave one of them out")

    def columns(self, question: HandyvqaQuestion, frames: ClipFrames) -> tuple[Inputs, Target]:
        """Return the annotated frames and their masks. Raises DataError if masks and frames differ in size."""
        height, width = question.annotated[0].mask.size
        facts = frames.facts
        if (facts.width, facts.height) != (width, height):
            raise DataError(
                f"{facts.path}: its frames are {facts.width}x{facts.height} px, the masks {width}x{height}. "
                "Fix: fetch the video that was annotated"
            )
        if len(set(frames.annotated)) < len(frames.annotated):
            raise DataError(f"{facts.path}: two annotated moments are one frame. Fix: join their targets")
        return self.mask_columns(question, frames.annotated, frames.indices)

    @staticmethod
    def mask_columns(
        question: HandyvqaQuestion, annotated: Sequence[int], indices: Sequence[int]
    ) -> tuple[SegmentationInputs, SegmentationTarget]:
        """Return `inputs` and `target`, given the frame numbers of annotated frames (in order) and of shown frames."""
        height, width = question.annotated[0].mask.size
        masks = {indices.index(frame): each.mask for frame, each in zip(annotated, question.annotated, strict=True)}
        phrases = [question.options[index] for index in question.correct]
        return (
            SegmentationInputs(question.question, sorted(masks), len(indices), width, height),
            SegmentationTarget(phrases, [MaskFields.of(index, mask) for index, mask in sorted(masks.items())]),
        )

    def request_inputs(self, example: Example) -> Fields:
        """Return the question for segmenters: the `phrases` to find, and the `frames` that count among the given
        images.
        """
        inputs = SegmentationInputs.of(example)
        return {
            "query": inputs.query,
            "phrases": self._phrases(example),
            "frames": self._annotated_images(inputs),
            "answer": "masks",
            "mode": str(self.chosen["mode"]),
            "width": inputs.width,
            "height": inputs.height,
        }

    def prompt(self, example: Example, box_format: BoxFormat) -> Prompt:
        inputs = SegmentationInputs.of(example)
        count, size = len(self._shown_indices(inputs)), reduced_size(inputs.width, inputs.height, self.max_side)
        sought = "\n".join(f"- {phrase}" for phrase in self._phrases(example))
        if self.prompts.extra:
            sought = self.prompts.text("named" if self._names_options else "question", what=sought)
        return self.prompts.prompt(
            count,
            frame_count=str(count),
            last=str(count - 1),
            frames=", ".join(map(str, self._annotated_images(inputs))),
            asked=sought,
            width=str(size[0]),
            height=str(size[1]),
        )

    def counterpart(self, example: Example, others: Mapping[str, Example]) -> str | None:
        """Return the id of the same question with options: the example's id, or this id without `rvos_`.

        The other example must be of the task with options, and of the same clip.
        """
        clip = example.video_id, example.metadata.get("centre_seconds")
        for name in (example.example_id, example.example_id.removeprefix(MASKS)):
            other = others.get(name)
            if other is not None and other.task == self.name.removeprefix(MASKS):
                return name if (other.video_id, other.metadata.get("centre_seconds")) == clip else None
        return None

    def displayed_images(self, example: Example, images: Sequence[Image.Image]) -> tuple[Image.Image, ...]:
        """Return the images that the option `mode` shows, scaled down to the option `max_side`."""
        inputs = SegmentationInputs.of(example)
        return super().displayed_images(example, [images[index] for index in self._shown_indices(inputs)])

    def image_frames(self, example: Example) -> Sequence[int]:
        return self._shown_indices(SegmentationInputs.of(example))

    def image_captions(self, example: Example) -> tuple[str, ...]:
        inputs = SegmentationInputs.of(example)
        return tuple(
            f"frame {example.frames[index].frame_index}" + (" (annotated)" if index in inputs.frames else "")
            for index in self._shown_indices(inputs)
        )

    def parse(self, text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
        """Return the masks of annotated frames, at the size of the annotation (see `kinds/masks.py`)."""
        question = SegmentationInputs.read(inputs)
        width, height = reduced_size(question.width, question.height, self.max_side)
        return parse_masks(text, self._shown_indices(question), question.frames, [question.size, (height, width)])

    def statistics(self, samples: Sequence[Scored]) -> SumStatistics:
        """Return means of J and F over annotated frames, and the fractions of answered questions and frames."""
        names = {name: name for name in ("J", "F", "J_and_F")}
        return SumStatistics(list(map(_sample_sums, samples)), _compute_metrics, sample_scores=names, tables=_counts)

    def as_target(self, example: Example, prediction: Prediction) -> SegmentationTarget:
        masks, inputs = answered_masks(prediction), SegmentationInputs.of(example)
        return SegmentationTarget(
            [], [MaskFields.of(frame, mask_of_frame(masks, frame, inputs.size)) for frame in inputs.frames]
        )

    def mistakes(self, example: Example, prediction: Prediction) -> Iterable[AnswerFailure]:
        """Yield a failure for each annotated frame on which the region is not found."""
        for _, score, has_mask in scored_frames(example, prediction):
            if score.j <= FOUND_J:
                wrong: FailureKind = "loose_mask" if score.j > 0 else "hallucinated"
                yield AnswerFailure(wrong if has_mask else "missed", evidence_objects(example))

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        return explain_masks(
            (f"frame {example.frames[index].frame_index}", score, has_mask)
            for index, score, has_mask in scored_frames(example, prediction)
        )

    def reference_answer(self, example: Example, box_format: BoxFormat) -> str:
        return self._answer_text(example, true_masks(example))

    def random_answer(self, example: Example, rng: random.Random, box_format: BoxFormat) -> str:
        """Return a random rectangle on each annotated frame."""
        inputs = SegmentationInputs.of(example)
        return self._answer_text(
            example, [FrameMask(frame, random_box_mask(rng, inputs.size)) for frame in inputs.frames]
        )

    def prior_answer(self, example: Example, others: Sequence[Example], box_format: BoxFormat) -> str:
        """Return, for every annotated frame, the median box of masks in some other videos; without other videos, the
        centre box.
        """
        step = max(1, len(others) // PRIOR_EXAMPLES)
        return self._box_answer(example, usual_box(mask for other in others[::step] for _, mask in true_masks(other)))

    def centre_answer(self, example: Example, box_format: BoxFormat) -> str:
        """Return, for each annotated frame, a centre box with half the width and height of the frame."""
        return self._box_answer(example, CENTRE_FRACTIONS)

    def answer_schema(self, example: Example) -> Fields | None:
        return masks_schema(len(self._shown_indices(SegmentationInputs.of(example))))

    def overlays(self, example: Example, prediction: Prediction | None) -> tuple[Overlay, ...]:
        """Return true and answered masks with their tight boxes."""
        inputs = SegmentationInputs.of(example)
        scale = reduced_size(inputs.width, inputs.height, self.max_side)[0] / inputs.width
        shown_indices, overlays = self._shown_indices(inputs), []
        kinds: tuple[tuple[OverlayKind, list[FrameMask]], ...] = (
            ("reference", true_masks(example)),
            ("predicted", answered_masks(prediction)),
        )
        for kind, masks in kinds:
            for index, mask in masks:
                if box := mask_bounds(mask):
                    x0, y0, x1, y1 = (number * scale for number in box)
                    overlays.append(Overlay(shown_indices.index(index), (x0, y0, x1, y1), kind, mask=mask))
        return tuple(overlays)

    def _answer_text(self, example: Example, masks: Sequence[FrameMask]) -> str:
        shown_indices = self._shown_indices(SegmentationInputs.of(example))
        return write_masks([FrameMask(shown_indices.index(index), mask) for index, mask in masks])

    def _box_answer(self, example: Example, relative: Sequence[float]) -> str:
        """Return an answer with the box [x0, y0, x1, y1], in fractions of the frame, on every annotated frame."""
        inputs = SegmentationInputs.of(example)
        mask = fraction_box_mask(relative, inputs.size)
        return self._answer_text(example, [FrameMask(index, mask) for index in inputs.frames])

    @property
    def _names_options(self) -> bool:
        return bool(self.chosen["truth_options"]) or self.chosen["options_from"] is not None

    def _phrases(self, example: Example) -> list[str]:
        if self.chosen["options_from"] is not None:
            return self.run_answers.get(example.example_id, [])
        if self.chosen["truth_options"]:
            return SegmentationTarget.of(example).phrases
        return [SegmentationInputs.of(example).query]

    def _shown_indices(self, inputs: SegmentationInputs) -> list[int]:
        """Return, for each shown image, the index of its frame among the example's frames."""
        return inputs.frames if self.chosen["mode"] == "frame_wise" else list(range(inputs.frame_count))

    def _annotated_images(self, inputs: SegmentationInputs) -> list[int]:
        return list(map(self._shown_indices(inputs).index, inputs.frames))


class RvosObjects(SegmentationTask):
    """The objects that the hands use."""

    name = upstream_name = "rvos_objects"
    row_note = "frames of a clip, a question, and the masks of the objects that answer it on annotated frames"


class RvosParts(SegmentationTask):
    """The affected part of an object."""

    name = upstream_name = "rvos_parts"
    row_note = "frames of a clip, a question, and the masks of the part that answers it on annotated frames"


MASK_TASKS: tuple[type[SegmentationTask], ...] = (RvosObjects, RvosParts)


def true_masks(example: Example) -> list[FrameMask]:
    """Return an example's true masks.

    Raises DataError for a wrong frame or size, since a dataset may come from anywhere.
    """
    inputs, masks = SegmentationInputs.of(example), frame_masks(SegmentationTarget.of(example).masks)
    for frame, mask in masks:
        if frame not in inputs.frames or mask.size != inputs.size:
            what = f"the mask of frame {frame} is of another size, or not asked for"
            raise DataError(f"{example.example_id}: {what}. Fix: build the dataset again")
    return masks


def scored_frames(example: Example, prediction: Prediction | None) -> list[tuple[int, MaskScore, bool]]:
    """Return (frame index, J and F, whether the answer's mask has a pixel) for each annotated frame."""
    reference, answer_masks = true_masks(example), answered_masks(prediction)
    scores = []
    for index, true in reference:
        mask = mask_of_frame(answer_masks, index, true.size)
        score = MaskScore(0.0, 0.0) if prediction is None else score_frame(mask.counts, true.counts, true.size)
        scores.append((index, score, mask_bounds(mask) is not None))
    return scores


def _sample_sums(sample: Scored) -> Row:
    scores = [score for _, score, _ in scored_frames(sample.example, sample.prediction)]
    return {
        "J": sum(score.j for score in scores),
        "F": sum(score.f for score in scores),
        "found": float(sum(score.j > FOUND_J for score in scores)),
        "masks": float(len(answered_masks(sample.prediction))),
        "frames": float(len(scores)),
        "answered": float(sample.prediction is not None),
    }


def _compute_metrics(sums: Sums) -> Metrics:
    j, f = (fraction(sums[name], sums["frames"]) for name in "JF")
    return {
        "J": j,
        "F": f,
        "J_and_F": (j + f) / 2,
        "J_recall": fraction(sums["found"], sums["frames"]),
        "frame_coverage": fraction(sums["masks"], sums["frames"]),
        "coverage": fraction(sums["answered"], sums["n"]),
    }


def _counts(sums: Row) -> dict[str, Any]:
    n = int(sums["n"])
    return {"n": n, "n_failed": n - int(sums["answered"]), "n_frames": int(sums["frames"])}
