"""Relation extraction (paper, sections 4.2.2 and A.3.2; released rules, upstream.md 1.9).

A frame is shown raw and with a set-of-mark overlay; the model lists every relation between the marked objects. Scored
by exact multiset matching of (source, target, relation type, value), after case and outer white space are removed; with
`protocol="paper"` any white space within a text is one space.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING, TypedDict, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from barista_bench.benchmarks.barista import released_answers
from barista_bench.benchmarks.barista.common import PROMPT_PACKAGE, frame_metadata, metadata_features
from barista_bench.benchmarks.barista.draws import tuple_figures
from barista_bench.benchmarks.barista.failures import relation_failures
from barista_bench.benchmarks.barista.frame_index import FrameIndex, any_row
from barista_bench.benchmarks.barista.priors import likely_relations, marked_categories
from barista_bench.benchmarks.barista.protocols import RULES
from barista_bench.benchmarks.barista.schemas import relations_schema
from barista_bench.benchmarks.barista.set_of_mark import Mark, draw_marks
from barista_bench.benchmarks.parsing import integer, is_text, json_arrays, unfenced
from barista_bench.benchmarks.pooling import Floats
from barista_bench.benchmarks.truncated import cut_array
from barista_bench.core.boxes import xywh_to_xyxy
from barista_bench.core.graph_task import Candidate, GraphTask, Vocabulary
from barista_bench.core.prompt import BoxFormat, Prompt
from barista_bench.core.task import (
    Example,
    Explanation,
    ExplanationRow,
    Failure,
    Fields,
    FrameRef,
    Json,
    Overlay,
    ParseError,
    Prediction,
    Sampling,
    Scored,
    Verdict,
)
from barista_bench.errors import DataError
from barista_bench.metrics.tuple_f1.scoring import GroupsOf, Relation, as_relations, score_example, tuple_f1
from barista_bench.scene_graph import Instance, Rle, VideoGraph, decode_mask
from barista_bench.scene_graph.masks import run_problems
from barista_bench.scene_graph.video_graph import HANDS

if TYPE_CHECKING:
    from datasets import Features


class MarkedObject(TypedDict):
    """`mark` is the number shown; `bbox` is [x, y, width, height] in pixels; the mask is a COCO encoding."""

    mark: int
    object_id: str
    category: str
    bbox: list[float]
    segmentation: dict[str, Json]


class VocabularyEntry(TypedDict):
    relation_type: str
    values: list[str]


MARK_LOOK = ("mask_alpha", "boundary_alpha", "font_size")
"""What the marks look like: fields of `Sampling`."""


class RelationTuple(TypedDict):
    source_id: int
    target_id: int
    relation_type: str
    value: str


class Relations(GraphTask):
    benchmark = "barista"
    name = "relations"
    upstream_name = "relation_extraction"
    version = 2
    primary = "micro_f1"
    sample_score = "f1"
    sampling = Sampling(limit=1000, seed=42, frame_step=300)
    sampling_uses = frozenset({"frame_step", *MARK_LOOK})
    prompt_package = PROMPT_PACKAGE
    row_note = "a frame, raw and with numbered masks, and all relations between the numbered objects"
    protocol_rules = RULES[name]

    def features(self) -> Features:
        from datasets import Features, List, Value

        relation = {
            "source_id": Value("int32"),
            "target_id": Value("int32"),
            "relation_type": Value("string"),
            "value": Value("string"),
        }
        marked = {
            "mark": Value("int32"),
            "object_id": Value("string"),
            "category": Value("string"),
            "bbox": List(Value("float64"), length=4),
            "segmentation": {"size": List(Value("int32"), length=2), "counts": Value("string")},
        }
        return Features(
            {
                "inputs": {
                    "frame_width": Value("int32"),
                    "frame_height": Value("int32"),
                    "objects": List(marked),
                    "vocabulary": List({"relation_type": Value("string"), "values": List(Value("string"))}),
                    "marks": dict.fromkeys(MARK_LOOK, Value("float64")),
                },
                "target": {"relations": List(relation)},
                "metadata": metadata_features(),
                "evidence": {
                    "object_ids": List(Value("string")),
                    "relation_rows": List(Value("int64")),
                    "instance_rows": List(Value("int64")),
                },
            }
        )

    def vocabulary(self, video: VideoGraph, sampling: Sampling) -> Vocabulary:
        """(relation type, value) pairs that hold on some frame: a question offers those of all videos."""
        return video.held_labels()

    def candidates(self, video: VideoGraph, sampling: Sampling) -> Iterator[Candidate]:
        """Frames with a relation, at the stride."""
        index = FrameIndex(video)
        related = any_row(index.relations(range(len(video.relations_table.start))))
        frames = index.frames(sampling)
        for frame in frames[related[frames]].tolist():
            yield Candidate(video.video_id, frame)

    def build(
        self, video: VideoGraph, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: Sampling
    ) -> Iterator[Example]:
        index = FrameIndex(video)
        active = index.relations(range(len(video.relations_table.start)))
        entries = vocabulary_entries(vocabulary)
        for candidate in candidates:
            positions = np.flatnonzero(active[:, candidate.frame]).tolist()
            yield self.stamped(_example(video, candidate.frame, positions, entries, sampling))

    def prompt(self, example: Example, boxes: BoxFormat) -> Prompt:
        vocabulary = "\n".join(
            "\n".join([f"  {entry['relation_type']}:", *(f"    - {value}" for value in entry["values"])])
            for entry in _vocabulary(example)
        )
        legend = "\n".join(f"  {item['mark']}: {item['category']}" for item in _objects(example))
        return self.prompts.prompt(2, vocabulary=vocabulary or "  (none)", legend=legend)

    def images(self, example: Example, frames: Sequence[NDArray[np.uint8]]) -> tuple[Image.Image, ...]:
        """The frame as it is, and the frame with marks, at the annotations' size."""
        (frame,) = frames
        size = (cast("int", example.inputs["frame_width"]), cast("int", example.inputs["frame_height"]))
        marks = [Mark(item["mark"], _mask(item, size, example.example_id)) for item in _objects(example)]
        look = cast("dict[str, float]", example.inputs["marks"])
        return Image.fromarray(frame), draw_marks(frame, marks, size, **look, darken_inside=not self.follows_paper)

    def parse(self, text: str, inputs: Fields, boxes: BoxFormat) -> Prediction | ParseError:
        """As `released_answers.read_relations`. By the paper's protocol ids must be whole, types and values texts.

        Also, arrays inside of another one are not looked at, and one that breaks off is read as far as its entries are
        complete.
        """
        if not self.follows_paper:
            return released_answers.read_relations(text)
        body = unfenced(text)
        try:
            whole = json.loads(body)
        except (ValueError, RecursionError):
            whole = None
        if isinstance(whole, list):
            return _prediction(whole)
        for array in json_arrays(body):
            prediction = _prediction(array)
            if not array or prediction.value["relations"]:
                return prediction
        cut = cut_array(text)
        if cut is not None and (prediction := _prediction(cut.entries)).value["relations"]:
            return replace(prediction, dropped=prediction.dropped + cut.begun)
        return ParseError("the answer holds no JSON array of relations")

    def score(self, example: Example, prediction: Prediction | None) -> dict[str, float]:
        """Precision, recall and F1 of one frame; no readable answer scores 0 in all three."""
        if prediction is None:
            return {"precision": 0.0, "recall": 0.0, "f1": 0.0}
        scored = score_example(self._compared(prediction.value), self._compared(example.target))
        return {"precision": scored.precision, "recall": scored.recall, "f1": scored.f1}

    def aggregate(self, samples: Sequence[Scored]) -> dict[str, Json]:
        return tuple_f1(
            [None if s.prediction is None else self._compared(s.prediction.value) for s in samples],
            [self._compared(s.example.target) for s in samples],
            groups_of=self._groups_of,
        )

    def resampled(self, samples: Sequence[Scored], weights: Floats) -> dict[str, Floats]:
        answers = [None if s.prediction is None else self._counted(s.prediction.value) for s in samples]
        truths = [self._counted(s.example.target) for s in samples]
        return tuple_figures(answers, truths, weights, groups_of=self._groups_of)

    def facets(self, example: Example) -> Fields:
        truth = cast("list[RelationTuple]", example.target["relations"])
        return {
            "relation_type": sorted({item["relation_type"] for item in truth}),
            "relation_value": sorted({item["value"] for item in truth}),
            "objects": len(_objects(example)),
        }

    def failures(self, example: Example, prediction: Prediction | None) -> tuple[Failure, ...]:
        """Of the relations that the multiset matching leaves over on either side."""
        if prediction is None:
            return self.unreadable(example)
        ids = {item["mark"]: item["object_id"] for item in _objects(example) if item["object_id"]}
        hands = {item["mark"] for item in _objects(example) if item["category"].lower() in HANDS}
        found = relation_failures(self._counted(example.target), self._counted(prediction.value), hands)
        return tuple(Failure(kind, tuple(ids[mark] for mark in marks if mark in ids)) for kind, marks in found)

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        names = {item["mark"]: item["category"] for item in _objects(example)}
        truth = Counter(as_relations(self._compared(example.target)))
        answered = Counter(as_relations(self._compared(prediction.value))) if prediction else Counter()
        groups: tuple[tuple[Verdict, Counter[Relation]], ...] = (
            ("hit", truth & answered),
            ("miss", truth - answered),
            ("wrong", answered - truth),
        )
        return Explanation(
            tuple(
                ExplanationRow(verdict, _sentence(relation, names))
                for verdict, relations in groups
                for relation in sorted(relations.elements())
            )
        )

    def reference_answer(self, example: Example, boxes: BoxFormat) -> str:
        return json.dumps(example.target["relations"])

    def random_answer(self, example: Example, rng: random.Random, boxes: BoxFormat) -> str:
        marks = [item["mark"] for item in _objects(example)]
        labels = [(entry["relation_type"], value) for entry in _vocabulary(example) for value in entry["values"]]
        answer = []
        for _ in range(rng.randint(1, len(marks)) if len(marks) > 1 else 0):
            source, target = rng.sample(marks, 2)
            kind, value = rng.choice(labels)
            answer.append(RelationTuple(source_id=source, target_id=target, relation_type=kind, value=value))
        return json.dumps(answer)

    def prior_answer(self, example: Example, others: Sequence[Example], boxes: BoxFormat) -> str:
        """The relations that objects of these categories usually have, as far as answering them pays (pooled F1).

        The legend tells the categories; `priors.likely_relations` tells what is worth answering. Without other
        videos, none.
        """
        likely, names = likely_relations(others), marked_categories(example)
        answer = [
            RelationTuple(source_id=source, target_id=target, relation_type=kind, value=value)
            for source, target in permutations(sorted(names), 2)
            for kind, value in likely.get((names[source], names[target]), ())
        ]
        return json.dumps(answer)

    def overlays(self, example: Example, prediction: Prediction | None) -> tuple[Overlay, ...]:
        """The marked objects; masks stand in the second image."""
        return tuple(
            Overlay(0, xywh_to_xyxy(item["bbox"]), "given", f"{item['mark']} {item['category']}")
            for item in _objects(example)
        )

    def image_captions(self, example: Example) -> tuple[str, ...]:
        return tuple(f"frame {example.frames[0].frame_index}{what}" for what in ("", ", set of mark"))

    def answer_schema(self, example: Example) -> Fields:
        return relations_schema(example.inputs)

    @property
    def counts_provider_errors(self) -> bool:
        return not self.follows_paper

    @property
    def _groups_of(self) -> GroupsOf:
        """The release's figures by type leave out the truths of examples that were not answered."""
        return "all" if self.follows_paper else "answered"

    def _counted(self, fields: Fields) -> Counter[Relation]:
        """The relations as the multiset that is matched."""
        return Counter(as_relations(self._compared(fields)))

    def _compared(self, fields: Fields) -> list[RelationTuple]:
        """The relations as the metric gets them, which ignores case and outer white space; the paper says any."""
        relations = cast("list[RelationTuple]", fields["relations"])
        return [_single_spaced(item) for item in relations] if self.follows_paper else relations


