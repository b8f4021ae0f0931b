"""The workspace of the studio: recognises and opens folders, and runs background work with progress.

The folders are a release, datasets, runs, an annotation project, and review files; each is optional.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from barista_bench.api import run_folders
from barista_bench.core.example import Example
from barista_bench.data.dataset import recorded_root
from barista_bench.data.frozen import read_frozen
from barista_bench.data.manifest import DEFAULT_BENCHMARK, MANIFEST, read_manifest
from barista_bench.errors import BaristaError, ConfigError, DataError
from barista_bench.files.paths import name_problem
from barista_bench.files.text_out import make_printable, system_problem
from barista_bench.media.video.opening import VIDEO_SUFFIXES
from barista_bench.reporting import PAGE
from barista_bench.runs.data_location import data_places
from barista_bench.runs.run_folder import CONFIG_FILE, read_run
from barista_bench.scene_graph import SceneGraph, VideoGraph
from barista_bench.scene_graph.release import ANNOTATION_FILE

if TYPE_CHECKING:
    from barista_bench.annotate.project import Project

Json = dict[str, Any]
SentT = TypeVar("SentT", bound=msgspec.Struct)
log = logging.getLogger(__name__)
GRAPH, PROJECT = "graph", "project"
"""The first part of a video's address, for the kind of folder that has the video."""


FoundKind: TypeAlias = Literal["project", "release", "dataset", "runs", "review", "report", "videos", "vocabulary"]
OPENABLE: tuple[FoundKind, ...] = ("project", "release", "dataset", "runs", "review")
_REVIEWS = "review*.jsonl"
_PROJECT_FILE = "project.json"
_KIND_BY_FILE: dict[str, FoundKind] = {
    _PROJECT_FILE: "project",
    MANIFEST: "dataset",
    CONFIG_FILE: "runs",
    ANNOTATION_FILE: "release",
}
"""The kind of a folder, by the name of a file in it; for `release`, the folder is one video of it."""
_SINGLE: tuple[FoundKind, ...] = ("project", "release")
"""Kinds of folders of which only one can be open at a time."""
_MOST_SCANNED, _DEEPEST = 20_000, 5
"""Limits for searching a folder: number of examined entries, and number of levels below the folder."""


class ConflictError(DataError):
    """The data on which a decision was based has changed."""


class Query(dict[str, str]):
    """The query of an address. Raises DataError if a requested part is missing."""

    def __missing__(self, name: str) -> str:
        raise DataError(f"{name} is missing from the address. Fix: load the page again")


class Routes:
    """A part of the studio: the requests that the page may make, by path."""

    reads: Mapping[str, Callable[[Mapping[str, str]], Json]] = {}
    """Read requests that the page may make, by path; each function receives the query of the address."""
    writes: Mapping[str, Callable[[bytes], Json]] = {}
    """Write requests that the page may make, by path; each function receives the body."""


@dataclass
class Workspace:
    """Opened folders. Methods may be called from several threads.

    Args:
        person: the name of the person who annotates, reviews and answers.
        out: the folder for people's answers and ratings.
        folder: the folder where the page may run commands and open their results; None if it may run no commands.
        paths: the opened paths, as the user gave them.
    """

    person: str
    out: Path
    release: SceneGraph | None = None
    project: Project | None = None
    compared: tuple[Project, ...] = ()
    datasets: tuple[Path, ...] = ()
    runs: tuple[Path, ...] = ()
    reviews: tuple[Path, ...] = ()
    folder: Path | None = None
    paths: tuple[Path, ...] = ()
    _graphs: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def graph(self, video_id: str) -> VideoGraph:
        """Return a video's graph. Raises DataError if the graph does not exist or cannot be read."""
        if self.release is None:
            raise DataError("no release is open. Fix: name its folder when starting the studio")
        with self._graphs:
            return self.release[video_id]

    def video_path(self, kind: str, video_id: str) -> Path:
        """Return the path of a video file. Raises DataError."""
        if kind == PROJECT and self.project is not None:
            return self.project.video(video_id).path
        if kind == GRAPH and self.release is not None and video_id in self.release:
            return self.release.video_path(video_id)
        raise DataError(f"{video_id!r}: no such video is open. Fix: choose one of the list")

    def examples(self) -> dict[str, list[Example]]:
        """Return all examples of the open datasets, by folder and task. Raises DataError."""
        by_task: dict[str, list[Example]] = {}
        with self._graphs:
            for folder in self.datasets:
                by_task |= {f"{folder}/{name}": examples for name, examples in _examples_of(folder).items()}
        return by_task


