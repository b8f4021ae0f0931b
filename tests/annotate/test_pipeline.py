"""From videos to a release: the steps of a project, stopped at any point."""

import re
import signal
from collections.abc import Collection
from pathlib import Path

import msgspec
import numpy as np
import pytest

from barista_bench.annotate import stages
from barista_bench.annotate.converting import decisions_of_graph
from barista_bench.annotate.decisions import DecidedKeyframe, Decisions, accept
from barista_bench.annotate.exporting import export_project
from barista_bench.annotate.project import Project, VideoFiles, open_project, start_project, writing
from barista_bench.annotate.records import LinksFile, Merge, Rename, Split, TrackLine, Undo
from barista_bench.annotate.running import run, run_video
from barista_bench.errors import ConfigError, DataError
from barista_bench.mini import write_kitchen
from barista_bench.scene_graph import SceneGraph, validate
from barista_bench.scene_graph.masks import encode_mask
from tests.annotate.projects import VIDEO, annotated, contents, only, propagated, reference, started
from tests.conftest import MadeOnce
from tests.kills import in_child, killed_at, survived_kills


def masks_of(kitchen: Path, video_id: str, frames: Collection[int]) -> Decisions:
    """Masks and layers from the reference, and no signal."""
    return msgspec.structs.replace(decisions_of_graph(reference(kitchen, video_id), frames), contacts=None)


def test_a_video_becomes_a_release_that_validates(small_kitchen: Path, tmp_path: Path) -> None:
    video = annotated(small_kitchen, started(small_kitchen, tmp_path, propagator="flow"))
    assert propagated(video) == ["links", "tracks", "review", "layers"]
    statistics = export_project(video.folder.parent, tmp_path / "graphs").videos[VIDEO]
    outcome = validate(tmp_path / "graphs")
    assert not outcome.problems
    graph, original = SceneGraph(tmp_path / "graphs")[VIDEO], reference(small_kitchen)
    assert statistics.frames == graph.frame_count == original.frame_count
    assert statistics.people == {"anna": sum(len(k.masks) for k in video.accepted().keyframes)}
    for frame in video.asked_segments():
        assert sorted(o.category for o in graph.objects_at(frame)) == sorted(
            o.category for o in original.objects_at(frame)
        )
    said = [(r.source.category, r.value, r.start, r.end) for r in graph.relations()]
    assert said
    assert set(said) <= {(r.source.category, r.value, r.start, r.end) for r in original.relations()}
    assert [a.name for a in graph.activities()] == [a.name for a in original.activities()]


def test_masks_of_keyframes_are_those_that_were_accepted(tracked_video: VideoFiles) -> None:
    lines = {line.frame: line for line in tracked_video.tracks()}
    assert sorted(lines) == list(range(tracked_video.source.frames))
    for keyframe in tracked_video.accepted().keyframes:
        given = {name: mask.rle.counts for name, mask in keyframe.masks.items()}
        assert {name: mask.counts for name, mask in lines[keyframe.frame].masks.items()} == given


def test_a_second_run_without_changes_makes_nothing(tracked_video: VideoFiles) -> None:
    before = contents(tracked_video)
    assert propagated(tracked_video) == []
    assert contents(tracked_video) == before


@pytest.fixture(scope="session")
def short_kitchen(made_once: MadeOnce) -> Path:
    """The videos of the small kitchen, hurried through in two seconds."""

    def make(root: Path) -> None:
        write_kitchen(root, videos=3, width=128, height=72, seconds=(2, 2), num_proc=1)

    return made_once("short/kitchen", make)


@pytest.mark.full
@pytest.mark.usefixtures("ready_workers")
def test_the_same_files_come_from_any_number_of_processes(short_kitchen: Path, tmp_path: Path) -> None:
    folders = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        project = start_project(folder, short_kitchen, propagator="copy_nearest", num_proc=number)
        for video_id in project.file.videos:
            accept(project, masks_of(short_kitchen, video_id, range(0, 60, 15)), "anna")
        assert not any(outcome.problem for outcome in run(project, num_proc=number))
        folders.append({v: contents(project.video(v)) for v in project.file.videos})
    assert len(folders[0]) == 3
    assert folders[0] == folders[1]


@pytest.mark.full
@pytest.mark.parametrize("before", [True, False], ids=["before the write", "after the write"])
def test_killed_at_every_write_of_every_stage_it_ends_with_the_same_files(
    before: bool, short_kitchen: Path, tmp_path: Path
) -> None:
    def whole(folder: Path) -> None:
        project = open_project(folder)
        accept(project, Decisions(video=VIDEO, by="anna", contacts=[(4, 20), (40, 58)]))
        run_video(folder, VIDEO)
        annotated(short_kitchen, project)
        run_video(folder, VIDEO)

    videos = only(short_kitchen, tmp_path / "videos")
    folder = start_project(tmp_path / "project", videos, propagator="copy_nearest").folder
    kills, _ = survived_kills(folder / VIDEO, lambda: whole(folder), before=before)
    assert kills >= 11  # signal, segments, keyframes, masks, layers, links, two segments, tracks, review, proposals


