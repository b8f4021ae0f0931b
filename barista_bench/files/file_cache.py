"""Cache the results of reading large files for later processes of this user, while a file stays unchanged.

A file counts as unchanged while its inode, size and both times stay equal, as in git's index. If the cache lacks the
result or is damaged, the file is read. If the cache cannot be written, the next process reads the file again.
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
"""Size in bytes from which the cache is faster than reading: about a tenth of a second."""
_SETTLED = 3 * 10**9
"""Nanoseconds for which a file must be unchanged before its results are cached. A change within one tick of a file
system's clock, up to 2 seconds, is not visible."""
_MOST_FILES = 2_000
"""Maximum number of files in the cache. The largest kind takes 17 bytes per frame, and the oldest files are removed
first.
"""


class FileStamp(NamedTuple):
    """The state of a file according to `os.stat`."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    """This field is needed because users can set `mtime_ns` to any time, even in the future."""

    @classmethod
    def of(cls, path: Path | int) -> FileStamp:
        """Return the stamp of a path, or of an open file's descriptor. Raises OSError."""
        status = os.stat(path)
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    @property
    def is_settled(self) -> bool:
        """Whether any later change would change the stamp."""
        return abs(time.time_ns() - self.ctime_ns) >= _SETTLED


def user_cache(name: str) -> Path:
    """Return this package's folder `name` in the user's cache, which is `$XDG_CACHE_HOME` or by default `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "barista_bench" / name


def keep_newest(folder: Path, most: int) -> None:
    """Remove the oldest files of a cache, so that at most `most` files stay."""
    with suppress(FileNotFoundError):  # another process may remove the file first
        by_age = sorted((file.stat().st_mtime, file) for file in folder.iterdir())
        for _, file in by_age[:-most]:
            file.unlink()


def read_cached(path: Path, stamp: FileStamp, name: str, kind: type[T], make: Callable[[], T]) -> T:
    """Return the result of `make` for a file. An earlier result of any process is reused while the file's stamp is
    equal.

    Args:
        stamp: stamp of the file, taken before reading.
        name: name of the content, and of the library that reads the file. For a file below 64 MiB, `make` is always
            called.
        kind: type of the result, checked by msgspec. Arrays are int64 with one dimension, and may be read-only.
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


def _decode(kind: type, value: Any) -> object:  # noqa: ANN401  # the type that msgspec returns
    return Fraction(value) if kind is Fraction else np.frombuffer(value, np.int64)
