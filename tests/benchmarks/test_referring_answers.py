"""Referring: how answers are read and scored."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from barista_bench.benchmarks.barista.common import domain_vocabulary
from barista_bench.benchmarks.barista.referring import ReferringSampling
from barista_bench.core.task import Example, ParseError, Prediction
from tests.benchmarks.answering import answer_all
from tests.benchmarks.referring_kit import BOXES, TASK, add_object, derive
from tests.releases import (
    document,
    relation,
    write_release,
)


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


@pytest.mark.parametrize("hostile", ["\n" * 10**6, "description\n" * 10**5, "description:" + " " * 10**6, "\r" * 10**6])
def test_hostile_answers_are_read_in_linear_time(hostile: str) -> None:
    started = time.perf_counter()
    TASK.parse(hostile + "x", {}, BOXES)
    assert time.perf_counter() - started < 2


def varied_release(root: Path) -> Path:
    """Many categories and colours, so that no single sentence fits all."""
    rng = random.Random(7)
    names = sorted(set(domain_vocabulary()) - {"left hand", "right hand"})[:30]
    for number in range(3):
        content = document()
        content["relations"] = []
        for index, category in enumerate(rng.sample(names, 20)):
            color = rng.choice(["red", "white", "green", "black", "silver"])
            add_object(content, f"o-{index}", category, (5 + 4 * index, 20, 8, 8), color=color)
            value = rng.choice(["on", "under", "inside", "attached to"])
            if index:
                content["relations"].append(relation(f"o-{index}", f"o-{index - 1}", "position", value, (0, 40)))
        write_release(root, f"v{number}", content, video=False)
    return root


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory) -> list[Example]:
    return derive(varied_release(tmp_path_factory.mktemp("varied")), ReferringSampling(frame_step=10))


@pytest.mark.parametrize(
    ("answer", "ceiling"),
    [
        (lambda e: "", 0.0),
        (lambda e: "I cannot tell.", 0.02),
        (lambda e: "Description: A white coffee cup on a saucer.", 0.25),
        (lambda e: f"Description: {' '.join(domain_vocabulary())}", 0.2),
        (lambda e: TASK.random_answer(e, random.Random(e.example_id), BOXES), 0.25),
    ],
    ids=["empty", "prose", "constant", "all categories", "chance"],
)
def test_blind_answers_stay_low(varied: list[Example], answer: Any, ceiling: float) -> None:
    assert answer_all(TASK, varied, answer)["lexical_f1"] <= ceiling
