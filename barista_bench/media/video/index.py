"""Opens video files safely with FFmpeg's libraries (PyAV), and indexes their frames without decoding them.

Times are in ticks of the stream's time base. A frame is identified by its presentation time (pts), and the reader
checks this time for every decoded frame. In some streams the packets do not determine the frames (MPEG-TS, AVI, missing
or repeated times, frames before the first keyframe). Such streams are decoded once for the index, and read from the
start (`seekable` is False).

A folder of images has an index too: every frame is a keyframe, and the times are not known (the time base is 0).
"""

import functools
import os
import struct
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
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
from barista_bench.files.file_cache import FileStamp, read_cached
from barista_bench.files.text_out import first_line
from barista_bench.media.video.frame_folder import MAX_PIXELS, REMUX, check_size, folder_size, folder_state, frame_files

Image = NDArray[np.uint8]
Ticks = NDArray[np.int64]

# Only real video containers: FFmpeg would also open playlists, which name other files, and show plain text as video.
_FORMATS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,mpegts,mpeg,avi,flv,asf,ogg"
# The decoder has its own limit, because a picture may be larger than its header says.
_OPTIONS = {"format_whitelist": _FORMATS, "protocol_whitelist": "file", "max_pixels": str(MAX_PIXELS)}
# There is no decoder with the name "none". Opening is 10 to 50 times faster if FFmpeg decodes nothing to guess the
# stream's parameters. No memory is allocated for a picture before its size is known.
_NO_PROBING = {"analyzeduration": "1", "codec_whitelist": "none"}

_SEEKABLE = ("mov,mp4,m4a,3gp,3g2,mj2", "matroska,webm")  # FFmpeg's names of the containers with exact seeking
_CACHE_LIMIT = 256  # an index takes about 60 KB for 2,500 frames

_UNDECODABLE = f"cannot be decoded, or has more than {MAX_PIXELS // 2**20} Mpx"
"""Message for a picture that is larger than its header declares."""
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
        raise VideoError(f"{name}: not a readable video ({reason(error)}). Fix: {REDOWNLOAD}") from error
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


def reason(error: Exception) -> str:
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


@dataclass(frozen=True)
class VideoIndex:
    """All n frames of a stream in presentation order, and its k keyframes.

    * `pts` (n,): presentation times of the frames.
    * `start` (n,): for each frame the keyframe (0..k-1) where decoding starts.
    * `key_pts`, `key_seek` (k,): times of the keyframes, and the seek target for each.
    * `size`: displayed (width, height) in pixels.
    * `edited`: an edit list hides packets.
    * `open_gop`: some frames refer to frames before a keyframe.
    * `droppable`: packets that the decoder treats as non-reference can be skipped without changing other frames.
    * `stamped`: decoded frames have the times in `pts`.
    """

    pts: Ticks
    start: Ticks
    key_pts: Ticks
    key_seek: Ticks
    time_base: Fraction
    size: tuple[int, int]
    orientation: Orientation
    container: str
    seekable: bool
    edited: bool = False
    open_gop: bool = False
    droppable: bool = False
    stamped: bool = True

    @property
    def seconds(self) -> NDArray[np.float64]:
        """Return the time of each frame in seconds after the first frame, shape (n,); NaN if times are not known."""
        if not self.time_base:
            return np.full(len(self.pts), np.nan)
        return np.asarray((self.pts - self.pts[0]) * float(self.time_base), dtype=np.float64)

    @property
    def fps(self) -> float:
        """Mean frames per second of the video; 0.0 for a single frame, or if times are not known."""
        span = float(self.seconds[-1])
        return (len(self.pts) - 1) / span if span > 0 else 0.0


@dataclass
class _Packets:
    pts: list[int]
    displayed: list[bool]
    key_at: list[int]  # decode positions of keyframes
    key_seek: list[int]
    complete: bool  # every packet has a time


