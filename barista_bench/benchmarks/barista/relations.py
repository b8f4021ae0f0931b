"""Relation extraction (paper, sections 4.2.2 and A.3.2; released rules, upstream.md 1.9).

A frame is shown raw and with a set-of-mark overlay; the model lists every relation between the marked objects. Scored
by exact multiset matching of (source, target, relation type, value).
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypedDict, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from barista_bench.benchmarks.barista.common import PROMPT_PACKAGE, frame_metadata, metadata_features
from barista_bench.benchmarks.barista.set_of_mark import Mark, draw_marks
from barista_bench.benchmarks.parsing import integer, is_text, json_arrays, unfenced
from barista_bench.errors import DataError
from barista_bench.metrics.tuple_f1.scoring import Relation, as_relations, score_example, tuple_f1
from barista_bench.prompt import BoxFormat, ImagePart, Prompt, TextPart
from barista_bench.scene_graph import Rle, SceneGraph, VideoGraph, decode_mask
from barista_bench.scene_graph.masks import run_problems
from barista_bench.task import (
    Example,
    Explanation,
    ExplanationRow,
    Fields,
    FrameRef,
    Json,
    ParseError,
    Prediction,
    Sampling,
    Scored,
    SkippedExample,
    Task,
    Verdict,
)

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


class RelationTuple(TypedDict):
    source_id: int
    target_id: int
    relation_type: str
    value: str


class Relations(Task):
    benchmark = "barista"
    name = "relations"
    upstream_name = "relation_extraction"
    version = 1
    primary = "micro_f1"
    sample_score = "f1"
    sampling = Sampling(limit=1000, seed=42, frame_step=300)
    sampling_uses = frozenset({"frame_step"})
    prompt_package = PROMPT_PACKAGE

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

    def examples(self, graph: SceneGraph, sampling: Sampling) -> Iterator[Example | SkippedExample]:
        vocabulary = [
            VocabularyEntry(relation_type=kind, values=values) for kind, values in graph.relation_vocabulary().items()
        ]
        for video in sampling.selected(graph):
            for frame in sampling.frame_indices(video):
                if video.relations(frame):
                    yield _example(video, frame, vocabulary)

    def prompt(self, example: Example, boxes: BoxFormat) -> Prompt:
        vocabulary = "\n".join(
            f"- {entry['relation_type']}: {', '.join(entry['values'])}" for entry in _vocabulary(example)
        )
        legend = "\n".join(f"{item['mark']}: {item['category']}" for item in _objects(example))
        system, user = self.prompts.fill(vocabulary=vocabulary, legend=legend)
        return Prompt(system, (ImagePart(0), ImagePart(1), TextPart(user)))

    def images(self, example: Example, frames: Sequence[NDArray[np.uint8]]) -> tuple[Image.Image, ...]:
        """The frame as it is, and the same frame marked."""
        (frame,) = frames
        marks = []
        for item in _objects(example):
            size = cast("list[int]", item["segmentation"]["size"])
            rle = Rle(counts=cast("str", item["segmentation"]["counts"]), size=(size[0], size[1]))
            height, width = frame.shape[:2]
            # A dataset may come from anywhere, and pycocotools trusts its input.
            problem = run_problems([rle.counts], height * width)[0] if rle.size == (height, width) else "wrong size"
            if problem:
                raise DataError(
                    f"{example.example_id}: mask of mark {item['mark']} ({rle.size}) does not fit the frame "
                    f"({(height, width)}): {problem}. Remedy: rebuild the dataset with the annotations' own videos"
                )
            marks.append(Mark(item["mark"], decode_mask(rle)))
        return Image.fromarray(frame), draw_marks(frame, marks)

    def parse(self, text: str, inputs: Fields, boxes: BoxFormat) -> Prediction | ParseError:
        """The whole answer as a JSON array, else the first array in it that is empty or has a valid entry.

        Invalid entries are dropped and the rest kept, as released.
        """
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
        return ParseError("the answer holds no JSON array of relations")

    def score(self, example: Example, prediction: Prediction | None) -> dict[str, float]:
        """Precision, recall and F1 of one frame; no readable answer scores 0 in all three."""
        if prediction is None:
            return {"precision": 0.0, "recall": 0.0, "f1": 0.0}
        scored = score_example(_relations(prediction.value), _relations(example.target))
        return {"precision": scored.precision, "recall": scored.recall, "f1": scored.f1}

    def aggregate(self, samples: Sequence[Scored]) -> dict[str, Json]:
        return tuple_f1(
            [None if s.prediction is None else _relations(s.prediction.value) for s in samples],
            [_relations(s.example.target) for s in samples],
        )

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        names = {item["mark"]: item["category"] for item in _objects(example)}
        truth = Counter(as_relations(_relations(example.target)))
        answered = Counter(as_relations(_relations(prediction.value))) if prediction else Counter()
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


def _example(video: VideoGraph, frame: int, vocabulary: list[VocabularyEntry]) -> Example | SkippedExample:
    instances = sorted(video.instances(frame), key=lambda i: (i.object.category.lower(), i.object.id))
    marks = {instance.object.id: mark for mark, instance in enumerate(instances, start=1)}
    objects = []
    for instance in instances:
        try:
            rle = video.rle(instance)
        except DataError as error:
            return SkippedExample(FrameRef(video.video_id, frame), str(error))
        segmentation = {"size": list(rle.size), "counts": rle.counts}
        objects.append(
            MarkedObject(
                mark=marks[instance.object.id],
                object_id=instance.object.id,
                category=instance.object.category,
                bbox=list(instance.bbox),
                segmentation=cast("dict[str, Json]", segmentation),
            )
        )
    relations = video.relations(frame)
    truth = sorted(
        (marks[r.source.id], marks[r.target.id], r.type, r.value) for r in relations
    )  # fmt: skip
    return Example(
        example_id=f"{Relations.upstream_name}:{video.video_id}:{frame}",
        benchmark=Relations.benchmark,
        task=Relations.name,
        label=f"{len(relations)} relations",
        frames=(FrameRef(video.video_id, frame),),
        inputs={
            "frame_width": video.video.width,
            "frame_height": video.video.height,
            "objects": cast("Json", objects),
            "vocabulary": cast("Json", vocabulary),
        },
        target={
            "relations": [
                {"source_id": s, "target_id": t, "relation_type": kind, "value": value} for s, t, kind, value in truth
            ]
        },
        metadata=frame_metadata(video, frame),
        evidence={
            "object_ids": [instance.object.id for instance in instances],
            "relation_rows": sorted(r.row for r in relations),
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


def _relations(fields: Fields) -> list[RelationTuple]:
    return cast("list[RelationTuple]", fields["relations"])


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
