"""Values that several threads want, each made once and kept within a bound of bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from cachetools import LRUCache

from barista_bench.errors import ConfigError

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


@dataclass(slots=True)
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
        self._lock = threading.Lock()
        self._kept: LRUCache[KeyT, ValueT] = LRUCache(max_bytes, size_of)
        # None stands for a failure: a thread that waited tries again, and meets an error of its own.
        self._making: dict[KeyT, Future[ValueT | None]] = {}
        self._counts = CacheCounts()

    @property
    def counts(self) -> CacheCounts:
        """As they stand now."""
        with self._lock:
            return replace(self._counts, bytes=int(self._kept.currsize))

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
            make: called with the keys to make, and further ones worth making on the way; must return all of the first,
                may leave out the second. What it raises is raised here.
            candidates: given the keys to make, names further ones, best first; those that are kept or being made are
                passed over. Called while the cache is locked: it must not block, nor call the cache.
        """
        values: dict[KeyT, ValueT] = {}
        wanted = list(dict.fromkeys(keys))
        while missing := [key for key in wanted if key not in values]:
            with self._lock:
                kept = {key: self._kept[key] for key in missing if key in self._kept}
                others = {key: self._making[key] for key in missing if key in self._making}
                mine = [key for key in missing if key not in kept and key not in others]
                further = list(dict.fromkeys(candidates(mine))) if mine else []
                further = [
                    key for key in further if not any(key in known for known in (mine, self._kept, self._making))
                ]
                self._counts.reused += len(kept)
                self._making |= {key: Future() for key in (*mine, *further)}
            values |= kept
            if mine:
                values |= self._make(mine, further, make)
            # A thread does its own work first, so two threads that wait for each other's values both get them.
            for key, future in others.items():
                value = future.result()
                if value is not None:
                    values[key] = value
                    with self._lock:
                        self._counts.reused += 1
        return values

    def discard(self, keys: Iterable[KeyT]) -> None:
        """Drop values that will not be wanted again, where they are kept."""
        with self._lock:
            for key in keys:
                self._kept.pop(key, None)

    def clear(self) -> None:
        """Drop everything that is kept."""
        with self._lock:
            self._kept.clear()

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
                before = len(self._kept)
                fitting = {key: value for key, value in made.items() if self._kept.getsizeof(value) <= self.max_bytes}
                self._kept.update(fitting)
                self._counts.decoded += len(made)
                self._counts.evicted += before + len(fitting) - len(self._kept)
            for key, future in futures.items():
                future.set_result(made.get(key))
