"""Mask tracking: the model follows objects through a clip, given their masks on the first frame.

Frames are evenly spaced over consecutive clips. A question asks for up to `per_frame` objects that have a mask on the
first frame. If there are more objects, a seed of the clip samples them. An object without annotation on a frame is not
visible, so the empty mask is right. If a requested mask is unusable, the clip is skipped.

Scores cover all frames except the first. J and F of DAVIS are averaged over an object's frames, then over objects. HOTA
is scored too. A mask that a readable answer lacks counts as empty. Without a readable answer, J and F are 0, and every
mask is missed.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

from barista_bench.benchmarks.barista.clips import ClipSampling, Keyframes
from barista_bench.benchmarks.extended.clip_task import ClipColumns, ClipTask
from barista_bench.benchmarks.kinds.frames import FrameArrays
from barista_bench.benchmarks.kinds.masks import (
    MAX_MASKS,
    NO_MASKS,
    MaskFields,
    MaskScore,
    RunLengthFields,
    Size,
    empty_mask,
    explain_masks,
    fraction_box_mask,
    mask_bounds,
    mask_entries,
    random_box_mask,
    score_frame,
    sound_mask,
    unite_masks,
    usual_box,
)
from barista_bench.benchmarks.parsing import NOTHING_READ, integer
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.deriving import Candidate, Vocabulary
from barista_bench.core.display import Explanation, FailureKind, Overlay, OverlayKind, RowKind
from barista_bench.core.example import (
    Evidence,
    Example,
    Fields,
    Inputs,
    Int64,
    ParseError,
    Prediction,
    Scored,
    Target,
    TypedFields,
    content_seed,
)
from barista_bench.core.frozen_lines import MAX_FRAMES
from barista_bench.core.options import Count
from barista_bench.core.prompt import Prompt
from barista_bench.core.remembering import remember
from barista_bench.core.statistics import Metrics, Row, Sums, SumStatistics, fraction
from barista_bench.errors import DataError
from barista_bench.metrics.tracking.scoring import ALPHAS, SUMMED, compute_metrics as tracking_metrics, sequence_counts
from barista_bench.scene_graph import Rle, VideoGraph
from barista_bench.scene_graph.release import PixelCount


class GivenMask(TypedFields):
    """An object to follow, and its mask on the first frame. Objects are numbered from 1."""

    number: int
    category: str
    rle: RunLengthFields


class TrackingInputs(Inputs):
    """The objects to follow. Sizes are in pixels."""

    objects: list[GivenMask]
    n_frames: Annotated[int, msgspec.Meta(ge=1, le=MAX_FRAMES)]
    width: PixelCount
    height: PixelCount

    @property
    def size(self) -> Size:
        return self.height, self.width


class TrackMask(MaskFields):
    """The mask of one object on one frame. `object` is the object's number. Frames count the shown frames from 0."""

    object: int


class TrackMasks(Target):
    """Masks on all frames except the first, by object and frame. A target has no empty masks."""

    masks: list[TrackMask]


class TrackingEvidence(Evidence):
    """Object ids in the order of their numbers, and rows of the annotation file."""

    object_ids: list[str]
    instance_rows: list[Int64]


ObjectFrame = tuple[int, int]
"""The number of an object, and the index of a shown frame."""


@dataclass(frozen=True, slots=True)
class TrackingSampling(ClipSampling):
    """The sampling of objects that are followed through clips.

    Args:
        per_frame: maximum number of objects per clip; None keeps all.
    """

    per_frame: Count | None = None


