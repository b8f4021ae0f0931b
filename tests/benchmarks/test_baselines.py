"""What every task can be asked beside a model: its prior, the middle of the image, and the schema of its answers."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barista_bench.benchmarks.barista import TASKS
from barista_bench.benchmarks.barista.box_answers import usual_boxes
from barista_bench.benchmarks.barista.common import remembered
from barista_bench.benchmarks.barista.grounding import Grounding
from barista_bench.benchmarks.barista.hand_object import HandObject
from barista_bench.benchmarks.barista.interactions import InteractionTarget, TrueInteraction
from barista_bench.benchmarks.barista.lexical import content_words, most_typical
from barista_bench.benchmarks.barista.relation_answers import (
    MarkedObject,
    MarkLook,
    MarkSegmentation,
    RelationInputs,
    likely_relations,
)
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.deriving import Sampling
from barista_bench.core.task import Example, FrameRef, Prediction, Scored, Task
from barista_bench.errors import ConfigError
from barista_bench.mini import write_kitchen
from barista_bench.scene_graph import SceneGraph
from tests.graph_examples import graph_examples

GRID = BoxFormat()
FORMATS = [GRID, BoxFormat("yxyx", 1000), BoxFormat("xyxy", 1), BoxFormat("xyxy", None)]
BOXED = {"grounding", "hand_object"}
JSON_TASKS = {"grounding", "hand_object", "relations"}
SMALL: dict[str, dict[str, Any]] = {
    "grounding": {"min_area": 20.0, "fraction": 0.2},
    "hand_object": {"fraction": 0.2},
    "referring": {"frame_step": 10},
    "activity": {},
    "relations": {"frame_step": 20},
    "temporal_vqa": {"spacing": 8},
}
"""Sampling that suits videos of three seconds."""

every_json_task = pytest.mark.parametrize(
    "task", [kind() for kind in TASKS if kind.name in JSON_TASKS], ids=lambda task: task.name
)
every_task = pytest.mark.parametrize("task", [kind() for kind in TASKS], ids=lambda task: task.name)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Example, ...]]:
    """Up to 100 examples of each task from a scripted kitchen of five videos."""
    root = tmp_path_factory.mktemp("baselines") / "kitchen"
    write_kitchen(root, videos=5, width=128, height=72, seconds=(3, 3), num_proc=2)
    graph, by_task = SceneGraph(root), {}
    for kind in TASKS:
        task = kind()
        sampling: Sampling = replace(task.sampling, limit=100, **SMALL[task.name])
        candidates = [item for item in graph_examples(task, graph, sampling) if isinstance(item, Example)]
        by_task[task.name] = tuple(sampling.draw(candidates))
    return by_task


def others_of(examples: Sequence[Example]) -> dict[str, tuple[Example, ...]]:
    ids = {example.video_id for example in examples}
    return {video: tuple(e for e in examples if e.video_id != video) for video in ids}


def scores(task: Task, examples: Sequence[Example], answer: Callable[[Example], str]) -> float:
    samples = [Scored(example, readable(task, example, answer(example), GRID)) for example in examples]
    figure = task.aggregate(samples)[task.primary]
    assert isinstance(figure, float)
    return figure


def readable(task: Task, example: Example, text: str, boxes: BoxFormat) -> Prediction:
    parsed = task.parse(text, example.inputs, boxes)
    assert isinstance(parsed, Prediction), (parsed, text)
    assert parsed.dropped == 0, text
    return parsed


# ---------------------------------------------------------------- every task


@pytest.mark.full
@every_task
def test_the_prior_lies_between_chance_and_the_truth(task: Task, drawn: dict[str, tuple[Example, ...]]) -> None:
    examples = drawn[task.name]
    others = others_of(examples)
    assert len(others) == 5
    prior = scores(task, examples, lambda e: task.prior_answer(e, others[e.video_id], GRID))
    chance = scores(task, examples, lambda e: task.random_answer(e, random.Random(e.example_id), GRID))
    assert scores(task, examples, lambda e: task.reference_answer(e, GRID)) == 1.0
    assert chance <= prior < 0.8
    # Where the question says enough for a prior to know something, it has to know it.
    if task.name in ("referring", "relations", "temporal_vqa"):
        assert prior > chance + 0.1


@every_task
def test_prior_answers_are_valid_in_every_box_format(task: Task, drawn: dict[str, tuple[Example, ...]]) -> None:
    examples = drawn[task.name]
    others = others_of(examples)
    for boxes in FORMATS:
        for example in examples[:20]:
            for known in (others[example.video_id], ()):
                readable(task, example, task.prior_answer(example, known, boxes), boxes)


@every_task
def test_the_prior_sees_nothing_of_the_example_but_its_question(
    task: Task, drawn: dict[str, tuple[Example, ...]]
) -> None:
    examples = drawn[task.name]
    others = others_of(examples)
    for example in examples:
        blind = replace(example, label="?", target={}, metadata={}, evidence={})
        known = others[example.video_id]
        assert task.prior_answer(blind, known, GRID) == task.prior_answer(example, known, GRID)


@every_task
def test_the_prior_depends_on_the_others_but_not_on_their_order(
    task: Task, drawn: dict[str, tuple[Example, ...]]
) -> None:
    examples = drawn[task.name]
    others = others_of(examples)
    changed = 0
    for example in examples[:20]:
        known = list(others[example.video_id])
        answer = task.prior_answer(example, known, GRID)
        random.Random(1).shuffle(known)
        assert task.prior_answer(example, known, GRID) == answer
        changed += task.prior_answer(example, (), GRID) != answer
    assert changed


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
        value: Any = readable(task, example, task.centre_answer(example, boxes), boxes).value
        answered = (
            value["boxes"] if task.name == "grounding" else [item["object_box"] for item in value["interactions"]]
        )
        assert answered == [pytest.approx(middle, abs=1)]


@every_task
def test_schemas_are_valid_and_what_the_prompt_asks_for_keeps_to_them(
    task: Task, drawn: dict[str, tuple[Example, ...]]
) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    examples = drawn[task.name]
    others = others_of(examples)
    assert (task.answer_schema(examples[0]) is not None) == (task.name in JSON_TASKS)
    for example in examples[:30]:
        schema = task.answer_schema(example)
        if schema is None:
            continue
        assert json.loads(json.dumps(schema)) == schema
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        for boxes in FORMATS:
            answers = [
                task.reference_answer(example, boxes),
                task.random_answer(example, random.Random(1), boxes),
                task.prior_answer(example, others[example.video_id], boxes),
            ]
            if task.name in BOXED:
                answers.append(task.centre_answer(example, boxes))
            for answer in answers:
                validator.validate(json.loads(answer))


@every_json_task
def test_schemas_refuse_answers_of_another_shape(task: Task, drawn: dict[str, tuple[Example, ...]]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    example = drawn[task.name][0]
    schema = task.answer_schema(example)
    assert schema is not None
    truth = json.loads(task.reference_answer(example, GRID))
    wrong: list[Any] = [None, "x", {"answer": []}, [{}], {"bboxes": [[1, 2, 3]]}, {"bboxes": [[1, 2, 3, "4"]]}]
    for item in truth if isinstance(truth, list) else ():
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
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_what_keeps_to_a_schema_is_read_whole(
    task: Task, drawn: dict[str, tuple[Example, ...]], data: st.DataObject
) -> None:
    example = data.draw(st.sampled_from(drawn[task.name]))
    schema = task.answer_schema(example)
    assert schema is not None
    answer = data.draw(from_schema(schema))
    for boxes in FORMATS:
        readable(task, example, json.dumps(answer), boxes)


# ---------------------------------------------------------------- what is usual


def test_of_several_usual_numbers_of_boxes_the_smallest_counts() -> None:
    lists = [[[0, 0, 1, 1]] * count for count in (3, 1, 2, 2, 1)]
    assert usual_boxes(lists) == [[0, 0, 1, 1]]


boxes_strategy = st.lists(st.lists(st.integers(0, 1000), min_size=4, max_size=4), max_size=3)


@given(st.lists(boxes_strategy, min_size=1, max_size=6))
def test_usual_boxes_are_as_many_as_most_lists_have_and_their_mean(answers: list[Any]) -> None:
    usual = usual_boxes(answers)
    counts = Counter(map(len, answers))
    assert counts[len(usual)] == max(counts.values())
    alike = [sorted(boxes) for boxes in answers if len(boxes) == len(usual)]
    for position, box in enumerate(usual):
        column = [boxes[position] for boxes in alike]
        assert box == pytest.approx([sum(side) / len(column) for side in zip(*column, strict=True)])


@given(st.lists(st.lists(st.sampled_from(["red", "cup", "lid", "white", "on"]), max_size=4), min_size=1, max_size=6))
def test_the_most_typical_text_has_the_highest_expected_overlap(words: list[list[str]]) -> None:
    texts = [" ".join(part) for part in words]

    def expected(text: str) -> float:
        """Over all texts, mean hits over mean lengths: each pair compared by itself."""
        bags = [Counter(content_words(other)) for other in texts]
        of_text = Counter(content_words(text))
        lengths = sum(of_text.total() + bag.total() for bag in bags)
        return 2 * sum((of_text & bag).total() for bag in bags) / lengths if of_text else 0.0

    best = max(expected(text) for text in texts)
    assert expected(most_typical(texts)) == pytest.approx(best)
    assert most_typical(texts) == most_typical(texts[::-1])


def test_words_of_the_question_do_not_make_a_text_typical() -> None:
    texts = ["the hand touches the lid", "the hand touches the lid and the hand", "lid"]
    assert most_typical(texts, {"hand", "touch"}) == "lid"


def relations_example(name: str, categories: Sequence[str], truth: Sequence[tuple[int, int, str]]) -> Example:
    return Example(
        example_id=name,
        benchmark="barista",
        task="relations",
        label="",
        frames=(FrameRef(name, 0),),
        inputs=RelationInputs(
            64,
            36,
            [
                MarkedObject(mark, f"o-{mark}", category, [0.0] * 4, MarkSegmentation([0, 0], ""))
                for mark, category in enumerate(categories, start=1)
            ],
            [],
            MarkLook(0.5, 0.9, 20.0),
        ).write(),
        target={
            "relations": [
                {"source_id": s, "target_id": t, "relation_type": "position", "value": v} for s, t, v in truth
            ]
        },
    )


@st.composite
def relation_sets(draw: st.DrawFn) -> list[Example]:
    examples = []
    for number in range(draw(st.integers(1, 4))):
        categories = draw(st.lists(st.sampled_from(["cup", "lid"]), min_size=2, max_size=4))
        pairs = [(s, t) for s in range(1, len(categories) + 1) for t in range(1, len(categories) + 1) if s != t]
        picked = draw(st.lists(st.tuples(st.sampled_from(pairs), st.sampled_from(["on", "under"])), unique=True))
        examples.append(relations_example(f"v{number}", categories, [(s, t, value) for (s, t), value in picked]))
    return examples


def pooled_f1(examples: Sequence[Example], rules: set[tuple[str, str, str]]) -> float:
    hits = said = true = 0
    for example in examples:
        inputs: Any = example.inputs["objects"]
        names = {item["mark"]: item["category"] for item in inputs}
        relations: Any = example.target["relations"]
        truth = {(r["source_id"], r["target_id"], r["value"]) for r in relations}
        answer = {
            (s, t, value)
            for s in names
            for t in names
            for first, second, value in rules
            if s != t and (names[s], names[t]) == (first, second)
        }
        hits, said, true = hits + len(truth & answer), said + len(answer), true + len(truth)
    return 2 * hits / (said + true) if said + true else 0.0


@settings(max_examples=50, deadline=None)
@given(relation_sets())
def test_no_other_choice_of_rules_answers_relations_better(examples: list[Example]) -> None:
    chosen = {
        (first, second, value)
        for (first, second), labels in likely_relations(examples).items()
        for kind, value in labels
    }
    every = [(a, b, value) for a in ("cup", "lid") for b in ("cup", "lid") for value in ("on", "under")]
    best = max(pooled_f1(examples, set(some)) for size in range(9) for some in combinations(every, size))
    assert pooled_f1(examples, chosen) == pytest.approx(best)


def test_relations_of_a_pair_never_seen_are_not_made_up() -> None:
    (task,) = (kind() for kind in TASKS if kind.name == "relations")
    seen = (relations_example("v1", ["cup", "lid"], [(2, 1, "on")]),)
    asked = relations_example("v2", ["jar", "lid", "cup"], [])
    assert json.loads(task.prior_answer(asked, seen, GRID)) == [
        {"source_id": 2, "target_id": 3, "relation_type": "position", "value": "on"}
    ]


def boxed(name: str, category: str, *boxes: list[int]) -> Example:
    inputs: Any = {"phrase": f"a {category}", "category": category, "frame_width": 200, "frame_height": 100}
    return Example(name, "barista", "grounding", category, (FrameRef(name, 0),), inputs, {"ground_truth_boxes": boxes})


def test_grounding_answers_where_objects_of_the_category_usually_are() -> None:
    task = Grounding()
    others = (
        boxed("v1", "cup", [0, 0, 100, 100]),
        boxed("v2", "cup", [100, 200, 300, 400]),
        boxed("v2", "lid", [500, 500, 600, 600], [700, 500, 800, 600]),
        boxed("v3", "lid", [700, 700, 800, 800], [500, 500, 600, 600]),
    )
    answer = json.loads(task.prior_answer(boxed("v9", "cup"), others, GRID))
    assert answer == {"bboxes": [[50, 100, 200, 250]]}
    lids = json.loads(task.prior_answer(boxed("v9", "lid"), others, GRID))
    assert lids == {"bboxes": [[500, 500, 600, 600], [700, 600, 800, 700]]}
    # Of all categories as many have one box as have two: the smaller number.
    assert json.loads(task.prior_answer(boxed("v9", "jar"), others, GRID)) == answer
    assert task.prior_answer(boxed("v9", "cup"), (), GRID) == task.centre_answer(boxed("v9", "cup"), GRID)


def acting(name: str, *items: tuple[str, list[int], list[int]]) -> Example:
    truth = [TrueInteraction("", "", kind, [hand], thing) for kind, hand, thing in items]
    inputs: Any = {"frame_width": 1000, "frame_height": 1000}
    target = InteractionTarget(truth).write()
    return Example(name, "barista", "hand_object", "", (FrameRef(name, 0),), inputs, target)


def test_hand_object_answers_the_commonest_combination_at_its_mean_place() -> None:
    left, right = [0, 0, 100, 100], [200, 200, 300, 300]
    others = (
        acting("v1", ("right", right, [210, 0, 230, 20]), ("left", left, [10, 0, 30, 20])),
        acting("v2", ("left", left, [30, 0, 50, 20]), ("right", [220, 200, 320, 300], [250, 0, 270, 20])),
        acting("v3", ("right", left, [900, 900, 950, 950])),
    )
    answer = json.loads(HandObject().prior_answer(acting("v9"), others, GRID))
    assert answer == [
        {"hand_boxes": [left], "object_box": [20, 0, 40, 20], "hand_type": "left"},
        {"hand_boxes": [[210, 200, 310, 300]], "object_box": [230, 0, 250, 20], "hand_type": "right"},
    ]


def test_activity_answers_the_choice_that_is_the_truth_most_often() -> None:
    (task,) = (kind() for kind in TASKS if kind.name == "activity")

    def asked(name: str, truth: str) -> Example:
        names = {"a": "Open lid", "b": "Close lid", "c": "Press button"}
        choices: Any = [
            {"choice_id": letter, "class_id": class_id, "text": names[class_id], "verb": ""}
            for letter, class_id in zip("ABC", "abc", strict=True)
        ]
        return Example(name, "barista", "activity", "", (FrameRef(name, 0),), {"choices": choices}, {"class_id": truth})

    assert (
        task.prior_answer(asked("v9", "a"), [asked("v1", "c"), asked("v2", "c"), asked("v3", "a")], GRID) == "ANSWER: C"
    )
    # Close lid stands before Open lid.
    assert task.prior_answer(asked("v9", "a"), [asked("v1", "a"), asked("v2", "b")], GRID) == "ANSWER: B"


def test_a_question_never_asked_is_answered_as_the_one_most_like_it() -> None:
    (task,) = (kind() for kind in TASKS if kind.name == "temporal_vqa")

    def asked(name: str, question: str, answer: str) -> Example:
        inputs: Any = {"question": question, "n_frames": 6}
        target: Any = {"answer": answer, "category": ""}
        return Example(name, "barista", "temporal_vqa", "", (FrameRef(name, 0),), inputs, target)

    others = [
        asked("v1", "What does the left hand touch?", "the jar"),
        asked("v2", "How does the state of the machine change?", "it is opened"),
    ]
    assert task.prior_answer(asked("v9", "What does the right hand touch?", ""), others, GRID) == "Answer: the jar"


def test_a_set_of_examples_is_looked_at_once_if_it_cannot_change() -> None:
    looked: dict[int, int] = defaultdict(int)

    @remembered
    def count(examples: Sequence[Example]) -> int:
        looked[len(examples)] += 1
        return len(examples)

    single, two = (boxed("v1", "cup"),), (boxed("v1", "cup"), boxed("v2", "cup"))
    assert [count(single), count(two), count(single), count(two)] == [1, 2, 1, 2]
    assert looked == {1: 1, 2: 1}
    same = [*single]
    assert (count(same), count(same)) == (1, 1)
    assert looked[1] == 3
    same.append(two[1])
    assert count(same) == 2
