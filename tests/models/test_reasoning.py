"""Reasoning is never taken for an answer, and an answer never loses text."""

from itertools import chain

import pytest
from hypothesis import given, strategies as st

from barista_bench.models.answers import OTHER_TAGS, split_reasoning, tags_in

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


WRITTEN = [
    "<thinking>{}</thinking>{}",
    "\n<thinking>\n{}\n</thinking>\n\n{}",
    "<thought>{}</thought>{}",
    "[THINK]{}[/THINK]{}",
    "<seed:think>{}</seed:think>{}",
    "◁think▷{}◁/think▷{}",
    "<|START_THINKING|>{}<|END_THINKING|>{}",
    "<|channel>thought\n{}<channel|>{}",
    "<unused94>thought\n{}<unused95>{}",
    "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>{}",
    "<think>{}</think>{}",
]


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("answer", ["left", '{"bboxes": [[1, 2, 3, 4]]}', "(B) <b>left</b>"])
def test_thoughts_of_any_common_model_are_seen_without_a_setting(written: str, answer: str) -> None:
    text = written.format("The cup is on the left.", answer)
    thought, read = split_reasoning(text, tags_in(text))
    assert read == answer
    assert "The cup is on the left." in (thought or "")
    without_opening = text[text.index("The cup") :]  # the prompt had opened the thinking
    assert split_reasoning(without_opening, tags_in(without_opening))[1] == answer


@pytest.mark.parametrize("written", WRITTEN[:-1])
def test_truncated_thoughts_are_no_answer_and_an_answer_that_is_only_tags_stays(written: str) -> None:
    opening, _, rest = written.partition("{}")
    cut_off = f"{opening}The cup is"
    assert split_reasoning(cut_off, tags_in(cut_off, is_cut=True))[1] == ""
    assert split_reasoning(cut_off, tags_in(cut_off)) == (None, cut_off)
    closed = f"{opening}left{rest.partition('{}')[0]}"
    assert split_reasoning(closed, tags_in(closed)) == (None, closed)


@pytest.mark.parametrize(
    "text",
    [
        "left",
        "The sign says [THINK], so left.",
        "I was thinking: <thought> of the left cup.",
        '["<thinking>"]',
        "left <thinking>or right?</thinking>",
        "<answer>left</answer>",
    ],
)
def test_an_answer_that_only_mentions_a_tag_is_kept_whole(text: str) -> None:
    assert split_reasoning(text, tags_in(text)) == (None, text)


@given(st.text() | st.lists(st.sampled_from([*TAGS, *chain(*OTHER_TAGS), "cup", " "])).map("".join), st.booleans())
def test_with_any_tags_only_thoughts_are_removed_from_an_answer(text: str, is_cut: bool) -> None:
    tags = tags_in(text, is_cut=is_cut)
    _, answer = split_reasoning(text, tags)
    assert answer.strip() or not text.strip() or tags == TAGS or is_cut
