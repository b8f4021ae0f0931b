"""What cannot be encoded is refused, and leaves no file."""

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from barista_bench.errors import ConfigError, DataError
from barista_bench.media.encoding import encode_video, join_videos
from barista_bench.media.video import video_facts


@pytest.mark.parametrize(("size", "fps"), [((63, 32), 30), ((0, 2), 30), ((64, 32), 0), ((64, 32), -1)])
def test_sizes_and_rates_that_cannot_be_encoded_are_refused(tmp_path: Path, size: tuple[int, int], fps: int) -> None:
    with pytest.raises(ConfigError, match="Fix"):
        encode_video(tmp_path / "clip.mp4", iter(()), size=size, fps=fps)


def test_a_failed_encoding_leaves_no_file(tmp_path: Path) -> None:
    pictures = [np.zeros((32, 64, 3), np.uint8), np.zeros((30, 64, 3), np.uint8)]
    with pytest.raises(DataError, match="frame 1 is "):
        encode_video(tmp_path / "clip.mp4", pictures, size=(64, 32), fps=5)
    with pytest.raises(DataError, match="no frame to write"):
        encode_video(tmp_path / "clip.mp4", [], size=(64, 32), fps=5)
    assert not list(tmp_path.iterdir())


def test_the_same_pictures_give_the_same_bytes_at_the_wanted_size_and_rate(tmp_path: Path) -> None:
    pictures = [np.full((32, 64, 3), 8 * index, np.uint8) for index in range(30)]
    first, second = (
        encode_video(tmp_path / f"{name}.mp4", pictures, size=(64, 32), fps=Fraction(15, 2)) for name in "ab"
    )
    assert first.read_bytes() == second.read_bytes()
    facts = video_facts(first)
    assert (facts.frame_count, facts.width, facts.height) == (30, 64, 32)
    assert facts.fps == pytest.approx(7.5)


def test_joined_videos_have_the_frames_and_times_of_their_parts(tmp_path: Path) -> None:
    parts = []
    for number, count in enumerate((7, 30, 1)):
        pictures = [np.full((48, 64, 3), 20 * number + at, np.uint8) for at in range(count)]
        parts.append(encode_video(tmp_path / f"{number}.mp4", pictures, size=(64, 48), fps=25))
    joined = decoded(join_videos(tmp_path / "all.mp4", parts, fps=25))
    alone = [picture for part in parts for _, picture in decoded(part)]
    assert [time for time, _ in joined] == [Fraction(at, 25) for at in range(38)]
    assert all((one == other).all() for (_, one), other in zip(joined, alone, strict=True))
    with pytest.raises(DataError, match="no clip"):
        join_videos(tmp_path / "none.mp4", [], fps=25)


def decoded(path: Path) -> list[tuple[Fraction, np.ndarray]]:
    with av.open(str(path)) as container:
        frames = list(container.decode(video=0))
    return [(frame.pts * frame.time_base, frame.to_ndarray(format="rgb24")) for frame in frames]
