"""The times of frames are what processors of videos make of them, to a frame."""

import pytest
from hypothesis import given, strategies as st

from barista_bench.core.frame_times import FrameTimes

RATES = st.sampled_from([5.0, 23.976, 24.0, 25.0, 29.97, 30000 / 1001, 30.0, 50.0, 59.94, 60.0, 120.0])
INDICES = st.lists(st.integers(0, 200_000), min_size=2, max_size=40, unique=True).map(
    lambda found: tuple(sorted(found))
)


@given(RATES, INDICES)
def test_transformers_reads_the_second_of_each_frame_and_the_rate_of_all(fps: float, indices: tuple[int, ...]) -> None:
    video_utils = pytest.importorskip("transformers.video_utils")
    times = FrameTimes(fps, indices, max(indices) + 10)
    read = video_utils.VideoMetadata(**times.metadata())
    assert read.timestamps == list(times.seconds)
    assert read.timestamps == [index / fps for index in indices]
    assert read.duration == (max(indices) + 10) / fps
    # Processors that know one rate count `1 / sampled_fps` seconds from frame to frame: over all of them it is off by
    # less than a frame of the video.
    assert abs((len(indices) - 1) / read.sampled_fps - times.span / fps) < 1 / fps


@pytest.mark.parametrize(
    ("indices", "even"),
    [
        ((0, 24, 49, 73), True), ((0, 24, 50), False), ((7, 9), True), ((0, 1, 300, 301), False),
        ((1200, 1224, 1248, 1272, 1296, 1320), True),
    ],
)  # fmt: skip
def test_distances_are_even_up_to_rounding_and_even_frames_have_a_rate(indices: tuple[int, ...], even: bool) -> None:
    times = FrameTimes(30.0, indices)
    assert times.is_even is even
    if len(indices) == 6:
        assert times.rate == 1.25
        assert times.metadata() == {"total_num_frames": 144, "fps": 30.0, "frames_indices": list(indices)}


@given(RATES, INDICES)
def test_seconds_at_a_steady_rate_give_back_the_frames(fps: float, indices: tuple[int, ...]) -> None:
    times = FrameTimes.of_seconds(indices, [round(index / fps, 6) for index in indices])
    assert times is not None
    assert times.indices == indices
    assert times.seconds == pytest.approx([index / fps for index in indices], abs=1e-5)


def test_seconds_at_a_rate_that_varies_are_kept_to_half_a_frame_and_rates_that_are_none_refused() -> None:
    indices, seconds = (0, 1, 2, 3, 40), (0.0, 0.5, 0.6, 2.0, 4.0)
    times = FrameTimes.of_seconds(indices, seconds)
    assert times is not None
    assert times.fps == 10.0
    assert all(abs(told - true) <= 0.05 for told, true in zip(times.seconds, seconds, strict=True))
    assert FrameTimes.of_seconds((0, 0), (0.0, 0.0)) is None, "the first frame alone tells no rate"
    for fps in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="frames a second"):
            FrameTimes(fps, (0, 1))
