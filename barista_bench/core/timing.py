"""Where a run's seconds go, by stage, over all its threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

STAGES = ("load", "decode", "prepare", "wait", "generate", "judge", "total")


@dataclass(frozen=True, slots=True)
class StageTime:
    """One stage.

    Args:
        seconds: spent in it, summed over threads.
        busy: seconds of the clock on the wall during which at least one thread was in it.
        count: what was done in it: frames decoded, examples prepared, batches generated.
        threads: the most threads that were in it at once.
    """

    seconds: float = 0.0
    busy: float = 0.0
    count: int = 0
    threads: int = 0

    @property
    def is_summed(self) -> bool:
        """Whether `seconds` adds up threads that worked at the same time, so that it may exceed the wall clock."""
        return self.threads > 1

    @property
    def rate(self) -> float:
        """`count` for each second of the wall clock that the stage was busy; 0.0 where nothing was timed."""
        return self.count / self.busy if self.busy > 0 else 0.0


@dataclass(slots=True)
class _Running:
    seconds: float = 0.0
    busy: float = 0.0
    count: int = 0
    threads: int = 0
    active: int = 0
    since: float = 0.0


class StageClock:
    """Times stages of a run; safe to use from any thread.

        clock = StageClock()
        with clock("decode", count=6): ...
        clock.stages["decode"].rate          # frames a second

    Stages do not know each other: one inside another counts in both.

    Args:
        stages: their names.
        now: seconds on a clock that never goes back.
    """

    def __init__(self, stages: Sequence[str] = STAGES, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._running = {stage: _Running() for stage in stages}

    @contextmanager
    def __call__(self, stage: str, count: int = 1) -> Iterator[None]:
        """Time the block as `stage`. A block that raises takes its time, but adds nothing to the count.

        Raises:
            ValueError: there is no such stage.
        """
        running = self._of(stage)
        done = 0
        with self._lock:
            begun = self._now()
            if running.active == 0:
                running.since = begun
            running.active += 1
            running.threads = max(running.threads, running.active)
        try:
            yield
            done = count
        finally:
            with self._lock:
                ended = self._now()
                running.active -= 1
                running.seconds += ended - begun
                running.count += done
                if running.active == 0:
                    running.busy += ended - running.since

    def add(self, stage: str, seconds: float, count: int = 1) -> None:
        """Count seconds that were measured elsewhere, by one thread.

        Raises:
            ValueError: there is no such stage, or the seconds are negative.
        """
        if not seconds >= 0:
            raise ValueError(f"{stage}: {seconds} seconds. Remedy: give 0 or more")
        running = self._of(stage)
        with self._lock:
            running.seconds += seconds
            running.busy += seconds
            running.count += count
            running.threads = max(running.threads, 1)

    @property
    def stages(self) -> dict[str, StageTime]:
        """Every stage as it stands; blocks that are still open are not in it."""
        with self._lock:
            return {name: StageTime(r.seconds, r.busy, r.count, r.threads) for name, r in self._running.items()}

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds by stage, summed over threads; see `StageTime.is_summed`."""
        return {name: stage.seconds for name, stage in self.stages.items()}

    def _of(self, stage: str) -> _Running:
        try:
            return self._running[stage]
        except KeyError:
            raise ValueError(f"no stage {stage!r}. Remedy: use one of {', '.join(self._running)}") from None
