"""Makes pictures of videos for the page: exact frames as JPEG, and copies that a browser can step through quickly.

A browser finds a frame fast if a keyframe is near. So each viewed video gets a copy in H.264, with a keyframe every 12
frames, no references to later frames, and the original times of the frames, even or uneven. If a video has more than
360 lines, it also gets a small copy that a browser decodes as fast as a person moves a slider. Copies are in the user's
cache under the hash of the original; the original is never changed. The page loads single frames from here while the
copies are made, and whenever the browser shows a frame that was not requested.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from av.container import OutputContainer
from av.video.stream import VideoStream
from numpy.typing import NDArray
from PIL import Image

from barista_bench.errors import DataError, VideoError
from barista_bench.files.file_cache import user_cache
from barista_bench.files.text_out import NO_SPACE
from barista_bench.files.writing import atomic_write
from barista_bench.media.video import FrameReader, open_reader, read_frames, video_facts
from barista_bench.media.video.frame_folder import video_sha256
from barista_bench.media.video.opening import AV_ERRORS, Stamp, error_line, stamp_of
from barista_bench.studio.workspace import BackgroundWork, Json, Routes, Workspace

CACHE_BYTES = 20 * 2**30
"""Limit of bytes for all copies: about 200 videos of BARISTA's length.

The least recently viewed copy is removed first.
"""
_CONTAINER = {"movflags": "faststart", "use_editlist": "0"}
_CODEC: dict[str, object] = {
    "preset": "veryfast",
    "tune": "fastdecode",  # decoding takes a third of the time, for a tenth more bytes
    "bf": "0",
    "g": "12",
    "sc_threshold": "0",
}
_RECIPE = "h264-2"
"""Part of a copy's name. It changes with the encoding, so that old copies are not used."""
_MAX_HEIGHT, _CRF = 1080, 20
_SMALL_HEIGHT, _SMALL_CRF = 360, 26
_TICKS = 90_000
_BATCH = 16
_JPEG_QUALITY = 90
_ABANDONED = 3600
"""After this many seconds without a write to a copy, the process that makes the copy counts as dead."""


def jpeg(image: Image.Image) -> bytes:
    """Encode a picture for the page."""
    target = io.BytesIO()
    image.save(target, "JPEG", quality=_JPEG_QUALITY)
    return target.getvalue()


def cache_folder() -> Path:
    return user_cache("videos")


