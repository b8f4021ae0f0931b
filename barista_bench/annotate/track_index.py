"""One frame of tracks.jsonl without reading the others: where its lines begin is looked up once for each file."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TypeAlias

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from barista_bench.annotate.project import MOST_TRACK_LINE, VideoFiles, decoded_track
from barista_bench.annotate.records import TrackLine
from barista_bench.errors import DataError

_CHUNK = 2**22
FileStamp: TypeAlias = tuple[int, int, int] | None


def file_stamp(path: Path) -> FileStamp:
    """A stamp that changes when a file is replaced; None where there is none."""
    return _stamp(os.stat(path)) if path.is_file() else None


class TrackIndex:
    """The tracks of several videos, by frame. A file that was made anew is looked through again."""

    def __init__(self) -> None:
        self._starts: LRUCache[tuple[Path, FileStamp], NDArray[np.int64]] = LRUCache(8)
        self._lock = threading.Lock()

    def line(self, video: VideoFiles, frame: int) -> TrackLine | None:
        """A frame's masks; None before there are tracks. Raises DataError for a file that does not hold the frame."""
        path = video.file(TrackLine)
        try:
            with path.open("rb") as file:
                starts = self._starts_of(path, file)
                file.seek(int(starts[min(frame + 1, len(starts) - 1)]))  # the first line is the provenance
                line = file.readline(MOST_TRACK_LINE)
        except FileNotFoundError:
            return None
        track = decoded_track(line, f"{path}: frame {frame}", video.source)
        if track.frame != frame:
            remedy = "remove the file and run `barista-bench annotate run` again"
            raise DataError(f"{path}: frame {frame} is not in its line. Remedy: {remedy}")
        return track

    def _starts_of(self, path: Path, file: BinaryIO) -> NDArray[np.int64]:
        key = path, _stamp(os.fstat(file.fileno()))
        with self._lock:
            if key not in self._starts:
                self._starts[key] = np.concatenate(([0], *_line_ends(file)))
            return self._starts[key]


def _line_ends(file: BinaryIO) -> Iterator[NDArray[np.int64]]:
    position = 0
    while chunk := file.read(_CHUNK):
        yield np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n")) + position + 1
        position += len(chunk)


def _stamp(status: os.stat_result) -> FileStamp:
    return status.st_ino, status.st_mtime_ns, status.st_size
