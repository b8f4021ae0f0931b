"""The order in which examples are asked if a run may stop early: fixed by content, so that no one can choose it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

BLOCK = 64
"""Examples that are asked before one looks. Within a block they are asked by video, so that frames are reused."""


@dataclass(frozen=True)
class AskingOrder:
    """Units in the order of asking, each with the positions of its examples in the set, and blocks of whole units.

    A unit is an example; or what is scored or drawn as one: a problem set, a video.
    """

    units: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, content_hash: str, unit_names: Sequence[str]) -> AskingOrder:
        """Return the order of examples with these names of units, by SHA-256 of the content hash and the name."""
        members: dict[str, list[int]] = {}
        for position, name in enumerate(unit_names):
            members.setdefault(name, []).append(position)
        ordered = sorted(members, key=lambda name: sha256(f"{content_hash}\n{name}".encode()).digest())
        return cls(tuple(tuple(members[name]) for name in ordered))

    @cached_property
    def block_ends(self) -> tuple[int, ...]:
        """Return, for each block, the number of units up to its end: blocks are as small as `BLOCK` examples allow."""
        ends, examples = [], 0
        for number, unit in enumerate(self.units, start=1):
            examples += len(unit)
            if examples >= BLOCK or number == len(self.units):
                ends.append(number)
                examples = 0
        return tuple(ends)

    @cached_property
    def block_of(self) -> Mapping[int, int]:
        """Return position of an example -> its block."""
        starts = (0, *self.block_ends)
        return {
            position: block
            for block, end in enumerate(self.block_ends)
            for unit in self.units[starts[block] : end]
            for position in unit
        }

    def examples(self, units: int) -> int:
        """Return the number of examples of the first units."""
        return sum(map(len, self.units[:units]))
