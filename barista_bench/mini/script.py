"""What happens when: the one source of motion, relations, states, activities and process steps, from `script.yaml`.

A script is a list of blocks (process steps) of acts. Lengths are in ticks, 40 to a second unless the script is
stretched or squeezed to its video's length; percentages are of the act's own length.
"""

from __future__ import annotations

from importlib import resources
from typing import Literal

import msgspec

from barista_bench.mini.seeds import spread


class PropChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`thing` takes the state `value` after `after` percent of the act, for `lasts` ticks (0: until changed)."""

    thing: str
    value: str
    after: int = 60
    lasts: int = 0


class Fill(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`content` runs from a spout (an object and an offset) to its new place, after `after` percent, for `lasts` ticks.

    The place `to` is that of the content in the object `vessel`; `full` is the level reached, of 8. With `lasts` 0
    nothing is seen to run: the content is only put elsewhere.
    """

    content: str
    to: str
    vessel: str
    spout: tuple[str, int, int]
    after: int = 60
    lasts: int = 100
    full: int = 8


class Act(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing done by the right, the left or both hands to `thing`; its name is its activity ("Verb noun").

    Kinds: grasp (take and lift), place (put what is held), carry (both in one), slide (move in contact, along
    the counter or about a joint), press, pour (into the vessel `to`), work (use what is held at `to`, moving
    by `sway`), pause. `value` is the human action beside "holds"; `helps` names what the other hand holds
    meanwhile; `early` is by how many ticks the act begins before the one before it ends.
    """

    kind: Literal["grasp", "place", "carry", "slide", "press", "pour", "work", "pause"]
    ticks: int
    name: str = ""
    hand: str = ""
    thing: str = ""
    to: str = ""
    value: str = ""
    helps: str = ""
    early: int = 0
    sway: tuple[int, int] = (0, 0)
    content: str = ""
    changes: tuple[PropChange, ...] = ()
    fills: tuple[Fill, ...] = ()


class Block(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A process step; an act that is only a name stands for a shared sequence of acts."""

    step: str
    acts: tuple[Act | str, ...]


class _ScriptTables(msgspec.Struct):
    shared: dict[str, tuple[Act, ...]]
    blocks: dict[str, dict[str, Block]]
    orders: dict[str, list[str]]


_TABLES = msgspec.yaml.decode(resources.files(__package__).joinpath("script.yaml").read_bytes(), type=_ScriptTables)
PREPARATIONS = tuple(_TABLES.orders)


def script_of(preparation: str, turn: int, seed: int) -> list[tuple[str, list[Act]]]:
    """(process step, its acts) for each block of the `turn`-th video (from 0) of a preparation."""
    order = spread(f"order:{seed}:{preparation}", _TABLES.orders[preparation], turn)
    blocks = _TABLES.blocks["common"] | _TABLES.blocks[preparation]
    return [(blocks[name].step, _written_out(blocks[name])) for name in order.split()]


def _written_out(block: Block) -> list[Act]:
    return [act for item in block.acts for act in (_TABLES.shared[item] if isinstance(item, str) else (item,))]
