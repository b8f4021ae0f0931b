"""Requests of a project's page that the server takes (decisions, drafts, frames) and requests that it refuses."""

import json
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from barista_bench.annotate.converting import decisions_of_graph
from barista_bench.annotate.decisions import DecidedKeyframe, Decisions, accept
from barista_bench.annotate.project import Project, open_project, writing
from barista_bench.annotate.records import LayerAttribute, Layers, ProposalsFile, Split, TrackLine
from barista_bench.annotate.running import run_video
from barista_bench.annotate.track_index import TrackIndex
from barista_bench.errors import DataError
from barista_bench.scene_graph.masks import Rle, decode_mask, encode_mask
from barista_bench.studio.server import MAX_BODY
from tests.annotate.projects import VIDEO, annotated, contents, reference, started, with_models
from tests.studio.serving import Visitor, visiting


@pytest.fixture
def anna(project: Project, out: Path) -> Iterator[Visitor]:
    with visiting(project.folder, out=out) as visitor:
        yield visitor


def standing(visitor: Visitor) -> dict[str, Any]:
    return visitor.json(f"/api/project?video={VIDEO}")


def at_rest(visitor: Visitor) -> dict[str, Any]:
    """The progress of the stages in the background, once they are made."""
    for _ in range(2400):
        progress: dict[str, Any] = visitor.json(f"/api/project/progress?video={VIDEO}")
        if progress["state"] in ("done", "failed"):
            return progress
        time.sleep(0.05)
    raise AssertionError(progress)


def rectangle(project: Project, left: int) -> dict[str, Any]:
    """A mask four pixels wide."""
    source = project.video(VIDEO).source
    mask = np.zeros((source.height, source.width), dtype=np.bool_)
    mask[:, left : left + 4] = True
    return json.loads(msgspec.json.encode(encode_mask(mask)))


def cup_on(project: Project, frame: int) -> dict[str, Any]:
    """Decisions: a cup on one keyframe."""
    keyframe = {"frame": frame, "masks": {"cup-1": rectangle(project, 8)}}
    return {"video": VIDEO, "objects": {"cup-1": "coffee cup"}, "keyframes": [keyframe]}


def test_the_command_that_the_page_offers_names_a_folder_whose_name_has_spaces(
    small_kitchen: Path, tmp_path: Path, out: Path
) -> None:
    project = started(small_kitchen, tmp_path / "my videos")
    with visiting(project.folder, out=out) as visitor:
        command = standing(visitor)["export"]
    assert shlex.split(command) == ["barista-bench", "annotate", "export", str(project.folder), "--out", "graphs"]


def test_a_decision_of_the_page_is_the_persons_who_started_the_studio(project: Project, anna: Visitor) -> None:
    frame = standing(anna)["asked"][0]
    body = {**cup_on(project, frame), "by": "mallory", "seconds": 3}
    assert anna.json("/api/project/accept", body) == {"files": ["accepted.json"]}
    assert not at_rest(anna)["problem"]
    accepted = open_project(project.folder).video(VIDEO).accepted()
    assert {mask.by for entry in accepted.keyframes for mask in entry.masks.values()} == {"anna"}
    shown = anna.json(f"/api/project/frame?video={VIDEO}&frame={frame}")
    assert [(mark["object"], mark["by"]) for mark in shown["accepted"]] == [("cup-1", "anna")]
    assert standing(anna)["accepted"] == [{"frame": frame, "complete": True}]


def test_objects_seen_earlier_are_suggested_again(project: Project, anna: Visitor) -> None:
    frames = standing(anna)["asked"]
    anna.json("/api/project/accept", cup_on(project, frames[0]))
    at_rest(anna)
    asked = project.video(VIDEO).asked_segments()
    later = next(frame for frame in frames[1:] if asked[frame] == asked[frames[0]])
    (suggestion,) = anna.json(f"/api/project/frame?video={VIDEO}&frame={later}")["suggestions"]
    assert (suggestion["object"], suggestion["category"], suggestion["origin"]) == ("cup-1", "coffee cup", "carried")


