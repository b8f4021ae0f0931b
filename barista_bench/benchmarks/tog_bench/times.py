"""Points in time as models and annotations write them: seconds, clock times, numbers of shown frames."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Sequence

from barista_bench.benchmarks.clock_times import MAX_TEXT, read_seconds

SNAP = 0.25
"""Seconds that a time may be off from a frame's and still mean it."""

_FRAME = re.compile(r"\A\s*(?:frame|image)\s*#?\s*([0-9]{1,7})\s*\Z", re.IGNORECASE)


def read_time(value: object, shown: Sequence[float]) -> float | None:
    """Seconds of what a model wrote; None where it is no time.

    Beside what `read_seconds` reads, `frame 3` is the time of the third frame shown.

    Args:
        value: of any kind.
        shown: (n,) seconds of the frames shown, in order.

    >>> [read_time(value, [0.0, 4.0]) for value in (3, "3.5 s", "01:10", "Frame 2", "frame 9", "soon", -1, True)]
    [3.0, 3.5, 70.0, 4.0, None, None, None, None]
    """
    match = _FRAME.match(value) if isinstance(value, str) and len(value) <= MAX_TEXT else None
    if match is None:
        return read_seconds(value)
    number = int(match[1])
    return shown[number - 1] if 1 <= number <= len(shown) else None


def snapped(time: float, grid: Sequence[float]) -> float:
    """The time of the grid that is meant: the nearest within `SNAP`, else the time itself, in milliseconds.

    Args:
        time: seconds.
        grid: in order.

    >>> snapped(3.9, [0.0, 4.0]), snapped(5.12345, [0.0, 4.0]), snapped(4.2, [4.0, 4.3])
    (4.0, 5.123, 4.3)
    """
    index = bisect_left(grid, time)
    before = time - grid[index - 1] if index else math.inf
    after = grid[index] - time if index < len(grid) else math.inf
    if min(before, after) > SNAP + 1e-9:  # a hair wider, for times that are off by rounding alone
        return round(time, 3)
    return grid[index - 1] if before <= after else grid[index]
