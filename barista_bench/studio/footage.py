"""Pictures of videos for the page: exact frames as JPEG, and copies that a browser can step through quickly.

A browser finds a frame fast where keyframes are near. So a copy is made of each video that is looked at: H.264, a
keyframe every 12 frames, none that refers to later ones, the times of the frames as they are (also where they are
uneven). It lies in the user's cache under the hash of the original, which is never touched. While it is made, and
wherever the browser shows another frame than was asked for, the page takes single frames from here.
"""

from __future__ import annotations

import io
import logging
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from barista_bench.data.rows import file_sha256
from barista_bench.errors import BaristaError, VideoError
from barista_bench.files.writing import replacing
from barista_bench.media.video import FrameReader, open_reader, read_frames, video_facts
from barista_bench.media.video.index import AV_ERRORS, reason
from barista_bench.studio.workspace import Json, Workspace

log = logging.getLogger(__name__)

CACHE_BYTES = 20 * 2**30
"""Of all copies: about 200 videos of BARISTA's length. The one looked at longest ago goes first."""
KEYFRAME_EVERY = 12
_RECIPE = "h264-1"
"""Part of a copy's name: another way to make them makes other files."""
_MAX_HEIGHT = 1080
_TICKS = 90_000
_BATCH = 16
_JPEG_QUALITY = 90
State = Literal["making", "ready", "failed"]


@dataclass(slots=True)
class Copy:
    """One video's copy. `done` of `frames` are encoded; `problem` says why there is none."""

    state: State
    frames: int
    done: int = 0
    file: Path | None = None
    problem: str = ""


def jpeg(image: Image.Image) -> bytes:
    """A picture for the page."""
    target = io.BytesIO()
    image.save(target, "JPEG", quality=_JPEG_QUALITY)
    return target.getvalue()


def cache_folder() -> Path:
    """Where copies lie: `$XDG_CACHE_HOME/barista_bench/videos`, by default below `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "barista_bench" / "videos"


class Footage:
    """The videos of a workspace as pictures."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._copies: dict[Path, Copy] = {}
        self._lock = threading.Lock()
        self._turn = threading.Lock()

    @property
    def reads(self) -> Mapping[str, Callable[[Mapping[str, str]], Json]]:
        return {"/api/footage": lambda query: self.state(query["kind"], query["video"])}

    @property
    def writes(self) -> Mapping[str, Callable[[bytes], Json]]:
        return {}

    def still(self, kind: str, video_id: str, frame: int) -> bytes:
        """A frame of the original as JPEG. Raises DataError."""
        (image,) = read_frames(self._workspace.video_path(kind, video_id), [frame])
        return jpeg(Image.fromarray(image))

    def proxy(self, kind: str, video_id: str) -> Path | None:
        """The copy's file, where it is ready."""
        return self._copy(self._workspace.video_path(kind, video_id)).file

    def state(self, kind: str, video_id: str) -> Json:
        """Size in pixels, the time of each frame in seconds, and how far the copy is; the first call starts it.

        Raises:
            DataError: there is no such video, or it cannot be read.
        """
        path = self._workspace.video_path(kind, video_id)
        facts, copy = video_facts(path), self._copy(path)
        return {
            "width": facts.width,
            "height": facts.height,
            "frames": facts.frame_count,
            "fps": facts.fps,
            "seconds": [round(second, 6) for second in _times(facts.seconds, facts.fps).tolist()],
            "copy": {"state": copy.state, "done": copy.done, "problem": copy.problem},
        }

    def _copy(self, path: Path) -> Copy:
        with self._lock:
            if path not in self._copies:
                self._copies[path] = Copy("making", video_facts(path).frame_count)
                threading.Thread(target=self._make, args=(path, self._copies[path]), daemon=True).start()
            return self._copies[path]

    def _make(self, path: Path, copy: Copy) -> None:
        """One after another: each takes all cores."""
        with self._turn:
            try:
                copy.file = kept_copy(path, cache_folder(), copy)
                copy.state = "ready"
            except (BaristaError, OSError) as error:
                copy.state, copy.problem = "failed", str(error)
                log.warning("%s: no copy to step through, single frames are shown: %s", path, error)


def kept_copy(path: Path, cache: Path, copy: Copy) -> Path:
    """The copy of a video, made where the cache lacks it.

    Raises:
        VideoError: the video cannot be read or encoded.
        OSError: the cache cannot be written.
    """
    cache.mkdir(parents=True, exist_ok=True)
    file = cache / f"{file_sha256(path)}-{_RECIPE}.mp4"
    if not file.exists():
        with replacing(file) as partial, open_reader(path) as frames:
            _encode(frames, partial, copy)
        _shrink(cache, file)
    os.utime(file)
    copy.done = copy.frames
    return file


def _encode(frames: FrameReader, target: Path, copy: Copy) -> None:
    width, height = _even_size(*frames.size)
    ticks = np.round(_times(frames.seconds, frames.fps) * _TICKS).astype(np.int64)
    ticks = np.maximum.accumulate(ticks - np.arange(len(ticks))) + np.arange(len(ticks))  # each later than the last
    try:
        with av.open(
            str(target), "w", format="mp4", options={"movflags": "faststart", "use_editlist": "0"}
        ) as container:
            stream = container.add_stream("libx264", rate=round(frames.fps) or 30)
            stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
            stream.options = {
                "preset": "veryfast",
                "crf": "20",
                "bf": "0",
                "g": str(KEYFRAME_EVERY),
                "sc_threshold": "0",
            }
            stream.codec_context.time_base = stream.time_base = Fraction(1, _TICKS)
            for start in range(0, len(frames), _BATCH):
                numbers = range(start, min(start + _BATCH, len(frames)))
                for number, image in zip(numbers, frames.read(numbers), strict=True):
                    picture = av.VideoFrame.from_ndarray(image, format="rgb24").reformat(width, height, "yuv420p")
                    picture.pts, picture.time_base = int(ticks[number]), Fraction(1, _TICKS)
                    container.mux(stream.encode(picture))
                copy.done = numbers.stop
            container.mux(stream.encode())
    except AV_ERRORS as error:
        raise VideoError(f"{frames.path}: cannot be encoded ({reason(error)}). Remedy: check the file") from error


def _times(seconds: NDArray[np.float64], fps: float) -> NDArray[np.float64]:
    """Times of the frames in seconds; even ones, 30 a second, where a video knows none."""
    return seconds if not np.isnan(seconds).any() else np.arange(len(seconds)) / (fps or 30)


def _even_size(width: int, height: int) -> tuple[int, int]:
    """As yuv420p needs it, and no higher than a screen."""
    scale = min(1, _MAX_HEIGHT / height)
    return max(2, round(width * scale / 2) * 2), max(2, round(height * scale / 2) * 2)


def _shrink(cache: Path, keep: Path) -> None:
    """Remove the copies that were looked at longest ago, until all of them fit."""
    files = sorted((path for path in cache.glob("*.mp4") if path != keep), key=lambda path: path.stat().st_mtime)
    total = keep.stat().st_size + sum(path.stat().st_size for path in files)
    for path in files:
        if total <= CACHE_BYTES:
            return
        total -= path.stat().st_size
        path.unlink(missing_ok=True)
