"""How the release reads JSON in answers (`read_released`, docs/upstream/barista.md).

Its parsers are strict in some places and generous in others: a fence counts only where its first line ends right after
a plain tag, an entry that is not valid rejects a list of interactions but not one of relations, numbers may be texts.
Where the released run stops, at a number without bounds or at nesting too deep, the answer cannot be read here.
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
    """Let a reader give a `ParseError` for a number or nesting that Python cannot hold."""

    @wraps(read)
    def reader(*args: _Args.args, **kwargs: _Args.kwargs) -> Prediction | ParseError:
        try:
            return read(*args, **kwargs)
        except (OverflowError, RecursionError):
            return ParseError("the answer holds a number, or nesting, without bounds")

    return reader


def released_body(text: str) -> str:
    r"""The body of the first fenced block where there is one, else the text; white space around it removed.

    >>> released_body("So: ```json\n[1]\n``` Bye."), released_body("```json \n[1]\n```")
    ('[1]', '```json \n[1]\n```')
    """
    text = text[:MAX_ANSWER].strip()
    fence = _RELEASED_FENCE.search(text)
    return fence[1].strip() if fence else text


def released_array(body: str) -> list[object] | None:
    """The body as a JSON list; None where it is anything else."""
    try:
        value = json.loads(body)
    except ValueError:
        return None
    return value if isinstance(value, list) else None
