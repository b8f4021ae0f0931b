"""Reads JSON in answers as the release does (`read_released`, docs/upstream/barista.md).

The release's parsers are strict in some places and tolerant in others. A fence counts only if its first line ends
directly after a plain tag. An invalid entry rejects a list of interactions, but not a list of relations. Numbers may be
texts. An unbounded number or too deep nesting would stop the release's run; here the answer is unreadable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from barista_bench.benchmarks.parsing import MAX_ANSWER
from barista_bench.core.task import ParseError, Prediction

_Args = ParamSpec("_Args")
_RELEASED_FENCE = re.compile(r"```\w*\n(.*?)```", re.DOTALL)


def refuse_unbounded(read: Callable[_Args, Prediction | ParseError]) -> Callable[_Args, Prediction | ParseError]:
    """Make a reader return a `ParseError` if a number or the nesting exceeds Python's limits."""

    @wraps(read)
    def reader(*args: _Args.args, **kwargs: _Args.kwargs) -> Prediction | ParseError:
        try:
            return read(*args, **kwargs)
        except (OverflowError, RecursionError):
            return ParseError("the answer holds a number, or nesting, without bounds")

    return reader


def released_body(text: str) -> str:
    r"""Return the body of the first fenced block, else the complete text. Outer white space is removed.

    >>> released_body("So: ```json\n[1]\n``` Bye."), released_body("```json \n[1]\n```")
    ('[1]', '```json \n[1]\n```')
    """
    text = text[:MAX_ANSWER].strip()
    fence = _RELEASED_FENCE.search(text)
    return fence[1].strip() if fence else text


def released_array(body: str) -> list[object] | None:
    """Return the body as a JSON list; None for anything else."""
    try:
        value = json.loads(body)
    except ValueError:
        return None
    return value if isinstance(value, list) else None
