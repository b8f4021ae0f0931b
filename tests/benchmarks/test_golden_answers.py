"""Answers, figures of examples and figures of runs against the released BARISTA code's values for the same answers."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from barista_bench.benchmarks import get_task
from barista_bench.benchmarks.barista.released_results import ReleasedRecord, common_metrics, task_metrics, task_result
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example, FrameRef, ParseError, Prediction
from barista_bench.core.task import Task
from tests.conftest import Compared

CONFIGS = {
    "grounding": ("grounding", "default"),
    "activity_mcq": ("activity", "default"),
    "hand_object": ("hand_object", "caps_a"),
    "relation_extraction": ("relations", "caps_a"),
    "referring": ("referring", "caps_a"),
    "visual_qa": ("temporal_vqa", "caps_b"),
}
"""Released name -> our name, and the frozen examples that the answers are about."""
OF_THE_TRUTH = {"_gt_boxes", "ground_truth_relations", "choices", "structured", "reference_structured"}
OF_THE_QUESTION = {"question", "reference_answer"}


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def example(name: str, line: dict[str, Any]) -> Example:
    """A frozen line as an example with all that answers are read and scored by."""
    data = line["task_data"]
    inputs: dict[str, Any] = {
        key: data[key] for key in ("frame_width", "frame_height", "phrase", "category", "question") if key in data
    }
    target: dict[str, Any] = {"bbox_scale": data.get("bbox_scale", 1000)}
    match name:
        case "grounding":
            target["ground_truth_boxes"] = data["ground_truth_boxes"]
        case "hand_object":
            target["interactions"] = [{**item, "category": ""} for item in data["ground_truth"]]
        case "relation_extraction":
            target["relations"] = data["ground_truth_relations"]
            inputs["objects"] = []
        case "activity_mcq":
            inputs["choices"] = [{**choice, "class_id": "", "verb": choice["text"]} for choice in data["choices"]]
            target |= {"choice_id": data["correct_choice_id"], "class_id": ""}
        case "referring":
            target |= {"reference": data["structured"], "category": data["metadata"]["category"]}
        case _:
            target |= {"answer": data["reference_answer"], "category": data["category"]}
    frames = tuple(FrameRef(frame["video_id"], frame["frame_index"]) for frame in line["frames"])
    return Example(line["example_id"], "barista", CONFIGS[name][0], line["label"], frames, inputs, target)


class Answers:
    """The answers of one task, and the release's scores of them."""

    def __init__(self, golden: Path, name: str) -> None:
        ours, config = CONFIGS[name]
        self.task: Task = get_task("barista", ours)
        self.examples = {
            line["example_id"]: example(name, line) for line in lines(golden / "frozen" / config / f"{name}.jsonl")
        }
        self.rows = list(lines(golden / "answers" / f"{name}.jsonl"))
        self.metrics = json.loads((golden / "answers" / f"{name}.metrics.json").read_text(encoding="utf-8"))

    def parsed(self, row: dict[str, Any]) -> Prediction | ParseError:
        return self.task.parse(row["raw_text"], self.example(row).inputs, self.boxes(row))

    def example(self, row: dict[str, Any]) -> Example:
        return self.examples[row["example_id"]]

    @staticmethod
    def boxes(row: dict[str, Any]) -> BoxFormat:
        return BoxFormat(row.get("order") or "xyxy", 1000)

    def result(self, row: dict[str, Any]) -> dict[str, Any]:
        parsed = self.parsed(row)
        prediction = parsed if isinstance(parsed, Prediction) else None
        return task_result(self.task, self.example(row), prediction, self.boxes(row))


@pytest.fixture(scope="module", params=CONFIGS)
def answers(request: pytest.FixtureRequest, golden: Path) -> Answers:
    return Answers(golden, request.param)


def asked(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if not (row["error"] or "").startswith("provider_error")]


def test_every_answer_is_read_as_released(answers: Answers, compared: Compared) -> None:
    rows = asked(answers.rows)
    for row in rows:
        assert isinstance(answers.parsed(row), Prediction) == (row["error"] is None), row["raw_text"]
        result = answers.result(row)
        for key, value in row.get("parsed", {}).items():
            assert result[key] == value, row["raw_text"]
    assert len(rows) > 300
    compared(answers.task.name, "answers read", len(rows))


@pytest.mark.full
def test_the_metrics_of_every_example_are_the_released_ones(answers: Answers, compared: Compared) -> None:
    for row in asked(answers.rows):
        if not (row["error"] or "").startswith("raises"):
            compared(answers.task.name, "answers scored, every score", 1)
            expected = {key: value for key, value in row["figures"].items() if not key.startswith("geval_")}
            kept = answers.result(row).keys() - OF_THE_TRUTH - OF_THE_QUESTION - row.get("parsed", {}).keys()
            assert {key: answers.result(row)[key] for key in kept} == expected, row["raw_text"]


def records(answers: Answers, rows: Sequence[dict[str, Any]]) -> list[ReleasedRecord]:
    """With the judge's keys, which a stub made, and the latencies of the pack."""
    made = []
    for number, row in enumerate(rows):
        judged = {key: value for key, value in row.get("figures", {}).items() if key.startswith("geval_")}
        failed = (row["error"] or "").startswith("provider_error")
        result = {} if failed else {**answers.result(row), **judged}
        made.append(ReleasedRecord(answers.example(row), result, row["error"], None if failed else 10.0 + number))
    return made


def test_the_metrics_of_every_run_are_the_released_ones(answers: Answers, compared: Compared) -> None:
    assert len(answers.metrics) >= 10
    for name, expected in answers.metrics.items():
        run = records(answers, [row for row in answers.rows if row["set"] == name])
        metrics = {**common_metrics(run), **task_metrics(answers.task, run, expected["geval_criteria"])}
        assert metrics == expected["metrics"], name
        compared(answers.task.name, "runs' metrics.json, every key to the last digit", 1)
