"""Segments of contact and the keyframes in them."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from barista_bench.annotate.project import SegmentSettings
from barista_bench.annotate.segments import choose_keyframes, interaction_segments
from tests.conftest import SHARED

NAN = math.nan


def settings(**changed: float) -> SegmentSettings:
    return SegmentSettings(**{"median_s": 0, "shortest_s": 0, "gap_s": 0, **changed})


EXACT = settings()


def test_recorded_signals_give_their_segments_and_keyframes() -> None:
    path = SHARED / "data" / "interaction_signals.json"
    if not path.is_file():
        pytest.skip(f"{path} is absent: the vectors are not part of this repository")
    for case in json.loads(path.read_text())["cases"]:
        signal = [NAN if value is None else value for count, value in case["signal_runs"] for _ in range(count)]
        segments = interaction_segments(signal, case["fps"], SegmentSettings(**case["options"]))
        assert segments == [tuple(segment) for segment in case["segments"]], case["name"]
        assert choose_keyframes(segments, len(signal), 500) == case["keyframes"], case["name"]


@pytest.mark.parametrize(
    ("signal", "settings", "segments"),
    [
        pytest.param([NAN, NAN, 1, NAN, NAN, 0, NAN], EXACT, [(2, 5)], id="unmeasured: the last value, before it none"),
        pytest.param([0.49, 0.5, 0.49], EXACT, [(1, 2)], id="contact begins at the threshold"),
        pytest.param([0, 1, 0, 0, 0, 1, 1, 0, 1, 1, 0, 0], settings(median_s=0.3), [(5, 10)], id="median"),
        pytest.param([1, 1, 0, 1, 1, 0, 1, 1], settings(shortest_s=0.3, gap_s=0.2), [], id="dropped, then closed"),
        pytest.param([1, 1, 0, 1, 1, 0, 1, 1], settings(shortest_s=0.2, gap_s=0.2), [(0, 8)], id="gaps are closed"),
    ],
)
def test_stretches_of_contact_at_ten_frames_a_second(
    signal: list[float], settings: SegmentSettings, segments: list[tuple[int, int]]
) -> None:
    assert interaction_segments(signal, 10, settings) == segments


def test_a_duration_of_whole_frames_is_that_many_frames() -> None:
    assert 1.1 * 50 > 55  # in floating point
    assert 0.29 * 100 < 29
    signal = [1] * 55 + [0] * 29 + [1] * 55
    assert interaction_segments(signal, 50, settings(shortest_s=1.1)) == [(0, 55), (84, 139)]
    assert interaction_segments(signal, 100, settings(gap_s=0.29)) == [(0, 139)]


def test_a_single_frame_which_has_no_rate_may_be_contact() -> None:
    assert interaction_segments([1], 0, SegmentSettings()) == [(0, 1)]


@given(st.lists(st.floats(0, 1) | st.just(NAN), max_size=60), st.integers(1, 60), st.floats(0, 1), st.floats(0, 1))
def test_segments_are_apart_long_enough_and_in_order(
    signal: list[float], fps: int, shortest_s: float, gap_s: float
) -> None:
    segments = interaction_segments(signal, fps, SegmentSettings(shortest_s=shortest_s, gap_s=gap_s))
    assert all(end - start >= round(shortest_s * fps, 6) for start, end in segments)
    assert all(0 <= start < end <= len(signal) for start, end in segments)
    assert all(after[0] - before[1] > round(gap_s * fps, 6) for before, after in pairwise(segments))


@given(st.lists(st.booleans(), min_size=1, max_size=80))
def test_without_filters_segments_are_exactly_the_frames_of_contact(contact: list[bool]) -> None:
    covered = np.zeros(len(contact), dtype=bool)
    for start, end in interaction_segments(np.array(contact, float), 10, EXACT):
        covered[start:end] = True
    assert covered.tolist() == contact


@given(st.integers(1, 3000), st.integers(1, 700), st.data())
def test_keyframes_hold_every_centre_and_are_never_farther_apart_than_the_reach(
    count: int, reach: int, data: st.DataObject
) -> None:
    edges = sorted(data.draw(st.sets(st.integers(0, count), max_size=8)))
    segments = list(zip(edges[::2], edges[1::2], strict=False))
    chosen = choose_keyframes(segments, count, reach)
    assert chosen == sorted(set(chosen))
    assert chosen
    assert {(start + end - 1) // 2 for start, end in segments} <= set(chosen)
    assert all(b - a <= reach for a, b in pairwise([0, *chosen, count - 1]))


@given(st.integers(1, 3000), st.integers(1, 700))
def test_no_more_keyframes_are_added_than_the_reach_asks_for(count: int, reach: int) -> None:
    middle = (count - 1) // 2
    added = [max(math.ceil(side / reach) - 1, 0) for side in (middle, count - 1 - middle)]
    assert len(choose_keyframes([], count, reach)) == 1 + sum(added)
