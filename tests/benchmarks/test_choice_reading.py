"""Which choice an answer names (`kinds/choice_reading.py`), held to `choice_forms.jsonl`.

Each line is an answer, its options, and what a person reads in it: a letter, letters where several are asked for, or none.
`by` says who wrote it: `own` before the reader, `other` without having seen it, `later` after both had been tried.
"""

import json
import re
import time
from collections import Counter
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import pytest
from hypothesis import given, strategies as st

from barista_bench.benchmarks.kinds.choice_reading import _WORDS, read_choices

FORMS: list[dict[str, Any]] = [
    json.loads(line) for line in Path(__file__).with_name("choice_forms.jsonl").read_text().splitlines()
]
CUPS = dict(zip("ABCDE", ["a white cup", "a red cup", "a blue cup", "a green cup", "a black cup"], strict=True))


def read(text: str, choices: dict[str, str] = CUPS, *, several: bool = False) -> str | None:
    reading = read_choices(text, choices, several=several)
    return "".join(reading.labels) if reading else None


def outcome(form: dict[str, Any]) -> str:
    choices = dict(zip(ascii_uppercase, form["options"], strict=False))
    letters = read(form["text"], choices, several=form["several"])
    answer = None if form["answer"] is None else "".join(form["answer"])
    if letters == answer:
        return "right"
    return "unread" if letters is None else "wrong"


@pytest.mark.parametrize("by", ["own", "other", "later"])
def test_of_the_forms_in_which_models_answer_hardly_any_is_unread_and_none_read_wrongly(by: str) -> None:
    forms = [form for form in FORMS if form["by"] == by]
    counts = Counter(map(outcome, forms))
    assert len(forms) >= 75
    assert counts["right"] >= 0.95 * len(forms), [form["text"] for form in forms if outcome(form) == "unread"]
    assert counts["wrong"] == 0, [form["text"] for form in forms if outcome(form) == "wrong"]


def test_no_word_of_the_table_stands_twice() -> None:
    words = Counter(word for entries in _WORDS.values() for word in entries.split())
    assert not [word for word, count in words.items() if count > 1]
    assert all(word == word.lower() for word in words)
