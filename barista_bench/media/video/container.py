"""Opens a video file with FFmpeg's libraries (PyAV) safely and quickly, and stamps videos by what they hold."""

import os
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import av
import av.error
from av.container import InputContainer
from av.stream import Discard, Disposition
from av.video.stream import VideoStream

from barista_bench.errors import VideoError
from barista_bench.files.text_out import first_line
from barista_bench.media.video.frame_folder import folder_state
from barista_bench.media.video.limits import MAX_PIXELS, check_size

# Only real video containers: FFmpeg would also open playlists that name other files, and draw plain text as video.
_FORMATS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,mpegts,mpeg,avi,flv,asf,ogg"
_OPTIONS = {"format_whitelist": _FORMATS, "protocol_whitelist": "file"}
# Opening is 10 to 50 times faster when FFmpeg decodes nothing to guess the stream's parameters.
_NO_PROBING = {"analyzeduration": "1", "skip_frame": "all"}

REDOWNLOAD = "fetch the file again, or check that it is the video you meant"

# What PyAV raises for bad input: its own errors, and the built-in classes that it maps some of them to.
AV_ERRORS = (av.error.FFmpegError, OSError, ValueError)

# Decoding trouble is reported by exceptions, not on stderr. Not a level: PyAV's own callback asks for the interpreter,
# which a thread that closes a decoder holds while it waits for the decoder's threads to end: a deadlock.
av.logging.set_level(None)


class Stamp(NamedTuple):
    """Identity of a file's content without reading it: absolute path, size in bytes, time of change in ns.

    Of a folder of frames: the bytes of them all, and a number made from all their names, sizes and times.
    """

    path: str
    size: int
    mtime_ns: int


def stamp_of(path: str | os.PathLike[str]) -> Stamp:
    """The stamp of a video: a non-empty, readable regular file, or a folder of images. Raises VideoError."""
    name = os.path.abspath(os.fspath(path))
    try:
        status = os.stat(name)
    except (OSError, ValueError) as error:
        cause = "no such file" if isinstance(error, FileNotFoundError) else str(error)
        raise VideoError(
            f"{name}: cannot be opened: {cause}. Remedy: check the path and the videos' root folder"
        ) from error
    if os.path.isdir(name):
        return Stamp(name, *folder_state(name))
    if not Path(name).is_file():
        raise VideoError(f"{name}: not a file. Remedy: give the path of one video")
    if status.st_size == 0:
        raise VideoError(f"{name}: the file is empty (0 bytes). Remedy: {REDOWNLOAD}")
    if not os.access(name, os.R_OK):
        raise VideoError(f"{name}: no permission to read it. Remedy: change its mode")
    return Stamp(name, status.st_size, status.st_mtime_ns)


def open_video(name: str, *, threads: int = 1, probe: bool = False) -> tuple[InputContainer, VideoStream]:
    """Open the first video stream of the file `name`; other streams are not read.

    `threads` is the number of frame threads of the decoder. `probe=True` lets FFmpeg decode some frames first, as it
    does by default; the fast way falls back to it where the header says too little. Raises VideoError.
    """
    try:
        container = av.open(name, options=_OPTIONS if probe else _OPTIONS | _NO_PROBING)
    except AV_ERRORS as error:
        if not probe:
            return open_video(name, threads=threads, probe=True)
        raise VideoError(f"{name}: not a readable video ({reason(error)}). Remedy: {REDOWNLOAD}") from error
    with ExitStack() as stack:
        stack.callback(container.close)
        stream = _video_stream(container, name)
        context = stream.codec_context
        if not probe and not (context.width and stream.time_base):
            return open_video(name, threads=threads, probe=True)
        check_size(name, context.width, context.height)
        context.options = {"max_pixels": str(MAX_PIXELS)}
        context.thread_type = "FRAME" if threads > 1 else "NONE"
        context.thread_count = threads
        stack.pop_all()  # it stays open
    return container, stream


def _video_stream(container: InputContainer, name: str) -> VideoStream:
    videos = [s for s in container.streams.video if not s.disposition & Disposition.attached_pic]  # no cover art
    if not videos:
        raise VideoError(f"{name}: it has no video stream. Remedy: {REDOWNLOAD}")
    for stream in container.streams:
        if stream.index != videos[0].index:
            stream.discard = Discard.all
    return videos[0]


def reason(error: Exception) -> str:
    """One short line for an error of FFmpeg or of the system."""
    return str(getattr(error, "strerror", None) or first_line(error))
