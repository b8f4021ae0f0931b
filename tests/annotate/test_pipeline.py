"""From videos to a release: what a project does, whatever stops it on the way."""

from __future__ import annotations

import signal
from collections.abc import Collection
from pathlib import Path

import av
import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

from barista_bench.annotate import exporting, stages
from barista_bench.annotate.decisions import accept, from_graph
from barista_bench.annotate.exporting import export, remux
from barista_bench.annotate.project import Project, VideoFiles, open_project, start, writing
from barista_bench.annotate.records import (
    AcceptedLayersFile,
    DecidedKeyframe,
    Decisions,
    LayerRelation,
    Layers,
    LinksFile,
    Merge,
    Rename,
    Split,
    TrackLine,
    Undo,
)
from barista_bench.annotate.running import run, run_video
from barista_bench.cli import app
from barista_bench.errors import ConfigError, DataError
from barista_bench.media.video import open_reader
from barista_bench.scene_graph import SceneGraph, validate
from barista_bench.scene_graph.masks import encode_mask, mask_ious
from tests.annotate.kills import in_child, killed_at
from tests.annotate.projects import VIDEO, annotated, contents, only, started, truth


@pytest.fixture
def project(small_kitchen: Path, tmp_path: Path) -> Project:
    return started(small_kitchen, tmp_path)


@pytest.fixture
def video(small_kitchen: Path, project: Project) -> VideoFiles:
    """Annotated, not propagated."""
    return annotated(small_kitchen, project)


def propagated(video: VideoFiles) -> list[str]:
    """The stages that a run makes."""
    outcome = run_video(video.folder.parent, VIDEO)
    assert not outcome.problem, outcome.problem
    assert not outcome.missing
    return outcome.made


def masks_of(kitchen: Path, video_id: str, frames: Collection[int]) -> Decisions:
    """Masks and layers from the truth, and no signal."""
    return msgspec.structs.replace(from_graph(truth(kitchen, video_id), frames), contacts=None)


def test_a_video_becomes_a_release_that_validates(small_kitchen: Path, tmp_path: Path) -> None:
    video = annotated(small_kitchen, started(small_kitchen, tmp_path, propagator="flow"))
    assert propagated(video) == ["links", "tracks", "review", "layers"]
    statistics = export(video.folder.parent, tmp_path / "graphs").videos[VIDEO]
    outcome = validate(tmp_path / "graphs")
    assert not outcome.problems
    graph, original = SceneGraph(tmp_path / "graphs")[VIDEO], truth(small_kitchen)
    assert statistics.frames == graph.frame_count == original.frame_count
    assert statistics.people == {"anna": sum(len(k.masks) for k in video.accepted().keyframes)}
    for frame in video.asked():
        assert sorted(o.category for o in graph.objects_at(frame)) == sorted(
            o.category for o in original.objects_at(frame)
        )
    said = [(r.source.category, r.value, r.start, r.end) for r in graph.relations()]
    assert said
    assert set(said) <= {(r.source.category, r.value, r.start, r.end) for r in original.relations()}
    assert [a.name for a in graph.activities()] == [a.name for a in original.activities()]


def test_masks_of_keyframes_are_those_that_were_accepted(video: VideoFiles) -> None:
    propagated(video)
    lines = {line.frame: line for line in video.tracks()}
    assert sorted(lines) == list(range(video.source.frames))
    for keyframe in video.accepted().keyframes:
        given = {name: mask.rle.counts for name, mask in keyframe.masks.items()}
        assert {name: mask.counts for name, mask in lines[keyframe.frame].masks.items()} == given


def test_a_run_that_changes_nothing_makes_nothing(video: VideoFiles) -> None:
    propagated(video)
    before = contents(video)
    assert propagated(video) == []
    assert contents(video) == before


def test_the_same_files_come_from_any_number_of_processes(small_kitchen: Path, tmp_path: Path) -> None:
    folders = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        project = start(folder, small_kitchen, propagator="copy_nearest", num_proc=number)
        for video_id in project.file.videos:
            accept(project, masks_of(small_kitchen, video_id, range(0, 150, 15)), "anna")
        assert not any(outcome.problem for outcome in run(project, num_proc=number))
        folders.append({v: contents(project.video(v)) for v in project.file.videos})
    assert len(folders[0]) == 3
    assert folders[0] == folders[1]


# ---------------------------------------------------------------- stopping and going on


