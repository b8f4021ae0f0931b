"""Videos as other tools write them: B-frames in AVI and Matroska, AV1, gradual intra refresh, damage."""

import re
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from barista_bench.annotate.project import open_project, start_project, track_notes
from barista_bench.errors import DataError, VideoError
from barista_bench.media.video import open_reader, pyav_reader
from barista_bench.media.video.opening import open_video
from barista_bench.media.video.pyav_reader import PyavReader
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
        stream.width, stream.height, stream.pix_fmt = *SIZE, "yuvj420p" if codec == "mjpeg" else "yuv420p"
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
def test_a_copy_in_mp4_has_the_same_pictures_at_rising_times(
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


def test_a_project_starts_with_the_parts_that_an_export_can_write_and_reports_the_rest(tmp_path: Path) -> None:
    videos = tmp_path / "videos"
    videos.mkdir()
    encode(videos / "good.avi", "libx264", B_FRAMES)
    encode(videos / "phone.3gp", "libx264", B_FRAMES)
    encode(videos / "old.mkv", "mpeg2video")
    encode(videos / "vp8.webm", "libvpx", {"cpu-used": "8"})
    start_project(tmp_path / "project", videos)
    file = open_project(tmp_path / "project").file
    assert set(file.videos) == {"good", "phone", "old"}
    assert "format does not support 'vp8' codec. Fix: re-encode it (ffmpeg" in file.lost["vp8.webm"]
    with pytest.raises(DataError, match="vp8"):
        check_mp4(videos / "vp8.webm")


def test_gradual_intra_refresh_is_read_from_a_picture_that_needs_no_other(tmp_path: Path) -> None:
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
def test_a_damaged_file_reads_the_same_in_every_fresh_reader_and_gives_no_damaged_frame(
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


def damaged(path: Path, seed: int) -> Path:
    data, random = bytearray(path.read_bytes()), np.random.default_rng(seed)
    place = int(random.integers(len(data) // 2, len(data) * 3 // 4))
    data[place : place + 30] = random.integers(0, 256, 30, dtype=np.uint8).tobytes()
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("name", "codec"), [("clip.mkv", "mpeg2video"), ("clip.mp4", "libx264"), ("clip.ts", "libx264")]
)
def test_one_pass_finds_the_frames_that_a_reader_refuses(name: str, codec: str, tmp_path: Path) -> None:
    path = damaged(encode(tmp_path / name, codec, {"g": "12", "bf": "2"}, frames=30), 1)
    refused = []
    with PyavReader(path) as reader:
        for index in range(len(reader)):
            try:
                reader.read([index])
            except VideoError:
                refused.append(index)
        assert reader.undecodable() == refused
    assert refused or codec == "libx264"


def test_validation_decodes_a_damaged_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = damaged(encode(tmp_path / "clip.mkv", "mpeg2video", {"g": "12", "bf": "2"}, frames=30), 1)
    opened: list[str] = []
    monkeypatch.setattr(pyav_reader, "open_video", lambda name, **more: opened.append(name) or open_video(name, **more))
    with PyavReader(path) as reader:
        assert len(reader.undecodable()) > 1
    assert len(opened) == 2, "for the groups of frames, and for the rest"


def test_a_damaged_video_is_lost_at_the_start_of_a_project(tmp_path: Path) -> None:
    videos = tmp_path / "videos"
    videos.mkdir()
    encode(videos / "good.mp4", "libx264", frames=10)
    damaged(encode(videos / "bad.mkv", "mpeg2video", {"g": "12", "bf": "2"}, frames=30), 1)
    start_project(tmp_path / "project", videos)
    file = open_project(tmp_path / "project").file
    assert set(file.videos) == {"good"}
    assert re.search(
        r"bad\.mkv: \d+ of 30 frames cannot be decoded, the first is \d+\. Fix: re-encode", file.lost["bad.mkv"]
    )


def test_a_damaged_picture_of_motion_jpeg_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "clip.mov"
    encode(path, "mjpeg", frames=10)
    expected = decoded_in_order(path)
    with av.open(str(path)) as container:
        packet = [packet for packet in container.demux(video=0) if packet.size][4]
    data = bytearray(path.read_bytes())
    place = packet.pos + packet.size // 2
    data[place : place + 2] = b"\xff\xd9"  # the end of a picture
    path.write_bytes(data)
    kept = [index for index in range(10) if index != 4]
    with PyavReader(path) as reader:
        assert reader.undecodable() == [4]
        assert [picture.tobytes() for picture in reader.read(kept)] == [expected[index] for index in kept]


def test_the_used_track_is_named_if_another_track_is_the_default(tmp_path: Path) -> None:
    encode(tmp_path / "clip.mp4", "libx264", frames=5)
    videos = tmp_path / "videos"
    videos.mkdir()
    with av.open(str(tmp_path / "clip.mp4")) as source, av.open(str(videos / "two.mkv"), "w") as both:
        targets = [both.add_stream_from_template(source.streams.video[0]) for _ in range(2)]
        targets[0].disposition = 0
        targets[1].disposition = av.stream.Disposition.default
        for packet in [packet for packet in source.demux(video=0) if packet.size]:
            for target in targets:
                packet.stream = target
                both.mux(packet)
    project = start_project(tmp_path / "project", videos)
    (note,) = track_notes(project)
    assert "the first of its 2 video tracks is used, and track 2 is the default" in note
