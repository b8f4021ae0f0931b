"""Reading JSON and times out of answers: which text can be written down, and how much is read again."""

import json
import time
from collections import Counter
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import pytest
from hypothesis import given, strategies as st

from barista_bench.benchmarks.kinds.choice_reading import read_choices
from barista_bench.benchmarks.kinds.choice_words import _TABLE
from barista_bench.benchmarks.kinds.spans import MAX_TEXT, read_seconds
from barista_bench.benchmarks.kinds.text import lexical_statistics
from barista_bench.benchmarks.lexical import NO_OVERLAP, Overlap, after_label, content_words, word_overlap
from barista_bench.benchmarks.parsing import MAX_WASTED, is_text, json_arrays
from barista_bench.scene_graph.domain import domain_vocabulary


def test_only_values_with_a_utf_8_form_are_text() -> None:
    assert [chr(code) for code in range(0xD700, 0xE100) if not is_text(f"a{chr(code)}")] == [
        chr(code) for code in range(0xD800, 0xE000)
    ]


def test_every_array_of_a_text_is_read_from_its_first_character_to_its_last() -> None:
    assert list(json_arrays("[1] then [2]")) == [[1], [2]]


def test_arrays_inside_others_are_read_again_within_the_bound_on_all_reading() -> None:
    text = "[" * 50 + f'"{"x" * 300_000}"' + "]" * 50
    assert 0 <= sum(1 for _ in json_arrays(text, nested=True)) * 300_000 - MAX_WASTED < 300_000


def test_unmatched_brackets_use_up_only_the_budget_of_the_text_that_is_read_for_them() -> None:
    assert list(json_arrays("x" * 49_000 + "[ " * 30 + "[1]")) == [[1]]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0:59.5", 59.5),
        ("0:60", None),
        ("59:59", 3599.0),
        ("60:00", 3600.0),
        ("90:30", 5430.0),
        ("1:59:59", 7199.0),
        ("1:60:00", None),
        ("1:00:60", None),
        *((text, 12.5) for text in ("12.5 s", "12.5S", "12.5 sec", "12.5 secs", "12.5 seconds.", " 0:12.5 ", 12.5)),
        *((text, None) for text in ("0:1:2:3", "-1", "1e3", "٣", "nan", "", "00:61.5x", None, True, [1], 10**400)),
    ],
)
def test_seconds_end_at_59_and_so_do_minutes_below_an_hour_hand(text: object, seconds: float | None) -> None:
    assert read_seconds(text) == seconds


@pytest.mark.parametrize("text", ["12.5", "0:12.5"])
def test_a_time_is_read_from_exactly_the_allowed_number_of_characters(text: str) -> None:
    assert read_seconds(text.rjust(MAX_TEXT)) == 12.5
    assert read_seconds(text.rjust(MAX_TEXT + 1)) is None


def test_words_are_compared_without_case_order_and_plural() -> None:
    assert word_overlap("Machines: Coffee!", "the coffee machine").f1 == 1.0
    assert word_overlap("red red", "red cup").precision == 0.5, "a word counts once for each time it is wanted"
    assert word_overlap("", "a cup") == word_overlap("a cup", "") == word_overlap("the", "of") == (0.0, 0.0, 0.0)
    assert word_overlap("cup on saucer", "cup under saucer").f1 == pytest.approx(2 / 3), "place is content"


def test_true_words_beyond_the_reference_do_not_lower_the_score() -> None:
    plain = word_overlap("a white cup", "a white cup under a machine", context="machine: (red)")
    more = word_overlap("a white cup, red", "a white cup under a machine", context="machine: (red)")
    wrong = word_overlap("a white cup, blue", "a white cup under a machine", context="machine: (red)")
    assert plain == more
    assert wrong.f1 < plain.f1


def test_repeating_the_question_earns_nothing() -> None:
    question, reference = "What does the left hand touch?", "The left hand touches the lid."
    assert word_overlap(question, reference, question=question).f1 == 0.0
    assert word_overlap("a lid", reference, question=question).f1 == 1.0
    assert word_overlap("the left hand", "the left hand", question=question).f1 == 1.0, "there is nothing else to say"


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_overlap_is_bounded_and_only_recall_ignores_context(answer: str, reference: str, context: str) -> None:
    score = word_overlap(answer, reference, context=context)
    assert all(0.0 <= fraction <= 1.0 for fraction in score)
    assert score.recall == word_overlap(answer, reference).recall
    assert score.f1 >= word_overlap(answer, reference).f1
    if content_words(reference):
        assert word_overlap(reference, reference, context=context, question=answer).f1 == 1.0


@given(st.text(alphabet=st.characters(exclude_categories=["C", "Z"]), min_size=1).filter(lambda t: ":" not in t))
def test_labelled_values_are_read_back(text: str) -> None:
    assert after_label(f"Thinking...\nDescription: {text}", "description") == text


def test_the_vocabulary_describes_the_45_categories() -> None:
    vocabulary = domain_vocabulary()
    assert len(vocabulary) == 45
    assert "unknown" not in vocabulary
    assert {"coffee machine", "left hand", "water tank", "needle distributor"} <= set(vocabulary)
    assert all(10 < len(text) < 120 for text in vocabulary.values())


def test_means_count_unreadable_answers_as_nothing() -> None:
    statistics = lexical_statistics([Overlap(1.0, 0.5, 0.6), None, NO_OVERLAP], ["a", "a", "b"])
    result = statistics.published_metrics()
    assert result["lexical_f1"] == pytest.approx(0.2)
    assert result["per_category"]["a"] == {
        "lexical_f1": 0.3,
        "lexical_precision": 0.5,
        "lexical_recall": 0.25,
        "support": 2,
    }
    assert (result["n"], result["n_failed"], result["coverage"]) == (3, 1, pytest.approx(2 / 3))
    assert statistics.scores()["lexical_f1"].tolist() == [0.6, 0.0, 0.0]
    assert statistics.subset([0]).published_metrics()["per_category"].keys() == {"a"}


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
def test_common_forms_of_answers_are_hardly_ever_unread_and_never_read_wrongly(by: str) -> None:
    forms = [form for form in FORMS if form["by"] == by]
    counts = Counter(map(outcome, forms))
    assert len(forms) >= 75
    assert counts["right"] >= 0.95 * len(forms), [form["text"] for form in forms if outcome(form) == "unread"]
    assert counts["wrong"] == 0, [form["text"] for form in forms if outcome(form) == "wrong"]


def test_the_table_has_each_word_once() -> None:
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


def test_a_text_of_two_options_names_no_option() -> None:
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
