"""A model rewords generated items: refusals, second attempts, and the result for `generate --review`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from barista_bench.errors import ConfigError, DataError
from barista_bench.generate.generator import generate
from barista_bench.generate.review import ReviewedItem, read_review, review_bytes
from barista_bench.models import Completion, Failure, Request
from barista_bench.scene_graph.domain import load_domain
from barista_bench.writing.checks import ItemTexts, WordingChecker
from barista_bench.writing.config import RewordConfig
from barista_bench.writing.rewording import RewordSession, reword
from tests.judging.conftest import never
from tests.judging.judges import ScriptedJudge, material

CHECKER = WordingChecker(load_domain())
TOUCHING = ItemTexts(
    "At 00:12.00, which hand is touching which object?",
    ("The left hand is touching the milk frother.", "The right hand is touching the coffee cup."),
)


def item(name: str, texts: ItemTexts = TOUCHING, **fields: Any) -> ReviewedItem:
    made = ReviewedItem(f"egocot/{name}", "HOA", "v0", name * 8, texts.question, texts.choices, (0,))
    return msgspec.structs.replace(made, **fields)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three items without a verdict, one accepted item, and one item of ViSTa."""
    rows = [item(name) for name in "abc"]
    rows += [item("d", verdict="accept", reviewer="ada"), item("e", item="vista/objects/place_0/0")]
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "review.jsonl").write_bytes(review_bytes(rows))
    return tmp_path / "made"


def spoken(request: Request, _: int = 0) -> Completion:
    """The same, with the time at the end and verbs without `is ...ing`."""
    shown = material(request)
    time, _, rest = shown["question"].partition(", ")
    is_dated = time.startswith("At ") and rest
    question = f"{rest[:1].upper()}{rest[1:-1]} a{time[1:]}?" if is_dated else shown["question"]
    choices = [text.replace(" is touching ", " touches ") for key, text in shown.items() if key.startswith("choice")]
    return Completion(json.dumps({"question": question, "choices": choices}))


def start(folder: Path, writer: ScriptedJudge, out: str = "reworded") -> RewordSession:
    return reword(RewordConfig(model="writer", folder=folder, out=folder.parent / out), writer)


def wordings(session: RewordSession) -> dict[str, dict[str, Any]]:
    lines = (session.folder / "wordings.jsonl").read_text().splitlines()
    return {row["item"]: row for row in map(json.loads, lines)}


@pytest.mark.parametrize(
    ("old", "new", "fault"),  # the beginning of the message; empty where the wording is usable
    [
        ("At 00:12.00, which object is the hand touching?", "Which object does the hand touch at 00:12.00?", ""),
        ("The left hand is touching the lid.", "The lid is touched by the left hand.", ""),
        ("Where is the cup when the clip ends?", "When the clip ends, where is the cup?", ""),
        ("milk carton", "the carton of milk", "a name changed"),
        ("The left hand is touching the lid.", "The right hand is touching the lid.", "a word added: 'right'"),
        ("The left hand is touching the lid.", "The left hand gently touches the lid.", "a word added: 'gently'"),
        ("The left hand is touching the red lid.", "The left hand is touching the lid.", "a word left out: 'red'"),
        ("It is at rest at 00:12.00.", "It is at rest at 00:13.00.", "a word added: '00:13.00'"),
        ("The cup is empty.", "The cup is not empty.", "a word added: 'not'"),
        ("The spoon is on the saucer.", "The saucer is on the spoon.", "another claim"),
        ("The cup holds the spoon.", "The cup is held by the spoon.", "another claim"),
        ("First, they open the lid; then they wipe the jar.", "First, they wipe the lid; then they open the jar.", "a"),
        ("Pour milk from the carton into the cup.", "Pour milk into the carton from the cup.", "another"),
        ("Fasten the portafilter to the machine.", "Fasten the machine to the portafilter.", "another order"),
        (
            "It is being filled, and the left hand is on it.",
            "It is filled, and the left hand is on it.",
            "another order",
        ),
        ("The tray is emptying.", "The tray is empty.", "another"),
        (
            "What is so, first at 00:04 and later at 00:11?",
            "What is so, first at 00:11 and later at 00:04?",
            "another order",
        ),
        ("Where is the cup?", "Where is the cup.", "punctuation"),
        ("Where is the cup?", "Where is the <b>cup</b>?", "characters: '/'"),
        ("Where is the cup?", "Where is it that the cup is, the cup that it is there?", "length"),
    ],
)
def test_a_wording_keeps_the_meaning_of_the_template(old: str, new: str, fault: str) -> None:
    templates, texts = ItemTexts("Which is so?", (old, "No.")), ItemTexts("Which is so, of these?", (new, "No."))
    complaint = CHECKER.fault(texts, templates, (1,))
    assert complaint.startswith(fault)
    assert bool(complaint) == bool(fault)


