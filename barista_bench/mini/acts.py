"""The words that a script is written in: acts, what they cause, and the blocks (process steps) they make up.

Lengths are in ticks, percentages are of the act's own length.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class State:
    """`thing` takes the state `value` after `at` percent of the act, for `lasts` ticks (0: until changed)."""

    thing: str
    value: str
    at: int = 60
    lasts: int = 0


@dataclass(frozen=True)
class Fill:
    """`content` runs from a spout (an object and an offset) into `to`, after `at` percent, for `lasts` ticks.

    `full` is the level reached, of 8. With `lasts` 0 nothing is seen to run: the content is only put
    elsewhere.
    """

    content: str
    to: str
    vessel: str
    spout: tuple[str, int, int]
    at: int = 60
    lasts: int = 100
    full: int = 8


@dataclass(frozen=True)
class Act:
    """One thing done by the right, the left or both hands to `thing`.

    Kinds: grasp (take and lift), place (put what is held), carry (both in one), slide (move in contact, along
    the counter or about a joint), press, pour (into the vessel `to`), work (use what is held at `to`, moving
    by `sway`), pause. `value` is the human action beside "holds"; `helps` names what the other hand holds
    meanwhile; `early` is by how many ticks the act begins before the one before it ends.
    """

    name: str
    kind: str
    hand: str
    thing: str
    ticks: int
    to: str = ""
    value: str = ""
    helps: str = ""
    effects: tuple[State | Fill, ...] = ()
    early: int = 0
    sway: tuple[int, int] = (0, 0)
    content: str = ""


@dataclass(frozen=True)
class Block:
    step: str
    acts: tuple[Act, ...]
