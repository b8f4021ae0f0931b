"""Constrains answers to a JSON Schema during generation: the supported schemas, and the grammar of each.

llguidance reads the grammar, both in this process for transformers and inside vLLM as its backend. Unlike xgrammar and
outlines-core, llguidance reports unsupported keywords as errors and does not ignore them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from barista_bench.errors import require_extra

Schema = Mapping[str, object]

# At most one space follows commas and colons, and no other white space is allowed. Without this limit, a confused model
# could write white space until it has no tokens left.
_SEPARATORS = {"whitespace_flexible": False, "item_separator": ", ?", "key_separator": ": ?"}
_AFTER_THOUGHT = r"/[ \n]{0,2}/"
_NAMED_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_VALUE_KEYWORDS = frozenset({"enum", "const", "default", "examples"})


def require_llguidance(purpose: str) -> None:
    """Raise ModelError, with the install command, if the library that constrains answers is missing."""
    require_extra(purpose, "llguidance", extra="run")


def answer_grammar(schema: Schema, thought: tuple[str, str] | None = None, *, opens_thinking: bool = False) -> str:
    """Return the grammar of one answer in llguidance's Lark: an optional thought, then one JSON value.

    Args:
        schema: the answer's schema. It restricts answers, so it is not `{}`.
        thought: the opening and the closing tag in Lark syntax. A tag is a text (JSON) or the number of a special token
            in the vocabulary (`<[5]>`). None if the model has no tags.
        opens_thinking: the prompt has opened the thought, so it must be closed first.
    """
    value = json.dumps({**schema, "x-guidance": _SEPARATORS})
    if thought is None:
        return f"start: / ?/ answer\nanswer: %json {value}\n"
    opening, closing = thought
    if closing.startswith("<"):  # the tag is a special token, which no text can imitate
        thought_end = f"thought {closing} {_AFTER_THOUGHT}"
        rule = "thought: /(?s:.*)/"
    else:
        thought_end = f"thought {_AFTER_THOUGHT}"
        rule = f"thought[suffix={closing}]: /(?s:.*)/"
    start = f"{thought_end} answer" if opens_thinking else f"({opening} {thought_end})? / ?/ answer"
    return f"start: {start}\n{rule}\nanswer: %json {value}\n"


def complaint(schema: Schema | None) -> str:
    """Return why answers cannot follow a schema, with the faulty part; the text is empty if they can.

    >>> complaint({"type": "object", "properties": {"boxes": {"type": "array", "uniqueItems": True}}})
    'properties/boxes: Unimplemented keys: ["uniqueItems"]'
    """
    if not schema or not (refusal := _refusal(schema)):
        return ""
    path: list[str] = []
    part: Schema = schema
    definitions = {name: schema[name] for name in ("$defs", "definitions") if name in schema}
    while inner := next((one for one in _inner_schemas(part) if _refusal({**definitions, **one[1]}) == refusal), None):
        path += inner[0]
        part = inner[1]
    return f"{'/'.join(path) or 'the schema itself'}: {refusal}"


def _refusal(schema: Schema) -> str:
    """Return llguidance's complaint about an unsupported schema, on one line; the text is empty if it is supported."""
    from llguidance import LLMatcher

    try:
        is_wrong, refusal = LLMatcher.validate_grammar_with_warnings(LLMatcher.grammar_from_json_schema(dict(schema)))
    except (TypeError, ValueError, RecursionError) as error:  # the complaint was not JSON
        return str(error)
    return " ".join(refusal[0].split()) if is_wrong else ""


def _inner_schemas(schema: Schema) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """Yield the schemas directly inside a schema, each with the keys that lead to it."""
    for key, value in schema.items():
        if key in _VALUE_KEYWORDS:
            continue
        if isinstance(value, Mapping):
            if key not in _NAMED_SCHEMAS:
                yield [key], dict(value)
                continue
            yield from (([key, name], dict(part)) for name, part in value.items() if isinstance(part, Mapping))
        elif isinstance(value, Sequence) and not isinstance(value, str):
            yield from (([key, str(n)], dict(part)) for n, part in enumerate(value) if isinstance(part, Mapping))
