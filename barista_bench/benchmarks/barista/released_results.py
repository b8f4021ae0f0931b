"""Results in the released harness's format: `task_result` of a record, and the scores of metrics.json.

docs/upstream/barista.md describes the rules. The tasks' `aggregate` computes the scores, which get the release's names
here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from barista_bench.benchmarks.barista.activity import Activity
from barista_bench.benchmarks.barista.grounding import Grounding
from barista_bench.benchmarks.barista.hand_object import HandObject
from barista_bench.benchmarks.barista.interactions import BoxedInteractions, map_boxes
from barista_bench.benchmarks.barista.referring import Referring
from barista_bench.benchmarks.barista.relations import Relations
from barista_bench.benchmarks.barista.temporal_vqa import TemporalVQA
from barista_bench.benchmarks.kinds.box_answers import frame_size, read_pixels, reference_scale
from barista_bench.core.boxes import BoxFormat, as_xyxy, write_box
from barista_bench.core.example import Example, Fields, Json, Prediction, Scored
from barista_bench.core.statistics import sum_in_order
from barista_bench.core.task import Task
from barista_bench.metrics.interaction_f1.scoring import frame_sums, pool
from barista_bench.metrics.mean_ap.accumulate import STATISTICS
from barista_bench.metrics.mean_ap.scoring import summarise
from barista_bench.metrics.tuple_f1.scoring import tuple_f1

PROVIDER_ERROR = "provider_error: "
CRITERIA: Mapping[str, tuple[str, ...]] = {"referring": ("correctness",), "temporal_vqa": ("accuracy", "completeness")}
"""The criteria that a judge scores in the release, by task, in the release's order."""


@dataclass(frozen=True, slots=True)
class ReleasedRecord:
    """The fields of a line of predictions.jsonl that are needed to compute scores.

    Args:
        result: the release's `task_result`, with the judge's keys if present; empty after a provider error.
        error: `provider_error: ...`, `parse_error: ...`, or None.
        latency_ms: None without an answer.
    """

    example: Example
    result: Mapping[str, Json]
    error: str | None
    latency_ms: float | None

    @property
    def is_answered(self) -> bool:
        """Return True if the model answered, even if the answer is unreadable."""
        return self.error is None or not self.error.startswith(PROVIDER_ERROR)


def task_result(task: Task, example: Example, prediction: Prediction | None, box_format: BoxFormat) -> dict[str, Json]:
    """Return the release's `task_result` of a parsed answer, or of an unreadable answer (None), without judge keys.

    Args:
        box_format: how the model wrote boxes. The result has boxes in this order, on the scale of the example's boxes.
    """
    match task:
        case Grounding():
            return _grounding_result(task, example, prediction, box_format)
        case HandObject():
            return _hand_object_result(task, example, prediction, box_format)
        case Relations():
            return _relations_result(task, example, prediction)
        case Activity():
            return _activity_result(example, prediction)
        case Referring():
            reference = example.target["reference"]
            answer = {"description": prediction.value["description"]} if prediction else {}
            return {**answer, "structured": reference, "reference_structured": reference}
        case TemporalVQA():
            answer = {"predicted_answer": prediction.value["answer"]} if prediction else {}
            question_fields = {"category": example.target["category"], "question": example.inputs["question"]}
            return {**answer, **question_fields, "reference_answer": example.target["answer"]}
    raise _no_released_task(task)


def _no_released_task(task: Task) -> TypeError:
    return TypeError(f"{task.benchmark}/{task.name} is not a task of the released harness")


