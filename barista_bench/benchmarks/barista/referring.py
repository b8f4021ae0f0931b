"""Referring: describe the object in a box (paper, sections 4.2.1 and A.2.3; released rules, upstream.md 1.7).

A frame and one box are given; the model writes one sentence that tells which object it is. The reference is the graph's
structured text (`reference_text.py`). Until a judge scores the answer, `lexical_f1` compares its words with the
reference: a floor that must not be published as the paper's Correctness (`lexical.py`).

Candidates: frames inside an activity segment (half-open, segments without a class left out) at the stride; objects that
are not `unknown`, have an attribute and a relation on that frame, and are no border fragments.

Where the sources are silent:
* a relation counts towards candidacy in whichever role the object has in it, also where the reference leaves it out;
* a box is within 2 pixels of an edge where its side is no more than 2 away from it, or beyond it;
* the area of a mask that cannot be read is taken from its box, as the release does where there is no mask;
* candidates of a frame stand in the file's order before they are drawn, and in the drawn order after;
* what the caps leave is given in the order of videos and frames.
The paper's context block holds every related object; the release's, and ours, only those that are not counted.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pycocotools import mask as coco_mask

from barista_bench.benchmarks.barista.common import PROMPT_PACKAGE, frame_metadata, metadata_features
from barista_bench.benchmarks.barista.free_text import domain_vocabulary, labelled
from barista_bench.benchmarks.barista.lexical import (
    NO_OVERLAP,
    Overlap,
    is_said,
    overlap,
    sample_figures,
    summary,
    unexpected,
)
from barista_bench.benchmarks.barista.reference_text import (
    UNKNOWN,
    FrameFacts,
    frame_facts,
    one_sentence,
    statements,
    structured_reference,
    told,
)
from barista_bench.boxes import Xyxy, describe_format, to_grid, write_box, xywh_to_xyxy
from barista_bench.errors import DataError
from barista_bench.prompt import BoxFormat, ImagePart, Prompt, TextPart
from barista_bench.scene_graph import Instance, SceneGraph, VideoGraph
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
)

if TYPE_CHECKING:
    from datasets import Features

SMALL_SHARE = 0.05
"""A fragment is an object that covers less of the frame than this..."""
EDGE = 2
"""...and whose box comes this close to an edge of it, in pixels."""
COLORS = ("black", "white", "silver", "red", "blue", "green", "brown", "transparent")
PLACES = ("under", "on", "inside", "attached to", "part of")


class Fact(TypedDict):
    """One thing to say of the object; `kind` is object, relation, or the type of an attribute."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An object of one frame with all that its example needs: the graph itself is not kept."""

    video_id: str
    frame: int
    width: int
    height: int
    index: int
    box: Xyxy
    row: int
    facts: FrameFacts
    metadata: Fields

    @property
    def category(self) -> str:
        return self.facts.category(self.index)


class Referring(Task):
    benchmark = "barista"
    name = "referring"
    upstream_name = "referring"
    version = 1
    primary = "lexical_f1"
    sample_score = "lexical_f1"
    sampling = Sampling(limit=1000, seed=42, frame_step=60, per_frame=10, per_class=50)
    sampling_uses = frozenset({"frame_step", "per_frame", "per_class"})
    prompt_package = PROMPT_PACKAGE

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

    def examples(self, graph: SceneGraph, sampling: Sampling) -> Iterator[Example | SkippedExample]:
        """`box` is [x0, y0, x1, y1] in pixels, `grid_box` the same on the release's grid of 0..1000."""
        found = [item for video in sampling.selected(graph) for item in _candidates(video, sampling)]
        for position in _capped([item.category for item in found], sampling):
            yield _example(found[position])

    def prompt(self, example: Example, boxes: BoxFormat) -> Prompt:
        inputs = example.inputs
        box = cast("Xyxy", tuple(cast("list[float]", inputs["box"])))
        written = write_box(box, boxes, cast("int", inputs["frame_width"]), cast("int", inputs["frame_height"]))
        system, user = self.prompts.fill(format=describe_format(boxes), box=json.dumps(written))
        return Prompt(system, (ImagePart(0), TextPart(user)))

    def images(self, example: Example, frames: Sequence[NDArray[np.uint8]]) -> tuple[Image.Image, ...]:
        (frame,) = frames
        return (Image.fromarray(frame),)

    def parse(self, text: str, inputs: Fields, boxes: BoxFormat) -> Prediction | ParseError:
        """The last line labelled `Description:`, else the whole text; nothing left of it is a parse failure."""
        description = labelled(text, "description")
        return Prediction({"description": description}) if description else ParseError("the answer is empty")

    def score(self, example: Example, prediction: Prediction | None) -> dict[str, float]:
        """`lexical_f1`, `lexical_precision` and `lexical_recall`; no readable answer scores 0 in all three."""
        return sample_figures(_overlap(example, prediction) if prediction else NO_OVERLAP)

    def aggregate(self, samples: Sequence[Scored]) -> dict[str, Json]:
        scores = [_overlap(s.example, s.prediction) if s.prediction else None for s in samples]
        return summary(scores, (str(s.example.target["category"]) for s in samples), "per_category")

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        """By words alone: a fact is a hit where all its content words are said, whatever they are said of."""
        said = _said(prediction)
        rows = [
            ExplanationRow("hit" if is_said(fact["text"], said) else "miss", f"{fact['kind']}: {fact['text']}")
            for fact in _facts(example)
        ]
        wrong = unexpected(said, str(example.target["sentence"]), str(example.target["reference"]))
        extra = [ExplanationRow("wrong", f"not in the reference: {word}") for word in wrong]
        return Explanation((*sorted(rows, key=lambda row: row.verdict == "miss"), *extra))

    def reference_answer(self, example: Example, boxes: BoxFormat) -> str:
        return f"Description: {example.target['sentence']}"

    def random_answer(self, example: Example, rng: random.Random, boxes: BoxFormat) -> str:
        names = sorted(domain_vocabulary())
        color, place = rng.choice(COLORS), rng.choice(PLACES)
        return f"Description: A {color} {rng.choice(names)} that is {place} the {rng.choice(names)}."


