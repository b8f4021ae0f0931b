"""Takes a person from a video to a score without a terminal: commands, their jobs, and videos dropped on the page."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec
from anyio import to_thread

from barista_bench.errors import DataError, VideoError
from barista_bench.files.paths import confine, name_problem
from barista_bench.files.writing import atomic_write
from barista_bench.media.video import open_reader
from barista_bench.media.video.opening import VIDEO_SUFFIXES
from barista_bench.studio.commands import StudioCommands, path_below
from barista_bench.studio.jobs import Jobs
from barista_bench.studio.workspace import Json, View, find_folders, sent_as

MAX_VIDEO = 64 * 2**30
"""Limit of bytes for a dropped video."""
_LEFT_FREE = 2**30
"""Bytes that must stay free on the disk."""
_CHECK_EVERY = 2**26


class StartedCommand(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A completed form: texts by the names of the fields."""

    step: str
    values: dict[str, str]


class CancelledJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    job: int


class OpenedFolder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A path in the studio's folder."""

    path: str


class CommandRoutes(View):
    """Requests to run commands in the studio's folder; the folder stays the same when other folders are opened.

    Args:
        reopen: function that opens one more folder in the studio.
    """

    def __init__(self, commands: StudioCommands, jobs: Jobs, reopen: Callable[[Path], None]) -> None:
        self._commands, self._jobs, self._reopen = commands, jobs, reopen
        self.reads = {
            "/api/commands": lambda query: self._forms(),
            "/api/command": self._preview,
            "/api/jobs": lambda query: {"jobs": jobs.rows()},
        }
        self.writes = {
            "/api/jobs/start": lambda body: self._start(sent_as(StartedCommand, body)),
            "/api/jobs/cancel": lambda body: self._cancel(sent_as(CancelledJob, body)),
            "/api/open": lambda body: self._open(sent_as(OpenedFolder, body)),
        }

    def _forms(self) -> Json:
        folder = self._commands.folder
        openable = [{"kind": kind, "path": path} for kind, path in find_folders(folder)]
        return {"folder": str(folder), "steps": self._commands.forms(), "found": openable}

    def _preview(self, query: Mapping[str, str]) -> Json:
        values = {name: value for name, value in query.items() if name != "step"}
        try:
            return {"line": self._commands.call(query["step"], values).line, "problem": ""}
        except DataError as error:
            return {"line": "", "problem": str(error)}

    def _start(self, sent: StartedCommand) -> Json:
        call = self._commands.call(sent.step, sent.values)
        job = self._jobs.start(call.step.title, call.line, call.arguments, call.makes)
        return {"job": job.number}

    def _cancel(self, sent: CancelledJob) -> Json:
        self._jobs.cancel(sent.job)
        return {}

    def _open(self, sent: OpenedFolder) -> Json:
        folder = self._commands.folder
        path = folder if sent.path == "." else confine(folder, sent.path)
        if not path.exists():
            raise DataError(f"there is no {sent.path!r} in {folder}. Fix: load the page again")
        self._reopen(path)
        return {}

    async def take_video(self, query: Mapping[str, str], parts: AsyncIterator[bytes]) -> Json:
        """Write an uploaded video into the folder, part by part; an unreadable video is removed.

        Raises DataError if the name or the size is not allowed, the file already exists, or the upload is not a video.
        """
        target = self._target_path(query["folder"], query["name"])
        await to_thread.run_sync(lambda: target.parent.mkdir(parents=True, exist_ok=True))
        with atomic_write(target) as partial:
            with partial.open("wb") as file:
                await _write_parts(file, parts, target)
            await to_thread.run_sync(_check_video, partial, target)
        return {"path": target.relative_to(self._commands.folder).as_posix()}

    def _target_path(self, folder: str, name: str) -> Path:
        problem = name_problem(name)
        if problem is None and (name.startswith((".", "-")) or Path(name).suffix.casefold() not in VIDEO_SUFFIXES):
            problem = f"it is no name of a video ({', '.join(sorted(VIDEO_SUFFIXES))})"
        if problem is not None:
            raise DataError(f"{name[:80]!r}: {problem}. Fix: rename the file")
        if folder.startswith("-"):
            raise DataError(f"{folder[:80]!r}: begins with a dash. Fix: give another name")
        target = path_below(self._commands.folder, folder, name)
        if target.exists():
            raise DataError(f"{folder}/{name}: already exists. Fix: rename the file, or take another folder")
        return target


async def _write_parts(file: BinaryIO, parts: AsyncIterator[bytes], target: Path) -> None:
    """Write the parts. Raises DataError if the video is too large or would fill the disk."""
    size = checked = 0
    async for part in parts:
        size += len(part)
        if size > MAX_VIDEO:
            raise DataError(f"{target.name}: has more than {MAX_VIDEO // 2**30} GiB. Fix: cut it")
        if size >= checked:
            checked = size + _CHECK_EVERY
            if shutil.disk_usage(target.parent).free < _LEFT_FREE:
                raise DataError(f"{target.name}: the disk is nearly full. Fix: free some disk space")
        await to_thread.run_sync(file.write, part)


def _check_video(partial: Path, target: Path) -> None:
    if partial.stat().st_size == 0:
        raise DataError(f"{target.name}: the file is empty. Fix: drop it again")
    try:
        with open_reader(partial) as frames:
            frames.read([0])
    except VideoError as error:
        raise DataError(str(error).replace(str(partial), target.name)) from error