@functools.lru_cache(maxsize=_CACHE_LIMIT)
def video_index(stamp: Stamp) -> VideoIndex:
    """Return the index of a file. Raises VideoError.

    The indices of recently used files are cached in this process, and for a large file on disk.
    """
    path = Path(stamp.path)
    try:
        stamp_now = FileStamp.of(path)
    except OSError:  # the file was deleted meanwhile; reading it will report this
        return build_index(stamp.path)
    if path.is_dir():
        return build_index(stamp.path)
    return read_cached(path, stamp_now, f"index-2-{av.__version__}", VideoIndex, lambda: build_index(stamp.path))


def build_index(name: str) -> VideoIndex:
    """Read the file's packets in one pass over its bytes, and decode its first frame. Raises VideoError."""
    if os.path.isdir(name):
        return _index_of_folder(name)
    container, stream = open_video(name)
    with container:
        if container.format.name not in _SEEKABLE:
            return _scan(name)
        packets = _read_packets(container, stream, name)
        index = _index_from_packets(container, stream, packets, name)
    return index or _scan(name)


def _index_of_folder(name: str) -> VideoIndex:
    files = frame_files(name)
    numbers = np.arange(len(files), dtype=np.int64)
    return VideoIndex(
        pts=numbers,
        start=numbers,
        key_pts=numbers,
        key_seek=numbers,
        time_base=Fraction(0),
        size=folder_size(files),
        orientation=Orientation(),
        container="folder",
        seekable=True,
    )


def _read_packets(container: InputContainer, stream: VideoStream, name: str) -> _Packets:
    packets = _Packets([], [], [], [], True)
    by_pts = not container.format.name.startswith("mov")  # MP4 seeks by decoding time, Matroska by presentation time
    try:
        for packet in container.demux(stream):
            if packet.size == 0:  # an empty packet marks the end
                continue
            if packet.is_corrupt:
                raise VideoError(_truncation_text(name, len(packets.pts), stream.frames))
            if packet.pts is None:
                packets.complete = False
                continue
            if packet.is_keyframe:
                packets.key_at.append(len(packets.pts))
                packets.key_seek.append(packet.pts if packet.dts is None or by_pts else packet.dts)
            packets.pts.append(packet.pts)
            packets.displayed.append(not packet.is_discard)
    except AV_ERRORS as error:
        raise VideoError(_truncation_text(name, len(packets.pts), stream.frames, f" ({reason(error)})")) from error
    return packets


def _truncation_text(name: str, n_read: int, n_promised: int, cause: str = "") -> str:
    position = f"{n_read} of {n_promised}" if n_promised else str(n_read)
    return f"{name}: the data end or are damaged at frame {position}: a truncated file{cause}. Fix: {REDOWNLOAD}"


def _index_from_packets(
    container: InputContainer, stream: VideoStream, packets: _Packets, name: str
) -> VideoIndex | None:
    """Return the index from packet times, or None if the packets do not determine the frames with certainty."""
    times = np.array(packets.pts, dtype=np.int64)
    keys_at = np.array(packets.key_at, dtype=np.int64)
    displayed = np.flatnonzero(packets.displayed)
    if not packets.complete or not len(keys_at) or len(np.unique(times)) != len(times) or not len(displayed):
        return None
    # Decode position of each frame, in presentation order.
    order = displayed[np.argsort(times[displayed], kind="stable")]
    pts, key_pts = times[order], times[keys_at]
    start = np.searchsorted(keys_at, order, side="right") - 1
    leading = pts < key_pts[start]  # displayed before the keyframe that precedes them in the file
    while start.min() >= 0 and (pts < key_pts[start]).any():
        start = start - (pts < key_pts[start])
    if start.min() < 0:  # frames before the first keyframe: only decoding shows which of them are displayed
        return None
    turn, size = _first_frame(container, stream, int(packets.key_seek[0]), name)
    return VideoIndex(
        pts=pts,
        start=start,
        key_pts=key_pts,
        key_seek=np.array(packets.key_seek, dtype=np.int64),
        time_base=_time_base(stream),
        size=size,
        orientation=turn,
        container=container.format.name,
        seekable=True,
        edited=len(displayed) < len(times),
        open_gop=bool(leading.any()),
        droppable=_is_droppable(stream),
    )


