"""What leaves a project: layers, statistics, agreement of annotators, videos; and the commands on the way."""

from pathlib import Path
from typing import get_args

import av
import msgspec
import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from barista_bench.annotate import exporting
from barista_bench.annotate.agreement import agreement
from barista_bench.annotate.decisions import DecidedKeyframe, Decisions, accept
from barista_bench.annotate.exporting import export_project
from barista_bench.annotate.project import Project, VideoFiles, open_project
from barista_bench.annotate.records import AcceptedLayersFile, LayerAttribute, LayerRelation, Layers, Split
from barista_bench.annotate.running import run_video
from barista_bench.cli.commands import app
from barista_bench.errors import ConfigError
from barista_bench.interchange.mask_formats import RELEASE, WrittenFormat, write_mask_tracks
from barista_bench.media.video import open_reader
from barista_bench.media.video.remuxing import remux
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.masks import MaskTracks, mask_ious
from tests.annotate.projects import VIDEO, annotated, only, propagated, reference, started, tracked
from tests.other_graphs.sample import samples_of


def test_layers_are_exported_once_a_person_accepts_them_and_their_terms_are_known(
    video: VideoFiles, project: Project, tmp_path: Path
) -> None:
    video.file(AcceptedLayersFile).unlink()
    propagated(video)
    assert export_project(project.folder, tmp_path / "a").videos[VIDEO].relations == 0
    names = list(video.accepted().objects)[:2]
    relation = LayerRelation(source=names[0], target=names[1], type="position", value="astride", ranges=[(0, 9)])
    known = msgspec.structs.replace(relation, value="on")
    accept(project, Decisions(video=VIDEO, layers=Layers(relations=[relation, known])), "ben")
    statistics = export_project(project.folder, tmp_path / "b").videos[VIDEO]
    assert (statistics.relations, statistics.left_out) == (1, ["position: astride"])
    words = project.folder / "vocabulary.yaml"
    words.write_text(words.read_text().replace("places:\n", "places:\n  astride: {words: astride}\n", 1))
    assert export_project(project.folder, tmp_path / "c").videos[VIDEO].relations == 2


def test_two_annotators_who_say_the_same_agree_wholly(
    small_kitchen: Path, tracked_video: VideoFiles, tmp_path: Path
) -> None:
    other = annotated(small_kitchen, started(small_kitchen, tmp_path / "second"), by="ben")
    result = (
        export_project(tracked_video.folder.parent, tmp_path / "same", second=other.folder.parent)
        .videos[VIDEO]
        .agreement
    )
    assert result is not None
    metrics = msgspec.structs.asdict(result)
    assert metrics.pop("keyframes") == len(tracked_video.asked_segments())
    assert set(metrics.values()) == {1.0}


def test_agreement_falls_where_annotators_differ(
    small_kitchen: Path, tracked_video: VideoFiles, tmp_path: Path
) -> None:
    project = started(small_kitchen, tmp_path / "second")
    other = annotated(small_kitchen, project, by="ben")
    keyframe = other.accepted().keyframes[0]
    fewer = {n: msgspec.Raw(msgspec.json.encode(m.rle)) for n, m in list(keyframe.masks.items())[::2]}
    accept(project, Decisions(video=VIDEO, keyframes=[DecidedKeyframe(frame=keyframe.frame, masks=fewer)]), "ben")
    accept(project, Decisions(video=VIDEO, contacts=[(20, 60)]), "ben")
    run_video(project.folder, VIDEO)
    result = (
        export_project(tracked_video.folder.parent, tmp_path / "out", second=project.folder).videos[VIDEO].agreement
    )
    assert result is not None
    both = {keyframe.frame for keyframe in other.accepted().keyframes}
    masks = [len(keyframe.masks) for keyframe in tracked_video.accepted().keyframes if keyframe.frame in both]
    missing = masks[0] - len(fewer)
    assert result.mask_iou == pytest.approx(1 - missing / sum(masks), abs=1e-6)
    assert result.segment_iou is not None
    assert result.segment_iou < 1


def test_agreement_compares_statements_under_the_ids_that_edits_give(
    small_kitchen: Path, video: VideoFiles, tmp_path: Path
) -> None:
    other = annotated(small_kitchen, started(small_kitchen, tmp_path / "second"), by="ben")
    last = video.accepted().keyframes[-1]
    for side in (video, other):
        split = Split(object=min(last.masks), frame=last.frame, new="another")
        said = LayerAttribute(object="another", type="state", value="full", ranges=[(last.frame, last.frame + 9)])
        accept(side.project, Decisions(video=VIDEO, edits=[split]), "anna")
        accept(side.project, Decisions(video=VIDEO, layers=Layers(attributes=[said])), "anna")
    assert agreement(video, other).attribute_kappa == 1


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


def test_export_never_writes_into_a_folder_that_holds_something(tracked_video: VideoFiles, tmp_path: Path) -> None:
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"mine\.txt"):
        exporting.export_project(tracked_video.folder.parent, tmp_path / "graphs")


