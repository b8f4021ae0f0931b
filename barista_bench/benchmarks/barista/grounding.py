"""Phrase grounding (paper, sections 4.2.1, A.1 and A.2.1; released rules, docs/upstream/barista.md).

Given a frame and a phrase such as `white coffee cup held by the left hand`, the model boxes every object that the
phrase describes. The score is COCO's mean average precision. Each example counts as an image, its category is the
label, and all confidences are 1. Under the paper's protocol a detector may give confidences (`BoxStatistics`).

The choice of frames and categories does not depend on the relations that are sampled for phrases. Without confidences,
mean average precision depends on the order of the examples. As in the release, this is the order of the frozen set.
`tie_spread` gives the scores of other orders. The F1 scores do not depend on the order. Differences between release and
paper are in `protocols.yaml`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from barista_bench.benchmarks.barista.common import PROMPT_PACKAGE, load_named_domain, thin_frames
from barista_bench.benchmarks.barista.frame_aids import GroundingAids
from barista_bench.benchmarks.barista.phrases import (
    DescribedObject,
    Phrase,
    RelationKey,
    is_color,
    make_phrase,
    range_keys,
    subject_index,
)
from barista_bench.benchmarks.barista.released_boxes import read_released
from barista_bench.benchmarks.kinds.box_answers import (
    CENTRE_ON_GRID,
    box_fields,
    grid_to_pixels,
    on_usual_grid,
    pixels_to_grid,
    require_annotated,
    usual_boxes,
    write_grid,
)
from barista_bench.benchmarks.kinds.boxes import ObjectBoxTask, answered_boxes, read_boxes
from barista_bench.benchmarks.kinds.frames import Bools, FrameArrays, FrameMetadata, Frames, FrameSampling, in_parts
from barista_bench.core.boxes import GRID, BoxFormat, as_xyxy, box_names, describe_format, to_grid
from barista_bench.core.deriving import Candidate, GraphTask, Vocabulary
from barista_bench.core.example import (
    Evidence,
    Example,
    Fields,
    GridBox,
    Inputs,
    Int64,
    ParseError,
    PixelBox,
    Prediction,
    Target,
    field_types,
)
from barista_bench.core.options import Count, packaged_protocol
from barista_bench.core.prompt import Prompt
from barista_bench.core.remembering import remember
from barista_bench.errors import ConfigError
from barista_bench.scene_graph import VideoGraph
from barista_bench.scene_graph.video_graph import UNNAMED

Boxes = list[PixelBox]


class GroundingInputs(Inputs):
    phrase: str
    category: str
    frame_width: int
    frame_height: int


class GroundingTarget(Target, kw_only=True):
    """The true boxes as [x0, y0, x1, y1].

    `boxes` are in pixels as annotated; released files lack them. `ground_truth_boxes` are on the grid of
    0..`bbox_scale`.
    """

    boxes: list[PixelBox] | None = None
    ground_truth_boxes: list[GridBox]
    bbox_format: str = "xyxy"
    bbox_scale: int = GRID


class GroundingMetadata(FrameMetadata):
    """The words of the phrase, and the number of objects that it describes."""

    category: str
    colors: list[str]
    relation: str
    related_category: str
    objects: int


class GroundingEvidence(Evidence):
    """The objects that the phrase describes or mentions, and rows of the annotation file."""

    object_ids: list[str]
    related_object_id: str
    instance_rows: list[Int64]
    relation_rows: list[Int64]
    attribute_rows: list[Int64]


@dataclass(frozen=True, slots=True)
class GroundingSampling(FrameSampling):
    """The sampling of phrases on frames.

    Args:
        sampling_seed: seed for sampling the relations in phrases, over all videos; None takes `seed`.
        fraction: share of each video's candidate frames to keep, evenly spaced.
        in_activities: use only frames inside an activity.
        with_relations: use only frames with a relation.
        min_area: skip objects whose box has a smaller area in square pixels.
        domain: file of a domain's words and phrases; `default` and None stand for coffee making.
        box_scale: true boxes are integers from 0 to this value, which corresponds to the full side of the frame.
    """

    sampling_seed: int | None = None
    fraction: Annotated[float, Meta(gt=0, le=1)] = 1.0
    in_activities: bool = False
    with_relations: bool = False
    min_area: float = 0.0
    domain: Annotated[str, Meta(min_length=1)] | None = None
    box_scale: Count = GRID


class Grounding(ObjectBoxTask, GraphTask[GroundingSampling]):
    benchmark = "barista"
    name = "grounding"
    upstream_name = "grounding"
    version = 3
    sampling = GroundingSampling(
        limit=1000, seed=42, in_activities=True, with_relations=True, fraction=0.1, min_area=100.0
    )
    prompt_package = PROMPT_PACKAGE
    row_note = "a frame and a phrase, and the boxes of all objects that the phrase names"
    options = packaged_protocol(PROMPT_PACKAGE, name)
    layers = ("attributes", "relations")
    aids = GroundingAids(asked_about=("objects",), default=("states", "relations"))

    inputs_type = GroundingInputs
    target_type = GroundingTarget
    metadata_type = GroundingMetadata
    evidence_type = GroundingEvidence

    def candidates(self, video: VideoGraph, sampling: GroundingSampling) -> Iterator[Candidate]:
        """Yield, for each frame kept, the sorted categories with a relation or colour that a phrase can name.

        Frames are thinned evenly. `numbers` counts the keys of each object of the category that has keys. `item` is the
        index of the described object among those objects, or -1 if it has no key.
        """
        facts = _PhraseFacts(video, sampling)
        objects, is_large = video.instances_table.object, facts.is_large
        categories = [item.category for item in video.objects]
        for frame, keys, colors in facts.counts(facts.frames(sampling)):
            groups: dict[str, list[int]] = defaultdict(list)
            for position in facts.arrays.positions_at(frame):
                number = int(objects[position])
                if is_large[position] and categories[number].lower() != UNNAMED:
                    groups[categories[number]].append(number)
            for category in sorted(groups):
                counts = [int(keys[number]) for number in groups[category]]
                hues = [int(colors[number]) for number in groups[category]]
                if any(counts) or any(hues):
                    subject = subject_index(counts, hues)
                    place = sum(count > 0 for count in counts[:subject]) if counts[subject] else -1
                    yield Candidate(video.video_id, frame, category, place, tuple(filter(None, counts)))

    def incompleteness(self, video: VideoGraph, candidate: Candidate, sampling: GroundingSampling) -> str | None:
        """Return why annotation may lack objects of the category, or facts that distinguish them; None otherwise."""
        span = candidate.frame, candidate.frame + 1
        if not video.coverage.covers_category(candidate.group, *span):
            return "its source does not mark everything of the category there"
        several = sum(item.category == candidate.group for item in video.objects_at(candidate.frame)) > 1
        is_told = not several or all(video.coverage.covers_layer(layer, *span) for layer in ("attributes", "relations"))
        return None if is_told else "its source does not state all that could tell things of the category apart there"

    def select(
        self, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: GroundingSampling
    ) -> Iterator[Candidate]:
        """Sample the relation that each phrase names. `item` becomes the index of its key, or -1 without a key.

        One generator serves all videos. As in the release, it draws a number for each object with a key, whether or not
        the phrase describes the object.
        """
        rng = sampling.generator(sampling.sampling_seed)
        for candidate in candidates:
            choices = [rng.choice(range(count)) for count in candidate.numbers]
            yield candidate._replace(item=choices[candidate.item] if candidate.item >= 0 else -1, numbers=())

    def build(
        self, video: VideoGraph, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: GroundingSampling
    ) -> Iterator[Example]:
        facts = _PhraseFacts(video, sampling)
        for candidate in candidates:
            yield _example(facts.arrays, candidate, facts.phrase(candidate), sampling.box_scale)

    def prompt(self, example: Example, box_format: BoxFormat) -> Prompt:
        fields = {
            "box_format": describe_format(box_format),
            "box_order": box_names(box_format),
            "phrase": GroundingInputs.of(example).phrase,
        }
        return self.prompts.prompt(1, **(box_fields(self.prompts, box_format) | fields))

    def parse(self, text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
        """Return the answered boxes. Under the paper's protocol they have confidences if the answer has them."""
        return (read_boxes if self.follows_paper else read_released)(text, inputs, box_format)

    def as_target(self, example: Example, prediction: Prediction) -> GroundingTarget | None:
        boxes = answered_boxes(prediction)
        grid = [pixels_to_grid(box, example.inputs) for box in boxes]
        return GroundingTarget(boxes=boxes, ground_truth_boxes=grid) if boxes else None

    def reference_answer(self, example: Example, box_format: BoxFormat) -> str:
        target = GroundingTarget.of(example)
        grid, scale = target.ground_truth_boxes, target.bbox_scale
        return json.dumps({"bboxes": [write_grid(box, example.inputs, box_format, scale) for box in grid]})

    def prior_answer(self, example: Example, others: Sequence[Example], box_format: BoxFormat) -> str:
        """Return the usual number of boxes at their usual places for the phrase's category.

        For an unseen category, return the usual boxes of all categories. Without other videos, return the centre box.
        """
        by_category = usual_boxes_by_category(others)
        boxes = by_category.get(GroundingInputs.of(example).category, by_category.get("", [list(CENTRE_ON_GRID)]))
        return json.dumps({"bboxes": [write_grid(box, example.inputs, box_format) for box in boxes]})

    def subject(self, example: Example) -> str:
        return GroundingInputs.of(example).phrase

    def category(self, example: Example) -> str:
        return GroundingInputs.of(example).category

    def true_boxes(self, example: Example) -> Boxes:
        """Return boxes in pixels: of the frozen grid, or as annotated under the paper's protocol (paper, A.1)."""
        target = GroundingTarget.of(example)
        if self.follows_paper:
            return require_annotated(target.boxes, "boxes", example.example_id)
        return [grid_to_pixels(box, example.inputs, target.bbox_scale) for box in target.ground_truth_boxes]

    @classmethod
    def object_question(
        cls, name: str, boxes: Mapping[str, PixelBox], frame: int, size: tuple[int, int], owner: Example
    ) -> Example:
        metadata = {field: owner.metadata[field] for field in field_types(FrameMetadata) if field in owner.metadata}
        words: Fields = {"category": name, "colors": [], "relation": "", "related_category": "", "objects": len(boxes)}
        return cls.new_example(
            f"{cls.upstream_name}:{owner.video_id}:{frame}:{name}",
            owner.video_id,
            [frame],
            label=name,
            inputs=GroundingInputs(name, name, *size),
            target=GroundingTarget(
                boxes=list(boxes.values()), ground_truth_boxes=[to_grid(as_xyxy(box), *size) for box in boxes.values()]
            ),
            metadata={**metadata, **words},
            evidence=GroundingEvidence(list(boxes), "", [], [], []),
        )


