"""Show times with frames, and read times and time ranges in annotations and answers.

Supported forms are numbers of seconds, with or without a unit, clock times, numbers of shown frames, and pairs of these
forms.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import msgspec

from barista_bench.core.prompt import ImagePart, TextPart

TimeRange = Annotated[list[float], msgspec.Meta(min_length=2, max_length=2)]
"""[start, end] in seconds."""

MAX_TEXT = 64
"""Maximum number of characters of a time written as text."""
MAX_SPAN = 100
"""Maximum number of characters of an interval written as text."""
MAX_SECONDS = 1e9
MAX_INTERVALS = 200
"""Maximum number of intervals of one object that are read; further intervals are left out."""
MAX_NESTED = 4
"""Maximum depth of nested containers below an entry."""
SNAP = 0.25
"""The largest distance in seconds at which a time still means the time of a frame."""

_CLOCK = re.compile(r"\s*(?:([0-9]{1,4}):)?([0-9]{1,4}):([0-9]{1,2}(?:\.[0-9]{1,9})?)\s*")
_SECONDS = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(?:s|secs?|seconds?)?\.?\s*", re.IGNORECASE)
_FRAME = re.compile(r"\A\s*(?:frame|image)\s*#?\s*([0-9]{1,7})\s*\Z", re.IGNORECASE)
_BETWEEN = re.compile(r"-|–|—|\bto\b|~")
_START_KEYS = ("start", "start_time", "begin", "from", "t_start")
_END_KEYS = ("end", "end_time", "stop", "to", "t_end")
_INTERVAL_KEYS = ("intervals", "interval", "segments", "segment", "time", "times", "timestamps", "temporal_grounding")


def timed_frames(times: Iterable[str]) -> list[TextPart | ImagePart]:
    """Return every shown frame after a line with the frame's number, from 1, and its time."""
    return [
        part
        for index, time in enumerate(times)
        for part in (TextPart(f"Frame {index + 1}, {time} s:\n"), ImagePart(index))
    ]


def as_pairs(intervals: list[TimeRange]) -> list[tuple[float, float]]:
    return [(start, end) for start, end in intervals]


def read_seconds(value: object) -> float | None:
    """Return the seconds of a number, a number with a unit, or a clock time; None for any other value.

    >>> [read_seconds(value) for value in (3, "12.5", "3.5 s", "01:02.50", "noon", -1, True)]
    [3.0, 12.5, 3.5, 62.5, None, None, None]
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        # The comparison comes before the conversion to a float: an int may be too large for a float. NaN compares
        # false.
        return float(value) if 0 <= value <= MAX_SECONDS else None
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        return None
    match = _SECONDS.fullmatch(value)
    return float(match[1]) if match else clock_seconds(value)


def clock_seconds(text: str) -> float | None:
    """Return the seconds of `mm:ss` or `h:mm:ss`, with or without a fraction; None for any other text.

    >>> clock_seconds("1:02"), clock_seconds("01:00:02.5"), clock_seconds("62"), clock_seconds("1:75")
    (62.0, 3602.5, None, None)
    """
    match = _CLOCK.fullmatch(text) if len(text) <= MAX_TEXT else None
    if not match:
        return None
    hours, minutes, seconds = int(match[1] or 0), int(match[2]), float(match[3])
    if seconds >= 60 or (match[1] and minutes >= 60):
        return None
    return hours * 3600 + minutes * 60 + seconds


def read_time(value: object, frame_seconds: Sequence[float]) -> float | None:
    """Return the seconds of a value from a model's answer; None if the value is not a time.

    In addition to `read_seconds`, `frame 3` is the time of the third shown frame.

    Args:
        value: of any type.
        frame_seconds: (n,) seconds of the shown frames, in order.

    >>> [read_time(value, [0.0, 4.0]) for value in (3, "3.5 s", "01:10", "Frame 2", "frame 9", "soon", -1, True)]
    [3.0, 3.5, 70.0, 4.0, None, None, None, None]
    """
    match = _FRAME.match(value) if isinstance(value, str) and len(value) <= MAX_TEXT else None
    if match is None:
        return read_seconds(value)
    number = int(match[1])
    return frame_seconds[number - 1] if 1 <= number <= len(frame_seconds) else None


def snap_to_grid(time: float, grid: Sequence[float]) -> float:
    """Return the nearest time of the sorted grid if it is within `SNAP`.

    Otherwise return the given time, rounded to milliseconds.

    >>> snap_to_grid(3.9, [0.0, 4.0]), snap_to_grid(5.12345, [0.0, 4.0]), snap_to_grid(4.2, [4.0, 4.3])
    (4.0, 5.123, 4.3)
    """
    index = bisect_left(grid, time)
    before = time - grid[index - 1] if index else math.inf
    after = grid[index] - time if index < len(grid) else math.inf
    if min(before, after) > SNAP + 1e-9:  # slightly wider, for times with rounding errors
        return round(time, 3)
    return grid[index - 1] if before <= after else grid[index]


def first_given(value: Mapping[str, object], keys: Sequence[str]) -> object:
    """Return the first value of these keys that is not None; None if all values are None."""
    return next((value[key] for key in keys if value.get(key) is not None), None)


def is_span(value: object) -> bool:
    """Return True if a value is one time range, not a list of ranges or a mapping of names."""
    if isinstance(value, Mapping):
        return any(key in value for key in (*_START_KEYS, *_END_KEYS, *_INTERVAL_KEYS))
    return isinstance(value, list) and len(value) == 2 and all(read_time(end, ()) is not None for end in value)


def read_spans(value: object, frame_seconds: Sequence[float], depth: int = 0) -> list[tuple[float, float]] | None:
    """Return the time ranges in an entry; None if any part of the entry is not a time range.

    >>> read_spans("00:08 - 0:20", []), read_spans([[1, 2], {"start": 3, "end": "4.5 s"}], []), read_spans([2, 1], [])
    ([(8.0, 20.0)], [(1.0, 2.0), (3.0, 4.5)], None)
    """
    if depth > MAX_NESTED:
        return None
    if isinstance(value, str):
        return _span(_BETWEEN.split(value), frame_seconds) if len(value) <= MAX_SPAN else None
    if isinstance(value, Mapping):
        ends = [first_given(value, keys) for keys in (_START_KEYS, _END_KEYS)]
        if any(end is not None for end in ends):
            return _span(ends, frame_seconds)
        return read_spans(first_given(value, _INTERVAL_KEYS), frame_seconds, depth + 1)
    if not isinstance(value, list):
        return None
    if len(value) == 2 and (pair := _span(value, frame_seconds)):
        return pair
    intervals: list[tuple[float, float]] = []
    for item in value[: MAX_INTERVALS + 1]:
        spans = read_spans(item, frame_seconds, depth + 1)
        if spans is None:
            return None
        intervals += spans
    return intervals


def _span(ends: Sequence[object], frame_seconds: Sequence[float]) -> list[tuple[float, float]] | None:
    times = [time for time in (read_time(end, frame_seconds) for end in ends) if time is not None]
    return [(times[0], times[1])] if len(times) == len(ends) == 2 and times[0] <= times[1] else None
