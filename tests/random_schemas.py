"""Random JSON Schemas of the keywords that answers can be held to, by seed."""

import random
from collections.abc import Callable
from typing import Any

Schema = dict[str, Any]

_NAMES = ("a", "b", "cup", "left hand", 'quo"te', "ünïcode", "x_1", "")
_WORDS = ("yes", "no", "left of", "in\nfront", "Ü", "<think>", "</think>", 'say "hi"', "\\", "0")
_PATTERNS = ("^[a-c]{1,4}$", "^(left|right)$", "^[A-Z][a-z]*[0-9]$", "^\\d{2}:\\d{2}$")


def random_schema(seed: int) -> Schema:
    """An object or an array at the root, as answers are."""
    rng = random.Random(seed)
    schema = rng.choice((_object, _array))(rng, 3)
    if rng.random() < 0.2:
        schema["$defs"] = {"part": _leaf(rng, 0)}
        wrapped = {"type": "object", "properties": {"of": {"$ref": "#/$defs/part"}, "rest": {"type": "null"}}}
        return {**wrapped, "required": ["of"], "additionalProperties": False, "$defs": schema["$defs"]}
    return schema


def _any(rng: random.Random, depth: int) -> Schema:
    makers: tuple[Callable[[random.Random, int], Schema], ...] = (_leaf,) * 4
    if depth > 0:
        makers = (*makers, _object, _array, _union, _tuple)
    return rng.choice(makers)(rng, depth)


def _leaf(rng: random.Random, depth: int) -> Schema:
    low, high = sorted((rng.randint(-1000, 1000), rng.randint(-1000, 1000)))
    longest = rng.randint(1, 12)
    return rng.choice(
        [
            {"type": "boolean"},
            {"type": "null"},
            {"const": rng.choice((7, "left", None, True, [1, "a"], {"k": 0.5}))},
            {"enum": rng.sample(_WORDS, rng.randint(1, 5))},
            {"type": "integer", "enum": list(range(rng.randint(1, 11)))},
            {"type": "integer", "minimum": low, "maximum": high},
            {"type": "integer", "exclusiveMinimum": low - 1, "exclusiveMaximum": high + 1},
            {"type": "number", "minimum": low / 8, "maximum": high / 8},
            {"type": "string", "maxLength": longest},
            {"type": "string", "minLength": min(3, longest), "maxLength": longest},
            {"type": "string", "pattern": rng.choice(_PATTERNS)},
            {"type": "string", "format": rng.choice(("date", "time", "ipv4", "uuid"))},
            {"type": ["integer", "null"], "minimum": 0, "maximum": 99},
            {"type": "string"},
        ]
    )


def _object(rng: random.Random, depth: int) -> Schema:
    names = rng.sample(_NAMES, rng.randint(0, 4))
    schema: Schema = {
        "type": "object",
        "properties": {name: _any(rng, depth - 1) for name in names},
        "required": [name for name in names if rng.random() < 0.7],
        "additionalProperties": False,
    }
    return schema


def _array(rng: random.Random, depth: int) -> Schema:
    least = rng.randint(0, 2)
    return {"type": "array", "items": _any(rng, depth - 1), "minItems": least, "maxItems": least + rng.randint(0, 2)}


def _tuple(rng: random.Random, depth: int) -> Schema:
    entries = [_any(rng, depth - 1) for _ in range(rng.randint(1, 3))]
    return {"type": "array", "prefixItems": entries, "minItems": len(entries), "maxItems": len(entries)}


def _union(rng: random.Random, depth: int) -> Schema:
    return {"anyOf": [_any(rng, depth - 1) for _ in range(rng.randint(1, 3))]}