class FootageRoutes(Routes):
    """Makes pictures of a workspace's videos."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._copies: dict[Stamp, BackgroundWork] = {}
        self._files: dict[Stamp, tuple[Path, ...]] = {}
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        """Copies are made one after another, since each uses all cores."""
        self.reads = {
            "/api/footage": lambda query: self.state(query["kind"], query["video"]),
            "/api/footage/samples": lambda query: self.samples(query["kind"], query["video"], query["name"]),
        }

    def read_still(self, kind: str, video: str, frame: int) -> bytes:
        """Return a frame of the original as JPEG. Raises DataError."""
        (image,) = read_frames(self._workspace.video_path(kind, video), [frame])
        return jpeg(Image.fromarray(image))

    def proxy(self, kind: str, video: str, name: str = "proxy") -> Path | None:
        """Return the file of the copy, or of the copy named "small", if it is finished. Raises DataError."""
        files = self._files.get(stamp_of(self._workspace.video_path(kind, video)), ())
        file = dict(zip(("proxy", "small"), files, strict=False)).get(name)
        return file if file is not None and _is_plain(file) else None

    def samples(self, kind: str, video: str, name: str) -> Json:
        """Return the place of each frame in a copy, for a browser that decodes it. Raises DataError without a copy."""
        file = self.proxy(kind, video, name)
        if file is None:
            raise DataError(f"{video}: its copy is not ready. Fix: load the page again")
        with av.open(str(file)) as container:
            (stream,) = container.streams.video
            extradata = stream.codec_context.extradata
            rows = [(entry.pos, entry.size, entry.is_keyframe) for entry in stream.index_entries]
        assert extradata is not None, "H.264 in MP4 has its settings there"
        return {
            "codec": f"avc1.{extradata[1:4].hex()}",
            "description": base64.b64encode(extradata).decode(),
            "offsets": [position for position, _, _ in rows],
            "sizes": [size for _, size, _ in rows],
            "keyframes": [number for number, (_, _, is_keyframe) in enumerate(rows) if is_keyframe],
        }

    def version(self, kind: str, video: str) -> str:
        """Return a stamp that changes when the video file is replaced. Raises DataError."""
        return _version(stamp_of(self._workspace.video_path(kind, video)))

    def state(self, kind: str, video: str) -> Json:
        """Return size in pixels, time of each frame in seconds, and progress of the copy; the first call starts it.

        Raises:
            DataError: the video does not exist, or cannot be read.
        """
        path = self._workspace.video_path(kind, video)
        stamp, facts = stamp_of(path), video_facts(path)
        with self._lock:
            copy = self._copies.get(stamp)
            if copy is None or (copy.state == "done" and not all(map(_is_plain, self._files[stamp]))):
                copy = self._copies[stamp] = BackgroundWork(lambda work: self._make(path, stamp, work), self._turn)
        return {
            "width": facts.width,
            "height": facts.height,
            "frames": facts.frame_count,
            "fps": facts.fps,
            "seconds": frame_seconds(path),
            "version": _version(stamp),
            "has_small": _has_small(path),
            "copy": copy.progress,
        }

    def _make(self, path: Path, stamp: Stamp, work: BackgroundWork) -> None:
        copy = cached_copy(path, cache_folder(), lambda fraction: setattr(work, "step", f"{fraction:.0%}"))
        self._files[stamp] = (copy, _path_of_small_copy(copy)) if _has_small(path) else (copy,)


def cached_copy(path: Path, cache: Path, report_fraction: Callable[[float], object]) -> Path:
    """Return the copy of a video; if the cache lacks the copy, make it, with a small copy beside it if needed.

    Args:
        report_fraction: called with the fraction of encoded frames.

    Raises:
        VideoError: the video cannot be read or encoded.
        OSError: the cache cannot be written, or is full.
    """
    cache.mkdir(parents=True, exist_ok=True)
    file = cache / f"{video_sha256(path, across_processes=True)}-{_RECIPE}.mp4"
    files = [file, _path_of_small_copy(file)] if _has_small(path) else [file]
    if not all(map(_is_plain, files)):
        _remove_leftovers(cache)
        with ExitStack() as stack:
            frames = stack.enter_context(open_reader(path))
            partial = [stack.enter_context(atomic_write(file)) for file in files]
            _encode(frames, partial, report_fraction)
        _shrink(cache, files)
    for copy in files:
        os.utime(copy)
    return file


def _has_small(path: Path) -> bool:
    return video_facts(path).height > _SMALL_HEIGHT


def _path_of_small_copy(file: Path) -> Path:
    return file.with_name(f"{file.stem}-small.mp4")


def _encode(frames: FrameReader, targets: Sequence[Path], report_fraction: Callable[[float], object]) -> None:
    ticks = np.round(_times(frames.seconds, frames.fps) * _TICKS).astype(np.int64)
    # Makes the ticks strictly increasing.
    ticks = np.maximum.accumulate(ticks - np.arange(len(ticks))) + np.arange(len(ticks))
    try:
        with ExitStack() as stack:
            bounds = ((_MAX_HEIGHT, _CRF), (_SMALL_HEIGHT, _SMALL_CRF))
            outputs = [
                (
                    container := stack.enter_context(av.open(str(target), "w", format="mp4", options=_CONTAINER)),
                    _stream(container, frames, max_height, crf),
                )
                for target, (max_height, crf) in zip(targets, bounds, strict=False)
            ]
            for start in range(0, len(frames), _BATCH):
                numbers = range(start, min(start + _BATCH, len(frames)))
                for number, image in zip(numbers, frames.read(numbers), strict=True):
                    picture = av.VideoFrame.from_ndarray(image, format="rgb24")
                    for container, stream in outputs:
                        picture = picture.reformat(stream.width, stream.height, "yuv420p")
                        picture.pts, picture.time_base = int(ticks[number]), Fraction(1, _TICKS)
                        container.mux(stream.encode(picture))
                report_fraction(numbers.stop / len(frames))
            for container, stream in outputs:
                container.mux(stream.encode())
    except AV_ERRORS as error:
        if isinstance(error, OSError) and error.errno in NO_SPACE:
            # Raised without the name of the hidden file.
            raise OSError(error.errno, os.strerror(error.errno)) from error
        raise VideoError(f"{frames.path}: cannot be encoded ({error_line(error)}). Fix: check the file") from error


def _stream(container: OutputContainer, frames: FrameReader, max_height: int, crf: int) -> VideoStream:
    stream = container.add_stream("libx264", rate=round(frames.fps) or 30)
    stream.width, stream.height = _even_size(*frames.size, max_height)
    stream.pix_fmt, stream.options = "yuv420p", {**_CODEC, "crf": str(crf)}
    stream.codec_context.time_base = stream.time_base = Fraction(1, _TICKS)
    return stream


def frame_seconds(path: Path) -> list[float]:
    """Return the time of each frame of a video in seconds. Raises DataError if the video cannot be read."""
    facts = video_facts(path)
    return [round(second, 6) for second in _times(facts.seconds, facts.fps).tolist()]


def _times(seconds: NDArray[np.float64], fps: float) -> NDArray[np.float64]:
    """Return the times of the frames in seconds; if the video has no times, 30 frames per second are assumed."""
    return seconds if not np.isnan(seconds).any() else np.arange(len(seconds)) / (fps or 30)


def _even_size(width: int, height: int, max_height: int) -> tuple[int, int]:
    """Return the size of a copy that is at most `max_height` high; the numbers are even, as yuv420p requires."""
    scale = min(1, max_height / height)
    return max(2, round(width * scale / 2) * 2), max(2, round(height * scale / 2) * 2)


def _is_plain(file: Path) -> bool:
    return file.is_file() and not file.is_symlink()


def _version(stamp: Stamp) -> str:
    return hashlib.sha256(repr(tuple(stamp)).encode()).hexdigest()[:16]


def _remove_leftovers(cache: Path) -> None:
    """Remove the files of killed processes.

    Their age decides, not the process id, since machines may share the cache.
    """
    for path in cache.glob(".*.partial"):
        with suppress(FileNotFoundError):  # another process has just finished this file
            if time.time() - path.lstat().st_mtime > _ABANDONED:
                path.unlink()


def _shrink(cache: Path, keep: Sequence[Path]) -> None:
    files = sorted((path for path in cache.glob("*.mp4") if path not in keep), key=lambda path: path.stat().st_mtime)
    total = sum(path.stat().st_size for path in (*keep, *files))
    for path in files:
        if total <= CACHE_BYTES:
            return
        total -= path.stat().st_size
        path.unlink(missing_ok=True)
