"""Referring: describe the object in a box (paper, sections 4.2.1 and A.2.3; released rules, upstream.md 1.7).

A frame and one box are given; the model writes one sentence that tells which object it is. The reference is the graph's
structured text (`reference_text.py`). A judge scores the answer (`judged`, `rubrics/referring.yaml`). Without one,
`lexical_f1` compares its words with the reference: a floor that must not be published as the paper's Correctness
(`lexical.py`).

Candidates: frames inside an activity segment (half-open, segments without a class left out) at the stride; objects that
are not `unknown`, have an attribute and a relation on that frame, and are no border fragments.

Where the sources are silent:
* a relation counts towards candidacy in whichever role the object has in it, also where the reference leaves it out;
* a box is within 2 pixels of an edge where its side is no more than 2 away from it, or beyond it;
* the area of a mask that cannot be read is taken from its box, as the release does where there is no mask;
* candidates of a frame stand in the file's order before they are drawn, and in the drawn order after;
* what the caps leave is given in the order of videos and frames.
The paper's context block holds every related object, and the paper leaves no fragments out; the release's block, and
ours unless `protocol="paper"`, holds only those that are not counted.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypedDict, cast

import numpy as np
from pycocotools import mask as coco_mask

from barista_bench.benchmarks.barista.common import capped, frame_metadata, metadata_features
from barista_bench.benchmarks.barista.failures import box_size
from barista_bench.benchmarks.barista.free_text import domain_vocabulary, labelled
from barista_bench.benchmarks.barista.lexical_task import Compared, Fact, LexicalTask
from barista_bench.benchmarks.barista.priors import typical_sentence
from barista_bench.benchmarks.barista.protocols import RULES
from barista_bench.benchmarks.barista.reference_text import (
    FrameFacts,
    frame_facts,
    one_sentence,
    statements,
    structured_reference,
    told,
)
from barista_bench.boxes import Xyxy, describe_format, to_grid, write_box, xywh_to_xyxy
from barista_bench.errors import DataError
from barista_bench.graph_task import Candidate, Vocabulary
from barista_bench.prompt import BoxFormat, ImagePart, Prompt, TextPart
from barista_bench.scene_graph import Instance, VideoGraph
from barista_bench.scene_graph.video_graph import UNNAMED
from barista_bench.task import (
    Example,
    FailureKind,
    Fields,
    FrameRef,
    Json,
    Judged,
    Overlay,
    ParseError,
    Prediction,
    Sampling,
    evidence_objects,
)

if TYPE_CHECKING:
    from datasets import Features

SMALL_SHARE = 0.05
"""A fragment is an object that covers less of the frame than this..."""
EDGE = 2
"""...and whose box comes this close to an edge of it, in pixels."""
COLORS = ("black", "white", "silver", "red", "blue", "green", "brown", "transparent")
PLACES = ("under", "on", "inside", "attached to", "part of")
JUDGED_QUESTION = "Which object does the marked box surround? Describe it in one sentence."


class _Listed(TypedDict):
    """One thing to say of the object; `kind` is object, relation, or the type of an attribute."""

    kind: str
    text: str


class Referring(LexicalTask):
    name = "referring"
    upstream_name = "referring"
    version = 1
    answer_field = "description"
    sampling = Sampling(limit=1000, seed=42, frame_step=60, per_frame=10, per_class=50)
    sampling_uses = frozenset({"frame_step", "per_frame", "per_class"})
    row_note = "a frame and a box, and what a description of that object must say"
    protocol_rules = RULES[name]

    def features(self) -> Features:
        from datasets import Features, List, Value

        return Features(
            {
                "inputs": {
                    "frame_width": Value("int32"),
                    "frame_height": Value("int32"),
                    "box": List(Value("float64"), length=4),
                    "grid_box": List(Value("int32"), length=4),
                },
                "target": {
                    "category": Value("string"),
                    "reference": Value("string"),
                    "sentence": Value("string"),
                    "facts": List({"kind": Value("string"), "text": Value("string")}),
                },
                "metadata": {**metadata_features(), "box_share": Value("float64")},
                "evidence": {
                    "object_ids": List(Value("string")),
                    "instance_rows": List(Value("int64")),
                    "attribute_rows": List(Value("int64")),
                    "relation_rows": List(Value("int64")),
                },
            }
        )

    def candidates(self, video: VideoGraph, sampling: Sampling) -> Iterator[Candidate]:
        frames = np.array(sampling.frame_indices(video), dtype=np.int64)
        inside = np.zeros(len(frames), dtype=bool)
        for segment in video.activities():
            if segment.class_id is not None:
                inside |= (frames >= segment.start) & (frames < segment.end)
        frames = frames[inside]
        for frame, facts in zip(frames.tolist(), frame_facts(video, frames), strict=True):
            for index in _drawn(video, frame, facts, sampling.per_frame, fragments=self.follows_paper):
                yield Candidate(video.video_id, frame, video.objects[index].category, index)

    def select(
        self, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: Sampling
    ) -> Iterator[Candidate]:
        yield from capped(candidates, sampling)

    def build(
        self, video: VideoGraph, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: Sampling
    ) -> Iterator[Example]:
        """`box` is [x0, y0, x1, y1] in pixels, `grid_box` the same on the release's grid of 0..1000."""
        frames = sorted({candidate.frame for candidate in candidates})
        facts = dict(zip(frames, frame_facts(video, np.array(frames, dtype=np.int64)), strict=True))
        for candidate in candidates:
            yield self.stamped(_example(video, candidate, facts[candidate.frame], every_context=self.follows_paper))

    def prompt(self, example: Example, boxes: BoxFormat) -> Prompt:
        inputs = example.inputs
        box = cast("Xyxy", tuple(cast("list[float]", inputs["box"])))
        written = write_box(box, boxes, cast("int", inputs["frame_width"]), cast("int", inputs["frame_height"]))
        system, user = self.prompts.fill(format=describe_format(boxes), box=json.dumps(written))
        return Prompt(system, (ImagePart(0), TextPart(user)))

    def parse(self, text: str, inputs: Fields, boxes: BoxFormat) -> Prediction | ParseError:
        """The last line labelled `Description:`, else the whole text; nothing left of it is a parse failure."""
        description = labelled(text, "description")
        return Prediction({"description": description}) if description else ParseError("the answer is empty")

    def overlays(self, example: Example, prediction: Prediction | None) -> tuple[Overlay, ...]:
        """The box of the question; answers are text."""
        box = cast("Xyxy", tuple(cast("list[float]", example.inputs["box"])))
        return (Overlay(0, box, "given", str(example.target["category"])),)

    def judged(self, example: Example, prediction: Prediction) -> Judged:
        """The judge sees no frame, so the question leaves the box's coordinates out."""
        return Judged(JUDGED_QUESTION, str(example.target["reference"]), self.said(prediction))

    def facets(self, example: Example) -> Fields:
        return {"category": example.label, "object_size": box_size(cast("list[float]", example.inputs["box"]))}

    def compared(self, example: Example) -> Compared:
        return Compared(str(example.target["sentence"]), context=str(example.target["reference"]))

    def described(self, example: Example) -> tuple[str, ...]:
        return evidence_objects(example)[:1]

    def facts(self, example: Example) -> list[Fact]:
        """With other words instead, the object counts as `wrong_object` and a property as `wrong_attribute`."""
        kinds: dict[str, FailureKind] = {"object": "wrong_object", "relation": "missed"}
        listed, objects = cast("list[_Listed]", example.target["facts"]), self.described(example)
        return [
            Fact(fact["text"], f"{fact['kind']}: {fact['text']}", objects, kinds.get(fact["kind"], "wrong_attribute"))
            for fact in listed
        ]

    def reference_answer(self, example: Example, boxes: BoxFormat) -> str:
        return f"Description: {example.target['sentence']}"

    def random_answer(self, example: Example, rng: random.Random, boxes: BoxFormat) -> str:
        names = sorted(domain_vocabulary())
        color, place = rng.choice(COLORS), rng.choice(PLACES)
        return f"Description: A {color} {rng.choice(names)} that is {place} the {rng.choice(names)}."

    def prior_answer(self, example: Example, others: Sequence[Example], boxes: BoxFormat) -> str:
        """The most typical sentence of other videos, whatever the object: the question does not tell its category.

        Without other videos, `An object.`
        """
        return f"Description: {typical_sentence(others) or 'An object.'}"


