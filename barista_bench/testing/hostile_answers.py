"""Answers that no parser may fall over: of no task in particular, and made of what a task's own answer looks like."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

_LONG = 20_000
"""Characters of the long ones: enough for what grows with the square of them to be seen."""

HOSTILE_ANSWERS: tuple[str, ...] = (
    "",
    " \t\r\n",
    "I cannot tell.",
    "null",
    "true",
    "0",
    "-1",
    "1e999",
    "NaN",
    "-Infinity",
    "[]",
    "{}",
    "[[]]",
    '""',
    "[null, true, NaN, Infinity, -Infinity, 1e999, -0.0]",
    '{"a": {"a": {"a": []}}}',
    '{"": null, "a": 1, "a": 2}',
    "9" * 5_000,
    f"[{'9' * 5_000}]",
    f"-{10**400}",
    f"[{10**400}, 0, {10**400}, 1]",
    "[1, 2, 3]",
    "[1, 2, 3, 4, 5]",
    '["1", "2", "3", "4"]',
    "[[0.5, 0.5, 0.1, 0.1]]",
    "[-1000000, -1000000, 1000000, 1000000]",
    "\x00\x01\x1b[31m\x7f\x85\u2028",
    '["\\u0000", "\\ud800", "\\udfff\\ud800"]',
    "\ud800 \udfff",
    "\ufeff[1]",
    "\u202eevas\u202c \u0661\u0662\u0663 \uff21 \u00b2 \u2167",
    "```json\n[",
    "```json\n{}\n```\n```json\n[]\n```",
    "<think>[1]",
    "<think>[1]</think>",
    "</think></think>",
    '{"scores": {"A": 1e999, "B": NaN, "C": -Infinity, "D": "1", "E": null}}',
    '{"scores": []}',
    '{"bboxes": "all", "scores": 1}',
    '[{"object": {}, "bbox": {"x": 1}}]',
    "A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T, U, V, W, X, Y, Z",
    "ANSWER:",
    "ANSWER: A or B",
    "Answer: (A)\nAnswer: (B)",
    "00:00:00 to 99999:99:99.999",
    "1 to 2 to 3 - 4",
    "{" * _LONG,
    "[" * _LONG,
    "(" * _LONG,
    '{"a":' * (_LONG // 5),
    '[{"a":' * (_LONG // 6),
    "[" * 500 + "]" * 500,
    '"' * _LONG,
    "\\" * _LONG,
    "- (a) 1\n" * (_LONG // 8),
    "ANSWER: " * (_LONG // 8),
    "```json\n" * (_LONG // 8),
    "a" + " " * _LONG + "b",
)
"""Short and long, empty and deep, numbers that nothing holds, text that no file takes."""

_KEYS = 12
"""Of an object, that are given wrong values."""
_WRONG_VALUES: tuple[object, ...] = (
    None,
    True,
    -1,
    10**400,
    -1e308,
    float("nan"),
    float("inf"),
    "",
    "\ud800",
    "x" * 3_000,
    [],
    {},
    [[[]]],
    [1, "2", None, {}],
)


def damaged(answer: str) -> Iterator[str]:
    """What becomes of a good answer: cut short, repeated, wrapped; and, of one in JSON, with wrong values and keys."""
    for part in range(1, 8):
        yield answer[: len(answer) * part // 8]
    yield answer[:-1]
    yield answer * 2
    yield f"It is this:\n```json\n{answer}\n```\nI am sure."
    yield f"<think>{answer}</think>"
    yield answer.upper()
    yield answer[::-1]
    yield "".join("9" * 400 if letter.isdigit() else letter for letter in answer[:50])
    yield "".join("-" if letter.isdigit() else letter for letter in answer)
    try:
        content = json.loads(answer)
    except ValueError:
        return
    for wrap in ([content], {"answer": content}, str(answer)):
        yield json.dumps(wrap)
    for path in _places(content):
        for value in _WRONG_VALUES:
            yield json.dumps(_changed(content, path, lambda holder, key, value=value: holder.__setitem__(key, value)))
        yield json.dumps(_changed(content, path, lambda holder, key: holder.pop(key)))


Path = tuple[str | int, ...]


def _places(content: object) -> Iterator[Path]:
    """Where values stand: of a list its first entry and those inside."""
    entries: Iterable[tuple[str | int, object]] = ()
    if isinstance(content, dict):
        entries = islice(content.items(), _KEYS)
    elif isinstance(content, list):
        entries = islice(enumerate(content), 1)
    for key, value in entries:
        yield (key,)
        yield from ((key, *path) for path in _places(value))


def _changed(content: object, path: Path, change: Callable[..., object]) -> object:
    content = copy.deepcopy(content)
    holder = content
    for key in path[:-1]:
        holder = holder[key]  # type: ignore[index]
    change(holder, path[-1])
    return content
