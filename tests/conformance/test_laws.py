"""`check_task` and `check_version` find broken tasks: an activity task, broken in one place at a time."""

import json
import math
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from barista_bench.benchmarks.barista.activity import Activity
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.display import Explanation, Overlay
from barista_bench.core.example import Example, Fields, ParseError, Prediction
from barista_bench.core.prompt import Prompt, TextPart
from barista_bench.core.task import Task
from barista_bench.runs.ask.catalog import asks_for_boxes
from barista_bench.testing import LawError, check_task, check_version
from barista_bench.testing.laws import BOX_FORMATS
from tests.conformance.task_examples import TASKS, Releases, options_of

CALLS = count()


class WrongReference(Activity):
    def reference_answer(self, example: Example, box_format: BoxFormat) -> str:
        labels = list(self.choices(example))
        return f"ANSWER: {labels[labels.index(str(example.target['choice_id'])) - 1]}"


class RaisingParser(Activity):
    def parse(self, text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
        return super().parse(f"ANSWER:{text.split(':')[1]}", inputs, box_format)


class ForgetfulParser(Activity):
    def parse(self, text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
        read = super().parse(text, inputs, box_format)
        return replace(read, dropped=next(CALLS) % 2) if isinstance(read, Prediction) and "think" in text else read


class UnreadableChance(Activity):
    def random_answer(self, example: Example, rng: random.Random, box_format: BoxFormat) -> str:
        return "any"


class BrokenExplanation(Activity):
    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        assert prediction is not None
        return super().explain(example, prediction)


class OverlayBesideTheImages(Activity):
    def overlays(self, example: Example, prediction: Prediction | None) -> tuple[Overlay, ...]:
        return (Overlay(len(example.frames), (0.0, 0.0, 1.0, 1.0), "reference"),)


class NarrowSchema(Activity):
    def answer_schema(self, example: Example) -> Fields:
        return {"type": "object"}

    def reference_answer(self, example: Example, box_format: BoxFormat) -> str:
        return json.dumps(super().reference_answer(example, box_format))


class TellingPrompt(Activity):
    def prompt(self, example: Example, box_format: BoxFormat) -> Prompt:
        asked = super().prompt(example, box_format)
        return replace(asked, parts=(*asked.parts, TextPart(str(example.target["choice_id"]))))


class LostColumn(Activity):
    def stamp(self, example: Example) -> Example:
        return replace(example, inputs={**example.inputs, "unnamed": 1})


BROKEN: dict[type[Task], str] = {
    WrongReference: "the reference scores the maximum",
    RaisingParser: "raised IndexError",
    ForgetfulParser: "the same each time",
    UnreadableChance: "'random_answer': broken .*'any' in",
    BrokenExplanation: "`explain`|raised AssertionError",
    OverlayBesideTheImages: "an overlay is on image 4 of 4",
    NarrowSchema: "the schema accepts the reference",
    TellingPrompt: "what is asked hides the reference",
    LostColumn: "examples survive being stored",
}


@pytest.fixture(scope="module")
def releases(source_of: Callable[[str], Path]) -> Releases:
    return Releases(source_of)


@pytest.mark.parametrize("task", BROKEN, ids=lambda task: task.__name__)
def test_the_message_about_a_broken_task_names_the_law_and_the_example(task: type[Task], releases: Releases) -> None:
    with pytest.raises(LawError, match=BROKEN[task]) as raised:
        check_task(task, [task().stamp(example) for example in releases.examples(Activity)])
    assert str(raised.value).startswith("barista/activity by the protocol")
    assert "Fix: " in str(raised.value)


def changed(name: str, value: Any) -> type[Task]:
    return type("Changed", (Activity,), {name: value})


def other_prompt(self: Activity, example: Example, box_format: BoxFormat) -> Prompt:
    asked = Activity.prompt(self, example, box_format)
    return replace(asked, system=f"{asked.system} Think.")


@pytest.mark.parametrize(
    ("task", "what"),
    [(changed("prompt", other_prompt), "prompts"), (changed("upstream_name", "activities"), "examples")],
    ids=["prompt", "derivation"],
)
def test_a_change_without_a_new_version_is_refused_and_recorded_with_one(
    task: type[Task], what: str, releases: Releases, tmp_path: Path
) -> None:
    file, source = tmp_path / "versions.json", "kitchen"

    def check(kind: type[Task], examples: Sequence[Example], *, record: bool = False) -> None:
        check_version(kind, examples, file, source=source, record=record)

    first, other = releases.examples(Activity), releases.examples(task)
    with pytest.raises(LawError, match="is not recorded"):
        check(Activity, first)
    check(Activity, first, record=True)
    check(Activity, first)
    for record in (False, True):
        with pytest.raises(LawError, match=f"has other {what}.* than recorded .*raise `version`"):
            check(task, other, record=record)
    raised = type("Raised", (task,), {"version": Activity.version + 1})
    check(raised, other, record=True)
    check(raised, other)
    with pytest.raises(LawError, match="is older than recorded"):
        check(Activity, first)


def test_a_change_of_the_parser_without_a_new_version_is_refused(releases: Releases, tmp_path: Path) -> None:
    examples = releases.examples(Activity)
    check_version(Activity, examples, tmp_path / "versions.json", source="kitchen", record=True)
    task = type("Changed", (Activity,), {"parse": lambda self, text, inputs, boxes: ParseError("never")})
    with pytest.raises(LawError, match="has other answers, scores than"):
        check_version(task, examples, tmp_path / "versions.json", source="kitchen")


VERSIONS = Path(__file__).with_name("task_versions.json")
KEYS = (
    *("bboxes", "boxes", "scores", "object", "time", "box", "start", "end", "answer", "reasoning", "source_id"),
    *("target_id", "relation_type", "value", "hand_boxes", "object_box", "hand_type", "steps", "spatial_tracking"),
    "masks",
)
"""Names that answers have."""
every_task = pytest.mark.parametrize("task", TASKS, ids=lambda task: f"{task.benchmark}-{task.name}")


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
def test_only_tasks_with_boxes_in_answers_need_a_box_format(task: type[Task], releases: Releases) -> None:
    made, examples = task(options=options_of(task)), releases.examples(task)
    name = f"{task.benchmark}-{task.name}"
    assert asks_for_boxes(made, examples) is (name in BOXES_IN_ANSWERS)
