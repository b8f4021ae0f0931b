"""Phrase grounding (paper, sections 4.2.1, A.1 and A.2.1; released rules, upstream.md 1.5).

A frame and a phrase such as `white coffee cup held by the left hand`; the model boxes every object that the phrase
means. Scored by COCO's mean average precision: each example is an image, its category the label, all scores 1 unless a
detector gives its own (`Grounding.aggregate`).

Where the sources differ or are silent:
* the truth is frozen on the release's grid of 0..1000 and scored from there, as the released code does; the paper
  says absolute pixels, which `target.boxes` keeps and `protocol="paper"` scores against;
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from barista_bench.benchmarks.barista.box_answers import (
    annotated,
    as_xyxy,
    grid_pixels,
    random_grid_box,
    read_pixels,
    write_grid,
)
from barista_bench.benchmarks.barista.common import PROMPT_PACKAGE, metadata_features
from barista_bench.benchmarks.barista.draws import box_figures
from barista_bench.benchmarks.barista.failures import box_failures, box_size
from barista_bench.benchmarks.barista.frame_index import Bools, FrameIndex, any_row
from barista_bench.benchmarks.barista.grounding_answers import explain_boxes, read_boxes
from barista_bench.benchmarks.barista.phrases import (
    Phrase,
    Seen,
    Subject,
    colors_of,
    is_color,
    link_ends,
    links_of,
    subject_of,
)
from barista_bench.benchmarks.barista.priors import CENTRE, boxes_by_category
from barista_bench.benchmarks.barista.protocols import RULES
from barista_bench.benchmarks.barista.schemas import grounding_schema
from barista_bench.benchmarks.pooling import Floats
from barista_bench.boxes import GRID, box_names, describe_format
from barista_bench.graph_task import Candidate, GraphTask, Vocabulary
from barista_bench.metrics.interaction_f1.scoring import box_iou, greedy_pairs
from barista_bench.metrics.mean_ap.scoring import Evaluated, evaluate_images, summarise
from barista_bench.metrics.mean_ap.spread import spread_of
from barista_bench.prompt import BoxFormat, ImagePart, Prompt, TextPart
from barista_bench.scene_graph import VideoGraph
from barista_bench.scene_graph.video_graph import UNNAMED
from barista_bench.task import (
    Example,
    Explanation,
    Failure,
    Fields,
    FrameRef,
    Json,
    Overlay,
    ParseError,
    Prediction,
    Sampling,
    Scored,
    SkippedExample,
    content_seed,
    evidence_objects,
)

if TYPE_CHECKING:
    from datasets import Features

    from barista_bench.metrics.mean_ap.inputs import RawImage

SPREAD_ORDERS = 20
"""Random orders that the spread of the mean average precision is taken over; its bounds hold for all."""

Boxes = list[list[float]]


class Grounding(GraphTask):
    benchmark = "barista"
    name = "grounding"
    upstream_name = "grounding"
    version = 1
    primary = "map"
    sample_score = "mean_best_iou"
    sampling = Sampling(limit=1000, seed=42, fraction=0.1, min_area=100.0)
    sampling_uses = frozenset({"fraction", "frame_step", "min_area"})
    prompt_package = PROMPT_PACKAGE
    row_note = "a frame and a phrase, and the boxes of all objects that the phrase names"
    protocol_rules = RULES[name]

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

    def candidates(self, video: VideoGraph, sampling: Sampling) -> Iterator[Candidate | SkippedExample]:
        """Frames in an activity with a relation, evenly thinned; on each at most one phrase a category, sorted.

        A category can be asked for where one of its objects has a relation to tell or a colour: where `subject_of`
        finds something to say.
        """
        view = _View(video, sampling)
        frames = view.index.sampled(view.index.in_activity() & any_row(view.relations), sampling)
        says = view.tellable()[:, frames] & view.large[:, frames]
        names = sorted({item.category for item in video.objects if item.category.casefold() != UNNAMED})
        members = [[i for i, item in enumerate(video.objects) if item.category == name] for name in names]
        asked = np.array([says[group].any(axis=0) for group in members], dtype=bool).reshape(len(names), len(frames))
        doubtful = view.index.has_flat(frames).tolist()
        places = (axis.tolist() for axis in np.nonzero(asked.T))
        for column, category in zip(*places, strict=True):
            candidate = Candidate(video.video_id, int(frames[column]), names[category])
            if doubtful[column] and view.has_flat_box(candidate):
                reason = f"a box of {candidate.group} has no area on the grid"
                yield SkippedExample(FrameRef(candidate.video_id, candidate.frame), reason)
            else:
                yield candidate

    def build(
        self, video: VideoGraph, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: Sampling
    ) -> Iterator[Example]:
        view = _View(video, sampling)
        for candidate in candidates:
            yield _example(view.index, candidate, view.question(candidate))

    def prompt(self, example: Example, boxes: BoxFormat) -> Prompt:
        system, user = self.prompts.fill(
            box_format=describe_format(boxes), box_order=box_names(boxes), phrase=str(example.inputs["phrase"])
        )
        return Prompt(system, (ImagePart(0), TextPart(user)))

    def parse(self, text: str, inputs: Fields, boxes: BoxFormat) -> Prediction | ParseError:
        """Boxes, and `scores` beside them where the answer has them, as `grounding_answers.read_boxes` reads them."""
        answer = read_boxes(text, boxes, repair=self.follows_paper)
        if answer is None:
            return ParseError("the answer holds neither a JSON object with bboxes nor four numbers in a row")
        value: Fields = {"boxes": [read_pixels(numbers, inputs, boxes) for numbers in answer.boxes]}
        if answer.scores is not None:
            value["scores"] = answer.scores
        return Prediction(value, answer.dropped)

    def score(self, example: Example, prediction: Prediction | None) -> dict[str, float]:
        """Mean over the answered boxes of the best IoU with any true one; 0 without a readable or filled answer."""
        truth, answered = self._truth(example), _boxes(prediction)
        best = [max(box_iou(box, true) for true in truth) for box in answered]
        return {"mean_best_iou": sum(best) / len(best) if best else 0.0}

    def aggregate(self, samples: Sequence[Scored]) -> dict[str, Json]:
        """COCO's figures in the order given, in torchmetrics' single precision; those without a reference left out.

        All confidences are 1, as released, unless every sample that has boxes has `scores` for them: those of a
        detector rank its boxes over all images, while a mixture would rank answers by whether they have any.
        """
        evaluated = self._evaluated(samples)
        figures = {
            # COCO says -1 where there is nothing of a size; only a figure can be a float.
            name: value
            for name, value in summarise(evaluated).items()
            if not (isinstance(value, float) and value < 0)
        }
        spread = spread_of(evaluated, orders=SPREAD_ORDERS)
        return {**figures, "tie_spread": {name: spread[name] for name in ("map", "map_50", "map_75")}}

    def resampled(self, samples: Sequence[Scored], weights: Floats) -> dict[str, Floats]:
        return box_figures(self._evaluated(samples), weights)

    def facets(self, example: Example) -> Fields:
        return {"object_size": sorted({box_size(box) for box in self._truth(example)})}

    def failures(self, example: Example, prediction: Prediction | None) -> tuple[Failure, ...]:
        """By the boxes that are paired at an IoU above 0.5, as `explain` tells them."""
        if prediction is None:
            return self.unreadable(example)
        truth, answered = self._truth(example), _boxes(prediction)
        pairs = greedy_pairs([[box_iou(box, true) for box in answered] for true in truth])
        return tuple(box_failures(truth, answered, pairs, evidence_objects(example)))

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        """Boxes paired at an IoU above 0.5; the score itself also counts stricter thresholds."""
        return explain_boxes(str(example.inputs["phrase"]), self._truth(example), _boxes(prediction))

    def reference_answer(self, example: Example, boxes: BoxFormat) -> str:
        grid = cast("list[list[int]]", example.target["ground_truth_boxes"])
        return json.dumps({"bboxes": [write_grid(box, example.inputs, boxes) for box in grid]})

    def random_answer(self, example: Example, rng: random.Random, boxes: BoxFormat) -> str:
        """One box anywhere: most phrases mean one object."""
        return json.dumps({"bboxes": [write_grid(random_grid_box(rng), example.inputs, boxes)]})

    def prior_answer(self, example: Example, others: Sequence[Example], boxes: BoxFormat) -> str:
        """Where objects of the phrase's category usually are, and as many as usual; else where objects of any are.

        Without other videos, the box in the middle.
        """
        usual = boxes_by_category(others)
        found = usual.get(str(example.inputs["category"]), usual.get("", [list(CENTRE)]))
        return json.dumps({"bboxes": [write_grid(box, example.inputs, boxes) for box in found]})

    def centre_answer(self, example: Example, boxes: BoxFormat) -> str:
        return json.dumps({"bboxes": [write_grid(CENTRE, example.inputs, boxes)]})

    def answer_schema(self, example: Example) -> Fields:
        return grounding_schema(example.inputs)

    def overlays(self, example: Example, prediction: Prediction | None) -> tuple[Overlay, ...]:
        phrase = str(example.inputs["phrase"])
        truth = [Overlay(0, as_xyxy(box), "truth", phrase) for box in self._truth(example)]
        return (*truth, *(Overlay(0, as_xyxy(box), "predicted") for box in _boxes(prediction)))

    def _evaluated(self, samples: Sequence[Scored]) -> Evaluated:
        with_boxes = [s.prediction for s in samples if _boxes(s.prediction)]
        scored = all(prediction is not None and "scores" in prediction.value for prediction in with_boxes)
        return evaluate_images(
            [_predicted(s.example, s.prediction, scored) for s in samples],
            [{"boxes": self._truth(s.example), "labels": s.example.label} for s in samples],
            rounding="float32",
        )

    def _truth(self, example: Example) -> Boxes:
        """The true boxes in pixels: from the grid on which they are frozen, or as annotated (paper, A.1)."""
        if self.follows_paper:
            return cast("Boxes", annotated(example.target, "boxes", example.example_id))
        return [grid_pixels(box, example.inputs) for box in cast("Boxes", example.target["ground_truth_boxes"])]


@dataclass(frozen=True, slots=True)
class _Question:
    """A phrase, with the parts of an example that are the same on all frames of one state of the graph."""

    phrase: Phrase
    metadata: Fields
    evidence: Fields


class _View:
    """One video as grounding asks of it: what holds on which frame, and the question that one candidate is."""

    def __init__(self, video: VideoGraph, sampling: Sampling) -> None:
        self.video, self.index = video, FrameIndex(video)
        attributes = video.attributes_table
        self.relations = self.index.relations(range(len(video.relations_table.start)))
        kinds = [i for i, (kind, _) in enumerate(attributes.labels) if kind == "color"]
        self.color_ranges: list[int] = np.flatnonzero(np.isin(attributes.label, kinds)).tolist()
        self.colored = self.index.attributes(self.color_ranges)
        box = video.instances_table.bbox
        wide = np.append(box[:, 2] * box[:, 3] >= sampling.min_area, False)  # the last one stands for no box: -1
        self.large: Bools = wide[self.index.place]

    def tellable(self) -> Bools:
        """(objects, frames) whether an object has a relation with a template, or a colour that a phrase may use."""
        objects, colors = self.video.objects, self.video.attributes_table
        says = np.zeros((len(objects), self.video.frame_count), dtype=bool)
        for position, frames in enumerate(self.relations):
            for number, link in link_ends(self.video, position):
                if link.words:
                    says[number] |= frames
        for position, frames in zip(self.color_ranges, self.colored, strict=True):
            number = int(colors.source[position])
            if is_color(colors.entry(position)[1], objects[number].category):
                says[number] |= frames
        return says

    def question(self, candidate: Candidate) -> _Question:
        """What is asked at a candidate. The relation told is drawn by `content_seed`; see the module's text."""
        frame, category = candidate.frame, candidate.group
        table = self.video.instances_table
        links = links_of(self.video, np.flatnonzero(self.relations[:, frame]).tolist())
        colors = colors_of(self.video, [self.color_ranges[i] for i in np.flatnonzero(self.colored[:, frame]).tolist()])
        group = [
            Seen(self.video.objects[number], number, colors.get(number, {}), links.get(number, ()))
            for number in table.object[table.slice(frame)].tolist()
            if self.video.objects[number].category == category and self.large[number, frame]
        ]
        subject = subject_of(group)
        assert subject is not None, f"{candidate} has nothing to say"
        count = len(subject.links)
        seed = (frame, subject.described.object.id)
        choice = content_seed("grounding", self.video.video_id, *seed) % count if count > 1 else 0
        return _question(category, subject, subject.phrase(choice))

    def has_flat_box(self, candidate: Candidate) -> bool:
        """Whether a true box of a candidate has no area left on the grid."""
        truth = self.question(candidate).phrase.truth
        return any(self.index.is_flat(self.index.place[seen.number, candidate.frame]) for seen in truth)


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


