"""Atomic writes: a reader sees the old file or the new one, also when a write is killed."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""A disk that is full, a quota that is used up, a file larger than may be."""


@contextmanager
def replacing(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """A hidden file to write beside `path`, which replaces it at the end.

    An error leaves `path` as it was. Several processes may do this at once: the last to end counts. Only a kill leaves
    the hidden file behind.

    Args:
        durable: sync the file before, and the folder after it replaces `path`, against a loss of power.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with naming(path):
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
def naming(path: Path) -> Iterator[None]:
    """Add `path` to the system's error for a full disk, which names no file."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in NO_SPACE:
            error.filename = str(path)
        raise


def sync(path: Path) -> None:
    """Make a file's content, or the names in a folder, survive a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, content: bytes | str) -> None:
    """Write `path` atomically; text as UTF-8."""
    with replacing(path) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)


def place_file(origin: Path, target: Path) -> None:
    """Give a file a second name: a hard link, or a copy on another disk and where there are no hard links.

    Raises FileExistsError where `target` is there already.
    """
    try:
        os.link(origin, target)
    except FileExistsError:
        raise
    except OSError:
        with replacing(target) as partial:
            shutil.copyfile(origin, partial)
