"""What was read from a large file, kept in the user's cache for processes to come while the file stays the same.

A file counts as the same while its inode, its size and both of its times are, as for git's index. Where the cache
holds nothing or is damaged the file is read; where it cannot be written the next process reads it again.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from barista_bench.files.writing import write_whole
from barista_bench.version import __version__

T = TypeVar("T")

LARGE = 64 * 2**20
"""Bytes that take longer to read than to look up: about a tenth of a second."""
_SETTLED = 3 * 10**9
"""Nanoseconds for which a file must have lain still for anything to be kept: within a tick of a file system's clock (2
seconds on some) a change leaves no trace."""
_MOST_FILES = 2_000
"""Kept, 17 bytes a frame for the largest kind; those made longest ago go first."""


class FileStamp(NamedTuple):
    """A file as it lies, by `os.stat`."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    """`mtime_ns` can be set at will, also in the future."""

    @classmethod
    def of(cls, path: Path | int) -> FileStamp:
        """The stamp of a path, or of an open file's descriptor. Raises OSError."""
        status = os.stat(path)
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    @property
    def is_settled(self) -> bool:
        """Whether a change from now on would change the stamp."""
        return abs(time.time_ns() - self.ctime_ns) >= _SETTLED


def user_cache(name: str) -> Path:
    """The folder `name` of this package in the user's cache: below `$XDG_CACHE_HOME`, by default `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "barista_bench" / name


def keep_newest(folder: Path, most: int) -> None:
    """Remove the files of a cache that were made longest ago."""
    with suppress(FileNotFoundError):  # another process does the same
        by_age = sorted((file.stat().st_mtime, file) for file in folder.iterdir())
        for _, file in by_age[:-most]:
            file.unlink()


def read_cached(path: Path, stamp: FileStamp, name: str, kind: type[T], make: Callable[[], T]) -> T:
    """What `make` reads from a file, now or earlier, in this process or another, while the file has one stamp.

    Args:
        stamp: of the file, taken before it is read.
        name: of what is read, and of the library that reads it. Of a file below 64 MiB it is always made.
        kind: its type, which msgspec checks; arrays are of int64 in one dimension, and may be read-only.
    """
    if stamp.size < LARGE or not stamp.is_settled:
        return make()
    try:
        folder = user_cache("kept")
    except RuntimeError:  # a user without a home
        return make()
    file = folder / f"{hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:32]}.{name}"
    with suppress(OSError, msgspec.MsgspecError, ValueError, ArithmeticError):
        stored_type = tuple[str, FileStamp, kind]  # type: ignore[valid-type]  # known when it runs
        version, recorded, value = msgspec.msgpack.decode(file.read_bytes(), type=stored_type, dec_hook=_decode)
        if (version, recorded) == (__version__, stamp):
            return value
    value = make()
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(file, msgspec.msgpack.encode((__version__, stamp, value), enc_hook=_encode))
        keep_newest(folder, _MOST_FILES)
    return value


def _encode(value: object) -> object:
    if not isinstance(value, np.ndarray):
        return str(value)
    assert (value.ndim, value.dtype) == (1, np.int64), "it would come back as another array"
    return value.tobytes()


def _decode(kind: type, value: Any) -> object:  # noqa: ANN401  # as msgspec says it
    return Fraction(value) if kind is Fraction else np.frombuffer(value, np.int64)
