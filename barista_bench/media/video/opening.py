"""Opens video files safely with FFmpeg's libraries (PyAV)."""

import os
import struct
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import av
import av.error
import numpy as np
from av.container import InputContainer
from av.sidedata.sidedata import SideData
from av.stream import Discard, Disposition
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame
from av.video.stream import VideoStream
from numpy.typing import NDArray

from barista_bench.errors import VideoError
from barista_bench.files.text_out import first_line
from barista_bench.media.video.frame_folder import MAX_PIXELS, check_size, folder_state

Image = NDArray[np.uint8]
# Only real video containers: FFmpeg would also open playlists, which name other files, and show plain text as video.
_FORMATS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,mpegts,mpeg,avi,flv,asf,ogg"
# The decoder has its own limit, because a picture may be larger than its header says.
_OPTIONS = {"format_whitelist": _FORMATS, "protocol_whitelist": "file", "max_pixels": str(MAX_PIXELS)}
# There is no decoder with the name "none". Opening is 10 to 50 times faster if FFmpeg decodes nothing to guess the
# stream's parameters. No memory is allocated for a picture before its size is known.
_NO_PROBING = {"analyzeduration": "1", "codec_whitelist": "none"}
REDOWNLOAD = "fetch the file again, or check that it is the video you meant"
VIDEO_SUFFIXES = frozenset(
    {".3gp", ".avi", ".m2ts", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".mts", ".ts", ".webm"}
)
"""Suffixes of files that count as videos, in lower case."""
# Errors that PyAV raises for bad input: its own classes, and the built-in classes to which it maps some errors.
AV_ERRORS = (av.error.FFmpegError, OSError, ValueError)

# Decoding errors are reported by exceptions, not on stderr. Do not set a level here: PyAV's callback then waits for the
# interpreter. A thread that closes a decoder holds the interpreter while it waits for the decoder's threads: a
# deadlock.
av.logging.set_level(None)


class Stamp(NamedTuple):
    """Identity of a file's content without reading it: absolute path, size in bytes, time of change in ns.

    For a folder of frames, the size is the sum of the bytes of all frames. The time is a number made from all names,
    sizes and times.
    """

    path: str
    size: int
    mtime_ns: int


def stamp_of(path: str | os.PathLike[str]) -> Stamp:
    """Return the stamp of a video: a non-empty, readable regular file, or a folder of images. Raises VideoError."""
    name = os.path.abspath(os.fspath(path))
    try:
        status = os.stat(name)
    except (OSError, ValueError) as error:
        cause = "no such file" if isinstance(error, FileNotFoundError) else str(error)
        raise VideoError(
            f"{name}: cannot be opened: {cause}. Fix: check the path and the videos' root folder"
        ) from error
    if os.path.isdir(name):
        return Stamp(name, *folder_state(name))
    if not Path(name).is_file():
        raise VideoError(f"{name}: not a file. Fix: give the path of one video")
    if status.st_size == 0:
        raise VideoError(f"{name}: the file is empty (0 bytes). Fix: {REDOWNLOAD}")
    if not os.access(name, os.R_OK):
        raise VideoError(f"{name}: no permission to read it. Fix: change its mode")
    return Stamp(name, status.st_size, status.st_mtime_ns)


