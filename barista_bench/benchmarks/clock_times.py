"""Times as annotations and models write them: numbers of seconds, with or without a unit, and clock times."""

from __future__ import annotations

import re

MAX_TEXT = 64
MAX_SECONDS = 1e9

_CLOCK = re.compile(r"\s*(?:([0-9]{1,4}):)?([0-9]{1,4}):([0-9]{1,2}(?:\.[0-9]{1,9})?)\s*")
_SECONDS = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(?:s|secs?|seconds?)?\.?\s*", re.IGNORECASE)


def read_seconds(value: object) -> float | None:
    """Seconds of a number, of one with its unit, or of a clock time; None for anything else.

    >>> [read_seconds(value) for value in (3, "12.5", "3.5 s", "01:02.50", "noon", -1, True)]
    [3.0, 12.5, 3.5, 62.5, None, None, None]
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        # Compared before it is made a float: an int may be too large for one; NaN compares false.
        return float(value) if 0 <= value <= MAX_SECONDS else None
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        return None
    match = _SECONDS.fullmatch(value)
    return float(match[1]) if match else clock_seconds(value)


def clock_seconds(text: str) -> float | None:
    """Seconds of `mm:ss` or `h:mm:ss`, with or without a fraction; None for anything else.

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
