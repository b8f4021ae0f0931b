"""Readers by backend name."""

import importlib
import os

from barista_bench.errors import ConfigError
from barista_bench.files.text_out import first_line
from barista_bench.media.video.base import FrameReader
from barista_bench.media.video.folder_reader import FolderReader
from barista_bench.media.video.pyav_reader import PyavReader

BACKENDS = ("auto", "pyav", "torchcodec", "decord")


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
    except (
        ImportError,
        OSError,
        RuntimeError,
    ) as error:  # torchcodec raises RuntimeError without FFmpeg's libraries
        raise ConfigError(
            f"video backend {backend!r} cannot be imported: {first_line(error)}. "
            f"Remedy: pip install barista_bench[{backend}], or use backend='pyav'"
        ) from error
    readers: dict[str, type[FrameReader]] = {
        "torchcodec": other_readers.TorchcodecReader,
        "decord": other_readers.DecordReader,
    }
    return readers[backend]
