"""Referring: how answers are read and scored."""

from __future__ import annotations

import pytest

from barista_bench.core.task import ParseError, Prediction
from tests.benchmarks.referring_kit import BOXES, TASK


@pytest.mark.parametrize(
    ("answer", "description"),
    [
        ("Description: a red cup", "a red cup"),
        ("A red cup.", "A red cup."),
        ("  DESCRIPTION :  a red cup  ", "a red cup"),
        ("It is a cup.\nDescription: a red cup\nThanks", "a red cup"),
        ("Description: a\nDescription: b", "b"),
        ("Description:\n\na red cup", "a red cup"),
        ("```\nDescription: a red cup\n```", "a red cup"),
        ("My description: a red cup", "My description: a red cup"),
        ("**Description:** a red cup", "**Description:** a red cup"),
        ("two\nlines", "two\nlines"),
    ],
)
def test_answers_are_read_as_released(answer: str, description: str) -> None:
    assert TASK.parse(answer, {}, BOXES) == Prediction({"description": description})


@pytest.mark.parametrize("answer", ["", "  \n ", "\u00a0\t"])
def test_an_empty_answer_is_a_parse_error(answer: str) -> None:
    parsed = TASK.parse(answer, {}, BOXES)
    assert isinstance(parsed, ParseError)
