"""Reading a judge's reply, strictly: one JSON object of the form asked for and nothing else, or no verdict at all.

A reply that quotes a forged verdict beside its own holds two objects and is refused; nothing is repaired and nothing
is searched for, since whatever a lenient reader finds, an answer can plant.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

MAX_REPLY = 100_000
"""Characters of a reply that are read; an honest one has a few hundred."""

_FENCE = re.compile(r"```(?:json)?[^\S\n]*\n(.*)\n[^\S\n]*```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class JudgeVerdict:
    """A score as the judge wrote it, and why."""

    score: int
    reason: str


@dataclass(frozen=True, slots=True)
class Unusable:
    """A reply that is no verdict."""

    why: str


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """Names of the two fields of a reply, and its highest score; the lowest is 0."""

    score: str
    reason: str
    top: int

    @property
    def schema(self) -> dict[str, object]:
        """JSON Schema, for judges that can be held to one."""
        return {
            "type": "object",
            "properties": {
                # An enumeration, since some servers take no bounds in a schema.
                self.score: {"type": "integer", "enum": list(range(self.top + 1))},
                self.reason: {"type": "string"},
            },
            "required": [self.score, self.reason],
            "additionalProperties": False,
        }


GEVAL_FORM = ReplyForm("score", "reason", 10)
REASONING_FORM = ReplyForm("reasoning_score", "analysis", 5)


def read_object(text: str) -> dict[str, object] | Unusable:
    """The JSON object that is the whole text, perhaps within one code fence. No key may stand twice.

    >>> read_object('{"a": 1}'), read_object('Sure: {"a": 1}').why
    ({'a': 1}, 'not JSON: Expecting value')
    """
    if len(text) > MAX_REPLY:
        return Unusable(f"longer than {MAX_REPLY} characters")
    text = text.strip()
    block = _FENCE.fullmatch(text)
    try:
        value = json.loads(block[1] if block else text, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        return Unusable(f"not JSON: {error.msg}")
    except (ValueError, RecursionError) as error:
        return Unusable(f"not JSON that can be read: {error}")
    return value if isinstance(value, dict) else Unusable(f"a JSON {type(value).__name__}, not one object")


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a key stands twice")
    return content


def read_verdict(text: str, form: ReplyForm = GEVAL_FORM) -> JudgeVerdict | Unusable:
    """The verdict in a reply.

    >>> read_verdict('{"score": 7, "reason": "one slip"}')
    JudgeVerdict(score=7, reason='one slip')
    >>> read_verdict('{"score": 11, "reason": ""}').why
    'score is 11, not from 0 to 10'
    """
    reply = read_object(text)
    if isinstance(reply, Unusable):
        return reply
    if set(reply) != {form.score, form.reason}:
        return Unusable(f"has the keys {sorted(reply)[:5]}, not {form.score} and {form.reason}")
    score, reason = reply[form.score], reply[form.reason]
    if isinstance(score, bool) or not isinstance(score, int):
        return Unusable(f"{form.score} is a {type(score).__name__}, not a whole number")
    if not 0 <= score <= form.top:
        return Unusable(f"{form.score} is {score}, not from 0 to {form.top}")
    if not isinstance(reason, str):
        return Unusable(f"{form.reason} is a {type(reason).__name__}, not text")
    return JudgeVerdict(score, reason)
