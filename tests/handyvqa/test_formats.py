"""Outputs of other harnesses: recorded answers, and masks as run lengths or pictures."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from barista_bench.benchmarks.handyvqa import RvosObjects, RvosParts
from barista_bench.benchmarks.handyvqa.recorded_answers import read_mask_outputs, read_outputs, read_png
from barista_bench.core.example import FrameRef
from barista_bench.errors import DataError
from tests.handyvqa.made import metrics_of, record, rectangle, rle, target, write_lines

FIRST, LAST = rectangle(10, 10, 40, 30), rectangle(50, 20, 80, 60)


def said(output: object, **changes: Any) -> dict[str, Any]:
    return record(inference={"prompt": "p", "output": output}, **changes)


def test_one_file_an_item_in_category_folders(tmp_path: Path) -> None:
    for name, output in (("action_0002", "(B) a red cup"), ("action_0010", "(A) a white cup"), ("state_0001", "B")):
        folder = tmp_path / "some-model" / name.split("_")[0]
        folder.mkdir(parents=True, exist_ok=True)
        content = {key: value for key, value in said(output).items() if key != "id"}
        (folder / f"{name}.json").write_text(json.dumps(content))
    action, state = read_outputs(tmp_path / "some-model")
    assert (action.model, action.task.name, state.task.name) == ("some-model", "action", "state")
    assert [answer.example_id for answer in action.answers] == ["action_0002", "action_0010"]
    assert metrics_of(action)["accuracy"] == 0.5
    assert metrics_of(state)["coverage"] == 0.0
    assert action.examples[0].frames == (FrameRef("action_0002_frames", 0),), "named, and never read"
    assert {answer.repetition for answer in (*action.answers, *state.answers)} == {0}


def test_one_file_of_lines(tmp_path: Path) -> None:
    lines = [
        said("(B) x\n(C) y", id="o1", category="objects", correct_idx=[1, 2]),
        said("(A)", id="p1", category="parts", correct_idx=[0]),
    ]
    path = write_lines(tmp_path / "model-x.jsonl", lines)
    parts, objects = read_outputs(path)
    assert parts.model == "model-x"
    assert metrics_of(parts)["accuracy"] == metrics_of(objects)["average_precision"] == 1.0


def test_scores_of_objects_go_before_the_text(tmp_path: Path) -> None:
    scores = [0.1, 0.2, 0.9, 0.0, -0.5]
    inside = record("a", inference={"output": "(A)", "inferred_scores": scores}, correct_idx=[2])
    beside = record("b", inferred_scores=scores, correct_idx=[2])
    short = record("c", inferred_scores=scores[:4])
    path = write_lines(tmp_path / "objects.jsonl", [inside, beside, short])
    (recorded,) = read_outputs(path)
    assert metrics_of(recorded)["average_precision"] == 1.0
    errors = {answer.example_id: answer.error for answer in recorded.answers}
    assert errors["a"] is errors["b"] is None
    assert "4 inferred_scores for 5 options" in str(errors["c"])
    assert {answer.repetition for answer in recorded.answers} == {0}


def test_an_empty_output_is_unanswered_and_an_absent_one_is_no_sample(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "action.jsonl", [said("", id="a"), said(None, id="b"), record("c"), said("(B)", id="d")]
    )
    (recorded,) = read_outputs(path)
    by_id = {answer.example_id: answer for answer in recorded.answers}
    assert by_id["a"].text == ""
    assert [by_id[name].text for name in "bc"] == [None, None]
    assert "no inference.output" in str(by_id["b"].error)
    metrics = metrics_of(recorded)
    assert (metrics["n"], metrics["coverage"], metrics["accuracy"]) == (2, 0.5, 1.0)


@pytest.mark.parametrize(
    "bad",
    [
        said("(A)", id="b", correct_idx=[]),
        {"question": "?"},
        said(3, id="b"),
        said("(A)", id="../b"),
        {**said("(A)", id="b"), "inferred_scores": ["x"]},
    ],
)
def test_a_record_that_cannot_be_used_costs_itself_and_is_named(tmp_path: Path, bad: dict[str, Any]) -> None:
    (recorded,) = read_outputs(write_lines(tmp_path / "action.jsonl", [said("(B)", id="a"), bad]))
    assert [example.example_id for example in recorded.examples] == ["a"]
    (problem,) = recorded.problems
    assert str(problem).startswith("error: action.jsonl: line 2")
    with pytest.raises(DataError, match=r"1 records cannot be used, and no other, first: error: action.jsonl: line 1"):
        read_outputs(write_lines(tmp_path / "bad" / "action.jsonl", [bad]))


def segmented(name: str = "o1", **changes: Any) -> dict[str, Any]:
    annotated = [{"frame": 7, "targets": [target(1, LAST)]}, {"frame": 3, "targets": [target(1, FIRST)]}]
    return record(name, annotated=annotated) | changes


def picture(folder: Path, frame: int, mask: np.ndarray[Any, Any], mode: str = "L") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    Image.fromarray(mask.astype(np.uint8) * 255).convert(mode).save(folder / f"{frame}.png")


def test_the_records_hold_run_lengths(tmp_path: Path) -> None:
    masks = [{"frame": 3, "rle": rle(FIRST)}, {"frame": 7, "rle": rle(LAST)}, {"frame": 5, "rle": rle(LAST)}]
    write_lines(tmp_path / "rvos_objects.jsonl", [segmented(inference={"masks": masks})])
    (recorded,) = read_mask_outputs(tmp_path)
    assert recorded.task is RvosObjects
    assert [frame.frame_index for frame in recorded.examples[0].frames] == [3, 7]
    assert metrics_of(recorded)["J_and_F"] == 1.0


@pytest.mark.parametrize("folder", ["o1", "rvos_parts/o1"])
@pytest.mark.parametrize("mode", ["L", "1", "P", "RGB", "RGBA"])
def test_each_record_has_a_folder_of_pictures(tmp_path: Path, folder: str, mode: str) -> None:
    write_lines(tmp_path / "rvos_parts.jsonl", [segmented()])
    picture(tmp_path / folder, 3, FIRST, mode)
    picture(tmp_path / folder, 7, LAST, mode)
    picture(tmp_path / folder, 8, LAST, mode)  # not annotated
    (recorded,) = read_mask_outputs(tmp_path)
    assert recorded.task is RvosParts
    assert metrics_of(recorded)["J_and_F"] == 1.0


def test_an_absent_picture_is_an_empty_mask_and_an_absent_folder_no_sample(tmp_path: Path) -> None:
    write_lines(tmp_path / "rvos_objects.jsonl", [segmented("o1"), segmented("o2")])
    picture(tmp_path / "o1", 3, FIRST)
    (recorded,) = read_mask_outputs(tmp_path)
    metrics = metrics_of(recorded)
    assert (metrics["J"], metrics["n"], metrics["frame_coverage"]) == (0.5, 1, 0.5)
    assert "no inference.masks and no folder of pictures" in str(recorded.answers[1].error)
    assert [answer.repetition for answer in recorded.answers] == [0, 0]
    picture(tmp_path / "o1", 7, LAST[:-1])
    (recorded,) = read_mask_outputs(tmp_path)
    assert metrics_of(recorded)["J"] == 0.5, "a picture of another size scores nothing"


def test_a_damaged_picture_and_one_outside_of_the_folder_cost_their_samples_and_are_named(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_lines(root / "rvos_objects.jsonl", [segmented("o1"), segmented("o2")])
    picture(tmp_path / "outside", 3, FIRST)
    for name in ("o1", "o2"):
        (root / name).mkdir()
    (root / "o1/3.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    (root / "o2/3.png").symlink_to(tmp_path / "outside/3.png")
    (recorded,) = read_mask_outputs(root)
    damaged, outside = recorded.answers
    assert "3.png: is not a picture" in str(damaged.error)
    assert "leads outside" in str(outside.error)
    assert damaged.text is outside.text is None


def test_a_picture_that_claims_a_huge_size_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    Image.new("1", (9000, 8)).save(tmp_path / "3.png")
    with pytest.raises(DataError, match=r"3\.png"):
        read_png(tmp_path / "3.png")


def test_an_annotated_second_needs_the_video_and_is_refused(tmp_path: Path) -> None:
    annotated = [{"second": 1.0, "targets": [target(1, FIRST)]}]
    write_lines(tmp_path / "rvos_objects.jsonl", [segmented(annotated=annotated)])
    with pytest.raises(DataError, match="o1: an annotated frame is named by its second"):
        read_mask_outputs(tmp_path)
