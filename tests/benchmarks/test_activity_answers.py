"""How answers to activity questions are read, by the released rule and by the paper's."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from barista_bench.benchmarks.barista.activity import Activity
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.task import Prediction

TASK = Activity()
BOXES = BoxFormat()
FOUR = {"choices": [{"choice_id": c, "class_id": c, "text": f"Do {c}", "verb": "do"} for c in "ABCD"]}


@pytest.mark.parametrize(
    ("answer", "choice"),
    [
        ("ANSWER: B", "B"),
        ("answer: b", "B"),
        ("Final answer: C.", "C"),
        ("The hand turns it.\nANSWER: D\n", "D"),
        ("ANSWER: A\nno, wait\nANSWER: B", "B"),
        ("ANSWER: A\nANSWER: Z", "A"),
        ("ANSWER: C\nANSWER:", "C"),
        ("**ANSWER: B**", "B"),
        ("ANSWER : B", "B"),
        ("Final \n answer:B", "B"),
        ("ANSWER: ANSWER: <B", "B"),
        ("ANSWER: <CHOICE_ID: B>", "B"),
        ("ANSWER: choice_idB", "B"),
        ("<CHOICE_ID  b >", "B"),
        *((f"ANSWER: {said}", None) for said in ("(B)", "**B**", '"B"', "[B]", "<<B>>", "B-x", "B_1", "-B")),
        ("**ANSWER:** B", None),
        ("ANSWER: CHOICE_CHOICE_B", None),
        ("<CHOICE_ID:B", None),
        ("<CHOICE_IDB>", None),
        ("answers: B", None),
        ("_answer: B", None),
        ("ANSWER: <B>", "B"),
        ("ANSWER:\n\nB", "B"),
        ("ANSWER: CHOICE_B", "B"),
        ("ANSWER: <CHOICE_ID> B", "B"),
        ("ANSWER: <CHOICE_ID_B>", "B"),
        ("ANSWER: B. Do B", "B"),
        ("I choose <CHOICE_ID_A>, or rather <CHOICE_ID_C>", "C"),
        ("<choice_id_d> and <CHOICE_ID_Z>", "D"),
        ("ANSWER: none\n<CHOICE_ID_A>", "A"),
        ("ANSWER: <CHOICE_ID>", None),
        ("ANSWER: the B", None),
        ("ANSWER: BB", None),
        ("ANSWER: Do B", None),
        ("MYANSWER: B", None),
        ("B", None),
        ("(B)", None),
        ("ANSWER B", None),
        ("", None),
    ],
)
def test_answers_are_read_as_released(answer: str, choice: str | None) -> None:
    parsed = TASK.parse(answer, FOUR, BOXES)
    assert (parsed.value["choice_id"] if isinstance(parsed, Prediction) else None) == choice


@pytest.mark.parametrize("answer", ["**ANSWER:** B", "ANSWER: (B)", "ANSWER: **B**", 'ANSWER: "B"', "ANSWER: <<B>>"])
def test_the_papers_protocol_passes_over_punctuation(answer: str) -> None:
    assert Activity(options={"protocol": "paper"}).parse(answer, FOUR, BOXES) == Prediction({"choice_id": "B"})


@given(st.text(max_size=100), st.sampled_from("ABCD"))
def test_a_rationale_before_the_last_line_changes_nothing(rationale: str, choice: str) -> None:
    parsed = TASK.parse(f"{rationale}\nANSWER: {choice}", FOUR, BOXES)
    assert isinstance(parsed, Prediction)
    assert parsed.value["choice_id"] == choice
