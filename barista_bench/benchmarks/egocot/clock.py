"""Times as the benchmark writes them, `MM:SS.ss`."""

from __future__ import annotations

import math


def clock(seconds: float) -> str:
    """As the benchmark writes a time.

    >>> clock(62.5), clock(1.0), clock(59.999)
    ('01:02.50', '00:01.00', '01:00.00')
    """
    hundredths = math.floor(max(0.0, seconds) * 100 + 0.5)
    minutes, rest = divmod(hundredths, 6000)
    return f"{minutes:02d}:{rest // 100:02d}.{rest % 100:02d}"
