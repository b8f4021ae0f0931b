"""Answers in JSON: what stands before and after the list that is the answer does not change it."""

from pathlib import Path

import pytest

from barista_bench.benchmarks import get_task
from barista_bench.core.deriving import GraphTask
from barista_bench.core.task import Example
from barista_bench.scene_graph import SceneGraph
from tests.answering import answered
from tests.extended.kit import BOXES
from tests.graph_examples import graph_examples

NAMES = ["anticipation", "mask_tracking", "step_segmentation", "temporal_scene_graph"]


@pytest.mark.parametrize("name", NAMES)
def test_the_last_list_that_fits_is_the_answer_and_an_empty_one_only_if_there_is_no_other(
    name: str, small_kitchen: Path
) -> None:
    task = get_task("extended", name)
    assert isinstance(task, GraphTask)
    items = graph_examples(task, SceneGraph(small_kitchen), task.sampling)
    example = next(item for item in items if isinstance(item, Example))
    reference = task.reference_answer(example, BOXES)
    for text in (
        f"Nothing moves at first: []. Then:\n{reference}",
        f"```\n[]\n```\n{reference}",
        f"{reference}\nNo more: []",
    ):
        assert task.score(example, answered(task, example, text).prediction)[task.sample_score] == 1, text[:30]
