"""The parser of question writers' replies, and the checks that keep or refuse pairs."""

import json
from pathlib import Path
from typing import Any

import pytest

from barista_bench.benchmarks.barista.change_detection import Change
from barista_bench.benchmarks.barista.qa_templates import write_pair
from barista_bench.benchmarks.barista.temporal_vqa import TemporalSampling, TemporalVQA
from barista_bench.core.example import Example
from barista_bench.runs.ask.replies import Unusable
from barista_bench.scene_graph import SceneGraph
from barista_bench.writing.checks import foreign_names, length_fault, missing_changes, pair_fault, read_pair
from tests.graph_examples import graph_examples
from tests.judging.changes import LID, change, changes_of

RINSE = change("state_change", "started rinsing", "coffee machine")
LONG = "while the person works calmly at the counter in front of them and looks at what they do"


@pytest.mark.parametrize(
    ("answer", "changes", "missing"),
    [
        ("The lid is opened.", [LID], []),
        ("The person opens a lid.", [LID], []),
        ("The lid is closed.", [LID], ["lid: opened"]),
        ("Something is opened.", [LID], ["lid"]),
        ("The machine for coffee begins to rinse.", [RINSE], []),
        ("The coffee machine is rinsing.", [RINSE], ["coffee machine: started rinsing"]),
        ("The lid was opened.", [LID, RINSE], ["coffee machine", "coffee machine: started rinsing"]),
        ("The cup is put on the saucer.", [change("relation_change", "new", "cup", "saucer", value="on")], []),
        ("The cup is lifted.", [change("relation_change", "lost", "cup", "saucer", value="on")], ["saucer"]),
        (
            "The left hand holds a cup.",
            [
                change("action_transition", "contact", "left hand", "cup"),
                change("action_transition", "contact", "left hand"),
            ],
            [],
        ),
        ("They are placing the cup.", [change("activity_progression", "started", "Place cup")], []),
        ("They are pressing it.", [change("activity_progression", "ended", "Press button")], ["Press button"]),
    ],
)
def test_every_change_must_be_mentioned(answer: str, changes: list[Change], missing: list[str]) -> None:
    assert missing_changes(answer, changes) == missing


@pytest.mark.parametrize(
    ("text", "changes", "foreign"),
    [
        ("The lid was opened.", [LID], []),
        ("The lid was opened with a spoon.", [LID], ["spoon"]),
        ("The red lid was opened.", [LID], ["red"]),
        ("The lid was opened and closed.", [LID], ["closed"]),
        ("The coffee machine started rinsing.", [RINSE], []),
        ("The coffee machine started extracting.", [RINSE], ["extracting"]),
        ("The right hand opened the lid.", [LID], ["right hand"]),
        ("The hand opened the lid.", [LID], []),
        ("The lids of water tanks opened.", [LID], ["water", "water tank"]),
    ],
)
def test_pairs_may_name_no_other_objects(text: str, changes: list[Change], foreign: list[str]) -> None:
    assert foreign_names(text, changes) == foreign


def pair(**other: str) -> dict[str, str]:
    return {"question": "What happens?", "answer": f"The lid was opened {LONG}.", "category": "state_change", **other}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (pair(), ""),
        (pair(category="relation_change"), "the category is"),
        (pair(question="Tell me."), "question mark"),
        (pair(question="What of the spoon?"), "'spoon'"),
        (pair(answer=f"It was opened {LONG}."), "does not mention lid"),
        (pair(answer=f"The lid was opened by a towel {LONG}."), "'towel'"),
    ],
)
def test_a_pair_is_refused_for_one_named_reason(given: dict[str, str], why: str) -> None:
    reason = pair_fault(given, "state_change", [LID])  # type: ignore[arg-type]
    assert why in reason if why else reason == ""


def test_the_templates_pairs_of_real_clips_pass_every_check(real_release: Path) -> None:
    """The checks refuse no pair that is right by construction, with any real annotations."""
    items = graph_examples(TemporalVQA(), SceneGraph(real_release), TemporalSampling(frames=6, spacing=4))
    checked = 0
    for example in items:
        if isinstance(example, Example):
            changes = changes_of(example)
            assert pair_fault(write_pair(example.label, changes), example.label, changes) == "", example.example_id
            checked += 1
    assert checked


SAID = {"question": "a?", "answer": "b", "category": "state_change"}


def said(**other: Any) -> str:
    return json.dumps({**SAID, **other})


@pytest.mark.parametrize(
    "reply",
    [
        said(),
        f"  {said()}\n",
        said(reason="an extra key"),
        f"[{said()}, 3]",
        f"```json\n{said()}\n```",
        f"```\n{said()}",
        f"``` any words\n{said()}\n``` and more",
    ],
)
def test_pairs_are_read_as_released_which_drops_short_answers(reply: str) -> None:
    assert read_pair(reply) == SAID
    assert [length_fault({**SAID, "answer": " w" * words}) == "" for words in (15, 16)] == [False, True]


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "no JSON",
        f"Here: {said()}",
        f"```json {said()} ```",
        f"```json\n{said()}\n```\n```\nmore\n```",
        f"[[{said()}]]",
        "[]",
        "3",
        said(question=""),
        said(answer=" "),
        said(answer=3),
        said(answer="\ud800"),
        said(category="other"),
        said(category=["state_change"]),
        '{"question": "a?", "answer": "b"}',
        said(answer="x" * 200_000),
        "[" * 100_000,
    ],
)
def test_replies_of_another_form_give_no_pairs(reply: str) -> None:
    assert isinstance(read_pair(reply), Unusable)
