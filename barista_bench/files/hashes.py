"""SHA-256 of files, which are read once as long as they stay as they are.

A file counts as unchanged while its inode, its size and both of its times are the same, as for git's index.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import msgspec

from barista_bench.errors import DataError
from barista_bench.files.writing import user_cache, write_whole

_HASHING = tuple(Lock() for _ in range(64))
_SETTLED = 3 * 10**9
"""Nanoseconds for which a file must have lain still for its hash to be kept: within a tick of a file system's clock (2
seconds on some) a change leaves no trace."""
_LARGE = 64 * 2**20
"""Bytes that take longer to read than to look up on disk: about a tenth of a second."""


class _Stamp(NamedTuple):
    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    """`mtime_ns` can be set at will, also in the future."""


class _HashEntry(msgspec.Struct):
    stamp: _Stamp
    sha256: str


def read_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, read now. Raises DataError for a file that cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from error


def file_sha256(path: Path, *, across_processes: bool = False) -> str:
    """SHA-256 of a file's bytes, read once while it stays the same, also by threads that ask at once.

    Args:
        across_processes: keep the hash of a file of 64 MiB and more for later processes of this user as well, in
            `user_cache("hashes")`. Not for what is handed on: bytes that a disk loses leave a file's times alone.

    Raises:
        DataError: the file cannot be read.
    """
    with _HASHING[hash(path) % len(_HASHING)]:
        try:
            status = path.stat()
        except OSError as error:
            raise _unreadable(path, error) from error
        stamp = _Stamp(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if abs(time.time_ns() - stamp.ctime_ns) < _SETTLED:
            return read_sha256(path)
        return _kept_sha256(path, stamp, across_processes and stamp.size >= _LARGE)


@lru_cache(maxsize=4096)
def _kept_sha256(path: Path, stamp: _Stamp, on_disk: bool) -> str:
    if not on_disk:
        return read_sha256(path)
    kept = user_cache("hashes") / f"{hashlib.sha256(os.fsencode(path.absolute())).hexdigest()}.json"
    with suppress(OSError, msgspec.MsgspecError):  # none there, or none of ours: the file itself says it
        entry = msgspec.json.decode(kept.read_bytes(), type=_HashEntry)
        if entry.stamp == stamp:
            return entry.sha256
    entry = _HashEntry(stamp, read_sha256(path))
    with suppress(OSError):  # a full disk or a home that cannot be written costs the next process time, nothing else
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_whole(kept, msgspec.json.encode(entry))
    return entry.sha256


def _unreadable(path: Path, error: OSError) -> DataError:
    return DataError(f"{path}: cannot be read ({error.strerror}). Remedy: put the file back")
