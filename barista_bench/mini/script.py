"""Chooses the things in the toy kitchen (`props.yaml`) and the events (`script.yaml`), only by a text and the seed.

Motion, relations, states, activities and process steps follow from things and events. Positions are in kitchen units
(one pixel of a picture that is 360 pixels high). The y axis points down, and the room extends from (0, -60) to
(1000, 440). A script is a list of blocks (process steps), and each block is a list of acts. Lengths are in ticks, 40
per second unless the script is stretched or squeezed to the length of the video. Percentages refer to the length of an
act.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib import resources
from itertools import chain
from typing import Literal, TypeVar

import msgspec

ROOM_WIDTH, ROOM_TOP, ROOM_BOTTOM = 1000, -60, 440
AIR = 20_000
"""Added to the painting depth of a held thing, so that the thing covers everything on the counter."""
HAND_CATEGORIES = {"right": "right hand", "left": "left hand"}


class PropPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A place for a thing: in the room, or on a `parent`; the thing then moves with the parent.

    `depth` orders the painting relative to the parent. `angle` (64 per turn) is the thing's rotation at this place.
    `relations` hold while a thing is at this place. "under" is a relation from the thing to the parent. "contains", and
    names with a "~", are relations from the parent to the thing. "under:pf" names `pf` in place of the parent.
    """

    parent: str
    x: int
    y: int
    depth: int = 1
    relations: tuple[str, ...] = ()
    angle: int = 0


class Prop(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An object. It starts at `home`, and has one of the `colours`.

    The right hand touches the object at `grip`; the left hand touches it at the mirrored point. `spout` and `tilt`
    describe pouring, and the object is filled at `mouth`. A hand that holds the object also holds its `grip_part`, but
    the `body_hand` holds the object itself. A `steady` object is never drawn turned; only its parts are.
    """

    category: str
    painter: str
    home: PropPlace
    colours: tuple[str, ...]
    type: str = ""
    state: str = ""
    grip: tuple[int, int] = (0, 0)
    grip_part: str = ""
    body_hand: str = ""
    spout: tuple[int, int] = (0, 0)
    tilt: int = 0
    mouth: tuple[int, int] = (0, -44)
    steady: bool = False


class _PropTables(msgspec.Struct):
    props: dict[str, dict[str, Prop]]
    places: dict[str, dict[str, PropPlace]]


_PROPS = msgspec.yaml.decode(resources.files(__package__).joinpath("props.yaml").read_bytes(), type=_PropTables)


def props_of(preparation: str) -> dict[str, Prop]:
    """Return the objects of a kitchen with this kind of coffee machine, by key."""
    return _PROPS.props["common"] | _PROPS.props[preparation]


def places_of(preparation: str) -> dict[str, PropPlace]:
    """Return the named places of a kitchen with this kind of coffee machine."""
    return _PROPS.places["common"] | _PROPS.places[preparation]


class PropChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change: `thing` gets the state `value` after `after` percent of the act.

    The state lasts for `lasts` ticks; with 0, it lasts until the next change.
    """

    thing: str
    value: str
    after: int = 60
    lasts: int = 0


class Fill(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A flow: `content` runs from a spout (an object and an offset) to its new place.

    The flow starts after `after` percent of the act and lasts `lasts` ticks. `to` is the content's new place in the
    object `vessel`, and `full` is the final level, up to 8. If `lasts` is 0, no flow is visible: the content only
    changes its place.
    """

    content: str
    to: str
    vessel: str
    spout: tuple[str, int, int]
    after: int = 60
    lasts: int = 100
    full: int = 8


class Act(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One action of the right, the left or both hands on `thing`; its name is its activity ("Verb noun").

    The kinds are grasp (take and lift), place (put the held thing down), carry (grasp and place in one act), slide
    (move in contact, along the counter or about a joint), press, pour (into the vessel `to`), work (use the held thing
    at `to`, moving by `sway`) and pause. `value` is the human action in addition to "holds". `helps` names the thing in
    the other hand. The act begins `early` ticks before the previous act ends.
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
    """A process step. An act that is only a name refers to a shared sequence of acts."""

    step: str
    acts: tuple[Act | str, ...]


class _ScriptTables(msgspec.Struct):
    shared: dict[str, tuple[Act, ...]]
    blocks: dict[str, dict[str, Block]]
    orders: dict[str, list[str]]
    effects: dict[str, str]


_TABLES = msgspec.yaml.decode(resources.files(__package__).joinpath("script.yaml").read_bytes(), type=_ScriptTables)
PREPARATIONS = tuple(_TABLES.orders)
EFFECTS = _TABLES.effects
"""Maps a preparation to the blocks of a video in which things change their state or their places."""


def script_of(preparation: str, turn: int, seed: int, order: str = "") -> list[tuple[str, list[Act]]]:
    """Return (process step, acts) for each block of a script; `turn` counts the videos of a preparation from 0.

    `order` names the blocks; by default it is one of the preparation's orders.
    """
    order = order or pick_in_turn(f"order:{seed}:{preparation}", _TABLES.orders[preparation], turn)
    blocks = _TABLES.blocks["common"] | _TABLES.blocks[preparation]
    script = []
    for block in map(blocks.__getitem__, order.split()):
        acts = (_TABLES.shared[item] if isinstance(item, str) else (item,) for item in block.acts)
        script.append((block.step, list(chain.from_iterable(acts))))
    return script


T = TypeVar("T")


def seeded_number(text: str, limit: int) -> int:
    """Return an integer in [0, limit) that depends only on the text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % limit


def pick(text: str, options: Sequence[T]) -> T:
    """Return one of the options; the text determines which."""
    return options[seeded_number(text, len(options))]


def pick_in_turn(text: str, options: Sequence[T], turn: int) -> T:
    """Return one of the options by the text, like `pick`, but with different options in consecutive turns."""
    return options[(seeded_number(text, len(options)) + turn) % len(options)]