@pytest.mark.parametrize("before", [True, False], ids=["before the write", "after the write"])
def test_killed_at_every_write_of_every_stage_it_ends_with_the_same_files(
    before: bool, small_kitchen: Path, tmp_path: Path
) -> None:
    def whole(folder: Path) -> None:
        project = open_project(folder)
        accept(project, Decisions(video=VIDEO, by="anna", contacts=[(20, 60), (110, 150)]))
        run_video(folder, VIDEO)
        annotated(small_kitchen, project)
        run_video(folder, VIDEO)

    videos = only(small_kitchen, tmp_path / "videos")
    quiet, killed = (start(tmp_path / name, videos, propagator="copy_nearest").folder for name in ("quiet", "killed"))
    whole(quiet)
    kills = 0
    for write in range(1, 100):
        # From an empty project each time, so that every write is the fatal one once.
        for path in sorted((killed / VIDEO).rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        status = killed_at(write, before=before, work=lambda: whole(killed))
        if status == 0:
            break
        assert status == -signal.SIGKILL
        kills += 1
        whole(killed)
        left = {
            name: data for name, data in contents(open_project(killed).video(VIDEO)).items() if "partial" not in name
        }
        assert left == contents(open_project(quiet).video(VIDEO))
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


# ---------------------------------------------------------------- corrections and identities


def test_a_correction_propagates_only_its_segment_again(
    video: VideoFiles, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    propagated(video)
    first, *_, last = video.accepted().keyframes
    name = next(iter(first.masks))
    other = next(rle for key, rle in first.masks.items() if key != name)
    mask = msgspec.Raw(msgspec.json.encode(other.rle))
    frame = last.frame + 5
    accept(
        project,
        Decisions(video=VIDEO, keyframes=[DecidedKeyframe(frame=frame, complete=False, masks={name: mask})]),
        "ben",
    )
    spans = watched(monkeypatch)
    propagated(video)
    assert [span.stop for span in spans] == [video.source.frames]
    assert spans[0].start > first.frame
    lines = {line.frame: line for line in video.tracks()}
    assert lines[frame].masks[name].counts == other.rle.counts
    assert len(lines[frame].masks) > 1  # others are bridged: the correction does not mention them
    assert video.accepted().corrections == 1


def test_objects_of_segments_that_hide_their_ids_are_linked(small_kitchen: Path, tmp_path: Path) -> None:
    video = annotated(small_kitchen, started(small_kitchen, tmp_path, propagator="flow"), hidden=True)
    propagated(video)
    (links,) = [boundary.links for boundary in video.read(LinksFile).boundaries]
    assert links
    assert all(later.partition(":")[2] == earlier.partition(":")[2] for later, earlier in links.items())
    asked = video.asked()
    sides = [[k for k in video.accepted().keyframes if asked[k.frame] == number] for number in (0, 1)]
    last, first = ({name.partition(":")[2] for name in side.masks} for side in (sides[0][-1], sides[1][0]))
    assert len(links) >= 0.7 * len(last & first)
    seen = {name for line in video.tracks() for name in line.masks}
    assert not seen & links.keys()


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


def test_another_propagator_in_the_settings_makes_tracks_anew(video: VideoFiles, project: Project) -> None:
    propagated(video)
    path = project.folder / "project.json"
    path.write_text(path.read_text().replace('"copy_nearest"', '"linear_box"'))
    assert "tracks" in propagated(video)


# ---------------------------------------------------------------- bad input


def test_a_broken_video_costs_that_video(small_kitchen: Path, tmp_path: Path) -> None:
    videos = only(small_kitchen, tmp_path / "videos")
    (videos / "broken.mp4").write_bytes(b"no video at all")
    (videos / "cut.mp4").write_bytes((videos / f"{VIDEO}.mp4").read_bytes()[:5000])
    project = start(tmp_path / "project", videos, propagator="copy_nearest")
    assert sorted(project.file.lost) == ["broken.mp4", "cut.mp4"]
    assert list(project.file.videos) == [VIDEO]


def test_a_video_that_is_replaced_or_goes_costs_that_video(small_kitchen: Path, tmp_path: Path) -> None:
    project = start(tmp_path / "project", small_kitchen, propagator="copy_nearest")
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
    statistics = export(project.folder, tmp_path / "graphs")
    assert sorted(statistics.left_out) == videos[:2]
    assert SceneGraph(tmp_path / "graphs").video_ids == (videos[2],)


def test_a_damaged_line_of_tracks_costs_that_video(video: VideoFiles, tmp_path: Path) -> None:
    propagated(video)
    path = video.file(TrackLine)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:7], b'{"frame": 6, "masks": 1}\n', *lines[8:]]))
    with pytest.raises(DataError, match="line 8"):
        export(video.folder.parent, tmp_path / "graphs")
    assert not (tmp_path / "graphs").exists()
    assert "line 8" in run_video(video.folder.parent, VIDEO).problem
    path.unlink()
    assert "tracks" in propagated(video)


