"""Work ahead: in order, within its bounds, and no thread left behind."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from hypothesis import given, settings, strategies as st

from barista_bench.errors import ConfigError
from barista_bench.runs.ask.prefetch import LONGEST_WALK, decode_ahead

SETTINGS = settings(max_examples=60, deadline=None)


def zero(result: object) -> int:
    return 0


def threads_ahead() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("decode-ahead")]


class Meter:
    """Counts results that are made, but not consumed yet: their number and bytes, and the most of either."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.items = self.bytes = self.most_items = self.most_bytes = 0

    def made(self, size: int) -> None:
        with self.lock:
            self.items, self.bytes = self.items + 1, self.bytes + size
            self.most_items, self.most_bytes = max(self.items, self.most_items), max(self.bytes, self.most_bytes)

    def consumed(self, size: int) -> None:
        with self.lock:
            self.items, self.bytes = self.items - 1, self.bytes - size


@SETTINGS
@given(
    st.lists(st.integers(0, 5), max_size=50), st.integers(1, 4), st.integers(1, 20), st.integers(1, 100), st.booleans()
)
def test_results_come_in_order_with_any_bounds(
    groups: list[int], workers: int, max_items: int, max_bytes: int, grouped: bool
) -> None:
    items = list(enumerate(groups))

    def prepare(item: tuple[int, int]) -> int:
        time.sleep(0.0004 * (item[0] % 3))
        return 7 * item[0]

    ready = decode_ahead(
        items,
        prepare,
        workers=workers,
        max_items=max_items,
        max_bytes=max_bytes,
        size_of=lambda result: result % 40,
        group_of=(lambda item: item[1]) if grouped else None,
    )
    assert list(ready) == [(item, 7 * item[0]) for item in items]
    assert threads_ahead() == []


@SETTINGS
@given(st.integers(1, 50), st.integers(1, 40), st.integers(1, 4), st.integers(1, 30))
@pytest.mark.full
def test_waiting_results_of_one_size_keep_exactly_within_the_bytes(
    size: int, max_bytes: int, workers: int, max_items: int
) -> None:
    meter = Meter()

    def prepare(item: int) -> bytes:
        meter.made(size)
        return bytes(size)

    ready = decode_ahead(
        range(40), prepare, workers=workers, max_items=max_items, max_bytes=max_bytes, size_of=len, group_of=zero
    )
    for number, (_, result) in enumerate(ready):
        meter.consumed(len(result))
        if number % 10 == 0:
            time.sleep(0.002)  # the workers fill the room
    # An item larger than the bound passes when no other is held. The item in use adds to the waiting ones.
    assert meter.most_bytes <= max(max_bytes, size) + size
    assert meter.most_items <= max_items + 1


@SETTINGS
@given(st.lists(st.integers(0, 60), max_size=50), st.integers(1, 100), st.integers(1, 4), st.integers(1, 30))
def test_growing_results_exceed_the_bound_only_by_the_results_in_progress(
    sizes: list[int], max_bytes: int, workers: int, max_items: int
) -> None:
    meter = Meter()

    def prepare(size: int) -> bytes:
        meter.made(size)
        return bytes(size)

    ready = decode_ahead(sizes, prepare, workers=workers, max_items=max_items, max_bytes=max_bytes, size_of=len)
    for number, (size, result) in enumerate(ready):
        assert len(result) == size
        meter.consumed(size)
        if number % 10 == 0:
            time.sleep(0.002)
    assert meter.most_bytes <= max_bytes + (workers + 1) * max(sizes, default=0)


def test_the_source_is_read_only_as_far_as_there_is_room() -> None:
    pulled = itertools.count()
    taken: list[int] = []

    def source() -> Iterator[int]:
        for item in pulled:
            taken.append(item)
            yield item

    with closing(decode_ahead(source(), lambda item: item, max_items=5, max_bytes=100, size_of=zero)) as ready:
        assert taken == []
        for consumed in range(20):
            next(ready)
            assert len(taken) <= consumed + 1 + 5


def test_work_continues_while_the_consumer_is_busy() -> None:
    done = [threading.Event() for _ in range(4)]
    with closing(
        decode_ahead(range(10), lambda item: done[min(item, 3)].set(), max_items=4, max_bytes=100, size_of=zero)
    ) as ready:
        next(ready)
        assert all(event.wait(10) for event in done), "the next ones were not made until they were asked for"