def _is_droppable(stream: VideoStream) -> bool:
    """Return True if no picture depends on the packets that FFmpeg drops with skip_frame=NONREF.

    This holds for H.264. In HEVC, pictures of a higher temporal layer may depend on a "non-reference" picture. So the
    result is True only for streams that declare one layer (byte 21 of the hvcC header). Streams of other codecs are
    decoded completely.
    """
    context = stream.codec_context
    if context.name == "h264":
        return True
    header = context.extradata or b""
    return context.name == "hevc" and len(header) > 22 and header[0] == 1 and (header[21] >> 3) & 7 == 1


def _time_base(stream: VideoStream) -> Fraction:
    return stream.time_base or Fraction(1, 1000)


def _first_frame(
    container: InputContainer, stream: VideoStream, position: int, name: str
) -> tuple[Orientation, tuple[int, int]]:
    """Return the orientation and the displayed (width, height); only a decoded frame shows them reliably.

    The frame is not converted to pixels.
    """
    context = stream.codec_context
    context.options = {**context.options, "skip_idct": "all", "skip_loop_filter": "all"}
    try:
        container.seek(position, stream=stream, backward=True)
        packet = next(container.demux(stream))
        for frame in (*context.decode(packet), *context.decode(None)):
            return _shape_of(frame, name)
        container.seek(position, stream=stream, backward=True)  # an edit list hides the keyframe
        for frame in container.decode(stream):
            return _shape_of(frame, name)
    except (*AV_ERRORS, StopIteration) as error:
        raise VideoError(f"{name}: frame 0 {_UNDECODABLE} ({reason(error)}). Fix: {REMUX}") from error
    raise VideoError(f"{name}: no frame can be decoded. Fix: {REMUX}")


def _shape_of(frame: VideoFrame, name: str) -> tuple[Orientation, tuple[int, int]]:
    check_size(name, frame.width, frame.height)
    turn = orientation_of(frame, name)
    return turn, turn.size(frame.width, frame.height)


def _scan(name: str) -> VideoIndex:
    """Decode the complete stream once and record each frame's time. Slow (one pass over the video) but always right."""
    container, stream = open_video(name, probe=True)
    times: list[int | None] = []
    shape: tuple[Orientation, tuple[int, int]] | None = None
    with container:
        try:
            for frame in container.decode(stream):
                shape = shape or _shape_of(frame, name)
                times.append(frame.pts)
        except AV_ERRORS as error:
            what = f"frame {len(times)} {'cannot be decoded' if times else _UNDECODABLE}"
            text = f"{name}: {what} ({reason(error)}). Fix: {REDOWNLOAD}"
            raise VideoError(text) from error
        if shape is None:
            raise VideoError(f"{name}: it holds no frame that can be decoded. Fix: {REDOWNLOAD}")
        nothing = np.zeros(0, dtype=np.int64)
        pts = _sort_ticks(times, stream, name)
        return VideoIndex(
            pts=pts,
            start=np.zeros(len(times), dtype=np.int64),
            key_pts=nothing,
            key_seek=nothing,
            time_base=_time_base(stream),
            size=shape[1],
            orientation=shape[0],
            container=container.format.name,
            seekable=False,
            stamped=pts.tolist() == times,
        )


def _sort_ticks(times: list[int | None], stream: VideoStream, name: str) -> Ticks:
    """Return the presentation times of frames in the order of display.

    In AVI, the times of packets follow the order of decoding. In MPEG program streams, most pictures have no time. If
    all times exist, they are sorted. Otherwise, frames are spaced evenly at the stream's rate. Raises VideoError if
    neither times nor rate are known.
    """
    known = sorted(time for time in times if time is not None)
    if len({*known}) == len(times):
        return np.array(known, dtype=np.int64)
    rate = stream.average_rate or stream.guessed_rate
    if not rate:
        raise VideoError(f"{name}: tells neither when its frames are shown nor how many a second. Fix: {REMUX}")
    step = max(1 / (rate * _time_base(stream)), Fraction(1))
    first = known[0] if known else 0
    return np.array([first + round(step * number) for number in range(len(times))], dtype=np.int64)