@pytest.mark.parametrize("file", ["accepted.json", "tracks.jsonl"])
def test_a_mask_that_would_overrun_its_frame_costs_that_video(file: str, video: VideoFiles, tmp_path: Path) -> None:
    propagated(video)
    path = video.folder / file
    counts = next(iter(video.accepted().keyframes[0].masks.values())).rle.counts
    assert counts in path.read_text()
    path.write_text(path.read_text().replace(counts, encode_mask(np.ones((720, 1280), dtype=np.bool_)).counts))
    assert "no run lengths" in run_video(video.folder.parent, VIDEO).problem
    with pytest.raises(DataError, match="no run lengths"):
        export(video.folder.parent, tmp_path / "graphs")


def test_two_processes_do_not_write_one_project(video: VideoFiles, project: Project) -> None:
    with writing(project.folder):
        child = in_child(lambda: list(run(project)))
        with pytest.raises(ConfigError, match="another process works on this project"):
            accept(project, Decisions(video=VIDEO, contacts=[(20, 60)]), "ben")
    assert child == 3
    assert not video.has(TrackLine)
    assert in_child(lambda: list(run(project))) == 0
    assert video.has(TrackLine)


def test_settings_that_cannot_be_used_stop_the_run(video: VideoFiles, project: Project) -> None:
    path = project.folder / "project.json"
    path.write_text(path.read_text().replace('"copy_nearest"', '"telepathy"'))
    with pytest.raises(ConfigError, match="telepathy"):
        run_video(project.folder, VIDEO)


# ---------------------------------------------------------------- layers and export


def test_layers_are_exported_once_a_person_accepts_them_and_their_terms_are_known(
    video: VideoFiles, project: Project, tmp_path: Path
) -> None:
    (video.file(AcceptedLayersFile)).unlink()
    propagated(video)
    assert export(project.folder, tmp_path / "a").videos[VIDEO].relations == 0
    names = list(video.accepted().objects)[:2]
    relation = LayerRelation(source=names[0], target=names[1], type="position", value="astride", ranges=[(0, 9)])
    known = msgspec.structs.replace(relation, value="on")
    accept(project, Decisions(video=VIDEO, layers=Layers(relations=[relation, known])), "ben")
    statistics = export(project.folder, tmp_path / "b").videos[VIDEO]
    assert (statistics.relations, statistics.left_out) == (1, ["position: astride"])
    words = project.folder / "vocabulary.yaml"
    words.write_text(words.read_text().replace("places:\n", "places:\n  astride: {words: astride}\n", 1))
    assert export(project.folder, tmp_path / "c").videos[VIDEO].relations == 2


def test_two_annotators_who_say_the_same_agree_wholly(small_kitchen: Path, video: VideoFiles, tmp_path: Path) -> None:
    propagated(video)
    other = annotated(small_kitchen, started(small_kitchen, tmp_path / "second"), by="ben")
    result = export(video.folder.parent, tmp_path / "same", second=other.folder.parent).videos[VIDEO].agreement
    assert result is not None
    figures = msgspec.structs.asdict(result)
    assert figures.pop("keyframes") == len(video.asked())
    assert set(figures.values()) == {1.0}


def test_agreement_falls_where_annotators_differ(small_kitchen: Path, video: VideoFiles, tmp_path: Path) -> None:
    propagated(video)
    project = started(small_kitchen, tmp_path / "second")
    other = annotated(small_kitchen, project, by="ben")
    keyframe = other.accepted().keyframes[0]
    fewer = {n: msgspec.Raw(msgspec.json.encode(m.rle)) for n, m in list(keyframe.masks.items())[::2]}
    accept(project, Decisions(video=VIDEO, keyframes=[DecidedKeyframe(frame=keyframe.frame, masks=fewer)]), "ben")
    accept(project, Decisions(video=VIDEO, contacts=[(20, 60)]), "ben")
    run_video(project.folder, VIDEO)
    result = export(video.folder.parent, tmp_path / "out", second=project.folder).videos[VIDEO].agreement
    assert result is not None
    masks = [
        len(k.masks) for k in video.accepted().keyframes if k.frame in {k.frame for k in other.accepted().keyframes}
    ]
    missing = masks[0] - len(fewer)
    assert result.mask_iou == pytest.approx(1 - missing / sum(masks), abs=1e-6)
    assert result.segment_iou is not None
    assert result.segment_iou < 1


