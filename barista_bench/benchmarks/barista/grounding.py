"""Phrase grounding (paper, sections 4.2.1, A.1 and A.2.1; released rules, upstream.md 1.5).

A frame and a phrase such as `white coffee cup held by the left hand`; the model boxes every object that the phrase
means. Scored by COCO's mean average precision: each example is an image, its category the label, all scores 1.

Where the sources differ or are silent:
* the truth is frozen on the release's grid of 0..1000 and scored from there, as the released code does; the paper
  says absolute pixels. `target.boxes` keeps the annotated pixels;
* the relation that a phrase uses is drawn by an unseeded generator upstream; here by `content_seed` of video, frame
  and object, so a frame's phrases are the same under every sampling;
* the fraction of frames is taken video by video, so that a set does not depend on which other videos there are;
* a candidate with a box that has no area left on the grid is skipped: no answer could match it;
* mean average precision of answers without confidences depends on the order of the examples. As in the release it is
  that of the frozen set; `tie_spread` says what other orders give, and the F1 figures depend on none.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from barista_bench.benchmarks.barista.box_answers import (
    four_numbers,
    grid_pixels,
    in_words,
    random_grid_box,
    read_pixels,
    write_grid,
)
from barista_bench.benchmarks.barista.common import PROMPT_PACKAGE, metadata_features
from barista_bench.benchmarks.barista.frame_index import FrameIndex, any_row, collapsed, columns
from barista_bench.benchmarks.barista.phrases import UNKNOWN, Link, Phrase, Seen, Subject, is_color, subject_of
from barista_bench.benchmarks.parsing import unfenced
from barista_bench.boxes import GRID, box_names, describe_format
from barista_bench.metrics.interaction_f1.scoring import box_iou, greedy_pairs
from barista_bench.metrics.mean_ap.scoring import evaluate_images, summarise
from barista_bench.metrics.mean_ap.spread import spread_of
from barista_bench.prompt import BoxFormat, ImagePart, Prompt, TextPart
from barista_bench.scene_graph import SceneGraph, VideoGraph
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
    content_seed,
)

if TYPE_CHECKING:
    from datasets import Features

    from barista_bench.metrics.mean_ap.inputs import RawImage

SPREAD_ORDERS = 20
"""Random orders that the spread of the mean average precision is taken over; its bounds hold for all."""

_INTEGERS = re.compile(r"(?<![\d.])(-?\d{1,9})" + r"\s*,\s*(-?\d{1,9})" * 3 + r"(?!\d|\.\d)")
_NUMBER = r"(-?\d{1,9}(?:\.\d{1,9})?)"
_FRACTIONS = re.compile(r"(?<![\d.])" + rf"{_NUMBER}\s*,\s*" * 3 + rf"{_NUMBER}(?!\.?\d)")

Boxes = list[list[float]]


class Grounding(Task):
    benchmark = "barista"
    name = "grounding"
    upstream_name = "grounding"
    version = 1
    primary = "map"
    sample_score = "mean_best_iou"
    sampling = Sampling(limit=1000, seed=42, fraction=0.1, min_area=100.0)
    sampling_uses = frozenset({"fraction", "frame_step", "min_area"})
    prompt_package = PROMPT_PACKAGE

    def features(self) -> Features:
        from datasets import Features, List, Value

        strings, rows = List(Value("string")), List(Value("int64"))
        return Features(
            {
                "inputs": {
                    "phrase": Value("string"),
                    "category": Value("string"),
                    "frame_width": Value("int32"),
                    "frame_height": Value("int32"),
                },
                "target": {
                    "boxes": List(List(Value("float64"), length=4)),
                    "ground_truth_boxes": List(List(Value("int32"), length=4)),
                    "bbox_format": Value("string"),
                    "bbox_scale": Value("int32"),
                },
                "metadata": {
                    **metadata_features(),
                    "category": Value("string"),
                    "colors": strings,
                    "relation": Value("string"),
                    "related_category": Value("string"),
                    "objects": Value("int32"),
                },
                "evidence": {
                    "object_ids": strings,
                    "described_object_id": Value("string"),
                    "related_object_id": Value("string"),
                    "instance_rows": rows,
                    "relation_rows": rows,
                    "attribute_rows": rows,
                },
            }
        )

    def examples(self, graph: SceneGraph, sampling: Sampling) -> Iterator[Example | SkippedExample]:
        """Frames in an activity with a relation, evenly thinned; on each at most one phrase a category, sorted."""
        for video in sampling.selected(graph):
            yield from _video_examples(video, sampling)

    def prompt(self, example: Example, boxes: BoxFormat) -> Prompt:
        system, user = self.prompts.fill(
            box_format=describe_format(boxes), box_order=box_names(boxes), phrase=str(example.inputs["phrase"])
        )
        return Prompt(system, (ImagePart(0), TextPart(user)))

    def images(self, example: Example, frames: Sequence[NDArray[np.uint8]]) -> tuple[Image.Image, ...]:
        (frame,) = frames
        return (Image.fromarray(frame),)

    def parse(self, text: str, inputs: Fields, boxes: BoxFormat) -> Prediction | ParseError:
        """A JSON object with a list `bboxes` (else `boxes`), else every run of four numbers in the text.

        Of the list, entries that are lists of four numbers or more count, by their first four; the others are
        dropped. Numbers are rounded to integers, as released, unless the model writes fractions.
        """
        body = unfenced(text)
        listed = _listed(body)
        if listed is None:
            pattern = _FRACTIONS if boxes.scale == 1 else _INTEGERS
            listed = [[float(number) for number in match.groups()] for match in pattern.finditer(body)]
            if not listed:
                return ParseError("the answer holds neither a JSON object with bboxes nor four numbers in a row")
        found = [numbers for entry in listed if (numbers := _box_numbers(entry)) is not None]
        rounded = found if boxes.scale == 1 else [[float(round(number)) for number in box] for box in found]
        pixels = [read_pixels(numbers, inputs, boxes) for numbers in rounded]
        return Prediction({"boxes": cast("Json", pixels)}, dropped=len(listed) - len(found))

    def score(self, example: Example, prediction: Prediction | None) -> dict[str, float]:
        """Mean over the answered boxes of the best IoU with any true one; 0 without a readable or filled answer."""
        truth, answered = _truth(example), _boxes(prediction)
        best = [max(box_iou(box, true) for true in truth) for box in answered]
        return {"mean_best_iou": sum(best) / len(best) if best else 0.0}

    def aggregate(self, samples: Sequence[Scored]) -> dict[str, Json]:
        """COCO's figures in the order given, in torchmetrics' single precision; those without a reference left out."""
        evaluated = evaluate_images(
            [_predicted(s.example, s.prediction) for s in samples],
            [_reference(s.example) for s in samples],
            rounding="float32",
        )
        figures = {
            # COCO says -1 where there is nothing of a size; only a figure can be a float.
            name: value
            for name, value in summarise(evaluated).items()
            if not (isinstance(value, float) and value < 0)
        }
        spread = spread_of(evaluated, orders=SPREAD_ORDERS)
        return {**figures, "tie_spread": {name: spread[name] for name in ("map", "map_50", "map_75")}}

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        """Boxes paired at an IoU above 0.5; the score itself also counts stricter thresholds."""
        phrase, truth = example.inputs["phrase"], _truth(example)
        answered = _boxes(prediction)
        ious = [[box_iou(b, box) for b in answered] for box in truth]
        pairs = dict(greedy_pairs(ious))
        hits = [
            ExplanationRow(
                "hit", f"{phrase} at {in_words(truth[i])}: IoU {ious[i][j]:.2f} with {in_words(answered[j])}"
            )
            for i, j in sorted(pairs.items())
        ]
        misses = [
            ExplanationRow("miss", f"{phrase} at {in_words(box)}: best IoU {max(ious[i], default=0.0):.2f}")
            for i, box in enumerate(truth)
            if i not in pairs
        ]
        wrong = [
            ExplanationRow("wrong", f"box {in_words(box)}: best IoU {max(line[j] for line in ious):.2f}")
            for j, box in enumerate(answered)
            if j not in pairs.values()
        ]
        return Explanation((*hits, *misses, *wrong))

    def reference_answer(self, example: Example, boxes: BoxFormat) -> str:
        grid = cast("list[list[int]]", example.target["ground_truth_boxes"])
        return json.dumps({"bboxes": [write_grid(box, example.inputs, boxes) for box in grid]})

    def random_answer(self, example: Example, rng: random.Random, boxes: BoxFormat) -> str:
        """One box anywhere: most phrases mean one object."""
        return json.dumps({"bboxes": [write_grid(random_grid_box(rng), example.inputs, boxes)]})


@dataclass(frozen=True, slots=True)
class _Question:
    """A phrase, with the parts of an example that are the same on all frames of one state of the graph."""

    phrase: Phrase
    metadata: Fields
    evidence: Fields


@dataclass(frozen=True, slots=True)
class _Category:
    """What can be asked for in one category, in one state of the graph; `questions` are made as they are needed."""

    name: str
    subject: Subject
    questions: dict[int, _Question] = field(default_factory=dict)

    def question(self, video_id: str, frame: int) -> _Question:
        count = len(self.subject.links)
        choice = (
            content_seed("grounding", video_id, frame, self.subject.described.object.id) % count if count > 1 else 0
        )
        if choice not in self.questions:
            self.questions[choice] = _question(self.name, self.subject, self.subject.phrase(choice))
        return self.questions[choice]


def _video_examples(video: VideoGraph, sampling: Sampling) -> Iterator[Example | SkippedExample]:
    index, table = FrameIndex(video), video.instances_table
    relations = index.relations(range(len(video.relations_table.start)))
    color_labels = [i for i, (kind, _) in enumerate(video.attributes_table.labels) if kind == "color"]
    color_ranges = np.flatnonzero(np.isin(video.attributes_table.label, color_labels)).tolist()
    colored = index.attributes(color_ranges)
    large = table.bbox[:, 2] * table.bbox[:, 3] >= sampling.min_area
    frames = index.sampled(index.in_activity() & any_row(relations), sampling)
    # What can be said changes rarely: worked out once for each state, not for each frame.
    states: dict[bytes, list[_Category]] = {}
    keys = columns(np.vstack([relations, colored]), frames)
    for frame, key in zip(frames.tolist(), keys, strict=True):
        part = table.slice(frame)
        numbers = table.object[part][large[part]]
        state = key + numbers.tobytes()
        if state not in states:
            links = _links(video, np.flatnonzero(relations[:, frame]).tolist())
            colors = _colors(video, [color_ranges[i] for i in np.flatnonzero(colored[:, frame]).tolist()])
            states[state] = _categories(video, numbers.tolist(), links, colors)
        for category in states[state]:
            yield _example(index, frame, category.name, category.question(video.video_id, frame))


def _links(video: VideoGraph, positions: Sequence[int]) -> dict[int, list[Link]]:
    """Object index to its relations; a record counts once, even if two of its ranges overlap."""
    table = video.relations_table
    links: dict[int, list[Link]] = defaultdict(list)
    for position in {int(table.row[i]): i for i in positions}.values():
        source, target = int(table.source[position]), int(table.target[position])
        _, value, _, _, row = table.entry(position)
        links[source].append(Link(value, video.objects[target], True, row))
        links[target].append(Link(value, video.objects[source], False, row))
    return links


def _colors(video: VideoGraph, positions: Sequence[int]) -> dict[int, dict[str, int]]:
    """Object index to its usable colours, and the row that states each first."""
    table = video.attributes_table
    colors: dict[int, dict[str, int]] = defaultdict(dict)
    for position in positions:
        _, value, _, _, row = table.entry(position)
        source = int(table.source[position])
        if is_color(value, video.objects[source].category):
            colors[source].setdefault(value, row)
    return colors


def _categories(
    video: VideoGraph, numbers: Sequence[int], links: dict[int, list[Link]], colors: dict[int, dict[str, int]]
) -> list[_Category]:
    """Categories that can be asked for, sorted; `numbers` are the objects on the frame in the order of the file."""
    groups: dict[str, list[Seen]] = defaultdict(list)
    for number in numbers:
        item = video.objects[number]
        if item.category.casefold() != UNKNOWN:
            groups[item.category].append(Seen(item, number, colors.get(number, {}), links.get(number, ())))
    subjects = ((category, subject_of(groups[category])) for category in sorted(groups))
    return [_Category(category, subject) for category, subject in subjects if subject is not None]


def _question(category: str, subject: Subject, phrase: Phrase) -> _Question:
    link = phrase.link
    return _Question(
        phrase,
        metadata={
            "category": category,
            "colors": sorted(subject.described.colors),
            "relation": link.value if link else "",
            "related_category": link.other.category if link else "",
            "objects": len(phrase.truth),
        },
        evidence={
            "object_ids": [seen.object.id for seen in phrase.truth],
            "described_object_id": subject.described.object.id,
            "related_object_id": link.other.id if link else "",
            "relation_rows": sorted({own.row for seen in phrase.truth for own in seen.links if phrase.is_told(own)}),
            "attribute_rows": sorted({row for seen in phrase.truth for row in seen.colors.values()}),
        },
    )


def _example(index: FrameIndex, frame: int, category: str, question: _Question) -> Example | SkippedExample:
    video, phrase = index.video, question.phrase
    reference = FrameRef(video.video_id, frame)
    places = [int(index.place[seen.number, frame]) for seen in phrase.truth]
    grid = [index.grid(place) for place in places]
    if any(map(collapsed, grid)):
        return SkippedExample(reference, f"a box of {category} has no area on the grid")
    return Example(
        example_id=f"{Grounding.upstream_name}:{video.video_id}:{frame}:{category}",
        benchmark=Grounding.benchmark,
        task=Grounding.name,
        label=category,
        frames=(reference,),
        inputs={
            "phrase": phrase.text,
            "category": category,
            "frame_width": video.video.width,
            "frame_height": video.video.height,
        },
        target={
            "boxes": [index.pixels(place) for place in places],
            "ground_truth_boxes": grid,
            "bbox_format": "xyxy",
            "bbox_scale": GRID,
        },
        metadata={**index.metadata(frame), **question.metadata},
        evidence={**question.evidence, "instance_rows": [index.row(place) for place in places]},
    )


def _listed(body: str) -> list[object] | None:
    """The list under `bboxes`, else `boxes`, of a body that is one JSON object."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(answer, dict):
        return None
    listed = answer["bboxes"] if "bboxes" in answer else answer.get("boxes")
    return listed if isinstance(listed, list) else None


def _box_numbers(entry: object) -> list[float] | None:
    return four_numbers(entry[:4]) if isinstance(entry, list) else None


def _truth(example: Example) -> Boxes:
    """The true boxes in pixels, from the grid on which they are frozen."""
    return [grid_pixels(box, example.inputs) for box in cast("Boxes", example.target["ground_truth_boxes"])]


def _boxes(prediction: Prediction | None) -> Boxes:
    return cast("Boxes", prediction.value["boxes"]) if prediction else []


def _predicted(example: Example, prediction: Prediction | None) -> RawImage | None:
    return {"boxes": _boxes(prediction), "labels": example.label} if prediction else None


def _reference(example: Example) -> RawImage:
    return {"boxes": _truth(example), "labels": example.label}
