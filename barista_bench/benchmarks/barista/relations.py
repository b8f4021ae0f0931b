"""Relation extraction (paper, sections 4.2.2 and A.3.2; released rules, docs/upstream/barista.md).

The model sees a frame without and with a set-of-mark overlay, and lists every relation between the marked objects.
`relation_answers.py` reads and scores answers.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray
from PIL import Image

from barista_bench.benchmarks.barista.common import PROMPT_PACKAGE
from barista_bench.benchmarks.barista.frame_aids import RelationsAids
from barista_bench.benchmarks.barista.relation_answers import (
    MarkedObject,
    MarkedRelation,
    MarkLook,
    RelationInputs,
    RelationSet,
    VocabularyEntry,
    answered_relations,
    likely_relations,
    mark_order,
    marked_categories,
    marked_objects,
    read_by_paper,
    read_released,
    relation_failures,
    relation_statistics,
    true_relations,
    vocabulary_entries,
)
from barista_bench.benchmarks.kinds.frames import FrameArrays, FrameMetadata, FrameSampling, frame_metadata
from barista_bench.core.boxes import BoxFormat, xywh_to_xyxy
from barista_bench.core.deriving import Candidate, GraphTask, Vocabulary
from barista_bench.core.display import AnswerFailure, Explanation, Overlay
from barista_bench.core.example import (
    Evidence,
    Example,
    Fields,
    Int64,
    Json,
    ParseError,
    Prediction,
    Scored,
    graph_facts,
)
from barista_bench.core.options import Fraction, packaged_protocol
from barista_bench.core.prompt import Prompt, object_schema
from barista_bench.core.remembering import remember
from barista_bench.core.statistics import MicroF1, SumStatistics
from barista_bench.errors import DataError
from barista_bench.media.set_of_mark import Mark, draw_marks
from barista_bench.metrics.tuple_f1.scoring import RelationTuple
from barista_bench.scene_graph import Rle, VideoGraph, decode_mask
from barista_bench.scene_graph.masks import run_problems
from barista_bench.scene_graph.video_graph import HANDS


class RelationEvidence(Evidence):
    """The marked objects, and rows of the annotation file."""

    object_ids: list[str]
    relation_rows: list[Int64]
    instance_rows: list[Int64]


@dataclass(frozen=True, slots=True)
class RelationsSampling(FrameSampling):
    """The sampling of frames with numbered marks.

    Args:
        mask_alpha: opacity of the marks over the frame, 0 to 1.
        boundary_alpha: how much darker the inside of a mark is than its colour, 0 to 1.
        font_size: font size of the numbers on the marks.
    """

    mask_alpha: Fraction = 0.5
    boundary_alpha: Fraction = 0.9
    font_size: Annotated[float, Meta(ge=1, le=1000)] = 20

    @property
    def look(self) -> MarkLook:
        """Return the look of the marks."""
        return MarkLook(float(self.mask_alpha), float(self.boundary_alpha), float(self.font_size))


class Relations(GraphTask[RelationsSampling]):
    benchmark = "barista"
    name = "relations"
    upstream_name = "relation_extraction"
    version = 3
    primary = "micro_f1"
    primary_note = "F1 of relations over all frames; right when objects, type and value agree."
    sample_score = "f1"
    decided_by = MicroF1("tp", "n_predicted", "n_reference", entry_tokens=12)
    sampling = RelationsSampling(limit=1000, seed=42, frame_step=300)
    prompt_package = PROMPT_PACKAGE
    row_note = "a frame, raw and with numbered masks, and all relations between the numbered objects"
    answer_note = "JSON: numbered objects and relations"
    options = packaged_protocol(PROMPT_PACKAGE, name)

    inputs_type = RelationInputs
    target_type = RelationSet
    metadata_type = FrameMetadata
    layers = ("relations",)
    aids = RelationsAids(asked_about=("relations",), default=("objects",))
    evidence_type = RelationEvidence

    def vocabulary(self, video: VideoGraph, sampling: RelationsSampling) -> Vocabulary:
        """Return the (relation type, value) pairs that hold on some frame. A question lists the pairs of all videos."""
        return video.relation_labels()

    def span(self, video: VideoGraph, candidate: Candidate, sampling: RelationsSampling) -> tuple[int, int]:
        return candidate.frame, candidate.frame + 1

    def candidates(self, video: VideoGraph, sampling: RelationsSampling) -> Iterator[Candidate]:
        """Yield the frames at the sampled stride that have a relation."""
        arrays = FrameArrays(video)
        for frame in arrays.find_related(range(len(video.relations_table.start)), arrays.frames(sampling)).tolist():
            yield Candidate(video.video_id, frame)

    def build(
        self, video: VideoGraph, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: RelationsSampling
    ) -> Iterator[Example]:
        arrays, ranges = FrameArrays(video), range(len(video.relations_table.start))
        entries = vocabulary_entries(vocabulary)
        for candidate in candidates:
            positions = np.flatnonzero(arrays.active_relations(ranges, np.array([candidate.frame]))).tolist()
            yield _example(video, candidate.frame, positions, entries, sampling)

    def prompt(self, example: Example, box_format: BoxFormat) -> Prompt:
        inputs = RelationInputs.of(example)
        vocabulary = "\n".join(
            "\n".join([f"  {entry.relation_type}:", *(f"    - {value}" for value in entry.values)])
            for entry in inputs.vocabulary
        )
        legend = "\n".join(f"  {item.mark}: {item.category}" for item in inputs.objects)
        return self.prompts.prompt(2, vocabulary=vocabulary or "  (none)", legend=legend)

    def images(self, example: Example, frames: Sequence[NDArray[np.uint8]]) -> tuple[Image.Image, ...]:
        """Return the original frame and the frame with marks, both at the annotations' size."""
        (frame,) = frames
        inputs = RelationInputs.of(example)
        size = (inputs.frame_width, inputs.frame_height)
        marks = (Mark(item.mark, _mask(item, size, example.example_id)) for item in inputs.objects)
        look = inputs.marks.write()
        return Image.fromarray(frame), draw_marks(frame, marks, size, **look, darken_inside=not self.follows_paper)

    def image_frames(self, example: Example) -> Sequence[int]:
        return 0, 0

    def parse(self, text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
        return read_by_paper(text) if self.follows_paper else read_released(text)

    def statistics(self, samples: Sequence[Scored]) -> SumStatistics:
        """Return the statistics. Precision, recall and F1 of a sample cover only its frame."""
        return relation_statistics(samples, self.follows_paper)

    def facets(self, example: Example) -> Fields:
        reference = RelationSet.of(example).relations
        return {
            "relation_type": sorted({item.relation_type for item in reference}),
            "relation_value": sorted({item.value for item in reference}),
            "objects": len(_objects(example)),
        }

    def mistakes(self, example: Example, prediction: Prediction) -> Iterable[AnswerFailure]:
        """Return failures of the true and answered relations that remain unmatched."""
        ids, hands = _marked_ids_and_hands(example)
        kinds = relation_failures(
            true_relations(example, self.follows_paper), answered_relations(prediction, self.follows_paper), hands
        )
        return (AnswerFailure(kind, tuple(ids[mark] for mark in marks if mark in ids)) for kind, marks in kinds)

    def asked_facts(self, example: Example) -> Mapping[str, Sequence[str]]:
        """Return each relation with its two objects."""
        facts, (ids, _) = graph_facts(example), _marked_ids_and_hands(example)
        ends = [
            (ids.get(item.source_id, ""), ids.get(item.target_id, "")) for item in RelationSet.of(example).relations
        ]
        return dict(zip(facts, ends, strict=True)) if len(facts) == len(ends) else {}

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        names = {item.mark: item.category for item in _objects(example)}
        reference = true_relations(example, self.follows_paper)
        answered = answered_relations(prediction, self.follows_paper) if prediction else Counter()
        groups = (reference & answered, reference - answered, answered - reference)
        return Explanation.of(
            *([_sentence(relation, names) for relation in sorted(group.elements())] for group in groups)
        )

    def reference_answer(self, example: Example, box_format: BoxFormat) -> str:
        return json.dumps(example.target["relations"])

    def random_answer(self, example: Example, rng: random.Random, box_format: BoxFormat) -> str:
        inputs = RelationInputs.of(example)
        marks = [item.mark for item in inputs.objects]
        labels = [(entry.relation_type, value) for entry in inputs.vocabulary for value in entry.values]
        answer = []
        for _ in range(rng.randint(1, len(marks)) if len(marks) > 1 else 0):
            source, target = rng.sample(marks, 2)
            answer.append(MarkedRelation(source, target, *rng.choice(labels)))
        return _as_json(answer)

    def prior_answer(self, example: Example, others: Sequence[Example], box_format: BoxFormat) -> str:
        """Return the usual relations between objects of these categories, if answering them raises the pooled F1.

        The legend in the prompt gives the categories, and `likely_relations` gives the useful relations. Without other
        videos, the answer is empty.
        """
        likely, names = likely_relations(others), marked_categories(example)
        answer = [
            MarkedRelation(source, target, kind, value)
            for source, target in permutations(sorted(names), 2)
            for kind, value in likely.get((names[source], names[target]), ())
        ]
        return _as_json(answer)

    def overlays(self, example: Example, prediction: Prediction | None) -> tuple[Overlay, ...]:
        """Return the boxes of the marked objects. The second image shows their masks."""
        return tuple(
            Overlay(0, xywh_to_xyxy(item.bbox), "given", f"{item.mark} {item.category}") for item in _objects(example)
        )

    def image_captions(self, example: Example) -> tuple[str, ...]:
        return tuple(f"frame {example.frames[0].frame_index}{what}" for what in ("", ", set of mark"))

    def as_target(self, example: Example, prediction: Prediction) -> RelationSet | None:
        answered = RelationSet.read(prediction.value)
        return answered if answered.relations else None

    def answer_schema(self, example: Example) -> Fields:
        """Return the schema: an array of objects with four fields, limited to the question's marks and value pairs."""
        inputs = RelationInputs.of(example)
        if not inputs.objects or not inputs.vocabulary:
            return {"type": "array", "maxItems": 0}  # only an empty answer is possible
        mark: Fields = {"type": "integer", "enum": [item.mark for item in inputs.objects]}
        kinds: list[Json] = [
            object_schema(
                {
                    "source_id": mark,
                    "target_id": mark,
                    "relation_type": {"type": "string", "const": entry.relation_type},
                    "value": {"type": "string", "enum": entry.values},
                }
            )
            for entry in inputs.vocabulary
        ]
        return {"type": "array", "items": {"anyOf": kinds}}

    @property
    def counts_provider_errors(self) -> bool:
        return not self.follows_paper


@remember
def _marked_ids_and_hands(example: Example) -> tuple[dict[int, str], set[int]]:
    """Return a map from marks to object ids, and the marks of hands."""
    objects = _objects(example)
    ids = {item.mark: item.object_id for item in objects if item.object_id}
    return ids, {item.mark for item in objects if item.category.lower() in HANDS}


def _mask(item: MarkedObject, size: tuple[int, int], example_id: str) -> NDArray[np.bool_]:
    """Return the mask of a mark, (height, width).

    The mask is checked first, because a dataset may come from anywhere and pycocotools trusts its input.
    """
    counts, (mask_height, mask_width) = item.segmentation.counts, item.segmentation.size
    width, height = size
    problem: str | None
    if not counts:
        problem = "the object has no usable mask"
    elif (mask_height, mask_width) != (height, width):
        problem = f"its size is {[mask_height, mask_width]}, the frame's is {[height, width]}"
    else:
        problem = run_problems([counts], height * width)[0]
    if not problem:
        mask = decode_mask(Rle(counts=counts, size=(height, width)))
        if mask.any():
            return mask
        problem = "its mask is empty"
    raise DataError(
        f"{example_id}: mark {item.mark} ({item.category}) cannot be drawn: {problem}. "
        "Fix: annotate its mask, or rebuild the dataset with the annotations' own videos"
    )


def _example(
    video: VideoGraph,
    frame: int,
    positions: Sequence[int],
    vocabulary: list[VocabularyEntry],
    sampling: RelationsSampling,
) -> Example:
    """Return the example. `positions` are the relation ranges that hold on the frame, in the order of the file."""
    instances, table = mark_order(video, frame), video.relations_table
    marks = {instance.object.id: mark for mark, instance in enumerate(instances, start=1)}
    relations = []
    for position in positions:
        kind, value, *_ = table.entry(position)
        source, target = (video.objects[int(end[position])].id for end in (table.source, table.target))
        relations.append(MarkedRelation(marks[source], marks[target], kind, value))
    size = (video.video.width, video.video.height)
    return Relations.new_example(
        f"{Relations.upstream_name}:{video.video_id}:{frame}",
        video.video_id,
        [frame],
        label=f"{len(relations)} relations",
        inputs=RelationInputs(*size, marked_objects(video, instances), vocabulary, sampling.look),
        target=RelationSet(relations),
        metadata=frame_metadata(video, frame),
        evidence=RelationEvidence(
            object_ids=[instance.object.id for instance in instances],
            relation_rows=sorted({int(table.row[position]) for position in positions}),
            instance_rows=[instance.row for instance in instances],
        ),
    )


def _sentence(relation: RelationTuple, names: dict[int, str]) -> str:
    """Return a relation in words: `4 right hand → holds → 2 coffee cup (human_actions)`."""
    source, target = (f"{mark} {names.get(mark, '(no such mark)')}" for mark in relation[:2])
    return f"{source} → {relation.value} → {target} ({relation.relation_type})"


def _objects(example: Example) -> list[MarkedObject]:
    return RelationInputs.of(example).objects


def _as_json(relations: Iterable[MarkedRelation]) -> str:
    return json.dumps([relation.write() for relation in relations])
