"""Examples of all tasks on one frame, joined by their objects."""

from dataclasses import replace
from pathlib import Path

import pytest

from barista_bench.benchmarks import get_task
from barista_bench.benchmarks.barista.relations import RelationsSampling
from barista_bench.core.example import Example, FrameRef
from barista_bench.data.trace import Trace, as_text, trace
from barista_bench.scene_graph import SceneGraph
from tests.graph_examples import graph_examples
from tests.releases import document, write_release


def example(task: str, name: str, frames: tuple[int, ...], objects: tuple[str, ...], video: str = "v") -> Example:
    """An example with nothing in it but its place and its objects."""
    return Example(
        example_id=name,
        benchmark="barista",
        task=task,
        label=f"label of {name}",
        frames=tuple(FrameRef(video, frame) for frame in frames),
        inputs={},
        target={},
        evidence={"object_ids": list(objects)},
    )


EXAMPLES = {
    "grounding": [
        example("grounding", "g10", (10,), ("cup",)),
        example("grounding", "g14", (14,), ("cup", "lid")),
        example("grounding", "g15", (15,), ("jar",)),
        example("grounding", "g60", (60,), ("cup",)),
        example("grounding", "g10 elsewhere", (10,), ("cup",), video="w"),
    ],
    "activity": [
        example("activity", "a1", (0, 8, 16, 24), ("lid", "hand")),
        example("activity", "a2", (5, 10, 15, 20), ("hand",)),
        example("activity", "a3", (30, 40, 50, 60), ("hand",)),
    ],
}


def names(traced: Trace) -> tuple[list[str], list[str]]:
    return [t.example.example_id for t in traced.here], [t.example.example_id for t in traced.near]


@pytest.mark.parametrize(
    ("frame", "within", "here", "near"),
    [
        (10, 0, ["g10", "a2"], ["a1"]),  # a1 spans the frame and shares the hand
        (10, 19, ["g10", "a2"], ["g14", "a1"]),  # g14 shares the cup, g15 nothing
        (10, 20, ["g10", "a2"], ["g14", "a1", "a3"]),  # a3 shares the hand, and begins 20 frames on
        (10, 50, ["g10", "a2"], ["g14", "g60", "a1", "a3"]),
        (14, 0, ["g14"], ["a1"]),
        (12, 3, [], ["g10", "g14", "g15", "a1", "a2"]),  # no example shows it: all are near
    ],
)
def test_examples_that_show_the_frame_come_first_and_near_ones_share_an_object_with_them(
    frame: int, within: int, here: list[str], near: list[str]
) -> None:
    assert names(trace(EXAMPLES, "v", frame, within=within)) == (here, near)


def test_a_trace_says_how_far_away_examples_are_and_joins_objects_over_tasks() -> None:
    near = trace(EXAMPLES, "v", 10, within=20).near
    assert [(t.distance, t.shared) for t in near] == [(4, ("cup",)), (0, ("hand",)), (20, ("hand",))]
    assert trace(EXAMPLES, "v", 14, within=20).objects() == {
        "lid": ("grounding", "activity"),
        "cup": ("grounding",),
        "hand": ("activity",),
    }
    bare = Example("x", "barista", "grounding", "", (FrameRef("v", 3),), {}, {})  # as in other benchmarks
    traced = trace({"grounding": [bare]}, "v", 3)
    assert (names(traced), traced.objects()) == ((["x"], []), {})


@pytest.mark.parametrize(("video_id", "frame"), [("v", 500), ("nobody", 10), ("v", -100)])
def test_an_empty_trace_says_so(video_id: str, frame: int) -> None:
    traced = trace(EXAMPLES, video_id, frame)
    assert names(traced) == ([], [])
    assert as_text(traced) == f"{video_id}, frame {frame}: no example shows it, and none lies within 30 frames.\n"


def test_the_text_tells_truth_and_objects_of_real_tasks(tmp_path: Path) -> None:
    content = document()
    for index, verb in enumerate(("Open", "Close", "Fill")):
        content["activities"].append(
            {"image_range": {"image_id_start": 39, "image_id_end": 40}, "activity_class_id": f"c{index}",
             "display_name": f"{verb} lid"}
        )  # fmt: skip
    content["activities"][1]["image_range"]["image_id_end"] = 39
    graph = SceneGraph(write_release(tmp_path, content=content, video=False))
    examples = {
        name: [e for e in graph_examples(get_task("barista", name), graph, sampling) if isinstance(e, Example)]
        for name, sampling in (
            ("activity", get_task("barista", "activity").sampling),
            ("relations", RelationsSampling(frame_step=5)),
        )
    }
    text = as_text(trace(examples, "v1", 20, within=5))
    assert text.startswith("v1, frame 20: 3 examples of 2 tasks\n")
    assert "activity: Place cup (frames 0, 6, 13, 20)" in text
    assert "activity: Press button (frames 20, 26, 32, 39)" in text
    assert "relations: 2 relations (frame 20)\n  relation_extraction:v1:20\n" in text
    assert "  - 1 button → part of → 3 coffee machine (position)" in text
    assert "relations: 2 relations (frame 25, 5 away)" in text
    assert "  o-cup coffee cup         activity, relations\n" in text


def test_a_label_cannot_steer_the_terminal() -> None:
    hostile = replace(EXAMPLES["activity"][0], label="\x1b[2Jcup\n\nfake", **QUESTION)
    text = as_text(trace({"activity": [hostile]}, "v", 8))
    assert "\x1b" not in text
    assert "activity: \\x1b[2Jcup fake (frames 0, 8, 16, 24)\n" in text


QUESTION = {
    "inputs": {"choices": [{"choice_id": "A", "class_id": "a", "text": "Open lid", "verb": "open"}]},
    "target": {"choice_id": "A", "class_id": "a"},
}
