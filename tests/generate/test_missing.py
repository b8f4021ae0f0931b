"""What would let more be asked: the annotation that most questions wait for, and lines that the domain file lacks."""

import json
from pathlib import Path

import pytest

from barista_bench.generate.candidates import DECIDED, FACTS, UNPROVED, Choice, Tally
from barista_bench.generate.egocot.family import EgocotFamily
from barista_bench.generate.egocot.statements import InStep
from barista_bench.generate.generator import generate, missing_lines, read_missing
from barista_bench.generate.missing import MissingAnnotation, UndecidedCandidates, _deciding_work, _further_work
from barista_bench.generate.statements import (
    AllOf,
    Changes,
    Does,
    HasValue,
    Located,
    Statement,
    TouchedDuring,
    Touches,
    Unique,
)
from barista_bench.generate.tog_bench.statements import Fills, Handled
from barista_bench.scene_graph.domain import load_domain
from tests.generate.graphs import candidate_of, table

THINGS = {"left": "left hand", "right": "right hand", "cup": "coffee cup", "jar": "jar", "lid": "lid", "pot": "pitcher"}


def asked(root: Path, seen: dict[str, list[tuple[int, int]]]) -> tuple[int, list[MissingAnnotation]]:
    """How many candidates of AOG and HOA are decided, and which facts the others lack."""
    contacts = [("left", "holds", "cup", 0, 60), ("right", "touches", "jar", 60, 120)]
    scene = table(root, THINGS, contacts=contacts, seen=seen)
    tally, waiting = Tally(), UndecidedCandidates()
    for _ in EgocotFamily(load_domain()).decide_all(scene, tally, waiting):
        pass
    return tally["AOG", DECIDED] + tally["HOA", DECIDED], waiting.most_useful()


def test_drawing_the_masks_that_are_asked_for_lets_the_questions_be_asked(tmp_path: Path) -> None:
    few, missing = asked(tmp_path / "few", {"left": []})
    many, none = asked(tmp_path / "many", {})
    best = missing[0]
    assert best.work == "draw masks of the left hand wherever it is in view"
    assert {"egocot AOG", "egocot HOA"} <= set(best.subtasks)
    assert best.items == sum(best.subtasks.values())
    assert many > few
    assert best.work not in [row.work for row in none]


def test_only_frames_that_the_video_has_are_named(tmp_path: Path) -> None:
    scene = table(tmp_path, {"pot": "pitcher"}, frames=90)
    waiting = UndecidedCandidates()
    candidate = candidate_of(
        Choice("The pitcher", Fills("pot", ("pitcher",))), span=(0, 90), frames=(), given=(Handled("pot"),)
    )
    waiting.add("tog_bench", candidate, scene, 0, Handled.unmet)
    assert [row.frames for row in waiting.most_useful()] == [(0, 89)]


def test_facts_that_are_asked_already_or_twice_promise_no_further_question(tmp_path: Path) -> None:
    scene = table(tmp_path, {"pot": "pitcher"}, frames=90)
    missing = UndecidedCandidates()
    for event, frame in (("lid on jar", 10), ("lid on jar", 50), ("cup full", 30), (f"cup full{FACTS}jar open", 70)):
        unseen = HasValue("pot", "state", "empty", frame)
        candidate = candidate_of(Choice("Empty", unseen), span=(0, 90), frames=(frame,), event=event)
        missing.add("egocot", candidate, scene, 0, UNPROVED)
    assert [row.items for row in missing.most_useful()] == [2]
    asked_candidate = candidate_of(Choice("On it", Located("pot", "on", "jar", 80)), frames=(80,), event="lid on jar")
    missing.mark_asked("egocot", [asked_candidate])
    assert [row.items for row in missing.most_useful()] == [1]
    full = candidate_of(Choice("Full", Located("pot", "on", "jar", 85)), event="cup full")
    missing.mark_asked("egocot", [full])
    assert missing.most_useful() == []