def open_workspace(
    paths: Sequence[Path], *, person: str, out: Path, compared: Sequence[Path] = (), folder: Path | None = None
) -> Workspace:
    """Recognise folders by their content, and open the data that they need: a dataset's videos, a run's dataset.

    Args:
        paths: paths of a release, a dataset made by `build`, run folders or a folder with run folders, a project or a
            review file.
        compared: projects of other annotators of the same videos.
        folder: see `Workspace`.

    Raises:
        ConfigError: a path is of an unknown kind, there are two releases or projects, or `person` cannot be the name of
            a folder.
        DataError: a file of an opened folder cannot be read.
    """
    check_person(person, "--by")
    if folder is not None and not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder. Fix: make it, or name another one")
    workspace = Workspace(person, out, folder=folder and folder.resolve(), paths=tuple(paths))
    for path in paths:
        _add_path(workspace, path)
    for folder in compared:
        workspace.compared = (*workspace.compared, _open_project(folder))
    for folder in workspace.runs if not workspace.datasets else ():
        recorded = read_run(folder).data
        places = map(Path, data_places(folder, recorded.path, recorded.absolute_path))
        dataset = next((path for path in places if (path / MANIFEST).is_file()), None)
        if dataset is not None and dataset not in workspace.datasets:
            workspace.datasets = (*workspace.datasets, dataset)
    for folder in workspace.datasets if workspace.release is None else ():
        root = recorded_root(folder)
        if root is not None and workspace.release is None:
            with suppress(DataError):  # if this fails, the studio reports that the videos are missing
                workspace.release = SceneGraph(root)
    return workspace


def check_person(name: str, option: str) -> None:
    """Raise ConfigError for a name that cannot be the name of a person's folder."""
    problem = name_problem(name)
    if problem is None and (name != name.strip() or name.startswith(".") or name != make_printable(name)):
        problem = "it begins or ends with a blank, begins with a dot, or holds what cannot be seen"
    if problem is not None:
        raise ConfigError(f"{option} {name!r}: {problem}. Fix: give a name that a folder can have")


def with_folder(workspace: Workspace, path: Path) -> Workspace:
    """Return the workspace with one more folder; a project or release replaces the open project or release.

    Raises ConfigError or DataError as `open_workspace` does.
    """
    kind = _kind_of(path)
    other_paths = [other for other in workspace.paths if not other.resolve().is_relative_to(path.resolve())]
    if kind in _SINGLE:
        other_paths = [other for other in other_paths if _kind_of(other) != kind]
    compared = [project.folder for project in workspace.compared]
    opened = open_workspace((*other_paths, path), person=workspace.person, out=workspace.out, compared=compared)
    return replace(opened, folder=workspace.folder)


def _kind_of(path: Path) -> FoundKind | None:
    """Return the kind that a path can be opened as; None if the kind is unknown: the path may be a release."""
    if path.is_file():
        return "review" if path.suffix == ".jsonl" else None
    if (path / _PROJECT_FILE).is_file():
        return "project"
    if (path / MANIFEST).is_file():
        return "dataset"
    if path.is_dir() and next(path.rglob(CONFIG_FILE), None):
        return "runs"
    if next(path.glob(f"*/{ANNOTATION_FILE}"), None):
        return "release"
    return "review" if next(path.glob(_REVIEWS), None) else None


def _add_path(workspace: Workspace, path: Path) -> None:
    kind = _kind_of(path)
    if kind == "review":
        workspace.reviews += (path,) if path.is_file() else tuple(sorted(path.glob(_REVIEWS)))
    elif kind == "project":
        if workspace.project is not None:
            raise ConfigError(f"{path}: a project is open already. Fix: name others with --compare")
        workspace.project = _open_project(path)
    elif kind == "dataset":
        workspace.datasets = (*workspace.datasets, path)
    elif kind == "runs":
        workspace.runs = (*workspace.runs, *run_folders(path))
    else:
        if workspace.release is not None:
            raise ConfigError(f"{path}: a release is open already. Fix: name one folder of videos")
        try:
            workspace.release = SceneGraph(path)
        except DataError as error:
            remedy = "name a release, a dataset, run folders, a project or a review file"
            raise ConfigError(f"{path}: nothing that the studio can open. Fix: {remedy}") from error


class FoundFolder(NamedTuple):
    """A folder or file in the studio's folder, with its relative path."""

    kind: FoundKind
    path: str


