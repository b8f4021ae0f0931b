"""Programs beside the models that every task can ask: its prior, the middle of the image, and the schema of its
answers."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from barista_bench.benchmarks.barista import TASKS
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.deriving import GraphTask
from barista_bench.core.example import Example
from barista_bench.core.options import Sampling
from barista_bench.core.task import Task
from barista_bench.errors import ConfigError
from barista_bench.scene_graph.domain import domain_vocabulary
from tests.answering import answer_all, examples_of, read
from tests.conformance.task_examples import SMALL
from tests.graph_examples import opened

GRID = BoxFormat()
FORMATS = [GRID, BoxFormat("yxyx", 1000), BoxFormat("xyxy", 1), BoxFormat("xyxy", None)]
BOXED = {"grounding", "hand_object"}
JSON_TASKS = {"grounding", "hand_object", "relations"}

every_json_task = pytest.mark.parametrize(
    "task", [kind() for kind in TASKS if kind.name in JSON_TASKS], ids=lambda task: task.name
)
every_task = pytest.mark.parametrize("task", [kind() for kind in TASKS], ids=lambda task: task.name)


@pytest.fixture(scope="module")
def drawn(small_kitchen: Path) -> dict[str, tuple[Example, ...]]:
    """Up to 60 examples of each task from a scripted kitchen of three videos."""
    by_task = {}
    for kind in TASKS:
        task = kind()
        sampling: Sampling = replace(task.sampling, limit=60, **SMALL.get(task.name, {}))
        by_task[task.name] = tuple(sampling.sample(examples_of(task, opened(small_kitchen), sampling)))
    return by_task


def others_of(examples: Sequence[Example]) -> dict[str, tuple[Example, ...]]:
    ids = {example.video_id for example in examples}
    return {video: tuple(e for e in examples if e.video_id != video) for video in ids}


def scores(task: Task, examples: Sequence[Example], answer: Callable[[Example], str]) -> float:
    metrics = answer_all(task, examples, answer)
    assert metrics["n_failed"] == 0
    return float(metrics[task.primary])


@pytest.mark.full
@every_task
def test_the_priors_score_is_between_chance_and_the_truth(task: Task, drawn: dict[str, tuple[Example, ...]]) -> None:
    examples = drawn[task.name]
    others = others_of(examples)
    assert len(others) == 3
    prior = scores(task, examples, lambda e: task.prior_answer(e, others[e.video_id], GRID))
    chance = scores(task, examples, lambda e: task.random_answer(e, random.Random(e.example_id), GRID))
    assert scores(task, examples, lambda e: task.reference_answer(e, GRID)) == 1.0
    assert chance <= prior < 0.8
    # Where the question says enough for a prior to know something, it has to know it.
    if task.name in ("referring", "relations", "temporal_vqa"):
        assert prior > chance + 0.1


def whole_scene(example: Example) -> str:
    """Every relation that the vocabulary allows, between all objects."""
    inputs: Any = example.inputs
    marks = [item["mark"] for item in inputs["objects"]]
    pairs = [(s, t) for s in marks for t in marks if s != t]
    return json.dumps(
        [
            {"source_id": s, "target_id": t, "relation_type": entry["relation_type"], "value": value}
            for (s, t), entry in product(pairs, inputs["vocabulary"])
            for value in entry["values"]
        ]
    )


def one_hand(box: list[int]) -> dict[str, Any]:
    return {"hand_boxes": [box], "object_box": box, "hand_type": "right"}


SPRAY = [[x, y, x + 125, y + 125] for x in range(0, 900, 60) for y in range(0, 900, 60)]
WORDS = " ".join(domain_vocabulary())
BLIND: dict[str, dict[str, tuple[Callable[[Example], str], float]]] = {
    "activity": {
        "always A": (lambda e: "ANSWER: A", 0.2),
        "all letters": (lambda e: "\n".join(f"ANSWER: {c['choice_id']}" for c in choices_of(e)), 0.2),
    },
    "grounding": {
        "whole frame": (lambda e: '{"bboxes": [[0, 0, 1000, 1000]]}', 0.01),
        "spray": (lambda e: json.dumps({"bboxes": SPRAY}), 0.02),
    },
    "hand_object": {
        "whole frame": (lambda e: json.dumps([one_hand([0, 0, 1000, 1000])]), 0.0),
        "spray": (lambda e: json.dumps([one_hand(box) for box in SPRAY]), 0.02),
    },
    "referring": {"all categories": (lambda e: f"Description: {WORDS}", 0.2)},
    "relations": {"all relations": (whole_scene, 0.15)},
    "temporal_vqa": {
        "question": (lambda e: str(e.inputs["question"]), 0.0),
        "all categories": (lambda e: WORDS, 0.2),
        "constant": (lambda e: "The lid was opened and the right hand touches the milk carton.", 0.35),
    },
}
"""Answers that look at nothing, and the most that they may score."""


def choices_of(example: Example) -> Any:
    return example.inputs["choices"]


@every_task
def test_answers_without_the_image_score_below_their_ceiling(task: Task, drawn: dict[str, tuple[Example, ...]]) -> None:
    common: dict[str, tuple[Callable[[Example], str], float]] = {
        "empty": (lambda e: "", 0.0),
        "empty list": (lambda e: "[]", 0.0),
        "prose": (lambda e: "I cannot see it.", 0.02),
        "chance": (lambda e: task.random_answer(e, random.Random(e.example_id), GRID), 0.25),
    }
    for name, (answer, ceiling) in (common | BLIND[task.name]).items():
        assert answer_all(task, drawn[task.name][:12], answer)[task.primary] <= ceiling, name


@every_task
def test_the_prior_depends_on_the_others_but_not_on_their_order(
    task: Task, drawn: dict[str, tuple[Example, ...]]
) -> None:
    examples = drawn[task.name]
    others = others_of(examples)
    changed = 0
    for example in examples[:8]:
        known = list(others[example.video_id])
        answer = task.prior_answer(example, known, GRID)
        random.Random(1).shuffle(known)
        assert task.prior_answer(example, known, GRID) == answer
        changed += task.prior_answer(example, (), GRID) != answer
    assert changed


@every_task
def test_the_images_begin_with_the_frames(task: Task, drawn: dict[str, tuple[Example, ...]]) -> None:
    example = drawn[task.name][0]
    frames = [np.full((72, 128, 3), shade, np.uint8) for shade in range(len(example.frames))]
    images = task.images(example, frames)
    for image, frame in zip(images, frames, strict=len(images) == len(frames)):
        assert np.array_equal(np.asarray(image), frame)


@every_task
def test_real_clips_are_answered_by_the_oracle_and_not_by_chance(task: GraphTask, real_release: Path) -> None:
    examples = examples_of(task, opened(real_release))
    if not examples and task.name == "activity":
        pytest.skip("too few classes in these clips for a question")
    assert scores(task, examples, lambda e: task.reference_answer(e, GRID)) == pytest.approx(1)
    assert scores(task, examples, lambda e: task.random_answer(e, random.Random(e.example_id), GRID)) < 0.25


@every_task
def test_the_middle_is_answered_where_boxes_are_asked_for(task: Task, drawn: dict[str, tuple[Example, ...]]) -> None:
    example = drawn[task.name][0]
    if task.name not in BOXED:
        with pytest.raises(ConfigError, match=f"barista/{task.name} asks for no boxes"):
            task.centre_answer(example, GRID)
        return
    width, height = 128, 72
    middle = [width / 4, height / 4, width * 3 / 4, height * 3 / 4]
    for boxes in FORMATS:
        value: Any = read(task, task.centre_answer(example, boxes), example, boxes).value
        answered = (
            value["boxes"] if task.name == "grounding" else [item["object_box"] for item in value["interactions"]]
        )
        assert answered == [pytest.approx(middle, abs=1)]


@every_json_task
def test_schemas_refuse_answers_of_another_shape(task: Task, drawn: dict[str, tuple[Example, ...]]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    example = drawn[task.name][0]
    schema = task.answer_schema(example)
    assert schema is not None
    reference = json.loads(task.reference_answer(example, GRID))
    wrong: list[Any] = [None, "x", {"answer": []}, [{}], {"bboxes": [[1, 2, 3]]}, {"bboxes": [[1, 2, 3, "4"]]}]
    for item in reference if isinstance(reference, list) else ():
        wrong += [[{**item, "more": 1}], *([{k: v for k, v in item.items() if k != name}] for name in item)]
        wrong += [[{**item, name: value}] for name in item for value in (None, "nobody", -1, [[1, 2, 3, 1e10]])]
    for answer in wrong:
        assert not jsonschema.Draft202012Validator(schema).is_valid(answer), answer


def from_schema(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that keep to one of our schemas."""
    if "anyOf" in schema:
        return st.one_of([from_schema(part) for part in schema["anyOf"]])
    if "const" in schema or "enum" in schema:
        return st.sampled_from([schema["const"]] if "const" in schema else schema["enum"])
    if schema["type"] == "number":
        whole, real = st.integers(schema["minimum"], schema["maximum"]), st.floats(schema["minimum"], schema["maximum"])
        return whole | real
    if schema["type"] == "array":
        lengths = {"min_size": schema.get("minItems", 0), "max_size": schema.get("maxItems", 4)}
        return st.lists(from_schema(schema.get("items", {"enum": [None]})), **lengths)
    assert schema["type"] == "object"
    return st.fixed_dictionaries({name: from_schema(part) for name, part in schema["properties"].items()})


@every_json_task
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_the_parser_reads_all_entries_of_an_answer_that_fits_the_schema(
    task: Task, drawn: dict[str, tuple[Example, ...]], data: st.DataObject
) -> None:
    example = data.draw(st.sampled_from(drawn[task.name]))
    schema = task.answer_schema(example)
    assert schema is not None
    answer = data.draw(from_schema(schema))
    for boxes in FORMATS:
        assert read(task, answer, example, boxes).dropped == 0