def test_choices_stay_distinct_and_none_stands_out() -> None:
    old = ItemTexts("Where is the cup?", ("In the left hand.", "In the right hand."))
    swapped = ItemTexts("The cup is where?", ("In the left hand.", "In the left hand."))
    longer = ItemTexts("The cup is where?", ("In the left hand at the time.", "In the right hand."))
    alike = ItemTexts("Where is the cup?", ("In the jar.", "In a jar."))
    assert CHECKER.fault(swapped, old, (0,)).startswith("a word added: 'left'")
    assert CHECKER.fault(ItemTexts("The cup is where?", alike.choices), alike, (0,)).startswith("choices alike")
    complaint = CHECKER.fault(longer, old, (0,))
    assert complaint == "choices of unlike length: one stands out", "the writer learns not which is right"
    assert CHECKER.fault(longer, old, (0, 1)) == "", "all are right"
    assert CHECKER.words_to_keep(TOUCHING) == ["left hand", "milk frother", "right hand", "coffee cup", "00:12.00"]


def test_usable_wordings_become_revisions_and_all_other_items_stay_unchanged(folder: Path) -> None:
    writer = ScriptedJudge(spoken)
    session = start(folder, writer)
    before, after = (read_review(path / "review.jsonl") for path in (folder, session.folder))
    assert (session.items, session.revised, session.kept_by_reason, len(writer.asked)) == (3, 3, {}, 3)
    assert list(after) == list(before)
    for name in ("egocot/a", "egocot/b", "egocot/c"):
        row = after[name]
        assert (row.verdict, row.reason, row.reviewer) == ("revise", "wording", "scripted-judge (r1)")
        assert row.question == "Which hand is touching which object at 00:12.00?"
        assert row.choices[0] == "The left hand touches the milk frother."
    assert {name: after[name] for name in ("egocot/d", "vista/objects/place_0/0")} == {
        name: before[name] for name in ("egocot/d", "vista/objects/place_0/0")
    }
    line = wordings(session)["egocot/a"]
    assert (line["facts"]["question"], line["model"]["revision"]) == (TOUCHING.question, "r1")
    replies = [json.loads(text)["key"] for text in (session.folder / "replies.jsonl").read_text().splitlines()]
    assert line["replies"] == replies[:1]
    assert [line["seeds"][0]] == [seed for name, seed in writer.asked if name.startswith("egocot/a")]


def test_a_refused_wording_is_asked_for_once_more_with_the_reason(folder: Path) -> None:
    def answer(request: Request, _: int) -> Completion:
        if request.request_id.startswith("egocot/a") or material(request)["refused"]:
            return spoken(request)
        return Completion(spoken(request).text.replace("frother", "porcelain frother"))

    writer = ScriptedJudge(answer)
    session = start(folder, writer)
    reasons = [shown["refused"] for shown in map(material, writer.requests) if shown["refused"]]
    assert session.revised == 3
    assert len(writer.asked) == len(set(writer.asked)) == 5
    assert reasons == ["a word added: 'porcelain' in 'The left hand touches the milk porcelain frother.'"] * 2