def test_an_error_is_raised_at_its_item_and_the_threads_end() -> None:
    def prepare(item: int) -> int:
        if item == 5:
            raise KeyError("item 5")
        return item

    ready = decode_ahead(range(20), prepare, workers=3, max_items=8, max_bytes=100, size_of=zero)
    assert [item for item, _ in itertools.islice(ready, 5)] == [0, 1, 2, 3, 4]
    with pytest.raises(KeyError, match="item 5"):
        next(ready)
    assert threads_ahead() == []


def test_an_error_of_size_of_or_of_the_source_is_raised_and_the_threads_end() -> None:
    with pytest.raises(ZeroDivisionError):
        list(decode_ahead([2, 1, 0], lambda item: item, max_items=4, max_bytes=100, size_of=lambda item: 1 // item))

    def source() -> Iterator[int]:
        yield 1
        raise OSError("source")

    with pytest.raises(OSError, match="source"):
        list(decode_ahead(source(), lambda item: item, max_items=4, max_bytes=100, size_of=zero))
    assert threads_ahead() == []


def stop_by_closing(ready: Iterator[tuple[int, int]]) -> None:
    with closing(ready):  # type: ignore[type-var]
        next(ready)
        assert threads_ahead()


def stop_by_raising(ready: Iterator[tuple[int, int]]) -> None:
    def consume() -> None:
        for _ in ready:
            raise RuntimeError("consumer")

    with pytest.raises(RuntimeError, match="consumer"):
        consume()
    ready.close()  # type: ignore[attr-defined]


def stop_by_forgetting(ready: Iterator[tuple[int, int]]) -> None:
    next(ready)


@pytest.mark.parametrize("stop", [stop_by_closing, stop_by_raising, stop_by_forgetting])
@pytest.mark.parametrize("max_bytes", [1, 10_000])
def test_threads_end_when_the_consumer_stops(stop: Callable[[Iterator[tuple[int, int]]], None], max_bytes: int) -> None:
    begun: list[int] = []

    def prepare(item: int) -> int:
        begun.append(item)
        time.sleep(0.005)
        return item

    # With one byte of room the workers wait at the gate when the consumer stops.
    stop(decode_ahead(range(1000), prepare, workers=3, max_items=50, max_bytes=max_bytes, size_of=lambda _: 10))
    assert threads_ahead() == []
    count = len(begun)
    time.sleep(0.03)
    assert len(begun) == count < 50


def test_neighbours_of_one_group_are_prepared_by_one_worker() -> None:
    by_thread: dict[int, str] = {}

    def prepare(item: int) -> None:
        by_thread[item] = threading.current_thread().name
        time.sleep(0.002)

    videos = [0] * 6 + [1] * 6 + [2] * 6 + [3] * 6
    ready = decode_ahead(
        range(24), prepare, workers=2, max_items=24, max_bytes=1000, size_of=zero, group_of=lambda item: videos[item]
    )
    assert len(list(ready)) == 24
    for video in range(4):
        assert len({by_thread[item] for item in range(24) if videos[item] == video}) == 1
    assert len(set(by_thread.values())) == 2


def test_a_long_group_is_shared_by_all_workers_in_walks() -> None:
    by_thread: dict[int, str] = {}

    def prepare(item: int) -> None:
        by_thread[item] = threading.current_thread().name
        time.sleep(0.002)

    count = 4 * LONGEST_WALK
    list(
        decode_ahead(
            range(count), prepare, workers=2, max_items=count, max_bytes=1000, size_of=zero, group_of=lambda _: "video"
        )
    )
    runs = [len(list(run)) for _, run in itertools.groupby(by_thread[item] for item in range(count))]
    assert len(set(by_thread.values())) == 2
    assert all(run % LONGEST_WALK == 0 for run in runs)


def test_both_workers_are_at_work_where_the_bytes_hold_few_results() -> None:
    """A walk longer than what fits would leave the other workers at the gate."""
    together = threading.Barrier(2)

    def prepare(item: int) -> bytes:
        if item >= 8:
            together.wait(10)  # passes only with two workers at once
        return bytes(10)

    ready = decode_ahead(
        range(24), prepare, workers=2, max_items=16, max_bytes=40, size_of=len, group_of=lambda _: "video"
    )
    assert len(list(ready)) == 24


@pytest.mark.parametrize("name", ["workers", "max_items", "max_bytes"])
def test_a_bound_below_1_is_refused_at_once(name: str) -> None:
    bounds = {"workers": 1, "max_items": 1, "max_bytes": 1, name: 0}
    with pytest.raises(ConfigError, match=f"{name} is 0"):
        decode_ahead([1], lambda item: item, size_of=zero, **bounds)
