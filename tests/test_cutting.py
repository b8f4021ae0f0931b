"""Clips cut from a video and joined again show the frames that they should, in order."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from barista_bench.errors import ConfigError, DataError
from barista_bench.media.video import open_reader, video_facts
from barista_bench.mini.cutting import cut_clip, encode_video
from tests.video_samples import HEIGHT, WIDTH, paint, painted_index, render


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return render(tmp_path_factory.mktemp("cutting") / "source.mp4", count=80)


def painted(path: Path) -> list[int]:
    with open_reader(path) as reader:
        return [painted_index(frame) for frame in reader.read(range(len(reader)))]


def test_a_clip_shows_its_frames_at_the_sources_rate(source: Path, tmp_path: Path) -> None:
    clip = cut_clip(source, tmp_path / "clip.mp4", 5, 75)
    assert painted(clip) == list(range(5, 75))
    facts = video_facts(clip)
    assert facts.fps == pytest.approx(30)
    assert (facts.width, facts.height) == (WIDTH, HEIGHT)


def test_a_reversed_clip_shows_the_last_frame_first(source: Path, tmp_path: Path) -> None:
    assert painted(cut_clip(source, tmp_path / "clip.mp4", 5, 50, reverse=True)) == list(range(49, 4, -1))


def test_a_clip_may_have_another_size_and_rate(source: Path, tmp_path: Path) -> None:
    facts = video_facts(cut_clip(source, tmp_path / "clip.mp4", 0, 30, size=(64, 32), fps=Fraction(15, 2)))
    assert (facts.frame_count, facts.width, facts.height) == (30, 64, 32)
    assert facts.fps == pytest.approx(7.5)


def test_the_same_cut_gives_the_same_bytes(source: Path, tmp_path: Path) -> None:
    first, second = (cut_clip(source, tmp_path / f"{name}.mp4", 3, 40) for name in "ab")
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(("start", "stop"), [(-1, 4), (4, 4), (6, 4), (0, 81)])
def test_frames_that_the_source_lacks_are_refused(source: Path, tmp_path: Path, start: int, stop: int) -> None:
    with pytest.raises(DataError, match=r"source\.mp4: no frames"):
        cut_clip(source, tmp_path / "clip.mp4", start, stop)


def test_a_folder_of_frames_is_cut_when_its_rate_is_told(tmp_path: Path) -> None:
    for index in range(6):
        Image.fromarray(paint(index)).save(tmp_path / f"{index}.png")
    with pytest.raises(DataError, match="frames a second are not known"):
        cut_clip(tmp_path, tmp_path / "clip.mp4", 1, 5)
    assert painted(cut_clip(tmp_path, tmp_path / "clip.mp4", 1, 5, fps=4)) == [1, 2, 3, 4]


@pytest.mark.parametrize(("size", "fps"), [((63, 32), 30), ((0, 2), 30), ((64, 32), 0), ((64, 32), -1)])
def test_sizes_and_rates_that_cannot_be_encoded_are_refused(tmp_path: Path, size: tuple[int, int], fps: int) -> None:
    with pytest.raises(ConfigError, match="Remedy"):
        encode_video(tmp_path / "clip.mp4", iter(()), size=size, fps=fps)


def test_a_failed_encoding_leaves_no_file(tmp_path: Path) -> None:
    pictures = [np.zeros((32, 64, 3), np.uint8), np.zeros((30, 64, 3), np.uint8)]
    with pytest.raises(DataError, match="frame 1 has shape"):
        encode_video(tmp_path / "clip.mp4", pictures, size=(64, 32), fps=5)
    with pytest.raises(DataError, match="no frame to write"):
        encode_video(tmp_path / "clip.mp4", [], size=(64, 32), fps=5)
    assert not list(tmp_path.iterdir())
