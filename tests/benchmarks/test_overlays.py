"""Boxes to draw over samples: those that scoring compares with and those answered, in pixels."""

from __future__ import annotations

from pathlib import Path

import pytest

from barista_bench.benchmarks import get_task
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.task import Example, FrameRef, Overlay, Prediction, Task
from barista_bench.scene_graph import SceneGraph
from tests.graph_examples import graph_examples

BOXES = BoxFormat("yxyx", 1000)


def first_example(name: str, graph: SceneGraph) -> tuple[Task, Example]:
    task = get_task("barista", name)
    items = (
        item
        for item in graph_examples(task, graph, task.sampling.with_overrides({"frame_step": 20}))
        if isinstance(item, Example)
    )
    return task, next(items)


@pytest.fixture(scope="module")
def graph(small_release: Path) -> SceneGraph:
    return SceneGraph(small_release)


def answered(task: Task, example: Example) -> tuple[Overlay, ...]:
    parsed = task.parse(task.reference_answer(example, BOXES), example.inputs, BOXES)
    assert isinstance(parsed, Prediction)
    return task.overlays(example, parsed)


@pytest.mark.parametrize("name", ["grounding", "hand_object"])
def test_the_right_answer_is_drawn_where_the_truth_is(name: str, graph: SceneGraph) -> None:
    task, example = first_example(name, graph)
    drawn = answered(task, example)
    reference, said = ([overlay for overlay in drawn if overlay.kind == kind] for kind in ("reference", "predicted"))
    assert len(reference) == len(said) > 0
    for right, said_overlay in zip(reference, said, strict=True):
        assert said_overlay.box == pytest.approx(right.box, abs=1.5)
    width, height = example.inputs["frame_width"], example.inputs["frame_height"]
    assert all(0 <= box[0] < box[2] <= width and 0 <= box[1] < box[3] <= height for box in (o.box for o in reference))
    assert task.overlays(example, None) == tuple(reference)


def test_hands_and_objects_are_told_apart(graph: SceneGraph) -> None:
    task, example = first_example("hand_object", graph)
    labels = {overlay.label for overlay in task.overlays(example, None)}
    assert any(label.endswith(("hand", "hands")) for label in labels)
    assert {str(item["category"]) for item in example.target["interactions"]} <= labels


@pytest.mark.parametrize("name", ["referring", "relations"])
def test_what_the_question_shows_is_given_and_no_truth(name: str, graph: SceneGraph) -> None:
    task, example = first_example(name, graph)
    drawn = answered(task, example)
    assert drawn
    assert {overlay.kind for overlay in drawn} == {"given"}
    if name == "referring":
        assert list(drawn[0].box) == example.inputs["box"]
    else:
        x, y, width, height = example.inputs["objects"][0]["bbox"]
        assert drawn[0].box == (x, y, x + width, y + height)
        assert task.image_captions(example)[1].endswith("set of mark")


@pytest.mark.parametrize("name", ["activity", "temporal_vqa"])
def test_tasks_without_boxes_draw_none_and_name_every_frame(name: str) -> None:
    frames = FrameRef("v", 3), FrameRef("v", 9)
    example = Example("e", "barista", name, "", frames, inputs={}, target={})
    task = get_task("barista", name)
    assert task.overlays(example, None) == ()
    assert task.image_captions(example) == ("frame 3", "frame 9")