def test_after_a_kill_in_the_middle_finished_segments_are_not_propagated_again(
    video: VideoFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = killed_at(2, before=False, work=lambda: run_video(video.folder.parent, VIDEO))  # links, first segment
    assert status == -signal.SIGKILL
    assert (video.folder / "tracks" / "0000.jsonl").exists()
    assert not video.has(TrackLine)
    spans = watched(monkeypatch)
    propagated(video)
    assert [span.stop for span in spans] == [video.source.frames]


def watched(monkeypatch: pytest.MonkeyPatch) -> list[range]:
    """The spans that are propagated from here on."""
    spans: list[range] = []
    propagator = stages.propagator_of("copy_nearest")
    propagate = type(propagator).propagate

    def noted(self: object, frames: object, keyframes: object, span: range) -> object:
        spans.append(span)
        return propagate(self, frames, keyframes, span)  # type: ignore[arg-type]

    monkeypatch.setattr(type(propagator), "propagate", noted)
    return spans


def test_a_correction_propagates_only_its_segment_again(
    tracked_video: VideoFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *_, last = tracked_video.accepted().keyframes
    name = next(iter(first.masks))
    other = next(rle for key, rle in first.masks.items() if key != name)
    mask = msgspec.Raw(msgspec.json.encode(other.rle))
    frame = last.frame + 5
    accept(
        tracked_video.project,
        Decisions(video=VIDEO, keyframes=[DecidedKeyframe(frame=frame, complete=False, masks={name: mask})]),
        "ben",
    )
    spans = watched(monkeypatch)
    propagated(tracked_video)
    assert [span.stop for span in spans] == [tracked_video.source.frames]
    assert spans[0].start > first.frame
    lines = {line.frame: line for line in tracked_video.tracks()}
    assert lines[frame].masks[name].counts == other.rle.counts
    assert len(lines[frame].masks) > 1  # others are bridged: the correction does not mention them
    assert tracked_video.accepted().corrections == 1


@pytest.mark.full
def test_objects_of_segments_that_hide_their_ids_are_linked(small_kitchen: Path, tmp_path: Path) -> None:
    video = annotated(small_kitchen, started(small_kitchen, tmp_path, propagator="flow"), hidden=True)
    propagated(video)
    (links,) = [boundary.links for boundary in video.read(LinksFile).boundaries]
    assert links
    assert all(later.partition(":")[2] == earlier.partition(":")[2] for later, earlier in links.items())
    asked = video.asked_segments()
    sides = [[k for k in video.accepted().keyframes if asked[k.frame] == number] for number in (0, 1)]
    last, first = ({name.partition(":")[2] for name in side.masks} for side in (sides[0][-1], sides[1][0]))
    assert len(links) >= 0.7 * len(last & first)
    seen = {name for line in video.tracks() for name in line.masks}
    assert not seen & links.keys()


@pytest.mark.full
def test_identities_are_split_merged_renamed_and_all_of_it_undone(video: VideoFiles, project: Project) -> None:
    propagated(video)
    before = list(video.tracks())
    name = next(iter(video.accepted().keyframes[0].masks))
    second = video.accepted().keyframes[-1].frame
    edits = [Split(object=name, frame=second, new="new"), Rename(object="new", category="spoon")]
    accept(project, Decisions(video=VIDEO, edits=edits), "ben")
    propagated(video)
    lines = {line.frame: line.masks for line in video.tracks()}
    assert name not in lines[second]
    assert lines[second]["new"].counts == before[second].masks[name].counts
    assert "new" not in lines[0]
    assert video.identities().categories["new"] == "spoon"
    accept(project, Decisions(video=VIDEO, edits=[Merge(into=name, objects=["new"])]), "ben")
    propagated(video)
    assert list(video.tracks()) == before
    accept(project, Decisions(video=VIDEO, edits=[Undo(line=3), Undo(line=2), Undo(line=1)]), "ben")
    propagated(video)
    assert list(video.tracks()) == before
    assert "new" not in video.identities().categories


def test_two_objects_of_one_keyframe_cannot_be_merged(video: VideoFiles, project: Project) -> None:
    names = list(video.accepted().keyframes[0].masks)
    with pytest.raises(DataError, match="both stand on keyframe"):
        accept(project, Decisions(video=VIDEO, edits=[Merge(into=names[0], objects=names[1:2])]), "ben")
    assert video.edits() == []


@pytest.mark.full
def test_another_propagator_in_the_settings_makes_tracks_again(video: VideoFiles, project: Project) -> None:
    propagated(video)
    path = project.folder / "project.json"
    path.write_text(path.read_text().replace('"copy_nearest"', '"lucas_kanade"'))
    assert "tracks" in propagated(video)


@pytest.mark.full
def test_a_second_propagator_in_the_settings_says_where_it_disagrees(tracked_video: VideoFiles) -> None:
    assert all(mask.agreement == 1.0 for line in tracked_video.tracks() for mask in line.masks.values())
    path = tracked_video.project.folder / "project.json"
    path.write_text(path.read_text().replace('"second_opinion": ""', '"second_opinion": "lucas_kanade"'))
    second = open_project(tracked_video.project.folder).video(VIDEO)
    assert "tracks" in propagated(second)
    agreements = [mask.agreement for line in second.tracks() for mask in line.masks.values()]
    assert 0 < sum(agreement < 1 for agreement in agreements) < len(agreements)


def test_a_broken_video_costs_that_video(small_kitchen: Path, tmp_path: Path) -> None:
    videos = only(small_kitchen, tmp_path / "videos")
    (videos / "broken.mp4").write_bytes(b"no video at all")
    (videos / "cut.mp4").write_bytes((videos / f"{VIDEO}.mp4").read_bytes()[:5000])
    project = start_project(tmp_path / "project", videos, propagator="copy_nearest")
    assert sorted(project.file.lost) == ["broken.mp4", "cut.mp4"]
    assert list(project.file.videos) == [VIDEO]


def test_a_video_that_is_replaced_or_goes_costs_that_video(small_kitchen: Path, tmp_path: Path) -> None:
    project = start_project(tmp_path / "project", small_kitchen, propagator="copy_nearest")
    videos = sorted(project.file.videos)
    copies = tmp_path / "copies"
    for video_id in videos:
        accept(project, masks_of(small_kitchen, video_id, [10, 50]), "anna")
        (copies / video_id).mkdir(parents=True)
        (copies / video_id / "video.mp4").write_bytes((small_kitchen / video_id / "video.mp4").read_bytes())
    path = project.folder / "project.json"
    path.write_text(path.read_text().replace(str(small_kitchen.resolve()), str(copies)))
    (copies / videos[0] / "video.mp4").unlink()
    (copies / videos[1] / "video.mp4").write_bytes(b"another file")
    outcomes = list(run(open_project(project.folder)))
    assert [bool(outcome.problem) for outcome in outcomes] == [True, True, False]
    assert "not the file" in outcomes[1].problem
    statistics = export_project(project.folder, tmp_path / "graphs")
    assert sorted(statistics.left_out) == videos[:2]
    assert SceneGraph(tmp_path / "graphs").video_ids == (videos[2],)


def test_a_damaged_line_of_tracks_costs_that_video(tracked_video: VideoFiles, tmp_path: Path) -> None:
    path = tracked_video.file(TrackLine)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:7], b'{"frame": 6, "masks": 1}\n', *lines[8:]]))
    with pytest.raises(DataError, match="line 8"):
        export_project(tracked_video.folder.parent, tmp_path / "graphs")
    assert not (tmp_path / "graphs").exists()
    assert "line 8" in run_video(tracked_video.folder.parent, VIDEO).problem
    path.unlink()
    assert "tracks" in propagated(tracked_video)