def _drawn(video: VideoGraph, frame: int, facts: FrameFacts, limit: int | None, *, fragments: bool) -> list[int]:
    """Indices of the objects that are the frame's candidates; of more than `limit`, as many by the released seed.

    `fragments` says that objects which the edge of the frame cuts off count too.
    """
    part = video.instances_table.slice(frame)
    indices = video.instances_table.object[part].tolist()
    found = [
        index
        for index, instance in zip(indices, video.instances(frame), strict=True)
        if instance.object.category != UNNAMED
        and index in facts.properties
        and index in facts.links
        and (fragments or not is_fragment(video, instance))
    ]
    if limit is not None and len(found) > limit:
        random.Random(f"{video.video_id}:{frame}").shuffle(found)  # noqa: S311  (the released seed)
        found = found[:limit]
    return found


def is_fragment(video: VideoGraph, instance: Instance) -> bool:
    """Whether an object is cut off by the frame's edge and too little of it is left: see `SMALL_SHARE` and `EDGE`.

    The mask is looked at only where its box is large enough to matter: a mask is no larger than its box.
    """
    width, height = video.video.width, video.video.height
    x, y, box_width, box_height = instance.bbox
    if min(x, y, width - x - box_width, height - y - box_height) > EDGE:
        return False
    smallest = SMALL_SHARE * width * height
    return box_width * box_height < smallest or _area(video, instance) < smallest


