"""Hand-object interaction, rule by rule (docs/upstream/barista.md)."""

import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from barista_bench.benchmarks.barista.hand_object import HandObject, HandObjectSampling
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example, FrameRef, ParseError, Prediction, Scored
from barista_bench.core.options import Sampling
from tests.answering import answered, derived, interaction_entry as item, read
from tests.releases import BUTTON, CUP, HEIGHT, LEFT, MACHINE, RIGHT, WIDTH, document, relation, write_release

TASK = HandObject()
GRID = BoxFormat()

Content = dict[str, Any]


derive = partial(derived, TASK)


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


def test_only_human_actions_of_hands_are_interactions(tmp_path: Path) -> None:
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
    items = derive(tmp_path, content=content)
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
    assert brief(derive(tmp_path, content=content), 12) == [
        (MACHINE, "right", 1),
        (CUP, "left", 1),
        (BUTTON, "right", 1),
    ]


def test_a_hand_that_acts_twice_on_an_object_counts_once(tmp_path: Path) -> None:
    content = document()
    content["relations"] = [contact(LEFT, CUP, verb, (0, 12), (8, 20)) for verb in ("touches", "holds")]
    items = derive(tmp_path, content=content)
    assert brief(items, 10) == [(CUP, "left", 1)]
    assert items[10].metadata["verbs"] == ["holds", "touches"]
    assert items[10].evidence["relation_rows"] == [0, 1]


def test_two_left_hands_are_two_boxes_of_type_left(tmp_path: Path) -> None:
    content = document()
    content["object_id_to_category_id"][MACHINE] = "c-left hand"
    content["relations"] = [contact(hand, CUP, "holds", (0, 20)) for hand in (LEFT, MACHINE)]
    assert brief(derive(tmp_path, content=content), 5) == [(CUP, "left", 2)]


def test_a_hand_may_act_on_unknown_things_and_on_hands(tmp_path: Path) -> None:
    content = document()
    content["categories"].append({"id": "c-unknown", "name": "unknown"})
    content["object_id_to_category_id"][CUP] = "c-unknown"
    content["relations"] = [contact(LEFT, target, "holds", (12, 13)) for target in (CUP, RIGHT, LEFT)]
    assert brief(derive(tmp_path, content=content), 12) == [(name, "left", 1) for name in (CUP, RIGHT, LEFT)]


def test_the_last_of_two_annotations_of_an_object_is_its_box(tmp_path: Path) -> None:
    """Also one outside of the frame, or without an area."""
    content = document()
    boxes = {CUP: [-9.0, 10.0, 8.0, 0.2], LEFT: [0.0, 0.0, 48.0, 32.0]}
    content["annotations"] += [{"image_id": 3, "object_id": name, "bbox": box} for name, box in boxes.items()]
    items = derive(tmp_path, content=content)
    (interaction,) = items[3].target["interactions"]
    assert (interaction["object_box"], interaction["hand_boxes"]) == ([0, 156, 0, 159], [[0, 0, 500, 500]])
    rows = len(content["annotations"])
    assert items[3].evidence["instance_rows"] == [rows - 2, rows - 1]


def test_objects_keep_their_lower_case_ids_where_a_relation_writes_them_otherwise(tmp_path: Path) -> None:
    cup, hand = "88acdb91-6a48-5bf4-aef8-195802a88b14", "0c2f1a4e-90ab-5cde-8123-456789abcdef"
    content = json.loads(json.dumps(document()).replace(f'"{CUP}"', f'"{cup}"').replace(f'"{LEFT}"', f'"{hand}"'))
    content["relations"] = [contact(hand.upper(), cup.replace("-", ""), "holds", (0, 1))]
    assert brief(derive(tmp_path, content=content), 0) == [(cup, "left", 1)]


def test_an_example_has_its_boxes_and_the_rows_of_the_file(example: Example) -> None:
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