@pytest.mark.parametrize("file", ["accepted.json", "tracks.jsonl"])
def test_a_mask_that_would_overrun_its_frame_costs_that_video(
    file: str, tracked_video: VideoFiles, tmp_path: Path
) -> None:
    path = tracked_video.folder / file
    counts = next(iter(tracked_video.accepted().keyframes[0].masks.values())).rle.counts
    assert counts in path.read_text()
    path.write_text(path.read_text().replace(counts, encode_mask(np.ones((720, 1280), dtype=np.bool_)).counts))
    assert "not run lengths" in run_video(tracked_video.folder.parent, VIDEO).problem
    with pytest.raises(DataError, match="not run lengths"):
        export_project(tracked_video.folder.parent, tmp_path / "graphs")


def test_two_processes_do_not_write_one_project(video: VideoFiles, project: Project) -> None:
    with writing(project.folder):
        child = in_child(lambda: list(run(project)))
        with pytest.raises(ConfigError, match="another process works on this project"):
            accept(project, Decisions(video=VIDEO, contacts=[(20, 60)]), "ben")
    assert child == 3
    assert not video.has(TrackLine)
    assert in_child(lambda: list(run(project))) == 0
    assert video.has(TrackLine)


@pytest.mark.parametrize(
    ("setting", "bad"), [("gap_s", "-1.0"), ("link_threshold", "0.0"), ("link_threshold", "1.5"), ("frames", "0")]
)
def test_settings_out_of_their_bounds_are_named(setting: str, bad: str, project: Project) -> None:
    path = project.folder / "project.json"
    path.write_text(re.sub(f'"{setting}": [0-9.]+', f'"{setting}": {bad}', path.read_text()))
    with pytest.raises(DataError, match=rf"{setting}`.*Fix: "):
        open_project(project.folder)


def test_settings_that_cannot_be_used_stop_the_run(video: VideoFiles, project: Project) -> None:
    path = project.folder / "project.json"
    path.write_text(path.read_text().replace('"copy_nearest"', '"telepathy"'))
    with pytest.raises(ConfigError, match="telepathy"):
        run_video(project.folder, VIDEO)
