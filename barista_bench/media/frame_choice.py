"""Choose the frames of a video that a question shows.

The functions only compute indices of frames: distinct, in order, counted from 0.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from barista_bench.errors import ConfigError, DataError
from barista_bench.media.video.readers import VideoFacts

MAX_RATE = 1000.0
"""Highest rate, in frames per second."""
_CLOSE = 1e-6
"""Seconds by which rounding may change times; far less than the time between two frames."""


def evenly_spaced(total: int, count: int) -> tuple[int, ...]:
    """Choose `count` of `total` frames in equal steps, always including the first and the last.

    Chosen frame i has the index `i * (total - 1) // (count - 1)`. If the video has at most `count` frames, all frames
    are chosen. If `count` is 1, the middle frame is chosen.

    >>> evenly_spaced(100, 4), evenly_spaced(3, 8), evenly_spaced(9, 1)
    ((0, 33, 66, 99), (0, 1, 2), (4,))

    Raises:
        ConfigError: `count` is less than 1.
        DataError: the video has no frame.
    """
    if count < 1:
        raise ConfigError(f"{count} frames were asked for. Fix: ask for 1 or more")
    if total < 1:
        raise DataError("there is no frame to sample. Fix: check the video")
    if total <= count:
        return tuple(range(total))
    if count == 1:
        return ((total - 1) // 2,)
    return tuple(step * (total - 1) // (count - 1) for step in range(count))


def evenly_spaced_with(total: int, count: int, always: Collection[int]) -> tuple[int, ...]:
    """Choose `evenly_spaced` frames; each frame of `always` replaces the nearest chosen frame.

    >>> evenly_spaced_with(100, 4, {30, 99})
    (0, 30, 66, 99)

    Raises:
        ConfigError: `count` is less than 1.
        DataError: the video has no frame, or `always` has a missing frame or more than `count` frames.
    """
    required = sorted(set(always))
    frames = set(evenly_spaced(total, count))
    outside = [frame for frame in required if not 0 <= frame < total]
    if outside:
        raise DataError(f"no frame {outside[0]}: there are {total}. Fix: check that annotations and video match")
    if len(required) > count:
        raise DataError(f"{len(required)} frames must be shown, but only {count} may be. Fix: ask for more frames")
    for frame in required:
        if frame not in frames:
            frames.remove(min(frames.difference(required), key=lambda sampled: (abs(sampled - frame), sampled)))
            frames.add(frame)
    return tuple(sorted(frames))


def at_rate(facts: VideoFacts, fps: float) -> tuple[int, ...]:
    """Choose the frames nearest to the times 0, 1/fps, 2/fps, ... up to the last frame.

    If two frames are equally near, the earlier frame is chosen. If `fps` is higher than the video's rate, every frame
    is chosen once.

    Raises:
        ConfigError: `fps` is not a positive number, or is above `MAX_RATE`.
        DataError: the times of the frames are not known.
    """
    if not 0 < fps <= MAX_RATE:
        raise ConfigError(f"a rate of {fps} frames a second. Fix: give a positive number up to {MAX_RATE:g}")
    seconds = _times(facts)
    # Frame i is nearest to the times from its midpoint with frame i - 1 to its midpoint with frame i + 1.
    borders = np.append((seconds[:-1] + seconds[1:]) / 2, seconds[-1])
    # For each border, the last k whose time k / fps is not after the border.
    passed = np.floor((borders + _CLOSE) * fps)
    return tuple(int(frame) for frame in np.flatnonzero(np.diff(passed, prepend=-1.0) > 0))


def in_window(facts: VideoFacts, centre_s: float, half_s: float) -> range:
    """Choose the frames from `centre_s - half_s` to `centre_s + half_s` seconds, ends included.

    Raises:
        ConfigError: a time is not a number, or `half_s` is negative.
        DataError: the times of the frames are not known, or no frame lies in the window.
    """
    if not (math.isfinite(centre_s) and math.isfinite(half_s) and half_s >= 0):
        raise ConfigError(f"a window of {centre_s} +- {half_s} s. Fix: give numbers, the half not below 0")
    seconds = _times(facts)
    start = int(np.searchsorted(seconds, centre_s - half_s - _CLOSE, side="left"))
    stop = int(np.searchsorted(seconds, centre_s + half_s + _CLOSE, side="right"))
    if start >= stop:
        raise DataError(
            f"{facts.path}: no frame from {centre_s - half_s:g} to {centre_s + half_s:g} s (the last is at "
            f"{facts.duration:g} s). Fix: check that annotations and video match"
        )
    return range(start, stop)


def nearest_frame(facts: VideoFacts, second: float) -> int:
    """Return the frame nearest to a time; if two frames are equally near, return the earlier frame.

    For a time outside the video, this is the first or the last frame.

    Raises:
        ConfigError: `second` is not a number.
        DataError: the times of the frames are not known.
    """
    if not math.isfinite(second):
        raise ConfigError(f"a time of {second} s. Fix: give a number")
    seconds = _times(facts)
    after = int(np.searchsorted(seconds, second, side="left"))
    if after == 0 or after == len(seconds):
        return min(after, len(seconds) - 1)
    return after if seconds[after] - second < second - seconds[after - 1] - _CLOSE else after - 1


def _times(facts: VideoFacts) -> NDArray[np.float64]:
    """Return times that never decrease; times may repeat in streams whose packets have no times."""
    if not facts.has_times:
        remedy = "give the rate of its frames with its annotations, or the video file"
        raise DataError(f"{facts.path}: the times of its frames are not known. Fix: {remedy}")
    return np.maximum.accumulate(facts.seconds)
