"""Confidences beside boxes by the paper's protocol: kept where every box has one, used if the whole run has them."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import numpy as np
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from barista_bench.benchmarks.barista.grounding import Grounding
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.task import Example, FrameRef, Prediction, Scored

TASK = Grounding(options={"protocol": "paper"})
PIXELS = BoxFormat("xyxy", None)
SIZE: dict[str, Any] = {"frame_width": 1000, "frame_height": 1000}
BOX, OTHER = [100, 100, 300, 300], [500, 500, 800, 900]


def parsed(answer: object, box_format: BoxFormat = PIXELS) -> Prediction:
    prediction = TASK.parse(json.dumps(answer), SIZE, box_format)
    assert isinstance(prediction, Prediction)
    return prediction


def example(number: int, *boxes: list[int]) -> Example:
    """On a frame of 1000 x 1000 pixels the grid is the pixels."""
    inputs = {"phrase": "a cup", "category": "cup", **SIZE}
    target: Any = {"boxes": list(boxes), "ground_truth_boxes": list(boxes)}
    return Example(f"e{number}", "barista", "grounding", "cup", (FrameRef("v", number),), inputs, target)


def test_confidences_are_kept_beside_their_boxes() -> None:
    assert parsed({"bboxes": [BOX, OTHER], "scores": [0.25, 1]}) == Prediction(
        {"boxes": [list(map(float, BOX)), list(map(float, OTHER))], "scores": [0.25, 1.0]}
    )


def test_the_release_ignores_confidences() -> None:
    released, answer = Grounding(), json.dumps({"bboxes": [BOX, OTHER], "scores": [0.25, 1]})
    parsed = released.parse(answer, SIZE, PIXELS)
    assert isinstance(parsed, Prediction)
    assert "scores" not in parsed.value
    figures = released.aggregate([Scored(example(0, BOX), parsed)])
    assert figures["constant_scores"] is True


def test_the_confidence_of_an_entry_that_is_no_box_goes_with_it() -> None:
    answer = parsed({"bboxes": [BOX, "cup", OTHER], "scores": [0.1, 0.2, 0.3]})
    assert (answer.value["scores"], answer.dropped) == ([0.1, 0.3], 1)


@pytest.mark.parametrize(
    "scores", [[0.5], [0.5, 1.5], [-0.1, 0.5], [True, 0.5], ["0.5", 0.5], [None, 0.5], 0.5, None, {}, [[0.5], [0.5]]]
)
def test_confidences_that_cannot_be_used_are_dropped_and_the_boxes_kept(scores: object) -> None:
    answer = parsed({"bboxes": [BOX, OTHER], "scores": scores})
    assert answer == Prediction({"boxes": [list(map(float, BOX)), list(map(float, OTHER))]}, dropped=1)


def test_confidences_without_a_number_are_none() -> None:
    parsed = TASK.parse(f'{{"bboxes": [{BOX}], "scores": [NaN]}}', SIZE, PIXELS)
    assert parsed == Prediction({"boxes": [list(map(float, BOX))]}, dropped=1)


def test_an_answer_without_confidences_is_read_as_before() -> None:
    assert parsed({"bboxes": [BOX, "cup"]}) == Prediction({"boxes": [list(map(float, BOX))]}, dropped=1)
    assert parsed({"boxes": [BOX]}) == Prediction({"boxes": [list(map(float, BOX))]})


def cocoeval(reference: list[list[list[int]]], answers: list[list[tuple[list[int], float]]]) -> float:
    """Mean average precision of one category by pycocotools itself."""
    references = [
        {"id": 0, "image_id": i, "category_id": 1, "bbox": xywh(box), "area": 1.0, "iscrowd": 0}
        for i, boxes in enumerate(reference)
        for box in boxes
    ]
    for number, row in enumerate(references, start=1):
        row["id"] = number
    results = [
        {"image_id": i, "category_id": 1, "bbox": xywh(box), "score": score}
        for i, boxes in enumerate(answers)
        for box, score in boxes
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        images = [{"id": i} for i in range(len(reference))]
        coco.dataset = {"images": images, "annotations": references, "categories": [{"id": 1}]}
        coco.createIndex()
        run = COCOeval(coco, coco.loadRes(results), "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
    return float(run.stats[0])


def xywh(box: list[int]) -> list[int]:
    x0, y0, x1, y1 = box
    return [x0, y0, x1 - x0, y1 - y0]


def samples_of(reference: Any, answers: Any, *, scored: bool = True) -> list[Scored]:
    samples = []
    for number, (boxes, answered) in enumerate(zip(reference, answers, strict=True)):
        answer: dict[str, Any] = {"bboxes": [box for box, _ in answered]}
        if scored:
            answer["scores"] = [score for _, score in answered]
        samples.append(Scored(example(number, *boxes), parsed(answer)))
    return samples


@pytest.mark.parametrize("seed", range(8))
def test_mean_average_precision_ranks_by_confidence_as_pycocotools_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    reference, answers = [], []
    for _ in range(6):
        corners = rng.integers(0, 500, (2, 2))
        boxes = [[int(x), int(y), int(x) + 200, int(y) + 200] for x, y in corners]
        reference.append(boxes)
        moved = [[side + int(rng.integers(-30, 30)) for side in box] for box in boxes]
        answers.append([(box, round(float(rng.random()), 6)) for box in [*moved, *moved[:1]]])
    ours = TASK.aggregate(samples_of(reference, answers))
    assert ours["map"] == pytest.approx(cocoeval(reference, answers), abs=1e-6)
    assert ours["constant_scores"] is False


REFERENCE = [[BOX], [BOX], [BOX]]
RANKED = [[(OTHER, 0.1)], [(BOX, 0.9)], [(BOX, 0.8)]]
"""A wrong box first in order and last in confidence."""


def test_confidences_rank_boxes_over_all_images() -> None:
    with_scores = TASK.aggregate(samples_of(REFERENCE, RANKED))
    without = TASK.aggregate(samples_of(REFERENCE, RANKED, scored=False))
    assert with_scores["map"] == pytest.approx(cocoeval(REFERENCE, RANKED), abs=1e-6)
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
    assert TASK.aggregate([*samples, *empty])["map"] == pytest.approx(cocoeval(reference, [*RANKED, [], []]), abs=1e-6)


@pytest.mark.parametrize("times", [(1, 1, 1), (2, 0, 2)])
@pytest.mark.parametrize("draws", [1, 2])
def test_a_draw_weighs_samples_as_if_they_were_given_as_often(times: tuple[int, ...], draws: int) -> None:
    samples = samples_of(REFERENCE, RANKED)
    drawn = TASK.statistics(samples).figures(np.array([times] * draws, dtype=float))
    again = TASK.aggregate([sample for sample, count in zip(samples, times, strict=True) for _ in range(count)])
    assert all(drawn[name].tolist() == [again[name]] * draws for name in ("map", "map_50", "f1@50", "mean_best_iou"))
