"""What a task makes of answers that a test writes for its examples, and of its prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.task import Example, Prediction, Scored, Task


def answer_all(
    task: Task, examples: Iterable[Example], answer: Callable[[Example], str], box_format: BoxFormat | None = None
) -> dict[str, Any]:
    """The figures of these answers; one that the task cannot read counts as none."""
    box_format = box_format or BoxFormat()
    samples = []
    for example in examples:
        parsed = task.parse(answer(example), example.inputs, box_format)
        samples.append(Scored(example, parsed if isinstance(parsed, Prediction) else None))
    return dict(task.aggregate(samples))


def interaction_entry(
    hands: object = ((1, 2, 3, 4),), target: object = (10, 20, 30, 40), kind: object = "left"
) -> dict[str, Any]:
    """One entry of an answer about hands and objects."""
    return {"hand_boxes": hands, "object_box": target, "hand_type": kind}