def _mask(item: MarkedObject, size: tuple[int, int], example_id: str) -> NDArray[np.bool_]:
    """The mask of a mark, (height, width). A dataset may come from anywhere, and pycocotools trusts its input."""
    counts, height_width = item["segmentation"]["counts"], tuple(cast("list[int]", item["segmentation"]["size"]))
    width, height = size
    if not counts:
        problem: str | None = "the object has no usable mask"
    elif height_width != (height, width):
        problem = f"its size is {list(height_width)}, that of the frame {[height, width]}"
    else:
        problem = run_problems([str(counts)], height * width)[0]
    if not problem:
        mask = decode_mask(Rle(counts=str(counts), size=(height, width)))
        if mask.any():
            return mask
        problem = "its mask is empty"
    raise DataError(
        f"{example_id}: mark {item['mark']} ({item['category']}) cannot be drawn: {problem}. "
        "Remedy: annotate its mask, or rebuild the dataset with the annotations' own videos"
    )


def mark_order(video: VideoGraph, frame: int) -> list[Instance]:
    """The annotations of a frame in the order of their marks, from 1; an object annotated twice has two."""
    return sorted(video.instances(frame), key=lambda i: (i.object.category.lower(), i.object.id))


def marked_objects(video: VideoGraph, instances: Sequence[Instance]) -> list[MarkedObject]:
    """What the marks stand for. A mask that cannot be used is empty: whoever draws the marks says so."""
    marked = []
    for mark, (instance, rle) in enumerate(zip(instances, video.rles(instances), strict=True), start=1):
        segmentation: dict[str, Json] = {"size": [0, 0], "counts": ""}
        if isinstance(rle, Rle):
            segmentation = {"size": list(rle.size), "counts": rle.counts}
        item, box = instance.object, list(instance.bbox)
        marked.append(
            MarkedObject(mark=mark, object_id=item.id, category=item.category, bbox=box, segmentation=segmentation)
        )
    return marked