def test_generate_says_so_and_which_words_the_domain_lacks(small_release: Path, tmp_path: Path) -> None:
    source = tmp_path / "graphs"
    for path in sorted(small_release.glob("*/coco_annotation.json")):
        content = json.loads(path.read_text())
        content["attributes"][0] |= {"attribute_type": "mood", "value": "ajar"}
        (source / path.parent.name).mkdir(parents=True)
        (source / path.parent.name / path.name).write_text(json.dumps(content))
        (source / path.parent.name / "video.mp4").hardlink_to(path.parent / "video.mp4")
    generate(source, tmp_path / "out", ["egocot"], per_subtask=2)
    missing = read_missing(tmp_path / "out")
    (line,) = [line for line in missing.domain_lines if "ajar" in line]
    assert line.startswith(f"attributes: {{mood: {{dimensions: [[ajar]]}}}}  # {len(list(source.iterdir()))} x, ")
    assert missing.annotations
    assert all(row.items and row.frames and row.work for row in missing.annotations)
    assert len(missing_lines(missing)) == 2 + len(missing.domain_lines) + len(missing.annotations)


@pytest.mark.parametrize(
    ("statement", "work"),
    [
        (Touches("left", "cup", 30), "record any touch of the left hand that is missing"),
        (TouchedDuring("cup", 10, 60), "record any touch of the hands that is missing"),
        (
            Unique("cup", (30,)),
            "tell the coffee cup from others of its name, by the hand or place that it is in, color or type",
        ),
        (HasValue("cup", "state", "empty", 30), "say in what state the coffee cup is"),
        (InStep("Brew", 30), "say which step of the work is under way"),
        (Located("cup", "on", "jar", 30), "say where the coffee cup is"),
        (Does("Grasp cup", 30), "say what the person does"),
    ],
)
def test_the_missing_work_that_would_decide_a_statement_is_named_in_words(
    tmp_path: Path, statement: Statement, work: str
) -> None:
    assert _deciding_work(statement, table(tmp_path, THINGS)).text == work


@pytest.mark.parametrize(
    ("statement", "work"),
    [
        (Touches("left", "cup", 30), "draw masks of {} of the things in view"),
        (Does("Grasp cup", 30), "record {} of the activities"),
        (InStep("Brew", 30), "record {} of the process steps"),
        (HasValue("cup", "state", "empty", 30), "record {} of the states"),
    ],
)
def test_choices_that_are_too_few_ask_for_more_of_their_kind(tmp_path: Path, statement: Statement, work: str) -> None:
    scene = table(tmp_path, THINGS)
    works = [_further_work((Choice("", statement),), lacking, scene) for lacking in (1, 2)]
    assert works == [work.format("one more"), work.format("more")]


def test_only_frames_that_lack_the_annotation_are_named_and_none_that_has_it(tmp_path: Path) -> None:
    contacts = [("left", "holds", "cup", 0, 60)]
    scene = table(tmp_path, THINGS, contacts=contacts, seen={"left": [(0, 30)], "jar": [(0, 90)]})
    touch, other = Touches("left", "cup", 20), Touches("left", "cup", 50)
    both = AllOf((touch, other))
    drawn = "draw masks of the left hand wherever it is in view"
    assert _deciding_work(both, scene) == (drawn, (50,))
    assert _deciding_work(touch, scene).text == ""  # recorded, although hand and cup may be apart


def test_a_state_that_is_recorded_already_is_not_asked_for(tmp_path: Path) -> None:
    attributes = [("cup", "state", "empty", 0, 50), ("cup", "state", "full", 70, 120)]
    scene = table(tmp_path, THINGS, attributes=attributes)
    works = [_deciding_work(HasValue("cup", "state", "tilted", frame), scene).text for frame in (30, 60)]
    assert works == ["", "say in what state the coffee cup is"]
    changes = [Changes("cup", "state", "empty", "tilted", start, end) for start, end in ((10, 40), (30, 90))]
    assert [_deciding_work(change, scene).text for change in changes] == works


@pytest.mark.parametrize(("end", "work"), [(100, "record more of the activities"), (118, "")])
def test_more_activities_are_wanted_only_where_the_video_has_time_for_them(tmp_path: Path, end: int, work: str) -> None:
    scene = table(tmp_path, THINGS, activities=[("Grasp cup", 60, end), ("Open jar", 0, 70)])
    assert _further_work((Choice("", Does("Grasp cup", 30)),), 2, scene) == work
