"""The usual answers of the prior: numbers of boxes, typical texts, the commonest choice."""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from barista_bench.benchmarks.barista import TASKS
from barista_bench.benchmarks.barista.grounding import Grounding
from barista_bench.benchmarks.barista.hand_object import HandObject
from barista_bench.benchmarks.barista.interactions import InteractionTarget, TrueInteraction
from barista_bench.benchmarks.barista.relation_answers import (
    MarkedObject,
    MarkLook,
    MarkSegmentation,
    RelationInputs,
    likely_relations,
)
from barista_bench.benchmarks.kinds.box_answers import usual_boxes
from barista_bench.benchmarks.lexical import content_words, most_typical_text
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example, FrameRef
from barista_bench.core.remembering import remember

GRID = BoxFormat()


boxes_strategy = st.lists(st.lists(st.integers(0, 1000), min_size=4, max_size=4), max_size=3)


@given(st.lists(boxes_strategy, min_size=1, max_size=6))
def test_the_prior_gives_the_commonest_number_of_boxes_and_their_mean(answers: list[Any]) -> None:
    usual = usual_boxes(answers)
    counts = Counter(map(len, answers))
    assert len(usual) == min(count for count, lists in counts.items() if lists == max(counts.values()))
    alike = [sorted(boxes) for boxes in answers if len(boxes) == len(usual)]
    for position, box in enumerate(usual):
        column = [boxes[position] for boxes in alike]
        assert box == pytest.approx([sum(side) / len(column) for side in zip(*column, strict=True)])


@given(st.lists(st.lists(st.sampled_from(["red", "cup", "lid", "white", "on"]), max_size=4), min_size=1, max_size=6))
def test_the_most_typical_text_has_the_highest_expected_overlap(words: list[list[str]]) -> None:
    texts = [" ".join(part) for part in words]

    def expected(text: str) -> float:
        """Over all texts, mean hits over mean lengths, with each pair compared separately."""
        bags = [Counter(content_words(other)) for other in texts]
        of_text = Counter(content_words(text))
        lengths = sum(of_text.total() + bag.total() for bag in bags)
        return 2 * sum((of_text & bag).total() for bag in bags) / lengths if of_text else 0.0

    best = max(expected(text) for text in texts)
    assert expected(most_typical_text(texts)) == pytest.approx(best)
    assert most_typical_text(texts) == most_typical_text(texts[::-1])


def test_words_of_the_question_do_not_make_a_text_typical() -> None:
    texts = ["the hand touches the lid", "the hand touches the lid and the hand", "lid"]
    assert most_typical_text(texts, {"hand", "touch"}) == "lid"


def relations_example(name: str, categories: Sequence[str], reference: Sequence[tuple[int, int, str]]) -> Example:
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
                {"source_id": s, "target_id": t, "relation_type": "position", "value": v} for s, t, v in reference
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
        reference = {(r["source_id"], r["target_id"], r["value"]) for r in relations}
        answer = {
            (s, t, value)
            for s in names
            for t in names
            for first, second, value in rules
            if s != t and (names[s], names[t]) == (first, second)
        }
        hits, said, true = hits + len(reference & answer), said + len(answer), true + len(reference)
    return 2 * hits / (said + true) if said + true else 0.0


@pytest.mark.full
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
    # As many categories have one box as have two: the smaller number counts.
    assert json.loads(task.prior_answer(boxed("v9", "jar"), others, GRID)) == answer
    assert task.prior_answer(boxed("v9", "cup"), (), GRID) == task.centre_answer(boxed("v9", "cup"), GRID)


def acting(name: str, *items: tuple[str, list[int], list[int]]) -> Example:
    reference = [TrueInteraction("", "", kind, [hand], thing) for kind, hand, thing in items]
    inputs: Any = {"frame_width": 1000, "frame_height": 1000}
    target = InteractionTarget(reference).write()
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

    def asked(name: str, reference: str) -> Example:
        names = {"a": "Open lid", "b": "Close lid", "c": "Press button"}
        choices: Any = [
            {"choice_id": letter, "class_id": class_id, "text": names[class_id], "verb": ""}
            for letter, class_id in zip("ABC", "abc", strict=True)
        ]
        target = {"choice_id": "ABC"["abc".index(reference)], "class_id": reference}
        return Example(name, "barista", "activity", "", (FrameRef(name, 0),), {"choices": choices}, target)

    assert (
        task.prior_answer(asked("v9", "a"), [asked("v1", "c"), asked("v2", "c"), asked("v3", "a")], GRID) == "ANSWER: C"
    )
    # Close lid comes before Open lid.
    assert task.prior_answer(asked("v9", "a"), [asked("v1", "a"), asked("v2", "b")], GRID) == "ANSWER: B"


def test_a_question_never_asked_gets_the_answer_of_the_most_similar_one() -> None:
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


def test_an_unchangeable_set_of_examples_is_read_once() -> None:
    looked: dict[int, int] = defaultdict(int)

    @remember
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