def vocabulary_entries(pairs: Iterable[tuple[str, str]]) -> list[VocabularyEntry]:
    """(relation type, value) pairs as a question lists them: types and values sorted.

    >>> vocabulary_entries([("position", "on"), ("human_actions", "holds"), ("position", "inside")])[1]
    {'relation_type': 'position', 'values': ['inside', 'on']}
    """
    values: dict[str, set[str]] = defaultdict(set)
    for kind, value in pairs:
        values[kind].add(value)
    return [VocabularyEntry(relation_type=kind, values=sorted(values[kind])) for kind in sorted(values)]


def _example(
    video: VideoGraph, frame: int, positions: Sequence[int], vocabulary: list[VocabularyEntry], sampling: Sampling
) -> Example:
    """`positions` are those of the relation ranges that hold on the frame, in the order of the file."""
    instances, table = mark_order(video, frame), video.relations_table
    marks = {instance.object.id: mark for mark, instance in enumerate(instances, start=1)}
    rows: list[Fields] = []
    for position in positions:
        kind, value, *_ = table.entry(position)
        source, target = (video.objects[int(end[position])].id for end in (table.source, table.target))
        rows.append({"source_id": marks[source], "target_id": marks[target], "relation_type": kind, "value": value})
    return Example(
        example_id=f"{Relations.upstream_name}:{video.video_id}:{frame}",
        benchmark=Relations.benchmark,
        task=Relations.name,
        label=f"{len(rows)} relations",
        frames=(FrameRef(video.video_id, frame),),
        inputs={
            "frame_width": video.video.width,
            "frame_height": video.video.height,
            "objects": cast("Json", marked_objects(video, instances)),
            "vocabulary": cast("Json", vocabulary),
            "marks": {name: float(getattr(sampling, name)) for name in MARK_LOOK},
        },
        target={"relations": rows},
        metadata=frame_metadata(video, frame),
        evidence={
            "object_ids": [instance.object.id for instance in instances],
            "relation_rows": sorted({int(table.row[position]) for position in positions}),
            "instance_rows": [instance.row for instance in instances],
        },
    )