def _grounding_result(
    task: Grounding, example: Example, prediction: Prediction | None, box_format: BoxFormat
) -> dict[str, Json]:
    predicted = cast("list[list[float]]", prediction.value["boxes"]) if prediction else []
    reference = cast("list[Json]", example.target["ground_truth_boxes"])
    width, height = frame_size(example.inputs)
    result: dict[str, Json] = {
        "_category": example.inputs["category"],
        "_frame_height": height,
        "_frame_width": width,
        "_gt_boxes": reference,
        "_pred_bbox_format": box_format.order,
        "gt_count": len(reference),
        "mean_best_iou": task.score(example, prediction)["mean_best_iou"],
        "pred_count": len(predicted),
    }
    if prediction is not None:
        scaled = [_released_box(box, example, box_format) for box in predicted]
        result["predicted_boxes"] = (
            prediction.value["written"] if _is_as_written(prediction, example, box_format) else scaled
        )
    return result


def _is_as_written(prediction: Prediction, example: Example, box_format: BoxFormat) -> bool:
    """Return True if the result can hold the boxes as the model wrote them.

    The release knows only the scale of the example's boxes.
    """
    return "written" in prediction.value and box_format.scale == reference_scale(example.target)


def _released_box(pixels: Sequence[float], example: Example, box_format: BoxFormat) -> list[int]:
    """Return a pixel box as integers in the model's order, on the scale of the example's boxes."""
    grid_format = BoxFormat(box_format.order, reference_scale(example.target))
    return [round(value) for value in write_box(as_xyxy(pixels), grid_format, *frame_size(example.inputs), exact=True)]


def _hand_object_result(
    task: HandObject, example: Example, prediction: Prediction | None, box_format: BoxFormat
) -> dict[str, Json]:
    frame = task.frame_score(example, prediction)
    metrics: dict[str, Json] = {
        "hand_ious": [pair.hand_iou for pair in frame.pairs],
        "hand_type_correct": sum(pair.hand_type_right for pair in frame.pairs),
        "has_gt": frame.n_reference > 0,
        "has_gt_but_zero_pred": frame.n_reference > 0 and frame.n_predicted == 0,
        "matched_gt": len(frame.pairs),
        "matched_pred": len(frame.pairs),
        "object_ious": [pair.object_iou for pair in frame.pairs],
        "total_gt": frame.n_reference,
        "total_pred": frame.n_predicted,
    }
    result: dict[str, Json] = {
        "_frame_metrics": metrics,
        "_pred_bbox_format": box_format.order,
        "num_gt_interactions": frame.n_reference,
        "num_pred_interactions": frame.n_predicted,
    }
    if prediction is not None:
        answered = BoxedInteractions.read(prediction.value).interactions
        scaled = [map_boxes(item, lambda box: _released_box(box, example, box_format)).write() for item in answered]
        written = prediction.value["written"] if _is_as_written(prediction, example, box_format) else scaled
        result["interactions"] = written
    return result


def _relations_result(task: Relations, example: Example, prediction: Prediction | None) -> dict[str, Json]:
    metrics = tuple_f1([prediction.value["relations"] if prediction else []], [example.target["relations"]])
    result: dict[str, Json] = {
        "f1": metrics["micro_f1"],
        "ground_truth_relations": example.target["relations"],
        "gt_count": metrics["n_reference"],
        "per_relation_type": _type_rows(metrics["per_relation_type"]),
        "precision": metrics["micro_precision"],
        "pred_count": metrics["n_predicted"],
        "recall": metrics["micro_recall"],
        "tp": metrics["tp"],
    }
    return result | ({"predicted_relations": prediction.value["relations"]} if prediction else {})


def _type_rows(groups: Mapping[str, Mapping[str, Json]]) -> dict[str, Json]:
    names = {"n_predicted": "pred_count", "support": "gt_count"}
    return {kind: {names.get(key, key): value for key, value in row.items()} for kind, row in groups.items()}


def _activity_result(example: Example, prediction: Prediction | None) -> dict[str, Json]:
    choices = cast("list[Fields]", example.inputs["choices"])
    reference = example.target["choice_id"]
    answer = {"parsed_choice_id": prediction.value["choice_id"]} if prediction else {}
    return {
        **answer,
        "choices": [{"choice_id": choice["choice_id"], "text": choice["text"]} for choice in choices],
        "correct_choice_id": reference,
        "is_correct": prediction.value["choice_id"] == reference if prediction else None,
    }


