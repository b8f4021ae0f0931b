"""Egocentric hand-object interaction (paper, section A.2.2; released rules, upstream.md 1.6).

One frame; the model reports each object that the wearer's hands act on, with its box, the hands' boxes, and which
hands they are. Scored by the F1 of interactions matched through their objects' boxes.

Where the sources differ or are silent (`protocol="paper"` does what is said of the paper in the first three):
* the paper sends the frame without text; the release, and we, add a short request;
* the paper matches at IoU >= 0.5 (table 3) or > 0.5 (table 9); the release, and we, take > 0.5;
* the truth is frozen on the release's grid of 0..1000 and scored from there. `object_pixels` and `hand_pixels` keep
  the annotated boxes;
* F1 is not in the released code; the paper's equals 2PR / (P + R) of the pooled figures;
* interactions, and the hands of one, stand in the order in which the file states their relations. Objects of
  category `unknown` count: nothing in the rules of this task leaves them out;
* the fraction of frames is taken video by video, before it is known which of them have an interaction.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from barista_bench.benchmarks.barista import released_answers
from barista_bench.benchmarks.barista.box_answers import (
    as_xyxy,
    box_places,
    in_words,
    random_grid_box,
    read_pixels,
    truth_scale,
    write_grid,
)
from barista_bench.benchmarks.barista.common import PROMPT_PACKAGE, metadata_features
from barista_bench.benchmarks.barista.contacts import State, contact_ranges, state_at
from barista_bench.benchmarks.barista.draws import interaction_figures
from barista_bench.benchmarks.barista.failures import box_failures, box_size
from barista_bench.benchmarks.barista.frame_index import FrameIndex, any_row, thinned
from barista_bench.benchmarks.barista.interactions import (
    EXEMPLARS,
    Interaction,
    central_interaction,
    true_interactions,
    usual_interactions,
)
from barista_bench.benchmarks.barista.protocols import RULES
from barista_bench.benchmarks.barista.schemas import interactions_schema
from barista_bench.benchmarks.parsing import json_arrays, unfenced
from barista_bench.benchmarks.pooling import Floats
from barista_bench.benchmarks.truncated import cut_array
from barista_bench.core.boxes import GRID, describe_format, four_numbers
from barista_bench.core.graph_task import Candidate, GraphTask, Vocabulary
from barista_bench.core.prompt import BoxFormat, ImagePart, Prompt
from barista_bench.core.task import (
    Example,
    Explanation,
    ExplanationRow,
    Failure,
    Fields,
    FrameRef,
    Json,
    Overlay,
    OverlayKind,
    ParseError,
    Prediction,
    Sampling,
    Scored,
)
from barista_bench.metrics.interaction_f1.inputs import HAND_TYPES
from barista_bench.metrics.interaction_f1.scoring import IOU_THRESHOLD, FrameScore, pool, score_frame
from barista_bench.scene_graph import VideoGraph

if TYPE_CHECKING:
    from datasets import Features


class HandObject(GraphTask):
    benchmark = "barista"
    name = "hand_object"
    upstream_name = "hand_object"
    version = 2
    primary = "f1"
    sample_score = "f1"
    sampling = Sampling(limit=1000, seed=42, fraction=1.0)
    sampling_uses = frozenset({"fraction", "frame_step", "relation_type", "box_scale"})
    prompt_package = PROMPT_PACKAGE
    row_note = "a frame, and every interaction of a hand with an object: boxes and hand"
    protocol_rules = RULES[name]

    def features(self) -> Features:
        from datasets import Features, List, Value

        strings, rows = List(Value("string")), List(Value("int64"))
        grid_box, pixel_box = List(Value("int32"), length=4), List(Value("float64"), length=4)
        interaction = {
            "object_id": Value("string"),
            "category": Value("string"),
            "hand_type": Value("string"),
            "hand_boxes": List(grid_box),
            "object_box": grid_box,
            "hand_pixels": List(pixel_box),
            "object_pixels": pixel_box,
        }
        return Features(
            {
                "inputs": {"frame_width": Value("int32"), "frame_height": Value("int32")},
                "target": {
                    "interactions": List(interaction),
                    "bbox_format": Value("string"),
                    "bbox_scale": Value("int32"),
                },
                "metadata": {
                    **metadata_features(),
                    "interactions": Value("int32"),
                    "hand_types": strings,
                    "categories": strings,
                    "verbs": strings,
                },
                "evidence": {
                    "object_ids": strings,
                    "hand_ids": strings,
                    "instance_rows": rows,
                    "relation_rows": rows,
                },
            }
        )

    def candidates(self, video: VideoGraph, sampling: Sampling) -> Iterator[Candidate]:
        """Of the video's frames, evenly thinned, those on which a hand acts on an object."""
        index = FrameIndex(video)
        acted = any_row(index.relations(contact_ranges(video, sampling.relation_type)))
        for frame in thinned(index.frames(sampling), sampling.fraction).tolist():
            if acted[frame]:
                yield Candidate(video.video_id, frame)

    def build(
        self, video: VideoGraph, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: Sampling
    ) -> Iterator[Example]:
        index, contacts = FrameIndex(video, sampling.box_scale), contact_ranges(video, sampling.relation_type)
        active = index.relations(contacts)
        for candidate in candidates:
            state = state_at(video, candidate.frame, contacts, active)
            yield _example(index, candidate.frame, state, sampling.box_scale)

    def prompt(self, example: Example, boxes: BoxFormat) -> Prompt:
        exemplars = {name: _written(items, example.inputs, boxes) for name, items in EXEMPLARS.items()}
        places = {"box_format": describe_format(boxes), **exemplars}
        prompt = self.prompts.prompt(1, **(box_places(self.prompts, boxes) | places))
        return replace(prompt, parts=(ImagePart(0),)) if self.follows_paper else prompt

    def parse(self, text: str, inputs: Fields, boxes: BoxFormat) -> Prediction | ParseError:
        """As `released_answers.read_interactions`. By the paper's protocol numbers must be numbers, and within bounds.

        Also, arrays inside of another one are not looked at, and one that breaks off is read as far as its entries are
        complete.
        """
        if not self.follows_paper:
            return released_answers.read_interactions(text, inputs, boxes)
        body = unfenced(text)
        try:
            whole = json.loads(body)
        except (ValueError, RecursionError):
            whole = None
        for array in [whole] if isinstance(whole, list) else json_arrays(body):
            interactions = [_interaction(item, inputs, boxes) for item in array]
            if None not in interactions:
                return Prediction({"interactions": cast("Json", interactions)})
        if cut := cut_array(text):
            interactions = [_interaction(item, inputs, boxes) for item in cut.entries]
            if None not in interactions:
                return Prediction({"interactions": cast("Json", interactions)}, dropped=cut.begun)
        return ParseError("the answer holds no JSON array of valid interactions")

    def score(self, example: Example, prediction: Prediction | None) -> dict[str, float]:
        """Precision, recall and F1 of one frame; no readable answer scores 0 in all three."""
        frame = self.frame_score(example, prediction)
        return {"precision": frame.precision, "recall": frame.recall, "f1": frame.f1}

    def aggregate(self, samples: Sequence[Scored]) -> dict[str, Json]:
        """Pooled over frames, means over matched pairs; figures of which there is nothing are left out.

        `per_hand_type` and `per_category` give the share of true interactions found, and how well.
        """
        scores = [self.frame_score(s.example, s.prediction) for s in samples]
        figures: dict[str, Json] = {name: value for name, value in pool(scores).items() if value is not None}
        for key, name in (("per_hand_type", "hand_type"), ("per_category", "category")):
            figures[key] = _found_by([s.example for s in samples], scores, name)
        return figures

    def resampled(self, samples: Sequence[Scored], weights: Floats) -> dict[str, Floats]:
        return interaction_figures([self.frame_score(s.example, s.prediction) for s in samples], weights)

    def facets(self, example: Example) -> Fields:
        truth = true_interactions(example, as_annotated=self.follows_paper)
        return {"object_size": sorted({box_size(item["object_box"]) for item in truth})}

    def failures(self, example: Example, prediction: Prediction | None) -> tuple[Failure, ...]:
        """Of the matched interactions, wrong and loose hands; of the others, their objects' boxes."""
        if prediction is None:
            return self.unreadable(example)
        objects = [str(item["object_id"]) for item in cast("list[Fields]", example.target["interactions"])]
        named = [(name,) if name else () for name in objects]  # released files may not tell
        truth = [item["object_box"] for item in true_interactions(example, as_annotated=self.follows_paper)]
        pairs = self.frame_score(example, prediction).pairs
        found = [Failure("wrong_hand", named[pair.reference]) for pair in pairs if not pair.hand_type_right]
        found += [
            Failure("loose_hand", named[pair.reference])
            for pair in pairs
            if pair.hand_type_right and pair.hand_iou < IOU_THRESHOLD
        ]
        answered = [item["object_box"] for item in _items(prediction.value)]
        return (*found, *box_failures(truth, answered, [pair[:2] for pair in pairs], objects))

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        truth, frame = _items(example.target), self.frame_score(example, prediction)
        answered = _items(prediction.value) if prediction else []
        pairs = {pair.reference: pair for pair in frame.pairs}
        used = {pair.prediction for pair in frame.pairs}
        hits = [
            ExplanationRow(
                "hit",
                f"{_sentence(item)}: object IoU {pairs[i].object_iou:.2f}, hand IoU {pairs[i].hand_iou:.2f}, "
                f"answered as {answered[pairs[i].prediction]['hand_type']}",
            )
            for i, item in enumerate(truth)
            if i in pairs
        ]
        misses = [ExplanationRow("miss", _sentence(item)) for i, item in enumerate(truth) if i not in pairs]
        wrong = [
            ExplanationRow("wrong", f"{_hands(item['hand_type'])} on an object at {in_words(item['object_box'])}")
            for i, item in enumerate(answered)
            if i not in used
        ]
        return Explanation((*hits, *misses, *wrong))

    def reference_answer(self, example: Example, boxes: BoxFormat) -> str:
        return _written(_items(example.target), example.inputs, boxes, truth_scale(example.target))

    def random_answer(self, example: Example, rng: random.Random, boxes: BoxFormat) -> str:
        """One interaction anywhere, with as many hands as its type says."""
        hand_type = rng.choice(HAND_TYPES)
        object_box, *hands = [random_grid_box(rng) for _ in range(3 if hand_type == "both" else 2)]
        made_up = Interaction(hand_boxes=hands, object_box=object_box, hand_type=hand_type)
        return _written([made_up], example.inputs, boxes)

    def prior_answer(self, example: Example, others: Sequence[Example], boxes: BoxFormat) -> str:
        """What hands do on most frames, where they usually do it; without other videos, as `centre_answer`."""
        return _written(usual_interactions(others) or [central_interaction()], example.inputs, boxes)

    def centre_answer(self, example: Example, boxes: BoxFormat) -> str:
        """One interaction whose object and only hand, called the right one, both fill the middle."""
        return _written([central_interaction()], example.inputs, boxes)

    def answer_schema(self, example: Example) -> Fields:
        return interactions_schema(example.inputs)

    def overlays(self, example: Example, prediction: Prediction | None) -> tuple[Overlay, ...]:
        """Hands and the objects that they act on."""
        truth = true_interactions(example, as_annotated=self.follows_paper)
        names = [str(item["category"]) for item in cast("list[dict[str, str]]", example.target["interactions"])]
        answered = _items(prediction.value) if prediction else []
        found = [drawn for item, name in zip(truth, names, strict=True) for drawn in _drawn(item, "truth", name)]
        return (*found, *(drawn for item in answered for drawn in _drawn(item, "predicted", "object")))

    def frame_score(self, example: Example, prediction: Prediction | None) -> FrameScore:
        """One frame in pixels, matched as the protocol says."""
        answered = _items(prediction.value) if prediction else None
        matching = "highest_first" if self.follows_paper else "greedy"
        return score_frame(answered, true_interactions(example, as_annotated=self.follows_paper), matching=matching)


