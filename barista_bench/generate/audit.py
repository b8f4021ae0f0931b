"""Audit choice questions: their balance, cues in their texts, and the share that a guesser answers correctly."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from scipy.stats import chisquare

from barista_bench.benchmarks import get_task
from barista_bench.core.statistics import adjust_p_values
from barista_bench.data.dataset import config_names, open_examples
from barista_bench.errors import DataError
from barista_bench.files.reading import read_json_lines
from barista_bench.generate.candidates import are_alike
from barista_bench.generate.family import FAMILIES, family_class
from barista_bench.generate.shortcuts import GUESSERS, GuessedSet, TextQuestion, guess
from barista_bench.scene_graph.domain import load_domain

MAX_BYTES = 2**30
"""Maximum number of bytes of a file of items."""
_REMEDY = "generate the folder again"
MOST_NAMED = 10
"""Maximum number of answers, and of pairs of similar choices, in a list."""


class GuesserResult(NamedTuple):
    """The result of a guesser, or of the opposite guesser, on one task.

    `p_adjusted` is the p-value adjusted by Holm's procedure over all results of an audit.
    """

    guesser: str
    guesses: GuessedSet
    p_adjusted: float


class TaskAudit(NamedTuple):
    """The audit of one task's set.

    Args:
        task: name of the task.
        items: number of questions. `videos` is the number of videos.
        per_video: minimum, median and maximum number of questions per video.
        answers: texts of right choices with the number of times that they are right, the most frequent first.
            `distinct_answers` is the number of different texts.
        places: how often the right choice is first, second, ... Only questions with exactly one right choice count.
        places_p: p-value of `places` under equally likely places; None without such questions.
        alike: (item number, text, text) for two choices of a question that a reader can hardly tell apart.
        guessers: results of the guessers, the most successful first.
    """

    task: str
    items: int
    videos: int
    per_video: tuple[int, float, int]
    answers: tuple[tuple[str, int], ...]
    distinct_answers: int
    places: tuple[int, ...]
    places_p: float | None
    alike: tuple[tuple[int, str, str], ...]
    guessers: tuple[GuesserResult, ...] = ()

    @property
    def best(self) -> GuesserResult:
        """Return the result with the smallest p-value."""
        return self.guessers[0]


def choice_sets(data: str, benchmark: str, split: str = "all") -> dict[str, list[TextQuestion]]:
    """Return the choice questions of a built dataset by task. Questions with hidden answers are left out.

    Raises:
        DataError, ConfigError: the dataset or split does not exist, or none of its tasks has choices.
    """
    sets: dict[str, list[TextQuestion]] = {}
    for config in config_names(data):
        task = get_task(benchmark, config)
        for example in open_examples(data, benchmark, config, split=split).examples:
            choices, right = task.choices(example), set(task.correct_choices(example))
            if choices and right:
                correct = tuple(index for index, label in enumerate(choices) if label in right)
                question = "" if (text := example.inputs.get("question")) is None else str(text)
                text_question = TextQuestion(example.video_id, question, tuple(choices.values()), correct)
                sets.setdefault(config, []).append(text_question)
    if not sets:
        raise DataError(f"{data}: none of its tasks has choices. Fix: name a dataset with multiple choice")
    return sets


def generated_sets(folder: Path) -> dict[str, list[TextQuestion]]:
    """Return the choice questions of a folder that `generate` wrote, by family and subtask; empty for other folders.

    Raises:
        DataError: a file of items cannot be read.
    """
    sets: dict[str, list[TextQuestion]] = {}
    for family in FAMILIES:
        path = folder / f"{family}.items.jsonl"
        subtasks = family_class(family)(load_domain()).choice_subtasks
        rows = read_json_lines(path, MAX_BYTES, _DECODER.decode, what="is no file of items", remedy=_REMEDY)
        for _, item in rows if path.is_file() else ():
            if item.subtask in subtasks:
                texts = tuple(choice.text for choice in item.choices)
                level = item.difficulty.level if item.difficulty else ""
                text_question = TextQuestion(item.video_id, item.question, texts, item.correct, item.form, level)
                sets.setdefault(f"{family} {item.subtask}", []).append(text_question)
    return sets


class _ItemText(msgspec.Struct):
    text: str


class _ItemDifficulty(msgspec.Struct):
    level: str


class _ItemLine(msgspec.Struct):
    """The fields that an audit reads from a line of `<family>.items.jsonl`."""

    subtask: str
    video_id: str
    question: str
    choices: tuple[_ItemText, ...]
    correct: tuple[int, ...]
    form: str = ""
    difficulty: _ItemDifficulty | None = None


_DECODER = msgspec.json.Decoder(_ItemLine)


def audit_sets(sets: Mapping[str, Sequence[TextQuestion]]) -> list[TaskAudit]:
    """Return the audit of each task's questions. Tasks without questions are left out."""
    audits = [_audit(task, questions) for task, questions in sets.items() if questions]
    guessed_sets = [
        (audit.task, guesser, guesses)
        for audit in audits
        for guesser in GUESSERS
        for guesses in guess(sets[audit.task], guesser) or ()
    ]
    results: dict[str, list[GuesserResult]] = defaultdict(list)
    p_values = adjust_p_values([guesses.p_value for _, _, guesses in guessed_sets])
    for (task, guesser, guesses), p in zip(guessed_sets, p_values, strict=True):
        results[task].append(GuesserResult(guesser, guesses, p))
    for rows in results.values():
        rows.sort(key=lambda row: (row.guesses.p_value, -row.guesses.accuracy))
    return [audit._replace(guessers=tuple(results[audit.task])) for audit in audits]


def _audit(task: str, questions: Sequence[TextQuestion]) -> TaskAudit:
    videos = Counter(question.video_id for question in questions)
    answers = Counter(question.choices[index] for question in questions for index in question.correct)
    single = [question for question in questions if len(question.correct) == 1]
    places = np.bincount([question.correct[0] for question in single], minlength=1)
    # Only questions with one right choice count. Questions with fewer choices have fewer places.
    expected = np.array(
        [sum(1 / len(q.choices) for q in single if index < len(q.choices)) for index in range(len(places))]
    )
    return TaskAudit(
        task=task,
        items=len(questions),
        videos=len(videos),
        per_video=(min(videos.values()), float(np.median(list(videos.values()))), max(videos.values())),
        answers=tuple(answers.most_common(MOST_NAMED)),
        distinct_answers=len(answers),
        places=tuple(places.tolist()),
        places_p=float(chisquare(places, expected * places.sum() / expected.sum()).pvalue) if single else None,
        alike=tuple(
            (number, first, second)
            for number, question in enumerate(questions)
            for first, second in combinations(question.choices, 2)
            if are_alike(first, second)
        ),
    )
