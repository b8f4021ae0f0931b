"""Small videos for the tests, rendered with PyAV. The index of each frame is painted in its pixels.

Frames are 192 x 96 px. The top 16 rows hold 12 blocks of 16 x 16 px, white for a set bit of the frame's
index, black otherwise, the most significant bit first. Below, a pattern moves so that frames refer to each
other.
"""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from pathlib import Path

import av
import av.error
import numpy as np
import pytest
from numpy.typing import NDArray

WIDTH, HEIGHT, BLOCK, BITS = 192, 96, 16, 12
Image = NDArray[np.uint8]

X264 = {"preset": "ultrafast", "tune": "", "bf": "3", "g": "24", "crf": "20", "b_strategy": "0"}


def paint(index: int) -> Image:
    """The image of frame `index`: uint8 RGB (96, 192, 3)."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    image = np.stack([x + 3 * index, y * 2 + index, (x + y) // 2 - 2 * index], axis=-1).astype(np.uint8) // 2 + 60
    image[20:60, (index * 3) % 150 : (index * 3) % 150 + 30] = 220
    bits = [(index >> (BITS - 1 - k)) & 1 for k in range(BITS)]
    image[:BLOCK] = np.repeat(np.array(bits, dtype=np.uint8) * 255, BLOCK)[None, :, None]
    return image


def painted_index(image: Image) -> int:
    """The index painted in an image (96, 192, 3) in stored orientation."""
    blocks = image[4:12].reshape(8, BITS, BLOCK, 3)[:, :, 4:12].mean(axis=(0, 2, 3))
    return int("".join("1" if value > 128 else "0" for value in blocks), 2)


def render(
    path: Path,
    count: int = 120,
    codec: str = "libx264",
    options: dict[str, str] | None = None,
    *,
    ticks: Sequence[int] | None = None,
    rotation: tuple[int, bool] | None = None,
    container_options: dict[str, str] | None = None,
    size: tuple[int, int] = (WIDTH, HEIGHT),
) -> Path:
    """Render `count` frames at 30 per second, or at `ticks` of 1/600 s. Skips the test where the
    encoder is missing.
    """
    try:
        av.codec.Codec(codec, "w")
    except av.error.FFmpegError:
        pytest.skip(f"PyAV's build has no encoder {codec}")
    with av.open(str(path), "w", container_options=container_options or {}) as container:
        stream = container.add_stream(codec, rate=30)
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        stream.codec_context.time_base = Fraction(1, 600)
        stream.codec_context.options = X264 if options is None else options
        if rotation:
            stream.set_display_rotation(rotation[0], hflip=rotation[1])
        for index in range(count):
            frame = av.VideoFrame.from_ndarray(paint(index), format="rgb24").reformat(*size, format="yuv420p")
            frame.pts = ticks[index] if ticks else index * 20
            frame.time_base = Fraction(1, 600)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def cut_by_copy(source: Path, path: Path, first: int, last: int) -> Path:
    """Copy packets of frames `first` to `last` without encoding; packets before `first` stay behind an
    edit list.
    """
    options = {"avoid_negative_ts": "disabled", "use_editlist": "1"}
    with av.open(str(source)) as old, av.open(str(path), "w", options=options) as new:
        stream = old.streams.video[0]
        copy = new.add_stream_from_template(stream)
        tick = int(1 / (30 * stream.time_base))
        zero, end = first * tick, last * tick
        packets = [packet for packet in old.demux(stream) if packet.size]
        begin = max(k for k, packet in enumerate(packets) if packet.is_keyframe and packet.pts <= zero)
        for packet in packets[begin:]:
            if packet.dts > end:  # in decoding order: no kept frame loses its reference frame
                break
            packet.pts, packet.dts = packet.pts - zero, packet.dts - zero
            packet.stream = copy
            new.mux(packet)
    return path


def copy_into(source: Path, path: Path, options: dict[str, str] | None = None) -> Path:
    """Put the packets of `source` into another container without encoding."""
    with av.open(str(source)) as old, av.open(str(path), "w", options=options or {}) as new:
        stream = old.streams.video[0]
        copy = new.add_stream_from_template(stream)
        for packet in old.demux(stream):
            if packet.size:
                packet.stream = copy
                new.mux(packet)
    return path


def decode_in_order(path: Path) -> list[Image]:
    """The reference: all frames of a file, decoded one after the other with an ordinary open, in stored
    orientation.
    """
    with av.open(str(path)) as container:
        return [np.asarray(frame.to_ndarray(format="rgb24")) for frame in container.decode(video=0)]


def painted(images: Iterable[Image]) -> list[int]:
    """The indices painted in several images."""
    return [painted_index(image) for image in images]


X265 = {
    "preset": "ultrafast",
    "x265-params": "log-level=none:keyint=24:min-keyint=24:open-gop=1:bframes=3:b-adapt=0:pools=1",
}
LAYERS = {"preset": "ultrafast", "x265-params": "log-level=none:keyint=24:bframes=3:b-adapt=0:temporal-layers=3"}
PYRAMID = {"preset": "fast", "g": "250", "x264-params": "bframes=4:b-adapt=0:b-pyramid=normal"}
VARIABLE = [int(t) for t in np.cumsum(np.random.default_rng(0).integers(7, 60, 120))]

RECIPES: dict[str, Callable[[Path, "Samples"], Path]] = {
    "cfr.mp4": lambda path, _: render(path),
    "no_b_frames.mp4": lambda path, _: render(path, options=X264 | {"bf": "0"}),
    "tiny_gops.mp4": lambda path, _: render(path, options=X264 | {"bf": "2", "g": "3"}),
    "pyramid.mp4": lambda path, _: render(path, options=PYRAMID),
    "variable_rate.mp4": lambda path, _: render(path, ticks=VARIABLE),
    "open_gop.mp4": lambda path, _: render(path, options=X264 | {"x264-params": "open-gop=1"}),
    "hevc_open_gop.mp4": lambda path, _: render(path, codec="libx265", options=X265),
    "hevc_layers.mp4": lambda path, _: render(path, codec="libx265", options=LAYERS),
    "mpeg4.mp4": lambda path, _: render(path, codec="mpeg4", options={"bf": "2", "g": "24"}),
    "av1.mp4": lambda path, _: render(path, codec="libsvtav1", options={"preset": "10", "g": "24"}),
    "vp9.webm": lambda path, _: render(
        path, codec="libvpx-vp9", options={"deadline": "realtime", "cpu-used": "8", "g": "24"}
    ),
    "mpeg4.avi": lambda path, _: render(path, codec="mpeg4", options={"g": "24"}),
    "edit_list.mp4": lambda path, made: cut_by_copy(made("cfr.mp4"), path, 30, 95),
    "edit_list_open_gop.mp4": lambda path, made: cut_by_copy(made("open_gop.mp4"), path, 30, 95),
    "edit_list_hevc.mp4": lambda path, made: cut_by_copy(made("hevc_open_gop.mp4"), path, 30, 95),
    "transport.ts": lambda path, made: copy_into(made("cfr.mp4"), path),
    "matroska.mkv": lambda path, made: copy_into(made("cfr.mp4"), path),
    "hevc.mkv": lambda path, made: copy_into(made("hevc_open_gop.mp4"), path),
    "fragmented.mp4": lambda path, made: copy_into(made("cfr.mp4"), path, {"movflags": "frag_keyframe+empty_moov"}),
    "rotated_90.mp4": lambda path, _: render(path, 30, rotation=(90, False)),
    "rotated_180.mp4": lambda path, _: render(path, 30, rotation=(180, False)),
    "rotated_270.mp4": lambda path, _: render(path, 30, rotation=(-90, False)),
    "mirrored.mp4": lambda path, _: render(path, 30, rotation=(0, True)),
    "rotated_90.mkv": lambda path, made: render(path, 30, rotation=(90, False)),
}
CUT = {"edit_list.mp4", "edit_list_open_gop.mp4", "edit_list_hevc.mp4"}


class Samples:
    """Renders each sample once per test session."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, name: str) -> Path:
        path = self.folder / name
        if not path.exists():
            part = RECIPES[name](self.folder / f"part_{name}", self)
            part.rename(path)
        return path