def _example(index: FrameIndex, frame: int, state: State, scale: int) -> Example:
    video = index.video
    place = {
        number: int(index.place[number, frame]) for action in state.actions for number in (action.target, *action.hands)
    }
    interactions: list[Fields] = [
        {
            "object_id": video.objects[action.target].id,
            "category": video.objects[action.target].category,
            "hand_type": action.hand_type,
            "hand_boxes": [index.grid(place[hand]) for hand in action.hands],
            "object_box": index.grid(place[action.target]),
            "hand_pixels": [index.pixels(place[hand]) for hand in action.hands],
            "object_pixels": index.pixels(place[action.target]),
        }
        for action in state.actions
    ]
    return Example(
        example_id=f"{HandObject.upstream_name}:{video.video_id}:{frame}",
        benchmark=HandObject.benchmark,
        task=HandObject.name,
        label=state.label,
        frames=(FrameRef(video.video_id, frame),),
        inputs={"frame_width": video.video.width, "frame_height": video.video.height},
        target={"interactions": interactions, "bbox_format": "xyxy", "bbox_scale": scale},
        metadata={**index.metadata(frame), **state.metadata},
        evidence={**state.evidence, "instance_rows": sorted(index.row(at) for at in place.values())},
    )


def _interaction(item: object, inputs: Fields, boxes: BoxFormat) -> Interaction | None:
    """An entry of an answer, its boxes in pixels; None unless all of it is valid."""
    if not isinstance(item, dict):
        return None
    hands, target, hand_type = (item.get(name) for name in ("hand_boxes", "object_box", "hand_type"))
    if not isinstance(hands, list) or not hands or not isinstance(target, list) or hand_type not in HAND_TYPES:
        return None
    numbers = [four_numbers(box) for box in (*hands, target)]
    if None in numbers:
        return None
    pixels = [read_pixels(box, inputs, boxes) for box in numbers if box is not None]
    return Interaction(hand_boxes=pixels[:-1], object_box=pixels[-1], hand_type=str(hand_type))


