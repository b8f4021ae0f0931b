"""Which choice an answer names (`kinds/choice_reading.py`), held to `choice_forms.jsonl`.

Each line is an answer, its options, and what a person reads in it: a letter, letters where several are asked for, or
none.
`by` says who wrote it: `own` before the reader, `other` without having seen it, `later` after both had been tried.
"""

import json
import time
from collections import Counter
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import pytest

from barista_bench.benchmarks.kinds.choice_reading import read_choices
from barista_bench.benchmarks.kinds.choice_words import _TABLE

FORMS: list[dict[str, Any]] = [
    json.loads(line) for line in Path(__file__).with_name("choice_forms.jsonl").read_text(encoding="utf-8").splitlines()
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
    words = Counter(word for entries in _TABLE.values() for word in entries.split())
    assert not [word for word, count in words.items() if count > 1]
    assert all(word == word.lower() for word in words)


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("2", "2"),
        ("There are 2 cups. Answer: 1", "1"),
        ("1. Hands.\n2. Cups.\nAnswer: 3", "3"),
        *((text, None) for text in ("There are 2 cups.", "It takes 2 s.", "Answer: 1.5", "1. A hand.\n2. A cup.")),
    ],
)
def test_labels_may_be_numbers(text: str, letter: str | None) -> None:
    assert read(text, {"1": "a red cup", "2": "a blue cup", "3": "a jug"}) == letter


def test_labels_may_be_of_any_form() -> None:
    choices = {"option-1": "cup", "option-2": "jug", "CHOICE_3": "lid", "AA": "pan"}
    for label in choices:
        for form in ("{}", "Answer: {}", "The answer is ({}).", "not option-9 but {}"):
            assert read(form.format(label), choices) == label
            assert read(form.format(label.lower()), choices) == label


def test_a_text_that_two_options_share_names_none() -> None:
    assert read("Answer: a cup", {"A": "a cup", "B": "A cup", "C": "a lid"}) is None
    assert read("Answer: a lid", {"A": "a cup", "B": "A cup", "C": "a lid"}) == "C"


@pytest.mark.parametrize("label", list("ABCDEFGHIJKLMNOPQRSTUVWXY"))
def test_no_letter_is_easier_to_read_than_another(label: str) -> None:
    choices = {letter: f"thing {number}" for number, letter in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXY")}
    forms = ["Answer: {}", "**{}**", "({})", "The answer is {}.", "{} is correct.", "{}. " + choices[label], "答案：{}"]
    forms += ["I think it is {}", "{}\nA hand takes it.", "It cannot be Z. I choose {}.", "{} because a hand takes it."]
    assert [read(form.format(label), choices) for form in forms] == [label] * len(forms)
    forms = [
        "{} hand is seen.",
        "Answer: {} hand is seen.",
        "It is not {}.",
        "{}?",
        "Plan {} is carried out.",
        "{} or Z",
    ]
    assert [read(form.format(label), choices | {"Z": "thing 26"}) for form in forms] == [None] * len(forms)


@pytest.mark.full
@pytest.mark.parametrize(
    "piece",
    [
        *("A ", "A,", "(A)", "A\n", "answer: ", "the is ", "(", "\n", " ", "{", "[", '{"answer":', '{"answer": "A B"}'),
        *(
            "not A, ",
            "a cup, ",
            "red cup",
            "答案是",
            "\\boxed{",
            "<answer>",
            "1. ",
            "- ",
            "a'b",
            "a-bb-",
            "İ",
            "</think>",
        ),
        *('{"answer": ["A", "B"]} ', "~~A~~", "no ", "A is right. ", "thing 1 "),
    ],
)
def test_a_megabyte_of_any_shape_costs_little(piece: str) -> None:
    text = (piece * (1_000_000 // len(piece) + 1))[:1_000_000]
    choices = {letter: f"thing {number}" for number, letter in enumerate([*ascii_uppercase, *map(str, range(27, 500))])}
    start = time.process_time()
    for several in (False, True):
        read(text, choices | {"A": "a red cup", "B": "cup"}, several=several)
    assert time.process_time() - start < 8, "only the end is looked at: .4 s on an idle core"
