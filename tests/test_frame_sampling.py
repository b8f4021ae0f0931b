"""Which frames a question shows, against slow transcriptions of the rules."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from barista_bench.core.frame_times import FrameTimes
from barista_bench.errors import ConfigError, DataError
from barista_bench.media.frame_choice import at_rate, evenly_spaced, evenly_spaced_with, in_window, nearest_frame
from barista_bench.media.video import VideoFacts

totals = st.integers(1, 5000)
counts = st.integers(1, 64)


def facts(seconds: NDArray[np.float64] | list[float]) -> VideoFacts:
    times = np.asarray(seconds, dtype=np.float64)
    return VideoFacts("clip.mp4", len(times), 0.0, 4, 4, times)


@st.composite
def clips(draw: st.DrawFn) -> VideoFacts:
    """Frames at uneven times, which lie on a grid of 1/64 s so that their sums and halves are exact."""
    steps = draw(st.lists(st.integers(1, 200), max_size=60))
    return facts(np.concatenate([[0], np.cumsum(steps)]) / 64)


@given(totals, counts)
def test_evenly_spaced_keeps_both_ends_in_equal_steps(total: int, count: int) -> None:
    chosen = evenly_spaced(total, count)
    assert len(chosen) == min(total, count)
    assert list(chosen) == sorted(set(chosen))
    assert 0 <= chosen[0] <= chosen[-1] < total
    if count > 1:
        assert (chosen[0], chosen[-1]) == (0, total - 1)
        steps = np.diff(chosen)
        assert steps.size == 0 or steps.max() - steps.min() <= 1


@pytest.mark.parametrize(("total", "count", "error"), [(0, 4, DataError), (4, 0, ConfigError), (4, -1, ConfigError)])
def test_nothing_to_sample_or_nothing_asked_for_is_refused(total: int, count: int, error: type[Exception]) -> None:
    with pytest.raises(error, match="Fix"):
        evenly_spaced(total, count)


@given(st.data(), totals, st.integers(1, 24))
def test_annotated_frames_are_always_shown(data: st.DataObject, total: int, count: int) -> None:
    always = data.draw(st.sets(st.integers(0, total - 1), max_size=count))
    chosen = evenly_spaced_with(total, count, always)
    assert always <= set(chosen)
    assert len(chosen) == min(total, count)
    assert list(chosen) == sorted(set(chosen))
    kept = set(evenly_spaced(total, count)) & set(chosen)
    assert len(kept) >= len(chosen) - len(always - kept)  # no frame is moved without need


def test_annotated_frames_outside_of_the_video_or_more_than_may_be_shown_are_refused() -> None:
    with pytest.raises(DataError, match="no frame 12: there are 10"):
        evenly_spaced_with(10, 4, {3, 12})
    with pytest.raises(DataError, match="3 frames must be shown"):
        evenly_spaced_with(10, 2, {1, 2, 3})


@given(clips(), st.sampled_from([0.25, 0.5, 1.0, 2.0, 4.0, 64.0]))
def test_at_rate_takes_the_nearest_frame_to_each_time(clip: VideoFacts, fps: float) -> None:
    expected, step = set(), 0
    while step / fps <= clip.duration:
        distances = np.abs(clip.seconds - step / fps)
        expected.add(int(distances.argmin()))  # the earlier of two as near
        step += 1
    assert at_rate(clip, fps) == tuple(sorted(expected))


@pytest.mark.parametrize("number", [0.0, -1.0, 1e9, float("nan"), float("inf")])
def test_an_invalid_rate_or_time_is_refused(number: float) -> None:
    clip = facts([0.0, 1.0, 1.0, 0.5, 2.0])
    assert at_rate(clip, 1.0) == (0, 1, 4), "times that stand still are not shown twice"
    asked = [lambda: at_rate(clip, number)]
    if not np.isfinite(number):
        asked += [lambda: nearest_frame(clip, number), lambda: in_window(clip, number, 1.0)]
    for ask in asked:
        with pytest.raises(ConfigError, match="Fix"):
            ask()


@given(clips(), st.integers(0, 400), st.integers(0, 200))
def test_in_window_has_the_frames_between_both_ends(clip: VideoFacts, centre: int, half: int) -> None:
    first, last = (centre - half) / 64, (centre + half) / 64
    expected = [frame for frame, second in enumerate(clip.seconds) if first <= second <= last]
    if expected:
        assert list(in_window(clip, centre / 64, half / 64)) == expected
    else:
        with pytest.raises(DataError, match=r"clip.mp4: no frame from"):
            in_window(clip, centre / 64, half / 64)


@given(clips(), st.integers(-100, 20_000))
def test_nearest_frame_is_the_nearest(clip: VideoFacts, index: int) -> None:
    second = index / 64
    assert nearest_frame(clip, second) == int(np.abs(clip.seconds - second).argmin())


def test_frames_without_times_have_no_rate_and_no_window() -> None:
    untimed = facts([np.nan, np.nan])
    for ask in (lambda: at_rate(untimed, 1.0), lambda: in_window(untimed, 0, 1), lambda: nearest_frame(untimed, 0)):
        with pytest.raises(DataError, match=r"clip.mp4: the times of its frames are not known.*Fix"):
            ask()


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


def test_seconds_at_a_varying_rate_are_kept_to_half_a_frame_and_impossible_rates_refused() -> None:
    indices, seconds = (0, 1, 2, 3, 40), (0.0, 0.5, 0.6, 2.0, 4.0)
    times = FrameTimes.of_seconds(indices, seconds)
    assert times is not None
    assert times.fps == 10.0
    assert all(abs(told - true) <= 0.05 for told, true in zip(times.seconds, seconds, strict=True))
    assert FrameTimes.of_seconds((0, 0), (0.0, 0.0)) is None, "the first frame alone tells no rate"
    for fps in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="frames a second"):
            FrameTimes(fps, (0, 1))
