"""Recorded outputs of other harnesses: the public result files, `question`, `options`, `correct_idx` and `inference`.

`inference.output` is what a model wrote; `inference.inferred_scores` (or `inferred_scores`), one number an option, what
a dual encoder scored. As in the released script, scores go first for objects and are never looked at for the questions
with one right option. No clip is needed: frames are named, and never read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from barista_bench.benchmarks.handyvqa.clips import Clip
from barista_bench.benchmarks.handyvqa.objects import Objects
from barista_bench.benchmarks.handyvqa.questions import ChoiceTask
from barista_bench.benchmarks.handyvqa.records import MAX_OPTIONS, MCQ_CATEGORIES, Item, ItemRecord, letters, read_items
from barista_bench.benchmarks.handyvqa.release import Question, checked
from barista_bench.benchmarks.handyvqa.single_answer import Action, Location, Parts, Process, State
from barista_bench.core.benchmark import RecordedAnswer, RecordedAnswers
from barista_bench.core.task import Example
from barista_bench.errors import DataError
from barista_bench.scene_graph import Problem

MAX_OUTPUT = 2**20
"""Characters of an output that are kept."""

CHOICE_TASKS: dict[str, type[ChoiceTask]] = {
    task.name: task for task in (Action, Process, Location, State, Parts, Objects)
}

Scores = Annotated[list[float], Meta(max_length=MAX_OPTIONS)]


class Inference(msgspec.Struct, frozen=True):
    """What a model was asked and said; the prompt is not read."""

    output: str | None = None
    inferred_scores: Scores | None = None


class AnsweredRecord(ItemRecord, frozen=True, kw_only=True):
    """A question with a model's output."""

    inference: Inference | None = None
    inferred_scores: Scores | None = None


def read_outputs(path: Path) -> list[RecordedAnswers]:
    """The answers of one model by category, in canonical order. `path`: see `records.read_items`.

    The model is called after the file or folder, which the public files do not name.

    Raises:
        DataError: no record can be used. One that cannot be used costs itself, and is named in `problems`.
    """
    items, problems = read_items(path, AnsweredRecord)
    questions = checked(items, problems)
    answered = {(item.category, item.item_id): item for item in items}
    found = []
    for category in MCQ_CATEGORIES:
        asked = [question for question in questions if question.category == category]
        if asked:
            task = CHOICE_TASKS[category]
            answers = [_answer(answered[category, question.item_id]) for question in asked]
            examples = tuple(_example(task, question) for question in asked)
            found.append(RecordedAnswers(model_name(path), task, examples, tuple(answers)))
    if not found:
        refuse(path, problems)
        raise DataError(f"{path}: no multiple-choice records. Remedy: use --format handyvqa_rvos for masks")
    return [replace(found[0], problems=tuple(problems)), *found[1:]]


def refuse(path: Path, problems: Sequence[Problem]) -> None:
    """Raise DataError where a record was left out."""
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors:
        raise DataError(f"{path}: {len(errors)} records cannot be used, and no other, first: {errors[0]}")


def model_name(path: Path) -> str:
    """What a model is called whose outputs lie there."""
    return path.resolve().stem if path.is_file() else path.resolve().name


def _example(task: type[ChoiceTask], question: Question) -> Example:
    clip = question.clip or Clip(f"{question.item_id}_frames", True)
    inputs, target = task.stated(question)
    return task.made(question, clip, (0,), inputs, target, is_shown=False)


def _answer(item: Item[AnsweredRecord]) -> RecordedAnswer:
    record = item.record
    said = record.inference or Inference()
    scores = record.inferred_scores or said.inferred_scores
    if scores is not None and item.category == Objects.name:
        if len(scores) != len(record.options):
            text = f"{len(scores)} inferred_scores for {len(record.options)} options"
            return RecordedAnswer(item.item_id, 0, None, f"{item.file}: {item.item_id}: {text}")
        # Every digit, unlike `write_scores`: rounding would make ties.
        ranked = {"scores": dict(zip(letters(len(scores)), scores, strict=True))}
        return RecordedAnswer(item.item_id, 0, msgspec.json.encode(ranked).decode())
    if said.output is None:
        return RecordedAnswer(item.item_id, 0, None, f"{item.file}: {item.item_id}: no inference.output")
    return RecordedAnswer(item.item_id, 0, said.output[:MAX_OUTPUT])
