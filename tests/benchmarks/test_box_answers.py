"""What is said of boxes that do not match, and how large boxes are."""

import random
from collections import Counter

import pytest
from hypothesis import given, strategies as st

from barista_bench.benchmarks.kinds.box_answers import box_failures, box_fields, box_size, random_grid_box
from barista_bench.core.boxes import GRID, BoxFormat
from barista_bench.core.prompt import PromptTexts
from barista_bench.core.task import AnswerFailure
from barista_bench.errors import ConfigError

CUP, POT = [10.0, 10.0, 30.0, 30.0], [60.0, 60.0, 90.0, 90.0]


@pytest.mark.parametrize(
    ("answered", "pairs", "expected"),
    [
        ([CUP, POT], [(0, 0), (1, 1)], []),
        ([CUP], [(0, 0)], [AnswerFailure("missed", ("pot",))]),
        ([CUP, [62, 62, 120, 120]], [(0, 0)], [AnswerFailure("loose_box", ("pot",))]),
        ([CUP, POT, [200, 200, 210, 210]], [(0, 0), (1, 1)], [AnswerFailure("hallucinated")]),
        ([CUP, POT, [10, 10, 30, 29]], [(0, 0), (1, 1)], [AnswerFailure("duplicate", ("cup",))]),
        ([CUP, POT, [10, 10, 30, 20]], [(0, 0), (1, 1)], [AnswerFailure("hallucinated")]),
        ([CUP, [200, 200, 210, 210]], [(0, 0)], [AnswerFailure("missed", ("pot",)), AnswerFailure("hallucinated")]),
    ],
)
def test_boxes_that_do_not_match_are_told_apart(answered: list, pairs: list, expected: list) -> None:
    assert box_failures([CUP, POT], answered, pairs, ["cup", "pot"]) == expected


corner, side = st.integers(0, 40), st.integers(1, 40)
boxes = st.lists(
    st.tuples(corner, corner, side, side).map(lambda b: [b[0], b[1], b[0] + b[2], b[1] + b[3]]), max_size=4
)


@given(boxes, boxes)
def test_each_true_box_and_each_answer_fails_once_at_the_most(reference: list, answered: list) -> None:
    kinds = Counter(f.kind for f in box_failures(reference, answered, [], [str(i) for i in range(len(reference))]))
    assert kinds["missed"] + kinds["loose_box"] == len(reference)
    assert kinds["hallucinated"] + kinds["loose_box"] == len(answered)


@pytest.mark.parametrize(
    ("width", "height", "size"),
    [
        (31, 31, "small"),
        (32, 32, "medium"),
        (95, 95, "medium"),
        (96, 96, "large"),
        (0, 20_000, "small"),
        (20_000, 0, "small"),
    ],
)
def test_box_sizes_are_cocos(width: int, height: int, size: str) -> None:
    assert box_size([0, 0, width, height]) == size


def test_a_wording_without_the_words_for_an_order_is_refused_instead_of_shown_with_a_hole() -> None:
    wording = PromptTexts(1, "Boxes are {corners}.", "Go", "0" * 64, {"corners.yxyx": "y first", "image": "Frame"})
    assert box_fields(wording, BoxFormat("yxyx", 1000))["corners"] == "y first"
    with pytest.raises(ConfigError, match=r"has extra\.corners\.yxyx, and no extra\.corners\.xyxy.*Fix: write it"):
        box_fields(wording, BoxFormat("xyxy", 1000))


def test_a_random_box_has_an_area_and_may_end_at_any_edge_of_the_grid() -> None:
    boxes = [random_grid_box(random.Random(seed)) for seed in range(3000)]
    assert all(x0 < x1 and y0 < y1 for x0, y0, x1, y1 in boxes)
    assert [min(ends) for ends in zip(*boxes, strict=True)][:2] == [0, 0]
    assert [max(ends) for ends in zip(*boxes, strict=True)][2:] == [GRID, GRID]