@pytest.mark.full
def test_the_command_reports_its_work_and_the_missing_decisions(small_kitchen: Path, tmp_path: Path) -> None:
    def command(*words: object) -> str:
        result = CliRunner().invoke(app, ["annotate", *map(str, words)])
        assert result.exit_code == 0, result.output
        return result.output

    project = tmp_path / "project"
    videos = only(small_kitchen, tmp_path / "videos")
    (videos / "clip.webarchive").touch()
    told = command("start", project, "--videos", videos, "--propagator", "copy_nearest")
    assert "1 videos, 0 lost" in told
    assert "clip.webarchive" in told
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
    for name in get_args(WrittenFormat):
        command("export", project, "--out", tmp_path / name, "--format", name)
    for name in (name for name in get_args(WrittenFormat) if name != RELEASE):
        again = tmp_path / f"again_{name}"
        command("start", again, "--videos", videos, "--propagator", "copy_nearest")
        assert f"{VIDEO}: {count} frames" in command(
            "import", again, "--from", tmp_path / name, "--format", name, "--by", "x"
        )
        command("run", again)
        pair = [list(open_project(folder).video(VIDEO).tracks()) for folder in (project, again)]
        for line, other in zip(*pair, strict=True):
            if all(sample.is_lossless for sample in samples_of(name)):
                assert {n: m.counts for n, m in line.masks.items()} == {n: m.counts for n, m in other.masks.items()}


def test_an_import_removes_accepted_masks_only_on_request_and_reports_its_omissions(
    small_kitchen: Path, tmp_path: Path
) -> None:
    video = annotated(small_kitchen, started(small_kitchen, tmp_path))
    before = {keyframe.frame: keyframe for keyframe in video.accepted().keyframes}
    frame = min(before)
    width, height = video.source.width, video.source.height
    image = f'<image id="{frame}" name="f" width="{width}" height="{height}">'
    cup = '<box label="coffee cup" xtl="5" ytl="5" xbr="25" ybr="25"/>'
    path = tmp_path / f"{VIDEO}.mp4.xml"
    path.write_text(f"<annotations>{image}{cup}<polyline points='1,1;2,2' label='cup'/></image></annotations>")

    def imported(*flags: str) -> Result:
        source = ["import", str(video.project.folder), "--from", str(path), "--format", "cvat", "--by", "ben"]
        return CliRunner().invoke(app, ["annotate", *source, *flags])

    done = imported()
    assert done.exit_code == 1, "a shape was left out"
    assert "left out: 1 x shapes without an area: polyline" in done.output
    after = {keyframe.frame: keyframe for keyframe in video.accepted().keyframes}
    assert before[frame].masks.items() < after[frame].masks.items()
    assert len(after[frame].masks) == len(before[frame].masks) + 1
    path.write_text(f"<annotations>{image}{cup}</image></annotations>")
    done = imported()
    assert done.exit_code == 0, done.output
    assert f"{len(before[frame].masks)} masks accepted earlier, which the file lacks, were kept" in done.output
    assert imported("--replace").exit_code == 0
    (replaced,) = (keyframe for keyframe in video.accepted().keyframes if keyframe.frame == frame)
    assert (len(replaced.masks), replaced.complete) == (1, True)


def test_masks_of_another_number_of_frames_are_refused(small_kitchen: Path, tmp_path: Path) -> None:
    video = annotated(small_kitchen, started(small_kitchen, tmp_path))
    tracks = MaskTracks(VIDEO, video.source.width, video.source.height, {}, {0: {}}, 3)
    write_mask_tracks([tracks], tmp_path / "masks", "coco_video")
    source = ["import", str(video.project.folder), "--from", str(tmp_path / "masks"), "--format", "coco_video"]
    done = CliRunner().invoke(app, ["annotate", *source, "--by", "ben"])
    assert done.exit_code == 1
    assert "masks of 3 frames for a video of" in done.output


def test_an_object_that_has_a_uuid_keeps_it_on_export(small_kitchen: Path, tmp_path: Path) -> None:
    video = tracked(small_kitchen, tmp_path)
    export_project(video.project.folder, tmp_path / "out")
    ids = {item.id for item in SceneGraph(tmp_path / "out")[VIDEO].objects}
    assert ids <= {item.id for item in reference(small_kitchen).objects}


def only_release(kitchen: Path, folder: Path) -> Path:
    target = folder / "annotated"
    (target / VIDEO).mkdir(parents=True)
    for name in ("coco_annotation.json", "video.mp4"):
        (target / VIDEO / name).write_bytes((kitchen / VIDEO / name).read_bytes())
    return target


@pytest.mark.full
def test_flow_between_keyframes_is_nearer_to_the_truth_than_copies(small_kitchen: Path, tmp_path: Path) -> None:
    original = reference(small_kitchen)
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
