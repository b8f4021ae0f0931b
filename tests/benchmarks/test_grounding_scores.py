"""Confidences beside boxes by the paper's protocol: kept where every box has one, used if the whole run has them."""

from typing import Any

import numpy as np
import pytest

from barista_bench.benchmarks.barista.grounding import Grounding
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.task import Example, FrameRef, Prediction, Scored
from barista_bench.metrics.mean_ap import mean_ap
from tests.answering import read

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
    """That of the metric, which is held to pycocotools in its own tests."""
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
