"""An item as the columns of an example, and back: what stands in `datasets` rows and frozen files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, cast

from barista_bench.benchmarks.egocot.items import (
    Item,
    ItemEvidence,
    TargetObject,
    TimedBox,
    TimedRelation,
)
from barista_bench.core.task import Example, Fields

if TYPE_CHECKING:
    from datasets import Features


class Choice(TypedDict):
    """`choice_id` is the letter."""

    choice_id: str
    text: str


def features() -> Features:
    """`datasets` features of `inputs`, `target`, `metadata` and `evidence`. `answer` is null where it is hidden."""
    from datasets import Features, List, Value

    text, number = Value("string"), Value("float64")
    box = {"object_id": text, "time": number, "box": List(number, length=4)}
    return Features(
        {
            "inputs": {
                "question": text,
                "choices": List({"choice_id": text, "text": text}),
                "times": List(number),
            },
            "target": {"answer": text, "reasoning": List(text)},
            "metadata": {
                **dict.fromkeys(("split", "group", "subtask", "source"), text),
                **dict.fromkeys(("frame_count", "width", "height"), Value("int64")),
                **dict.fromkeys(("fps", "seconds"), number),
            },
            "evidence": {
                "object_ids": List(text),
                "objects": List({"object_id": text, "label": text}),
                "timestamps": List(number),
                "focus_times": List(number),
                "boxes": List(box),
                "focused_boxes": List(box),
                "relations": List(
                    {
                        **dict.fromkeys(("subject", "predicate", "object"), text),
                        **dict.fromkeys(("start", "end"), number),
                    }
                ),
            },
        }
    )


def inputs_of(item: Item, times: Sequence[float]) -> Fields:
    choices = [{"choice_id": label, "text": text} for label, text in item.choices.items()]
    return {"question": item.question, "choices": choices, "times": list(times)}


def evidence_columns(evidence: ItemEvidence) -> Fields:
    return {
        "object_ids": list(dict.fromkeys(target.object_id for target in evidence.objects if target.object_id)),
        "objects": [target._asdict() for target in evidence.objects],
        "timestamps": list(evidence.timestamps),
        "focus_times": list(evidence.focus_times),
        "boxes": [_box_columns(box) for box in evidence.boxes],
        "focused_boxes": [_box_columns(box) for box in evidence.focused_boxes],
        "relations": [relation._asdict() for relation in evidence.relations],
    }


def _box_columns(box: TimedBox) -> Fields:
    return {"object_id": box.object_id, "time": box.time, "box": list(box.box)}


def choices_of(inputs: Fields) -> dict[str, str]:
    """Letter -> text, in the order asked."""
    return {choice["choice_id"]: choice["text"] for choice in cast("list[Choice]", inputs["choices"])}


def evidence_of(example: Example) -> ItemEvidence:
    """The annotations that an example carries."""
    # Columns have been checked against their features when the set was opened.
    found = cast("Mapping[str, Any]", example.evidence)
    return ItemEvidence(
        objects=tuple(TargetObject(**row) for row in found["objects"]),
        timestamps=tuple(found["timestamps"]),
        focus_times=tuple(found["focus_times"]),
        boxes=tuple(_box(row) for row in found["boxes"]),
        focused_boxes=tuple(_box(row) for row in found["focused_boxes"]),
        relations=tuple(TimedRelation(**row) for row in found["relations"]),
    )


def _box(row: Mapping[str, Any]) -> TimedBox:
    x0, y0, x1, y1 = row["box"]
    return TimedBox(row["object_id"], row["time"], (x0, y0, x1, y1))


def answer_of(example: Example) -> str | None:
    """The letter of the right choice; None where it is hidden."""
    answer = example.target.get("answer")
    return str(answer) if answer is not None else None
