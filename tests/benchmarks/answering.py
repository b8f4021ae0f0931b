"""What a task makes of answers that a test writes for its examples, and of its prompts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.task import Example, Prediction, Scored, Task


def answer_all(
    task: Task, examples: Iterable[Example], answer: Callable[[Example], str], boxes: BoxFormat | None = None
) -> dict[str, Any]:
    """The figures of these answers; one that the task cannot read counts as none."""
    boxes = boxes or BoxFormat()
    samples = []
    for example in examples:
        parsed = task.parse(answer(example), example.inputs, boxes)
        samples.append(Scored(example, parsed if isinstance(parsed, Prediction) else None))
    return dict(task.aggregate(samples))


def assert_on_file(name: str, rendered: str) -> None:
    """Hold a rendered prompt against `snapshots/<name>.txt`; with UPDATE_SNAPSHOTS=1 it is written instead."""
    file = Path(__file__).parent / "snapshots" / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS") == "1":
        file.write_text(rendered, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == rendered, "set UPDATE_SNAPSHOTS=1 and raise the versions if meant"


def interaction_entry(
    hands: object = ((1, 2, 3, 4),), target: object = (10, 20, 30, 40), kind: object = "left"
) -> dict[str, Any]:
    """One entry of an answer about hands and objects."""
    return {"hand_boxes": hands, "object_box": target, "hand_type": kind}
