"""Phrase grounding: how answers are read and scored (docs/upstream/barista.md)."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from barista_bench.benchmarks.barista.grounding import Grounding
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example, ParseError, Prediction, Scored
from tests.answering import on_frame, read
from tests.benchmarks.grounding_kit import CUP2, GRID, TASK, color, derive, derived, scene
from tests.releases import BUTTON, CUP, MACHINE, relation, write_release

SIZE: dict[str, Any] = {"frame_width": 2000, "frame_height": 500}


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    root = write_release(tmp_path_factory.mktemp("grounding"), video=False)
    return on_frame(derive(root), 12)["coffee cup"]


# On a frame of 2000 x 500, [x0, y0, x1, y1] on the grid are [2 x0, y0 / 2, 2 x1, y1 / 2] in pixels.
ONE, ONE_PX = "[10, 20, 30, 40]", [20.0, 10.0, 60.0, 20.0]
TWO, TWO_PX = "[100, 200, 300, 400]", [200.0, 100.0, 600.0, 200.0]


@pytest.mark.parametrize(
    ("answer", "boxes", "dropped"),
    [
        (f'{{"bboxes": [{ONE}]}}', [ONE_PX], 0),
        (f'{{"bboxes": [{ONE}, {TWO}], "why": "x"}}', [ONE_PX, TWO_PX], 0),
        ('{"bboxes": []}', [], 0),
        (f'{{"boxes": [{ONE}]}}', [ONE_PX], 0),
        (f'{{"bboxes": [{ONE}], "boxes": [{TWO}]}}', [ONE_PX], 0),
        (f'  ```json\n{{"bboxes": [{ONE}]}}\n``` done [1, 2, 3, 4]', [ONE_PX], 0),
        (f'```\n{{"bboxes": [{ONE}]}}\n```', [ONE_PX], 0),
        ('{"bboxes": [[10, 20, 30, 40, 0.9]]}', [ONE_PX], 0),
        ('{"bboxes": [[10.4, 19.6, 30.2, 39.9]]}', [ONE_PX], 0),
        (f'{{"bboxes": [{ONE}, [1, 2, 3], "1, 2, 3, 4", {{}}, null]}}', [ONE_PX], 4),
        ('{"bboxes": [[1, 2, true, false], [1, 2, 3, "4"], [1, 2, 3, null]]}', [[2.0, 1.0, 2.0, 0.0]], 2),
        ('{"bboxes": [[1, 2, 3, 1e20]]}', [[2.0, 1.0, 6.0, 5e19]], 0),
        # One number that is none gives the whole list up: four digits in a row count, and there signs are lost.
        (f'{{"bboxes": [[1, 2, 3, NaN], [-1, 2, 3, 4], {ONE}]}}', [[2.0, 1.0, 6.0, 2.0], ONE_PX], 0),
        # A tag that a blank or a carriage return follows opens no fence.
        (f'[5, 6, 7, 8] ```json \n{{"bboxes": [{ONE}]}}\n```', [[10.0, 3.0, 14.0, 4.0], ONE_PX], 0),
        ('```json\r\n{"bboxes": [[1.5, 2, 3, 4]]}\n```', [[10.0, 1.0, 6.0, 2.0]], 0),
        ("12.5, 30, 40, 50 and ١, ٢, ٣, ٤", [[10.0, 15.0, 80.0, 25.0], [2.0, 1.0, 6.0, 2.0]], 0),
        # No object with a list: every run of four integers in the text.
        *((text, [ONE_PX, TWO_PX], 0) for text in (f"[{ONE}, {TWO}]", f"It is at {ONE}, and the other one at {TWO}.")),
        *((text, [ONE_PX], 0) for text in (ONE, "x: 10,20,30 , 40", "-10, 20, 30, 40", f'Here: {{"bboxes": [{ONE}]}}')),
        *((text, [ONE_PX], 0) for text in (f'{{"bboxes": [{ONE}, [100, 200, 3', f'```json\n{{"bboxes": [{ONE}')),
        *((text, [ONE_PX], 0) for text in (f'{{"bboxes": {{"a": {ONE}}}}}', f'{{"box": {ONE}}}')),
        ("1, 2, 10, 20, 30, 40, 50, 60", [[2.0, 1.0, 20.0, 10.0], [60.0, 20.0, 100.0, 30.0]], 0),
        # Degenerate and inverted boxes stay.
        ('{"bboxes": [[30, 40, 10, 20]]}', [[60.0, 20.0, 20.0, 10.0]], 0),
    ],
)
def test_answers_are_read_as_released(answer: str, boxes: list[list[float]], dropped: int) -> None:
    parsed = read(TASK, answer, SIZE)
    assert (parsed.value["boxes"], parsed.dropped) == ([pytest.approx(box) for box in boxes], dropped)


@pytest.mark.parametrize(
    ("answer", "boxes", "dropped"),
    [
        (f'```json \n{{"bboxes": [{ONE}]}}\n```', [ONE_PX], 0),
        (f'{{"bboxes": [{ONE}, [1, 2, 3, true], [1, 2, 3, NaN], [1, 2, 3, 1e99], [1, 2, 3, Infinity]]}}', [ONE_PX], 4),
        ("-10, 20, 30, 40", [[-20.0, 10.0, 60.0, 20.0]], 0),
        (f"1, 2, 3, 4.5 {ONE}", [ONE_PX], 0),
    ],
)
def test_the_papers_protocol_reads_signs_and_drops_single_entries(
    answer: str, boxes: list[list[float]], dropped: int
) -> None:
    assert Grounding(options={"protocol": "paper"}).parse(answer, SIZE, GRID) == Prediction({"boxes": boxes}, dropped)


def test_the_models_written_boxes_are_kept_beside_the_pixels() -> None:
    parsed = read(TASK, {"bboxes": [[10.4, 19.6, -3, 12345678901]]}, SIZE, BoxFormat("yxyx", 1000))
    assert parsed.value["written"] == [[10, 20, -3, 12345678901]]


def test_true_boxes_are_on_the_scale_of_the_example(example: Example) -> None:
    grid = cast("list[list[int]]", example.target["ground_truth_boxes"])
    coarse = replace(
        example,
        target={
            **example.target,
            "bbox_scale": 100,
            "ground_truth_boxes": [[round(side / 10) for side in box] for box in grid],
        },
    )
    for boxes in (BoxFormat("xyxy", 100), GRID):
        parsed = read(TASK, TASK.reference_answer(coarse, boxes), coarse, boxes)
        assert TASK.score(coarse, parsed)["mean_best_iou"] == pytest.approx(1)
        assert TASK.aggregate([Scored(coarse, parsed)])["map"] == 1.0


@pytest.mark.parametrize(
    "answer",
    ["", "no box", "{}", "[]", "null", "[1, 2, 3]", "[0.1, 0.2, 0.3, 0.4]", "1, 2, 3",
     '{"bboxes": null}', '{"bboxes": [[1, 2, 3, Infinity]]}', '{"bboxes": [[1, 2, 3, 1e99]]}',
     "9" * 400 + ", 1, 2, 3", '{"bboxes": [[1, 2, 3, -1e400], [1, 2, 3, 4]]}', '```json\n\n```',
     "1" * 900_000, "[" * 100_000, "9" * 5_000 + ", 1, 2, 3", '{"bboxes": [[1, 2, ' + "9" * 5_000],
)  # fmt: skip
def test_an_answer_without_boxes_is_a_parse_error(answer: str) -> None:
    assert isinstance(TASK.parse(answer, SIZE, GRID), ParseError)


@pytest.mark.parametrize(
    ("box_format", "answer"),
    [
        (BoxFormat("yxyx", 1000), "[20, 10, 40, 30]"),
        (BoxFormat("yxyx", 1), "at [0.02, 0.01, 0.04, 0.03]"),
        (BoxFormat("xyxy", None), "[20, 10, 60, 20]"),
    ],
)
def test_numbers_in_prose_follow_the_box_format_of_the_model(box_format: BoxFormat, answer: str) -> None:
    assert read(TASK, answer, SIZE, box_format).value["boxes"] == [pytest.approx(ONE_PX)]


def test_a_failed_answer_counts_as_empty(example: Example) -> None:
    full = read(TASK, TASK.reference_answer(example, GRID), example)
    result = TASK.aggregate([Scored(example, full), Scored(example, None)])
    assert (result["n"], result["n_failed"], result["coverage"]) == (2, 1, 0.5)
    assert result["mar_100"] == result["mean_best_iou"] == 0.5
    assert TASK.score(example, None) == {"mean_best_iou": 0.0}


def test_metrics_without_a_reference_are_left_out(example: Example) -> None:
    result = TASK.aggregate([Scored(example, None)])
    # The cup is 20 x 20 pixels: small; the scene has no medium and large objects.
    assert {name for name in result if name.startswith("map_")} == {"map_50", "map_75", "map_small"}
    assert isinstance(result["map"], float)
    assert result["per_category"]["coffee cup"]["support"] == 1
    json.dumps(result, allow_nan=False)


def test_an_explanation_names_hits_misses_and_wrong_answers(tmp_path: Path) -> None:
    content = scene(
        attributes=[color(CUP, "red"), color(CUP2, "red")],
        relations=[relation(BUTTON, MACHINE, "position", "part of", (0, 40))],
    )
    cup = on_frame(derived(tmp_path, content), 3)["coffee cup"]
    explanation = TASK.explain(cup, Prediction({"boxes": [[50, 30, 70, 48], [0, 0, 5, 5]]}))
    assert [(row.kind, row.text) for row in explanation.rows] == [
        ("hit", "red coffee cup at [50, 30, 70, 50]: IoU 0.90 with [50, 30, 70, 48]"),
        ("miss", "red coffee cup at [10, 40, 26, 48]: best IoU 0.00"),
        ("wrong", "box [0, 0, 5, 5]: best IoU 0.00"),
    ]
    assert [row.kind for row in TASK.explain(cup, None).rows] == ["miss", "miss"]
