"""Stages of a run: seconds summed over threads beside the wall clock."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from barista_bench.core.timing import STAGES, StageClock


class Time:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_a_block_is_timed_and_counted() -> None:
    time = Time()
    clock = StageClock(now=time)
    with clock("decode", count=6):
        time.seconds = 2.0
    decode = clock.stages["decode"]
    assert (decode.seconds, decode.busy, decode.count, decode.rate) == (2.0, 2.0, 6, 3.0)
    assert not decode.is_summed


def test_threads_at_once_add_up_and_are_marked_as_summed() -> None:
    time = Time()
    clock = StageClock(now=time)
    inside, go_on = threading.Barrier(3), threading.Event()

    def work() -> None:
        with clock("prepare"):
            inside.wait(10)
            assert go_on.wait(10)

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(work) for _ in range(2)]
        inside.wait(10)
        time.seconds = 5.0
        go_on.set()
        for future in futures:
            future.result()
    prepare = clock.stages["prepare"]
    assert (prepare.seconds, prepare.busy, prepare.count, prepare.threads) == (10.0, 5.0, 2, 2)
    assert prepare.is_summed
    assert prepare.rate == 2 / 5


def test_one_thread_after_another_is_no_sum_over_threads() -> None:
    time = Time()
    clock = StageClock(now=time)

    def work() -> None:
        with clock("judge"):
            time.seconds += 1

    for _ in range(3):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert clock.seconds["judge"] == clock.stages["judge"].busy == 3.0
    assert not clock.stages["judge"].is_summed


def test_a_block_that_raises_takes_its_time_and_counts_nothing() -> None:
    time = Time()
    clock = StageClock(now=time)

    def fails() -> None:
        with clock("decode", count=4):
            time.seconds = 1.5
            raise KeyError("frame")

    with pytest.raises(KeyError):
        fails()
    assert (clock.seconds["decode"], clock.stages["decode"].count) == (1.5, 0)


def test_every_stage_is_there_before_anything_was_timed() -> None:
    assert StageClock().seconds == dict.fromkeys(STAGES, 0.0)
    assert StageClock().stages["generate"].rate == 0.0


def test_seconds_measured_elsewhere_are_added() -> None:
    clock = StageClock()
    clock.add("load", 1.5)
    clock.add("load", 0.5)
    assert (clock.seconds["load"], clock.stages["load"].count) == (2.0, 2)


def test_an_unknown_stage_and_negative_seconds_are_refused() -> None:
    clock = StageClock()
    with pytest.raises(ValueError, match="no stage 'decoding'"):
        clock.add("decoding", 1.0)
    with pytest.raises(ValueError, match="no stage 'x'"), clock("x"):
        pass
    with pytest.raises(ValueError, match="-1"):
        clock.add("load", -1)
