"""Times as the benchmark writes them, `MM:SS.ss`, and as seconds."""

from __future__ import annotations

import math
import re

from barista_bench.benchmarks.clock_times import clock_seconds

MAX_SECONDS = 1e6
_PLAIN = re.compile(r"\s*(\d{1,7}(?:\.\d{1,6})?)\s*(?:s|sec|seconds?)?\s*", re.ASCII)


def read_clock(value: object) -> float | None:
    """Seconds of `MM:SS.ss`, `HH:MM:SS.ss`, `12.5 s` or a number; None for anything else.

    >>> read_clock("01:02.50"), read_clock("1:00:00"), read_clock(3), read_clock("noon")
    (62.5, 3600.0, 3.0, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        # Compared before it is made a float: an int may be too large for one.
        return float(value) if 0 <= value <= MAX_SECONDS and math.isfinite(value) else None
    if not isinstance(value, str) or len(value) > 40:
        return None
    if ":" in value:
        return clock_seconds(value)
    plain = _PLAIN.fullmatch(value)
    return float(plain[1]) if plain else None


def clock(seconds: float) -> str:
    """As the benchmark writes a time.

    >>> clock(62.5), clock(1.0), clock(59.999)
    ('01:02.50', '00:01.00', '01:00.00')
    """
    hundredths = math.floor(max(0.0, seconds) * 100 + 0.5)
    minutes, rest = divmod(hundredths, 6000)
    return f"{minutes:02d}:{rest // 100:02d}.{rest % 100:02d}"
