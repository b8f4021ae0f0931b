"""Folders replaced only by the command that owns them.

A command replaces a folder only if a list in it names every file, with its SHA-256. The list is part of a manifest, the
last file that is written: `{"files": {path: SHA-256}, ...}`. Anything else below the folder stops the command before
its first change, and no command writes inside a folder of another one.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from barista_bench.errors import ConfigError, DataError
from barista_bench.files.hashes import file_sha256
from barista_bench.files.reading import read_bounded_json
from barista_bench.files.writing import name_full_disk, real_path

log = logging.getLogger(__name__)
MAX_MANIFEST = 2**24
"""Bytes of one: some KB a config of a dataset, about 100 bytes a file."""
_WORK = ".barista_bench-"
# A mount point, another file system (also a bind mount, a lower layer), a parent with a sticky bit or another owner.
_CANNOT_BE_RENAMED = frozenset({errno.EBUSY, errno.EXDEV, errno.EPERM, errno.EACCES})
_REMEDY = "move it away, or choose another folder"


@dataclass(frozen=True, slots=True)
class FolderKind:
    """A kind of folder that a command makes. A folder in which each of `markers` (globs) matches something is of
    this kind; `parts` are names of folders in it that other commands may write."""

    name: str
    markers: tuple[str, ...]
    parts: tuple[str, ...] = ()

    @property
    def manifest(self) -> str:
        """The file that holds the list, of the kinds that are replaced."""
        return self.markers[0]


DATASET = FolderKind("a dataset", ("barista_bench.json",))
KITCHEN = FolderKind("a mini kitchen", (".mini_kitchen",))
REPORT = FolderKind("a report", (".report_files.json",))
ANALYSIS = FolderKind("an analysis", (".analysis_files.json",))
STATISTICS = FolderKind("statistics of a release", (".statistics_files.json",))
JUDGES = FolderKind("a comparison of judges", (".judges_files.json",))
SUBMISSION = FolderKind("a submission", (".submission_files.json",))
RUN = FolderKind("a run folder", ("run.json", "samples*.jsonl"), parts=("report",))
TRAINING_SET = FolderKind("a training set", ("training_videos.json",))
VIDEO = FolderKind("a video of a release", ("coco_annotation.json",))
KINDS = (DATASET, KITCHEN, REPORT, ANALYSIS, STATISTICS, JUDGES, SUBMISSION, RUN, TRAINING_SET, VIDEO)


def kind_of_folder(folder: Path) -> FolderKind | None:
    """The kind of a folder; None for one that no command made."""
    return next((kind for kind in KINDS if all(any(folder.glob(marker)) for marker in kind.markers)), None)


def check_place(out: Path, kind: FolderKind | None = None) -> Path:
    """Check the path of a file or a folder to write, which may be there already.

    Returns:
        The path, links followed.

    Raises:
        ConfigError: it is anything but `kind`, lies in a folder of another kind, is a link to nothing, or may not be
            written.
        OSError: its name is too long, or leads through a file.
    """
    target = real_path(out)
    try:
        os.lstat(target)
    except FileNotFoundError:
        if out.is_symlink():
            raise ConfigError(f"{out}: is a link to {target}, which is not there. Remedy: remove it") from None
    for path in dict.fromkeys((Path(os.path.abspath(out)), target)):
        owned = kind_of_folder(path)
        if owned is not None and owned != kind:
            problem = f"is {owned.name}, not {kind.name}" if kind else f"is there already, and is {owned.name}"
            raise ConfigError(f"{out}: {problem}. Remedy: choose another place")
        for folder in path.parents:
            owned = kind_of_folder(folder)
            if owned is not None and path.relative_to(folder).as_posix() not in owned.parts:
                raise ConfigError(f"{out}: lies inside {folder}, which is {owned.name}. Remedy: choose another place")
    existing = next(path for path in (target, *target.parents) if path.exists())
    if not os.access(existing, os.W_OK):
        raise ConfigError(f"{out}: {existing} may not be written. Remedy: choose another place, or change its rights")
    return target


def refuse_inside(out: Path, *inputs: str | Path | None) -> None:
    """Raise ConfigError where `out` is one of the folders that a command reads, or lies in one."""
    for folder in inputs:
        if folder is not None and Path(folder).is_dir() and real_path(out).is_relative_to(real_path(folder)):
            raise ConfigError(f"{out}: lies inside {folder}, which is read. Remedy: choose another folder")


def check_target(out: Path, kind: FolderKind | None = None, besides: str = "") -> Path:
    """Check a folder before the work starts whose results will replace it.

    Args:
        out: may be absent or empty, a link to a folder, a mount point; otherwise holds what its list names, no more.
        kind: what it may be; None for a folder that is never replaced.
        besides: what may lie in it all the same.

    Returns:
        The folder, links followed.

    Raises:
        ConfigError: as `check_place`; it is not a folder, or holds what no list names.
        OSError: as `check_place`.
    """
    target = check_place(out, kind)
    if target.is_dir():
        _refuse_unlisted(out, target, kind, besides)
    elif os.path.lexists(target):
        raise ConfigError(f"{out}: is not a folder. Remedy: choose another one")
    return target


@contextmanager
def replacing_folder(out: Path, kind: FolderKind | None = None) -> Iterator[Path]:
    """A hidden folder to fill, which takes the place of `out` at the end, with a list of its files; parents are made.

    An error leaves `out` as it was. Folders take each other's place by renaming. Where that cannot be (a mount point,
    the working directory, a parent that may not be written), their files do so one by one, and the manifest last.

    Args:
        out: as `check_target` takes it, which looks at it before and after the work.
        kind: what is made of it; None for a folder that is never replaced, and gets no list.

    Raises:
        ConfigError, OSError: as `check_target` does.
    """
    target = check_target(out, kind)
    in_place = target.is_dir() and (
        not os.access(target.parent, os.W_OK | os.X_OK)
        or os.path.ismount(target)
        or Path.cwd().is_relative_to(target)  # a shell that stands in it would lose it
    )
    parent = target if in_place else target.parent
    parent.mkdir(parents=True, exist_ok=True)
    with name_full_disk(out):
        work = Path(mkdtemp(prefix=_WORK, dir=parent))
        try:
            fresh = work / "new"
            fresh.mkdir()
            yield fresh
            _prune(fresh)
            if kind is not None:  # the files are added to what stands in the manifest, if anything does
                path = fresh / kind.manifest
                described = json.loads(path.read_bytes()) if path.exists() else {}
                described["files"] = _files(fresh, besides=(kind.manifest,))
                path.write_text(json.dumps(described, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            check_target(out, kind, besides=work.name)
            if in_place or not _swap(fresh, target, kind):
                _exchange(fresh, target, kind, work)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _refuse_unlisted(out: Path, target: Path, kind: FolderKind | None, besides: str) -> None:
    names = sorted(entry.name for entry in target.iterdir() if entry.name != besides)
    if not names:
        return
    if kind is None:
        raise ConfigError(f"{out}: is there already, and holds {names[0]!r}. Remedy: choose another folder")
    if kind.manifest not in names:
        raise ConfigError(f"{out}: holds {names[0]!r}, and is not {kind.name} of ours. Remedy: choose another folder")
    listed_files, present_files = _read_listed_files(target, kind), _files(target, besides=(besides, kind.manifest))
    for name in sorted(present_files):
        if name not in listed_files:
            raise ConfigError(f"{out}: holds {name!r}, which is not ours. Remedy: {_REMEDY}")
        if present_files[name] != listed_files[name]:
            raise ConfigError(f"{out}: {name!r} was changed after it was written. Remedy: {_REMEDY}")


def _read_listed_files(folder: Path, kind: FolderKind) -> dict[str, str]:
    """The files that a command wrote there, as paths relative to the folder, and their SHA-256."""
    path = folder / kind.manifest
    try:
        manifest = read_bounded_json(path, MAX_MANIFEST, remedy=_REMEDY)
    except DataError as error:
        raise ConfigError(str(error)) from error
    listed_files = manifest.get("files") if isinstance(manifest, dict) else None
    if not isinstance(listed_files, dict):
        raise ConfigError(f"{path}: lists no files that may be replaced. Remedy: {_REMEDY}")
    return {str(name): str(sha256) for name, sha256 in listed_files.items()}


def _files(folder: Path, besides: Collection[str] = ()) -> dict[str, str]:
    """SHA-256 of every file below a folder; empty folders and what is not a plain file count too, as what they are."""
    digests = {}
    for parent, folders, files in os.walk(folder, onerror=_raise):
        if Path(parent) == folder:
            folders[:] = [name for name in folders if name not in besides]
            files = [name for name in files if name not in besides]
        for path in (Path(parent, name) for name in (*folders, *files)):
            relative = path.relative_to(folder).as_posix()
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                digests[relative] = "no plain file"
            elif path.is_file():
                digests[relative] = file_sha256(path)
            elif not any(path.iterdir()):
                digests[f"{relative}/"] = "an empty folder"
    return digests


def _raise(error: OSError) -> None:
    """`os.walk` would pass over folders that it cannot read, whatever they hold."""
    raise error


def _swap(fresh: Path, target: Path, kind: FolderKind | None) -> bool:
    """Put the finished folder in the target's place by renaming; False where the target is one that cannot be."""
    if kind is None or not (target / kind.manifest).exists():
        return _try_rename(fresh, target)  # also onto an empty one
    listed_files = {kind.manifest, *_read_listed_files(target, kind)}
    aside = Path(mkdtemp(prefix=_WORK, dir=target.parent))
    try:
        if not _try_rename(target, aside):
            return False
        fresh.rename(target)
    finally:
        if not target.exists():
            aside.rename(target)
        with suppress(OSError):
            aside.rmdir()  # fails on the old folder
    _remove(aside, listed_files)
    return True


