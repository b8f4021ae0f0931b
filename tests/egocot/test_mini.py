"""The small release that is made from a mini kitchen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barista_bench.benchmarks.egocot import EgocotRelease
from barista_bench.benchmarks.egocot.items import BY_CODE, SUBTASKS
from barista_bench.benchmarks.egocot.mini import write_mini
from barista_bench.benchmarks.egocot.mini_questions import QUESTIONS
from barista_bench.benchmarks.egocot.mini_scene import GraphScene
from barista_bench.errors import DataError
from barista_bench.scene_graph import SceneGraph


def test_it_is_read_without_a_problem_and_has_both_splits(mini_release: EgocotRelease) -> None:
    assert not mini_release.problems
    assert {item.split for item in mini_release.items.values()} == {"dev", "test"}
    assert all(mini_release.video_path(item.media_id).is_file() for item in mini_release.items.values())
    assert {entry.dataset for entry in mini_release.manifest.values()} == {"mini kitchen"}


def test_there_is_a_question_maker_for_each_subtask() -> None:
    assert list(QUESTIONS) == [subtask.code for subtask in SUBTASKS]


def test_questions_have_four_choices_of_which_one_is_right(mini_release: EgocotRelease) -> None:
    assert mini_release.items
    for item in mini_release.items.values():
        assert list(item.choices) == ["A", "B", "C", "D"]
        assert len(set(item.choices.values())) == 4
        assert item.answer in item.choices or item.split == "test"


def test_right_answers_are_not_always_in_the_same_place(mini_release: EgocotRelease) -> None:
    letters = [item.answer for item in mini_release.items.values() if item.answer]
    assert set(letters) == {"A", "B", "C", "D"}


def test_the_name_of_an_object_does_not_tell_its_state(small_kitchen: Path) -> None:
    """What it changes from and to are both among the choices."""
    asked = set()
    for scene in map(GraphScene, SceneGraph(small_kitchen)):
        for code in ("MSP", "SR", "NSA"):
            draft = QUESTIONS[code](scene)
            if draft is not None:
                own = [{c.before, c.after} for c in scene.changes if c.object == draft.targets[0]]
                assert any(draft.right in pair and pair <= {draft.right, *draft.wrong} for pair in own), draft
                asked.add(code)
    assert asked == {"MSP", "SR", "NSA"}


def test_writing_twice_gives_the_same_bytes(small_kitchen: Path, mini_root: Path, tmp_path: Path) -> None:
    write_mini(small_kitchen, tmp_path / "again")
    for name in ("dev.json", "test.json", "media_manifest.json"):
        assert (tmp_path / "again" / name).read_bytes() == (mini_root / name).read_bytes()


def test_a_folder_with_something_in_it_is_left_alone(small_kitchen: Path, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(DataError, match="is not empty"):
        write_mini(small_kitchen, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


def test_records_follow_the_schema_of_the_page(mini_root: Path, page_folder: Path) -> None:
    theirs = json.loads((page_folder / "page_sample.json").read_text())
    records = json.loads((mini_root / "dev.json").read_text())
    assert records
    for ours in records:
        assert set(ours) == set(theirs)
        assert set(ours["evidence"]) == set(theirs["evidence"])
        for name, rows in theirs["evidence"].items():
            if rows and isinstance(rows[0], dict):
                assert all(set(row) == set(rows[0]) for row in ours["evidence"][name]), name


def test_right_choices_are_true_of_the_graph(small_kitchen: Path) -> None:
    """Asked anew of the graph's own tables, not of what the question was made with."""
    seen = set()
    for video in SceneGraph(small_kitchen):
        for code, ask in QUESTIONS.items():
            draft = ask(GraphScene(video))
            if draft is None:
                continue
            seen.add(code)
            frame, item = draft.frames[-1], draft.targets[0]
            contacts = video.hand_contacts(frame)
            states = {a.value for a in video.attributes(frame) if a.object == item and a.type == "state"}
            if code == "AOG":
                assert any(c.object.category == draft.right and f"{c.side} hand" in draft.question for c in contacts)
                assert not any(c.object.category in draft.wrong for c in contacts)
            elif code == "HOA":
                assert {f"{c.side} hand" for c in contacts if c.object == item} == {draft.right}
            elif code in ("MSP", "SR"):
                assert states == {draft.right}
            elif code == "NSA":
                later = [a for a in video.attributes() if a.object == item and a.type == "state" and a.start > frame]
                assert min(later, key=lambda a: a.start).value == draft.right
                assert draft.right not in states
            elif code == "NAA":
                following = [s for s in video.activities() if s.start > frame]
                assert min(following, key=lambda s: s.start).name == draft.right
            elif code == "LCOI":
                assert [s.name for s in video.activities(frame)] == [draft.right]
            elif code == "PR":
                ends = {s.name: s.end for s in video.steps()}
                assert ends[draft.right] <= frame < min(ends[name] for name in draft.wrong)
            elif code == "HGC":
                true = {f"{c.side} hand on the {c.object.category}" for c in contacts}
                assert all(part in draft.right.replace(" is on", " on") for part in true)
    assert len(seen) >= 10
    assert seen <= set(BY_CODE)
