"""Aids: true facts that a question depends on, and their controls."""

from dataclasses import replace
from pathlib import Path

import pytest

from barista_bench.aids.facts import TOLERANCE
from barista_bench.aids.graph_rows import read_graph_rows
from barista_bench.aids.levels import LEVELS
from barista_bench.aids.task_aids import Aid, TaskAids, check_admitted, parse_aids
from barista_bench.aids.texts import AidBook
from barista_bench.benchmarks import get_task
from barista_bench.benchmarks.barista.temporal_vqa import TemporalVQA
from barista_bench.core.boxes import DEFAULT_BOX_FORMAT, BoxFormat
from barista_bench.errors import ConfigError, DataError
from tests.diagnosis.conftest import AIDED_TASKS, TASKS, Aids


@pytest.mark.parametrize("name", TASKS)
def test_an_inert_aid_has_the_same_number_of_lines_and_about_the_same_number_of_words(name: str, aids_of: Aids) -> None:
    _, examples, book = aids_of(name)
    compared = 0
    for example in examples:
        for level in book.levels(example):
            texts = [book.text(example, [Aid(level, kind)], DEFAULT_BOX_FORMAT) or "" for kind in ("true", "inert")]
            true, inert = (text.split() for text in texts)
            assert texts[0].count("\n") == texts[1].count("\n"), example.example_id
            assert abs(len(true) - len(inert)) <= TOLERANCE * len(true), example.example_id
            compared += 1
    assert compared


@pytest.mark.parametrize("name", TASKS)
def test_an_inert_aid_repeats_no_line_of_the_true_one(name: str, aids_of: Aids) -> None:
    _, examples, book = aids_of(name)
    for example in examples:
        for level in book.levels(example):
            assert not set(book.needed(example, level)) & set(book.inert(example, level)), example.example_id


@pytest.mark.parametrize("name", TASKS)
def test_another_answer_follows_from_a_false_aid(name: str, aids_of: Aids) -> None:
    task, examples, book = aids_of(name)
    targets = [
        (example, false.target)
        for example in examples
        for level in task.aids.needed_levels(example)
        if (false := book.false(example, level)) is not None
    ]
    assert targets
    for example, target in targets:
        assert target != example.target, example.example_id
        task.target_type.read(target)


def test_boxes_are_written_in_the_models_format(aids_of: Aids) -> None:
    _, (example, *_), book = aids_of("relations")
    text = book.text(example, [Aid("objects")], BoxFormat("yxyx", 100)) or ""
    assert "[y_min, x_min, y_max, x_max], integers from 0 to 100" in text
    assert "mark 1: " in text


def test_the_same_question_has_the_same_aids(aids_of: Aids) -> None:
    (_, examples, first), (_, _, second) = aids_of("temporal_vqa"), aids_of("temporal_vqa")
    aids = parse_aids(["objects:inert", "relations:inert", "states:false"])
    both = [[book.parts(example, aids, DEFAULT_BOX_FORMAT) for example in examples] for book in (first, second)]
    assert both[0] == both[1]


def test_a_task_admits_no_aid_of_the_level_that_it_asks() -> None:
    for task in AIDED_TASKS:
        assert not any(map(task.aids.asks, task.aids.admitted)), (task.benchmark, task.name)
    with pytest.raises(ConfigError, match="relations asks about that level"):
        check_admitted(get_task("barista", "relations"), parse_aids(["relations"]))


def test_a_task_of_another_package_only_declares_its_aids(aids_of: Aids, kitchen_data: Path) -> None:
    class Own(TemporalVQA):
        benchmark = "mine"
        aids = TaskAids(default=tuple(LEVELS))

    _, examples, _ = aids_of("temporal_vqa")
    book = AidBook.open(Own(), examples, str(kitchen_data))
    told = {level: [e for e in examples if level in book.levels(e)] for level in LEVELS}
    assert all(told.values())
    state, relation = (book.text(told[level][0], [Aid(level)], DEFAULT_BOX_FORMAT) for level in ("states", "relations"))
    assert "\nStates of objects:\n- " in str(state)
    assert "\nRelations between objects:\n- " in str(relation)
    with pytest.raises(ConfigError, match="no `copied_answer`"):
        Own.aids.copied_answer(examples[0], "cup", {})


@pytest.mark.parametrize("name", TASKS)
def test_a_level_for_which_a_task_has_no_rule_gives_the_facts_of_that_level(
    name: str, aids_of: Aids, kitchen_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, examples, _ = aids_of(name)
    monkeypatch.setattr(task, "aids", replace(task.aids, optional=("activities",)))
    book = AidBook.open(task, examples, str(kitchen_data))
    graph = read_graph_rows(kitchen_data, {example.video_id for example in examples})
    told = 0
    for example in examples:
        if "activities" in task.aids.needed_levels(example):
            names = {row.name for row in graph[example.video_id].activities}
            facts = book.needed(example, "activities")
            assert {fact.words() for fact in facts} <= names, example.example_id
            told += len(facts)
    assert told


@pytest.mark.parametrize("text", ["boxes", "objects:wrong", "objects,objects:inert"])
def test_an_unknown_or_repeated_aid_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="Fix: name"):
        parse_aids([text])


def test_a_dataset_without_its_graph_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no table graph_frames"):
        read_graph_rows(tmp_path, ["v1"])