def test_a_draft_is_kept_for_its_person_until_it_is_replaced(project: Project, anna: Visitor, out: Path) -> None:
    keyframe = {"frame": 5, "complete": False, "masks": {"cup-1": rectangle(project, 8)}}
    decisions = {"video": VIDEO, "objects": {"cup-1": "coffee cup"}, "keyframes": [keyframe]}
    anna.json("/api/project/draft", {"decisions": decisions, "looked_at": [3], "by": "mallory"})
    with visiting(project.folder, out=out, person="ben") as visitor:
        assert standing(visitor)["draft"] is None
        visitor.json("/api/project/draft", {"decisions": {"video": VIDEO}})
    with visiting(project.folder, out=out) as visitor:
        draft = standing(visitor)["draft"]
    assert draft["decisions"]["keyframes"][0]["masks"] == keyframe["masks"]
    assert (draft["by"], draft["looked_at"]) == ("anna", [3])
    assert not project.video(VIDEO).accepted().keyframes
    assert {path.parent for path in project.folder.rglob("draft-*")} == {project.folder / VIDEO}


def test_a_draft_that_was_accepted_twice_changes_nothing_more(project: Project, anna: Visitor) -> None:
    body = cup_on(project, standing(anna)["asked"][0])
    anna.json("/api/project/accept", body)
    at_rest(anna)
    before = (project.folder / VIDEO / "accepted.json").read_bytes()
    anna.json("/api/project/accept", body)
    assert (project.folder / VIDEO / "accepted.json").read_bytes() == before


@pytest.mark.full
def test_tracks_are_shown_under_the_ids_that_decisions_take(small_kitchen: Path, project: Project, out: Path) -> None:
    video = annotated(small_kitchen, project)
    last = max(video.asked_segments())
    kept = min(video.accepted().keyframes[-1].masks)
    split = Split(object=kept, frame=last, new="split-1")
    accept(project, Decisions(video=VIDEO, edits=[split]), "anna")
    assert not run_video(project.folder, VIDEO).problem
    with visiting(project.folder, out=out) as anna:
        shown = anna.json(f"/api/project/frame?video={VIDEO}&frame={last}")["tracks"]
        ids = {mark["object"]: mark["accepted_as"] for mark in shown}
        assert ids["split-1"] == kept
        assert all(name == known for name, known in ids.items() if name != "split-1")
        correction = {"frame": last + 1, "complete": False, "masks": {ids["split-1"]: rectangle(project, 8)}}
        anna.json("/api/project/accept", {"video": VIDEO, "keyframes": [correction]})
        assert not at_rest(anna)["problem"]
        (mended,) = [
            mark
            for mark in anna.json(f"/api/project/frame?video={VIDEO}&frame={last + 1}")["tracks"]
            if mark["object"] == "split-1"
        ]
        assert mended["mask"] == correction["masks"][kept]


def test_one_frame_of_tracks_is_the_line_that_reading_all_of_them_gives(small_kitchen: Path, project: Project) -> None:
    video = annotated(small_kitchen, project)
    index = TrackIndex()
    assert index.line(video, 0) is None
    assert not run_video(project.folder, VIDEO).problem
    lines = list(video.tracks())
    assert [index.line(video, frame) for frame in (len(lines) - 1, 0, 7)] == [lines[-1], lines[0], lines[7]]
    path = video.file(TrackLine)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:4]))
    assert index.line(video, 2) == lines[2]
    with pytest.raises(DataError, match="frame 3: no frame of tracks"):
        index.line(video, 3)


def test_a_decision_waits_while_the_stages_before_it_are_made(project: Project, anna: Visitor) -> None:
    for start in (20, 30):
        anna.json("/api/project/accept", {"video": VIDEO, "contacts": [[start, 60]]})
    at_rest(anna)
    assert standing(anna)["contacts"] == [[30, 60]]
    assert not standing(anna)["can_run"]


