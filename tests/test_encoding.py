"""What cannot be encoded is refused, and leaves no file."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from barista_bench.errors import ConfigError, DataError
from barista_bench.media.encoding import encode_video
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