def find_folders(folder: Path) -> list[FoundFolder]:
    """Return paths below a folder that can be opened or given to a command, without links and hidden folders."""
    found: set[FoundFolder] = set()
    pending, scanned = [(folder, 0)], 0
    while pending and scanned < _MOST_SCANNED:
        path, depth = pending.pop(0)
        try:
            with os.scandir(path) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError:  # we may not read this folder
            continue
        scanned += len(entries)
        files = {entry.name for entry in entries if entry.is_file()}
        name = path.relative_to(folder).as_posix()
        kind = next((kind for name, kind in _KIND_BY_FILE.items() if name in files), None)
        if kind == "release":  # the found file is in the folder of one of the release's videos
            found.add(FoundFolder("release", path.parent.relative_to(folder).as_posix()))
        elif kind == "runs":
            found.add(FoundFolder("runs", path.relative_to(folder).parts[0] if depth else name))
        elif kind is not None:
            found.add(FoundFolder(kind, name))
        else:
            found.update(_found_files(path.relative_to(folder), files, depth))
            if depth < _DEEPEST and FoundFolder("release", name) not in found:
                folders = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
                pending += [(Path(entry.path), depth + 1) for entry in folders if not entry.name.startswith(".")]
    return sorted(found)


def _found_files(folder: Path, files: set[str], depth: int) -> Iterator[FoundFolder]:
    if any(Path(name).suffix.casefold() in VIDEO_SUFFIXES for name in files):
        yield FoundFolder("videos", folder.as_posix())
    for name in files:
        if name == PAGE:
            yield FoundFolder("report", (folder / name).as_posix())
        elif fnmatch(name, _REVIEWS):
            yield FoundFolder("review", (folder / name).as_posix())
        elif name.endswith((".yaml", ".yml")) and depth <= 1:
            yield FoundFolder("vocabulary", (folder / name).as_posix())


def default_paths(folder: Path) -> list[Path]:
    """Return the paths that a studio opens by default: the newest project and release, and everything of other kinds.

    Paths that cannot be opened, such as another program's project.json, are left out and named in the log.
    """
    by_kind: dict[FoundKind, list[Path]] = {}
    for kind, name in find_folders(folder):
        if kind not in OPENABLE:
            continue
        try:
            _add_path(Workspace("", Path()), folder / name)
        except BaristaError as error:
            log.warning("not opened: %s", error)
        else:
            by_kind.setdefault(kind, []).append(folder / name)
    newest = [max(by_kind[kind], key=lambda path: path.stat().st_mtime) for kind in _SINGLE if kind in by_kind]
    return [*newest, *by_kind.get("dataset", ()), *by_kind.get("runs", ()), *by_kind.get("review", ())]


def _open_project(folder: Path) -> Project:
    from barista_bench.annotate.project import open_project

    return open_project(folder)


@cache
def _examples_of(folder: Path) -> dict[str, list[Example]]:
    owner = str(read_manifest(folder).get("benchmark", DEFAULT_BENCHMARK))
    return {file.stem: list(read_frozen(file, owner)) for file in sorted((folder / "frozen").glob("*.jsonl"))}


def whole_number(query: Mapping[str, str], name: str) -> int:
    """Return a number from an address. Raises DataError if the number is invalid."""
    text = query[name]
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise DataError(f"{name} is {text[:40]!r}. Fix: give a whole number from 0")
    return int(text)


def sent_as(kind: type[SentT], body: bytes) -> SentT:
    """Return the body sent by a page as a record. Raises DataError if the body is invalid."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"this is no {kind.__name__} ({error}). Fix: load the page again") from error


class BackgroundWork:
    """Work that starts at once, or when `turn` is free. `step` describes what the work does at present."""

    def __init__(self, work: Callable[[BackgroundWork], object], turn: threading.Lock) -> None:
        self.state: Literal["waiting", "running", "done", "failed"] = "waiting"
        self.step = self.problem = ""
        self._work, self._turn = work, turn
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def progress(self) -> Json:
        return {"state": self.state, "step": self.step, "problem": self.problem}

    def _run(self) -> None:
        problem = "stopped by an error that the terminal shows"
        with self._turn:
            self.state = "running"
            try:
                self._work(self)
                problem = ""
            except (BaristaError, OSError) as error:
                problem = system_problem(error) if isinstance(error, OSError) else str(error)
                log.warning("%s", problem)
            finally:
                self.problem, self.state = problem, "failed" if problem else "done"
