"""Read JSON from model answers, within bounds: an answer is untrusted text of any form.

`refuse_unbounded` and `released_array` serve the released rules of BARISTA (`read_released` of its tasks). An unbounded
number or too deep nesting would stop the release's run; here the answer is unreadable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import ParamSpec, TypeGuard

from barista_bench.core.example import Fields, Json, ParseError, Prediction
from barista_bench.files.reading import json_value

MAX_ANSWER = 1_000_000
"""Maximum number of characters of an answer that are examined."""
MAX_STARTS = 2_000
"""Maximum number of brackets at which decoding is tried. It suffices for honest answers and bounds the work for hostile
ones.
"""
MAX_WASTED = 2_000_000
"""Maximum number of characters of an answer that are read in vain or again, over all brackets.

Nested brackets are read once per level.
"""
MAX_ENTRIES = 1_000
"""Default limit of entries read from one list."""
_WINDOW = 50_000
NOTHING_READ = ParseError("none of its entries can be read")
"""The error of an answer with only unreadable entries. Such an answer is not the same as an empty answer."""

_FENCE = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)
_RELEASED_FENCE = re.compile(r"```\w*\n(.*?)```", re.DOTALL)
_DECODER = json.JSONDecoder()
_Args = ParamSpec("_Args")


def strip_fence(text: str, *, plain_tag: bool = False) -> str:
    """Return the body of the first fenced block, or else the text, without white space around it.

    With `plain_tag`, as in BARISTA's release, a fence counts only if its first line ends directly after a tag.

    >>> strip_fence("Here you are: ```json\\n[1]\\n``` Bye."), strip_fence("```json \\n[1]\\n```", plain_tag=True)
    ('[1]', '```json \\n[1]\\n```')
    """
    body = (_RELEASED_FENCE if plain_tag else _FENCE).search(text[:MAX_ANSWER])
    return (body[1] if body else text[:MAX_ANSWER]).strip()


def refuse_unbounded(read: Callable[_Args, Prediction | ParseError]) -> Callable[_Args, Prediction | ParseError]:
    """Make a reader return a `ParseError` if a number or the nesting exceeds Python's limits."""

    @wraps(read)
    def reader(*args: _Args.args, **kwargs: _Args.kwargs) -> Prediction | ParseError:
        try:
            return read(*args, **kwargs)
        except (OverflowError, RecursionError):
            return ParseError("the answer holds a number, or nesting, without bounds")

    return reader


def released_array(body: str) -> list[object] | None:
    """Return the body as a JSON list; None for anything else."""
    try:
        value = json.loads(body)
    except ValueError:
        return None
    return value if isinstance(value, list) else None


def json_arrays(text: str, *, nested: bool = False) -> Iterator[list[object]]:
    """Yield every JSON array in the text, from left to right, within the bounds above. With `nested`, yield inner
    arrays too.

    >>> list(json_arrays('so [1, [2]] and [3')), list(json_arrays('so [1, [2]]', nested=True))
    ([[1, [2]]], [[1, [2]], [2]])
    """
    return (value for value in _json_values(text, "[", nested) if isinstance(value, list))


def last_array(text: str, fits: Callable[[list[object]], bool]) -> list[object] | None:
    """Return the last fitting JSON array in the text.

    An empty array is common in prose, so it is returned only if no other array fits.

    >>> last_array("First []. Then [1], or rather [2]. No more: []", lambda array: len(array) < 2)
    [2]
    """
    last = None
    for array in json_arrays(text):
        if fits(array) and (array or last is None):
            last = array
    return last


def whole_array(text: str) -> list[object] | None:
    """Return the complete text as one JSON array; None if the text is anything else.

    >>> whole_array("[1, 2]"), whole_array("so [1]")
    ([1, 2], None)
    """
    value = json_value(text)
    return value if isinstance(value, list) else None


def json_objects(text: str) -> Iterator[dict[str, object]]:
    """Yield every JSON object in the text, in the same way as `json_arrays`.

    >>> list(json_objects('so {"a": {"b": 1}} and {"c": '))
    [{'a': {'b': 1}}]
    """
    return (value for value in _json_values(text, "{") if isinstance(value, dict))


def _json_values(text: str, bracket: str, nested: bool = False) -> Iterator[object]:
    """Yield every value that starts with this bracket. Without `nested`, skip values inside other such values."""
    text = text[:MAX_ANSWER]
    position, wasted = text.find(bracket), 0
    for _ in range(MAX_STARTS):
        if position < 0 or wasted > MAX_WASTED:
            return
        if position > _WINDOW:  # each error message counts all lines before the error
            text, position = text[position:], 0
        try:
            value, end = _DECODER.raw_decode(text, position)
        except RecursionError:
            wasted += len(text) - position
            end = position + MAX_STARTS  # deeper than any answer, and the next bracket is as deep
        except ValueError as error:
            wasted += _read_until(error, text) - position
            end = position + 1
        else:
            yield value
            if nested:  # the content is read again
                wasted, end = wasted + end - position, position + 1
        position = text.find(bracket, end)


def _read_until(error: ValueError, text: str) -> int:
    """Return the offset that the decoder reached. If it is unknown or a string has no end, return the end of
    the text.
    """
    if isinstance(error, json.JSONDecodeError) and not error.msg.startswith("Unterminated string"):
        return error.pos
    return len(text)


def is_text(value: object) -> TypeGuard[str]:
    """Return True for text that can be written. JSON can spell lone surrogates, which have no UTF-8 form.

    >>> is_text("on"), is_text(1), is_text("\\ud83d")
    (True, False, False)
    """
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


def integer(value: object) -> int | None:
    """Return a JSON number or a string of digits as an int; None for other values, including booleans.

    >>> integer("12"), integer(3.0), integer(3.5), integer(True)
    (12, 3, None, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 20:
        return int(value)
    return None


def rows_schema(row: Sequence[Json]) -> Fields:
    """Return the JSON Schema of a list of rows. Each row is a list with one value per schema in `row`."""
    items: Fields = {"type": "array", "prefixItems": row, "minItems": len(row), "maxItems": len(row)}
    return {"type": "array", "items": items}