def test_the_template_stays_where_the_repair_fails_too_and_reasons_are_counted(folder: Path) -> None:
    texts = {"a": "I would rather not", "b": '{"question": "Which hand?", "choices": ["The left.", "The right."]}'}
    writer = ScriptedJudge(lambda r, _: Completion(texts[n]) if (n := r.request_id[7]) in texts else spoken(r))
    session = start(folder, writer)
    assert (session.revised, session.kept_by_reason) == (1, {"a word left out": 1, "not JSON": 1})
    assert [request.request_id[7] for request in writer.requests].count("a") == 2
    assert read_review(session.folder / "review.jsonl")["egocot/a"] == item("a")
    assert wordings(session)["egocot/b"]["reason"].startswith("a word left out: '00:12.00'")


def test_a_broken_start_is_gone_on_with_to_the_same_bytes(folder: Path) -> None:
    def breaks(request: Request, _: int) -> Completion | Failure:
        if request.request_id.startswith("egocot/b"):
            return Failure("down")
        if request.request_id.startswith("egocot/c"):
            raise KeyboardInterrupt
        return spoken(request)

    whole = start(folder, ScriptedJudge(spoken, batch_size=1), "whole")
    with pytest.raises(KeyboardInterrupt):
        start(folder, ScriptedJudge(breaks, batch_size=1))
    second = ScriptedJudge(spoken, batch_size=1)
    session = start(folder, second)
    assert [name[7] for name, _ in second.asked] == ["b", "c"]
    for name in ("review.jsonl", "wordings.jsonl", "provenance.json"):
        assert (session.folder / name).read_bytes() == (whole.folder / name).read_bytes()


def test_a_failure_is_not_a_refusal_and_a_folder_takes_neither_another_writer_nor_other_items(folder: Path) -> None:
    session = start(folder, ScriptedJudge(lambda *_: Failure("down")))
    assert (session.failed, session.first_failure, session.kept_by_reason) == (3, "down", {"no reply": 3})
    assert start(folder, ScriptedJudge(spoken)).revised == 3
    with pytest.raises(ConfigError, match="another writer, or of other items"):
        start(folder, ScriptedJudge(never, name="other"))
    (folder / "review.jsonl").write_bytes(review_bytes([item("a")]))
    with pytest.raises(ConfigError, match="another writer, or of other items"):
        start(folder, ScriptedJudge(never))
    with pytest.raises(ConfigError, match="lies inside"):
        start(folder, ScriptedJudge(never), "made/reworded")
    with pytest.raises(DataError, match="barista-bench generate"):
        start(folder.parent, ScriptedJudge(never))


@pytest.mark.full
def test_generating_again_asks_in_the_new_words_with_the_same_proof(
    small_kitchen: Path, generated: Callable[[str], Path], tmp_path: Path
) -> None:
    made, some = generated("egocot").parent, tmp_path / "some"
    rows = read_review(made / "review.jsonl")
    some.mkdir()
    (some / "review.jsonl").write_bytes(review_bytes(list(rows.values())[::2]))
    session = reword(RewordConfig(model="writer", folder=some, out=tmp_path / "reworded"), ScriptedJudge(spoken))
    assert session.revised > 3
    generate(small_kitchen, tmp_path / "again", ["egocot"], per_subtask=4, review=session.folder / "review.jsonl")
    told = rows | read_review(session.folder / "review.jsonl")
    lines = [
        [json.loads(line) for line in (path / "egocot.items.jsonl").read_text().splitlines()]
        for path in (made, tmp_path / "again")
    ]
    for before, after in zip(*lines, strict=True):
        row = told[f"egocot/{before['id']}"]
        assert (after["question"], after["correct"]) == (row.question, before["correct"])
        assert [choice["text"] for choice in after["choices"]] == list(row.choices)
        assert [choice["statement"] for choice in after["choices"]] == [c["statement"] for c in before["choices"]]
    asked = json.loads((tmp_path / "again" / "egocot" / "dev.json").read_text())
    assert {record["question"] for record in asked} <= {row.question for row in told.values()}
