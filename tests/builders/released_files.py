"""Our examples as the release would have frozen them (upstream.md 1.3, 1.5 to 1.10): written from that page, not from
the reader that is tested with them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from barista_bench.task import Example

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
        return {"interactions": [{key: item[key] for key in keys} for item in target["interactions"]], **size, **GRID}
    if example.task == "referring":
        question = "Describe the object inside bounding box {box} "
        return {"question": question, "bbox": inputs["grid_box"], "reference": target["reference"], **size, **GRID}
    if example.task == "activity":
        choices = [{"choice_id": choice["choice_id"], "text": choice["text"]} for choice in inputs["choices"]]
        return {"choices": choices, "correct_choice_id": target["choice_id"]}
    if example.task == "relations":
        objects = [{"display_id": item["mark"], "category": item["category"]} for item in inputs["objects"]]
        vocabulary = {entry["relation_type"]: entry["values"] for entry in inputs["vocabulary"]}
        return {"objects": objects, "relations": target["relations"], "allowed_relations": vocabulary}
    return {"question": inputs["question"], "answer": target["answer"], "category": target["category"]}


def released_record(example: Example, data: dict[str, Any] | None = None) -> dict[str, Any]:
    """`mp4_path` is what a harness on another machine would have written, and hostile on top."""
    return {
        "example_id": example.example_id,
        "task_name": UPSTREAM_NAMES[example.task],
        "label": example.label,
        "frames": [
            {"video_id": f.video_id, "frame_index": f.frame_index, "mp4_path": "../../../etc/passwd"}
            for f in example.frames
        ],
        "metadata": {"activity_display_name": "Brew coffee"},
        "task_data": task_data(example) if data is None else data,
    }


def write_records(path: Path, records: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record, sort_keys=True) + "\n" for record in records), encoding="utf-8")
    return path