class MaskTracking(ClipTask[TrackingSampling]):
    name = upstream_name = "mask_tracking"
    version = 3
    primary = sample_score = "J_and_F"
    primary_note = "Mean of J, the IoU of masks, and F, the F-measure of their contours, over the objects followed."
    sampling = TrackingSampling(limit=200, seed=42, frames=8, spacing=12, per_frame=8)
    row_note = "frames of a clip, masks of objects on the first, and the masks of these objects on the others"
    answer_note = "JSON: run-length masks by object and frame"
    answered_by_text = False
    layers = ()
    failure_kinds: ClassVar[Mapping[RowKind, FailureKind]] = {"miss": "missed", "wrong": "loose_mask"}
    inputs_type, target_type, evidence_type = TrackingInputs, TrackMasks, TrackingEvidence

    def incompleteness(self, video: VideoGraph, candidate: Candidate, sampling: TrackingSampling) -> str | None:
        """Return a reason why annotation may be incomplete, or None.

        An object without a mask must be invisible, so every visible object of the clip must be annotated.
        """
        objects, span = video.objects_at(candidate.frame), self.span(video, candidate, sampling)
        is_known = all(video.coverage.covers_category(item.category, *span) for item in objects)
        return None if is_known else "its source does not mark everything that is to be seen in the clip"

    def columns(
        self, index: FrameArrays, keyframes: Keyframes, vocabulary: Vocabulary, sampling: TrackingSampling
    ) -> ClipColumns:
        video, items = index.video, _choose_objects(index, keyframes, sampling)
        instances = [
            ((number, frame), video.instance(position))
            for number, item in enumerate(items, start=1)
            for frame, position in enumerate(index.position(item, keyframe) for keyframe in keyframes)
            if position >= 0
        ]
        masks = dict[ObjectFrame, Rle]()
        for (key, _), mask in zip(instances, video.rles([instance for _, instance in instances]), strict=True):
            if isinstance(mask, DataError):
                raise mask
            if mask_bounds(mask):
                masks[key] = mask
        given_masks = [
            GivenMask(number, video.objects[item].category, RunLengthFields.of(masks[number, 0]))
            for number, item in enumerate(items, start=1)
        ]
        return (
            f"{len(items)} objects",
            TrackingInputs(given_masks, len(keyframes), video.video.width, video.video.height),
            _track_masks(masks),
            TrackingEvidence([video.objects[item].id for item in items], [instance.row for _, instance in instances]),
        )

    def prompt(self, example: Example, box_format: BoxFormat) -> Prompt:
        inputs = TrackingInputs.of(example)
        objects = "\n".join(f"- {item.number}: {item.category}" for item in inputs.objects)
        sides = {"width": str(inputs.width), "height": str(inputs.height)}
        count, last = str(inputs.n_frames), str(inputs.n_frames - 1)
        return self.prompts.prompt(inputs.n_frames, count=count, last=last, objects=objects, **sides)

    def parse(self, text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
        """Read the masks, uniting all masks of one object on one frame. Masks of the first frame are ignored."""
        question, entries = TrackingInputs.read(inputs), mask_entries(text)
        if entries is None:
            return NO_MASKS
        numbers, counts = {item.number for item in question.objects}, defaultdict[ObjectFrame, list[str]](list)
        dropped = max(0, len(entries) - MAX_MASKS)
        for entry in entries[:MAX_MASKS]:
            number, frame = integer(entry.get("object")), integer(entry.get("frame"))
            mask = sound_mask(entry["rle"], [question.size])
            if mask is None or number not in numbers or frame is None or not 0 <= frame < question.n_frames:
                dropped += 1
            else:
                counts[number, frame].append(mask.counts)
        if entries and not counts:
            return NOTHING_READ
        return Prediction(
            _track_masks({key: unite_masks(parts, question.size) for key, parts in counts.items()}).write(), dropped
        )

    def reference_answer(self, example: Example, box_format: BoxFormat) -> str:
        return json.dumps(example.target)

    def random_answer(self, example: Example, rng: random.Random, box_format: BoxFormat) -> str:
        """Return a random rectangle for each object on each frame."""
        inputs = TrackingInputs.of(example)
        return _answer_text({key: random_box_mask(rng, inputs.size) for key in _object_frames(inputs)})

    def prior_answer(self, example: Example, others: Sequence[Example], box_format: BoxFormat) -> str:
        """Return the median box of the masks in other videos as the mask on every frame.

        Without other videos, return the centre box.
        """
        inputs = TrackingInputs.of(example)
        return _answer_text(dict.fromkeys(_object_frames(inputs), fraction_box_mask(_usual_box(others), inputs.size)))

    def first_mask_answer(self, example: Example, box_format: BoxFormat) -> str:
        inputs = TrackingInputs.of(example)
        given_masks = {item.number: item.rle.mask for item in inputs.objects}
        return _answer_text({(number, frame): given_masks[number] for number, frame in _object_frames(inputs)})

    def statistics(self, samples: Sequence[Scored]) -> SumStatistics:
        return SumStatistics(list(map(_sample_sums, samples)), _compute_metrics, tables=_counts)

    def as_target(self, example: Example, prediction: Prediction) -> TrackMasks:
        return _track_masks({key: mask for key, mask in _answered_masks(prediction).items() if mask_bounds(mask)})

    def facets(self, example: Example) -> Fields:
        return {"category": sorted({item.category for item in TrackingInputs.of(example).objects})}

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        """Explain by object. An object is a hit if its mean J is above 0.5."""
        answered_numbers = {number for (number, _), mask in _answered_masks(prediction).items() if mask_bounds(mask)}
        scores, objects = object_scores(example, prediction), TrackingInputs.of(example).objects
        return explain_masks(
            (f"{item.number} {item.category}", scores[item.number], item.number in answered_numbers) for item in objects
        )

    def overlays(self, example: Example, prediction: Prediction | None) -> tuple[Overlay, ...]:
        """Return the given, true and answered masks, each with its tight box."""
        objects = TrackingInputs.of(example).objects
        kinds: tuple[tuple[OverlayKind, dict[ObjectFrame, Rle]], ...] = (
            ("given", {(item.number, 0): item.rle.mask for item in objects}),
            ("reference", _true_masks(example)),
            ("predicted", _answered_masks(prediction)),
        )
        names = {item.number: f"{item.number} {item.category}" for item in objects}
        return tuple(
            Overlay(frame, box, kind, names[number], mask)
            for kind, masks in kinds
            for (number, frame), mask in masks.items()
            if (box := mask_bounds(mask))
        )


def _choose_objects(index: FrameArrays, keyframes: Keyframes, sampling: TrackingSampling) -> list[int]:
    """Return the objects to follow, as ascending indices of `VideoGraph.objects`.

    Raises DataError if no object has a mask on the first frame, or if a mask on that frame is unusable.
    """
    video = index.video
    positions = {int(video.instances_table.object[place]): place for place in index.positions_at(keyframes[0])}
    visible = sorted(positions)
    masked_items = []
    for item, mask in zip(visible, video.rles([video.instance(positions[item]) for item in visible]), strict=True):
        if isinstance(mask, DataError):
            raise mask
        if mask_bounds(mask):
            masked_items.append(item)
    if not masked_items:
        raise DataError("no object has a mask on its first frame. Fix: annotate one")
    if sampling.per_frame is None or len(masked_items) <= sampling.per_frame:
        return masked_items
    seed = content_seed(MaskTracking.name, video.video_id, keyframes[0], str(sampling.seed))
    return sorted(random.Random(seed).sample(masked_items, sampling.per_frame))  # noqa: S311  (no secret)


@remember
def _usual_box(examples: Sequence[Example]) -> Sequence[float]:
    return usual_box(mask for example in examples for mask in _true_masks(example).values())


def _object_frames(inputs: TrackingInputs) -> list[ObjectFrame]:
    return [(item.number, frame) for item in inputs.objects for frame in range(1, inputs.n_frames)]


def _track_masks(masks: Mapping[ObjectFrame, Rle]) -> TrackMasks:
    """Return the masks of all frames except the first, whose masks are given."""
    return TrackMasks(
        [TrackMask(frame, RunLengthFields.of(mask), number) for (number, frame), mask in sorted(masks.items()) if frame]
    )


def _answer_text(masks: Mapping[ObjectFrame, Rle]) -> str:
    return json.dumps(_track_masks(masks).write())


def _read_masks(fields: Fields) -> dict[ObjectFrame, Rle]:
    return {(entry.object, entry.frame): entry.rle.mask for entry in TrackMasks.read(fields).masks}


def _true_masks(example: Example) -> dict[ObjectFrame, Rle]:
    """Return the true masks.

    Raises DataError for a mask that is not asked for or has another size, since a dataset may come from anywhere.
    """
    inputs, masks = TrackingInputs.of(example), _read_masks(example.target)
    scored_keys = set(_object_frames(inputs))
    for (number, frame), mask in masks.items():
        if (number, frame) not in scored_keys or mask.size != inputs.size:
            what = f"the mask of object {number} on frame {frame} is of another size, or not asked for"
            raise DataError(f"{example.example_id}: {what}. Fix: build the dataset again")
    return masks


def _answered_masks(prediction: Prediction | None) -> dict[ObjectFrame, Rle]:
    return {} if prediction is None else _read_masks(prediction.value)


def object_scores(example: Example, prediction: Prediction | None) -> dict[int, MaskScore]:
    """Return J and F of each object, averaged over all frames except the first."""
    inputs, true_masks, answered_masks = TrackingInputs.of(example), _true_masks(example), _answered_masks(prediction)
    no_mask = empty_mask(inputs.size)
    frames = defaultdict[int, list[MaskScore]](list)
    for key in _object_frames(inputs):
        mask, true = answered_masks.get(key, no_mask), true_masks.get(key, no_mask)
        score = MaskScore(0.0, 0.0) if prediction is None else score_frame(mask.counts, true.counts, inputs.size)
        frames[key[0]].append(score)
    return {number: MaskScore(*map(fmean, zip(*scores, strict=True))) for number, scores in frames.items()}


def _sample_sums(sample: Scored) -> Row:
    scores = object_scores(sample.example, sample.prediction).values()
    n_frames = TrackingInputs.of(sample.example).n_frames
    sequence = None if sample.prediction is None else _mask_sequence(_answered_masks(sample.prediction), n_frames)
    track_counts = sequence_counts(sequence, _mask_sequence(_true_masks(sample.example), n_frames))
    return {
        "J": sum(score.j for score in scores),
        "F": sum(score.f for score in scores),
        "objects": float(len(scores)),
        "switches": float(track_counts.switches),
        "answered": float(sample.prediction is not None),
        **{(name, index): value for name in SUMMED for index, value in enumerate(getattr(track_counts, name).tolist())},
    }


def _mask_sequence(masks: Mapping[ObjectFrame, Rle], n_frames: int) -> list[dict[str, dict[str, object]]]:
    """Return masks in the form of the tracking metric: one dictionary by object for each frame except the first."""
    frames: list[dict[str, dict[str, object]]] = [{} for _ in range(1, n_frames)]
    for (number, frame), mask in masks.items():
        frames[frame - 1][str(number)] = {"size": list(mask.size), "counts": mask.counts}
    return frames


def _compute_metrics(sums: Sums) -> Metrics:
    j, f = (fraction(sums[name], sums["objects"]) for name in "JF")
    by_threshold = {name: np.stack([sums[name, index] for index in range(len(ALPHAS))], axis=-1) for name in SUMMED}
    coverage = fraction(sums["answered"], sums["n"])
    return {"J": j, "F": f, "J_and_F": (j + f) / 2, **tracking_metrics(by_threshold), "coverage": coverage}


def _counts(sums: Row) -> dict[str, Any]:
    n = int(sums["n"])
    counts = {"n_objects": int(sums["objects"]), "n_identity_switches": int(sums["switches"])}
    return {"n": n, "n_failed": n - int(sums["answered"]), **counts}
