"""Temporal scene graphs: the relations of a clip, how answers are read, what baselines and failures say."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barista_bench.benchmarks.extended.temporal_scene_graph import TemporalSceneGraph
from barista_bench.core.example import Example, FrameRef, ParseError, Prediction
from tests import answering
from tests.answering import derived_and_skipped as derived
from tests.extended.kit import BOXES
from tests.releases import CUP, LEFT, RIGHT, document, relation, write_release

TASK = TemporalSceneGraph()
EVERY_TEN = replace(TASK.sampling, frames=4, spacing=10)
"""Clips of the frames 0, 10, 20 and 30."""
HANDS_HOLD = ["right hand", "holds", "coffee cup", 2, 2], ["right hand", "holds", "coffee cup", 4, 4]


def only(root: Path, content: dict[str, Any]) -> Example:
    (example,), _ = derived(TASK, write_release(root, "v0", content), EVERY_TEN)
    return example


@pytest.fixture
def example(tmp_path: Path) -> Example:
    return only(tmp_path, document())


def reference(example: Example) -> list[list[Any]]:
    return json.loads(TASK.reference_answer(example, BOXES))


def read(text: str, example: Example) -> Prediction:
    return answering.read(TASK, text, example)


def test_a_relation_has_the_runs_of_frames_on_which_it_holds_and_both_ends_are_seen(example: Example) -> None:
    assert reference(example) == [
        ["left hand", "holds", "coffee cup", 1, 2],  # about all frames; the hand is seen on the first two
        ["button", "part of", "coffee machine", 1, 4],
        ["coffee cup", "under", "coffee machine", 1, 4],
        *HANDS_HOLD,
    ]
    assert example.inputs["objects"] == ["button", "coffee cup", "coffee machine", "left hand", "right hand"]
    assert example.inputs["relations"] == ["holds", "part of", "under"]
    assert example.evidence["relation_rows"] == [0, 1, 2, 3]


def test_objects_of_one_category_are_one_node(tmp_path: Path) -> None:
    content = document()
    content["object_id_to_category_id"][RIGHT] = content["object_id_to_category_id"][LEFT]
    assert ["left hand", "holds", "coffee cup", 1, 2] in reference(only(tmp_path, content))
    assert ["left hand", "holds", "coffee cup", 4, 4] in reference(only(tmp_path, content))


def test_a_clip_without_a_relation_between_things_with_a_name_is_counted_with_the_reason(tmp_path: Path) -> None:
    content = document()
    content["relations"] = [relation(LEFT, CUP, "human_actions", "holds", (0, 40))]
    for category in content["categories"]:
        category["name"] = "unknown" if category["name"] == "coffee cup" else category["name"]
    _, (skipped,) = derived(TASK, write_release(tmp_path, "v0", content), EVERY_TEN)
    assert skipped.frame == FrameRef("v0", 0)
    assert "no relation between things with a name" in skipped.reason


def test_answers_are_read_out_of_prose_and_wrong_entries_are_dropped(example: Example) -> None:
    entries = [
        ["Left hand", "holds", "coffee cup", 1, "2"],
        ["left hand", "holds", "coffee cup", 0, 2],
        ["left hand", "holds", "coffee cup", 3, 5],
        ["left hand", "holds", "coffee cup", 3, 2],
        ["left hand", "holds", 7, 1, 2],
        ["left hand", "holds", "coffee cup"],
        {"subject": "left hand"},
    ]
    parsed = read(f"Here:\n```json\n{json.dumps(entries)}\n```", example)
    assert parsed.value == {
        "relations": [{"subject": "Left hand", "relation": "holds", "object": "coffee cup", "start": 1, "end": 2}]
    }
    assert parsed.dropped == 6
    assert read("Nothing: []", example).value == {"relations": []}
    for text in ("", "the left hand holds a cup", '[["left hand", "holds"]]', '{"relations": 3}'):
        assert isinstance(TASK.parse(text, example.inputs, BOXES), ParseError)


def test_the_prior_names_the_usual_relations_of_the_named_things(example: Example) -> None:
    others = [replace(example, target={"relations": example.target["relations"][:count]}) for count in (1, 3)]  # type: ignore[index]
    answer = json.loads(TASK.prior_answer(replace(example, target={}), others, BOXES))
    assert answer == [
        ["left hand", "holds", "coffee cup", 1, 4],  # in both, then those in one, by their names
        ["button", "part of", "coffee machine", 1, 4],
        ["coffee cup", "under", "coffee machine", 1, 4],
    ]
    fewer = replace(example, inputs={**example.inputs, "objects": ["button", "coffee machine"]})
    assert json.loads(TASK.prior_answer(fewer, others, BOXES)) == [answer[1]]
    assert TASK.prior_answer(example, (), BOXES) == "[]"


def test_failures_name_missed_mistimed_repeated_and_invented_relations(example: Example) -> None:
    left, button, *_ = reference(example)
    answer = [
        left,
        button,
        button,
        ["coffee cup", "under", "coffee machine", 1, 1],
        ["button", "holds", "button", 1, 1],
    ]
    prediction = read(json.dumps(answer), example)
    kinds = Counter(failure.kind for failure in TASK.failures(example, prediction))
    assert kinds == {"wrong_time": 1, "duplicate": 1, "hallucinated": 1, "missed": 2}
    rows = [(row.kind, row.text) for row in TASK.explain(example, prediction).rows]
    assert rows[0] == ("hit", "left hand → holds → coffee cup, frames 1 to 2")
    assert Counter(verdict for verdict, _ in rows) == {"hit": 2, "miss": 3, "wrong": 3}