def _candidates(video: VideoGraph, sampling: Sampling) -> Iterator[_Candidate]:
    frames = np.array(sampling.frame_indices(video), dtype=np.int64)
    inside = np.zeros(len(frames), dtype=bool)
    for segment in video.activities():
        if segment.class_id is not None:
            inside |= (frames >= segment.start) & (frames < segment.end)
    frames = frames[inside]
    for frame, facts in zip(frames.tolist(), frame_facts(video, frames), strict=True):
        drawn = _drawn(video, frame, facts, sampling.per_frame)
        metadata = frame_metadata(video, frame) if drawn else {}
        for index, instance in drawn:
            size, box = (video.video.width, video.video.height), xywh_to_xyxy(instance.bbox)
            yield _Candidate(video.video_id, frame, *size, index, box, instance.row, facts, metadata)


def _drawn(video: VideoGraph, frame: int, facts: FrameFacts, limit: int | None) -> list[tuple[int, Instance]]:
    """(object index, instance) of the frame's candidates; of more than `limit`, as many by the released seed."""
    part = video.instances_table.slice(frame)
    indices = video.instances_table.object[part].tolist()
    found = [
        (index, instance)
        for index, instance in zip(indices, video.instances(frame), strict=True)
        if instance.object.category != UNKNOWN
        and index in facts.properties
        and index in facts.links
        and not is_fragment(video, instance)
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


def _capped(categories: Sequence[str], sampling: Sampling) -> list[int]:
    """Positions of what is kept of each category, by the released seed, in their old order."""
    by_category: dict[str, list[int]] = defaultdict(list)
    for position, category in enumerate(categories):
        by_category[category].append(position)
    kept: list[int] = []
    for category, positions in by_category.items():
        if sampling.per_class is not None:
            random.Random(f"{sampling.seed}:{category}").shuffle(positions)  # noqa: S311  (the released seed)
        kept += positions[: sampling.per_class]
    return sorted(kept)


def _example(item: _Candidate) -> Example:
    facts, target = item.facts, item.facts.objects[item.index]
    stated = statements(facts, item.index)
    properties = facts.properties[item.index]
    others = dict.fromkeys(facts.objects[other].id for entry in stated for other in entry.others)
    listed = [Fact(kind="object", text=target.category)]
    listed += [Fact(kind=entry.type, text=entry.value) for entry in properties]
    listed += [Fact(kind="relation", text=str(entry)) for entry in told(facts, item.index)]
    x0, y0, x1, y1 = item.box
    return Example(
        example_id=f"{Referring.upstream_name}:{item.video_id}:frame_{item.frame}:obj_{target.id}",
        benchmark=Referring.benchmark,
        task=Referring.name,
        label=target.category,
        frames=(FrameRef(item.video_id, item.frame),),
        inputs={
            "frame_width": item.width,
            "frame_height": item.height,
            "box": list(item.box),
            "grid_box": to_grid(item.box, item.width, item.height),
        },
        target={
            "category": target.category,
            "reference": structured_reference(facts, item.index),
            "sentence": one_sentence(facts, item.index),
            "facts": cast("Json", listed),
        },
        metadata={**item.metadata, "box_share": (x1 - x0) * (y1 - y0) / (item.width * item.height)},
        evidence={
            "object_ids": [target.id, *others],
            "instance_rows": [item.row],
            "attribute_rows": [entry.row for entry in properties],
            "relation_rows": sorted({row for entry in stated for row in entry.rows}),
        },
    )


def _overlap(example: Example, prediction: Prediction) -> Overlap:
    return overlap(_said(prediction), str(example.target["sentence"]), context=str(example.target["reference"]))


def _said(prediction: Prediction | None) -> str:
    return str(prediction.value["description"]) if prediction else ""


def _facts(example: Example) -> list[Fact]:
    return cast("list[Fact]", example.target["facts"])
