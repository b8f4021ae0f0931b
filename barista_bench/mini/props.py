"""What stands in the kitchen: objects and the places where things can be put, from `props.yaml`.

Positions are in kitchen units (one pixel of a 360 pixel high picture). y points down; the room reaches from (0, -60) to
(1000, 440).
"""

from __future__ import annotations

from importlib import resources

import msgspec

ROOM_WIDTH, ROOM_TOP, ROOM_BOTTOM = 1000, -60, 440
AIR = 20_000
"""Added to the painting depth of what is in a hand, so that it is drawn over everything on the counter."""
HANDS = {"right": "right hand", "left": "left hand"}


class PropPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a thing can be: in the room, or on a `parent`, with which it then moves.

    `depth` orders painting relative to the parent; `angle` (64 to a turn) is how a thing is turned there. `relations`
    hold while something is there: "under" means thing under parent; "contains" and names with a "~" mean parent to
    thing; "under:pf" names another end.
    """

    parent: str
    x: int
    y: int
    depth: int = 1
    relations: tuple[str, ...] = ()
    angle: int = 0


class Prop(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An object; it stands at `home` at first, and `colours` are those that it comes in.

    `grip` is where the right hand touches it (the left one mirrored), `spout` and `tilt` are how it pours, `mouth`
    is where it is filled. Who holds the object also holds its `grip_part`, but the `body_hand` takes the object
    itself. A `steady` object is never drawn turned, only its parts are.
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


_TABLES = msgspec.yaml.decode(resources.files(__package__).joinpath("props.yaml").read_bytes(), type=_PropTables)


def props_of(preparation: str) -> dict[str, Prop]:
    """The objects of a kitchen for this kind of coffee machine, by key."""
    return _TABLES.props["common"] | _TABLES.props[preparation]


def places_of(preparation: str) -> dict[str, PropPlace]:
    """The named places of that kitchen."""
    return _TABLES.places["common"] | _TABLES.places[preparation]
