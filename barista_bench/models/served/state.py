"""The state of a server, learned while it is asked: how many calls it bears, whether it takes `n`, what it has cost.

Calls in flight go up while it answers, are halved when it chokes, and stop while it says so: additive increase,
multiplicative decrease (Chiu and Jain, 1989), with TCP's slow start until the first congestion and its one cut a window
(RFC 5681): failures of calls that were sent before a cut say nothing about the limit after it.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec

from barista_bench.errors import ModelError
from barista_bench.models.base import Completion
from barista_bench.models.served.errors import MAX_PAUSE, Endpoint, TransientError
from barista_bench.models.served.replies import Reply

log = logging.getLogger(__name__)

FIRST_LIMIT = 4

_TRACE_LENGTH = 10_000


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
    def calls_allowed(self) -> int:
        return int(self._limit)

    def now(self) -> float:
        return self._clock()

    def record_success(self, began: float, in_flight: int) -> None:
        """A call that began then was answered, while so many were under way (itself among them)."""
        if began <= self._last_cut or in_flight < self.calls_allowed or self._limit >= self._ceiling:
            return  # sent before the cut, or the limit was not what held us back
        step = 1.0 if self._slow_start else 1.0 / self._limit
        self._set(min(self._limit + step, self._ceiling), "success")

    def record_congestion(self, began: float, reason: str) -> None:
        """A call that began then met a server that was too busy, or did not answer at all."""
        if began <= self._last_cut:
            return
        self._last_cut, self._slow_start = self._clock(), False
        self._set(max(1.0, self._limit / 2), reason)
        log.info("concurrency is cut to %d: %s", self.calls_allowed, reason)

    def pause(self, seconds: float, reason: str) -> None:
        """Send nothing for these seconds (`MAX_PAUSE` at the most); the later end of several pauses counts."""
        until = self._clock() + min(seconds, MAX_PAUSE)
        if seconds > 0 and until > self._silent_until:
            self._silent_until = until
            self.trace.append(LimitChange(self._clock(), self._limit, f"pause of {seconds:.3g} s: {reason}"))

    def pause_left(self) -> float:
        """Seconds until something may be sent; 0 or less for now."""
        return self._silent_until - self._clock()

    def _set(self, limit: float, reason: str) -> None:
        self._limit = limit
        self.trace.append(LimitChange(self._clock(), limit, reason))


class Gate:
    """Lets the calls of one stream wait until the limit lets them through. For one event loop."""

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
            if (seconds := self.limit.pause_left()) > 0:
                await self._sleep(seconds)
            elif self.in_flight < self.limit.calls_allowed:
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


_MAX_NAMES = 16


class ServerState:
    """Lives as long as its model. Changed by the event loop's thread alone.

    Attributes:
        takes_n: whether several choices are asked for with one call; until it turns out that they do not come.
        proven_n: the most choices that came with one call.
        answered: whether any readable answer has come.
        served_as: the names under which the server answered, in the order of their first answers.
    """

    def __init__(self, max_concurrency: int) -> None:
        self.limit = AdaptiveLimit(max_concurrency)
        self.takes_n, self.proven_n = True, 1
        self.answered = False
        self.served_as: list[str] = []
        self._warned_of_schema = False
        self._notes: set[str] = set()
        self._failures_in_a_row = 0
        self._max_failures = max(20, 2 * max_concurrency)

    def count_reply(self, reply: Reply, endpoint: Endpoint) -> None:
        """Take note of one readable answer. Warns of what is odd about it, of each oddity once."""
        self._failures_in_a_row, self.answered = 0, True
        notes = {choice.note for choice in reply.choices if isinstance(choice, Completion) and choice.note}
        if len(self._notes) < _MAX_NAMES:
            for note in sorted(notes - self._notes):
                log.warning("%s: an answer %s: it counts as a whole one", endpoint, note)
            self._notes |= notes
        if reply.served_as and reply.served_as not in self.served_as and len(self.served_as) < _MAX_NAMES:
            if self.served_as:
                log.warning("the server now answers as %s, before as %s", reply.served_as, self.served_as[-1])
            self.served_as.append(reply.served_as)

    def count_failure(self, error: TransientError, endpoint: Endpoint) -> None:
        """Count one call that failed at every attempt.

        Raises:
            ModelError: so many in a row failed that the server must be down; going on would fail all the rest.
        """
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= self._max_failures:
            raise ModelError(
                f"{endpoint}: {self._failures_in_a_row} requests in a row failed at every attempt, the last with: "
                f"{error}. Remedy: see to the server, then start the run again; it goes on where it stopped"
            )

    def check_json(self, reply: Reply, endpoint: Endpoint) -> None:
        """Warn, once, where answers that were to be held to a schema are no JSON: some servers ignore it in silence."""
        for choice in reply.choices:
            if self._warned_of_schema or not isinstance(choice, Completion) or choice.finish_reason != "stop":
                continue
            try:
                msgspec.json.decode(choice.text)
            except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
                log.warning("%s: asked for JSON by a schema, the server answered with none: it ignores it", endpoint)
                self._warned_of_schema = True

    def give_up_n(self, why: str, endpoint: Endpoint) -> None:
        """Ask for one choice a call from now on."""
        if self.takes_n:
            log.warning("%s: %s; going on with a call for each sample", endpoint, why)
        self.takes_n = False
