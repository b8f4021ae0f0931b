"""Questions written by a model: checked against the changes, retried, resumed, and taken up with their provenance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from barista_bench.benchmarks.barista.change_detection import CATEGORIES, Category, Change
from barista_bench.benchmarks.barista.qa_templates import load_qa_pairs, read_writer, write_pair
from barista_bench.benchmarks.barista.temporal_vqa import TemporalVQA
from barista_bench.builders.folder import build
from barista_bench.builders.frozen import read_frozen
from barista_bench.errors import ConfigError, DataError
from barista_bench.judging.question_checks import invented, unmentioned, wrong_with
from barista_bench.judging.question_config import QuestionConfig
from barista_bench.judging.questions import QuestionSession, question_prompt, write_questions
from barista_bench.models import Completion, Failure, Request
from barista_bench.scene_graph import SceneGraph
from barista_bench.task import Example, Sampling
from tests.judging.conftest import never
from tests.judging.judges import ScriptedJudge, user_text
from tests.releases import CUP, MACHINE, document, relation, span, write_release

SHORT = ("frames=6", "spacing=4")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two videos with a change of each category between frames 0 and 20."""
    folder = tmp_path_factory.mktemp("eventful")
    for name in ("v0", "v1"):
        content = document()
        content["relations"][1] = relation(CUP, MACHINE, "position", "under", (9, 40))
        content["attributes"][2]["image_ranges"] = [span(10, 30)]
        content["activities"][0]["image_range"] = span(0, 18)
        write_release(folder, name, content)
    return folder


@pytest.fixture(scope="module")
def examples(root: Path) -> dict[str, Example]:
    found = TemporalVQA().examples(SceneGraph(root), Sampling(frames=6, spacing=4))
    return {example.example_id: example for example in found if isinstance(example, Example)}


def changes_of(example: Example) -> list[Change]:
    return example.evidence["changes"]  # type: ignore[return-value]


def asked_about(request: Request) -> str:
    return request.request_id.rpartition(":")[0]


def template(examples: dict[str, Example], request: Request, **other: Any) -> Completion:
    """The template's own pair: right by construction."""
    example = examples[asked_about(request)]
    return Completion(json.dumps({**write_pair(example.label, changes_of(example)), **other}))


def start(root: Path, out: Path, writer: ScriptedJudge, **settings: Any) -> QuestionSession:
    config = QuestionConfig(model="writer", source=str(root), out=out, sampling=SHORT, **settings)
    return write_questions(config, writer)


def test_questions_are_written_in_the_releases_cache_format(root: Path, examples: dict, tmp_path: Path) -> None:
    writer = ScriptedJudge(lambda request, _: template(examples, request))
    session = start(root, tmp_path / "q", writer)
    assert (session.wanted, session.written, session.asked, session.refused) == (len(examples), len(examples), 8, [])
    assert {example.label for example in examples.values()} == set(CATEGORIES)
    (line,) = (tmp_path / "q" / "v0_qa_pairs.jsonl").read_text().splitlines()
    clip = json.loads(line)
    assert (clip["clip_index"], clip["frame_indices"]) == (0, [0, 4, 8, 12, 16, 20])
    assert [pair["category"] for pair in clip["qa_pairs"]] == list(CATEGORIES)
    assert set(load_qa_pairs(tmp_path / "q")) == {("v0", 0), ("v1", 0)}
    assert writer.configs[0].temperature == 0.7


def test_the_writer_is_shown_the_changes_and_nothing_of_the_release_beside_them(examples: dict) -> None:
    example = next(e for e in examples.values() if e.label == "state_change")
    text = question_prompt("state_change", changes_of(example)).as_text()
    assert "- the coffee machine started extracting" in text
    assert '"category": "state_change"' in text
    assert "{" + "changes}" not in text
    assert "refused" not in text
    assert "it rains" in question_prompt("state_change", changes_of(example), "it rains").as_text()


def test_a_refused_reply_is_asked_for_again_with_the_reason_under_another_seed(
    root: Path, examples: dict, tmp_path: Path
) -> None:
    def answer(request: Request, _: int) -> Completion:
        if "An earlier reply was refused" in user_text(request):
            return template(examples, request)
        return template(examples, request, category="state_change")

    writer = ScriptedJudge(answer)
    session = start(root, tmp_path / "q", writer)
    assert session.written == len(examples)
    again = [request for request in writer.requests if "An earlier reply was refused" in user_text(request)]
    assert len(again) == sum(example.label != "state_change" for example in examples.values())
    assert "the category is 'state_change', not" in user_text(again[0])
    assert len({seed for _, seed in writer.asked}) == len(writer.asked)


def test_what_never_passes_is_left_out_and_named(root: Path, examples: dict, tmp_path: Path) -> None:
    def answer(request: Request, _: int) -> Completion:
        if examples[asked_about(request)].label == "relation_change":
            return Completion("I would rather not")
        return template(examples, request)

    writer = ScriptedJudge(answer)
    session = start(root, tmp_path / "q", writer, attempts=2)
    assert session.written == session.wanted - 2
    assert len(session.refused) == 2
    assert "not JSON" in session.refused[0]
    assert len(writer.asked) == session.wanted + 2
    assert all(len(clip["qa_pairs"]) == 3 for clip in load_qa_pairs(tmp_path / "q").values())


