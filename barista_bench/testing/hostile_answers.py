"""Make answers on which no parser may fail: general answers, and damaged forms of a task's own answer."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator
from itertools import islice

_LONG = 20_000
"""Number of characters of a long answer. It is large enough to reveal a parser whose time grows with its square."""

HOSTILE_ANSWERS: tuple[str, ...] = (
    *("", " \t\r\n", "I cannot tell.", "null", "true", "0", "-1", "1e999", "NaN", "-Infinity", "[]", "{}", "[[]]"),
    *('""', '{"a": {"a": {"a": []}}}', '{"": null, "a": 1, "a": 2}', "[1, 2, 3]", '["1", "2", "3", "4"]'),
    *("9" * 5_000, f"[{'9' * 5_000}]", f"-{10**400}", f"[{10**400}, 0, {10**400}, 1]", "[[0.5, 0.5, 0.1, 0.1]]"),
    "[null, true, NaN, Infinity, -Infinity, 1e999, -0.0]",
    "[-1000000, -1000000, 1000000, 1000000]",
    "\x00\x01\x1b[31m\x7f\x85\u2028",
    '["\\u0000", "\\ud800", "\\udfff\\ud800"]',
    "\ufeff[1]",
    "\u202eevas\u202c \u0661\u0662\u0663 \uff21 \u00b2 \u2167",
    *("```json\n[", "```json\n{}\n```\n```json\n[]\n```", "<think>[1]", "<think>[1]</think>", "</think></think>"),
    '{"scores": {"A": 1e999, "B": NaN, "C": -Infinity, "D": "1", "E": null}}',
    *('{"scores": []}', '{"bboxes": "all", "scores": 1}', '[{"object": {}, "bbox": {"x": 1}}]'),
    "A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T, U, V, W, X, Y, Z",
    *("ANSWER:", "ANSWER: A or B", "Answer: (A)\nAnswer: (B)", "00:00:00 to 99999:99:99.999", "1 to 2 to 3 - 4"),
    *(start * (_LONG // len(start)) for start in ("{", "[", "(", '"', "\\", '{"a":', '[{"a":')),
    *(line * (_LONG // len(line)) for line in ("- (a) 1\n", "ANSWER: ", "```json\n")),
    *("[" * 500 + "]" * 500, "a" + " " * _LONG + "b"),
)
"""Short, long, empty and deeply nested answers, too large numbers, and text that UTF-8 cannot encode."""

_WRONG: tuple[object, ...] = (None, True, -1, 10**400, float("nan"), float("inf"), "", "\ud800", "x" * 3_000, [], {})
_DEEP = json.loads("[" * 400 + "]" * 400)
_KEYS = 12
"""Maximum number of keys per object that get wrong values."""


def damaged_forms(answer: str) -> Iterator[str]:
    """Yield damaged forms of a good answer: truncated, repeated, wrapped; in JSON, with wrong or missing values."""
    yield from (answer[: len(answer) * part // 8] for part in range(1, 8))
    yield from (answer[:-1], answer * 2, answer.upper(), answer[::-1])
    yield f"It is this:\n```json\n{answer}\n```\nI am sure."
    yield f"<think>{answer}</think>"
    for digits in ("9" * 400, "-"):
        yield "".join(digits if letter.isdigit() else letter for letter in answer[:100])
    try:
        content = json.loads(answer)
    except ValueError:
        return
    yield from map(json.dumps, ([content], {"answer": content}, answer))
    for path in _paths(content):
        yield from (json.dumps(_with_value(content, path, [value])) for value in (*_WRONG, _DEEP))
        yield json.dumps(_with_value(content, path, []))


def _paths(content: object) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths of all values. Of a list, only the first entry and the values inside it count."""
    entries: Iterable[tuple[str | int, object]] = ()
    if isinstance(content, dict):
        entries = islice(content.items(), _KEYS)
    elif isinstance(content, list):
        entries = islice(enumerate(content), 1)
    for key, value in entries:
        yield (key,)
        yield from ((key, *path) for path in _paths(value))


def _with_value(content: object, path: tuple[str | int, ...], values: list[object]) -> object:
    """Return a copy with one value replaced or removed."""
    content_copy = copy.deepcopy(content)
    parent = content_copy
    for key in path[:-1]:
        parent = parent[key]  # type: ignore[index]
    if values:
        parent[path[-1]] = values[0]  # type: ignore[index]
    else:
        del parent[path[-1]]  # type: ignore[attr-defined]
    return content_copy
