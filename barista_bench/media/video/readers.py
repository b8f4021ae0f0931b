"""Opening a reader by the name of its backend, and readers that are kept open between calls.

Kept readers are never shared between threads, so none waits for another. A forked child starts with none: it never
touches a reader of its parent. A thread's readers close when it ends.
"""

import importlib
import math
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import NDArray

from barista_bench.errors import ConfigError, install_command
from barista_bench.files.text_out import first_line
from barista_bench.media.video.frame_reader import FolderReader, FrameReader, Images
from barista_bench.media.video.index import Stamp, stamp_of, video_index
from barista_bench.media.video.other_readers import DecordReader, TorchcodecReader
from barista_bench.media.video.pyav_reader import PyavReader

BACKENDS = ("auto", "pyav", "torchcodec", "decord")
_MOST_OPEN = 4  # readers a thread: one of 1080p video takes 50 to 150 MB


def open_reader(path: str | os.PathLike[str], backend: str = "auto") -> FrameReader:
    """Open a video for reading frames by index. `auto` is `pyav`; a folder of images needs no backend.

    Raises VideoError where the file cannot be used, ConfigError for an unknown backend or one not installed.
    """
    kind = reader_class(backend)
    if os.path.isdir(path):
        return FolderReader(path)
    return kind(path)


def reader_class(backend: str) -> type[FrameReader]:
    """The reader of a backend; checks that its library can be imported. Raises ConfigError."""
    if backend in ("auto", "pyav"):
        return PyavReader
    if backend not in BACKENDS:
        raise ConfigError(f"video backend {backend!r} is unknown. Remedy: choose one of {', '.join(BACKENDS)}")
    library, extra = ("torchcodec.decoders", "torchcodec") if backend == "torchcodec" else ("decord", "run")
    try:
        importlib.import_module(library)
    except (ImportError, OSError, RuntimeError) as error:  # RuntimeError: torchcodec without FFmpeg's libraries
        raise ConfigError(
            f"video backend {backend!r} cannot be imported: {first_line(error)}. "
            f"Remedy: {install_command(extra)}, or use backend='pyav'"
        ) from error
    return TorchcodecReader if backend == "torchcodec" else DecordReader


@dataclass(frozen=True, slots=True, eq=False)
class VideoFacts:
    """One video, or one folder of frames.

    Args:
        path: absolute; for error messages.
        frame_count: n.
        fps: mean frames a second; 0.0 where no time is known (a folder of images), or where there is one frame.
        width: of the displayed frames, in pixels.
        height: likewise.
        seconds: (n,) presentation time of each frame after the first one; NaN where no time is known.
    """

    path: str
    frame_count: int
    fps: float
    width: int
    height: int
    seconds: NDArray[np.float64]

    @property
    def timed(self) -> bool:
        """Whether the times of the frames are known."""
        return not np.isnan(self.seconds[0])

    @property
    def duration(self) -> float:
        """Seconds from the first frame to the last; NaN where no time is known."""
        return float(self.seconds[-1])


def video_facts(path: str | os.PathLike[str], *, fps: float | None = None) -> VideoFacts:
    """Facts of a video file or of a folder of frames. Reads packets or image headers, decodes no pixel.

    The index behind it is kept for the videos used last in this process, and is the readers' own.

    Args:
        fps: frames a second of a folder of images, where the annotations give it; frame i then stands at i / fps.
            A video file knows its own times, and refuses it.

    Raises:
        VideoError: the video cannot be used; names the file.
        ConfigError: `fps` is not a positive number, or given for a video file.
    """
    stamp = stamp_of(path)
    index = video_index(stamp)
    seconds, known = index.seconds, index.fps
    if fps is not None:
        if not (math.isfinite(fps) and fps > 0):
            raise ConfigError(f"{stamp.path}: fps is {fps}. Remedy: give a positive number")
        if index.time_base:
            raise ConfigError(f"{stamp.path}: a video file has times of its own. Remedy: leave fps out")
        seconds, known = np.arange(len(index.pts)) / fps, float(fps)
    seconds.setflags(write=False)
    width, height = index.size
    return VideoFacts(stamp.path, len(index.pts), known, width, height, seconds)


Readers: TypeAlias = OrderedDict[tuple[Stamp, str], FrameReader]


class _Thread:
    """Goes when its thread ends: nothing but the thread's own storage refers to it."""


def _close_all(readers: Readers) -> None:
    for reader in readers.values():
        reader.close()


class _Cache(threading.local):
    """The calling thread's open readers, the one used last at the end."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.readers: Readers = OrderedDict()
        self.thread = _Thread()
        # Decoders stand in reference cycles: without this they would stay open until garbage is collected.
        weakref.finalize(self.thread, _close_all, self.readers).atexit = False

    def get(self, path: str | os.PathLike[str], backend: str) -> FrameReader:
        key = (stamp_of(path), "pyav" if backend == "auto" else backend)
        reader = self.readers.pop(key, None)
        if reader is None:
            self.shrink(_MOST_OPEN - 1)
            reader = open_reader(path, backend)
        self.readers[key] = reader
        return reader

    def shrink(self, count: int) -> None:
        while len(self.readers) > count:
            _, reader = self.readers.popitem(last=False)
            reader.close()


_cache = _Cache()
os.register_at_fork(after_in_child=_cache.start)


def read_frames(path: str | os.PathLike[str], indices: Iterable[SupportsIndex], *, backend: str = "auto") -> Images:
    """Frames of a video by index, in the order asked, duplicates allowed: uint8 RGB of shape (n, H, W, 3).

    The opened video is kept for the next calls of this thread; a file that changed is opened
    anew. Raises VideoError (file, frame, cause, remedy), FrameIndexError for a bad index, ConfigError for a backend.
    """
    return _cache.get(path, backend).read(indices)


def close_readers() -> None:
    """Close the videos that `read_frames` keeps open for the calling thread."""
    _cache.shrink(0)