def test_another_process_that_writes_the_project_is_named(project: Project, anna: Visitor) -> None:
    with writing(project.folder):
        assert "another process" in anna.refusal("/api/project/accept", {"video": VIDEO, "contacts": [[3, 9]]})
        anna.json("/api/project/run", {"video": VIDEO})
        assert "another process" in at_rest(anna)["problem"]


def test_a_draft_that_cannot_be_read_is_set_aside(project: Project, anna: Visitor) -> None:
    anna.json("/api/project/draft", {"decisions": {"video": VIDEO}})
    (draft,) = project.folder.rglob("draft-*.json")
    draft.write_bytes(b"{")
    answer = standing(anna)
    assert answer["draft"] is None
    assert f"{draft}.broken" in answer["draft_problem"]
    assert Path(f"{draft}.broken").read_bytes() == b"{"
    anna.json("/api/project/draft", {"decisions": {"video": VIDEO}, "looked_at": [3]})
    answer = standing(anna)
    assert (answer["draft"]["looked_at"], answer["draft_problem"]) == ([3], "")


@pytest.mark.full
def test_a_page_that_has_not_seen_the_last_decision_replaces_nothing(anna: Visitor) -> None:
    seen = standing(anna)["version"]
    anna.json("/api/project/accept", {"video": VIDEO, "contacts": [[3, 9]], "seen": seen})
    at_rest(anna)
    late = {"video": VIDEO, "contacts": [[20, 30]]}
    assert "decisions have changed" in anna.refusal("/api/project/accept", {**late, "seen": seen}, status=409)
    now = standing(anna)
    assert now["contacts"] == [[3, 9]]
    anna.json("/api/project/accept", {**late, "seen": now["version"]})
    assert standing(anna)["contacts"] == [[20, 30]]


def test_a_page_replaces_only_its_own_draft(anna: Visitor) -> None:
    anna.json("/api/project/draft", {"decisions": {"video": VIDEO}, "looked_at": [2], "revision": 1, "page": "a"})
    anna.json("/api/project/draft", {"decisions": {"video": VIDEO}, "looked_at": [3], "revision": 1, "page": "a"})
    of_another = {"decisions": {"video": VIDEO}, "revision": 1, "page": "b"}
    assert "another page" in anna.refusal("/api/project/draft", of_another, status=409)
    assert standing(anna)["draft"]["looked_at"] == [3]
    anna.json("/api/project/draft", {"decisions": {"video": VIDEO}, "looked_at": [3, 4], "revision": 2, "page": "b"})
    assert standing(anna)["draft"]["looked_at"] == [3, 4]


def test_proposals_that_do_not_fit_the_video_do_not_reach_the_page(project: Project, anna: Visitor) -> None:
    frame = standing(anna)["asked"][0]
    anna.json("/api/project/accept", cup_on(project, frame))
    at_rest(anna)
    path = project.video(VIDEO).file(ProposalsFile)
    content = json.loads(path.read_bytes())
    next(entry for entry in content["keyframes"] if entry["proposals"])["proposals"][0]["rle"]["size"] = [1, 1]
    path.write_text(json.dumps(content))
    error = anna.refusal(f"/api/project/frame?video={VIDEO}&frame={frame}", status=404)
    assert "a mask of 1x1 px" in error
    assert str(path) in error


def test_another_file_in_the_place_of_the_video_is_refused(project: Project, anna: Visitor) -> None:
    path = project.video(VIDEO).path
    path.write_bytes(path.read_bytes() + b"more")
    for answer in (
        anna.answer(f"/api/project?video={VIDEO}"),
        anna.answer("/api/project/accept", {"video": VIDEO, "contacts": [[3, 9]]}),
    ):
        assert answer[0] in (400, 404)
        assert b"is not the file that the project was started with" in answer[1]


