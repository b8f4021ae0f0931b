"""Projects with a tracker of SAM for masks and models for bootstraps: tiny, with random weights."""

import re
import signal
from pathlib import Path

import msgspec
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="SAM runs on torch")
pytest.importorskip("transformers", reason="SAM is loaded through transformers")

from barista_bench.annotate.decisions import DecidedKeyframe, Decisions, accept  # noqa: E402
from barista_bench.annotate.project import Project, VideoFiles, open_project, start_project  # noqa: E402
from barista_bench.annotate.records import Layers, LayerSegment, LinksFile, MaskPrompt, Rename, TrackLine  # noqa: E402
from barista_bench.annotate.running import run_video  # noqa: E402
from barista_bench.scene_graph.masks import encode_mask  # noqa: E402
from tests.annotate.projects import contents, with_models  # noqa: E402
from tests.annotate.sam_checkpoints import write_checkpoint  # noqa: E402
from tests.kills import killed_at, survived_kills  # noqa: E402
from tests.video_samples import HEIGHT, WIDTH, render  # noqa: E402

CLIP, FRAMES = "clip", 16


@pytest.fixture
def videos(tmp_path: Path) -> Path:
    (tmp_path / "videos").mkdir()
    render(tmp_path / "videos" / f"{CLIP}.mp4", FRAMES)
    return tmp_path / "videos"


def square(x: int) -> msgspec.Raw:
    mask = np.zeros((HEIGHT, WIDTH), dtype=np.bool_)
    mask[20:60, x : x + 30] = True
    return msgspec.Raw(msgspec.json.encode(encode_mask(mask)))


def annotate(project: Project) -> None:
    """Two objects on every keyframe that is asked for."""
    keyframes = [
        DecidedKeyframe(frame=frame, masks={"cup": square(3 * frame), "lid": square(3 * frame + 60)})
        for frame in project.video(CLIP).asked_segments()
    ]
    decisions = Decisions(video=CLIP, objects={"cup": "coffee cup", "lid": "lid"}, keyframes=keyframes)
    accept(project, decisions, "anna")


def two_segments(folder: Path, videos: Path, checkpoint: Path) -> VideoFiles:
    """Annotated, not propagated."""
    project = start_project(folder, videos, propagator=f"sam:{checkpoint}")
    accept(project, Decisions(video=CLIP, contacts=[(0, 6), (10, 16)]), "anna")
    path = folder / "project.json"
    text = path.read_text()
    for name in ("gap_s", "shortest_s", "median_s"):  # stretches of a fifth of a second
        text = re.sub(f'"{name}": [0-9.]+', f'"{name}": 0.0', text)
    path.write_text(text)
    project = open_project(folder)
    run_video(folder, CLIP)
    assert len(set(project.video(CLIP).asked_segments().values())) == 2
    annotate(project)
    return project.video(CLIP)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["sam2_video", "sam3_tracker_video"])
def test_sam_propagates_a_project_and_continues_after_a_kill(kind: str, videos: Path, tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path / "checkpoint", kind)
    quiet, killed = (two_segments(tmp_path / name, videos, checkpoint) for name in ("quiet", "killed"))
    assert run_video(quiet.folder.parent, CLIP).made == ["links", "tracks", "review", "layers"]
    lines = {line.frame: line.masks for line in quiet.tracks()}  # reading checks that masks are of the video's size
    assert sorted(lines) == list(range(FRAMES))
    for keyframe in quiet.accepted().keyframes:
        given = {name: mask.rle.counts for name, mask in keyframe.masks.items()}
        assert {name: mask.counts for name, mask in lines[keyframe.frame].items()} == given
    provenance = quiet.read(LinksFile).provenance
    assert provenance.model == f"sam:{checkpoint}"
    assert provenance.revision

    def run_alone() -> None:
        torch.set_num_threads(1)  # a forked process cannot use the threads of its parent
        run_video(killed.folder.parent, CLIP)

    assert killed_at(2, before=False, work=run_alone) == -signal.SIGKILL  # links, first segment
    first = killed.folder / "tracks" / "0000.jsonl"
    made = first.stat().st_mtime_ns
    assert not killed.has(TrackLine)
    run_video(killed.folder.parent, CLIP)
    assert first.stat().st_mtime_ns == made
    assert contents(killed) == contents(quiet)


@pytest.mark.full
def test_killed_at_every_write_with_models_in_every_stage_it_ends_with_the_same_files(
    videos: Path, checkpoints: Path, tmp_path: Path
) -> None:
    def whole(folder: Path) -> None:
        run_video(folder, CLIP)  # signal, segments, keyframes, proposals
        project = open_project(folder)
        frame = min(project.video(CLIP).asked_segments())
        prompts = [
            MaskPrompt(frame=frame, category="lid", box=(20, 20, 90, 60)),
            MaskPrompt(frame=frame, category="lid", words="white lid"),
        ]
        accept(project, Decisions(video=CLIP, prompts=prompts), "anna")
        run_video(folder, CLIP)
        annotate(project)
        layers = Layers(activities=[LayerSegment(name="Lift cup", range=(2, 9))])
        accept(project, Decisions(video=CLIP, layers=layers), "anna")
        if not project.video(CLIP).edits():
            accept(project, Decisions(video=CLIP, edits=[Rename(object="cup", category="jar")]), "anna")
        run_video(folder, CLIP)  # links, tracks, review, layers

    project = start_project(tmp_path / "project", videos, propagator=f"sam:{checkpoints / 'segmenter'}")
    with_models(project, detector=checkpoints / "detector", segmenter=f"sam:{checkpoints / 'segmenter'}")
    kills, files = survived_kills(project.folder / CLIP, lambda: whole(project.folder), before=True)
    assert kills >= 14
    assert {"signal.json", "proposals.json", "prompts.json", "edits.jsonl", "tracks.jsonl", "layers.json"} <= set(files)
