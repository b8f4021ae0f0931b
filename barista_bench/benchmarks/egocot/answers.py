"""Separates an answer from its rationale.

The benchmark requires a strict match of the letter, but does not define how to find the letter in free text.
`kinds/choice_reading.py` finds it. The rationale is the field `reasoning` of the JSON object with the answer, as in the
submission file (a text, a list or an object of steps). Without this field, the rationale is the text before the words
that name the choice, or else the text after these words. If both are empty, the rationale is the complete text. A
missing rationale is not a parse failure. A model that ranks the choices gives no rationale.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from barista_bench.benchmarks.egocot.items import CotAnswer
from barista_bench.benchmarks.kinds.choice_reading import read_choices
from barista_bench.benchmarks.parsing import MAX_ANSWER, is_text
from barista_bench.core.example import read_scores

MAX_REASONING = 50_000
"""Maximum number of characters of a rationale."""

_HEADING = re.compile(r"(?:\A|\n)[\s#*_]{0,8}(?:final )?answer[\s:*_]{0,4}\Z", re.IGNORECASE)
_LABEL = re.compile(r"\A[\s*_#]{0,8}(?:step[- ]by[- ]step )?reasoning[\s*_]{0,4}:[\s*_]{0,4}", re.IGNORECASE)
_NUMBER = re.compile(
    r"^[^\S\n]*(?:[*_#-]{0,4}[^\S\n]?step[^\S\n]?)?\d{1,3}[.):][*_]{0,4}[^\S\n]*", re.IGNORECASE | re.MULTILINE
)
_EMPTY = re.compile(r"[\s*_#.,:;()\[\]`'\"-]*")


def read_answer(text: str, choices: Mapping[str, str]) -> CotAnswer | None:
    r"""Return the letter and the rationale of a model's answer, or None if no letter can be determined.

    >>> read_answer("1. The left hand holds the pot.\nANSWER: B", {"A": "right hand", "B": "left hand"})
    CotAnswer(answer='B', reasoning='1. The left hand holds the pot.')
    """
    text = text[-MAX_ANSWER:]
    scores = read_scores(text, choices)
    if scores is not None:
        return CotAnswer(max(choices, key=lambda label: scores[label]), "")
    reading = read_choices(text, choices)
    if reading is None:
        return None
    (letter,) = reading.labels
    if reading.content is not None:
        return CotAnswer(letter, _clean_text(steps_of(reading.content.get("reasoning"))))
    return CotAnswer(letter, _clean_text(text[: reading.start]) or _text_after(text[reading.end :]))


def steps_of(value: object) -> str:
    """Return a rationale with one step per line. It may be a text, a list of texts or an object of texts.

    Any other value gives an empty text.
    """
    parts = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else [value]
    return "\n".join(part.strip() for part in parts if is_text(part))


def strip_numbers(text: str) -> str:
    """Return a rationale without the numbers of its steps."""
    return _NUMBER.sub("", text)


def _text_after(text: str) -> str:
    return _clean_text(re.sub(r"\A[\s*_).:,;\]\"'`-]{0,16}", "", text))


def _clean_text(text: str) -> str:
    """Return a rationale without its heading. If only markup remains, the result is empty."""
    text = text.strip()
    text = _LABEL.sub("", text[:-40] + _HEADING.sub("", text[-40:]))[:MAX_REASONING].rstrip(" \t\n*_#(").strip()
    return "" if _EMPTY.fullmatch(text) else text.encode(errors="replace").decode()