def common_metrics(records: Sequence[ReleasedRecord]) -> dict[str, Json]:
    """Return the keys of metrics.json that all tasks have, without the runner's keys (times, tokens, resuming)."""
    answer_count = sum(record.is_answered for record in records)
    parsed_count = sum(record.error is None for record in records)
    latencies = [record.latency_ms for record in records if record.latency_ms is not None]
    return {
        "examples_total": len(records),
        "skipped_existing": 0,
        "provider_successes": answer_count,
        "call_failures": len(records) - answer_count,
        "parse_failures": answer_count - parsed_count,
        "parsed_predictions": parsed_count,
        "latency_samples": len(latencies),
        "total_latency_ms": sum_in_order(latencies),
        "mean_latency_ms": _mean(latencies),
        "min_latency_ms": min(latencies, default=None),
        "max_latency_ms": max(latencies, default=None),
    }


def task_metrics(
    task: Task, records: Sequence[ReleasedRecord], criteria: Sequence[str] | None = None
) -> dict[str, Json]:
    """Return the task's keys of metrics.json. `records` are in the order of the run.

    Args:
        criteria: the judge's criteria by the release's names; None takes all criteria of the task.
    """
    match task:
        case Grounding():
            return _grounding_metrics(task, records)
        case HandObject():
            return _hand_object_metrics(task, records)
        case Relations():
            return _relations_metrics(task, records)
        case Activity():
            return _activity_metrics(task, records)
        case Referring() | TemporalVQA():
            names = CRITERIA[task.name] if criteria is None else criteria
            by_category = _category_metrics(records) if isinstance(task, TemporalVQA) else {}
            return {**_judge_metrics(records, names), **by_category}
    raise _no_released_task(task)


def _samples(task: Task, records: Sequence[ReleasedRecord]) -> list[Scored]:
    """Return the records that count, with their answers in the form of the task's metrics."""
    return [
        Scored(record.example, None if record.error is not None else _prediction(task, record))
        for record in records
        if record.is_answered or task.counts_provider_errors
    ]


def _prediction(task: Task, record: ReleasedRecord) -> Prediction:
    result, inputs = record.result, record.example.inputs

    def pixels(box: Sequence[float]) -> list[float]:
        boxes = BoxFormat.parse(f"{result['_pred_bbox_format']}/{reference_scale(record.example.target)}")
        return read_pixels(box, inputs, boxes)

    match task:
        case Grounding():
            return Prediction({"boxes": [pixels(box) for box in cast("list[list[float]]", result["predicted_boxes"])]})
        case HandObject():
            items = BoxedInteractions.read({"interactions": result["interactions"]}).interactions
            return Prediction({"interactions": [map_boxes(item, pixels).write() for item in items]})
        case Relations():
            return Prediction({"relations": result["predicted_relations"]})
        case _:
            return Prediction({"choice_id": result["parsed_choice_id"]})


def _grounding_metrics(task: Grounding, records: Sequence[ReleasedRecord]) -> dict[str, Json]:
    samples = _samples(task, records)
    if not samples:
        return {**dict.fromkeys(STATISTICS), "per_category": {}}
    metrics = summarise(task.statistics(samples).evaluation)
    per_category = {name: {"map": row["ap"], "mar_100": row["ar_100"]} for name, row in metrics["per_category"].items()}
    return {**{name: metrics[name] for name in STATISTICS}, "per_category": per_category}


