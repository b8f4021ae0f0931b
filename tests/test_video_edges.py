"""Videos as other tools write them: B-frames in AVI and Matroska, AV1, gradual intra refresh, damage."""

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from barista_bench.annotate.project import open_project, start
from barista_bench.errors import DataError, VideoError
from barista_bench.media.video import open_reader
from barista_bench.media.video.remuxing import check_mp4, remux

FRAMES, SIZE = 60, (64, 48)
B_FRAMES = {"bf": "2", "preset": "superfast"}


def encode(path: Path, codec: str, options: dict[str, str] | None = None, frames: int = FRAMES) -> Path:
    """A video whose pictures all differ, 30 a second."""
    if codec not in av.codecs_available:
        pytest.skip(f"this build of PyAV has no {codec}")
    noise = np.random.default_rng(0).integers(0, 255, (*SIZE[::-1], 3), dtype=np.uint8)
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=30, options=options or {})
        stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
        for number in range(frames):
            picture = np.roll(noise, 3 * number, axis=1)
            picture[:8, : number + 1] = 255
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, 30)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def decoded_in_order(path: Path) -> list[bytes]:
    """Pictures from the first packet on, by one thread, without a seek: the reference."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_type, stream.codec_context.thread_count = "NONE", 1
        return [frame.to_ndarray(format="rgb24").tobytes() for frame in container.decode(stream)]


def read_alone(path: Path, index: int) -> bytes:
    with open_reader(path) as reader:
        return np.ascontiguousarray(reader.read([index])[0]).tobytes()


def read_all(path: Path) -> list[bytes]:
    with open_reader(path) as reader:
        return [np.ascontiguousarray(picture).tobytes() for picture in reader.read(range(len(reader)))]


COPIED = [
    ("clip.avi", "libx264", B_FRAMES),
    ("clip.mkv", "libx264", B_FRAMES),
    ("clip.ts", "libx264", B_FRAMES),
    ("clip.mkv", "libx265", {"x265-params": "log-level=none", "preset": "superfast"}),
    ("clip.mkv", "libsvtav1", {"preset": "12"}),
    ("clip.mp4", "libaom-av1", {"cpu-used": "8"}),
    ("clip.webm", "libvpx-vp9", {"cpu-used": "8"}),
    ("clip.mpg", "mpeg2video", {"bf": "2"}),
]


@pytest.mark.parametrize(("name", "codec", "options"), COPIED, ids=[f"{name}-{codec}" for name, codec, _ in COPIED])
def test_what_mp4_can_hold_is_copied_picture_by_picture_at_rising_times(
    name: str, codec: str, options: dict[str, str], tmp_path: Path
) -> None:
    source = encode(tmp_path / name, codec, options)
    check_mp4(source)
    remux(source, tmp_path / "copy.mp4")
    expected = decoded_in_order(source)
    assert read_all(source) == expected
    assert read_all(tmp_path / "copy.mp4") == expected
    assert all(read_alone(source, index) == expected[index] for index in (5, 31, FRAMES - 1))
    for path in (source, tmp_path / "copy.mp4"):
        with open_reader(path) as reader:
            assert (np.diff(reader.index.seconds) > 0).all()
            assert reader.fps == pytest.approx(30, abs=0.02)


def test_a_project_starts_with_what_an_export_can_write_and_says_the_rest(tmp_path: Path) -> None:
    videos = tmp_path / "videos"
    videos.mkdir()
    encode(videos / "good.avi", "libx264", B_FRAMES)
    encode(videos / "phone.3gp", "libx264", B_FRAMES)
    encode(videos / "old.mkv", "mpeg2video")
    encode(videos / "vp8.webm", "libvpx", {"cpu-used": "8"})
    start(tmp_path / "project", videos)
    file = open_project(tmp_path / "project").file
    assert set(file.videos) == {"good", "phone", "old"}
    assert "format does not support 'vp8' codec. Fix: re-encode it (ffmpeg" in file.lost["vp8.webm"]
    with pytest.raises(DataError, match="vp8"):
        check_mp4(videos / "vp8.webm")


def test_gradual_intra_refresh_is_read_from_a_picture_that_stands_alone(tmp_path: Path) -> None:
    stream = tmp_path / "stream.h264"
    encode(stream, "libx264", {"x264-params": "intra-refresh=1:keyint=20:bframes=0"}, frames=150)
    path = tmp_path / "clip.mp4"
    with av.open(str(stream)) as source, av.open(str(path), "w") as copy:
        target = copy.add_stream_from_template(source.streams.video[0])
        for number, packet in enumerate(packet for packet in source.demux(video=0) if packet.size):
            packet.pts = packet.dts = number
            packet.time_base, packet.stream = Fraction(1, 30), target
            copy.mux(packet)
    expected = decoded_in_order(path)
    for index in (84, 95, 103, 140):
        assert read_alone(path, index) == expected[index]
    assert read_all(path) == expected


@pytest.mark.parametrize("name", ["clip.mp4", "clip.mkv", "clip.avi"])
@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_file_gives_the_same_in_every_fresh_reader_and_never_what_is_known_to_be_damaged(
    name: str, seed: int, tmp_path: Path
) -> None:
    path = encode(tmp_path / name, "libx264", B_FRAMES)
    data, random = bytearray(path.read_bytes()), np.random.default_rng(seed)
    place = int(random.integers(len(data) // 2, len(data) * 3 // 4))
    data[place : place + 30] = random.integers(0, 256, 30, dtype=np.uint8).tobytes()
    path.write_bytes(data)
    expected, damaged = [], []
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_type, stream.codec_context.thread_count = "NONE", 1
        try:
            for frame in container.decode(stream):
                expected.append(frame.to_ndarray(format="rgb24").tobytes())
                damaged.append(frame.is_corrupt)
        except av.error.InvalidDataError:
            damaged += [True] * (FRAMES - len(damaged))
    for index in range(3, min(FRAMES, len(expected)), 7):
        outcomes = set()
        for _ in range(5):
            try:
                outcomes.add(read_alone(path, index))
            except VideoError:
                outcomes.add(b"refused")
        assert len(outcomes) == 1
        assert outcomes <= ({b"refused"} if damaged[index] else {b"refused", expected[index]})
