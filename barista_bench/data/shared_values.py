"""Values that several threads want, each made once and kept within a bound of bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from barista_bench.errors import ConfigError

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class CacheCounts:
    """What a cache did so far.

    Args:
        decoded: values made.
        reused: values handed out that were kept, or that another thread was making.
        evicted: values dropped for want of room, whether or not they were wanted again.
        bytes: held now.
    """

    decoded: int = 0
    reused: int = 0
    evicted: int = 0
    bytes: int = 0


class SharedCache(Generic[KeyT, ValueT]):
    """Least recently used values go first. A value that is being made is waited for, never made twice.

    Args:
        max_bytes: kept at the most; 0 keeps nothing, and still joins threads that want the same at once.
        size_of: bytes of a value.

    Raises:
        ConfigError: `max_bytes` is negative.
    """

    def __init__(self, max_bytes: int, size_of: Callable[[ValueT], int]) -> None:
        if max_bytes < 0:
            raise ConfigError(f"a cache of {max_bytes} bytes. Remedy: give 0 (keep nothing) or more")
        self.max_bytes = max_bytes
        self._size_of = size_of
        self._lock = threading.Lock()
        self._kept: OrderedDict[KeyT, ValueT] = OrderedDict()
        # None stands for a failure: whoever waited tries again, and meets an error of its own.
        self._making: dict[KeyT, Future[ValueT | None]] = {}
        self._counts = CacheCounts()

    @property
    def counts(self) -> CacheCounts:
        with self._lock:
            return self._counts

    def get(
        self,
        keys: Iterable[KeyT],
        make: Callable[[list[KeyT], list[KeyT]], Mapping[KeyT, ValueT]],
        *,
        candidates: Callable[[Sequence[KeyT]], Sequence[KeyT]] = lambda _: (),
    ) -> dict[KeyT, ValueT]:
        """The values of `keys`.

        Args:
            keys: what is wanted.
            make: called with the keys that nobody has, and further ones worth making on the way; must return all of
                the first, may leave out the second. What it raises is raised here.
            candidates: given the keys to be made, names further ones, best first. Those that are not at hand yet are
                made as well. Called while the cache is locked: it must not block, nor call the cache.
        """
        found: dict[KeyT, ValueT] = {}
        wanted = list(dict.fromkeys(keys))
        while missing := [key for key in wanted if key not in found]:
            with self._lock:
                mine, others = self._claim(missing, found)
                further = [key for key in dict.fromkeys(candidates(mine)) if self._is_new(key, mine)] if mine else []
                self._making |= {key: Future() for key in (*mine, *further)}
            if mine:
                found |= self._make(mine, further, make)
            # Own work is done first, so two threads that wait for each other's values both get them.
            for key, future in others.items():
                value = future.result()
                if value is not None:
                    found[key] = value
                    self._count(reused=1)
        return found

    def discard(self, keys: Iterable[KeyT]) -> None:
        """Drop what nobody will want again, where it is kept."""
        with self._lock:
            for key in keys:
                if key in self._kept:
                    self._drop(key)

    def clear(self) -> None:
        """Drop everything that is kept."""
        with self._lock:
            self._kept.clear()
            self._counts = replace(self._counts, bytes=0)

    def _claim(
        self, missing: Sequence[KeyT], found: dict[KeyT, ValueT]
    ) -> tuple[list[KeyT], dict[KeyT, Future[ValueT | None]]]:
        """Put into `found` what is kept; the rest is this thread's to make, or being made by another."""
        mine: list[KeyT] = []
        others: dict[KeyT, Future[ValueT | None]] = {}
        for key in missing:
            if key in self._kept:
                found[key] = self._kept[key]
                self._kept.move_to_end(key)
                self._counts = replace(self._counts, reused=self._counts.reused + 1)
            elif key in self._making:
                others[key] = self._making[key]
            else:
                mine.append(key)
        return mine, others

    def _is_new(self, key: KeyT, mine: Sequence[KeyT]) -> bool:
        return key not in self._kept and key not in self._making and key not in mine

    def _make(
        self,
        mine: list[KeyT],
        further: list[KeyT],
        make: Callable[[list[KeyT], list[KeyT]], Mapping[KeyT, ValueT]],
    ) -> dict[KeyT, ValueT]:
        made: Mapping[KeyT, ValueT] = {}
        try:
            made = make(mine, further)
            return {key: made[key] for key in mine}
        finally:  # also after an interrupt, or others would wait for ever
            with self._lock:
                futures = {key: self._making.pop(key) for key in (*mine, *further)}
                self._counts = replace(self._counts, decoded=self._counts.decoded + len(made))
                for key, value in made.items():
                    self._keep(key, value)
            for key, future in futures.items():
                future.set_result(made.get(key))

    def _keep(self, key: KeyT, value: ValueT) -> None:
        size = self._size_of(value)
        if size > self.max_bytes:
            return
        while self._counts.bytes + size > self.max_bytes:
            self._drop(next(iter(self._kept)))
            self._counts = replace(self._counts, evicted=self._counts.evicted + 1)
        self._kept[key] = value
        self._counts = replace(self._counts, bytes=self._counts.bytes + size)

    def _drop(self, key: KeyT) -> None:
        self._counts = replace(self._counts, bytes=self._counts.bytes - self._size_of(self._kept.pop(key)))

    def _count(self, reused: int) -> None:
        with self._lock:
            self._counts = replace(self._counts, reused=self._counts.reused + reused)