def _try_rename(origin: Path, destination: Path) -> bool:
    try:
        origin.rename(destination)
    except OSError as error:
        if error.errno not in _CANNOT_BE_RENAMED:
            raise
        return False
    return True


def _remove(folder: Path, names: Collection[str]) -> None:
    """Remove these files, and the folders that are empty without them; what came in meanwhile stays."""
    for name in _paths(folder):
        if name in names:
            (folder / name).unlink()
    _prune(folder)
    with suppress(OSError):
        folder.rmdir()
    if folder.exists():
        log.warning("%s: holds what was written there during the work; it was kept", folder)


def _exchange(fresh: Path, target: Path, kind: FolderKind | None, work: Path) -> None:
    """Put the finished files in the target's place one by one, within it.

    The manifest leaves first and comes last: a folder that has one is complete.
    """
    manifest = kind.manifest if kind else None
    aside = Path(mkdtemp(prefix=_WORK, dir=target))
    old_names = sorted(_paths(target, (aside, work)), key=lambda name: name != manifest)
    new_names = sorted(_paths(fresh), key=lambda name: name == manifest)
    moved_names = []
    try:
        for name in old_names:
            _move(target / name, aside / name)
        _prune(target, (aside, work))
        for name in new_names:
            moved_names.append(name)
            _move(fresh / name, target / name)
    except BaseException:
        for name in moved_names:
            (target / name).unlink(missing_ok=True)
        for name in _paths(aside):
            _move(aside / name, target / name)
        raise
    finally:
        _prune(target, (work,))
    _remove(aside, old_names)


def _move(origin: Path, destination: Path) -> None:
    destination.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(origin, destination)  # a rename, or a copy from another file system


def _paths(folder: Path, besides: Collection[Path] = ()) -> list[str]:
    """The files below a folder, as paths relative to it, but for those below `besides`."""
    files = (Path(parent, name) for parent, _, names in os.walk(folder) for name in names)
    return sorted(path.relative_to(folder).as_posix() for path in files if not _is_below(path, besides))


def _prune(folder: Path, besides: Collection[Path] = ()) -> None:
    """Remove the empty folders below a folder, but for `besides` and what is below them."""
    for parent, _, _ in os.walk(folder, topdown=False):
        path = Path(parent)
        if path != folder and not _is_below(path, besides):
            with suppress(OSError):
                path.rmdir()


def _is_below(path: Path, folders: Collection[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)
