"""Projects of the small kitchen with a known reference, and people's decisions about it."""

import functools
import os
import shutil
from pathlib import Path

import msgspec

from barista_bench.annotate.converting import decisions_of_graph
from barista_bench.annotate.decisions import Decisions, accept
from barista_bench.annotate.project import Project, VideoFiles, open_project, start_project
from barista_bench.annotate.running import run_video
from barista_bench.scene_graph import SceneGraph, VideoGraph

VIDEO = "mini_capsule_01"


def reference(kitchen: Path, video_id: str = VIDEO) -> VideoGraph:
    return SceneGraph(kitchen)[video_id]


def only(kitchen: Path, folder: Path, video_id: str = VIDEO) -> Path:
    """A folder with one video of the kitchen, and nothing beside it."""
    folder.mkdir(parents=True)
    (folder / f"{video_id}.mp4").write_bytes((kitchen / video_id / "video.mp4").read_bytes())
    return folder


def started(kitchen: Path, folder: Path, propagator: str = "copy_nearest") -> Project:
    """A project of one video with a known signal: two contacts."""
    return _copied(_made(kitchen, propagator), folder)


def asked(kitchen: Path, folder: Path) -> VideoFiles:
    """The video of such a project, annotated where it asks for it."""
    return _copied(_asked(kitchen), folder).video(VIDEO)


def tracked(kitchen: Path, folder: Path) -> VideoFiles:
    """The same, propagated."""
    return _copied(_tracked(kitchen), folder).video(VIDEO)


def _copied(made: Path, folder: Path) -> Project:
    shutil.copytree(made, folder, dirs_exist_ok=True)
    settings = folder / "project" / "project.json"
    settings.write_text(settings.read_text().replace(str(made.resolve()), str(folder.resolve())))
    return open_project(folder / "project")


@functools.cache
def _asked(kitchen: Path) -> Path:
    folder = kitchen.parent / f"asked {os.getpid()}"
    annotated(kitchen, started(kitchen, folder))
    return folder


@functools.cache
def _tracked(kitchen: Path) -> Path:
    folder = kitchen.parent / f"tracked {os.getpid()}"
    propagated(asked(kitchen, folder))
    return folder


@functools.cache
def _made(kitchen: Path, propagator: str) -> Path:
    """One a process, which tests copy."""
    folder = kitchen.parent / f"{propagator} {os.getpid()}"
    project = start_project(folder / "project", only(kitchen, folder / "videos"), propagator=propagator)
    accept(project, Decisions(video=VIDEO, by="anna", contacts=[(20, 60), (110, 150)]))
    outcome = run_video(project.folder, VIDEO)
    assert not outcome.problem
    assert "masks on" in outcome.missing
    return folder


def annotated(kitchen: Path, project: Project, *, by: str = "anna", hidden: bool = False) -> VideoFiles:
    """The project with the reference accepted on the keyframes that it asks for.

    Args:
        hidden: every segment has separate ids, as from annotators who do not see each other's.
    """
    video = project.video(VIDEO)
    asked = video.asked_segments()
    decisions = msgspec.structs.replace(decisions_of_graph(reference(kitchen), asked), contacts=None)
    if hidden:
        decisions = hide_identities(decisions, asked)
    accept(project, decisions, by)
    return video


def hide_identities(decisions: Decisions, asked: dict[int, int]) -> Decisions:
    """Ids that begin with the number of the segment; no layers, which name objects of the whole video."""

    def renamed(name: str, frame: int) -> str:
        return f"{asked[frame]}:{name}"

    keyframes = [
        msgspec.structs.replace(
            keyframe,
            masks={renamed(name, keyframe.frame): mask for name, mask in keyframe.masks.items()},
            attributes=[
                msgspec.structs.replace(item, object=renamed(item.object, keyframe.frame))
                for item in keyframe.attributes
            ],
        )
        for keyframe in decisions.keyframes
    ]
    objects = {f"{number}:{name}": kind for number in set(asked.values()) for name, kind in decisions.objects.items()}
    return msgspec.structs.replace(decisions, objects=objects, keyframes=keyframes, layers=None)


def contents(video: VideoFiles) -> dict[str, bytes]:
    """Every file of a video, by its path."""
    files = (path for path in video.folder.rglob("*") if path.is_file())
    return {path.relative_to(video.folder).as_posix(): path.read_bytes() for path in files}


def with_models(project: Project, **names: object) -> None:
    """Name bootstraps in project.json."""
    path = project.folder / "project.json"
    file = msgspec.json.decode(path.read_bytes())
    file["settings"] |= {key: name and str(name) for key, name in names.items()}
    path.write_bytes(msgspec.json.encode(file))


def propagated(video: VideoFiles) -> list[str]:
    """The stages that a run makes."""
    outcome = run_video(video.folder.parent, VIDEO)
    assert not outcome.problem, outcome.problem
    assert not outcome.missing
    return outcome.made