def _sentence(relation: Relation, names: dict[int, str]) -> str:
    """For example: `4 right hand → holds → 2 coffee cup (human_actions)`."""
    source, target = (f"{mark} {names.get(mark, '(no such mark)')}" for mark in relation[:2])
    return f"{source} → {relation.value} → {target} ({relation.relation_type})"


def _objects(example: Example) -> list[MarkedObject]:
    return cast("list[MarkedObject]", example.inputs["objects"])


def _vocabulary(example: Example) -> list[VocabularyEntry]:
    return cast("list[VocabularyEntry]", example.inputs["vocabulary"])


def _single_spaced(item: RelationTuple) -> RelationTuple:
    """Any white space within a text as one space (paper, A.3.2)."""
    return RelationTuple(
        source_id=item["source_id"],
        target_id=item["target_id"],
        relation_type=" ".join(item["relation_type"].split()),
        value=" ".join(item["value"].split()),
    )


def _prediction(array: list[object]) -> Prediction:
    relations = [entry for item in array if (entry := _relation(item)) is not None]
    return Prediction({"relations": cast("Json", relations)}, dropped=len(array) - len(relations))


def _relation(item: object) -> RelationTuple | None:
    if not isinstance(item, dict):
        return None
    source, target = integer(item.get("source_id")), integer(item.get("target_id"))
    kind, value = item.get("relation_type"), item.get("value")
    if source is None or target is None or not is_text(kind) or not is_text(value):
        return None
    return RelationTuple(source_id=source, target_id=target, relation_type=kind, value=value)
