"""Examples from scene graphs, and a task's reading of the answers that a test writes for them."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from barista_bench.core.boxes import DEFAULT_BOX_FORMAT, BoxFormat
from barista_bench.core.deriving import GraphTask
from barista_bench.core.example import Example, Fields, Prediction, Scored, SkippedExample
from barista_bench.core.options import Sampling
from barista_bench.core.task import Task
from barista_bench.scene_graph import SceneGraph
from tests.graph_examples import graph_examples
from tests.releases import write_release


def derived(
    task: GraphTask[Any], root: Path, sampling: Sampling | None = None, content: dict[str, Any] | None = None
) -> list[Example]:
    """The examples of a folder of scene graphs, or of one video with these annotations, which is written there."""
    if content is not None:
        write_release(root, content=content, video=False)
    return examples_of(task, SceneGraph(root), sampling)


def examples_of(task: GraphTask[Any], graph: SceneGraph, sampling: Sampling | None = None) -> list[Example]:
    """All that can be made."""
    items = graph_examples(task, graph, sampling or task.sampling)
    return [item for item in items if isinstance(item, Example)]


def derived_and_skipped(
    task: GraphTask[Any], root: Path, sampling: Sampling
) -> tuple[list[Example], list[SkippedExample]]:
    """The examples of a folder of scene graphs, and those that could not be made."""
    items = list(graph_examples(task, SceneGraph(root), sampling))
    skipped = [item for item in items if isinstance(item, SkippedExample)]
    return [item for item in items if isinstance(item, Example)], skipped


def on_frame(examples: Iterable[Example], frame: int) -> dict[str, Example]:
    """Those that begin with a frame, by label."""
    return {example.label: example for example in examples if example.frames[0].frame_index == frame}


def read(task: Task, text: object, asked: Example | Fields, box_format: BoxFormat = DEFAULT_BOX_FORMAT) -> Prediction:
    """A readable answer; a value that is not text is written as JSON."""
    inputs = asked.inputs if isinstance(asked, Example) else asked
    parsed = task.parse(text if isinstance(text, str) else json.dumps(text), inputs, box_format)
    assert isinstance(parsed, Prediction), (parsed, text)
    return parsed


def answered(task: Task, example: Example, text: str | None, box_format: BoxFormat = DEFAULT_BOX_FORMAT) -> Scored:
    """The sample of an answer; an unreadable answer counts as none."""
    parsed = None if text is None else task.parse(text, example.inputs, box_format)
    return Scored(example, parsed if isinstance(parsed, Prediction) else None)


def answer_all(task: Task, examples: Iterable[Example], answer: Callable[[Example], str]) -> dict[str, Any]:
    """The figures of these answers."""
    return dict(task.aggregate([answered(task, example, answer(example)) for example in examples]))


def interaction_entry(
    hands: object = ((1, 2, 3, 4),), target: object = (10, 20, 30, 40), kind: object = "left"
) -> dict[str, Any]:
    """One entry of an answer about hands and objects."""
    return {"hand_boxes": hands, "object_box": target, "hand_type": kind}
