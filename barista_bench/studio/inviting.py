"""Assigns questions to the people of a study: practice, questions that count, repeats and attention checks."""

from __future__ import annotations

import logging
import math
import random
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from barista_bench.core.example import Example, content_seed
from barista_bench.core.guarding import unit_of
from barista_bench.core.task import Task
from barista_bench.errors import ConfigError
from barista_bench.files.owned_folders import check_output_path
from barista_bench.files.writing import atomic_write, locked_for_update
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.opening import ALL
from barista_bench.runs.log.inputs import asks_in_steps
from barista_bench.runs.run_folder import OpenedTask
from barista_bench.studio.people import choose_order, sample_examples, tasks_to_ask
from barista_bench.studio.study import (
    STUDY_FILE,
    Participant,
    QuestionKind,
    Study,
    StudyQuestion,
    hash_of,
    is_study,
    read_study,
)
from barista_bench.studio.workspace import check_person

log = logging.getLogger(__name__)

PRACTICE = 2
"""Number of practice questions per task.

Their right answers are shown, and they come before the questions that count.
"""
ITEMS_A_CHECK = 10
"""A task has one repeat and one attention check per this many questions, and at least one of each."""
MOST_PEOPLE = 1000
ATTENTION_CHOICES = {"A": "first", "B": "second", "C": "third", "D": "fourth"}
_TOKEN_BYTES = 32


def invite(folder: Path, study: Study, names: Sequence[str]) -> dict[str, str]:
    """Invite people to a new or existing study; return the link of each person by name.

    A person who is invited again gets a new link and continues; the old link becomes invalid.

    Args:
        study: the study, without participants.

    Raises:
        ConfigError: a name cannot be the name of a folder, the existing study is different, or there are too few
            examples.
        DataError: a dataset or the study cannot be read.
    """
    for name in names:
        check_person(name, "--participants")
    if len({name.casefold() for name in names}) < len(names) or not names:
        raise ConfigError("--participants: a name is missing or repeated. Fix: name each person once")
    check_output_path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tokens = {name: secrets.token_urlsafe(_TOKEN_BYTES) for name in names}
    with locked_for_update(folder / STUDY_FILE) as path:
        earlier_study = read_study(folder) if is_study(folder) else study
        if msgspec.structs.replace(earlier_study, participants=()) != study:
            remedy = "give the same data and options, or another --out"
            raise ConfigError(f"{folder}: is a study of other questions, or its links lead elsewhere. Fix: {remedy}")
        questions_of = {person.name: person.questions for person in earlier_study.participants}
        people = list(dict.fromkeys([*questions_of, *names]))
        if len({name.casefold() for name in people}) < len(people) or len(people) > MOST_PEOPLE:
            raise ConfigError(f"{folder}: has names that differ only in case, or more than {MOST_PEOPLE} people")
        if any(name not in questions_of for name in names):
            planned = _planned_questions(folder, study, people)
            questions_of = {name: questions_of.get(name, planned[name]) for name in people}
        hashes = {person.name: person.token_sha256 for person in earlier_study.participants}
        hashes |= {name: hash_of(token) for name, token in tokens.items()}
        invited = tuple(Participant(name, hashes[name], questions_of[name]) for name in people)
        with atomic_write(path, durable=True) as partial:
            partial.touch(mode=0o600)
            partial.write_bytes(msgspec.json.encode(msgspec.structs.replace(study, participants=invited)))
    return {name: f"{study.origin}/?token={token}" for name, token in tokens.items()}


def study_tasks(study: Study, folder: Path) -> list[tuple[RunConfig, OpenedTask]]:
    """Return the tasks of a study, each with the settings of a run; the caller supplies the person.

    Raises:
        ConfigError: a task is in no dataset, is in two datasets, or asks in several steps.
        DataError: a dataset cannot be opened.
    """
    opened_tasks: dict[tuple[str, str], tuple[RunConfig, OpenedTask]] = {}
    for data in study.data:
        for config, opened in tasks_to_ask(Path(data), folder, "anyone"):
            task = opened.task
            if ALL in study.tasks and asks_in_steps(task):
                log.warning("left out: %s/%s asks in several steps", task.benchmark, task.name)
            elif ALL in study.tasks or task.name in study.tasks:
                if asks_in_steps(task):
                    raise ConfigError(
                        f"{task.name} asks in several steps, and people are asked once. Fix: leave it out"
                    )
                if opened_tasks.setdefault((task.benchmark, task.name), (config, opened))[1] is not opened:
                    raise ConfigError(f"{data}: a second set of {task.name}. Fix: name one dataset of a benchmark")
    unknown_tasks = {name for name in study.tasks if name != ALL} - {name for _, name in opened_tasks}
    if unknown_tasks or not opened_tasks:
        raise ConfigError(
            f"no dataset has {', '.join(sorted(unknown_tasks)) or 'a task'}. Fix: name tasks of the datasets"
        )
    return list(opened_tasks.values())


