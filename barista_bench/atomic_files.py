"""Files that are whole at every moment: whoever reads sees the old one or the new one, also when a write is killed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp


@contextmanager
def replacing(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """A hidden file to write beside `path`, which takes its place at the end.

    An error leaves `path` as it was. Several processes may do this at once: the last to end counts. Only a kill leaves
    the hidden file behind.

    Args:
        durable: put it on disk before it takes its place, and its name after that, against a loss of power.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        if durable:
            sync(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    if durable:
        sync(path.parent)


def sync(path: Path) -> None:
    """Make a file's content, or the names in a folder, survive a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, content: bytes | str) -> None:
    """Write `path` at once; text as UTF-8."""
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


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A hidden folder to fill beside `path`, which takes its place at the end; parents are made.

    An error leaves `path` as it was. Raises OSError where `path` is there by the end and not an empty folder.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        partial.chmod(0o755)
        yield partial
        partial.replace(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
