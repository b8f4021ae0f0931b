"""Egocentric hand-object interaction (paper, section A.2.2; released rules, docs/upstream/barista.md).

The model sees one frame and reports each object that the wearer's hands act on, with its box, the hands' boxes, and the
type of the hands. The score is the F1 of interactions, which are matched by the boxes of their objects.

Interactions, and the hands of an interaction, follow the order of the file's relations. Objects of category `unknown`
count, because no rule of this task excludes them. The fraction of frames is taken video by video, before interactions
are determined. Differences between release and paper are in `protocols.yaml`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from msgspec import Meta

from barista_bench.benchmarks.barista.common import PROMPT_PACKAGE, thin_frames
from barista_bench.benchmarks.barista.frame_aids import HandObjectAids
from barista_bench.benchmarks.barista.interactions import (
    EXEMPLARS,
    BoxedInteraction,
    HandAction,
    InteractionTarget,
    TrueInteraction,
    actions_at,
    answered_interactions,
    contact_ranges,
    map_boxes,
    read_by_paper,
    read_released,
    usual_interactions,
)
from barista_bench.benchmarks.kinds.box_answers import (
    CENTRE_ON_GRID,
    FrameSize,
    box_failures,
    box_fields,
    box_schema,
    box_size,
    box_text,
    grid_to_pixels,
    pixels_to_grid,
    random_grid_box,
    require_annotated,
    write_grid,
)
from barista_bench.benchmarks.kinds.frames import FrameArrays, FrameMetadata, FrameSampling
from barista_bench.core.boxes import GRID, BoxFormat, as_xyxy, describe_format
from barista_bench.core.deriving import Candidate, GraphTask, Vocabulary
from barista_bench.core.display import AnswerFailure, Explanation, Overlay, OverlayKind
from barista_bench.core.example import Evidence, Example, Fields, Int64, ParseError, Prediction, Scored
from barista_bench.core.options import Count, packaged_protocol
from barista_bench.core.prompt import ImagePart, Prompt, object_schema
from barista_bench.core.statistics import Floats, MicroF1, SumStatistics
from barista_bench.metrics.interaction_f1.inputs import HAND_TYPES
from barista_bench.metrics.interaction_f1.scoring import (
    IOU_THRESHOLD,
    FrameScore,
    Group,
    compute_metrics,
    frame_sums,
    score_frame,
    tables,
)
from barista_bench.scene_graph import VideoGraph


class HandObjectMetadata(FrameMetadata):
    """`interactions` is a count. The lists are sorted and have no repeated entries."""

    interactions: int
    hand_types: list[str]
    categories: list[str]
    verbs: list[str]


class HandObjectEvidence(Evidence):
    """The objects acted on, the hands, and rows of the annotation file."""

    object_ids: list[str]
    hand_ids: list[str]
    instance_rows: list[Int64]
    relation_rows: list[Int64]


class InteractionStatistics(SumStatistics):
    """Scores pooled over frames. As in the release, sums over all frames are added pair by pair, not frame by frame.

    Args:
        frames: (S,) the scores of the matched frames.
        groups: (S,) the groups of each true interaction of a frame, for the tables `per_hand_type` and `per_category`.
    """

    def __init__(self, frames: Sequence[FrameScore], groups: Sequence[Sequence[Sequence[Group]]]) -> None:
        rows = [frame_sums([frame], [frame_groups]) for frame, frame_groups in zip(frames, groups, strict=True)]
        names = {name: name for name in ("precision", "recall", "f1")}
        super().__init__(rows, compute_metrics, sample_scores=names, tables=tables)
        self._frames, self._groups = frames, groups

    def subset(self, samples: Sequence[int]) -> InteractionStatistics:
        return InteractionStatistics(
            [self._frames[index] for index in samples], [self._groups[index] for index in samples]
        )

    def _total(self) -> Floats:
        sums = frame_sums(self._frames, self._groups)
        return np.array([sums.get(name, 0.0) for name in self._names])


@dataclass(frozen=True, slots=True)
class HandObjectSampling(FrameSampling):
    """The sampling of frames with acting hands.

    Args:
        fraction: share of each video's candidate frames to keep, evenly spaced.
        relation_type: type of the relations that are a hand's interactions.
        box_scale: true boxes are integers from 0 to this value, which corresponds to the full side of the frame.
    """

    fraction: Annotated[float, Meta(gt=0, le=1)] = 1.0
    relation_type: Annotated[str, Meta(min_length=1)] = "human_actions"
    box_scale: Count = GRID


class HandObject(GraphTask[HandObjectSampling]):
    benchmark = "barista"
    name = "hand_object"
    upstream_name = "hand_object"
    version = 2
    primary = "f1"
    primary_note = "F1 of interactions over all frames; matched by the IoU of their objects, above 0.5."
    sample_score = "f1"
    decided_by = MicroF1("n_matched", "n_predicted", "n_reference", entry_tokens=20)
    sampling = HandObjectSampling(limit=1000, seed=42, fraction=1.0)
    prompt_package = PROMPT_PACKAGE
    row_note = "a frame, and every interaction of a hand with an object: boxes and hand"
    answer_note = "JSON: boxes of object and hands, left or right"
    options = packaged_protocol(PROMPT_PACKAGE, name)

    inputs_type = FrameSize
    target_type = InteractionTarget
    metadata_type = HandObjectMetadata
    layers = ("relations",)
    aids = HandObjectAids(asked_about=("relations",), default=("marks",))
    evidence_type = HandObjectEvidence

    def span(self, video: VideoGraph, candidate: Candidate, sampling: HandObjectSampling) -> tuple[int, int]:
        return candidate.frame, candidate.frame + 1

    def candidates(self, video: VideoGraph, sampling: HandObjectSampling) -> Iterator[Candidate]:
        """Yield the frames where a hand acts on an object, after thinning the video's frames evenly."""
        arrays = FrameArrays(video)
        frames = thin_frames(arrays.frames(sampling), sampling.fraction)
        for frame in arrays.find_related(contact_ranges(video, sampling.relation_type), frames).tolist():
            yield Candidate(video.video_id, frame)

    def build(
        self, video: VideoGraph, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: HandObjectSampling
    ) -> Iterator[Example]:
        arrays, contacts = FrameArrays(video, sampling.box_scale), contact_ranges(video, sampling.relation_type)
        for candidate in candidates:
            actions = actions_at(arrays, candidate.frame, contacts)
            yield _example(arrays, candidate.frame, actions, sampling.box_scale)

    def prompt(self, example: Example, box_format: BoxFormat) -> Prompt:
        exemplars = {name: _answer_text(items, example.inputs, box_format) for name, items in EXEMPLARS.items()}
        fields = {"box_format": describe_format(box_format), **exemplars}
        prompt = self.prompts.prompt(1, **(box_fields(self.prompts, box_format) | fields))
        return replace(prompt, parts=(ImagePart(0),)) if self.follows_paper else prompt

    def parse(self, text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
        return (read_by_paper if self.follows_paper else read_released)(text, inputs, box_format)

    def statistics(self, samples: Sequence[Scored]) -> InteractionStatistics:
        """Return scores pooled over frames and means over matched pairs. An unreadable answer has no interactions.

        `per_hand_type` and `per_category` give the share of true interactions found, and the quality of their boxes.
        """
        targets = [InteractionTarget.of(sample.example) for sample in samples]
        return InteractionStatistics(
            [self.frame_score(sample.example, sample.prediction) for sample in samples],
            [
                [(("hand_type", item.hand_type), ("category", item.category)) for item in target.interactions]
                for target in targets
            ],
        )

    def as_target(self, example: Example, prediction: Prediction) -> InteractionTarget | None:
        def true_interaction(item: BoxedInteraction) -> TrueInteraction:
            hands = [pixels_to_grid(box, example.inputs) for box in item.hand_boxes]
            grid = (hands, pixels_to_grid(item.object_box, example.inputs))
            return TrueInteraction("", "", item.hand_type, *grid, item.hand_boxes, item.object_box)

        answered = answered_interactions(prediction)
        return InteractionTarget(list(map(true_interaction, answered))) if answered else None

    def facets(self, example: Example) -> Fields:
        return {"object_size": sorted({box_size(item.object_box) for item in self._reference(example)})}

    def asked_facts(self, example: Example) -> Mapping[str, Sequence[str]]:
        """Return the contact of a frame with one; the rows of several cannot be told apart."""
        return super().asked_facts(example) if len(InteractionTarget.of(example).interactions) == 1 else {}

    def mistakes(self, example: Example, prediction: Prediction) -> Iterable[AnswerFailure]:
        """Return failures of hands in matched interactions, and failures of object boxes in unmatched interactions.

        A matched interaction fails if its hand type is wrong or the IoU of its hands is too low.
        """
        objects = [item.object_id for item in InteractionTarget.of(example).interactions]
        ids = [(name,) if name else () for name in objects]  # released files may omit object ids
        pairs = self.frame_score(example, prediction).pairs
        failures = [AnswerFailure("wrong_hand", ids[pair.reference]) for pair in pairs if not pair.hand_type_right]
        failures += [
            AnswerFailure("loose_hand", ids[pair.reference])
            for pair in pairs
            if pair.hand_type_right and pair.hand_iou < IOU_THRESHOLD
        ]
        reference = [item.object_box for item in self._reference(example)]
        predicted = [item.object_box for item in answered_interactions(prediction)]
        return (*failures, *box_failures(reference, predicted, [pair[:2] for pair in pairs], objects))

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        reference, frame = InteractionTarget.of(example).interactions, self.frame_score(example, prediction)
        predicted = answered_interactions(prediction)
        pairs = {pair.reference: pair for pair in frame.pairs}
        matched_answers = {pair.prediction for pair in frame.pairs}
        hits = [
            f"{_sentence(item)}: object IoU {pairs[i].object_iou:.2f}, hand IoU {pairs[i].hand_iou:.2f}, "
            f"answered as {predicted[pairs[i].prediction].hand_type}"
            for i, item in enumerate(reference)
            if i in pairs
        ]
        misses = [_sentence(item) for i, item in enumerate(reference) if i not in pairs]
        wrong = [
            f"{_hands(item.hand_type)} on an object at {box_text(item.object_box)}"
            for i, item in enumerate(predicted)
            if i not in matched_answers
        ]
        return Explanation.of(hits, misses, wrong)

    def reference_answer(self, example: Example, box_format: BoxFormat) -> str:
        target = InteractionTarget.of(example)
        return _answer_text(target.interactions, example.inputs, box_format, target.bbox_scale)

    def random_answer(self, example: Example, rng: random.Random, box_format: BoxFormat) -> str:
        """Return one random interaction with as many hands as its random type requires."""
        hand_type = rng.choice(HAND_TYPES)
        object_box, *hands = [random_grid_box(rng) for _ in range(3 if hand_type == "both" else 2)]
        return _answer_text([BoxedInteraction(hands, object_box, hand_type)], example.inputs, box_format)

    def prior_answer(self, example: Example, others: Sequence[Example], box_format: BoxFormat) -> str:
        """Return the interactions of the most frequent combination of hand types, at their usual places.

        Without other videos, return `centre_answer`.
        """
        items = usual_interactions(others)
        return _answer_text(items, example.inputs, box_format) if items else self.centre_answer(example, box_format)

    def centre_answer(self, example: Example, box_format: BoxFormat) -> str:
        """Return one interaction of a right hand. The boxes of hand and object both fill the middle of the frame."""
        middle = BoxedInteraction([list(CENTRE_ON_GRID)], list(CENTRE_ON_GRID), "right")  # the more frequent hand
        return _answer_text([middle], example.inputs, box_format)

    def answer_schema(self, example: Example) -> Fields:
        box = box_schema(example.inputs)
        hands: Fields = {"type": "array", "items": box, "minItems": 1}
        kind: Fields = {"type": "string", "enum": sorted(HAND_TYPES)}
        return {"type": "array", "items": object_schema({"hand_boxes": hands, "object_box": box, "hand_type": kind})}

    def overlays(self, example: Example, prediction: Prediction | None) -> tuple[Overlay, ...]:
        """Return the boxes of the hands, and of the objects that they act on."""
        names = (item.category for item in InteractionTarget.of(example).interactions)
        interactions: list[tuple[OverlayKind, BoxedInteraction, str]] = [
            *(("reference", item, name) for item, name in zip(self._reference(example), names, strict=True)),
            *(("predicted", item, "object") for item in answered_interactions(prediction)),
        ]
        return tuple(
            Overlay(0, as_xyxy(box), kind, label)
            for kind, item, name in interactions
            for box, label in (*((box, _hands(item.hand_type)) for box in item.hand_boxes), (item.object_box, name))
        )

    def frame_score(self, example: Example, prediction: Prediction | None) -> FrameScore:
        """Return the score of one frame in pixels. The protocol determines how interactions are matched."""
        answered = None if prediction is None else [item.write() for item in answered_interactions(prediction)]
        reference = [item.write() for item in self._reference(example)]
        return score_frame(answered, reference, matching="highest_first" if self.follows_paper else "greedy")

    def _reference(self, example: Example) -> list[BoxedInteraction]:
        """Return the true interactions in pixels.

        Boxes are converted from the frozen grid, or are as annotated under the paper's protocol (paper, A.1).
        """
        target, name = InteractionTarget.of(example), example.example_id
        if self.follows_paper:
            return [
                BoxedInteraction(
                    require_annotated(item.hand_pixels, "hand_pixels", name),
                    require_annotated(item.object_pixels, "object_pixels", name),
                    item.hand_type,
                )
                for item in target.interactions
            ]
        return [
            map_boxes(item, lambda box: grid_to_pixels(box, example.inputs, target.bbox_scale))
            for item in target.interactions
        ]


def _example(arrays: FrameArrays, frame: int, actions: Sequence[HandAction], scale: int) -> Example:
    video = arrays.video
    numbers = {number for action in actions for number in (action.target, *action.hands)}
    positions = {number: arrays.position(number, frame) for number in numbers}
    interactions = [
        TrueInteraction(
            object_id=video.objects[action.target].id,
            category=video.objects[action.target].category,
            hand_type=action.hand_type,
            hand_boxes=[arrays.grid(positions[hand]) for hand in action.hands],
            object_box=arrays.grid(positions[action.target]),
            hand_pixels=[arrays.pixels(positions[hand]) for hand in action.hands],
            object_pixels=arrays.pixels(positions[action.target]),
        )
        for action in actions
    ]
    hand_types = sorted({action.hand_type for action in actions})
    return HandObject.new_example(
        f"{HandObject.upstream_name}:{video.video_id}:{frame}",
        video.video_id,
        [frame],
        label=" + ".join(hand_types),
        inputs=FrameSize(video.video.width, video.video.height),
        target=InteractionTarget(interactions, "xyxy", scale),
        metadata={
            **arrays.metadata(frame),
            "interactions": len(actions),
            "hand_types": hand_types,
            "categories": sorted({item.category for item in interactions}),
            "verbs": sorted({verb for action in actions for verb in action.verbs}),
        },
        evidence=HandObjectEvidence(
            object_ids=[item.object_id for item in interactions],
            hand_ids=[video.objects[i].id for i in dict.fromkeys(i for action in actions for i in action.hands)],
            instance_rows=sorted(map(arrays.row, positions.values())),
            relation_rows=sorted({row for action in actions for row in action.rows}),
        ),
    )


def _answer_text(
    items: Sequence[BoxedInteraction | TrueInteraction], inputs: Fields, box_format: BoxFormat, scale: int = GRID
) -> str:
    """Write interactions, whose boxes lie on the grid of 0..scale, as a model would."""
    boxed = (map_boxes(item, lambda box: write_grid(box, inputs, box_format, scale)) for item in items)
    return json.dumps([item.write() for item in boxed])


def _sentence(item: TrueInteraction) -> str:
    return f"{_hands(item.hand_type)} on {item.category}"


def _hands(hand_type: str) -> str:
    return "both hands" if hand_type == "both" else f"{hand_type} hand"