def test_a_second_start_asks_only_what_failed_and_gives_up_nothing_twice(
    root: Path, examples: dict, tmp_path: Path
) -> None:
    first = ScriptedJudge(
        lambda request, _: Failure("down") if "v1" in request.request_id else template(examples, request)
    )
    session = start(root, tmp_path / "q", first)
    assert (session.failed, session.first_failure, session.written) == (4, "down", 4)
    second = ScriptedJudge(lambda request, _: template(examples, request))
    session = start(root, tmp_path / "q", second)
    assert session.written == 8
    assert {request.request_id.split(":")[1] for request in second.requests} == {"v1"}
    assert start(root, tmp_path / "q", ScriptedJudge(never)).written == 8


def test_the_date_and_the_writer_are_recorded_once(root: Path, examples: dict, tmp_path: Path) -> None:
    writer = ScriptedJudge(lambda request, _: template(examples, request), name="served:teacher")
    start(root, tmp_path / "q", writer, date="2026-01-02")
    start(root, tmp_path / "q", writer)
    assert read_writer(tmp_path / "q").startswith("served:teacher (r1), prompt ")
    assert read_writer(tmp_path / "q").endswith(", 2026-01-02")
    with pytest.raises(ConfigError, match="begun on 2026-01-02"):
        start(root, tmp_path / "q", writer, date="2026-01-03")
    with pytest.raises(ConfigError, match="another writer"):
        start(root, tmp_path / "q", ScriptedJudge(never, name="other"))
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "v0_qa_pairs.jsonl").write_text("")
    with pytest.raises(ConfigError, match=r"no provenance\.json"):
        start(root, tmp_path / "foreign", writer)


def test_build_takes_the_questions_up_with_their_provenance(root: Path, examples: dict, tmp_path: Path) -> None:
    def answer(request: Request, _: int) -> Completion:
        return template(examples, request, question=f"What about {examples[asked_about(request)].video_id}?")

    out = tmp_path / "q"
    start(root, out, ScriptedJudge(answer, name="served:teacher"), date="2026-01-02")
    sampling = {"temporal_vqa": {"frames": 6, "spacing": 4, "pairs": str(out)}}
    folder = build(root, tmp_path / "barista", configs=["temporal_vqa"], sampling=sampling, cache=False).folder
    frozen = list(read_frozen(folder / "frozen" / "temporal_vqa.jsonl"))
    assert len(frozen) == len(examples)
    for example in frozen:
        assert example.inputs["question"] == f"What about {example.video_id}?"
        assert example.metadata["writer"] == read_writer(out)
        assert example.evidence == examples[example.example_id].evidence


def test_broken_provenance_is_refused(tmp_path: Path) -> None:
    (tmp_path / "provenance.json").write_text('{"identity": 3}')
    with pytest.raises(DataError, match="no provenance"):
        read_writer(tmp_path)


def change(category: str, kind: str, subject: str, *objects: str, value: str = "") -> Change:
    return Change(
        category=cast("Category", category),
        kind=kind,
        subject=subject,
        value=value,
        objects=list(objects),
        object_ids=[],
        rows=[],
        start=0,
        end=1,
    )


LID = change("state_change", "opened", "lid")
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
    assert unmentioned(answer, changes) == missing


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
def test_nothing_else_may_be_named(text: str, changes: list[Change], foreign: list[str]) -> None:
    assert invented(text, changes) == foreign


def pair(**other: str) -> dict[str, str]:
    return {"question": "What happens?", "answer": f"The lid was opened {LONG}.", "category": "state_change", **other}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (pair(), ""),
        (pair(category="relation_change"), "the category is"),
        (pair(question="Tell me."), "question mark"),
        (pair(question="What of the spoon?"), "'spoon'"),
        (pair(answer="The lid was opened."), "4 words"),
        (pair(answer=f"It was opened {LONG}."), "does not mention lid"),
        (pair(answer=f"The lid was opened by a towel {LONG}."), "'towel'"),
    ],
)
def test_a_pair_is_refused_for_one_named_reason(given: dict[str, str], why: str) -> None:
    found = wrong_with(given, "state_change", [LID])  # type: ignore[arg-type]
    assert why in found if why else found == ""


def test_the_templates_pairs_of_real_clips_pass_every_check(real_release: Path) -> None:
    """The checks refuse no pair that is right by construction, whatever real annotations hold."""
    found = TemporalVQA().examples(SceneGraph(real_release), Sampling(frames=6, spacing=4))
    checked = 0
    for example in found:
        if isinstance(example, Example):
            changes = changes_of(example)
            assert wrong_with(write_pair(example.label, changes), example.label, changes) == "", example.example_id
            checked += 1
    assert checked


@pytest.mark.parametrize(
    "reply",
    [
        '{"question": "a?", "answer": "b"}',
        '{"question": "a?", "answer": "", "category": "c"}',
        '{"question": "a?", "answer": 3, "category": "c"}',
        '{"question": "a?", "answer": "\\ud800", "category": "c"}',
        '[{"question": "a?", "answer": "b", "category": "c"}]',
        '{"question": "a?", "answer": "' + "x" * 3000 + '", "category": "c"}',
    ],
)
def test_replies_of_another_form_are_no_pairs(reply: str, root: Path, tmp_path: Path) -> None:
    session = start(root, tmp_path / "q", ScriptedJudge(lambda *_: Completion(reply)), attempts=1)
    assert session.written == 0
    assert len(session.refused) == session.wanted
