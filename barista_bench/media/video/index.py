"""Indexes the frames of video files without decoding them.

Times are in ticks of the stream's time base. A frame is identified by its presentation time (pts), and the reader
checks this time for every decoded frame. In some streams the packets do not determine the frames (MPEG-TS, AVI, missing
or repeated times, frames before the first keyframe). Such streams are decoded once for the index, and read from the
start (`seekable` is False).

A folder of images has an index too: every frame is a keyframe, and the times are not known (the time base is 0).
"""

import functools
import os
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import av.error
import numpy as np
from av.container import InputContainer
from av.video.frame import VideoFrame
from av.video.stream import VideoStream
from numpy.typing import NDArray

from barista_bench.errors import VideoError
from barista_bench.files.file_cache import FileStamp, read_cached
from barista_bench.media.video.frame_folder import MAX_PIXELS, REMUX, check_size, folder_size, frame_files
from barista_bench.media.video.opening import (
    AV_ERRORS,
    REDOWNLOAD,
    Orientation,
    Stamp,
    error_line,
    open_video,
    orientation_of,
)

Ticks = NDArray[np.int64]
_SEEKABLE = ("mov,mp4,m4a,3gp,3g2,mj2", "matroska,webm")  # FFmpeg's names of the containers with exact seeking
_CACHE_LIMIT = 256  # an index takes about 60 KB for 2,500 frames

_UNDECODABLE = f"cannot be decoded, or has more than {MAX_PIXELS // 2**20} Mpx"
"""Message for a picture that is larger than its header declares."""


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
        raise VideoError(_truncation_text(name, len(packets.pts), stream.frames, f" ({error_line(error)})")) from error
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
        raise VideoError(f"{name}: frame 0 {_UNDECODABLE} ({error_line(error)}). Fix: {REMUX}") from error
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
            text = f"{name}: {what} ({error_line(error)}). Fix: {REDOWNLOAD}"
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