def test_a_copied_video_keeps_its_pictures_and_loses_sound_place_and_device(
    small_kitchen: Path, tmp_path: Path
) -> None:
    source = tmp_path / "phone.mp4"
    with av.open(str(small_kitchen / VIDEO / "video.mp4")) as plain, av.open(str(source), "w") as out:
        out.metadata.update({"location": "+48.1+011.5/", "title": "at home", "comment": "a phone"})
        stream = out.add_stream_from_template(plain.streams.video[0])
        sound = out.add_stream("aac", rate=16000, layout="mono")
        for packet in plain.demux(plain.streams.video[0]):
            if packet.dts is not None:
                packet.stream = stream
                out.mux(packet)
        for index in range(4):
            frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
            frame.sample_rate, frame.pts = 16000, 1024 * index
            out.mux(sound.encode(frame))
    assert b"at home" in source.read_bytes()
    remux(source, tmp_path / "copy.mp4")
    data = (tmp_path / "copy.mp4").read_bytes()
    assert not any(word in data for word in (b"+48.1", b"at home", b"a phone", b"soun"))
    with open_reader(source) as before, open_reader(tmp_path / "copy.mp4") as after:
        assert len(before) == len(after)
        assert (before.read([0, 70]) == after.read([0, 70])).all()


def test_export_never_writes_into_a_folder_that_holds_something(video: VideoFiles, tmp_path: Path) -> None:
    propagated(video)
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"mine\.txt"):
        exporting.export(video.folder.parent, tmp_path / "graphs")


def test_the_command_says_what_it_does_and_what_it_waits_for(small_kitchen: Path, tmp_path: Path) -> None:
    def command(*words: object) -> str:
        result = CliRunner().invoke(app, ["annotate", *map(str, words)])
        assert result.exit_code == 0, result.output
        return result.output

    project = tmp_path / "project"
    videos = only(small_kitchen, tmp_path / "videos")
    assert "1 videos, 0 lost" in command("start", project, "--videos", videos, "--propagator", "copy_nearest")
    assert "a person is needed: when hands touch things" in command("run", project)
    signal_file = tmp_path / f"{VIDEO}.csv"
    count = open_project(project).video(VIDEO).source.frames
    signal_file.write_text("frame,confidence\n" + "".join(f"{i},{0.9 if 20 < i < 60 else 0.1}\n" for i in range(count)))
    command("accept", project, "--from", signal_file, "--by", "anna")
    assert "a person is needed: masks on" in command("run", project)
    command(
        "import",
        project,
        "--from",
        only_release(small_kitchen, tmp_path),
        "--format",
        "release",
        "--only-asked",
        "--by",
        "anna",
    )
    assert "tracks" in command("run", project)
    assert "tracks done" in command("status", project)
    assert VIDEO in command("review", project, "--plots", tmp_path / "plots")
    assert (tmp_path / "plots" / f"{VIDEO}.png").stat().st_size > 1000
    for name in ("release", "coco_video", "cvat", "davis"):
        command("export", project, "--out", tmp_path / name, "--format", name)
    for name in ("coco_video", "cvat", "davis"):
        again = tmp_path / f"again_{name}"
        command("start", again, "--videos", videos, "--propagator", "copy_nearest")
        assert f"{VIDEO}: {count} frames" in command(
            "import", again, "--from", tmp_path / name, "--format", name, "--by", "x"
        )
        command("run", again)
        pair = [list(open_project(folder).video(VIDEO).tracks()) for folder in (project, again)]
        for line, other in zip(*pair, strict=True):
            if name != "davis":
                assert {n: m.counts for n, m in line.masks.items()} == {n: m.counts for n, m in other.masks.items()}


def only_release(kitchen: Path, folder: Path) -> Path:
    target = folder / "annotated"
    (target / VIDEO).mkdir(parents=True)
    for name in ("coco_annotation.json", "video.mp4"):
        (target / VIDEO / name).write_bytes((kitchen / VIDEO / name).read_bytes())
    return target


def test_flow_between_keyframes_is_nearer_to_the_truth_than_copies(small_kitchen: Path, tmp_path: Path) -> None:
    original = truth(small_kitchen)
    means = []
    for name in ("flow", "copy_nearest"):
        video = annotated(small_kitchen, started(small_kitchen, tmp_path / name, propagator=name))
        propagated(video)
        ious = []
        for line in video.tracks():
            for item in original.instances(line.frame) if line.frame % 7 == 0 else ():
                mask = line.masks.get(item.object.id)
                rle = original.rle(item)
                ious.append(mask_ious([type(rle)(mask.counts, rle.size)], [rle])[0, 0] if mask else 0.0)
        means.append(sum(ious) / len(ious))
    assert means[0] > means[1] + 0.05
