"""Worker processes, none of which is left when this one is interrupted."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
JobT = TypeVar("JobT")


class _Worker(SpawnProcess):
    def start(self) -> None:
        """A terminal's Ctrl-C reaches every process: workers, from their first moment, leave it to this one."""
        with _interruption_deferred():
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # which the worker inherits
            try:
                super().start()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _interruption_deferred() -> Iterator[None]:
    """Ctrl-C waits for the end of the block: a start that is broken off would show its insides."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if received:
        signal.raise_signal(signal.SIGINT)


class _Spawning(SpawnContext):
    """Spawned, not forked: libraries that the caller has loaded hold threads and locks."""

    Process = _Worker


class _Executor(ProcessPoolExecutor):
    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """The first job starts the executor's own thread: one that is half started could not be joined."""
        with _interruption_deferred():
            return super().submit(fn, *args, **kwargs)


@contextmanager
def worker_processes(
    number: int, initializer: Callable[..., None] | None = None, initargs: tuple[Any, ...] = ()
) -> Iterator[ProcessPoolExecutor]:
    """An executor of `number` processes, each of which begins with `initializer`. An error ends them at once."""
    with _interruption_deferred():
        pool = _Executor(number, _Spawning(), initializer, initargs)
    try:
        yield pool
    except BaseException:
        for child in active_children():
            if isinstance(child, _Worker):
                child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def map_in_processes(work: Callable[[JobT], T], jobs: Sequence[JobT], number: int) -> Iterator[T]:
    """The result of `work` for each job, in order; in this process where `number` is 1 or there is one job only."""
    if number <= 1 or len(jobs) == 1:
        yield from map(work, jobs)
        return
    with worker_processes(min(number, len(jobs))) as pool:
        yield from pool.map(work, jobs)
