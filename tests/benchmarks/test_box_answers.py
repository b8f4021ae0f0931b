"""Messages about boxes that do not match, and the sizes of boxes."""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from barista_bench.benchmarks import get_task
from barista_bench.benchmarks.barista.grounding import Grounding
from barista_bench.benchmarks.kinds.box_answers import box_failures, box_fields, box_size, random_grid_box
from barista_bench.core.boxes import GRID, BoxFormat
from barista_bench.core.display import AnswerFailure, Overlay
from barista_bench.core.example import Example, FrameRef, Prediction, Scored
from barista_bench.core.prompt import PromptTexts
from barista_bench.core.task import Task
from barista_bench.errors import ConfigError
from barista_bench.metrics.mean_ap import mean_ap
from tests.answering import derived, read

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
def test_kinds_of_unmatched_boxes_have_different_names(answered: list, pairs: list, expected: list) -> None:
    assert box_failures([CUP, POT], answered, pairs, ["cup", "pot"]) == expected


corner, side = st.integers(0, 40), st.integers(1, 40)
boxes = st.lists(
    st.tuples(corner, corner, side, side).map(lambda b: [b[0], b[1], b[0] + b[2], b[1] + b[3]]), max_size=4
)


@given(boxes, boxes)
def test_each_true_box_and_each_answer_fails_once_or_never(reference: list, answered: list) -> None:
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


BOXES = BoxFormat("yxyx", 1000)


@pytest.fixture(scope="module")
def first(small_release: Path) -> Callable[[str], tuple[Task, Example]]:
    def made(name: str) -> tuple[Task, Example]:
        task = get_task("barista", name)
        return task, derived(task, small_release, task.sampling.with_overrides({"frame_step": 20}))[0]

    return made


def answered(task: Task, example: Example) -> tuple[Overlay, ...]:
    return task.overlays(example, read(task, task.reference_answer(example, BOXES), example, BOXES))


@pytest.mark.parametrize("name", ["grounding", "hand_object"])
def test_the_right_answer_is_drawn_where_the_truth_is(name: str, first: Callable[[str], tuple[Task, Example]]) -> None:
    task, example = first(name)
    drawn = answered(task, example)
    reference, said = ([overlay for overlay in drawn if overlay.kind == kind] for kind in ("reference", "predicted"))
    assert len(reference) == len(said) > 0
    for right, said_overlay in zip(reference, said, strict=True):
        assert said_overlay.box == pytest.approx(right.box, abs=1.5)
    assert task.overlays(example, None) == tuple(reference)
    if name == "hand_object":
        labels = {overlay.label for overlay in reference}
        assert any(label.endswith(("hand", "hands")) for label in labels)
        assert {str(item["category"]) for item in example.target["interactions"]} <= labels


@pytest.mark.parametrize("name", ["referring", "relations"])
def test_only_facts_in_the_question_are_given_and_no_truth(
    name: str, first: Callable[[str], tuple[Task, Example]]
) -> None:
    task, example = first(name)
    drawn = answered(task, example)
    assert {overlay.kind for overlay in drawn} == {"given"}
    if name == "referring":
        assert list(drawn[0].box) == example.inputs["box"]
    else:
        x, y, width, height = example.inputs["objects"][0]["bbox"]
        assert drawn[0].box == (x, y, x + width, y + height)
        assert task.image_captions(example)[1].endswith("set of mark")


@pytest.mark.parametrize("name", ["activity", "temporal_vqa"])
def test_tasks_without_boxes_name_every_frame(name: str) -> None:
    frames = FrameRef("v", 3), FrameRef("v", 9)
    example = Example("e", "barista", name, "", frames, inputs={}, target={})
    assert get_task("barista", name).image_captions(example) == ("frame 3", "frame 9")


TASK = Grounding(options={"protocol": "paper"})
PIXELS = BoxFormat("xyxy", None)
SIZE: dict[str, Any] = {"frame_width": 1000, "frame_height": 1000}
BOX, OTHER = [100, 100, 300, 300], [500, 500, 800, 900]


def parsed(answer: object, box_format: BoxFormat = PIXELS) -> Prediction:
    return read(TASK, answer, SIZE, box_format)


def example(number: int, *boxes: list[int]) -> Example:
    """On a frame of 1000 x 1000 pixels the grid is the pixels."""
    inputs = {"phrase": "a cup", "category": "cup", **SIZE}
    target: Any = {"boxes": list(boxes), "ground_truth_boxes": list(boxes)}
    return Example(f"e{number}", "barista", "grounding", "cup", (FrameRef("v", number),), inputs, target)


@pytest.mark.parametrize(
    ("answer", "kept", "scores", "dropped"),
    [
        ({"bboxes": [BOX, OTHER], "scores": [0.25, 1]}, [BOX, OTHER], [0.25, 1.0], 0),
        ({"bboxes": [BOX, "cup", OTHER], "scores": [0.1, 0.2, 0.3]}, [BOX, OTHER], [0.1, 0.3], 1),
        ({"bboxes": [BOX], "scores": [float("nan")]}, [BOX], None, 1),
        ({"bboxes": [BOX, "cup"]}, [BOX], None, 1),
        ({"boxes": [BOX]}, [BOX], None, 0),
    ],
)
def test_confidences_are_kept_beside_their_boxes(
    answer: object, kept: list[list[int]], scores: list[float] | None, dropped: int
) -> None:
    value = {"boxes": [list(map(float, box)) for box in kept], **({"scores": scores} if scores else {})}
    assert parsed(answer) == Prediction(value, dropped)


