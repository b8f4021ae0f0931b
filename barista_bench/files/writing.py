"""Write files atomically: a reader sees the old file or the complete new file, even if a write is killed."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from barista_bench.files.text_out import NO_SPACE

_LONGEST_WAIT = 10
"""Seconds to wait for another process that changes the file. A change takes a fraction of a second."""


@contextmanager
def atomic_write(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """Give a hidden file beside `path` to write. At the end, this file replaces `path`.

    An error leaves `path` unchanged. Several processes or threads may write at once, and the last to finish wins. Only
    a kill leaves the hidden file behind.

    Args:
        durable: sync the file before it replaces `path`, and the folder afterwards, so that the file survives a loss of
            power.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.partial")
    with name_full_disk(path):
        try:
            yield partial
            if durable:
                sync(partial)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
        if durable:
            sync(path.parent)


@contextmanager
def name_full_disk(path: Path) -> Iterator[None]:
    """Add `path` to the system's error for a full disk, since that error names no file."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in NO_SPACE:
            error.filename = str(path)
        raise


@contextmanager
def locked_for_update(path: Path) -> Iterator[Path]:
    """Lock the file that `path` leads to, with links followed, for reading and replacing. Other processes must wait.

    The lock is a second file beside it, which stays behind. An unlocked lock file has no effect. Raises OSError if the
    lock cannot be made, or if another process holds it for 10 seconds.
    """
    target = real_path(path)
    with FileLock(f"{target}.lock", timeout=_LONGEST_WAIT):
        yield target


def sync(path: Path) -> None:
    """Make a file's content, or the names in a folder, survive a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, content: bytes | str) -> None:
    """Write `path` atomically. Text is written as UTF-8."""
    with atomic_write(path) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)


def place_file(origin: Path, target: Path) -> None:
    """Give a file a second name: a hard link, or a copy if hard links are not possible.

    Raises FileExistsError if `target` already exists.
    """
    try:
        os.link(origin, target)
    except FileExistsError:
        raise
    except OSError:
        with atomic_write(target) as partial:
            shutil.copyfile(origin, partial)


def real_path(path: str | Path) -> Path:
    """Return the path with links followed. Unlike in `Path.resolve`, a circle of links is no error."""
    return Path(os.path.realpath(path))
