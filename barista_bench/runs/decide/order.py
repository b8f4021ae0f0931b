"""The order of examples in a run that may stop early. Content determines the order, so it cannot be chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

BLOCK = 64
"""Minimum number of examples in a block. The answers are looked at after each block.

Within a block, examples are asked by video, so that frames are reused.
"""


@dataclass(frozen=True)
class AskingOrder:
    """Units in the order of asking, grouped into blocks. Each unit holds the positions of its examples in the set.

    A unit is one example, or a group that is scored or drawn together, such as a problem set or a video.
    """

    units: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, content_hash: str, unit_names: Sequence[str]) -> AskingOrder:
        """Sort units by the SHA-256 of the content hash and the unit's name. `unit_names` has one name per example."""
        members: dict[str, list[int]] = {}
        for position, name in enumerate(unit_names):
            members.setdefault(name, []).append(position)
        ordered = sorted(members, key=lambda name: sha256(f"{content_hash}\n{name}".encode()).digest())
        return cls(tuple(tuple(members[name]) for name in ordered))

    @cached_property
    def block_ends(self) -> tuple[int, ...]:
        """Return the number of units up to the end of each block. A block ends as soon as it has `BLOCK` examples."""
        ends, examples = [], 0
        for number, unit in enumerate(self.units, start=1):
            examples += len(unit)
            if examples >= BLOCK or number == len(self.units):
                ends.append(number)
                examples = 0
        return tuple(ends)

    @cached_property
    def block_of(self) -> Mapping[int, int]:
        """Map the position of each example to its block."""
        starts = (0, *self.block_ends)
        return {
            position: block
            for block, end in enumerate(self.block_ends)
            for unit in self.units[starts[block] : end]
            for position in unit
        }

    def examples(self, units: int) -> int:
        """Return the number of examples in the first `units` units."""
        return sum(map(len, self.units[:units]))
