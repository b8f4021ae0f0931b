"""Stages of a run: seconds summed over threads."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import get_args

import pytest

from barista_bench.data import shared_frames
from barista_bench.data.shared_frames import Stage, StageClock


class Time:
    """A clock that is set by hand."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(shared_frames, "time", SimpleNamespace(perf_counter=made))
    return made


def test_blocks_one_after_another_are_timed_and_one_that_raises_takes_its_time(time: Time) -> None:
    clock = StageClock()
    for ended in (2.0, 5.0):
        with clock("decode"):
            time.seconds = ended
        time.seconds += 1

    def fails() -> None:
        with clock("decode"):
            time.seconds += 1.5
            raise KeyError("frame")

    with pytest.raises(KeyError):
        fails()
    clock.add("load", 1.5)
    clock.add("load", 0.5)
    assert clock.seconds == dict.fromkeys(get_args(Stage), 0.0) | {"decode": 5.5, "load": 2.0}


def test_threads_at_once_add_up(time: Time) -> None:
    clock = StageClock()
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
    assert clock.seconds["prepare"] == 10.0
