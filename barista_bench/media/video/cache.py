"""Open readers kept between calls: a bounded LRU for each thread of each process.

Readers of the cache are never shared between threads, so none waits for another. A forked child starts with an empty
cache: it never touches a reader of its parent. A thread's readers close when it ends.
"""

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable
from typing import SupportsIndex, TypeAlias

from barista_bench.errors import ConfigError
from barista_bench.media.video.base import FrameReader, Images
from barista_bench.media.video.container import Stamp, stamp_of
from barista_bench.media.video.registry import open_reader

_limit = 4  # readers a thread: one of 1080p video takes 50 to 150 MB

Readers: TypeAlias = OrderedDict[tuple[Stamp, str], FrameReader]


class _Thread:
    """Goes when its thread ends: nothing but the thread's own storage refers to it."""


def _close_all(readers: Readers) -> None:
    for reader in readers.values():
        reader.close()


class _Cache(threading.local):
    """The calling thread's open readers, the one used last at the end."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self.pid = os.getpid()
        self.readers: Readers = OrderedDict()
        self.thread = _Thread()
        # Decoders stand in reference cycles: without this they would stay open until garbage is collected.
        weakref.finalize(self.thread, _close_all, self.readers).atexit = False

    def get(self, path: str | os.PathLike[str], backend: str) -> FrameReader:
        if self.pid != os.getpid():
            self._start()
        key = (stamp_of(path), "pyav" if backend == "auto" else backend)
        reader = self.readers.pop(key, None)
        if reader is None:
            self.shrink(_limit - 1)
            reader = open_reader(path, backend)
        self.readers[key] = reader
        return reader

    def shrink(self, count: int) -> None:
        if self.pid != os.getpid():
            return
        while len(self.readers) > count:
            _, reader = self.readers.popitem(last=False)
            reader.close()


_cache = _Cache()


def read_frames(path: str | os.PathLike[str], indices: Iterable[SupportsIndex], *, backend: str = "auto") -> Images:
    """Frames of a video by index, in the order asked, duplicates allowed: uint8 RGB of shape (n, H, W, 3).

    The opened video is kept for the next call of this thread (see `set_reader_limit`); a file that changed is opened
    anew. Raises VideoError (file, frame, cause, remedy), FrameIndexError for a bad index, ConfigError for a backend.
    """
    return _cache.get(path, backend).read(indices)


def close_readers() -> None:
    """Close the videos that `read_frames` keeps open for the calling thread."""
    _cache.shrink(0)


def set_reader_limit(count: int) -> None:
    """How many videos `read_frames` keeps open for each thread (at least 1, default 4). Raises ConfigError."""
    global _limit
    if count < 1:
        raise ConfigError(f"reader limit {count}: nothing could stay open. Remedy: keep at least 1 video open")
    _limit = count
    _cache.shrink(count)
