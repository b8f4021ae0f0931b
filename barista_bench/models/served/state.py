"""The state of a server, learned during a run: how many calls it supports, whether it takes `n`, and what it costs.

The number of parallel calls increases while the server answers, is halved on congestion, and drops to zero during a
requested pause. This is additive increase, multiplicative decrease (Chiu and Jain, 1989). As in TCP (RFC 5681), it has
a slow start until the first congestion, and at most one cut per window. Failures of calls that were sent before a cut
do not count against the new limit.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

from barista_bench.errors import ModelError
from barista_bench.models.base import Completion
from barista_bench.models.served.errors import MAX_PAUSE, Endpoint, TransientError
from barista_bench.models.served.replies import Reply

log = logging.getLogger(__name__)

FIRST_LIMIT = 4


class AdaptiveLimit:
    """The number of calls that may run in parallel. It lives as long as its model, and serves one stream at a time.

    Args:
        ceiling: upper bound of the limit; the lower bound is 1.
        clock: returns seconds of a monotonic clock.
    """

    def __init__(self, ceiling: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._ceiling, self._clock = ceiling, clock
        self._limit = float(min(FIRST_LIMIT, ceiling))
        self._slow_start = True
        self._last_cut = float("-inf")
        self._silent_until = float("-inf")

    @property
    def calls_allowed(self) -> int:
        return int(self._limit)

    def now(self) -> float:
        return self._clock()

    def record_success(self, began: float, in_flight: int) -> None:
        """Record an answer to a call that began at `began`, while `in_flight` calls ran (including itself)."""
        if began <= self._last_cut or in_flight < self.calls_allowed or self._limit >= self._ceiling:
            return  # the call was sent before the cut, or the limit did not restrict the calls
        step = 1.0 if self._slow_start else 1.0 / self._limit
        self._limit = min(self._limit + step, self._ceiling)

    def record_congestion(self, began: float, reason: str) -> None:
        """Record that a call that began at `began` failed because the server was too busy or did not answer."""
        if began <= self._last_cut:
            return
        self._last_cut, self._slow_start = self._clock(), False
        self._limit = max(1.0, self._limit / 2)
        log.info("concurrency is cut to %d: %s", self.calls_allowed, reason)

    def pause(self, seconds: float) -> None:
        """Send nothing for these seconds (at most `MAX_PAUSE`). If pauses overlap, the latest end counts."""
        self._silent_until = max(self._silent_until, self._clock() + min(seconds, MAX_PAUSE))

    def pause_left(self) -> float:
        """Seconds until the next call may be sent; 0 or less if it may be sent now."""
        return self._silent_until - self._clock()


class Gate:
    """Makes the calls of one stream wait until the limit allows them. For one event loop."""

    def __init__(self, limit: AdaptiveLimit) -> None:
        import anyio

        self.limit = limit
        self.in_flight = 0
        self._new_event, self._sleep = anyio.Event, anyio.sleep
        self._freed = anyio.Event()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """Wait for a free slot and hold it; yields the time when the slot was taken."""
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
            self._freed.set()  # wakes all waiting calls, because the limit may have grown by more than one slot
            self._freed = self._new_event()


_MAX_NAMES = 16


class ServerState:
    """The state of a server. It lives as long as its model; only the thread of the event loop changes it.

    Attributes:
        takes_n: True if one call may request several choices; False after the server has not returned them.
        proven_n: the largest number of choices returned by one call.
        answered: True after any readable answer.
        served_as: the model's names in the server's answers, in order of first appearance.
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
        """Record one readable answer. Warns of each oddity once."""
        self._failures_in_a_row, self.answered = 0, True
        notes = {choice.note for choice in reply.choices if isinstance(choice, Completion) and choice.note}
        if len(self._notes) < _MAX_NAMES:
            for note in sorted(notes - self._notes):
                log.warning("%s: an answer %s: it counts as complete", endpoint, note)
            self._notes |= notes
        if reply.served_as and reply.served_as not in self.served_as and len(self.served_as) < _MAX_NAMES:
            if self.served_as:
                log.warning("the server now answers as %s, before as %s", reply.served_as, self.served_as[-1])
            self.served_as.append(reply.served_as)

    def count_failure(self, error: TransientError, endpoint: Endpoint) -> None:
        """Count one call that failed at every attempt.

        Raises:
            ModelError: so many calls failed in a row that the server must be down; all other calls would fail too.
        """
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= self._max_failures:
            raise ModelError(
                f"{endpoint}: {self._failures_in_a_row} requests in a row failed at every attempt, the last with: "
                f"{error}. Fix: check the server, then resume the run"
            )

    def check_json(self, reply: Reply, endpoint: Endpoint) -> None:
        """Warn once if answers with a schema are not JSON, because some servers silently ignore the schema."""
        for choice in reply.choices:
            if self._warned_of_schema or not isinstance(choice, Completion) or choice.finish_reason != "stop":
                continue
            try:
                msgspec.json.decode(choice.text)
            except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
                log.warning("%s: asked for JSON by a schema, the server answered with none: it ignores it", endpoint)
                self._warned_of_schema = True

    def give_up_n(self, why: str, endpoint: Endpoint) -> None:
        """Request one choice per call from now on."""
        if self.takes_n:
            log.warning("%s: %s; going on with a call for each sample", endpoint, why)
        self.takes_n = False
