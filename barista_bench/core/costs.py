"""What a run costs: seconds by stage over all its threads, and dollars for tokens."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STAGES = ("load", "decode", "prepare", "wait", "generate", "judge", "total")


class StageClock:
    """Times stages of a run; safe to use from any thread.

        clock = StageClock()
        with clock("decode"): ...
        clock.seconds["decode"]

    Seconds add up over threads that work at the same time, and stages do not know each other: one inside another counts
    in both.

    Args:
        now: seconds on a clock that never goes back.
    """

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._seconds = dict.fromkeys(STAGES, 0.0)

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Time the block as `stage`, also if it raises. Raises ValueError for an unknown stage."""
        _check(stage)
        begun = self._now()
        try:
            yield
        finally:
            self.add(stage, self._now() - begun)

    def add(self, stage: str, seconds: float) -> None:
        """Count seconds that were measured elsewhere. Raises ValueError for an unknown stage or negative seconds."""
        _check(stage)
        if not seconds >= 0:
            raise ValueError(f"{stage}: {seconds} seconds. Remedy: give 0 or more")
        with self._lock:
            self._seconds[stage] += seconds

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds by stage; blocks that are still open are not in it."""
        with self._lock:
            return dict(self._seconds)


def _check(stage: str) -> None:
    if stage not in STAGES:
        raise ValueError(f"no stage {stage!r}. Remedy: use one of {', '.join(STAGES)}")


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