def test_the_release_ignores_confidences() -> None:
    released = Grounding()
    answer = read(released, {"bboxes": [BOX, OTHER], "scores": [0.25, 1]}, SIZE, PIXELS)
    assert "scores" not in answer.value
    metrics = released.aggregate([Scored(example(0, BOX), answer)])
    assert metrics["constant_scores"] is True


@pytest.mark.parametrize(
    "scores", [[0.5], [0.5, 1.5], [-0.1, 0.5], [True, 0.5], ["0.5", 0.5], [None, 0.5], 0.5, None, {}, [[0.5], [0.5]]]
)
def test_confidences_that_cannot_be_used_are_dropped_and_the_boxes_kept(scores: object) -> None:
    answer = parsed({"bboxes": [BOX, OTHER], "scores": scores})
    assert answer == Prediction({"boxes": [list(map(float, BOX)), list(map(float, OTHER))]}, dropped=1)


def mean_precision(reference: list[list[list[int]]], answers: list[list[tuple[list[int], float]]]) -> float:
    """The metric's mean precision; its tests compare it with pycocotools."""
    predictions = [
        {"boxes": [box for box, _ in row], "labels": ["cup"] * len(row), "scores": [score for _, score in row]}
        for row in answers
    ]
    return mean_ap(predictions, [{"boxes": boxes, "labels": ["cup"] * len(boxes)} for boxes in reference])["map"]


def samples_of(reference: Any, answers: Any, *, scored: bool = True) -> list[Scored]:
    samples = []
    for number, (boxes, answered) in enumerate(zip(reference, answers, strict=True)):
        answer: dict[str, Any] = {"bboxes": [box for box, _ in answered]}
        if scored:
            answer["scores"] = [score for _, score in answered]
        samples.append(Scored(example(number, *boxes), parsed(answer)))
    return samples


REFERENCE = [[BOX], [BOX], [BOX]]
RANKED = [[(OTHER, 0.1)], [(BOX, 0.9)], [(BOX, 0.8)]]
"""A wrong box first in order and last in confidence."""


def test_confidences_rank_boxes_over_all_images() -> None:
    with_scores = TASK.aggregate(samples_of(REFERENCE, RANKED))
    without = TASK.aggregate(samples_of(REFERENCE, RANKED, scored=False))
    assert with_scores["map"] == pytest.approx(mean_precision(REFERENCE, RANKED))
    assert isinstance(with_scores["map"], float)
    assert isinstance(without["map"], float)
    assert with_scores["map"] > without["map"]
    assert with_scores["f1@50"] == without["f1@50"]


def test_one_answer_without_confidences_makes_all_of_them_one() -> None:
    mixed = samples_of(REFERENCE, RANKED)
    mixed[1] = samples_of(REFERENCE, RANKED, scored=False)[1]
    assert TASK.aggregate(mixed) == TASK.aggregate(samples_of(REFERENCE, RANKED, scored=False))


@pytest.mark.parametrize(
    ("box_format", "written"),
    [
        (PIXELS, [99.6, 100.4, 300, 300]),
        (BoxFormat("xyxy", 1000), [99.6, 100.4, 300, 300]),
        (BoxFormat("xyxy", 1), [0.1, 0.1, 0.3, 0.3]),
    ],
)
def test_fractions_are_kept_on_a_scale_of_1_and_rounded_on_any_other(
    box_format: BoxFormat, written: list[float]
) -> None:
    assert parsed({"bboxes": [written]}, box_format).value["boxes"] == [pytest.approx(list(map(float, BOX)))]


def test_answers_without_boxes_need_no_confidences() -> None:
    reference = [*REFERENCE, [BOX], [BOX]]
    samples = samples_of(REFERENCE, RANKED)
    empty = [Scored(example(3, BOX), parsed({"bboxes": []})), Scored(example(4, BOX), None)]
    assert TASK.aggregate([*samples, *empty])["map"] == pytest.approx(mean_precision(reference, [*RANKED, [], []]))


@pytest.mark.parametrize("times", [(1, 1, 1), (2, 0, 2)])
@pytest.mark.parametrize("draws", [1, 2])
def test_a_draw_weighs_samples_as_if_they_were_given_as_often(times: tuple[int, ...], draws: int) -> None:
    samples = samples_of(REFERENCE, RANKED)
    drawn = TASK.statistics(samples).compute_metrics(np.array([times] * draws, dtype=float))
    again = TASK.aggregate([sample for sample, count in zip(samples, times, strict=True) for _ in range(count)])
    assert all(drawn[name].tolist() == [again[name]] * draws for name in ("map", "map_50", "f1@50", "mean_best_iou"))