@remember
def usual_boxes_by_category(examples: Sequence[Example]) -> dict[str, Boxes]:
    """Return the usual boxes of each category on the grid of 0..1000, and of all categories under the empty name."""
    by_category: dict[str, list[Boxes]] = defaultdict(list)
    for example in examples:
        target = GroundingTarget.of(example)
        boxes = [on_usual_grid(box, target.bbox_scale) for box in target.ground_truth_boxes]
        for name in (GroundingInputs.of(example).category, ""):
            by_category[name].append(boxes)
    return {name: usual_boxes(answers) for name, answers in by_category.items()}


class _PhraseFacts:
    """The facts of one video for grounding: relations and colours by frame, and the phrase of a candidate.

    `keys` and `colors` list the facts that phrases may name, in the order of the file. An entry has the position of its
    range and the index of its object. It also has the key, or the colour and the colour's row.
    """

    def __init__(self, video: VideoGraph, sampling: GroundingSampling) -> None:
        self.video, self.arrays = video, FrameArrays(video, sampling.box_scale)
        rules = load_named_domain(sampling.domain).phrases
        if rules is None:
            raise ConfigError(f"{sampling.domain}: phrases: not there. Fix: write it as the package's domain.yaml does")
        self.relations = range(len(video.relations_table.start))
        self.keys: list[tuple[int, int, RelationKey]] = [
            (position, *key) for position in self.relations for key in range_keys(video, position, rules)
        ]
        table = video.attributes_table
        self.attributes = range(len(table.start))
        kinds = [i for i, (kind, _) in enumerate(table.labels) if kind == "color"]
        self.colors: list[tuple[int, int, str, int]] = []
        for position in np.flatnonzero(np.isin(table.label, kinds)).tolist():
            (_, value, _, _, row), number = table.entry(position), int(table.source[position])
            if is_color(value, video.objects[number].category, rules):
                self.colors.append((position, number, value, row))
        box = video.instances_table.bbox
        self.is_large: Bools = box[:, 2] * box[:, 3] >= sampling.min_area

    def frames(self, sampling: GroundingSampling) -> Frames:
        frames = self.arrays.frames(sampling, in_activities=sampling.in_activities)
        if sampling.with_relations:
            frames = self.arrays.find_related(self.relations, frames)
        return thin_frames(frames, sampling.fraction)

    def counts(self, frames: Frames) -> Iterator[tuple[int, NDArray[np.int32], NDArray[np.int32]]]:
        """Yield each frame with boxes, and for each object the numbers of keys and of colours that a phrase may use."""
        objects = len(self.video.objects)
        for part in in_parts(self.arrays.with_boxes(frames), objects + len(self.relations) + len(self.attributes)):
            related = self.arrays.active_relations(self.relations, part)
            stated = self.arrays.active_attributes(self.attributes, part)
            color_frames: dict[tuple[int, str], Bools] = {}
            for position, number, value, _ in self.colors:
                color_frames[number, value] = color_frames.get((number, value), np.False_) | stated[position]
            keys, colors = np.zeros((2, objects, len(part)), dtype=np.int32)
            for position, number, _ in self.keys:
                keys[number] += related[position]
            for (number, _), holds in color_frames.items():
                colors[number] += holds
            yield from zip(part.tolist(), keys.T, colors.T, strict=True)

    def phrase(self, candidate: Candidate) -> Phrase:
        """Return the phrase of a candidate for which a key has been sampled."""
        frame, category = np.array([candidate.frame]), candidate.group
        related = self.arrays.active_relations(self.relations, frame)[:, 0]
        stated = self.arrays.active_attributes(self.attributes, frame)[:, 0]
        keys: dict[int, list[RelationKey]] = defaultdict(list)
        for position, number, key in self.keys:
            if related[position]:
                keys[number].append(key)
        colors: dict[int, dict[str, int]] = defaultdict(dict)
        for position, number, value, row in self.colors:
            if stated[position]:
                colors[number].setdefault(value, row)
        numbers = self.video.instances_table.object
        group = [
            DescribedObject(self.video.objects[number], position, colors[number], keys[number])
            for position in self.arrays.positions_at(candidate.frame)
            for number in [int(numbers[position])]
            if self.video.objects[number].category == category and self.is_large[position]
        ]
        return make_phrase(group, candidate.item)


