"""The separation of letter and rationale (the rules of `answers.py`)."""

import pytest

from barista_bench.benchmarks.egocot.answers import read_answer, steps_of, strip_numbers
from barista_bench.benchmarks.egocot.items import CotAnswer

CHOICES = {"A": "right hand", "B": "left hand", "C": "both hands", "D": "a kettle (white)"}


def letter_of(text: str, choices: dict[str, str] = CHOICES) -> str | None:
    answer = read_answer(text, choices)
    return answer and answer.answer


@pytest.mark.parametrize(
    ("text", "letter", "reasoning"),
    [
        ("1. It is held.\nANSWER: B", "B", "1. It is held."),
        ("Reasoning: It is held.\n\n**Answer:** (b)", "B", "It is held."),
        ("It is held. The answer is B.", "B", "It is held."),
        ("ANSWER: B\nIt is held by that hand.", "B", "It is held by that hand."),
        ("Answer: A? No.\nAnswer: C", "C", "Answer: A? No."),
        ("The answer is B because it is held.", "B", "because it is held."),
        ("So.\nThe final answer: **D**", "D", "So."),
        ("So.\nAnswer: Option C", "C", "So."),
        ("Answer: B left hand", "B", ""),
        ("It is held.\n<answer>B</answer>", "B", "It is held."),
        ("<answer> b </answer>", "B", ""),
        ("It is held, so $\\boxed{C}$.", "C", "It is held,"),
        ("It is held.\nFinal answer: \\boxed{\\text{D}}", "D", "It is held."),
        ("<answer>B</answer> It is held.", "B", "It is held."),
        ("$$\\boxed{ \\mathrm{B} }$$\nIt is held.", "B", "It is held."),
        ("\\[\\boxed{B}\\]\nIt is held.", "B", "It is held."),
        ("**Final Answer:**\n\n$$\\boxed{B}$$\nIt is held.", "B", "It is held."),
        ("## Answer\n<Answer>B</Answer>\nIt is held.", "B", "It is held."),
        ("It is held.\nFinal answer:--------ANSWER: B", "B", "It is held."),
        ("It is held.\nFinal answer:---------ANSWER: B", "B", "It is held."),
        ("\\boxed{B. left hand}", "B", ""),
        ("<answer>B: left hand</answer>", "B", ""),
        ("<answer>left hand</answer>", "B", ""),
        ("Answer: the left hand, I think", "B", "I think"),
        ("B", "B", ""),
        ("(B)", "B", ""),
        ("B. left hand\nIt is held.", "B", "It is held."),
        ("D: a kettle (white) - it is held", "D", "it is held"),
        ("ANSWER: B, A hand holds it.", "B", "A hand holds it."),  # a word is not a second letter
        ("ANSWER: C, and D is wrong", "C", "and D is wrong"),
        ('{"answer": "B", "reasoning": ["one", "two"]}', "B", "one\ntwo"),
        ('Here is my JSON: {"predicted_answer": "B", "reasoning": "one"} Bye.', "B", "one"),
        ('```json\n{"predicted_answer": "B.", "reasoning": {"step1": "one"}}\n```', "B", "one"),
        ('{"scores": {"A": 0.1, "B": 0.4, "C": 0.2, "D": -1}}', "B", ""),
        # A missing rationale is empty, and no failure.
        *((text, "C", "") for text in ("ANSWER: C", "**\n\nAnswer: C", "Reasoning:\nAnswer: C")),
    ],
)
def test_letter_and_rationale_are_read_apart(text: str, letter: str, reasoning: str) -> None:
    assert read_answer(text, CHOICES) == CotAnswer(letter, reasoning)


@pytest.mark.parametrize(
    "text",
    [
        *("Answer: A pot is held", "A hand is seen."),  # an article is not a letter
        *("", "The left hand holds it.", "I am not sure.", "Answer: E", "Answer: AB", "Answer:", "Answers: none"),
        *('{"answer": 2}', '{"reasoning": "B"}', "\\boxed{12}"),
        *("\\boxed{A, B}", "\\boxed{A; B}", "<answer>A,B</answer>", "<answer>A or B</answer>"),
        '{"predicted_answer": "", "reasoning": "so the final answer: B."}',
        '{"predicted_answer": "Z", "reasoning": "Answer: B"}',
    ],
)
def test_a_text_that_names_no_letter_by_itself_has_no_answer(text: str) -> None:
    assert read_answer(text, CHOICES) is None


@pytest.mark.parametrize(
    "form",
    [
        *("ANSWER: {0}", "ANSWER: {0}.", "ANSWER: {0}) so", "**ANSWER: {0}**", "ANSWER: {0} - so", "ANSWER: {0} (so)"),
        *("ANSWER: {0} – so", "The answer is {0} because so", "Answer: {0} is right", "Final answer: **{0}** (so)"),
        *("<answer>{0}</answer>", "so <answer>{0}: {2}</answer>", "\\boxed{{{0}}}", "The answer is $\\boxed{{{1}}}$."),
        *("{0}", "{0}. so", "{0} - so", "{0} (so)", "Option {0} is right", "answer: {1}", "ANSWER: {0} - {2}"),
    ],
)
def test_every_letter_is_read_in_every_accepted_form(form: str) -> None:
    """A is a word too, but a parser that reads it less often than B would favour models that prefer B."""
    for letter, choice in CHOICES.items():
        assert letter_of(form.format(letter, letter.lower(), choice)) == letter


@pytest.mark.parametrize(
    "form", ["ANSWER: {0} or {1}", "Answer: {0}/{1}", "({0}) and ({1})", "ANSWER: {0}, {1}", "{0} & {1}."]
)
def test_two_letters_in_one_answer_are_none(form: str) -> None:
    for first in CHOICES:
        for second in CHOICES:
            if first != second:
                assert read_answer(form.format(first, second), CHOICES) is None


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("{0} is wrong because it is empty. {1} is correct.", 1),
        ("{0} was my first thought, but {1} fits.", 1),
        ("{0}: right - no.\n{1}: left - yes.\nSo {1}.", 1),
        ("{0}. {1} is wrong, since it is empty.", 0),
        ("{0} - it is held. Option {1} cannot be.", 0),
        ("{0} is incorrect; the other one ({1}) holds it.", None),
        ("{0}: it may be.\n{1}: it may be as well.", None),
        ("{0} isn't right.", None),
    ],
)
def test_of_several_conclusions_the_last_letter_counts(form: str, expected: int | None) -> None:
    for first in CHOICES:
        for second in set(CHOICES) - {first}:
            wanted = None if expected is None else (first, second)[expected]
            assert letter_of(form.format(first, second)) == wanted


def test_a_negative_choice_is_not_read_as_a_denial() -> None:
    choices = {"A": "Out of view", "B": "not held", "C": "left hand"}
    for letter, choice in choices.items():
        for form in ("{0}) {1}", "{0}: {1}", "{0}. {1}\nIt is held.", "({0}) {1} - it is held"):
            assert letter_of(form.format(letter, choice), choices) == letter
    assert read_answer("A) Out of view - no.", choices) is None


def test_steps_without_text_are_left_out_and_their_numbers_are_not_read_as_words() -> None:
    assert steps_of(["a", 1, None, "b"]) == "a\nb"
    assert steps_of({"x": "a", "y": ["b"]}) == "a"
    assert steps_of(7) == ""
    assert strip_numbers("1. a\n2) b\n- step 3: c\n4 cups") == "a\nb\nc\n4 cups"
