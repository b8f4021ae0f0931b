"""What people hand in: taken whole or refused, with nothing written."""

import json
from pathlib import Path
from typing import Any

import pytest

from barista_bench.annotate.decisions import accept, read_decisions
from barista_bench.annotate.project import Project, start_project
from barista_bench.annotate.records import SignalFile
from barista_bench.errors import DataError
from tests.annotate.projects import VIDEO, contents, only

SQUARE = [[10, 10, 30, 10, 30, 30, 10, 30]]


@pytest.fixture
def project(small_kitchen: Path, tmp_path: Path) -> Project:
    return start_project(tmp_path / "project", only(small_kitchen, tmp_path / "videos"), propagator="copy_nearest")


def hand_in(project: Project, folder: Path, content: object) -> list[str]:
    path = folder / "decisions.json"
    path.write_text(json.dumps(content))
    return accept(project, read_decisions(path))


def masks(**changes: object) -> dict[str, Any]:
    keyframe = {"frame": 5, "masks": {"cup": SQUARE}}
    return {"video": VIDEO, "by": "anna", "objects": {"cup": "coffee cup"}, "keyframes": [keyframe], **changes}


def test_polygons_become_masks_with_who_and_when(project: Project, tmp_path: Path) -> None:
    assert hand_in(project, tmp_path, masks(when="2026-01-31", seconds=40)) == ["accepted.json"]
    accepted = project.video(VIDEO).accepted()
    assert accepted.seconds == 40
    (keyframe,) = accepted.keyframes
    mask = keyframe.masks["cup"]
    assert (mask.by, mask.when, mask.rle.size) == ("anna", "2026-01-31", (72, 128))
    assert keyframe.complete


def test_a_later_file_adds_to_a_keyframe_or_replaces_it_and_the_same_one_changes_nothing(
    project: Project, tmp_path: Path
) -> None:
    hand_in(project, tmp_path, masks())
    before = contents(project.video(VIDEO))
    hand_in(project, tmp_path, masks())
    assert contents(project.video(VIDEO)) == before
    extra = {"frame": 5, "complete": False, "masks": {"lid": SQUARE}}
    hand_in(project, tmp_path, masks(objects={"lid": "lid"}, keyframes=[extra], by="ben"))
    (keyframe,) = project.video(VIDEO).accepted().keyframes
    assert {name: mask.by for name, mask in keyframe.masks.items()} == {"cup": "anna", "lid": "ben"}
    assert keyframe.complete
    hand_in(project, tmp_path, masks(keyframes=[{"frame": 5, "masks": {"lid": SQUARE}}]))
    (keyframe,) = project.video(VIDEO).accepted().keyframes
    assert list(keyframe.masks) == ["lid"]


