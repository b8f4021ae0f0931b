"""How answers about hands and objects are read, by the released rules and by the paper's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import strategies as st

from barista_bench.benchmarks.barista.hand_object import HandObject
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.task import Example, FrameRef, ParseError, Prediction, Scored
from tests.benchmarks.answering import interaction_entry as item

TASK = HandObject()
GRID = BoxFormat()
FORMATS = [GRID, BoxFormat("yxyx", 1000), BoxFormat("xyxy", 1), BoxFormat("xyxy", None)]
SIZE: dict[str, Any] = {"frame_width": 2000, "frame_height": 500}

Content = dict[str, Any]


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
        (f"[{ONE}]", [ONE_PX]),
        (f" \n[{ONE}, {BOTH}] ", [ONE_PX, BOTH_PX]),
        (f"```json\n[{ONE}]\n```", [ONE_PX]),
        (f"Sure:\n```\n[{BOTH}]\n``` so [] it is", [BOTH_PX]),
        (f"I see [{ONE}].", [ONE_PX]),
        ("I see none: []", []),
        (f"See [1] and [2, 3]: [{ONE}]", [ONE_PX]),
        (f"not [{BAD}] but [{ONE}]", [ONE_PX]),
        (f"first [{ONE}] then [{BOTH}]", [ONE_PX]),
        (f'{{"interactions": [{ONE}]}}', [ONE_PX]),
        # Where an outer list in running text is not valid, those inside of it are tried: an empty one says `none`.
        (f"so [[{ONE}]]", [ONE_PX]),
        (f"not [{json.dumps(item(hands=()))}] but [{ONE}]", []),
        (f"```json \n[{ONE}]\n```", [ONE_PX]),
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
    parsed = TASK.parse(answer, SIZE, GRID)
    assert isinstance(parsed, Prediction)
    assert parsed.value["interactions"] == expected


def test_what_the_model_wrote_is_kept_beside_the_pixels() -> None:
    parsed = TASK.parse(f"[{BOTH}]", SIZE, BoxFormat("yxyx", 1000))
    assert isinstance(parsed, Prediction)
    assert parsed.value["written"] == [item(hands=[[1, 2, 3, 4], [5, 6, 7, 8]], target=[10, 20, 30, 40], kind="both")]


@pytest.mark.parametrize(
    "bad", [item(hands=[[1, 2, 3, True]]), item(target=[1, 2, 3, "4"]), item(target=[1, 2, 3, 1e12])]
)
def test_the_papers_protocol_reads_plain_numbers_alone(bad: object) -> None:
    assert isinstance(TASK.parse(json.dumps([bad]), SIZE, GRID), Prediction)
    assert isinstance(HandObject(options={"protocol": "paper"}).parse(json.dumps([bad]), SIZE, GRID), ParseError)


def test_a_true_hand_that_nothing_overlaps_uses_up_an_answered_one_as_released() -> None:
    hands, alone = [[700, 700, 800, 800], [0, 0, 100, 100]], [[0, 0, 100, 100]]
    entry = {"object_id": "o", "category": "cup", "hand_type": "both", "hand_boxes": hands, "object_box": [0, 0, 9, 9]}
    target = {"interactions": [{**entry, "hand_pixels": hands, "object_pixels": [0, 0, 9, 9]}]}
    size = {"frame_width": 1000, "frame_height": 1000}
    asked = Example("e", "barista", "hand_object", "both", (FrameRef("v", 0),), size, target)
    answer = json.dumps([item(hands=alone, target=[0, 0, 9, 9], kind="both")])
    scores = []
    for task in (TASK, HandObject(options={"protocol": "paper"})):
        parsed = task.parse(answer, size, GRID)
        assert isinstance(parsed, Prediction)
        scores.append(task.aggregate([Scored(asked, parsed)])["hand_iou"])
    assert scores == [0.0, 0.5]


@pytest.mark.parametrize(
    "bad",
    [
        item(hands=[]),
        item(hands=None),
        item(hands=[1, 2, 3, 4]),
        item(hands=[[1, 2, 3]]),
        item(hands=[[1, 2, 3, 4, 5]]),
        item(hands=[[1, 2, 3, 4], None]),
        item(hands=[[1, 2, 3, "four"]]),
        item(hands=[[1, 2, 3, "nan"]]),
        item(target=[1, 2, 3]),
        item(target=[1, 2, 3, "inf"]),
        item(target=[1, 2, 3, 1e99]),
        item(target=[1, 2, 3, float("nan")]),
        item(target=[1, 2, 3, float("inf")]),
        item(target=[1, 2, 3, 10**400]),
        item(target=[[1, 2, 3, 4]]),
        item(target=None),
        item(kind="Left"),
        item(kind="neither"),
        item(kind=None),
        item(kind=["left"]),
        {},
        [],
        None,
        3,
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


def test_numbers_mean_what_the_format_of_the_model_says() -> None:
    answers = {
        BoxFormat("yxyx", 1000): item([[2, 1, 4, 3]], [20, 10, 40, 30]),
        BoxFormat("xyxy", 1): item([[0.001, 0.002, 0.003, 0.004]], [0.01, 0.02, 0.03, 0.04]),
        BoxFormat("xyxy", None): item([[2, 1, 6, 2]], [20, 10, 60, 20]),
    }
    for boxes, answer in answers.items():
        parsed = TASK.parse(json.dumps([answer]), SIZE, boxes)
        assert isinstance(parsed, Prediction)
        (interaction,) = parsed.value["interactions"]
        assert interaction["object_box"] == pytest.approx(ONE_PX["object_box"])
        assert interaction["hand_boxes"] == [pytest.approx(ONE_PX["hand_boxes"][0])]


grid_boxes = st.lists(st.integers(0, 1000), min_size=4, max_size=4)
interactions = st.fixed_dictionaries(
    {
        "hand_boxes": st.lists(grid_boxes, min_size=1, max_size=2),
        "object_box": grid_boxes,
        "hand_type": st.sampled_from(["left", "right", "both"]),
    }
)
