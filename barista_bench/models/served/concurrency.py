"""How many calls a server is asked at once: up while it answers, halved when it chokes, silent while it says so.

Additive increase, multiplicative decrease (Chiu and Jain, 1989), with TCP's slow start until the first congestion and
its one cut a window (RFC 5681): failures of calls that were sent before a cut say nothing about the limit after it.
"""

from __future__ import annotations

import logging
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

log = logging.getLogger(__name__)

FIRST_LIMIT = 4
MAX_PAUSE = 120.0
"""The longest pause in seconds that a server may ask for; after it the server is asked again."""

_TRACE_LENGTH = 10_000
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|us|d|h|m|s)", re.ASCII)
_MAX_HEADER = 64  # characters


@dataclass(frozen=True, slots=True)
class LimitChange:
    """One entry of the trace: seconds on the clock, the limit from then on, and why."""

    seconds: float
    limit: float
    reason: str


class AdaptiveLimit:
    """The number of calls that may be under way. Lives as long as its model, and is used by one stream at a time.

    Args:
        ceiling: the limit never goes above it, nor below 1.
        clock: seconds, monotonic.
    """

    def __init__(self, ceiling: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._ceiling, self._clock = ceiling, clock
        self._limit = float(min(FIRST_LIMIT, ceiling))
        self._slow_start = True
        self._last_cut = float("-inf")
        self._silent_until = float("-inf")
        self.trace: deque[LimitChange] = deque(maxlen=_TRACE_LENGTH)
        self._set(self._limit, "start")

    @property
    def allowed(self) -> int:
        return int(self._limit)

    def now(self) -> float:
        return self._clock()

    def succeeded(self, began: float, in_flight: int) -> None:
        """A call that began then was answered, while so many were under way (itself among them)."""
        if began <= self._last_cut or in_flight < self.allowed or self._limit >= self._ceiling:
            return  # sent before the cut, or the limit was not what held us back
        step = 1.0 if self._slow_start else 1.0 / self._limit
        self._set(min(self._limit + step, self._ceiling), "success")

    def congested(self, began: float, reason: str) -> None:
        """A call that began then met a server that was too busy, or did not answer at all."""
        if began <= self._last_cut:
            return
        self._last_cut, self._slow_start = self._clock(), False
        self._set(max(1.0, self._limit / 2), reason)
        log.info("concurrency is cut to %d: %s", self.allowed, reason)

    def pause(self, seconds: float, reason: str) -> None:
        """Send nothing for so long (`MAX_PAUSE` at the most); the later end of several pauses counts."""
        until = self._clock() + min(seconds, MAX_PAUSE)
        if seconds > 0 and until > self._silent_until:
            self._silent_until = until
            self.trace.append(LimitChange(self._clock(), self._limit, f"pause of {seconds:.3g} s: {reason}"))

    def paused_for(self) -> float:
        """Seconds until something may be sent; 0 or less for now."""
        return self._silent_until - self._clock()

    def _set(self, limit: float, reason: str) -> None:
        self._limit = limit
        self.trace.append(LimitChange(self._clock(), limit, reason))


class Gate:
    """Where the calls of one stream wait until the limit lets them through. For one event loop."""

    def __init__(self, limit: AdaptiveLimit) -> None:
        import anyio

        self.limit = limit
        self.in_flight = 0
        self._new_event, self._sleep = anyio.Event, anyio.sleep
        self._freed = anyio.Event()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """Wait for a free slot and hold it; gives the time at which it was taken."""
        while True:
            if (seconds := self.limit.paused_for()) > 0:
                await self._sleep(seconds)
            elif self.in_flight < self.limit.allowed:
                break
            else:
                await self._freed.wait()
        self.in_flight += 1
        try:
            yield self.limit.now()
        finally:
            self.in_flight -= 1
            self._freed.set()  # wakes all who wait; the limit may have grown by more than one slot
            self._freed = self._new_event()


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that the server asks for (`Retry-After`, RFC 9110 10.2.3, or `retry-after-ms`); None where it does not.

    Neither negative nor longer than `MAX_PAUSE`; what cannot be read is None.
    """
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name, "")[:_MAX_HEADER].strip()
        if re.fullmatch(r"\d+(\.\d+)?", value, re.ASCII):
            return min(float(value) * unit, MAX_PAUSE)
    return _until(headers.get("retry-after", ""), now)


def _until(date: str, now: datetime | None) -> float | None:
    try:
        moment = parsedate_to_datetime(date[:_MAX_HEADER])
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        seconds = (moment - (now or datetime.now(UTC))).total_seconds()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return min(max(seconds, 0.0), MAX_PAUSE)


def allowance_pause(headers: Mapping[str, str], tokens: int) -> tuple[float, str] | None:
    """Seconds to wait, and for what, where the server says that its allowance is used up; None where it is not.

    Args:
        headers: of an answer, with `x-ratelimit-remaining-...` and `x-ratelimit-reset-...` where the server has them.
        tokens: what a call takes, as far as is known.
    """
    longest: tuple[float, str] | None = None
    for kind, needed in (("requests", 1), ("tokens", max(1, tokens))):
        remaining = headers.get(f"x-ratelimit-remaining-{kind}", "")[:_MAX_HEADER].strip()
        seconds = duration(headers.get(f"x-ratelimit-reset-{kind}", ""))
        if re.fullmatch(r"-?\d+", remaining, re.ASCII) and int(remaining) < needed and seconds is not None:
            longest = max(longest or (0.0, ""), (seconds, f"no {kind} left"))
    return longest


def duration(text: str) -> float | None:
    """Seconds of a duration such as `20ms`, `1m30s` or `6.5` (seconds); None for anything else, or above a day.

    >>> duration("1m30s"), duration("20ms"), duration("6.5"), duration("soon")
    (90.0, 0.02, 6.5, None)
    """
    text = text[:_MAX_HEADER].strip()
    if re.fullmatch(r"\d+(\.\d+)?", text, re.ASCII):
        seconds = float(text)
    elif text and _DURATION.sub("", text) == "":
        seconds = sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(text))
    else:
        return None
    return seconds if seconds <= _UNITS["d"] else None  # more is a date in seconds, or nonsense
