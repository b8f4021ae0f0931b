"""Describe the format of an annotation file for people and programs: the JSON Schema, and the keys of records."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from barista_bench.scene_graph.release import ReleaseFile

SCHEMA_FILE = "graph.schema.json"
"""The name of the schema file beside this module. A test compares the file with `graph_schema()`."""
_SEGMENTATION = {
    "description": "A COCO mask of the frame's size: run lengths, compressed or as numbers, or polygons in pixels.",
    "anyOf": [
        {
            "type": "object",
            "properties": {
                "size": {"description": "[height, width]", "type": "array", "items": {"type": "integer"}},
                "counts": {
                    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer", "minimum": 0}}]
                },
            },
            "required": ["size", "counts"],
        },
        {"description": "[[x0, y0, x1, y1, ...]]", "type": "array", "items": {"type": "array"}},
    ],
}


def record_schema(record: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON Schema of a record, with the first lines of docstrings as descriptions.

    Only first lines are used, since Python 3.13 changes the indentation of all other lines.
    """
    schema = msgspec.json.schema(record)
    for part in (schema, *schema.get("$defs", {}).values()):
        if "description" in part:
            part["description"] = part["description"].partition("\n")[0]
    return schema


def graph_schema() -> dict[str, Any]:
    """Return the JSON Schema of `coco_annotation.json`, which is made from the record types that reading decodes."""
    schema = record_schema(ReleaseFile)
    schema["$defs"]["ReleaseAnnotation"]["properties"]["segmentation"] = _SEGMENTATION
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def schema_path() -> Path:
    """Return the path of the JSON Schema in this installation."""
    return Path(str(resources.files("barista_bench.scene_graph").joinpath(SCHEMA_FILE)))


@cache
def expected_shape(record: type[msgspec.Struct]) -> str:
    """Return the keys of a record with the types of the values. `?` marks optional keys.

    >>> from barista_bench.scene_graph.release import ReleaseRange
    >>> expected_shape(ReleaseRange)
    '{"image_id_start": integer, "image_id_end": integer}'
    """
    return _shape(inspect.type_info(record))


def _shape(kind: inspect.Type) -> str:
    match kind:
        case inspect.Metadata(type=inner):
            return _shape(inner)
        case inspect.StructType(fields=fields):
            keys = (f'"{field.encode_name}"{"" if field.required else "?"}: {_shape(field.type)}' for field in fields)
            return f"{{{', '.join(keys)}}}"
        case inspect.ListType(item_type=item):
            return f"[{_shape(item)}, ...]"
        case inspect.TupleType(item_types=items):
            return f"[{', '.join(map(_shape, items))}]"
        case inspect.DictType(key_type=key, value_type=value):
            return f"{{{_shape(key)}: {_shape(value)}}}"
        case inspect.LiteralType(values=values):
            return " or ".join(f'"{value}"' for value in values)
        case inspect.UnionType(types=types):
            names = [_shape(item) for item in types]
            return " or ".join(name for name in names if not (name == "integer" and "number" in names))
        case inspect.StrType():
            return "text"
        case inspect.IntType():
            return "integer"
        case inspect.FloatType():
            return "number"
        case inspect.NoneType():
            return "null"
        case _:  # `segmentation`, the only value that is not decoded with its record
            return "COCO mask"
