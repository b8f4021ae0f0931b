"""Encodes small videos, for the kitchen and for the small releases of other benchmarks that are made from it.

With the same build of FFmpeg, the same frames give the same bytes: only one thread encodes, and no date is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from barista_bench.errors import ConfigError, DataError
from barista_bench.files.writing import atomic_write

Picture = NDArray[np.uint8]


def encode_video(out: str | Path, pictures: Iterable[Picture], *, size: tuple[int, int], fps: Fraction | int) -> Path:
    """Write pictures as H.264 video in an MP4 file, with one keyframe per second.

    The file appears only when it is complete.

    Args:
        out: target path; an existing file is replaced.
        pictures: uint8 RGB, each of shape (height, width, 3).
        size: (width, height) in pixels, both even.
        fps: frames per second.

    Raises:
        ConfigError: the size is odd or the rate is not positive.
        DataError: there is no picture, or a picture has another size.
    """
    target, (width, height), rate = Path(out), size, Fraction(fps)
    if width % 2 or height % 2 or min(size) < 2:
        raise ConfigError(f"{target}: {width}x{height} px cannot be encoded. Fix: give even sizes of 2 or more")
    if rate <= 0:
        raise ConfigError(f"{target}: {rate} frames a second. Fix: give a positive number")
    keyframe_interval = max(1, round(rate))
    options = {
        "preset": "superfast",
        "crf": "20",
        "x264-params": f"keyint={keyframe_interval}:min-keyint={keyframe_interval}:scenecut=0:open-gop=0:bframes=2",
    }
    frame_number = 0
    with atomic_write(target) as part:
        with av.open(str(part), "w", format="mp4", options={"movflags": "+faststart"}) as container:
            stream = container.add_stream("libx264", rate=rate, options=options)
            stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
            stream.codec_context.thread_count = 1  # with several threads, the bytes would depend on the machine
            for picture in pictures:
                rgb = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
                frame = rgb.reformat(format="yuv420p")
                if (frame.width, frame.height) != size:
                    raise DataError(
                        f"{target}: frame {frame_number} is {frame.width}x{frame.height} px, not {width}x{height} px. "
                        "Fix: give pictures of one size"
                    )
                frame.pts, frame.time_base = frame_number, 1 / rate
                container.mux(stream.encode(frame))
                frame_number += 1
            container.mux(stream.encode())
        if not frame_number:
            raise DataError(f"{target}: there is no frame to write. Fix: choose frames that the source has")
    return target


def resize_pictures(pictures: Iterable[Picture], size: tuple[int, int]) -> Iterator[Picture]:
    """Resize pictures to (width, height) in pixels; pictures that have this size stay unchanged."""
    for picture in pictures:
        if (picture.shape[1], picture.shape[0]) == size:
            yield picture
        else:
            yield np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.BILINEAR), dtype=np.uint8)


def join_videos(out: str | Path, clips: Sequence[Path], *, fps: Fraction | int) -> Path:
    """Join videos of `encode_video` to one video, without encoding them again.

    Args:
        clips: videos of one size and rate. This module must have made them, so that each begins with a keyframe.

    Raises:
        DataError: there is no clip.
    """
    target, rate = Path(out), Fraction(fps)
    if not clips:
        raise DataError(f"{target}: there is no clip to write. Fix: choose clips that the source has")
    with (
        atomic_write(target) as part,
        av.open(str(part), "w", format="mp4", options={"movflags": "+faststart"}) as container,
    ):
        stream, frames_before = None, 0
        for path in clips:
            with av.open(str(path)) as clip:
                source = clip.streams.video[0]
                stream = stream or container.add_stream_from_template(source)
                assert source.time_base is not None  # H.264 in MP4 has one
                shift = round(frames_before / rate / source.time_base)
                for packet in clip.demux(source):
                    if packet.dts is not None and packet.pts is not None:
                        packet.dts, packet.pts, packet.stream = packet.dts + shift, packet.pts + shift, stream
                        container.mux(packet)
                        frames_before += 1
    return target
