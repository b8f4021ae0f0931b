"""JSON Schemas of the answers that prompts ask for, for models that can be held to one.

A schema is of one example: it names the marks and the vocabulary of its question, and bounds coordinates by what any
box format can need for its frame. It allows nothing that the task's parser would drop or refuse.
"""

from __future__ import annotations

from barista_bench.benchmarks.barista.box_answers import frame_size
from barista_bench.benchmarks.barista.marked_relations import RelationInputs
from barista_bench.core.prompt import GRID
from barista_bench.core.task import Fields, Json
from barista_bench.metrics.interaction_f1.inputs import HAND_TYPES


def grounding_schema(inputs: Fields) -> Fields:
    """An object with the list `bboxes`."""
    return _object({"bboxes": {"type": "array", "items": _box(inputs)}})


def interactions_schema(inputs: Fields) -> Fields:
    """An array of objects with `hand_boxes` (one at least), `object_box` and `hand_type`."""
    box = _box(inputs)
    hands: Fields = {"type": "array", "items": box, "minItems": 1}
    kind: Fields = {"type": "string", "enum": sorted(HAND_TYPES)}
    return {"type": "array", "items": _object({"hand_boxes": hands, "object_box": box, "hand_type": kind})}


def relations_schema(inputs: Fields) -> Fields:
    """An array of objects with the four fields; marks and (type, value) pairs are those of the question."""
    asked = RelationInputs.read(inputs)
    if not asked.objects or not asked.vocabulary:
        return {"type": "array", "maxItems": 0}  # nothing could be answered
    mark: Fields = {"type": "integer", "enum": [item.mark for item in asked.objects]}
    kinds: list[Json] = [
        _object(
            {
                "source_id": mark,
                "target_id": mark,
                "relation_type": {"type": "string", "const": entry.relation_type},
                "value": {"type": "string", "enum": entry.values},
            }
        )
        for entry in asked.vocabulary
    ]
    return {"type": "array", "items": {"anyOf": kinds}}


def _box(inputs: Fields) -> Fields:
    number: Fields = {"type": "number", "minimum": 0, "maximum": max(GRID, *frame_size(inputs))}
    return {"type": "array", "items": number, "minItems": 4, "maxItems": 4}


def _object(properties: Fields) -> Fields:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
