"""Prepare items ahead in threads and return them in order, within limits on items and bytes."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from barista_bench.errors import ConfigError

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

LONGEST_WALK = 16
"""Maximum number of consecutive items of one group that go to the same worker."""
_REMEMBERED_SIZES = 32
"""Number of recent results that are used to predict the size of the next results."""


def decode_ahead(
    items: Iterable[ItemT],
    prepare: Callable[[ItemT], ResultT],
    *,
    workers: int = 2,
    max_items: int,
    max_bytes: int,
    size_of: Callable[[ResultT], int],
    group_of: Callable[[ItemT], Hashable] | None = None,
) -> Generator[tuple[ItemT, ResultT], None, None]:
    """Yield every item with its prepared result, in order, while `workers` threads prepare later items.

    The consuming thread takes items from the source while there is room. A worker starts a result only if this result
    and all earlier ones fit into `max_bytes`. An unfinished result is assumed to be as large as the largest of the last
    results. If results suddenly grow, the limit is exceeded by at most one unfinished result per worker. The next
    result to be consumed is always made, regardless of its size.

    Up to `LONGEST_WALK` consecutive items of a group go to the same worker. So a reader moves through one video while
    other workers read the video's next part or the next video.

    An error in `prepare` or `size_of` is raised at its item and ends the iteration. An error in the source is raised
    when the source is read ahead. Threads end with the iteration. To stop early, close the iterator
    (`contextlib.closing`).

    Args:
        items: the source.
        prepare: called once per item, in a worker.
        workers: number of threads.
        max_items: maximum number of waiting or unfinished results, in addition to the result that is being consumed.
        max_bytes: maximum bytes of waiting results.
        size_of: returns the bytes of a result. It is called in a worker.
        group_of: returns the group of an item, such as its video. None if items have no groups.

    Raises:
        ConfigError: `workers`, `max_items` or `max_bytes` is below 1. The error is raised by the call itself, not at
            the first item.
    """
    for name, value in (("workers", workers), ("max_items", max_items), ("max_bytes", max_bytes)):
        if value < 1:
            raise ConfigError(f"{name} is {value}. Fix: give 1 or more")
    return _prepare_ahead(_Budget(max_bytes, size_of), iter(items), prepare, workers, max_items, group_of)


def _prepare_ahead(
    budget: _Budget[ResultT],
    source: Iterator[ItemT],
    prepare: Callable[[ItemT], ResultT],
    workers: int,
    max_items: int,
    group_of: Callable[[ItemT], Hashable] | None,
) -> Generator[tuple[ItemT, ResultT], None, None]:
    # Each pool has one thread, since the caller cannot choose a thread of a larger pool.
    pools = [ThreadPoolExecutor(1, thread_name_prefix=f"decode-ahead-{number}") for number in range(workers)]
    queue: deque[_QueuedItem[ItemT, ResultT]] = deque()
    walk: _Walk | None = None
    try:
        while True:
            for item in islice(source, max_items + 1 - len(queue)):
                group = group_of(item) if group_of else None
                longest = min(LONGEST_WALK, max_items // workers, budget.fitting // workers) if group_of else 1
                if walk is None or walk.group != group or walk.length >= longest:
                    # Choose the worker with the fewest unfinished results. Among equals, choose the next in turn.
                    load = Counter(queued.worker for queued in queue if not queued.future.done())
                    after = walk.worker if walk else -1
                    walk = _Walk(
                        group, min(range(workers), key=lambda index: (load[index], (index - after - 1) % workers))
                    )
                walk.length += 1
                future = pools[walk.worker].submit(budget.run, budget.enter(), prepare, item)
                queue.append(_QueuedItem(item, walk.worker, future))
            if not queue:
                return
            first = queue.popleft()
            result = first.future.result()
            budget.leave()
            yield first.item, result
            del first, result  # otherwise they stay in memory while the next result is made
    finally:
        budget.stop()
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)
        for pool in pools:
            pool.shutdown(wait=True)


@dataclass(slots=True)
class _Ticket:
    """The position of one result in the queue, and its size once the result is made."""

    size: int | None = None


class _QueuedItem(NamedTuple, Generic[ItemT, ResultT]):
    item: ItemT
    worker: int
    future: Future[ResultT]


@dataclass(slots=True)
class _Walk:
    """Consecutive items of one group that go to one worker."""

    group: Hashable
    worker: int
    length: int = 0


class _Budget(Generic[ResultT]):
    """Admits results in the order of their tickets, so that waiting results stay within their byte limit."""

    def __init__(self, max_bytes: int, size_of: Callable[[ResultT], int]) -> None:
        self._max_bytes, self._size_of = max_bytes, size_of
        self._changed = threading.Condition()
        self._tickets: deque[_Ticket] = deque()
        self._sizes: deque[int] = deque(maxlen=_REMEMBERED_SIZES)
        self._stopped = False

    @property
    def fitting(self) -> int:
        """Return how many results fit if each is as large as the largest of the last results."""
        with self._changed:
            return self._max_bytes // max((1, *self._sizes))

    def enter(self) -> _Ticket:
        """Return the next item's ticket."""
        ticket = _Ticket()
        with self._changed:
            self._tickets.append(ticket)
        return ticket

    def run(self, ticket: _Ticket, prepare: Callable[[ItemT], ResultT], item: ItemT) -> ResultT:
        """Wait for room, then prepare. This method is called in a worker. Errors of `prepare` are raised here."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._has_room(ticket))
            if self._stopped:
                raise CancelledError
        size = None
        try:
            result = prepare(item)
            size = self._size_of(result)
            return result
        finally:
            with self._changed:
                ticket.size = size or 0
                if size is not None:
                    self._sizes.append(size)
                self._changed.notify_all()

    def leave(self) -> None:
        """Remove the ticket of the first result after it was yielded."""
        with self._changed:
            self._tickets.popleft()
            self._changed.notify_all()

    def stop(self) -> None:
        """Release the threads that wait for room."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _has_room(self, ticket: _Ticket) -> bool:
        if ticket is self._tickets[0]:
            return True
        if not self._sizes:
            return False
        largest, needed, is_before = max(self._sizes), 0, True
        for other in self._tickets:
            if other.size is not None:
                needed += other.size
            elif is_before:  # reserve room for earlier results; otherwise the consumer would wait forever
                needed += largest
            is_before = is_before and other is not ticket
        return needed <= self._max_bytes