def _written(items: Sequence[Interaction], inputs: Fields, boxes: BoxFormat, scale: int = GRID) -> str:
    """Interactions on the grid of 0..scale as a model writes them."""
    return json.dumps(
        [
            {
                "hand_boxes": [write_grid(box, inputs, boxes, scale) for box in item["hand_boxes"]],
                "object_box": write_grid(item["object_box"], inputs, boxes, scale),
                "hand_type": item["hand_type"],
            }
            for item in items
        ]
    )


def _items(fields: Fields) -> list[Interaction]:
    return cast("list[Interaction]", fields["interactions"])


def _found_by(examples: Sequence[Example], scores: Sequence[FrameScore], key: str) -> dict[str, Json]:
    """Recall, and mean IoUs of what was found, for each value of `key` among the true interactions."""
    support: Counter[str] = Counter()
    found: dict[str, list[tuple[float, float, bool]]] = defaultdict(list)
    for example, score in zip(examples, scores, strict=True):
        names = [str(item[key]) for item in cast("list[dict[str, str]]", example.target["interactions"])]
        support.update(names)
        for pair in score.pairs:
            found[names[pair.reference]].append((pair.object_iou, pair.hand_iou, pair.hand_type_right))
    rows: dict[str, Json] = {}
    figure_names = ("object_iou", "hand_iou", "hand_type_accuracy")
    for name in sorted(support):
        figures = np.array(found[name], dtype=float).reshape(-1, 3)
        means = zip(figure_names, figures.mean(axis=0).tolist(), strict=True) if len(figures) else ()
        rows[name] = {"recall": len(figures) / support[name], **dict(means), "support": support[name]}
    return rows


def _drawn(item: Interaction, kind: OverlayKind, name: str) -> list[Overlay]:
    hands = [Overlay(0, as_xyxy(box), kind, _hands(item["hand_type"])) for box in item["hand_boxes"]]
    return [*hands, Overlay(0, as_xyxy(item["object_box"]), kind, name)]


def _sentence(item: Interaction) -> str:
    return f"{_hands(item['hand_type'])} on {cast('dict[str, str]', item)['category']}"


def _hands(hand_type: str) -> str:
    return "both hands" if hand_type == "both" else f"{hand_type} hand"
