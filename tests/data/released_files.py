"""Our examples as the release freezes them (docs/upstream/barista.md): written from the rules, not from the writer or
the reader that are tested with them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from barista_bench.core.example import Example

UPSTREAM_NAMES = {
    "grounding": "grounding",
    "hand_object": "hand_object",
    "referring": "referring",
    "activity": "activity_mcq",
    "relations": "relation_extraction",
    "temporal_vqa": "visual_qa",
}
GRID = {"bbox_format": "xyxy", "bbox_scale": 1000}


def task_data(example: Example) -> dict[str, Any]:
    inputs: Any = example.inputs
    target: Any = example.target
    size = {name: inputs[name] for name in ("frame_width", "frame_height") if name in inputs}
    if example.task == "grounding":
        wanted = ("phrase", "category")
        return {**{k: inputs[k] for k in wanted}, "ground_truth_boxes": target["ground_truth_boxes"], **size, **GRID}
    if example.task == "hand_object":
        keys = ("object_id", "hand_boxes", "object_box", "hand_type")
        return {"ground_truth": [{key: item[key] for key in keys} for item in target["interactions"]], **size, **GRID}
    if example.task == "referring":
        described = {
            "category": target["category"],
            "bbox_xywh": inputs["bbox_xywh"],
            "object_id": example.evidence["object_ids"][0],  # type: ignore[index,call-overload]
            "attributes": target["attributes"],
            "relations": target["relations"],
        }
        question = "Which object is in {box}?"
        return {"metadata": described, "structured": target["reference"], "question": question}
    if example.task == "activity":
        choices = [{"choice_id": choice["choice_id"], "text": choice["text"]} for choice in inputs["choices"]]
        return {"choices": choices, "correct_choice_id": target["choice_id"], "question": "What is done?"}
    if example.task == "relations":
        lines = [f"  {item['mark']}: {item['category']}" for item in inputs["objects"]]
        return {"object_id_category_lines": lines, "ground_truth_relations": target["relations"]}
    return {
        "question": inputs["question"],
        "reference_answer": target["answer"],
        "num_frames": len(example.frames),
        "category": target["category"],
    }


def metadata(example: Example) -> dict[str, Any]:
    ours: Any = example.metadata
    target: Any = example.target
    frames = [frame.frame_index for frame in example.frames]
    if example.task == "activity":
        return {
            "activity_class_id": target["class_id"],
            "activity_index": ours["activity_index"],
            "segment_frame_start": ours["segment_start"],
            "segment_frame_end": ours["segment_end"],
            "segment_num_frames": ours["segment_frames"],
            "selected_frame_indices": frames,
            "video_id": example.video_id,
        }
    if example.task == "temporal_vqa":
        kept = {key: ours[key] for key in ("clip_index", "qa_index", "original_frame_indices")}
        return {**kept, "selected_frame_indices": frames, "category": target["category"], "video_id": example.video_id}
    return {"video_id": example.video_id, "frame_index": frames[0]}


def released_record(example: Example, data: dict[str, Any] | None = None) -> dict[str, Any]:
    """`mp4_path` is a path of a harness on another machine, and hostile too."""
    return {
        "example_id": example.example_id,
        "task_name": UPSTREAM_NAMES[example.task],
        "label": example.label,
        "frames": [
            {"video_id": f.video_id, "frame_index": f.frame_index, "mp4_path": "../../../etc/passwd"}
            for f in example.frames
        ],
        "metadata": metadata(example),
        "task_data": task_data(example) if data is None else data,
    }


def write_records(path: Path, records: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record, sort_keys=True) + "\n" for record in records), encoding="utf-8")
    return path