def _hand_object_metrics(task: HandObject, records: Sequence[ReleasedRecord]) -> dict[str, Json]:
    frames = [task.frame_score(sample.example, sample.prediction) for sample in _samples(task, records)]
    sums = {str(name): value for name, value in frame_sums(frames).items()}
    metrics = pool(frames) if frames else {}
    return {
        "total_gt": int(sums["n_reference"]),
        "total_pred": int(sums["n_predicted"]),
        "matched_gt": int(sums["n_matched"]),
        "matched_pred": int(sums["n_matched"]),
        "hand_type_correct": int(sums["hand_type_accuracy"]),
        "frames_with_gt": int(sums.get("n_with_reference", 0)),
        "frames_with_gt_but_zero_pred": int(sums.get("n_undetected", 0)),
        "interaction_recall": metrics.get("recall", 0.0),
        "interaction_precision": metrics.get("precision", 0.0),
        "hand_iou": metrics.get("hand_iou"),
        "object_iou": metrics.get("object_iou"),
        "hand_type_accuracy": metrics.get("hand_type_accuracy"),
        "no_detection_rate": metrics.get("no_detection_rate") or 0.0,
    }


def _relations_metrics(task: Relations, records: Sequence[ReleasedRecord]) -> dict[str, Json]:
    samples = _samples(task, records)
    statistics = task.statistics(samples)
    metrics, scores = statistics.published_metrics(), statistics.scores()["f1"].tolist()
    parsed = [f1 for f1, sample in zip(scores, samples, strict=True) if sample.prediction is not None]
    total = sum_in_order(parsed)
    return {
        "micro_tp": metrics["tp"],
        "micro_pred": metrics["n_predicted"],
        "micro_gt": metrics["n_reference"],
        **{name: metrics[name] for name in ("micro_precision", "micro_recall", "micro_f1")},
        "sum_example_f1": total,
        "example_f1_count": len(parsed),
        "mean_example_f1": total / len(records),
        "per_relation_type": _type_rows(cast("Mapping[str, Mapping[str, Json]]", metrics["per_relation_type"])),
    }


def _activity_metrics(task: Activity, records: Sequence[ReleasedRecord]) -> dict[str, Json]:
    metrics = task.aggregate(_samples(task, records))
    per_label = {
        name: {
            "total": row["support"],
            "parsed": row["support"] - row["n_failed"],
            "correct": row["n_correct"],
            "accuracy": row["accuracy"],
        }
        for name, row in cast("Mapping[str, Mapping[str, float]]", metrics["per_class"]).items()
    }
    return {
        "correct_predictions": metrics["n_correct"],
        "accuracy": metrics["accuracy"],
        "accuracy_on_parsed": metrics.get("accuracy_on_parsed"),
        "per_label": per_label,
    }


def _judge_metrics(records: Sequence[ReleasedRecord], criteria: Sequence[str]) -> dict[str, Json]:
    names = [("geval_mean_score", "geval_mean_score", "mean_geval_score")]
    names += [(f"geval_{name}_score", f"geval_{name}", f"mean_geval_{name}") for name in criteria]
    metrics: dict[str, Json] = {}
    for key, prefix, mean in names:
        scores = _judge_scores(records, key)
        metrics |= {f"{prefix}_sum": sum_in_order(scores), f"{prefix}_count": len(scores), mean: _mean(scores)}
    return metrics


def _judge_scores(records: Sequence[ReleasedRecord], key: str) -> list[float]:
    """Return the judges' scores under one key for readable answers."""
    scores = [record.result.get(key) for record in records if record.error is None]
    return [score for score in scores if isinstance(score, int | float)]


def _category_metrics(records: Sequence[ReleasedRecord]) -> dict[str, Json]:
    by_category: dict[str, list[ReleasedRecord]] = defaultdict(list)
    for record in records:
        if _judge_scores([record], "geval_mean_score"):
            by_category[str(record.result["category"])].append(record)
    scores = {name: _judge_scores(group, "geval_mean_score") for name, group in by_category.items()}
    return {
        "category_mean_scores": {name: _mean(group) for name, group in scores.items()},
        "_category_scores": {
            name: {"score_sum": sum_in_order(group), "count": len(group)} for name, group in scores.items()
        },
    }


def _mean(values: Sequence[float]) -> float | None:
    return sum_in_order(values) / len(values) if values else None
