"""Reasoning is never taken for an answer, and an answer never loses text."""

import pytest
from hypothesis import given, strategies as st

from barista_bench.models.answers import split_reasoning

TAGS = ("<think>", "</think>")
plain = st.text().filter(lambda text: not any(tag in text for tag in TAGS))
tagged = st.lists(st.sampled_from([*TAGS, "<think", "think>", "/", "cup", " ", "\n", "é"])).map("".join)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (None, "")),
        ("  left \n", (None, "left \n")),
        ("<think></think>left", ("", "left")),
        ("<think>a</think>\n\nleft\n", ("a", "left")),
        ("a</think>left", ("a", "left")),
        ("<think>a", ("a", "")),
        ("<think>", ("", "")),
        ("left <think>a", ("left a", "")),
        ("<think>a</think>left<think>b", ("aleftb", "")),
        ("<think>a</think>left<think>b</think>right", ("aleftb", "right")),
        ("<think>a<think>b</think>left", ("ab", "left")),
        ("</think>", ("", "")),
    ],
)
def test_reasoning_is_split_from_the_answer_by_its_tags(text, expected):
    assert split_reasoning(text) == expected


@given(tagged)
def test_an_answer_holds_no_tag_and_ends_the_text(text):
    thought, answer = split_reasoning(text)
    assert not any(tag in answer for tag in TAGS)
    assert answer in text
    assert (thought is None) == (not any(tag in text for tag in TAGS))


def test_tags_of_other_models_are_followed():
    assert split_reasoning("[T]a[/T]left", ("[T]", "[/T]")) == ("a", "left")
    assert split_reasoning("<think>a</think>left", ("[T]", "[/T]")) == (None, "<think>a</think>left")