def test_a_failed_answer_counts_as_an_answer_without_interactions(example: Example) -> None:
    full = read(TASK, TASK.reference_answer(example, GRID), example)
    result = TASK.aggregate([Scored(example, full), Scored(example, None)])
    assert (result["precision"], result["recall"], result["no_detection_rate"]) == (1.0, 0.5, 0.5)
    assert (result["n"], result["n_failed"], result["coverage"]) == (2, 1, 0.5)
    metrics = {"recall": 0.5, "object_iou": 1.0, "hand_iou": 1.0, "hand_type_accuracy": 1.0, "support": 2}
    assert result["per_hand_type"] == {"both": metrics}
    assert result["per_category"] == {"coffee cup": metrics}
    assert TASK.score(example, full) == {"precision": 1.0, "recall": 1.0, "f1": 1.0}
    assert TASK.score(example, None) == {"precision": 0.0, "recall": 0.0, "f1": 0.0}


def test_undefined_metrics_are_left_out(example: Example) -> None:
    result = TASK.aggregate([Scored(example, None)])
    assert "object_iou" not in result
    assert result["f1"] == 0.0
    assert result["per_hand_type"] == {"both": {"recall": 0.0, "support": 1}}
    json.dumps(result, allow_nan=False)


def test_an_explanation_names_hits_misses_and_wrong_answers(tmp_path: Path) -> None:
    content = document()
    content["relations"] = [contact(LEFT, CUP, "holds", (0, 20)), contact(RIGHT, BUTTON, "presses", (10, 40))]
    example = derive(tmp_path, content=content)[12]
    answer = [item([[44, 40, 54, 56]], [50, 30, 70, 48], "both"), item([[0, 0, 1, 1]], [0, 0, 5, 5], "right")]
    explanation = TASK.explain(example, Prediction({"interactions": answer}))
    assert [(row.kind, row.text) for row in explanation.rows] == [
        ("hit", "left hand on coffee cup: object IoU 0.90, hand IoU 0.99, answered as both"),
        ("miss", "right hand on button"),
        ("wrong", "right hand on an object at [0, 0, 5, 5]"),
    ]
    assert [row.kind for row in TASK.explain(example, None).rows] == ["miss", "miss"]


SIZE: dict[str, Any] = {"frame_width": 2000, "frame_height": 500}

# On a frame of 2000 x 500, [x0, y0, x1, y1] on the grid are [2 x0, y0 / 2, 2 x1, y1 / 2] in pixels.
ONE = json.dumps(item())
ONE_PX = {"hand_boxes": [[2.0, 1.0, 6.0, 2.0]], "object_box": [20.0, 10.0, 60.0, 20.0], "hand_type": "left"}
BOTH = json.dumps(item(hands=((1, 2, 3, 4), (5, 6, 7, 8.5)), kind="both"))
BOTH_PX = {**ONE_PX, "hand_boxes": [[2.0, 1.0, 6.0, 2.0], [10.0, 3.0, 14.0, 4.0]], "hand_type": "both"}
BAD = json.dumps(item(kind="none"))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("[]", []),
        (f" \n[{ONE}, {BOTH}] ", [ONE_PX, BOTH_PX]),
        (f"Sure:\n```\n[{BOTH}]\n``` so [] it is", [BOTH_PX]),
        *(
            (text.replace("*", f"[{ONE}]"), [ONE_PX])
            for text in ("*", "```json\n*\n```", "```json \n*\n```", "I see *.")
        ),
        *((text.replace("*", f"[{ONE}]"), [ONE_PX]) for text in ("See [1] and [2, 3]: *", f"not [{BAD}] but *")),
        *((text.replace("*", f"[{ONE}]"), [ONE_PX]) for text in (f"first * then [{BOTH}]", '{"interactions": *}')),
        ("I see none: []", []),
        # Where an outer list in running text is not valid, those inside of it are tried: an empty one says `none`.
        (f"so [[{ONE}]]", [ONE_PX]),
        (f"not [{json.dumps(item(hands=()))}] but [{ONE}]", []),
        (
            json.dumps([item(hands=[["1", " 2 ", "3.4", True]], target=["1_0", 20, 30, 40])]),
            [{**ONE_PX, "hand_boxes": [[2.0, 1.0, 6.0, 0.5]]}],
        ),
        (json.dumps([{**item(), "verb": "holds"}]), [ONE_PX]),
        # Inverted boxes and surplus hands stay.
        (json.dumps([item(target=(30, 40, 10, 20))]), [{**ONE_PX, "object_box": [60.0, 20.0, 20.0, 10.0]}]),
        (json.dumps([item(hands=[[1, 2, 3, 4]] * 3)]), [{**ONE_PX, "hand_boxes": [[2.0, 1.0, 6.0, 2.0]] * 3}]),
    ],
)
def test_answers_are_read_as_released(answer: str, expected: list[Content]) -> None:
    assert read(TASK, answer, SIZE).value["interactions"] == expected