def open_video(name: str, *, probe: bool = False) -> tuple[InputContainer, VideoStream]:
    """Open the first video stream of the file `name` for decoding by one thread; other streams are not read.

    With `probe=True`, FFmpeg first decodes some frames, as it does by default. If the header is incomplete, this also
    happens with `probe=False`. Raises VideoError.
    """
    try:
        container = av.open(name, options=_OPTIONS if probe else _OPTIONS | _NO_PROBING)
    except AV_ERRORS as error:
        if not probe:
            return open_video(name, probe=True)
        raise VideoError(f"{name}: not a readable video ({error_line(error)}). Fix: {REDOWNLOAD}") from error
    with ExitStack() as stack:
        stack.callback(container.close)
        stream = _video_stream(container, name)
        context: VideoCodecContext | None = stream.codec_context
        if context is None:
            raise VideoError(f"{name}: no decoder for its pictures is known. Fix: {REDOWNLOAD}")
        if not probe and not (context.width and stream.time_base):
            return open_video(name, probe=True)
        check_size(name, context.width, context.height)
        context.options = {"max_pixels": str(MAX_PIXELS)}
        if context.name == "mjpeg":  # otherwise it silently fills a damaged picture with old content of the memory
            context.options = {**context.options, "err_detect": "explode"}
        # With frame threads, the decoder reports the damage of one picture while it returns another.
        context.thread_type = "NONE"
        context.thread_count = 1
        stack.pop_all()  # the container stays open
    return container, stream


def _video_stream(container: InputContainer, name: str) -> VideoStream:
    videos = [s for s in container.streams.video if not s.disposition & Disposition.attached_pic]  # leave out cover art
    if not videos:
        raise VideoError(f"{name}: it has no video stream. Fix: {REDOWNLOAD}")
    for stream in container.streams:
        if stream.index != videos[0].index:
            stream.discard = Discard.all
    return videos[0]


def track_note(name: str) -> str | None:
    """Return a note with the track that is used, if the file's default video track is another. Raises VideoError."""
    container, stream = open_video(name, probe=True)
    with container:
        videos = [s for s in container.streams.video if not s.disposition & Disposition.attached_pic]
        default = next((s for s in videos if s.disposition & Disposition.default), stream)
        if default.index == stream.index:
            return None
        return (
            f"the first of its {len(videos)} video tracks is used, and track {videos.index(default) + 1} is the default"
        )


def error_line(error: Exception) -> str:
    """Return one short line about an error of FFmpeg or of the system."""
    return str(getattr(error, "strerror", None) or first_line(error))


class Orientation(NamedTuple):
    """Mirror the stored image left to right if `mirrored`, then turn it `turns` x 90 degrees counter-clockwise."""

    turns: int = 0
    mirrored: bool = False

    def apply(self, image: Image) -> Image:
        """Return a view (not a copy) of an image (H, W, 3) in display orientation."""
        return np.rot90(image[:, ::-1] if self.mirrored else image, self.turns)

    def size(self, width: int, height: int) -> tuple[int, int]:
        """Return the displayed (width, height), in pixels, of a stored frame with that width and height."""
        return (height, width) if self.turns % 2 else (width, height)


# The display matrix (a, b; c, d) maps the stored point (x, y), y down, to the displayed point (a x + c y, b x + d y).
_ORIENTATIONS = {
    (1, 0, 0, 1): Orientation(0),
    (0, -1, 1, 0): Orientation(1),
    (-1, 0, 0, -1): Orientation(2),
    (0, 1, -1, 0): Orientation(3),
    (-1, 0, 0, 1): Orientation(0, True),
    (0, 1, 1, 0): Orientation(1, True),
    (1, 0, 0, -1): Orientation(2, True),
    (0, -1, -1, 0): Orientation(3, True),
}


def orientation_of(frame: VideoFrame, name: str) -> Orientation:
    """Return the orientation from the frame's display matrix. Raises VideoError unless it is a turn by right angles."""
    matrix = frame.side_data.get("DISPLAYMATRIX")
    if not isinstance(matrix, SideData):
        return Orientation()
    cells = struct.unpack("=9i", bytes(matrix)[:36])
    rotation = (cells[0], cells[1], cells[3], cells[4])
    scale = max(*map(abs, rotation), 1)
    a, b, c, d = (round(cell / scale) for cell in rotation)
    orientation = _ORIENTATIONS.get((a, b, c, d))
    if orientation is None:
        text = f"{name}: its display matrix {cells} is not a turn by right angles"
        raise VideoError(f"{text}. Fix: re-encode it: ffmpeg -i IN OUT.mp4")
    return orientation
