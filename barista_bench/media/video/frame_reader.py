"""Reads frames of one open video by index: the base class of all backends, and the reader for folders of images."""

import operator
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from barista_bench.errors import VideoError
from barista_bench.media.video.frame_folder import frame_files, read_image
from barista_bench.media.video.index import VideoIndex, video_index
from barista_bench.media.video.opening import Image, Stamp, stamp_of

Images = NDArray[np.uint8]
Deliver = Callable[[int, Image], None]


class FrameIndexError(VideoError, IndexError):
    """Raised for a frame index that is not an integer or lies outside the video.

    The message gives the file, the index and the range.
    """


class FrameReader(ABC):
    """Frames of one open video by index. Use as a context manager, or call `close`.

    Threads may share a reader, but their calls wait for each other, so one reader per thread is faster. After a fork,
    the child reopens the file automatically. A pickled reader contains only its path, and opens the file again after
    unpickling.
    """

    backend: ClassVar[str]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the video. Raises VideoError with the file, the cause and the remedy."""
        self._lock = threading.Lock()
        self._closed = False
        self._decoders: dict[int, Any] = {}  # by lane; opened when they are first needed
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
        """The (width, height) of the frames in pixels, in display orientation."""
        return self.index.size

    @property
    def fps(self) -> float:
        """Mean frames per second of the video; 0.0 if the video has only one frame, or if its times are not known."""
        return self.index.fps

    @property
    def seconds(self) -> NDArray[np.float64]:
        """Presentation time of each frame, in seconds after the first frame, shape (n,); NaN for a folder of images."""
        return self.index.seconds

    def read(self, indices: Iterable[SupportsIndex]) -> Images:
        """Decode frames in the given order, as uint8 RGB of shape (len(indices), H, W, 3); indices may repeat.

        Raises FrameIndexError for a bad index, and VideoError if a frame cannot be decoded exactly.
        """
        wanted_indices = check_indices(indices, len(self), self.path)
        width, height = self.size
        frames = np.empty((len(wanted_indices), height, width, 3), dtype=np.uint8)
        positions: dict[int, list[int]] = {}
        for position, index in enumerate(wanted_indices):
            positions.setdefault(index, []).append(position)

        def deliver(index: int, image: Image) -> None:
            if image.shape != frames.shape[1:]:
                got = f"{image.shape[1]}x{image.shape[0]} px, not {width}x{height}"
                raise VideoError(
                    f"{self.path}: frame {index} is {got}: the size changes. Fix: re-encode it to one size"
                )
            frames[positions[index]] = image

        with self._lock:
            if self._closed:
                raise VideoError(f"{self.path}: the reader is closed. Fix: open it again with open_reader")
            if positions:
                self._decode(sorted(positions), deliver)
        return frames

    def close(self) -> None:
        """Free the decoder. You may call this twice; reading afterwards raises VideoError."""
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
        """Call `deliver(index, image (H, W, 3))` once for each index; the indices are checked, distinct and sorted."""

    def _release(self) -> None:
        """Free the decoders. The next `_decode` opens new ones."""
        self._decoders.clear()


_live: weakref.WeakSet[FrameReader] = weakref.WeakSet()
_decoders_of_parent: list[dict[int, Any]] = []
"""In a forked child, the decoders of its parent. They are kept, since decord aborts a child that frees them."""


def _after_fork() -> None:
    """In a forked child, start without decoders. Another thread of the parent may have held the locks at the fork."""
    for reader in _live:
        _decoders_of_parent.append(reader._decoders)
        reader._decoders = {}
        reader._lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def check_indices(indices: Iterable[SupportsIndex], count: int, name: str) -> list[int]:
    """Return frame indices as ints in 0..count-1. Raises FrameIndexError with the video and the index."""
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


class FolderReader(FrameReader):
    """Reads a folder of images: frame i is the i-th image. Frames per second and times are not known."""

    backend: ClassVar[str] = "images"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """List the folder and read the headers of its images; see FrameReader."""
        self._files: tuple[Path, ...] = ()
        super().__init__(path)
        self._files = frame_files(self.path)
        if len(self._files) != len(self):
            raise VideoError(f"{self.path}: the folder changed while it was opened. Fix: open it again")

    def _decode(self, wanted: Sequence[int], deliver: Deliver) -> None:
        for index in wanted:
            deliver(index, read_image(self._files[index]))
