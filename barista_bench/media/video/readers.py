"""Readers of frames: their interface, opening one by the name of its backend, and those kept open between calls.

Kept readers are never shared between threads, so none waits for another. A forked child starts with none: it never
touches a reader of its parent. A thread's readers close when it ends.
"""

import ctypes
import importlib
import math
import operator
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import ClassVar, Self, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import NDArray

from barista_bench.errors import ConfigError, VideoError, install_command
from barista_bench.files.text_out import first_line
from barista_bench.media.video.index import Image, Stamp, VideoIndex, stamp_of, video_index

Images = NDArray[np.uint8]
Deliver = Callable[[int, Image], None]

BACKENDS = ("auto", "pyav", "torchcodec", "decord")
_MOST_OPEN = 4  # readers a thread: one of 1080p video takes 50 to 150 MB


class FrameIndexError(VideoError, IndexError):
    """A frame index that is not an integer or lies outside the video. Names the file, the index and the range."""


class FrameReader(ABC):
    """Frames of one open video by index. Use as a context manager, or call `close`.

    A reader may be shared between threads (calls wait for each other); one reader per thread is faster.
    After a fork the child opens the file anew by itself. Pickled, a reader is only its path: it is opened
    anew where it arrives.
    """

    backend: ClassVar[str]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the video. Raises VideoError naming the file, the cause and the remedy."""
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._closed = False
        self.stamp: Stamp = stamp_of(path)
        self.index: VideoIndex = video_index(self.stamp)
        _live.add(self)

    @property
    def path(self) -> str:
        """Absolute path of the video."""
        return self.stamp.path

    def __len__(self) -> int:
        return len(self.index.pts)

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) of the frames in pixels, in display orientation."""
        return self.index.size

    @property
    def fps(self) -> float:
        """Frames per second: the mean over the video (0.0 where there is one frame only, or no time is known)."""
        return self.index.fps

    @property
    def seconds(self) -> NDArray[np.float64]:
        """Presentation time of each frame in seconds after the first one, shape (n,); NaN in a folder of images."""
        return self.index.seconds

    def read(self, indices: Iterable[SupportsIndex]) -> Images:
        """Decode frames, in the order asked, duplicates allowed: uint8 RGB of shape (len(indices), H, W, 3).

        Raises FrameIndexError for a bad index, and VideoError where a frame cannot be decoded exactly.
        """
        asked = check_indices(indices, len(self), self.path)
        width, height = self.size
        frames = np.empty((len(asked), height, width, 3), dtype=np.uint8)
        positions: dict[int, list[int]] = {}
        for position, index in enumerate(asked):
            positions.setdefault(index, []).append(position)

        def deliver(index: int, image: Image) -> None:
            if image.shape != frames.shape[1:]:
                got = f"{image.shape[1]}x{image.shape[0]} px, not {width}x{height}"
                raise VideoError(
                    f"{self.path}: frame {index} is {got}: the size changes. Remedy: re-encode it to one size"
                )
            frames[positions[index]] = image

        with self._lock:
            if self._closed:
                raise VideoError(f"{self.path}: the reader is closed. Remedy: open it again with open_reader")
            if positions:
                self._decode(sorted(positions), deliver)
        return frames

    def close(self) -> None:
        """Free the decoder. Closing twice is allowed; reading afterwards raises VideoError."""
        if self._pid != os.getpid():  # a forked child must not touch its parent's decoder
            return
        with self._lock:
            self._closed = True
            self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (self.path,)

    @abstractmethod
    def _decode(self, wanted: Sequence[int], deliver: Deliver) -> None:
        """Call `deliver(index, image (H, W, 3))` once for each of the sorted, distinct, checked indices."""

    def _release(self) -> None:  # noqa: B027  (not every reader keeps a decoder)
        """Free the decoder, if one is open. The next `_decode` opens another."""

    def _forget(self) -> None:  # noqa: B027
        """In a forked child: drop the parent's decoder without freeing it (see `_after_fork`)."""


_live: weakref.WeakSet[FrameReader] = weakref.WeakSet()


def _after_fork() -> None:
    """In a forked child: make the parent's decoders immortal, since freeing them waits for threads that are not here.

    Locks are renewed, since another thread of the parent may have held them.
    """
    for reader in _live:
        reader._lock = threading.Lock()
        for part in vars(reader).values():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(part))
        reader._forget()
        reader._pid = os.getpid()


os.register_at_fork(after_in_child=_after_fork)


def check_indices(indices: Iterable[SupportsIndex], count: int, name: str) -> list[int]:
    """Frame indices as ints, each in 0..count-1. Raises FrameIndexError naming the video and the index."""
    checked: list[int] = []
    for index in indices:
        try:
            if isinstance(index, bool | np.bool_):
                raise TypeError
            number = operator.index(index)
        except TypeError as error:
            text = f"{name}: frame index {index!r} is not an integer; give frame numbers, not times"
            raise FrameIndexError(text) from error
        if not 0 <= number < count:
            text = f"{name}: no frame {number}: the video has {count} frames (0 to {count - 1})"
            raise FrameIndexError(f"{text}; check that the annotations belong to this video")
        checked.append(number)
    return checked


def open_reader(path: str | os.PathLike[str], backend: str = "auto") -> FrameReader:
    """Open a video for reading frames by index. `auto` is `pyav`; a folder of images needs no backend.

    Raises VideoError where the file cannot be used, ConfigError for an unknown backend or one not installed.
    """
    kind = reader_class(backend)
    if os.path.isdir(path):
        from barista_bench.media.video.frame_folder import FolderReader

        return FolderReader(path)
    return kind(path)


def reader_class(backend: str) -> type[FrameReader]:
    """The reader of a backend; checks that its library can be imported. Raises ConfigError."""
    if backend in ("auto", "pyav"):
        from barista_bench.media.video.pyav_reader import PyavReader

        return PyavReader
    if backend not in BACKENDS:
        raise ConfigError(f"video backend {backend!r} is unknown. Remedy: choose one of {', '.join(BACKENDS)}")
    from barista_bench.media.video import other_readers

    library, extra = ("torchcodec.decoders", "torchcodec") if backend == "torchcodec" else ("decord", "run")
    try:
        importlib.import_module(library)
    except (ImportError, OSError, RuntimeError) as error:  # RuntimeError: torchcodec without FFmpeg's libraries
        raise ConfigError(
            f"video backend {backend!r} cannot be imported: {first_line(error)}. "
            f"Remedy: {install_command(extra)}, or use backend='pyav'"
        ) from error
    return other_readers.TorchcodecReader if backend == "torchcodec" else other_readers.DecordReader


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