def _area(video: VideoGraph, instance: Instance) -> float:
    """Pixels of the mask, or of the box where there is no usable mask."""
    try:
        rle = video.rle(instance)
    except DataError:
        return instance.bbox[2] * instance.bbox[3]
    return float(coco_mask.area({"size": list(rle.size), "counts": rle.counts.encode("ascii")}))


def _example(video: VideoGraph, candidate: Candidate, facts: FrameFacts, *, every_context: bool) -> Example:
    frame, index = candidate.frame, candidate.item
    target, width, height = video.objects[index], video.video.width, video.video.height
    instance = next(item for item in video.instances(frame) if item.object is target)
    box = xywh_to_xyxy(instance.bbox)
    stated = statements(facts, index)
    properties = facts.properties[index]
    others = dict.fromkeys(facts.objects[other].id for entry in stated for other in entry.others)
    listed = [_Listed(kind="object", text=target.category)]
    listed += [_Listed(kind=entry.type, text=entry.value) for entry in properties]
    listed += [_Listed(kind="relation", text=str(entry)) for entry in told(facts, index)]
    x0, y0, x1, y1 = box
    return Example(
        example_id=f"{Referring.upstream_name}:{video.video_id}:frame_{frame}:obj_{target.id}",
        benchmark=Referring.benchmark,
        task=Referring.name,
        label=target.category,
        frames=(FrameRef(video.video_id, frame),),
        inputs={
            "frame_width": width,
            "frame_height": height,
            "box": list(box),
            "grid_box": to_grid(box, width, height),
        },
        target={
            "category": target.category,
            "reference": structured_reference(facts, index, every_context=every_context),
            "sentence": one_sentence(facts, index),
            "facts": cast("Json", listed),
        },
        metadata={**frame_metadata(video, frame), "box_share": (x1 - x0) * (y1 - y0) / (width * height)},
        evidence={
            "object_ids": [target.id, *others],
            "instance_rows": [instance.row],
            "attribute_rows": [entry.row for entry in properties],
            "relation_rows": sorted({row for entry in stated for row in entry.rows}),
        },
    )
