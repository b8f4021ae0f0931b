"""Released examples of the tasks that ask for objects: grounding, hand_object, referring. See `released_tasks.py`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from barista_bench.benchmarks.barista.box_answers import grid_pixels
from barista_bench.benchmarks.barista.grounding import Grounding
from barista_bench.benchmarks.barista.hand_object import HandObject
from barista_bench.benchmarks.barista.reference_text import with_article
from barista_bench.benchmarks.barista.referring import Referring
from barista_bench.benchmarks.barista.released_common import (
    check_grid,
    empty,
    frame_size,
    grid_box,
    make_example,
    optional_text,
)
from barista_bench.benchmarks.released import Record, ReleasedExample, ReleaseRoot
from barista_bench.boxes import GRID
from barista_bench.metrics.interaction_f1.inputs import HAND_TYPES
from barista_bench.task import Example, Fields, Json

_REFERENCE = ("reference", "reference_text", "reference_description", "structured_reference")


def grounding(line: ReleasedExample, root: ReleaseRoot) -> Example:
    data = line.data
    check_grid(data)
    names = ("ground_truth_boxes", "gt_boxes")
    boxes = [grid_box(box, f"{data.place}.{names[0]}[{i}]") for i, box in enumerate(data.items(*names))]
    if not boxes:
        raise data.wrong(names, "a list with a box in it")
    category = data.text("category")
    return make_example(
        Grounding,
        line,
        label=category,
        inputs={"phrase": data.text("phrase"), "category": category, **frame_size(line, root)},
        target={"ground_truth_boxes": cast("Json", boxes), "bbox_format": "xyxy", "bbox_scale": GRID},
        metadata={"category": category, "objects": len(boxes)},
        evidence={
            **empty("object_ids", "instance_rows", "relation_rows", "attribute_rows"),
            "described_object_id": "",
            "related_object_id": "",
        },
    )


def hand_object(line: ReleasedExample, root: ReleaseRoot) -> Example:
    data = line.data
    check_grid(data)
    listed = data.records("interactions", "ground_truth_interactions", "ground_truth", "gt_interactions")
    interactions = [_interaction(item) for item in listed]
    hand_types = sorted({str(item["hand_type"]) for item in interactions})
    return make_example(
        HandObject,
        line,
        label=line.label or " + ".join(hand_types),
        inputs=frame_size(line, root),
        target={"interactions": cast("Json", interactions), "bbox_format": "xyxy", "bbox_scale": GRID},
        metadata={"interactions": len(interactions), "hand_types": cast("Json", hand_types)},
        evidence={
            **empty("hand_ids", "instance_rows", "relation_rows"),
            "object_ids": [item["object_id"] for item in interactions],
        },
    )


def _interaction(item: Record) -> Fields:
    hand_type = item.text("hand_type")
    if hand_type not in HAND_TYPES:
        raise item.wrong(("hand_type",), f"one of {', '.join(HAND_TYPES)}")
    hands = [grid_box(box, f"{item.place}.hand_boxes[{i}]") for i, box in enumerate(item.items("hand_boxes"))]
    if not hands:
        raise item.wrong(("hand_boxes",), "a list with a box in it")
    return {
        "object_id": item.text("object_id") if item.find("object_id") else "",
        "category": optional_text(item, "category", "object_category", "object_label"),
        "hand_type": hand_type,
        "hand_boxes": cast("Json", hands),
        "object_box": cast("Json", grid_box(item.get("object_box"), f"{item.place}.object_box")),
    }


def referring(line: ReleasedExample, root: ReleaseRoot) -> Example:
    data = line.data
    check_grid(data)
    names = ("box", "bbox", "bounding_box", "object_box", "target_box", "ground_truth_box")
    grid = grid_box(data.get(*names), f"{data.place}.{(data.find(*names) or names)[0]}")
    reference = data.text(*data.among(_REFERENCE, ("ground_truth", "expected_output", "answer")))
    stated = _facts(reference)
    category = data.text("category", "object_category", "category_name") if not stated else stated[0]["text"]
    size = frame_size(line, root)
    x0, y0, x1, y1 = pixels = grid_pixels(grid, size)
    share = (x1 - x0) * (y1 - y0) / (cast("int", size["frame_width"]) * cast("int", size["frame_height"]))
    facts = stated or [{"kind": "object", "text": category}]
    return make_example(
        Referring,
        line,
        label=category,
        inputs={**size, "box": cast("Json", pixels), "grid_box": cast("Json", grid)},
        target={
            "category": category,
            "reference": reference,
            "sentence": _sentence(facts) if stated else reference,
            "facts": cast("Json", facts),
        },
        metadata={"box_share": share},
        evidence=empty("object_ids", "instance_rows", "attribute_rows", "relation_rows"),
    )


def _facts(reference: str) -> list[dict[str, str]]:
    """Category, attributes and relations of a structured reference (upstream.md 1.7); none of another text."""
    lines = dict(
        line.split(": ", 1) for line in reference.splitlines() if re.match(r"(Object|Attributes|Relations): ", line)
    )
    if "Object" not in lines:
        return []
    facts = [{"kind": "object", "text": lines["Object"].strip()}]
    for entry in filter(None, lines.get("Attributes", "").split(", ")):
        kind, _, value = entry.partition("=")
        facts.append({"kind": kind.strip(), "text": value.strip()})
    facts += [
        {"kind": "relation", "text": text.strip()} for text in filter(None, lines.get("Relations", "").split(", "))
    ]
    return facts


def _sentence(facts: Sequence[dict[str, str]]) -> str:
    """What the reference says of the object itself, as one sentence: `lexical_f1` compares with it."""
    values = [fact["text"] for fact in facts if fact["kind"] not in ("object", "relation") and fact["text"] != "skin"]
    noun = with_article(" ".join([*values, facts[0]["text"]]))
    relations = "; ".join(fact["text"] for fact in facts if fact["kind"] == "relation")
    return f"{noun[0].upper()}{noun[1:]}{f': {relations}' if relations else ''}."
