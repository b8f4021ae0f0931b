"""Results under the release's names: the fields of a task result, and the samples that the figures of a run count."""

from typing import Any

import pytest

from barista_bench.benchmarks import get_task, task_names
from barista_bench.benchmarks.barista.released_results import ReleasedRecord, common_metrics, task_metrics, task_result
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example, FrameRef, Prediction, Scored
from barista_bench.core.task import Task

UNREAD, FAILED = "parse_error: could not parse response", "provider_error: RuntimeError: 503"
SIZE = {"frame_width": 400, "frame_height": 200}
ON: dict[str, Any] = {"source_id": 1, "target_id": 2, "relation_type": "Position", "value": "on"}
HELD: dict[str, Any] = {"hand_boxes": [[0, 0, 20, 20]], "object_box": [10, 10, 60, 60], "hand_type": "left"}
CHOICES = [{"choice_id": name, "class_id": name, "text": f"Do {name}", "verb": "Do"} for name in "ABCD"]
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "grounding": (
        {"phrase": "cup", "category": "cup", **SIZE},
        {"ground_truth_boxes": [[10, 10, 60, 60]], "bbox_scale": 100},
        '{"bboxes": [[10, 10, 60, 60]]}',
    ),
    "hand_object": (
        {**SIZE},
        {"interactions": [{**HELD, "object_id": "o", "category": "cup"}], "bbox_scale": 100},
        '[{"hand_boxes": [[0, 0, 20, 20]], "object_box": [10, 10, 60, 60], "hand_type": "left"}]',
    ),
    "relations": (
        {"objects": []},
        {"relations": [ON]},
        '[{"source_id": 1, "target_id": 2, "relation_type": "position", "value": "on"}]',
    ),
    "activity": ({"choices": CHOICES}, {"choice_id": "B", "class_id": "B"}, "ANSWER: B"),
    "referring": ({}, {"reference": "Object: cup", "category": "cup"}, "Description: a cup"),
    "temporal_vqa": (
        {"question": "What?"},
        {"answer": "The lid opens.", "category": "state_change"},
        "Answer: it opens",
    ),
}
BOXES = BoxFormat("yxyx", 100)


def example(name: str) -> Example:
    inputs, target, _ = CASES[name]
    return Example("e", "barista", name, "Do B", (FrameRef("v", 0),), inputs, target)


def result(name: str, box_format: BoxFormat = BOXES, answer: str | None = None) -> dict[str, Any]:
    task = get_task("barista", name)
    prediction = task.parse(CASES[name][2] if answer is None else answer, CASES[name][0], box_format)
    assert isinstance(prediction, Prediction)
    return task_result(task, example(name), prediction, box_format)


def run(name: str, *errors: str | None, judged: dict[str, Any] | None = None) -> tuple[Task, list[ReleasedRecord]]:
    """One record an entry: right answer (None), unread answer, or no answer."""
    task, unread = get_task("barista", name), task_result(get_task("barista", name), example(name), None, BOXES)
    results = {None: {**result(name), **(judged or {})}, UNREAD: unread, FAILED: {}}
    return task, [
        ReleasedRecord(example(name), results[error], error, None if error == FAILED else 10.0 + number)
        for number, error in enumerate(errors)
    ]


def test_a_result_of_boxes_holds_them_as_written_in_the_models_order() -> None:
    metrics = result("grounding")
    assert metrics == {
        "_category": "cup",
        "_frame_height": 200,
        "_frame_width": 400,
        "_gt_boxes": [[10, 10, 60, 60]],
        "_pred_bbox_format": "yxyx",
        "gt_count": 1,
        "mean_best_iou": 1.0,
        "pred_count": 1,
        "predicted_boxes": [[10, 10, 60, 60]],
    }


@pytest.mark.parametrize(
    ("box_format", "answer"),
    [
        (BoxFormat("yxyx", 1000), '{"bboxes": [[100, 104, 600, 600]]}'),
        (BoxFormat("yxyx", 1), '{"bboxes": [[0.1, 0.104, 0.6, 0.6]]}'),
        (BoxFormat("yxyx", None), '{"bboxes": [[20, 41, 120, 240]]}'),
    ],
)
def test_boxes_of_another_scale_are_given_on_the_examples_own(box_format: BoxFormat, answer: str) -> None:
    assert result("grounding", box_format, answer)["predicted_boxes"] == [[10, 10, 60, 60]]


@pytest.mark.parametrize(
    ("name", "answer_keys"),
    [
        ("grounding", {"predicted_boxes"}),
        ("hand_object", {"interactions"}),
        ("relations", {"predicted_relations"}),
        ("activity", {"parsed_choice_id"}),
        ("referring", {"description"}),
        ("temporal_vqa", {"predicted_answer"}),
    ],
)
def test_a_result_of_an_unread_answer_lacks_only_the_answer(name: str, answer_keys: set[str]) -> None:
    unread = task_result(get_task("barista", name), example(name), None, BOXES)
    assert result(name).keys() - unread.keys() == answer_keys
    assert unread.keys() <= result(name).keys()


