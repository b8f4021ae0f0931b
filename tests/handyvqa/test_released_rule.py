"""The six figures of the public script, against its transcription, on awkward records."""

import random
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import pytest

from barista_bench.benchmarks.handyvqa.recorded_answers import read_outputs
from tests.handyvqa.made import metrics_of, write_lines
from tests.handyvqa.released_rule import SINGLE, official_metrics

CATEGORIES = (*SINGLE, "objects")
LETTERS = [*ascii_uppercase, "AA", "27", "1"]


def compute_metrics(path: Path) -> dict[str, float]:
    """The primary figures of the categories with answers."""
    by_task = {outputs.task: metrics_of(outputs) for outputs in read_outputs(path)}
    return {task.name: float(str(all_[task.primary])) for task, all_ in by_task.items() if all_["coverage"]}


def made(rng: random.Random, number: int, category: str) -> dict[str, Any]:
    """A record with random awkward fields."""
    count = rng.choice([1, 2, 5, 5, 5, 6, 7, 11, 26, 27, 40])
    options = [f"thing {index}" for index in range(count)]
    if rng.random() < 0.3:
        options[rng.randrange(count)] = rng.choice(["", "  ", options[0]])
    correct = [rng.randrange(count) for _ in range(1 if category != "objects" else rng.randint(1, 5))]
    if rng.random() < 0.3:
        correct = rng.choice([[count], [-1], [99], [0, 1], [count, 0], [0, count], correct * 2])
    if rng.random() < 0.05:
        correct = []
    near = LETTERS[: count + 2] if rng.random() < 0.7 else LETTERS
    lines = [f"({rng.choice(near)}) it" for _ in range(rng.randint(1, 4))]
    prose = ["", "no idea", "B", "B. it", "(b.) it", "b) it", "the cup (on a table)", "( A ) it", "(é) (ß)", "**(C)**"]
    output = rng.choice(["\n".join(lines), "\n".join(lines), rng.choice(prose), f"{lines[0]} {rng.choice(prose)}"])
    record: dict[str, Any] = {
        "id": f"{category}_{number}",
        "category": category,
        "question": rng.choice(["Which?", "Which?", "", " ", None]),
        "options": options,
        "correct_idx": correct,
        "inference": {"prompt": "", "output": output},
    }
    if rng.random() < 0.1:
        del record["question"]
    if rng.random() < 0.1:
        record["inference"]["inferred_scores"] = [rng.choice([rng.random(), 0.5 + 1e-9 * k]) for k in range(count)]
    return record


@pytest.mark.parametrize("seed", range(12))
def test_the_six_metrics_on_awkward_records(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    size = rng.choice([1, 3, 20, 60])
    records = [made(rng, number, category) for category in CATEGORIES for number in range(size)]
    expected = official_metrics(records)
    assert compute_metrics(write_lines(tmp_path / "model.jsonl", records)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("changes", "output", "counts"),
    [
        ({"options": ["cup", "", "jug"]}, "(B) ", {"action": 1.0, "objects": 1.0}),
        ({"question": ""}, "(B)", {"action": 1.0, "objects": 1.0}),
        ({"question": None}, "(B)", {"action": 1.0, "objects": 1.0}),
        ({}, "(F) no such option", {}),  # beyond the last option: unanswered
        ({}, "(F) or (B)", {"action": 1.0, "objects": 1.0}),
        ({"correct_idx": [5]}, "(F)", {}),
        ({"correct_idx": [5]}, "(A)", {"action": 0.0, "objects": 0.0}),
        ({"correct_idx": [-1]}, "(E)", {"action": 0.0, "objects": 0.0}),
        ({"correct_idx": []}, "(A)", {"objects": 0.0}),
        ({"correct_idx": [1, 0]}, "(A)", {"action": 0.0, "objects": 0.7}),
        ({"options": [f"cup {n}" for n in range(30)], "correct_idx": [28]}, "(Z)", {"action": 0.0, "objects": 1 / 30}),
        ({"options": [f"cup {n}" for n in range(30)], "correct_idx": [28]}, "(29)", {}),
        ({"options": [f"cup {n}" for n in range(30)], "correct_idx": [0]}, "(AA)", {"action": 1.0, "objects": 1.0}),
    ],
)
def test_awkward_records_by_hand(
    tmp_path: Path, changes: dict[str, Any], output: str, counts: dict[str, float]
) -> None:
    base = {"question": "Which?", "options": ["a", "b", "c", "d", "e"], "correct_idx": [1]} | changes
    records = [
        {"id": category, "category": category, "inference": {"output": output}, **base}
        for category in ("action", "objects")
    ]
    assert compute_metrics(write_lines(tmp_path / "model.jsonl", records)) == pytest.approx(counts)
    assert official_metrics(records) == pytest.approx(counts)


def test_inferred_scores_are_never_looked_at_where_one_option_is_right(tmp_path: Path) -> None:
    record = {"options": ["a", "b"], "correct_idx": [0], "inference": {"output": "(A)", "inferred_scores": [0.1, 0.9]}}
    records = [record | {"id": category, "category": category} for category in ("action", "objects")]
    path = write_lines(tmp_path / "model.jsonl", records)
    assert compute_metrics(path) == official_metrics(records) == {"action": 1.0, "objects": 0.5}


def test_a_public_record_with_blank_texts_is_a_sample_and_a_warning_that_says_so(tmp_path: Path) -> None:
    record = {"id": "a", "options": ["cup", "", "jug"], "correct_idx": [1], "inference": {"output": "(B)"}}
    (outputs,) = read_outputs(write_lines(tmp_path / "action.jsonl", [record]))
    assert [example.example_id for example in outputs.examples] == ["a"]
    assert [problem.severity for problem in outputs.problems] == ["warning"] * 2
    assert all("a is kept" in problem.what and "left out" not in problem.what for problem in outputs.problems)
