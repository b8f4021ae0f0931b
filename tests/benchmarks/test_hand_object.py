"""Hand-object interaction, rule by rule (docs/upstream/barista.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from barista_bench.benchmarks.barista.hand_object import EXEMPLARS, HandObject, HandObjectSampling
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.options import Sampling
from barista_bench.core.prompt import ImagePart, TextPart
from barista_bench.core.task import Example, Prediction, Scored
from barista_bench.scene_graph import SceneGraph
from tests.benchmarks.answering import interaction_entry as item
from tests.graph_examples import graph_examples
from tests.releases import BUTTON, CUP, HEIGHT, LEFT, MACHINE, RIGHT, WIDTH, document, relation, write_release

TASK = HandObject()
GRID = BoxFormat()
FORMATS = [GRID, BoxFormat("yxyx", 1000), BoxFormat("xyxy", 1), BoxFormat("xyxy", None)]

Content = dict[str, Any]


def derive(root: Path, sampling: Sampling = TASK.sampling) -> list[Example]:
    return [e for e in graph_examples(TASK, SceneGraph(root), sampling) if isinstance(e, Example)]


def derived(tmp_path: Path, content: Content, sampling: Sampling = TASK.sampling) -> list[Example]:
    return derive(write_release(tmp_path, content=content, video=False), sampling)


def contact(source: str, target: str, verb: str, *ranges: tuple[int, int]) -> Content:
    return relation(source, target, "human_actions", verb, *ranges)


def brief(examples: Iterable[Example], frame: int) -> list[tuple[str, str, int]]:
    """(object, hand type, number of hand boxes) of each interaction on one frame."""
    (example,) = (e for e in examples if e.frames[0].frame_index == frame)
    return [(i["object_id"], i["hand_type"], len(i["hand_boxes"])) for i in example.target["interactions"]]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_release(tmp_path_factory.mktemp("hand_object"), video=False)


@pytest.fixture(scope="module")
def example(root: Path) -> Example:
    return derive(root)[12]


def test_frames_are_those_with_an_interaction(root: Path) -> None:
    items = derive(root)
    # The left hand is seen on [0, 20); the right one from 10 on, and it acts on [5, 15) and [30, 40).
    assert [e.frames[0].frame_index for e in items] == [*range(20), *range(30, 40)]
    assert [brief(items, f)[0] for f in (3, 12, 17, 35)] == [
        (CUP, "left", 1),
        (CUP, "both", 2),
        (CUP, "left", 1),
        (CUP, "right", 1),
    ]


def test_activities_do_not_matter(tmp_path: Path) -> None:
    assert len(derived(tmp_path, document() | {"activities": []})) == 30


@pytest.mark.parametrize(
    ("sampling", "frames"),
    [
        # Of all 40 frames the fraction leaves 0, 13, 26 and 39; none but 26 has an interaction.
        (HandObjectSampling(fraction=0.1), [0, 13, 39]),
        (HandObjectSampling(fraction=0.01), [19]),
        (HandObjectSampling(frame_range=(14, 36), frame_step=4), [16, 32]),
    ],
)
def test_frames_are_thinned_before_interactions_are_looked_for(
    root: Path, sampling: Sampling, frames: list[int]
) -> None:
    assert [e.frames[0].frame_index for e in derive(root, sampling)] == frames


def test_only_human_actions_of_objects_that_are_hands_by_category(tmp_path: Path) -> None:
    content = document()
    content["categories"] = [
        {**c, "name": {"left hand": "Left Hand", "right hand": "right hand glove"}.get(c["name"], c["name"])}
        for c in content["categories"]
    ]
    content["relations"] = [
        relation(LEFT, CUP, "position", "on", (0, 40)),
        relation(LEFT, CUP, "Human_actions", "holds", (0, 40)),
        contact(LEFT, BUTTON, "presses", (2, 4)),
        contact(RIGHT, CUP, "holds", (0, 40)),
        contact(MACHINE, CUP, "touches", (0, 40)),
        contact(CUP, LEFT, "touches", (0, 40)),
    ]
    items = derived(tmp_path, content)
    assert [(e.frames[0].frame_index, brief(items, e.frames[0].frame_index)) for e in items] == [
        (2, [(BUTTON, "left", 1)]),
        (3, [(BUTTON, "left", 1)]),
    ]


def test_one_hand_on_two_objects_is_two_interactions_in_the_order_of_the_file(tmp_path: Path) -> None:
    content = document()
    content["relations"] = [
        contact(RIGHT, MACHINE, "touches", (10, 40)),
        contact(LEFT, CUP, "holds", (0, 20)),
        contact(RIGHT, BUTTON, "presses", (10, 40)),
    ]
    assert brief(derived(tmp_path, content), 12) == [(MACHINE, "right", 1), (CUP, "left", 1), (BUTTON, "right", 1)]


def test_a_hand_that_acts_twice_on_an_object_counts_once(tmp_path: Path) -> None:
    content = document()
    content["relations"] = [contact(LEFT, CUP, verb, (0, 12), (8, 20)) for verb in ("touches", "holds")]
    items = derived(tmp_path, content)
    assert brief(items, 10) == [(CUP, "left", 1)]
    assert items[10].metadata["verbs"] == ["holds", "touches"]
    assert items[10].evidence["relation_rows"] == [0, 1]


def test_two_left_hands_are_two_boxes_of_type_left(tmp_path: Path) -> None:
    content = document()
    content["object_id_to_category_id"][MACHINE] = "c-left hand"
    content["relations"] = [contact(hand, CUP, "holds", (0, 20)) for hand in (LEFT, MACHINE)]
    assert brief(derived(tmp_path, content), 5) == [(CUP, "left", 2)]


def test_a_hand_may_act_on_anything(tmp_path: Path) -> None:
    content = document()
    content["categories"].append({"id": "c-unknown", "name": "unknown"})
    content["object_id_to_category_id"][CUP] = "c-unknown"
    content["relations"] = [contact(LEFT, target, "holds", (12, 13)) for target in (CUP, RIGHT, LEFT)]
    assert brief(derived(tmp_path, content), 12) == [(name, "left", 1) for name in (CUP, RIGHT, LEFT)]


def test_of_two_annotations_of_an_object_the_last_one_is_its_box(tmp_path: Path) -> None:
    """Also one outside of the frame, or without an area."""
    content = document()
    boxes = {CUP: [-9.0, 10.0, 8.0, 0.2], LEFT: [0.0, 0.0, 48.0, 32.0]}
    content["annotations"] += [{"image_id": 3, "object_id": name, "bbox": box} for name, box in boxes.items()]
    items = derived(tmp_path, content)
    (interaction,) = items[3].target["interactions"]
    assert (interaction["object_box"], interaction["hand_boxes"]) == ([0, 156, 0, 159], [[0, 0, 500, 500]])
    rows = len(content["annotations"])
    assert items[3].evidence["instance_rows"] == [rows - 2, rows - 1]


def test_objects_keep_their_lower_case_ids_where_a_relation_writes_them_otherwise(tmp_path: Path) -> None:
    cup, hand = "88acdb91-6a48-5bf4-aef8-195802a88b14", "0c2f1a4e-90ab-5cde-8123-456789abcdef"
    content = json.loads(json.dumps(document()).replace(f'"{CUP}"', f'"{cup}"').replace(f'"{LEFT}"', f'"{hand}"'))
    content["relations"] = [contact(hand.upper(), cup.replace("-", ""), "holds", (0, 1))]
    assert brief(derived(tmp_path, content), 0) == [(cup, "left", 1)]


def test_an_example_is_whole(example: Example) -> None:
    assert (example.example_id, example.label) == ("hand_object:v1:12", "both")
    assert example.inputs == {"frame_width": WIDTH, "frame_height": HEIGHT}
    # Cup [50, 30, 20, 20], left [44, 40, 10, 16] and right hand [68, 36, 12, 18] in a frame of 96 x 64.
    assert example.target == {
        "interactions": [
            {
                "object_id": CUP,
                "category": "coffee cup",
                "hand_type": "both",
                "hand_boxes": [[458, 625, 562, 875], [708, 562, 833, 844]],
                "object_box": [521, 469, 729, 781],
                "hand_pixels": [[44.0, 40.0, 54.0, 56.0], [68.0, 36.0, 80.0, 54.0]],
                "object_pixels": [50.0, 30.0, 70.0, 50.0],
            }
        ],
        "bbox_format": "xyxy",
        "bbox_scale": 1000,
    }
    assert example.metadata["hand_types"] == ["both"]
    assert example.metadata["categories"] == ["coffee cup"]
    assert example.metadata["steps"] == ["Extract coffee"]
    assert example.evidence["object_ids"] == [CUP]
    assert example.evidence["hand_ids"] == [LEFT, RIGHT]
    assert example.evidence["relation_rows"] == [2, 3]
    rows = [document()["annotations"][row] for row in example.evidence["instance_rows"]]
    assert [(a["object_id"], a["image_id"]) for a in rows] == [(CUP, 12), (LEFT, 12), (RIGHT, 12)]


def test_a_video_without_contacts_gives_nothing(tmp_path: Path) -> None:
    assert derived(tmp_path / "a", document() | {"relations": []}) == []
    assert derived(tmp_path / "b", document() | {"relations": document()["relations"][:2]}) == []


def test_the_prompt_shows_three_exemplars_in_the_format_of_the_model(example: Example) -> None:
    for boxes in FORMATS:
        prompt = TASK.prompt(example, boxes)
        assert prompt.parts[0] == ImagePart(0)
        assert isinstance(prompt.parts[1], TextPart)
        arrays = [line for line in prompt.system.splitlines() if line.startswith("[{")]
        read = [TASK.parse(line, example.inputs, boxes) for line in arrays]
        types = [[i["hand_type"] for i in p.value["interactions"]] for p in read if isinstance(p, Prediction)]
        assert types == [["right"], ["both"], ["left", "right"]]
    first = json.loads(arrays[0])[0]["object_box"]
    exact = [v * size / 1000 for v, size in zip(EXEMPLARS["one_hand"][0].object_box, (WIDTH, HEIGHT) * 2, strict=True)]
    assert first == [round(v) for v in exact], "pixels of this frame"


def test_a_failed_answer_counts_as_none_predicted(example: Example) -> None:
    full = TASK.parse(TASK.reference_answer(example, GRID), example.inputs, GRID)
    assert isinstance(full, Prediction)
    result = TASK.aggregate([Scored(example, full), Scored(example, None)])
    assert (result["precision"], result["recall"], result["no_detection_rate"]) == (1.0, 0.5, 0.5)
    assert (result["n"], result["n_failed"], result["coverage"]) == (2, 1, 0.5)
    figures = {"recall": 0.5, "object_iou": 1.0, "hand_iou": 1.0, "hand_type_accuracy": 1.0, "support": 2}
    assert result["per_hand_type"] == {"both": figures}
    assert result["per_category"] == {"coffee cup": figures}
    assert TASK.score(example, full) == {"precision": 1.0, "recall": 1.0, "f1": 1.0}
    assert TASK.score(example, None) == {"precision": 0.0, "recall": 0.0, "f1": 0.0}


def test_figures_of_nothing_are_left_out(example: Example) -> None:
    result = TASK.aggregate([Scored(example, None)])
    assert "object_iou" not in result
    assert result["f1"] == 0.0
    assert result["per_hand_type"] == {"both": {"recall": 0.0, "support": 1}}
    json.dumps(result, allow_nan=False)


def test_an_explanation_names_hits_misses_and_wrong_answers(tmp_path: Path) -> None:
    content = document()
    content["relations"] = [contact(LEFT, CUP, "holds", (0, 20)), contact(RIGHT, BUTTON, "presses", (10, 40))]
    example = derived(tmp_path, content)[12]
    answer = [item([[44, 40, 54, 56]], [50, 30, 70, 48], "both"), item([[0, 0, 1, 1]], [0, 0, 5, 5], "right")]
    explanation = TASK.explain(example, Prediction({"interactions": answer}))
    assert [(row.verdict, row.text) for row in explanation.rows] == [
        ("hit", "left hand on coffee cup: object IoU 0.90, hand IoU 0.99, answered as both"),
        ("miss", "right hand on button"),
        ("wrong", "right hand on an object at [0, 0, 5, 5]"),
    ]
    assert [row.verdict for row in TASK.explain(example, None).rows] == ["miss", "miss"]
