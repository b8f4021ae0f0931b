"""Records and items of the tests' own."""

import json
from pathlib import Path
from typing import Any

from barista_bench.benchmarks.egocot.items import DatedRelation, ItemEvidence, TargetObject, TimedBox

CHOICES = {"A": "right hand", "B": "left hand", "C": "elbow", "D": "nose"}


def record(qid: str = "q1", **changes: Any) -> dict[str, Any]:
    """A sample in the schema of the page; None as a value leaves a key out."""
    content: dict[str, Any] = {
        "qid": qid,
        "media_id": "clip_1",
        "source": "media/clip_1.mp4",
        "big_category_en": "Egocentric Grounding & Perception",
        "sub_category_en": "Active Object Grounding",
        "question": "At 2.0 seconds, which body part holds the white kettle?",
        "choices": dict(CHOICES),
        "answer": "B",
        "reasoning": {"step1": "At 00:02.00 the left hand is on the kettle.", "step2": "So it is the left hand."},
        "evidence": {
            "target_objects": [{"distinct_id": 4, "label": "left hand"}],
            "timestamps": ["00:02.00", "00:04.00"],
            "bboxes": [{"distinct_id": 4, "time": "00:02.00", "bbox": [10, 60, 50, 100]}],
            "relations": [
                {
                    "subject_name": "left hand",
                    "predicate": "near",
                    "object_name": "tray",
                    "time": ["00:02.00", "00:02.50"],
                }
            ],
            "focus_times": ["00:02.00"],
            "focused_bboxes": [{"distinct_id": 4, "time": "00:02.00", "bbox": [10, 60, 50, 100]}],
        },
    }
    content.update(changes)
    return {name: value for name, value in content.items() if value is not None}


def write(root: Path, name: str, content: object) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    path = root / name
    if name.endswith(".jsonl") and isinstance(content, list):
        path.write_text("".join(json.dumps(entry) + "\n" for entry in content), encoding="utf-8")
    else:
        path.write_text(json.dumps(content), encoding="utf-8")
    return path


def kettle_evidence() -> ItemEvidence:
    """A left hand that holds a kettle at 2 to 3 s, over a tray, while the right hand rests on a table."""
    box = TimedBox("2", 2.0, [10, 60, 40, 90])
    return ItemEvidence(
        object_ids=["1", "2"],
        objects=[TargetObject("1", "left hand"), TargetObject("2", "white kettle")],
        timestamps=[2.0, 3.0],
        boxes=[box],
        relations=[
            DatedRelation("left hand", "holding", "white kettle", 2.0, 3.0),
            DatedRelation("white kettle", "on", "tray", 0.0, 2.0),
            DatedRelation("right hand", "touching", "table", 1.0, 8.0),
        ],
        focus_times=[2.0],
        focused_boxes=[box],
    )
