"""Selects readers by the name of the backend, defines the decord reader, and caches open readers.

Threads do not share cached readers, so no thread waits for another. A forked child starts without readers, and never
touches its parent's readers. When a thread ends, its readers are closed.
"""

import importlib
import math
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import NDArray

from barista_bench.errors import ConfigError, VideoError, install_command
from barista_bench.files.text_out import first_line
from barista_bench.media.video.frame_folder import REMUX
from barista_bench.media.video.frame_reader import Deliver, FolderReader, FrameReader, Images
from barista_bench.media.video.index import video_index
from barista_bench.media.video.opening import Stamp, stamp_of
from barista_bench.media.video.pyav_reader import PyavReader

if TYPE_CHECKING:
    import decord

_ADVICE = f"use backend='pyav', or {REMUX}"
BACKENDS = ("auto", "pyav", "decord")
_MOST_OPEN = 4  # readers per thread; a reader of 1080p video takes 50 to 150 MB


class DecordReader(FrameReader):
    """Reads frames through decord, after the file's index has shown that decord returns the right frames.

    The file is opened on first use. We measured that decord 0.6 returns wrong frames after an edit list, for open GOPs,
    and for streams without exact seeking (MPEG-TS). It ignores mirrored display, and rotates only MP4. Such files are
    refused with a VideoError.
    """

    backend: ClassVar[str] = "decord"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the video. Raises VideoError for a file where decord returns wrong frames; see FrameReader."""
        super().__init__(path)
        causes = {
            "an edit list": self.index.edited,
            "no exact seeking in its container": not self.index.seekable,
            "a mirrored display matrix": self.index.orientation.mirrored,
            "open GOPs": self.index.open_gop,
            "a rotation in another container than MP4": self.index.orientation.turns
            and not self.index.container.startswith("mov"),
        }
        for cause, holds in causes.items():
            if holds:
                text = f"{self.path}: decord returns wrong frames on a file with {cause}"
                raise VideoError(f"{text}. Fix: {_ADVICE}")

    def _decode(self, wanted: Sequence[int], deliver: Deliver) -> None:
        import decord

        try:
            if not self._decoders:
                self._decoders[0] = self._open()
            images = self._decoders[0].get_batch(list(wanted)).asnumpy()
        except (decord.DECORDError, IndexError) as error:
            raise self._decode_error(wanted, error) from error
        for index, image in zip(wanted, images, strict=True):
            deliver(index, image)

    def _open(self) -> "decord.VideoReader":
        import decord

        decord.logging.set_level(decord.logging.QUIET)
        try:
            decoder = decord.VideoReader(self.path)
        except (decord.DECORDError, RuntimeError) as error:
            raise self._decode_error([0], error) from error
        if len(decoder) != len(self):
            counts = f"decord sees {len(decoder)} frames, the file has {len(self)}"
            raise VideoError(f"{self.path}: {counts}. Fix: {_ADVICE}")
        return decoder

    def _decode_error(self, wanted: Sequence[int], error: Exception) -> VideoError:
        frames = ", ".join(str(i) for i in wanted[:5]) + (", ..." if len(wanted) > 5 else "")
        return VideoError(f"{self.path}: decord cannot decode frames {frames} ({first_line(error)}). Fix: {_ADVICE}")


def open_reader(path: str | os.PathLike[str], backend: str = "auto") -> FrameReader:
    """Open a video for reading frames by index. `auto` means `pyav`; a folder of images needs no backend.

    Raises VideoError if the file cannot be used, and ConfigError for a backend that is unknown or not installed.
    """
    kind = reader_class(backend)
    if os.path.isdir(path):
        return FolderReader(path)
    return kind(path)


def reader_class(backend: str) -> type[FrameReader]:
    """Return the reader class of a backend, after checking that its library can be imported. Raises ConfigError."""
    if backend in ("auto", "pyav"):
        return PyavReader
    if backend not in BACKENDS:
        raise ConfigError(f"video backend {backend!r} is unknown. Fix: choose one of {', '.join(BACKENDS)}")
    try:
        importlib.import_module("decord")
    except (ImportError, OSError) as error:
        raise ConfigError(
            f"video backend {backend!r} cannot be imported: {first_line(error)}. "
            f"Fix: {install_command('run')}, or use backend='pyav'"
        ) from error
    return DecordReader


@dataclass(frozen=True, slots=True, eq=False)
class VideoFacts:
    """Facts about one video, or one folder of frames.

    Args:
        path: absolute path, for error messages.
        frame_count: number of frames, n.
        fps: mean frames per second; 0.0 for a single frame, or if times are not known (a folder of images).
        width: width of the displayed frames in pixels.
        height: height of the displayed frames in pixels.
        seconds: presentation time of each frame in seconds after the first frame, shape (n,); NaN if times are not
            known.
    """

    path: str
    frame_count: int
    fps: float
    width: int
    height: int
    seconds: NDArray[np.float64]

    @property
    def has_times(self) -> bool:
        """True if the times of the frames are known."""
        return not np.isnan(self.seconds[0])

    @property
    def duration(self) -> float:
        """Seconds from the first frame to the last; NaN if times are not known."""
        return float(self.seconds[-1])


def video_facts(path: str | os.PathLike[str], *, fps: float | None = None) -> VideoFacts:
    """Return facts about a video file or a folder of frames; only packets or image headers are read.

    The readers use the same index. Indices of recently used videos are cached in this process.

    Args:
        fps: frames per second of a folder of images, if the annotations give the rate. The time of frame i is then i /
            fps. A video file has its own times, so `fps` is an error there.

    Raises:
        VideoError: the video cannot be used; the message names the file.
        ConfigError: `fps` is not a positive number, or is given for a video file.
    """
    stamp = stamp_of(path)
    index = video_index(stamp)
    seconds, rate = index.seconds, index.fps
    if fps is not None:
        if not (math.isfinite(fps) and fps > 0):
            raise ConfigError(f"{stamp.path}: fps is {fps}. Fix: give a positive number")
        if index.time_base:
            raise ConfigError(f"{stamp.path}: a video file contains its times. Fix: leave out fps")
        seconds, rate = np.arange(len(index.pts)) / fps, float(fps)
    seconds.setflags(write=False)
    width, height = index.size
    return VideoFacts(stamp.path, len(index.pts), rate, width, height, seconds)


Readers: TypeAlias = OrderedDict[tuple[Stamp, str], FrameReader]


class _Thread:
    """A marker object that is freed when its thread ends, because only the thread's storage refers to it."""


def _close_all(readers: Readers) -> None:
    for reader in readers.values():
        reader.close()


class _Cache(threading.local):
    """The open readers of the calling thread, the most recently used last."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.readers: Readers = OrderedDict()
        self.thread = _Thread()
        # Decoders are part of reference cycles: otherwise they would stay open until garbage collection.
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
    """Read frames of a video in the order of `indices`, as uint8 RGB of shape (n, H, W, 3); indices may repeat.

    The open video is cached for the next calls of this thread; a changed file is opened again. Raises VideoError (with
    file, frame, cause and remedy), FrameIndexError for a bad index, and ConfigError for a bad backend.
    """
    return _cache.get(path, backend).read(indices)


def close_readers() -> None:
    """Close the videos that `read_frames` has cached for the calling thread."""
    _cache.shrink(0)
