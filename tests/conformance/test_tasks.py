"""What every task of every benchmark must do: the laws of `barista_bench.testing`."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.task import ParseError, Prediction, Task
from barista_bench.runs.ask.catalog import asks_for_boxes
from barista_bench.testing import check_task, check_version
from barista_bench.testing.laws import BOX_FORMATS
from tests.conformance.task_examples import TASKS, Releases, options_of

VERSIONS = Path(__file__).with_name("task_versions.json")
KEYS = (
    *("bboxes", "boxes", "scores", "object", "time", "box", "start", "end", "answer", "reasoning", "source_id"),
    *("target_id", "relation_type", "value", "hand_boxes", "object_box", "hand_type", "steps", "spatial_tracking"),
    "masks",
)
"""Names that answers have."""
every_task = pytest.mark.parametrize("task", TASKS, ids=lambda task: f"{task.benchmark}-{task.name}")


@pytest.fixture(scope="module")
def releases(source_of: Callable[[str], Path]) -> Releases:
    return Releases(source_of)


@every_task
def test_the_task_keeps_the_laws(task: type[Task], releases: Releases) -> None:
    check_task(task, releases.examples(task), options=options_of(task))


@every_task
def test_a_change_of_the_task_has_a_new_version(task: type[Task], releases: Releases) -> None:
    """With UPDATE_SNAPSHOTS=1 new versions are recorded; a changed task of the same version is refused all the same."""
    record = os.environ.get("UPDATE_SNAPSHOTS") == "1"
    examples, source = releases.examples(task), releases.sha256(task)
    check_version(task, examples, VERSIONS, source=source, options=options_of(task), record=record)


PIECES = st.text(max_size=30) | st.sampled_from(
    (
        *'[]{}":,().-\n',
        *("answer:", "ANSWER: B", "(A) ", "```json", '"bboxes"', '"object"', "1000", "0.5", "00:04", "1e999"),
    )
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner),
    max_leaves=12,
)


@pytest.mark.full
@every_task
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    text=st.lists(PIECES, max_size=20).map("".join) | JSON_VALUES.map(json.dumps),
    box_format=st.sampled_from(BOX_FORMATS),
)
def test_any_text_is_read_and_scored_or_is_a_parse_error(
    task: type[Task], releases: Releases, text: str, box_format: BoxFormat
) -> None:
    instance = task(options=options_of(task))
    example = releases.examples(task)[0]
    answer = instance.parse(text, example.inputs, box_format)
    if isinstance(answer, Prediction):
        assert all(map(math.isfinite, instance.score(example, answer).values()))
    else:
        assert isinstance(answer, ParseError)


BOXES_IN_ANSWERS = {"barista-grounding", "barista-hand_object", "tog_bench-t_stvg"}


@every_task
def test_a_file_of_answers_has_to_say_how_boxes_are_written_only_where_answers_hold_boxes(
    task: type[Task], releases: Releases
) -> None:
    made, examples = task(options=options_of(task)), releases.examples(task)
    name = f"{task.benchmark}-{task.name}"
    assert asks_for_boxes(made, examples) is (name in BOXES_IN_ANSWERS)
