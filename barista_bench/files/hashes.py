"""Compute SHA-256 hashes of files. An unchanged file is read only once."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from threading import Lock

from barista_bench.errors import DataError
from barista_bench.files.file_cache import FileStamp, read_cached

_HASHING = tuple(Lock() for _ in range(64))


def read_sha256(path: Path) -> str:
    """Read a file and return the SHA-256 of its bytes. Raises DataError if the file cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _as_data_error(path, error) from error


def file_sha256(path: Path, *, across_processes: bool = False) -> str:
    """Return the SHA-256 of a file's bytes.

    An unchanged file is read only once, even if several threads ask at the same time.

    Args:
        across_processes: reuse a large file's hash in later processes of this user (see `read_cached`). Do not use it
            to prove that no byte is lost, since a failing disk can lose bytes without changing a file's times.

    Raises:
        DataError: the file cannot be read.
    """
    with _HASHING[hash(path) % len(_HASHING)]:
        try:
            stamp = FileStamp.of(path)
        except OSError as error:
            raise _as_data_error(path, error) from error
        return _sha256_of(path, stamp, across_processes) if stamp.is_settled else read_sha256(path)


@lru_cache(maxsize=4096)
def _sha256_of(path: Path, stamp: FileStamp, across_processes: bool) -> str:
    return read_cached(path, stamp, "sha256", str, lambda: read_sha256(path)) if across_processes else read_sha256(path)


def _as_data_error(path: Path, error: OSError) -> DataError:
    return DataError(f"{path}: cannot be read ({error.strerror}). Fix: put the file back")
