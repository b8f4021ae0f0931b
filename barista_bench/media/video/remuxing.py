"""Copies a video's pictures into MP4 unchanged, then compares each picture of the copy with the source."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import av
from av.container import InputContainer
from av.packet import Packet
from av.video.stream import VideoStream

from barista_bench.errors import DataError
from barista_bench.files.writing import atomic_write
from barista_bench.media.video.index import video_index
from barista_bench.media.video.opening import AV_ERRORS, error_line, open_video, stamp_of

REENCODE = "re-encode it (ffmpeg -i IN -c:v libx264 -crf 17 -pix_fmt yuv420p OUT.mp4), and start again with OUT.mp4"


def check_mp4(source: Path) -> None:
    """Raise DataError if MP4 cannot hold the pictures of a video. Only the header is read."""
    container, stream = open_video(str(source), probe=True)
    try:
        with container, av.open(os.devnull, "w", format="mp4") as copy:
            copy.add_stream_from_template(stream, opaque=True)
    except AV_ERRORS as error:
        raise DataError(f"{source}: {error_line(error)}. Fix: {REENCODE}") from error


def remux(source: Path, out: Path) -> None:
    """Copy the pictures of a video into MP4 unchanged, without sound and metadata.

    Data that encoders have written into the picture stream is kept. Raises DataError if MP4 cannot hold the stream, or
    if the copy shows other pictures than the source.
    """
    try:
        with atomic_write(out) as partial_path:
            _copy(source, partial_path)
            _check_copy(source, partial_path)
    except AV_ERRORS as error:
        raise DataError(f"{source}: cannot be copied into MP4 ({error_line(error)}). Fix: {REENCODE}") from error


def _copy(source: Path, out: Path) -> None:
    times = _presentation_times(source)
    ascending = sorted(times)
    delay = max(first - time for first, time in zip(ascending, times, strict=True))
    options = {"movflags": "+faststart", "fflags": "+bitexact"}
    container, stream = open_video(str(source), probe=True)
    with container, av.open(str(out), "w", format="mp4", options=options) as copy:
        target = copy.add_stream_from_template(stream, opaque=True)
        target.metadata.clear()
        for packet, time, first in zip(_packets(container, stream), times, ascending, strict=True):
            packet.pts, packet.dts = time, first - delay  # a packet may have only one of the two times
            packet.stream = target
            copy.mux(packet)


def _check_copy(source: Path, copy: Path) -> None:
    """Raise DataError if a copy has other pictures, a different number of pictures, or times that do not increase."""
    last = None
    for number, (picture, copied) in enumerate(zip_longest(_pictures(source), _pictures(copy))):
        is_same = picture is not None and copied is not None and picture[0] == copied[0]
        if not is_same or (last is not None and copied[1] <= last):
            raise DataError(f"{source}: frame {number} is another picture in its copy as MP4. Fix: {REENCODE}")
        last = copied[1]


def _packets(container: InputContainer, stream: VideoStream) -> Iterator[Packet[VideoStream]]:
    return (packet for packet in container.demux(stream) if packet.size)


def _presentation_times(source: Path) -> list[int]:
    """Return the presentation time, in ticks, of the picture in each packet; packets are in file order."""
    index = video_index(stamp_of(source))
    container, stream = open_video(str(source), probe=True)
    with container:
        if index.seekable:
            return [int(packet.pts) for packet in _packets(container, stream) if packet.pts is not None]
        # The container does not say which pictures are shown, so the decoder is asked: a picture has the time of its
        # packet.
        shown: list[int] = []
        for number, packet in enumerate(_packets(container, stream)):
            packet.pts, packet.dts = number, number
            shown += [int(frame.pts) for frame in stream.codec_context.decode(packet) if frame.pts is not None]
        shown += [int(frame.pts) for frame in stream.codec_context.decode(None) if frame.pts is not None]
    if sorted(shown) != list(range(len(index.pts))):
        raise DataError(f"{source}: its packets are not one picture each. Fix: {REENCODE}")
    times = dict(zip(shown, index.pts.tolist(), strict=True))
    return [times[number] for number in range(len(shown))]


def _pictures(path: Path) -> Iterator[tuple[bytes, int]]:
    """Yield a digest and the time in ticks of each picture, in order of display, in one pass without a seek."""
    container, stream = open_video(str(path), probe=True)
    with container:
        for number, frame in enumerate(container.decode(stream)):
            time = number if frame.pts is None else frame.pts
            yield hashlib.sha256(frame.to_ndarray(format="rgb24").tobytes()).digest(), time
