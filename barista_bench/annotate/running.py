"""Runs all stages whose inputs exist for every video, and reports which decisions of people are missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from barista_bench.annotate.project import PROJECT_FILE, VOCABULARY_FILE, Project, VideoFiles, open_project, writing
from barista_bench.annotate.records import KeyframesFile, ProjectRecord
from barista_bench.annotate.stages import AFTER_MASKS, BEFORE_MASKS, AnnotationStage
from barista_bench.cluster import RayCluster, cluster_of, map_in_processes
from barista_bench.errors import BaristaError, ConfigError, ModelError
from barista_bench.files.paths import confine
from barista_bench.files.writing import write_whole


class VideoOutcome(ProjectRecord, frozen=True, kw_only=True):
    """The outcome of a video: the stages that were run, the decision needed from a person, or the error."""

    video_id: str
    made: list[str]
    missing: str = ""
    problem: str = ""


class VideoJob(NamedTuple):
    """A video's stages as a job for a node of a cluster, with the needed files by path in the project's folder."""

    project: Path
    video_id: str
    files: dict[str, bytes]

    @classmethod
    def of(cls, project: Path, video_id: str) -> VideoJob:
        return cls(project, video_id, _files(project, video_id))


class WrittenFile(NamedTuple):
    """A file written by a node, by its path in the project's folder; the content of a removed file is None."""

    name: str
    content: bytes | None


def run(project: Project, *, num_proc: int = 1, cluster: str | None = None) -> Iterator[VideoOutcome]:
    """Run every stage whose inputs exist, for every video, in the order of the videos' ids.

    An unusable video does not affect other videos.

    Args:
        num_proc: the number of processes.
        cluster: the address of a Ray cluster whose nodes do the work instead; see `RayCluster`. The nodes need the
            videos. Only this process writes the project's folder.

    Raises:
        ClusterError: the cluster cannot be used.
        ConfigError, ModelError: a setting or a model cannot be used, or another process writes the project.
    """
    project.vocabulary()
    video_ids = sorted(project.file.videos)
    with writing(project.folder):
        nodes = cluster_of(cluster, num_proc, [project.file.folder])
        if nodes:
            yield from _run_on_cluster(nodes, project, video_ids)
        else:
            yield from map_in_processes(partial(run_video, project.folder), video_ids, num_proc)


def _run_on_cluster(cluster: RayCluster, project: Project, video_ids: Sequence[str]) -> Iterator[VideoOutcome]:
    settings = project.settings
    by_arithmetic = settings.propagator.partition(":")[0] in ("flow", "copy_nearest", "lucas_kanade")
    loads_models = not by_arithmetic or settings.detector or settings.segmenter not in (None, "grabcut")
    gpus = 1 if loads_models and any(node.gpus for node in cluster.nodes) else 0
    jobs = (VideoJob.of(project.folder, video_id) for video_id in video_ids)
    for result in cluster.stream(run_job, jobs, gpus=gpus):
        if isinstance(result, VideoOutcome):
            yield result
            continue
        path = confine(project.folder, result.name)
        if result.content is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, result.content)


def run_job(job: VideoJob) -> Iterator[WrittenFile | VideoOutcome]:
    """Run a video's stages; yield the changed files of the project's folder, and then the outcome."""
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name, content in job.files.items():
            path = confine(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        outcome = run_video(folder, job.video_id)
        new_files = _files(folder, job.video_id)
        for name in sorted(new_files | job.files):
            if new_files.get(name) != job.files.get(name):
                yield WrittenFile(name, new_files.get(name))
        yield msgspec.structs.replace(outcome, problem=outcome.problem.replace(scratch, str(job.project)))


def _files(folder: Path, video_id: str) -> dict[str, bytes]:
    folder = folder.resolve()
    paths = [folder / PROJECT_FILE, folder / VOCABULARY_FILE, *confine(folder, video_id).rglob("*")]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths if path.is_file()}


def run_video(folder: Path, video_id: str, starting: Callable[[str], object] | None = None) -> VideoOutcome:
    """Run the stages of one video, as `run` does.

    Args:
        starting: called with the name of each stage before the stage runs.
    """
    project = open_project(folder)
    made_stages: list[str] = []
    try:
        video = project.video(video_id)
        made_stages += _make_stages(video, BEFORE_MASKS, starting)
        missing = missing_masks(video)
        if not missing:
            made_stages += _make_stages(video, AFTER_MASKS, starting)
    except (ConfigError, ModelError):
        raise
    except BaristaError as error:
        return VideoOutcome(video_id=video_id, made=made_stages, problem=str(error))
    return VideoOutcome(video_id=video_id, made=made_stages, missing=missing)


def _make_stages(
    video: VideoFiles, stages: Sequence[AnnotationStage], starting: Callable[[str], object] | None
) -> Iterator[str]:
    for stage in stages:
        if stage.state(video) in ("ready", "stale"):
            if starting:
                starting(stage.name)
            identity = stage.identity_of(video)
            assert identity is not None
            video.folder.mkdir(exist_ok=True)
            stage.make(video, stage.provenance(video, identity))
            yield stage.name


def missing_masks(video: VideoFiles) -> str:
    """Return the decision that a person must make before tracking, and its file; empty if no decision is missing."""
    accepted = {keyframe.frame for keyframe in video.accepted().keyframes if keyframe.complete}
    if not video.has(KeyframesFile):
        if accepted:
            return ""
        return "when hands touch things (accept a signal: confidences or contacts), or masks"
    unannotated = sorted(video.asked_segments().keys() - accepted)
    if not unannotated:
        return ""
    first_frames = ", ".join(map(str, unannotated[:8])) + (" ..." if len(unannotated) > 8 else "")
    return f"masks on {len(unannotated)} keyframes of {video.folder.name}/{KeyframesFile.FILE}: {first_frames}"
