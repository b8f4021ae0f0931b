"""Replace folders safely: only the command that owns a folder may replace it.

A command replaces a folder only if a list in the folder names every file. The list is part of a manifest, which is
written last: `{"files": [path, ...], ...}`. Any other file below the folder stops the command before its first change.
No command writes inside a folder of another command.

The new folder is made beside the old one. At the end the old folder is renamed to `.NAME.barista_bench-old`, then the
new one to `NAME`. If a command is killed between the two steps, only the old folder remains, and the next command
restores it.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from barista_bench.errors import ConfigError, DataError
from barista_bench.files.reading import read_bounded_json
from barista_bench.files.writing import name_full_disk, real_path

log = logging.getLogger(__name__)
MAX_MANIFEST = 2**24
"""Maximum number of bytes of a manifest, which takes some KB per config of a dataset and about 100 bytes per file."""
LEFTOVER_AGE = 7 * 24 * 3600
"""Seconds without a change after which a work folder counts as left behind by a dead command."""
_WORK = ".barista_bench-"
_REMEDY = "move it away, or choose another folder"


@dataclass(frozen=True, slots=True)
class FolderKind:
    """A kind of folder that a command makes.

    A folder is of this kind if each of `markers` (globs) matches something in the folder. `parts` are names of
    subfolders that other commands may write.
    """

    name: str
    markers: tuple[str, ...]
    parts: tuple[str, ...] = ()

    @property
    def manifest(self) -> str:
        """The file that contains the list of files, for kinds that are replaced."""
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
    """Return the kind of a folder; None if no command made the folder."""
    return next((kind for kind in KINDS if all(any(folder.glob(marker)) for marker in kind.markers)), None)


def check_output_path(out: Path, kind: FolderKind | None = None) -> Path:
    """Check the path of a file or a folder to write. The path may already exist.

    Returns:
        The path with links followed.

    Raises:
        ConfigError: the path is not a `kind`, lies in a folder of another kind, is a link to nothing, or cannot be
        written.
        OSError: the name is too long, or the path leads through a file.
    """
    target = real_path(out)
    try:
        os.lstat(target)
    except FileNotFoundError:
        if out.is_symlink():
            raise ConfigError(f"{out}: is a link to {target}, which does not exist. Fix: remove it") from None
    for path in dict.fromkeys((Path(os.path.abspath(out)), target)):
        owned = kind_of_folder(path)
        if owned is not None and owned != kind:
            problem = f"is {owned.name}, not {kind.name}" if kind else f"is there already, and is {owned.name}"
            raise ConfigError(f"{out}: {problem}. Fix: choose another place")
        for folder in path.parents:
            owned = kind_of_folder(folder)
            if owned is not None and path.relative_to(folder).as_posix() not in owned.parts:
                raise ConfigError(f"{out}: lies inside {folder}, which is {owned.name}. Fix: choose another place")
    existing = next(path for path in (target, *target.parents) if path.exists())
    if not os.access(existing, os.W_OK):
        raise ConfigError(f"{out}: {existing} may not be written. Fix: choose another place, or change its rights")
    return target


def refuse_inside(out: Path, *inputs: str | Path | None) -> None:
    """Raise ConfigError if `out` is an input folder or lies in an input folder."""
    for folder in inputs:
        if folder is not None and Path(folder).is_dir() and real_path(out).is_relative_to(real_path(folder)):
            raise ConfigError(f"{out}: lies inside {folder}, which is read. Fix: choose another folder")


def check_target(out: Path, kind: FolderKind | None = None) -> Path:
    """Check, before a command's work, a folder that the command will replace.

    If an earlier command was killed, restore the folder.

    Args:
        out: a path that is absent, empty, or a link to a folder. Any other folder may contain only files in its list.
        kind: the expected kind; None for a folder that is never replaced.

    Returns:
        The folder with links followed.

    Raises:
        ConfigError: as `check_output_path`. Also if `out` is not a folder, is a mount point or the working directory,
        lies in a folder that is not writable, or contains a file that no list names.
        OSError: as `check_output_path`.
    """
    target = check_output_path(out, kind)
    _clear_leftovers(target)
    if target.is_dir():
        _refuse_fixed(out, target)
        _refuse_unlisted(out, target, kind)
    elif os.path.lexists(target):
        raise ConfigError(f"{out}: is not a folder. Fix: choose another one")
    return target


@contextmanager
def replacing_folder(out: Path, kind: FolderKind | None = None) -> Iterator[Path]:
    """Give a hidden folder to fill. At the end it gets a list of its files and replaces `out`. Creates parents.

    An error leaves `out` unchanged.

    Args:
        out: as in `check_target`, which checks the folder before and after the work.
        kind: the kind of the new folder; None for a folder that is never replaced and so gets no list.

    Raises:
        ConfigError, OSError: as `check_target`.
    """
    target = check_target(out, kind)
    target.parent.mkdir(parents=True, exist_ok=True)
    with name_full_disk(out):
        work = Path(mkdtemp(prefix=_WORK, dir=target.parent))
        try:
            fresh = work / "new"
            fresh.mkdir()
            yield fresh
            if kind is not None:  # the list of files is added to an existing manifest
                path = fresh / kind.manifest
                described = json.loads(path.read_bytes()) if path.exists() else {}
                described["files"] = _files(fresh, kind)
                path.write_text(json.dumps(described, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            check_target(out, kind)
            _swap(fresh, target)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _refuse_fixed(out: Path, target: Path) -> None:
    """Raise ConfigError for a folder that cannot be renamed."""
    if os.path.ismount(target):
        raise ConfigError(f"{out}: is a mount point, which cannot be replaced. Fix: name a folder inside it")
    if Path.cwd().is_relative_to(target):
        raise ConfigError(f"{out}: is the working directory. Fix: start the command from another folder")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise ConfigError(f"{out}: {target.parent} may not be written. Fix: choose another folder")


def _refuse_unlisted(out: Path, target: Path, kind: FolderKind | None) -> None:
    names = sorted(os.listdir(target))
    if not names:
        return
    if kind is None:
        raise ConfigError(f"{out}: is there already, and holds {names[0]!r}. Fix: choose another folder")
    if kind.manifest not in names:
        raise ConfigError(f"{out}: holds {names[0]!r}, and is not {kind.name} of ours. Fix: choose another folder")
    if unlisted := sorted({*_files(target, kind)} - {*_read_listed_files(target, kind)}):
        raise ConfigError(f"{out}: holds {unlisted[0]!r}, which is not ours. Fix: {_REMEDY}")


def _read_listed_files(folder: Path, kind: FolderKind) -> list[str]:
    """Return the files that a command listed in the manifest, as paths relative to the folder."""
    path = folder / kind.manifest
    try:
        manifest = read_bounded_json(path, MAX_MANIFEST, remedy=_REMEDY)
    except DataError as error:
        raise ConfigError(str(error)) from error
    listed_files = manifest.get("files") if isinstance(manifest, dict) else None
    if not isinstance(listed_files, list):
        raise ConfigError(f"{path}: lists no files that may be replaced. Fix: {_REMEDY}")
    return list(map(str, listed_files))


def _files(folder: Path, kind: FolderKind) -> list[str]:
    """Return every file below a folder, sorted, without the manifest. Empty folders end in a slash, and links
    in an @.
    """
    names = []
    for parent, folders, files in os.walk(folder, onerror=_raise):
        for path in (Path(parent, name) for name in (*folders, *files)):
            name = path.relative_to(folder).as_posix()
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                names.append(f"{name}@")  # no command writes links
            elif path.is_file():
                names.append(name)
            elif not any(path.iterdir()):
                names.append(f"{name}/")
    return sorted({*names} - {kind.manifest})


def _raise(error: OSError) -> None:
    """Raise an error that `os.walk` would ignore, since `os.walk` skips unreadable folders."""
    raise error


def _old_folder(target: Path) -> Path:
    return target.with_name(f".{target.name}{_WORK}old")


def _swap(fresh: Path, target: Path) -> None:
    """Replace the target by the finished folder with renames."""
    old = _old_folder(target)
    if target.exists():
        target.rename(old)
    try:
        fresh.rename(target)
    except BaseException:
        if old.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _clear_leftovers(target: Path) -> None:
    """Undo changes of a killed command beside the target: restore the old folder, and remove old work folders.

    If the target exists, it is already the new folder, and only the old folder must still be removed.
    """
    old = _old_folder(target)
    if old.is_dir():
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.rename(target)
            log.warning("%s: restored; the command that was replacing it was killed", target)
    for work in target.parent.glob(f"{_WORK}*") if target.parent.is_dir() else ():
        if work.is_dir() and _is_leftover(work):
            shutil.rmtree(work, ignore_errors=True)


def _is_leftover(work: Path) -> bool:
    """Whether no file in a work folder has changed for `LEFTOVER_AGE`."""
    oldest = time.time() - LEFTOVER_AGE
    try:
        return all(os.lstat(path).st_mtime < oldest for path in (work, *work.rglob("*")))
    except FileNotFoundError:  # another command works in the folder
        return False
