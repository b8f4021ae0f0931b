"""A user's own questions in HanDyVQA's layout are read plainly, the benchmark's by its released rules."""

import json
from pathlib import Path
from typing import Any

import pytest

from barista_bench.api import evaluate
from barista_bench.benchmarks.handyvqa import Action, Objects
from barista_bench.benchmarks.handyvqa.letters import PLAIN, RELEASED, LetterReading
from barista_bench.benchmarks.handyvqa.release import open_release
from barista_bench.core.example import Example, Prediction, write_scores
from barista_bench.core.task import Task
from barista_bench.data.folder import build
from barista_bench.runs.score.scoring import score
from tests.handyvqa.made import BOXES, examples_of, record, write_folder, write_lines

SAYS_B = "It cannot be (A), since no cup is touched. The answer is (B)."


def question_of(folder: Path, task: Task, **changes: Any) -> Example:
    """The example of one record with an existing clip."""
    write_folder(folder / "action_0000_frames")
    source = write_lines(folder / "q.jsonl", [record(category=task.name, **changes)])
    (example,) = examples_of(task, open_release(source, folder), frames=2)
    assert isinstance(example, Example)
    return example


def letters_of(task: Task, example: Example, text: str) -> tuple[list[str], list[str] | None]:
    parsed = task.parse(text, example.inputs, BOXES)
    reading = LetterReading.of(parsed if isinstance(parsed, Prediction) else None)
    return reading.letters, reading.strict


def test_a_record_with_a_models_output_is_the_benchmarks_and_any_other_ones_own(tmp_path: Path) -> None:
    own = question_of(tmp_path / "own", Action())
    released = question_of(tmp_path / "released", Action(), inference={"prompt": "", "output": "(B) a red cup"})
    assert (own.inputs["reading"], released.inputs["reading"]) == (PLAIN, RELEASED)
    assert letters_of(Action(), own, SAYS_B) == (["B"], ["B"])
    assert letters_of(Action(), released, SAYS_B) == (["A", "B"], None)
    assert letters_of(Action(), own, "The answer is B.") == (["B"], ["B"])
    assert letters_of(Action(), released, "The answer is B.") == ([], None)


def test_the_option_sets_the_reading_of_any_question(tmp_path: Path) -> None:
    example = question_of(tmp_path, Action())
    assert letters_of(Action(options={"reading": RELEASED}), example, SAYS_B) == (["A", "B"], None)
    before_the_field = {name: value for name, value in example.inputs.items() if name != "reading"}
    for task, letters in ((Action(), ["A", "B"]), (Action(options={"reading": PLAIN}), ["B"])):
        parsed = task.parse(SAYS_B, before_the_field, BOXES)
        assert isinstance(parsed, Prediction)
        assert LetterReading.of(parsed).letters == letters


def test_of_objects_several_are_read_and_scores_as_ever(tmp_path: Path) -> None:
    example = question_of(tmp_path, Objects(), correct_idx=[1, 3])
    assert letters_of(Objects(), example, "Answer: D and B") == (["B", "D"], ["B", "D"])
    assert letters_of(Objects(), example, "a green cup, a red cup") == (["B", "D"], ["B", "D"])
    assert letters_of(Objects(), example, "Neither A nor C.") == ([], None)
    scores = write_scores(dict(zip("ABCDE", (0.1, 0.9, 0.2, 0.9, 0.0), strict=True)))
    assert letters_of(Objects(), example, scores) == (["B", "D"], ["B", "D"])


def test_own_questions_are_scored_as_they_were_answered_from_build_to_score(tmp_path: Path) -> None:
    answers = [SAYS_B, "The answer is B.", "B", "**Answer:** B", "答案：B", "I cannot tell."]
    names = [f"q{number}" for number in range(len(answers))]
    for name in names:
        write_folder(tmp_path / "clips" / f"{name}_frames", frames=2, size=(16, 16))
    source = write_lines(tmp_path / "q.jsonl", [record(name, category="action") for name in names])
    built = tmp_path / "set"
    build(
        source,
        built,
        benchmark="handyvqa",
        videos=tmp_path / "clips",
        configs=["action"],
        sampling={"frames": 2},
        cache=False,
    )
    rows = ({"example_id": name, "answer": text} for name, text in zip(names, answers, strict=True))
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    model = f"predictions:{tmp_path / 'answers.jsonl'}"
    settings = {"benchmark": "handyvqa", "task": "action", "box_format": "xyxy/pixels", "repetitions": 1}
    (run,) = evaluate(built, model, out=tmp_path / "runs", **settings).runs
    assert run.results.metrics["accuracy_counted"].mean == pytest.approx(5 / 6)
    assert run.results.coverage.statuses["parse_error"] == 1
    released = score(run.folder, options={"reading": RELEASED})
    assert released.results.metrics["accuracy_counted"].mean == 0
    assert released.results.options["reading"] == RELEASED
