"""Makes a small picture of each video and reads the video's length, for the cards of the home page.

The picture is the first keyframe after a third of the video, as it is displayed. Only the header and one group of
pictures must be read for this keyframe. The picture is saved in the user's cache under the stamp of the video file.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import av
import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray
from PIL import Image

from barista_bench.errors import VideoError
from barista_bench.files.file_cache import keep_newest, user_cache
from barista_bench.files.writing import write_whole
from barista_bench.media.video.frame_folder import frame_files, read_image
from barista_bench.media.video.opening import AV_ERRORS, Stamp, error_line, open_video, orientation_of, stamp_of
from barista_bench.studio.footage import jpeg

POSTER_WIDTH = 320
"""Width in pixels, for a card on a high-density screen."""
CACHE_FILES = 5_000
"""Maximum number of pictures, at about 15 KB each; the oldest picture is removed first."""
_SHRINK_EVERY = 200
_lengths: LRUCache[Stamp, float | None] = LRUCache(10_000)


def poster(path: Path) -> bytes:
    """Return the picture as JPEG. Raises VideoError for an unreadable video, OSError if the cache cannot be written."""
    stamp = stamp_of(path)
    folder = user_cache("posters")
    file = folder / f"{hashlib.sha256(repr(tuple(stamp)).encode()).hexdigest()[:32]}.jpg"
    if file.is_file() and not file.is_symlink():
        return file.read_bytes()
    image = Image.fromarray(_picture(path))
    image.thumbnail((POSTER_WIDTH, 2 * POSTER_WIDTH))
    content = jpeg(image)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(file, content)
    # Only sometimes: listing the folder takes longer than making the picture.
    if file.stat().st_ino % _SHRINK_EVERY == 0:
        keep_newest(folder, CACHE_FILES)
    return content


def seconds_of(path: Path) -> float | None:
    """Return the length in a video's header; None if the header has no length. Raises VideoError."""
    stamp = stamp_of(path)
    if stamp not in _lengths:
        seconds = None
        if not path.is_dir():
            container, stream = open_video(stamp.path)
            with container:
                if stream.duration is not None and stream.time_base is not None:
                    seconds = float(stream.duration * stream.time_base)
                elif container.duration is not None:
                    seconds = container.duration / av.time_base
        _lengths[stamp] = seconds
    return _lengths[stamp]


def _picture(path: Path) -> NDArray[np.uint8]:
    """Return the picture as uint8 RGB of shape (H, W, 3)."""
    if path.is_dir():
        files = frame_files(path)
        return read_image(files[len(files) // 3])
    name = os.fspath(path)
    container, stream = open_video(name)
    try:
        with container:
            if stream.duration:
                container.seek((stream.start_time or 0) + stream.duration // 3, stream=stream)
            frame = next(container.decode(stream), None)
            if frame is None:
                raise VideoError(f"{name}: no frame can be decoded. Fix: check the file")
            image = np.asarray(frame.to_ndarray(format="rgb24"), dtype=np.uint8)
            return np.ascontiguousarray(orientation_of(frame, name).apply(image))
    except AV_ERRORS as error:
        raise VideoError(f"{name}: cannot be decoded ({error_line(error)}). Fix: check the file") from error
