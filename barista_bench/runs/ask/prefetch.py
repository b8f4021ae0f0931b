"""Work done ahead in threads: in order, and within bounds of items and bytes."""

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
"""Items of one group that a worker takes one after another, before the next worker goes on."""
_REMEMBERED_SIZES = 32
"""Results whose sizes tell how large the next ones may be."""


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
    """Every item with its prepared result, in order, while further ones are prepared in `workers` threads.

    Items are taken from the source as there is room, by the thread that consumes. A result is begun only where those
    that wait fit into `max_bytes` with it and all before it, each unfinished one counted as large as the largest of
    the last results. So results that suddenly grow overshoot by those in the making, one a worker. The next one to be
    consumed is always made, however large.

    Neighbours of the same group go to the same worker, up to `LONGEST_WALK` of them: one reader walks on through one
    video, and the other workers are at its next part or in the next video.

    What `prepare` or `size_of` raises is raised at its item, which is the last one then; what the source raises, when
    it is asked ahead. Threads end with the iteration: close the iterator to stop early (`contextlib.closing`).

    Args:
        items: the source.
        prepare: called once an item, in a worker.
        workers: threads.
        max_items: results waiting or in the making at the most, beside the one that is consumed.
        max_bytes: of results waiting.
        size_of: bytes of a result; called in a worker.
        group_of: what an item belongs to, such as its video; None where items have nothing in common.

    Raises:
        ConfigError: `workers`, `max_items` or `max_bytes` is below 1. Raised at once, not at the first item.
    """
    for name, value in (("workers", workers), ("max_items", max_items), ("max_bytes", max_bytes)):
        if value < 1:
            raise ConfigError(f"{name} is {value}. Remedy: give 1 or more")
    return _prepare_ahead(_Budget(max_bytes, size_of), iter(items), prepare, workers, max_items, group_of)


def _prepare_ahead(
    budget: _Budget[ResultT],
    source: Iterator[ItemT],
    prepare: Callable[[ItemT], ResultT],
    workers: int,
    max_items: int,
    group_of: Callable[[ItemT], Hashable] | None,
) -> Generator[tuple[ItemT, ResultT], None, None]:
    # A pool of one thread each, since a pool of several does not let one choose the thread.
    pools = [ThreadPoolExecutor(1, thread_name_prefix=f"decode-ahead-{number}") for number in range(workers)]
    queue: deque[_QueuedItem[ItemT, ResultT]] = deque()
    walk: _Walk | None = None
    try:
        while True:
            for item in islice(source, max_items + 1 - len(queue)):
                group = group_of(item) if group_of else None
                longest = min(LONGEST_WALK, max_items // workers, budget.fitting // workers) if group_of else 1
                if walk is None or walk.group != group or walk.length >= longest:
                    # The worker with the fewest results still to make; of equals the one that comes first after.
                    load = Counter(queued.worker for queued in queue if not queued.future.done())
                    after = walk.worker if walk else -1
                    walk = _Walk(group, min(range(workers), key=lambda at: (load[at], (at - after - 1) % workers)))
                walk.length += 1
                future = pools[walk.worker].submit(budget.run, budget.enter(), prepare, item)
                queue.append(_QueuedItem(item, walk.worker, future))
            if not queue:
                return
            first = queue.popleft()
            result = first.future.result()
            budget.leave()
            yield first.item, result
            del first, result  # or they are held while the next one is made
    finally:
        budget.stop()
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)
        for pool in pools:
            pool.shutdown(wait=True)


@dataclass(slots=True)
class _Ticket:
    """The place of one result in the budget, with its size once it is made."""

    size: int | None = None


class _QueuedItem(NamedTuple, Generic[ItemT, ResultT]):
    item: ItemT
    worker: int
    future: Future[ResultT]


@dataclass(slots=True)
class _Walk:
    """Neighbouring items of one group in one worker."""

    group: Hashable
    worker: int
    length: int = 0


class _Budget(Generic[ResultT]):
    """Lets results be begun in the order of their tickets, so that those that wait keep within their bytes."""

    def __init__(self, max_bytes: int, size_of: Callable[[ResultT], int]) -> None:
        self._max_bytes, self._size_of = max_bytes, size_of
        self._changed = threading.Condition()
        self._tickets: deque[_Ticket] = deque()
        self._sizes: deque[int] = deque(maxlen=_REMEMBERED_SIZES)
        self._stopped = False

    @property
    def fitting(self) -> int:
        """The number of results that fit where each is as large as the largest of the last ones."""
        with self._changed:
            return self._max_bytes // max((1, *self._sizes))

    def enter(self) -> _Ticket:
        """The next item's ticket."""
        ticket = _Ticket()
        with self._changed:
            self._tickets.append(ticket)
        return ticket

    def run(self, ticket: _Ticket, prepare: Callable[[ItemT], ResultT], item: ItemT) -> ResultT:
        """Wait for room, then prepare. Called in a worker; raises what `prepare` raises."""
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
        """Take out the first result's ticket, which was handed out."""
        with self._changed:
            self._tickets.popleft()
            self._changed.notify_all()

    def stop(self) -> None:
        """Let those that wait for room go."""
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
            elif is_before:  # room for all that comes first is kept, or the consumer would wait for it
                needed += largest
            is_before = is_before and other is not ticket
        return needed <= self._max_bytes
