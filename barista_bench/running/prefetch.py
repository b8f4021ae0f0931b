"""Work done ahead in a thread, a bounded number of items at a time, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


def prefetched(
    items: Iterable[ItemT], prepare: Callable[[ItemT], ResultT], ahead: int
) -> Iterator[tuple[ItemT, ResultT]]:
    """Yield every item with its prepared value while up to `ahead` further ones are prepared in one other thread.

    One thread, since decoders work best when one reader walks through one video. What `prepare` raises is raised here.
    """
    source = iter(items)
    with ThreadPoolExecutor(1, thread_name_prefix="prefetch") as pool:
        waiting: deque[tuple[ItemT, Future[ResultT]]] = deque(
            (item, pool.submit(prepare, item)) for item in islice(source, max(1, ahead))
        )
        try:
            while waiting:
                item, future = waiting.popleft()
                for following in islice(source, 1):
                    waiting.append((following, pool.submit(prepare, following)))
                yield item, future.result()
        finally:
            for _, future in waiting:
                future.cancel()
