"""Opening a video: readers by backend name, and the reader of folders of images."""

import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from barista_bench.errors import ConfigError, VideoError
from barista_bench.files.text_out import first_line
from barista_bench.media.video.base import Deliver, FrameReader
from barista_bench.media.video.frame_folder import frame_files, read_image
from barista_bench.media.video.pyav_reader import PyavReader

BACKENDS = ("auto", "pyav", "torchcodec", "decord")


class FolderReader(FrameReader):
    """Frame i is the folder's i-th image (see `frame_folder`). Frames a second and times are not known."""

    backend: ClassVar[str] = "images"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """See FrameReader. Lists the folder and reads the headers of its images."""
        self._files: tuple[Path, ...] = ()
        super().__init__(path)
        self._files = frame_files(self.path)
        if len(self._files) != len(self):
            raise VideoError(f"{self.path}: the folder changed while it was opened. Remedy: open it again")

    def _decode(self, wanted: Sequence[int], deliver: Deliver) -> None:
        for index in wanted:
            deliver(index, read_image(self._files[index]))


def open_reader(path: str | os.PathLike[str], backend: str = "auto") -> FrameReader:
    """Open a video for reading frames by index. `auto` is `pyav`; a folder of images needs no backend.

    Raises VideoError where the file cannot be used, ConfigError for an unknown backend or one not installed.
    """
    kind = reader_class(backend)
    return FolderReader(path) if os.path.isdir(path) else kind(path)


def reader_class(backend: str) -> type[FrameReader]:
    """The reader of a backend; checks that its library can be imported. Raises ConfigError."""
    if backend in ("auto", "pyav"):
        return PyavReader
    if backend not in BACKENDS:
        raise ConfigError(f"video backend {backend!r} is unknown. Remedy: choose one of {', '.join(BACKENDS)}")
    from barista_bench.media.video import other_readers

    try:
        importlib.import_module("torchcodec.decoders" if backend == "torchcodec" else backend)
    except (ImportError, OSError, RuntimeError) as error:  # RuntimeError: torchcodec without FFmpeg's libraries
        raise ConfigError(
            f"video backend {backend!r} cannot be imported: {first_line(error)}. "
            f"Remedy: pip install barista_bench[{backend}], or use backend='pyav'"
        ) from error
    return other_readers.TorchcodecReader if backend == "torchcodec" else other_readers.DecordReader
