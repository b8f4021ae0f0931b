"""Read truncated JSON answers: exactly the entries that were complete.

`json_repair` closes the brackets that the truncation left open. By itself, it also completes half an entry with a
guess, reads text that was never JSON, and takes quadratic time on some input. So it gets little text, and its result is
checked. First, pydantic's parser checks that the text is JSON so far. This parser overlooks missing commas, which are
checked here. Then the standard library reads the complete entries, and only the remaining skeleton is repaired.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from json_repair import repair_json
from pydantic_core import from_json

from barista_bench.benchmarks.parsing import MAX_ANSWER
from barista_bench.files.reading import json_value

MAX_REPAIRED = 4_000
"""Maximum number of characters to repair. An entry is far shorter, and complete entries are taken out before."""

_THINKING, _THOUGHT = "<think>", "</think>"
_OPEN_FENCE = re.compile(r"\A[^`\[{]*```[^\n`]*\n")
_ARRAY_OF_OBJECTS = re.compile(r"\[\s*\{")
_SPACE = re.compile(r"[ \t\r\n]*")
_COMMA = re.compile(r"[ \t\r\n]*,[ \t\r\n]*")
_DECODER = json.JSONDecoder()


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