def _planned_questions(folder: Path, study: Study, people: Sequence[str]) -> dict[str, tuple[StudyQuestion, ...]]:
    """Return each person's questions: task by task, practice first, in a separate order for each person."""
    planned: dict[str, dict[str, list[StudyQuestion]]] = {person: {} for person in people}
    for _, opened in study_tasks(study, folder):
        task, examples = opened.task, opened.examples.examples
        practice, counted_examples = _split_practice(task, examples)
        units = choose_order(task, counted_examples)
        shared = list(_next_positions(units, study.overlap))
        for person in people:
            positions = [*shared, *_next_positions(units, study.items - study.overlap)]
            if study.overlap < study.items > len(positions):
                needed = study.overlap + len(people) * (study.items - study.overlap)
                raise ConfigError(
                    f"{task.name}: {len(people)} people with {study.items} questions each, {study.overlap} of them "
                    f"shared, need {needed}, and the set has {len(counted_examples)} beside those for practice. "
                    "Fix: give fewer --items, or more --overlap"
                )
            order = random.Random(content_seed("study", person, task.benchmark, task.name))  # noqa: S311
            planned[person][f"{task.benchmark}/{task.name}"] = [
                *(_study_question("practice", task, example) for example in practice),
                *_with_checks(task, [counted_examples[position] for position in positions], order),
            ]
    return {
        person: tuple(
            question
            for name in sorted(by_task, key=lambda name: content_seed("study", person, name))
            for question in by_task[name]
        )
        for person, by_task in planned.items()
    }


def _split_practice(task: Task, examples: Sequence[Example]) -> tuple[list[Example], list[Example]]:
    """Return the examples for practice, and the examples that may count.

    Practice comes from the smallest resampling unit (usually a video). No example of this unit counts, since practice
    shows the right answers, and these would reveal answers to related examples.
    """
    units: dict[str, list[Example]] = {}
    for example in examples:
        if task.has_answer(example):
            units.setdefault(unit_of(task, example), []).append(example)
    if not units:
        raise ConfigError(f"{task.name}: the references are hidden. Fix: leave the task out")
    large_enough = [unit for unit, members in units.items() if len(members) >= PRACTICE] or list(units)
    practice_unit = min(large_enough, key=lambda unit: (len(units[unit]), content_seed("practice", unit)))
    practice = [
        units[practice_unit][index] for index in sample_examples(task, units[practice_unit], PRACTICE)[:PRACTICE]
    ]
    if len(units) > 1:
        practised_ids = {example.example_id for example in units[practice_unit]}
    else:
        log.warning("%s: practice and what counts are of one video, since the set has no other", task.name)
        practised_ids = {example.example_id for example in practice}
    return practice, [example for example in examples if example.example_id not in practised_ids]


def _next_positions(units: Iterator[list[int]], number: int) -> Iterator[int]:
    """Yield the positions of the next units, until there are at least `number` positions or no units are left."""
    while number > 0 and (unit := next(units, None)) is not None:
        number -= len(unit)
        yield from unit


def _with_checks(task: Task, items: Sequence[Example], order: random.Random) -> list[StudyQuestion]:
    """Return the questions that count in random order, with repeats and attention checks.

    Some questions of the first half are repeated. A repeat comes later by half of the number of questions, or at the
    end.
    """
    shuffled = order.sample(items, len(items))
    checks, half = math.ceil(len(items) / ITEMS_A_CHECK), math.ceil(len(items) / 2)
    placed_questions = [
        (float(index), _study_question("item", task, example)) for index, example in enumerate(shuffled)
    ]
    repeated = order.sample(range(half), min(checks, len(items) // 2))
    placed_questions += [(index + half + 0.5, _study_question("repeat", task, shuffled[index])) for index in repeated]
    for _ in range(checks):
        place, label = order.randint(1, len(items)) - 0.25, order.choice(sorted(ATTENTION_CHOICES))
        placed_questions.append((place, StudyQuestion("attention", task.benchmark, task.name, expected=label)))
    return [question for _, question in sorted(placed_questions, key=lambda pair: pair[0])]


def _study_question(kind: QuestionKind, task: Task, example: Example) -> StudyQuestion:
    return StudyQuestion(kind, task.benchmark, task.name, example.example_id)
