"""Both readings of an answer, on the shapes that real outputs have and on worse ones."""

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from barista_bench.benchmarks.handyvqa.letters import RELEASED, LetterReading, parse_letters, strict_letters
from barista_bench.core.example import ParseError, write_scores
from tests.handyvqa.made import CUPS

AWKWARD: list[tuple[str, str, str]] = [
    # answer, letters by the released rule, letters by the strict reading
    ("(D) a green cup", "D", "D"),
    ("(d) a green cup", "D", ""),  # lower case
    ("D) a green cup", "D", ""),  # half a bracket
    ("D. a green cup", "", ""),  # no bracket: unanswered as released
    ("D", "", ""),
    ("The answer is D.", "", ""),
    ("", "", ""),
    ("I cannot tell.", "", ""),
    ("(B) a red cup\n(D) a green cup", "BD", "BD"),
    ("(D) a green cup\n(B) a red cup", "BD", "DB"),  # released: sorted
    ("(D) a green cup\n\nNot the others (black cup, spoon) though.", "D", "D"),  # n has no option
    ("(D) a green cup\n\nNot the others (black cup, ladle) though.", "DE", "D"),  # a letter of prose
    ("I choose (C).", "C", ""),  # not on a separate line
    ("(B) <Description of Option B>", "B", "B"),  # the placeholder, repeated
    ("(B) a long tale of cups", "B", "B"),  # its own words
    ("(B) a green cup", "B", ""),  # the letter of one option, the text of another
    ("(F) a cup", "", ""),  # no such option
    ("(E.) a black cup", "E", ""),  # full stops are deleted first
    ("  (E)   A BLACK CUP  ", "E", "E"),
    ("(A)(B)", "AB", "A"),  # one line names one option
    ("**(C)** a blue cup", "C", ""),
    (write_scores({"A": 0.1}), "", ""),  # scores of other labels are text like any other
]


@pytest.mark.parametrize(("text", "released", "strict"), AWKWARD, ids=[repr(case[0])[:40] for case in AWKWARD])
def test_awkward_answers_are_read_as_expected_by_hand(text: str, released: str, strict: str) -> None:
    parsed = parse_letters(text, CUPS, RELEASED, several=False)
    if not released:
        assert isinstance(parsed, ParseError)
        assert strict_letters(text, CUPS) is None
        return
    assert not isinstance(parsed, ParseError)
    reading = LetterReading.of(parsed)
    assert "".join(reading.letters) == released
    assert "".join(reading.strict or ()) == strict
    assert reading.scores is None


def test_scores_choose_the_highest_in_both_readings() -> None:
    text = write_scores({"A": 0.1, "B": 0.4, "C": -0.2, "D": 0.4, "E": 0.0})
    parsed = parse_letters(text, CUPS, RELEASED, several=False)
    assert not isinstance(parsed, ParseError)
    reading = LetterReading.of(parsed)
    assert reading.letters == reading.strict == ["B", "D"]
    assert reading.scores == [0.1, 0.4, -0.2, 0.4, 0.0]


def test_a_bare_letter_is_not_the_text_of_a_blank_option() -> None:
    assert strict_letters("(A)", ["a cup", ""]) == ["A"]
    assert strict_letters("(B) ", ["a cup", ""]) == ["B"]


@given(st.text(max_size=300) | st.text(alphabet="(ABab).: \n", max_size=300))
def test_any_text_is_read_or_refused_and_strict_letters_are_released_ones(text: str) -> None:
    parsed = parse_letters(text, CUPS, RELEASED, several=False)
    lowered = text.strip().lower().replace(".", "")
    by_scan = {a for a, b in pairwise(lowered) if b == ")" and a in "abcde"}
    if isinstance(parsed, ParseError):
        assert not by_scan
        return
    reading = LetterReading.of(parsed)
    assert reading.letters == sorted(letter.upper() for letter in by_scan)
    assert set(reading.strict or ()) <= set(reading.letters) & set("ABCDE")