def prompt(**changes: object) -> dict[str, Any]:
    return {"frame": 5, "category": "lid", **changes}


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (masks(video="other"), "no video 'other'"),
        (masks(video="../up"), r"no video '../up'"),
        (masks(by=" "), "no person is named"),
        (masks(colour="red"), "colour"),
        (masks(objects={}), "'cup' has no category"),
        (masks(objects={"cup": "grail"}), "no category 'grail'"),
        (masks(keyframes=[{"frame": 999_999, "masks": {}}]), "keyframe 999999"),
        (masks(keyframes=[{"frame": -1, "masks": {}}]), "frame"),
        (masks(keyframes=[{"frame": 5, "masks": {"cup": {"size": [1, 1], "counts": "1"}}}]), "mask of 'cup'"),
        (masks(keyframes=[{"frame": 5, "masks": {"cup": {"size": [72, 128], "counts": "zz"}}}]), "mask of 'cup'"),
        (masks(keyframes=[{"frame": 5, "masks": {"cup": [[1e9] * 6]}}]), "mask of 'cup'"),
        (masks(contacts=[[50, 20]]), r"contacts: \[50, 20\]"),
        (masks(contacts=[[0, 10**6]]), "not a range of frames"),
        (masks(confidence=[0.5]), "1 confidences for"),
        (masks(confidence=[2.0]), "confidence"),
        (masks(layers={"activities": [{"name": "pour", "range": [5, 5]}]}), "'pour'"),
        (masks(layers={"attributes": [{"object": "x", "type": "state", "value": "full", "ranges": []}]}), "'x'"),
        (masks(edits=[{"edit": "undo", "line": 1}]), "no earlier edit"),
        (masks(edits=[{"edit": "rename", "object": "x", "category": "lid"}]), "'x', which is not an object"),
        (masks(edits=[{"edit": "split", "object": "cup", "frame": 9, "new": "cup"}]), "an object already"),
        (masks(edits=[{"edit": "explode"}]), "explode"),
        (masks(prompts=[prompt(box=[0, 0, 129, 20])]), "within 128x72 px"),
        (masks(prompts=[prompt(box=[20, 0, 10, 20])]), "frame 5: cannot be asked"),
        (masks(prompts=[prompt(points=[{"x": -1, "y": 5}])]), "frame 5: cannot be asked"),
        (masks(prompts=[prompt(words="white lid", box=[0, 0, 9, 9])]), "frame 5: cannot be asked"),
        (masks(prompts=[prompt()]), "frame 5: cannot be asked"),
        (masks(prompts=[prompt(frame=999_999, words="lid")]), "frame 999999: cannot be asked"),
        (masks(prompts=[prompt(category="grail", words="lid")]), "no category 'grail'"),
        (masks(keyframes=[{"frame": 5, "proposals": {"cup": "0"}}]), "no proposal '0' for 'cup'"),
        ([], "object"),
    ],
)
def test_errors_are_named_and_nothing_is_written(content: object, what: str, project: Project, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=what) as caught:
        hand_in(project, tmp_path, content)
    assert "Fix: " in str(caught.value)
    assert not project.video(VIDEO).folder.exists()


def test_prompts_replace_earlier_prompts_of_their_frames(project: Project, tmp_path: Path) -> None:
    hand_in(project, tmp_path, masks(prompts=[prompt(frame=9, words="lid"), prompt(box=[0, 0, 9, 9])]))
    assert hand_in(project, tmp_path, {"video": VIDEO, "by": "ben", "prompts": [prompt(words="red lid")]}) == [
        "prompts.json"
    ]
    assert [(item.frame, item.words) for item in project.video(VIDEO).prompts()] == [(5, "red lid"), (9, "lid")]


@pytest.mark.full
def test_confidences_come_as_csv_with_holes(project: Project, tmp_path: Path) -> None:
    count = project.video(VIDEO).source.frames
    path = tmp_path / f"{VIDEO}.csv"
    path.write_text(
        "frame,confidence\n0,0.25\n2,\n" + f"{count - 1},1\n" + "".join(f"{k},0\n" for k in range(3, count - 1))
    )
    accept(project, read_decisions(path), "anna")
    signal = project.video(VIDEO).read(SignalFile)
    assert signal.confidence[:4] == [0.25, None, None, 0]
    assert signal.verified


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", "frame,confidence\n0,2\n", "frame,confidence\n-1,0\n", "frame,confidence\n99999999,0\n"]
)
def test_csv_files_without_confidences_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "clip.csv"
    path.write_text(text)
    with pytest.raises(DataError, match="no confidences"):
        read_decisions(path)


def test_an_outline_that_would_take_the_rasterisers_memory_is_refused(project: Project, tmp_path: Path) -> None:
    zigzag = [-400.0, -250.0, 400.0, 250.0] * 5_000
    with pytest.raises(DataError, match=r"outlines of \d+ pixels"):
        hand_in(project, tmp_path, masks(keyframes=[{"frame": 5, "masks": {"cup": [zigzag]}}]))


@pytest.mark.parametrize(
    "changes", [{"seconds": 1.7e308}, {"edits": [{"edit": "merge", "into": "cup", "objects": ["lid"] * 20_000}]}]
)
def test_unreadable_decisions_are_refused_and_nothing_is_written(
    project: Project, tmp_path: Path, changes: dict[str, Any]
) -> None:
    with pytest.raises(DataError):
        hand_in(project, tmp_path, masks(**changes))
    assert contents(project.video(VIDEO)) == {}
