"""Writes videos that a person drops on the page into the studio's folder."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import BinaryIO

from anyio import to_thread

from barista_bench.errors import DataError, VideoError
from barista_bench.files.paths import name_problem
from barista_bench.files.writing import atomic_write
from barista_bench.media.video import open_reader
from barista_bench.media.video.opening import VIDEO_SUFFIXES
from barista_bench.studio.commands import path_below
from barista_bench.studio.workspace import Json

MAX_VIDEO = 64 * 2**30
"""Limit of bytes for a dropped video."""
_LEFT_FREE = 2**30
"""Bytes that must stay free on the disk."""
_CHECK_EVERY = 2**26


async def take_video(root: Path, query: Mapping[str, str], parts: AsyncIterator[bytes]) -> Json:
    """Write an uploaded video below `root`, the studio's folder, part by part; an unreadable video is removed.

    Raises DataError if the name or the size is not allowed, the file already exists, or the upload is not a video.
    """
    target = _target_path(root, query["folder"], query["name"])
    await to_thread.run_sync(lambda: target.parent.mkdir(parents=True, exist_ok=True))
    with atomic_write(target) as partial:
        with partial.open("wb") as file:
            await _write_parts(file, parts, target)
        await to_thread.run_sync(_check_video, partial, target)
    return {"path": target.relative_to(root).as_posix()}


def _target_path(root: Path, folder: str, name: str) -> Path:
    problem = name_problem(name)
    if problem is None and (name.startswith((".", "-")) or Path(name).suffix.casefold() not in VIDEO_SUFFIXES):
        problem = f"it is no name of a video ({', '.join(sorted(VIDEO_SUFFIXES))})"
    if problem is not None:
        raise DataError(f"{name[:80]!r}: {problem}. Fix: rename the file")
    if folder.startswith("-"):
        raise DataError(f"{folder[:80]!r}: begins with a dash. Fix: give another name")
    target = path_below(root, folder, name)
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