MASK = {"size": [9, 9], "counts": "1"}
HOSTILE: dict[str, tuple[object, ...]] = {
    "accept": (
        *(b"{", b"[" * 100_000, {"video": "../project"}, {"video": "/etc"}, {"video": VIDEO, "unknown": 1}),
        *({"video": VIDEO, "contacts": [span]} for span in ([5, 10**9], [9, 5])),
        *({"video": VIDEO, "keyframes": [{"frame": 1, "masks": {"x": mask}}]} for mask in ("no mask", MASK)),
        *({"video": VIDEO, "keyframes": [{"frame": -1}]}, {"video": VIDEO, "objects": {"x": "no such category"}}),
        {"video": VIDEO, "edits": [{"edit": "merge", "into": "a", "objects": ["b"]}]},
        {"video": VIDEO, "edits": [{"edit": "undo", "line": 1}]},
    ),
    "draft": (
        *({"decisions": {"video": "../../etc"}}, {"decisions": None}),
        {"decisions": {"video": VIDEO}, "looked_at": ["x"]},
    ),
    "run": ({"video": ".."}, {"video": ["x"]}),
}


def test_a_bad_decision_body_is_refused_and_writes_nothing(project: Project, anna: Visitor) -> None:
    def written() -> dict[Path, bytes]:
        files = (file for file in project.folder.rglob("*") if file.is_file() and file.suffix != ".lock")
        return {file: file.read_bytes() for file in files}

    before = written()
    for kind, bodies in HOSTILE.items():
        for body in bodies:
            assert anna.refusal(f"/api/project/{kind}", body)
            assert written() == before, body
    assert anna.answer("/api/project/draft", b" " * (MAX_BODY + 1))[0] == 413


def test_a_missing_frame_is_reported(anna: Visitor) -> None:
    frames = (f"video={VIDEO}&frame=99999999", f"video={VIDEO}&frame=-1", "frame=1")
    for query in ("video=..&frame=0", "video=nothing&frame=0", *frames):
        status, content, _ = anna.answer(f"/api/project/frame?{query}")
        assert status in (400, 404)
        assert json.loads(content)["error"]


def second_annotator(kitchen: Path, folder: Path, by: str, *, fewer: bool = False) -> Project:
    """A project whose keyframes show the reference under different ids, or on the first keyframe only half of it."""
    project = started(kitchen, folder)
    graph = reference(kitchen)
    decisions = decisions_of_graph(graph, project.video(VIDEO).asked_segments())
    keyframes = [
        DecidedKeyframe(
            frame=k.frame,
            masks={f"{by}-{name}": mask for name, mask in list(k.masks.items())[:: 2 if fewer and not i else 1]},
        )
        for i, k in enumerate(decisions.keyframes)
    ]
    objects = {f"{by}-{name}": category for name, category in decisions.objects.items()}
    said = Layers(attributes=[LayerAttribute(object=next(iter(objects)), type="state", value=by, ranges=[(0, 9)])])
    accept(project, Decisions(video=VIDEO, objects=objects, keyframes=keyframes, layers=said), by)
    return project


def test_a_lead_is_offered_the_objects_of_both_annotators_under_one_id(
    small_kitchen: Path, project: Project, tmp_path: Path, out: Path
) -> None:
    first = second_annotator(small_kitchen, tmp_path / "a", "ann")
    second = second_annotator(small_kitchen, tmp_path / "b", "bob", fewer=True)
    with visiting(project.folder, out=out, person="lead", compared=[first.folder, second.folder]) as lead:
        table = lead.json(f"/api/agreement?video={VIDEO}")
        assert table["annotators"] == ["a/project", "b/project"]
        frame = standing(lead)["asked"][0]
        assert table["keyframes"][0]["frame"] == frame
        assert table["keyframes"][0]["iou"] < 1
        assert {row["iou"] for row in table["keyframes"][1:]} == {1.0}
        assert standing(lead)["offered_contacts"][0] == {"origin": "a/project", "ranges": [[20, 60], [110, 150]]}
        last = standing(lead)["asked"][-1]
        offered = lead.json(f"/api/project/frame?video={VIDEO}&frame={last}")["suggestions"]
        both = {origin: {s["object"] for s in offered if s["origin"] == origin} for origin in table["annotators"]}
        assert both["a/project"] == both["b/project"]
        assert standing(lead)["offered_layers"] == [
            {"origin": origin, "layers": {"attributes": [], "relations": [], "activities": [], "process_steps": []}}
            for origin in table["annotators"]
        ]
        taken = next(s for s in offered if s["origin"] == "b/project")
        keyframe = {"frame": last, "masks": {taken["object"]: taken["mask"]}}
        lead.json(
            "/api/project/accept",
            {"video": VIDEO, "objects": {taken["object"]: taken["category"]}, "keyframes": [keyframe]},
        )
        at_rest(lead)
    assert {m.by for k in project.video(VIDEO).accepted().keyframes for m in k.masks.values()} == {"lead"}