def test_the_models_written_boxes_are_kept_beside_the_pixels() -> None:
    parsed = read(TASK, f"[{BOTH}]", SIZE, BoxFormat("yxyx", 1000))
    assert parsed.value["written"] == [item(hands=[[1, 2, 3, 4], [5, 6, 7, 8]], target=[10, 20, 30, 40], kind="both")]


@pytest.mark.parametrize(
    "bad", [item(hands=[[1, 2, 3, True]]), item(target=[1, 2, 3, "4"]), item(target=[1, 2, 3, 1e12])]
)
def test_the_papers_protocol_reads_only_plain_numbers(bad: object) -> None:
    assert isinstance(TASK.parse(json.dumps([bad]), SIZE, GRID), Prediction)
    assert isinstance(HandObject(options={"protocol": "paper"}).parse(json.dumps([bad]), SIZE, GRID), ParseError)


def test_a_true_hand_without_overlap_uses_up_an_answered_hand_as_released() -> None:
    hands, alone = [[700, 700, 800, 800], [0, 0, 100, 100]], [[0, 0, 100, 100]]
    entry = {"object_id": "o", "category": "cup", "hand_type": "both", "hand_boxes": hands, "object_box": [0, 0, 9, 9]}
    target = {"interactions": [{**entry, "hand_pixels": hands, "object_pixels": [0, 0, 9, 9]}]}
    size = {"frame_width": 1000, "frame_height": 1000}
    asked = Example("e", "barista", "hand_object", "both", (FrameRef("v", 0),), size, target)
    answer = json.dumps([item(hands=alone, target=[0, 0, 9, 9], kind="both")])
    tasks = TASK, HandObject(options={"protocol": "paper"})
    assert [task.aggregate([answered(task, asked, answer)])["hand_iou"] for task in tasks] == [0.0, 0.5]


@pytest.mark.parametrize(
    "bad",
    [
        *(item(hands=hands) for hands in ([], None, [1, 2, 3, 4], [[1, 2, 3, 4], None])),
        *(item(hands=[[1, 2, 3, *end]]) for end in ([], [4, 5], ["four"], ["nan"])),
        *(item(target=[1, 2, 3, *end]) for end in ([], ["inf"], [1e99], [float("nan")], [float("inf")], [10**400])),
        *(item(target=target) for target in ([[1, 2, 3, 4]], None)),
        *(item(kind=kind) for kind in ("Left", "neither", None, ["left"])),
        *({}, [], None, 3),
    ],
)
def test_one_bad_entry_rejects_the_whole_answer(bad: object) -> None:
    assert isinstance(TASK.parse(json.dumps([item(), bad]), SIZE, GRID), ParseError)


@pytest.mark.parametrize(
    "answer",
    ["", "none", "null", "{}", ONE, f"[{ONE}", f"[{ONE}, {ONE[:30]}", "[1]", "[" * 9_000,
     '[{"hand_boxes": [[' + "9" * 5_000],
)  # fmt: skip
def test_an_answer_without_a_valid_array_is_a_parse_error(answer: str) -> None:
    assert isinstance(TASK.parse(answer, SIZE, GRID), ParseError)