def test_metrics_by_type_have_the_type_without_case_and_count_only_answered_frames() -> None:
    by_type = {"position": {"tp": 1, "pred_count": 1, "gt_count": 1, "precision": 1.0, "recall": 1.0, "f1": 1.0}}
    assert result("relations")["per_relation_type"] == by_type
    assert task_metrics(*run("relations", None, UNREAD, FAILED))["per_relation_type"] == by_type


def test_common_metrics_tell_unread_answers_from_missing_ones() -> None:
    _, records = run("relations", None, UNREAD, FAILED, None)
    assert common_metrics(records) == {
        "examples_total": 4,
        "skipped_existing": 0,
        "provider_successes": 3,
        "call_failures": 1,
        "parse_failures": 1,
        "parsed_predictions": 2,
        "latency_samples": 3,
        "total_latency_ms": 34.0,
        "mean_latency_ms": 34.0 / 3,
        "min_latency_ms": 10.0,
        "max_latency_ms": 13.0,
    }
    _, records = run("relations", FAILED)
    metrics = common_metrics(records)
    assert (metrics["total_latency_ms"], metrics["mean_latency_ms"], metrics["max_latency_ms"]) == (0.0, None, None)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "grounding",
            {"mar_100": 0.5, "map_small": -1.0, "per_category": {"cup": {"map": 0.504950523, "mar_100": 0.5}}},
        ),
        (
            "hand_object",
            {"total_gt": 2, "total_pred": 1, "matched_gt": 1, "frames_with_gt": 2, "frames_with_gt_but_zero_pred": 1,
             "interaction_recall": 0.5, "interaction_precision": 1.0, "no_detection_rate": 0.5, "hand_iou": 1.0},
        ),
        (
            "relations",
            {"micro_gt": 3, "micro_tp": 1, "micro_recall": 1 / 3, "sum_example_f1": 1.0, "example_f1_count": 1,
             "mean_example_f1": 1 / 3},
        ),
        (
            "activity",
            {"accuracy": 1 / 3, "accuracy_on_parsed": 1.0, "correct_predictions": 1,
             "per_label": {"Do B": {"total": 3, "parsed": 1, "correct": 1, "accuracy": 1 / 3}}},
        ),
    ],
)  # fmt: skip
def test_unread_and_failed_answers_lower_the_released_metrics_as_expected(name: str, expected: dict[str, Any]) -> None:
    metrics = task_metrics(*run(name, None, UNREAD, FAILED))
    assert {key: metrics[key] for key in expected} == _about(expected)


def _about(values: dict[str, Any]) -> dict[str, Any]:
    return {key: _about(value) if isinstance(value, dict) else pytest.approx(value) for key, value in values.items()}


def test_a_run_without_any_answer_has_no_metrics_of_boxes() -> None:
    grounding = task_metrics(*run("grounding", FAILED, FAILED))
    assert grounding.pop("per_category") == {}
    assert set(grounding.values()) == {None}
    assert len(grounding) == 12
    metrics = task_metrics(*run("hand_object", FAILED))
    assert {name for name, value in metrics.items() if value is None} == {
        "hand_iou",
        "object_iou",
        "hand_type_accuracy",
    }
    assert {value for value in metrics.values() if value is not None} == {0}


def test_judged_metrics_are_means_of_the_scores_that_there_are() -> None:
    judged = {"geval_accuracy_score": 0.25, "geval_completeness_score": None, "geval_mean_score": 0.25}
    task, records = run("temporal_vqa", None, None, FAILED, judged=judged)
    metrics = task_metrics(task, records)
    assert (metrics["mean_geval_accuracy"], metrics["geval_accuracy_count"]) == (0.25, 2)
    assert (metrics["mean_geval_completeness"], metrics["geval_completeness_sum"]) == (None, 0.0)
    assert metrics["_category_scores"] == {"state_change": {"score_sum": 0.5, "count": 2}}
    assert metrics["category_mean_scores"] == {"state_change": 0.25}
    assert "geval_completeness_sum" not in task_metrics(task, records, ["accuracy"])
    unjudged = task_metrics(*run("referring", None, UNREAD), criteria=[])
    assert unjudged == {"geval_mean_score_sum": 0.0, "geval_mean_score_count": 0, "mean_geval_score": None}


@pytest.mark.parametrize("name", ["grounding", "hand_object", "relations", "activity"])
def test_metrics_of_a_run_equal_the_tasks_own(name: str) -> None:
    task, records = run(name, None, UNREAD, None)
    answer = task.parse(CASES[name][2], CASES[name][0], BOXES)
    assert isinstance(answer, Prediction)
    ours = task.aggregate([Scored(example(name), given) for given in (answer, None, answer)])
    metrics = task_metrics(task, records)
    renamed = {"interaction_recall": "recall", "interaction_precision": "precision"}
    same = {key for key in metrics if isinstance(metrics[key], float) and renamed.get(key, key) in ours}
    assert len(same) >= 2
    assert {key: metrics[key] for key in same} == {key: ours[renamed.get(key, key)] for key in same}


def test_tasks_of_other_benchmarks_are_refused() -> None:
    other = get_task("vista", task_names("vista")[0])
    with pytest.raises(TypeError, match=r"is not a task of the released harness"):
        task_metrics(other, [])