def _example(arrays: FrameArrays, candidate: Candidate, phrase: Phrase, scale: int) -> Example:
    video, (text, key, reference) = arrays.video, phrase
    frame, category = candidate.frame, candidate.group
    positions = [item.position for item in reference]
    named_keys = [relation for item in reference for relation in item.keys if key is not None and relation.fits(key)]
    return Grounding.new_example(
        f"{Grounding.upstream_name}:{video.video_id}:{frame}:{category}",
        video.video_id,
        [frame],
        label=category,
        inputs=GroundingInputs(text, category, video.video.width, video.video.height),
        target=GroundingTarget(
            boxes=[arrays.pixels(position) for position in positions],
            ground_truth_boxes=[arrays.grid(position) for position in positions],
            bbox_scale=scale,
        ),
        metadata={
            **arrays.metadata(frame),
            "category": category,
            "colors": sorted(reference[0].colors),
            "relation": key.value if key else "",
            "related_category": key.related.category if key else "",
            "objects": len(reference),
        },
        evidence=GroundingEvidence(
            object_ids=[item.object.id for item in reference],
            related_object_id=key.related.id if key else "",
            instance_rows=[arrays.row(position) for position in positions],
            relation_rows=sorted({relation.row for relation in named_keys}),
            attribute_rows=sorted({row for item in reference for row in item.colors.values()}),
        ),
    )