def _example(index: FrameIndex, candidate: Candidate, question: _Question) -> Example:
    video, phrase = index.video, question.phrase
    frame, category = candidate.frame, candidate.group
    places = [int(index.place[seen.number, frame]) for seen in phrase.truth]
    return Example(
        example_id=f"{Grounding.upstream_name}:{video.video_id}:{frame}:{category}",
        benchmark=Grounding.benchmark,
        task=Grounding.name,
        label=category,
        frames=(FrameRef(video.video_id, frame),),
        inputs={
            "phrase": phrase.text,
            "category": category,
            "frame_width": video.video.width,
            "frame_height": video.video.height,
        },
        target={
            "boxes": [index.pixels(place) for place in places],
            "ground_truth_boxes": [index.grid(place) for place in places],
            "bbox_format": "xyxy",
            "bbox_scale": GRID,
        },
        metadata={**index.metadata(frame), **question.metadata},
        evidence={**question.evidence, "instance_rows": [index.row(place) for place in places]},
    )


def _boxes(prediction: Prediction | None) -> Boxes:
    return cast("Boxes", prediction.value["boxes"]) if prediction else []


def _predicted(example: Example, prediction: Prediction | None, scored: bool) -> RawImage | None:
    if prediction is None:
        return None
    boxes = _boxes(prediction)
    scores = {"scores": prediction.value["scores"]} if scored and boxes else {}
    return {"boxes": boxes, "labels": example.label, **scores}
