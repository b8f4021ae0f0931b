"""Read JSON from model answers, within bounds: an answer is untrusted text of any form.

`refuse_unbounded` and `released_array` serve the released rules of BARISTA (`read_released` of its tasks). An unbounded
number or too deep nesting would stop the release's run; here the answer is unreadable.

`cut_array` and `cut_object` read truncated answers: exactly the entries that were complete. `json_repair` closes the
brackets that the truncation left open. By itself, it also completes half an entry with a guess, reads text that was
never JSON, and takes quadratic time on some input. So it gets little text, and its result is checked. First, pydantic's
parser checks that the text is JSON so far. This parser overlooks missing commas, which are checked here. Then the
standard library reads the complete entries, and only the remaining skeleton is repaired.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeGuard

from json_repair import repair_json
from pydantic_core import from_json

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

MAX_REPAIRED = 4_000
"""Maximum number of characters to repair. An entry is far shorter, and complete entries are taken out before."""

_FENCE = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)
_RELEASED_FENCE = re.compile(r"```\w*\n(.*?)```", re.DOTALL)
_THINKING, _THOUGHT = "<think>", "</think>"
_OPEN_FENCE = re.compile(r"\A[^`\[{]*```[^\n`]*\n")
_ARRAY_OF_OBJECTS = re.compile(r"\[\s*\{")
_SPACE = re.compile(r"[ \t\r\n]*")
_COMMA = re.compile(r"[ \t\r\n]*,[ \t\r\n]*")
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


@dataclass(frozen=True, slots=True)
class CutList:
    """Entries that were complete when the answer broke off. `unfinished` is 1 if it broke off inside another entry."""

    entries: list[object]
    unfinished: int


def cut_array(text: str) -> CutList | None:
    """Return the first unclosed JSON array of objects in the text; None without such an array or a complete entry.

    >>> cut_array('Here: [{"a": 1}, {"a": "so')
    CutList(entries=[{'a': 1}], unfinished=1)
    >>> cut_array('[{"a": 1}, {"a": ]'), cut_array('[{"a": "so')
    (None, None)
    """
    body = _answer(text)
    opening = _ARRAY_OF_OBJECTS.search(body)
    while opening:
        try:
            _, end = _DECODER.raw_decode(body, opening.start())
        except (ValueError, RecursionError):
            break
        opening = _ARRAY_OF_OBJECTS.search(body, end)
    if not opening or not _is_json_so_far(body[opening.start() :]):
        return None
    entries, end = _whole_entries(body, opening.start())
    remainder = _repair("[" + body[end:])
    return CutList(entries, _unfinished(body, end)) if entries and isinstance(remainder, list) else None


def cut_object(text: str, name: str) -> tuple[CutList, dict[str, object]] | None:
    """Return the list `name` of a truncated JSON object, and the object's other complete members.

    The result is None if the answer is something else or has no such list.

    >>> cut_object('{"bboxes": [[1, 2, 3, 4], [5, 6', "bboxes")
    (CutList(entries=[[1, 2, 3, 4]], unfinished=1), {})
    """
    body = _answer(text)
    *_, opening = (None, *re.finditer(rf'"{re.escape(name)}"[ \t\r\n]*:[ \t\r\n]*\[', body))
    if opening is None or not body.startswith("{") or not _is_json_so_far(body):
        return None
    entries, end = _whole_entries(body, opening.end() - 1)
    skeleton = body[: opening.end()] + body[end:]
    repaired = _repair(skeleton)
    if not isinstance(repaired, dict) or not isinstance(repaired.get(name), list):
        return None
    if json_value(skeleton) is None:
        repaired[list(repaired)[-1]] = None  # the last value may be cut off: half a number is also a number
    return CutList(entries, _unfinished(body, end)), {key: value for key, value in repaired.items() if key != name}


def _answer(text: str) -> str:
    """Return the text after any reasoning and the opening of a fence; empty if the reasoning has no end."""
    body = text[:MAX_ANSWER].rpartition(_THOUGHT)[2]
    if _THINKING in body:
        return ""
    fence = _OPEN_FENCE.match(body)
    return body[fence.end() if fence else 0 :].rstrip("` \t\r\n").lstrip()


def _is_json_so_far(text: str) -> bool:
    """Return True if the text is JSON or could be continued to JSON."""
    try:
        from_json(text, allow_partial="trailing-strings")
    except ValueError:
        return False
    return True


def _whole_entries(text: str, start: int) -> tuple[list[object], int]:
    """Return the complete objects and arrays at the beginning of an array, and the offset after them."""
    entries: list[object] = []
    position = _skip(_SPACE, text, start + 1)
    while text[position : position + 1] in ("{", "["):
        try:
            entry, end = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        entries.append(entry)
        position = _skip(_COMMA, text, end)
        if position == end and text[_skip(_SPACE, text, end) :][:1] not in ("", "]"):
            return [], start  # no comma between two entries
    return entries, position


def _unfinished(text: str, position: int) -> int:
    return int(text[position:].lstrip()[:1] not in ("", "]"))


def _skip(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


def _repair(text: str) -> object:
    """Return the repaired text; None if it is too long or too deeply nested for repair."""
    if len(text) > MAX_REPAIRED:
        return None
    try:
        return repair_json(text, return_objects=True, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None
