"""What a run costs: seconds by stage over all its threads, and dollars for tokens."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias, get_args

Stage: TypeAlias = Literal["load", "decode", "prepare", "wait", "generate", "judge", "total"]


class StageClock:
    """Times stages of a run; safe to use from any thread.

        clock = StageClock()
        with clock("decode"): ...
        clock.seconds["decode"]

    Seconds add up over threads that work at the same time, and stages do not know each other: one inside another counts
    in both.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds: dict[str, float] = dict.fromkeys(get_args(Stage), 0.0)

    @contextmanager
    def __call__(self, stage: Stage) -> Iterator[None]:
        """Time the block as `stage`, also if it raises."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.add(stage, time.perf_counter() - begun)

    def add(self, stage: Stage, seconds: float) -> None:
        """Count seconds that were measured elsewhere."""
        with self._lock:
            self._seconds[stage] += seconds

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds by stage; blocks that are still open are not in it."""
        with self._lock:
            return dict(self._seconds)


def token_cost(
    input_tokens: int, output_tokens: int, input_price: float | None, output_price: float | None
) -> float | None:
    """US dollars, to the sixth place; prices are of a million tokens. None unless both are given.

    >>> token_cost(1_000_000, 500_000, 2.0, 8.0), token_cost(1, 1, 2.0, None)
    (6.0, None)
    """
    if input_price is None or output_price is None:
        return None
    return round((input_tokens * input_price + output_tokens * output_price) / 1e6, 6)
