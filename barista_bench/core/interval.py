"""What a confidence interval is, and the settings of all of them; `bootstrap.py` makes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DRAWS = 1000
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval, and what it rests on: `clusters` videos were resampled `draws` times.

    `method` is "bca", or "percentile" where bias and acceleration cannot be told (a figure that hardly varies).
    Fewer than about 10 clusters give intervals that are too narrow: say so where they are shown.
    """

    low: float
    high: float
    level: float
    method: Literal["bca", "percentile"]
    clusters: int
    draws: int