def test_an_object_of_another_annotator_is_never_taken_for_one_of_the_same_name(
    small_kitchen: Path, project: Project, tmp_path: Path, out: Path
) -> None:
    other = started(small_kitchen, tmp_path / "a")
    frame = min(other.video(VIDEO).asked_segments())
    for where, left, by in ((other, 8, "ann"), (project, 40, "lead")):
        mask = msgspec.Raw(msgspec.json.encode(rectangle(where, left)))
        keyframe = DecidedKeyframe(frame=frame, masks={"cup-1": mask})
        accept(where, Decisions(video=VIDEO, objects={"cup-1": "coffee cup"}, keyframes=[keyframe]), by)
    with visiting(project.folder, out=out, person="lead", compared=[other.folder]) as lead:
        assert lead.json(f"/api/agreement?video={VIDEO}")["metrics"]["mask_iou"] == 0
        (offered,) = lead.json(f"/api/project/frame?video={VIDEO}&frame={frame}")["suggestions"]
        assert offered["object"] == "project:cup-1"


BOX = [20, 20, 60, 60]


@pytest.mark.parametrize(
    "body",
    [
        {"frame": 99999999, "box": BOX},
        {"frame": 3, "box": [20, 20, 9000, 60]},
        {"frame": 3, "box": [60, 20, 20, 60]},
        {"frame": 3, "points": [{"x": -1, "y": 3}]},
        {"frame": 3, "points": [{"x": 1, "y": 3}] * 4001},
        {"frame": -3, "box": BOX},
        {"video": "../project", "frame": 3, "box": BOX},
    ],
)
def test_a_prompt_beside_the_video_is_refused(anna: Visitor, body: dict[str, Any]) -> None:
    assert anna.refusal("/api/project/segment", {"video": VIDEO, **body})


def test_clicks_and_boxes_are_answered_by_masks_and_nothing_is_kept(project: Project, anna: Visitor) -> None:
    before = contents(project.video(VIDEO))
    asked = {"video": VIDEO, "frame": 3, "points": [{"x": 30, "y": 30}]}
    (clicked, boxed) = (anna.json("/api/project/segment", {**asked, **more}) for more in ({}, {"box": BOX}))
    for answer in (clicked, boxed):
        mask = decode_mask(Rle(answer["mask"]["counts"], tuple(answer["mask"]["size"])))
        assert mask[30, 30]
        assert 0 <= answer["score"] <= 1
    assert not mask[:, :20].any()
    corners = [{"x": 20, "y": 20}, {"x": 60, "y": 50}]
    way = anna.json("/api/project/edge", {"video": VIDEO, "frame": 3, "points": corners})["points"]
    assert (way[0], way[-1]) == ([20, 20], [60, 50])
    assert contents(project.video(VIDEO)) == before
    with_models(project, segmenter=None)
    assert "in project.json" in anna.refusal("/api/project/segment", asked)


def test_a_keyframe_that_is_withdrawn_is_asked_for_again(project: Project, anna: Visitor) -> None:
    frames = standing(anna)["asked"]
    for frame in frames[:2]:
        anna.json("/api/project/accept", cup_on(project, frame))
    anna.json("/api/project/accept", {"video": VIDEO, "withdrawn": [frames[0]]})
    assert not at_rest(anna)["problem"]
    assert [entry["frame"] for entry in standing(anna)["accepted"]] == [frames[1]]
