"""The cache below the frame store, made once and kept within its bytes; and the seconds of a run's stages."""

import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from hypothesis import given, strategies as st

from barista_bench.data import shared_frames
from barista_bench.data.shared_frames import SharedCache, Stage, StageClock
from barista_bench.errors import ConfigError


def make(mine: list[int], further: list[int]) -> dict[int, bytes]:
    return {key: bytes(key) for key in (*mine, *further)}


class Reference:
    """The same cache, written down naively: the reference for the properties below."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.kept: OrderedDict[int, int] = OrderedDict()
        self.made = 0

    def get(self, keys: list[int]) -> None:
        new = [key for key in dict.fromkeys(keys) if key not in self.kept]
        for key in dict.fromkeys(keys):
            if key in self.kept:
                self.kept.move_to_end(key)
        self.made += len(new)
        for key in new:
            if key <= self.max_bytes:
                while sum(self.kept.values()) + key > self.max_bytes:
                    self.kept.popitem(last=False)
                self.kept[key] = key


@given(st.integers(0, 60), st.lists(st.lists(st.integers(0, 30), max_size=5), max_size=40))
def test_the_cache_keeps_the_entries_of_a_naive_least_recently_used_cache(
    max_bytes: int, asked: list[list[int]]
) -> None:
    cache: SharedCache[int, bytes] = SharedCache(max_bytes, len)
    reference = Reference(max_bytes)
    for keys in asked:
        assert cache.get(keys, make) == {key: bytes(key) for key in keys}
        reference.get(keys)
        assert cache.held_bytes == sum(reference.kept.values()) <= max_bytes
        assert cache.made_count == reference.made


def test_threads_that_need_the_same_value_at_the_same_time_make_it_once() -> None:
    cache: SharedCache[int, bytes] = SharedCache(0, len)  # nothing is kept: only the joining counts
    all_here, made, joined = threading.Barrier(4), [], threading.Semaphore(0)

    class Watched(dict[int, Any]):
        """Notes who finds that a value is being made."""

        def __getitem__(self, key: int) -> Any:
            joined.release()
            return super().__getitem__(key)

    cache._futures = Watched()

    def slow(mine: list[int], further: list[int]) -> dict[int, bytes]:
        made.extend(mine)
        assert all(joined.acquire(timeout=60) for _ in range(3 * 2)), "the three others make their own"
        return make(mine, further)

    def ask() -> dict[int, bytes]:
        all_here.wait(60)
        return cache.get([5, 6], slow)

    with ThreadPoolExecutor(4) as pool:
        results = [future.result(120) for future in [pool.submit(ask) for _ in range(4)]]
    assert results == [{5: bytes(5), 6: bytes(6)}] * 4
    assert sorted(made) == [5, 6]
    assert cache.made_count == 2


def test_two_threads_that_each_make_the_others_entry_both_get_it() -> None:
    cache: SharedCache[int, bytes] = SharedCache(100, len)
    both_claimed = threading.Barrier(2)

    def crossing(mine: list[int], further: list[int]) -> dict[int, bytes]:
        if mine in ([1], [2]):
            both_claimed.wait(10)
        return make(mine, further)

    def ask(first: int, second: int) -> dict[int, bytes]:
        cache.get([first], crossing)
        return cache.get([first, second], crossing)

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(ask, 1, 2), pool.submit(ask, 2, 1)]
        assert all(future.result(10) == {1: bytes(1), 2: bytes(2)} for future in futures)


def test_a_failure_reaches_only_the_thread_that_made_the_value_and_the_others_try_again() -> None:
    cache: SharedCache[int, bytes] = SharedCache(100, len)
    making, joined = threading.Event(), threading.Event()

    def fails(mine: list[int], further: list[int]) -> dict[int, bytes]:
        making.set()
        assert joined.wait(10)
        raise OSError("damaged")

    def ask_second() -> dict[int, bytes]:
        assert making.wait(10)
        threading.Timer(0.1, joined.set).start()  # by then this thread waits for the first
        return cache.get([3], make)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.submit(cache.get, [3, 4], fails), pool.submit(ask_second)
        with pytest.raises(OSError, match="damaged"):
            first.result(10)
        assert second.result(10) == {3: bytes(3)}
    assert cache.get([4], make) == {4: bytes(4)}, "what failed is not claimed for ever"


def test_candidates_are_made_on_the_way_and_those_at_hand_are_not() -> None:
    cache: SharedCache[int, bytes] = SharedCache(100, len)
    cache.get([7], make)
    seen = []

    def recording(mine: list[int], further: list[int]) -> dict[int, bytes]:
        seen.append((mine, further))
        return make(mine, further)

    assert cache.get([1], recording, candidates=lambda mine: [7, 1, 8, 8, 9]) == {1: bytes(1)}
    assert cache.get([8, 9], recording) == {8: bytes(8), 9: bytes(9)}
    assert seen == [([1], [8, 9])]


def test_candidates_are_not_requested_if_all_values_are_cached() -> None:
    cache: SharedCache[int, bytes] = SharedCache(100, len)
    cache.get([1], make)
    cache.get([1], make, candidates=lambda mine: pytest.fail("nothing is made"))


def test_a_negative_bound_is_refused() -> None:
    with pytest.raises(ConfigError, match="-1 bytes"):
        SharedCache(-1, len)


class Time:
    """A clock that is set by hand."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(shared_frames, "time", SimpleNamespace(perf_counter=made))
    return made


def test_consecutive_blocks_are_timed_and_a_block_that_raises_keeps_its_time(by_hand: Time) -> None:
    clock = StageClock()
    for ended in (2.0, 5.0):
        with clock("decode"):
            by_hand.seconds = ended
        by_hand.seconds += 1

    def fails() -> None:
        with clock("decode"):
            by_hand.seconds += 1.5
            raise KeyError("frame")

    with pytest.raises(KeyError):
        fails()
    clock.add("load", 1.5)
    clock.add("load", 0.5)
    assert clock.seconds == dict.fromkeys(get_args(Stage), 0.0) | {"decode": 5.5, "load": 2.0}


def test_the_clock_adds_up_seconds_of_concurrent_threads(by_hand: Time) -> None:
    clock = StageClock()
    inside, go_on = threading.Barrier(3), threading.Event()

    def work() -> None:
        with clock("prepare"):
            inside.wait(10)
            assert go_on.wait(10)

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(work) for _ in range(2)]
        inside.wait(10)
        by_hand.seconds = 5.0
        go_on.set()
        for future in futures:
            future.result()
    assert clock.seconds["prepare"] == 10.0
