"""Boxes to draw over samples: those that scoring compares with and those answered, in pixels."""

from collections.abc import Callable
from pathlib import Path

import pytest

from barista_bench.benchmarks import get_task
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.task import Example, FrameRef, Overlay, Task
from tests.answering import derived, read

BOXES = BoxFormat("yxyx", 1000)


@pytest.fixture(scope="module")
def first(small_release: Path) -> Callable[[str], tuple[Task, Example]]:
    def made(name: str) -> tuple[Task, Example]:
        task = get_task("barista", name)
        return task, derived(task, small_release, task.sampling.with_overrides({"frame_step": 20}))[0]

    return made


def answered(task: Task, example: Example) -> tuple[Overlay, ...]:
    return task.overlays(example, read(task, task.reference_answer(example, BOXES), example, BOXES))


@pytest.mark.parametrize("name", ["grounding", "hand_object"])
def test_the_right_answer_is_drawn_where_the_truth_is(name: str, first: Callable[[str], tuple[Task, Example]]) -> None:
    task, example = first(name)
    drawn = answered(task, example)
    reference, said = ([overlay for overlay in drawn if overlay.kind == kind] for kind in ("reference", "predicted"))
    assert len(reference) == len(said) > 0
    for right, said_overlay in zip(reference, said, strict=True):
        assert said_overlay.box == pytest.approx(right.box, abs=1.5)
    assert task.overlays(example, None) == tuple(reference)
    if name == "hand_object":
        labels = {overlay.label for overlay in reference}
        assert any(label.endswith(("hand", "hands")) for label in labels)
        assert {str(item["category"]) for item in example.target["interactions"]} <= labels


@pytest.mark.parametrize("name", ["referring", "relations"])
def test_what_the_question_shows_is_given_and_no_truth(name: str, first: Callable[[str], tuple[Task, Example]]) -> None:
    task, example = first(name)
    drawn = answered(task, example)
    assert {overlay.kind for overlay in drawn} == {"given"}
    if name == "referring":
        assert list(drawn[0].box) == example.inputs["box"]
    else:
        x, y, width, height = example.inputs["objects"][0]["bbox"]
        assert drawn[0].box == (x, y, x + width, y + height)
        assert task.image_captions(example)[1].endswith("set of mark")


@pytest.mark.parametrize("name", ["activity", "temporal_vqa"])
def test_tasks_without_boxes_name_every_frame(name: str) -> None:
    frames = FrameRef("v", 3), FrameRef("v", 9)
    example = Example("e", "barista", name, "", frames, inputs={}, target={})
    assert get_task("barista", name).image_captions(example) == ("frame 3", "frame 9")
