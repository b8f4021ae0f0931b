"""Runs the stages of every video that have what they need, and says which decision of a person is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from barista_bench.annotate.project import Project, VideoFiles, open_project, writing
from barista_bench.annotate.records import KeyframesFile, ProjectRecord
from barista_bench.annotate.stages import AFTER_MASKS, BEFORE_MASKS, AnnotationStage
from barista_bench.core.worker_processes import map_in_processes
from barista_bench.errors import BaristaError, ConfigError, ModelError


class VideoOutcome(ProjectRecord, frozen=True, kw_only=True):
    """What a run did with a video: the stages made, the decision that a person has to take, or what went wrong."""

    video_id: str
    made: list[str]
    missing: str = ""
    problem: str = ""


def run(project: Project, *, num_proc: int = 1) -> Iterator[VideoOutcome]:
    """Every stage of every video that has what it needs, in the order of their ids.

    A video that cannot be used costs that video.

    Raises:
        ConfigError, ModelError: a setting or a model cannot be used, or another process writes the project.
    """
    project.vocabulary()
    jobs = sorted(project.file.videos)
    with writing(project.folder):
        yield from map_in_processes(partial(run_video, project.folder), jobs, num_proc)


def run_video(folder: Path, video_id: str, starting: Callable[[str], object] | None = None) -> VideoOutcome:
    """As `run`, of one video.

    Args:
        starting: is told the name of each stage before it is made.
    """
    project = open_project(folder)
    made: list[str] = []
    try:
        video = project.video(video_id)
        made += _made(video, BEFORE_MASKS, starting)
        missing = missing_masks(video)
        if not missing:
            made += _made(video, AFTER_MASKS, starting)
    except (ConfigError, ModelError):
        raise
    except BaristaError as error:
        return VideoOutcome(video_id=video_id, made=made, problem=str(error))
    return VideoOutcome(video_id=video_id, made=made, missing=missing)


def _made(
    video: VideoFiles, stages: Sequence[AnnotationStage], starting: Callable[[str], object] | None
) -> Iterator[str]:
    for stage in stages:
        if stage.state(video) in ("ready", "stale"):
            if starting:
                starting(stage.name)
            identity = stage.made_by(video)
            assert identity is not None
            video.folder.mkdir(exist_ok=True)
            stage.make(video, stage.provenance(video, identity))
            yield stage.name


def missing_masks(video: VideoFiles) -> str:
    """The decision of a person without which there are no tracks, and its file; empty where there is none."""
    accepted = {keyframe.frame for keyframe in video.accepted().keyframes if keyframe.complete}
    if not video.has(KeyframesFile):
        if accepted:
            return ""
        return "when hands touch things (accept a signal: confidences or contacts), or masks"
    waiting = sorted(video.asked().keys() - accepted)
    if not waiting:
        return ""
    shown = ", ".join(map(str, waiting[:8])) + (" ..." if len(waiting) > 8 else "")
    return f"masks on {len(waiting)} keyframes of {video.folder.name}/{KeyframesFile.FILE}: {shown}"
