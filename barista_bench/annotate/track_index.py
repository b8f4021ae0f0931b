"""Looks up single frames of tracks.jsonl. The positions of all lines are determined once per file."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from barista_bench.annotate import records
from barista_bench.annotate.project import MOST_TRACK_LINE, REMAKE, VideoFiles, decode_track
from barista_bench.errors import DataError
from barista_bench.files.file_cache import FileStamp, read_cached

_CHUNK = 2**22


class TrackIndex:
    """Looks up the tracks of several videos by frame. A rewritten file is indexed again."""

    def __init__(self) -> None:
        self._starts: LRUCache[tuple[Path, FileStamp], NDArray[np.int64]] = LRUCache(8)
        self._lock = threading.Lock()

    def line(self, video: VideoFiles, frame: int) -> records.TrackLine | None:
        """Return a frame's masks; None if the video has no tracks yet. Raises DataError if the file lacks the frame."""
        path = video.file(records.TrackLine)
        try:
            with path.open("rb") as file:
                starts = self._starts_of(path, file)
                file.seek(int(starts[min(frame + 1, len(starts) - 1)]))  # the first line is the provenance
                line = file.readline(MOST_TRACK_LINE)
        except FileNotFoundError:
            return None
        track = decode_track(line, f"{path}: frame {frame}", video.source)
        if track.frame != frame:
            raise DataError(f"{path}: frame {frame} is not in its line. Fix: {REMAKE}")
        return track

    def _starts_of(self, path: Path, file: BinaryIO) -> NDArray[np.int64]:
        key = path, FileStamp.of(file.fileno())
        with self._lock:
            if key not in self._starts:
                self._starts[key] = read_cached(
                    *key, "lines", np.ndarray, lambda: np.concatenate(([0], *_line_ends(file)))
                )
            return self._starts[key]


def _line_ends(file: BinaryIO) -> Iterator[NDArray[np.int64]]:
    position = 0
    while chunk := file.read(_CHUNK):
        yield np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n")) + position + 1
        position += len(chunk)
