"""Clock times, as annotations and models write them."""

from __future__ import annotations

import re

MAX_TEXT = 64

_CLOCK = re.compile(r"\s*(?:([0-9]{1,4}):)?([0-9]{1,4}):([0-9]{1,2}(?:\.[0-9]{1,9})?)\s*")


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
