"""What stands in the kitchen: data tables of objects and of the places where things can be put.

Positions are in kitchen units (one pixel of a 360 pixel high picture). y points down; the room reaches from
(0, -60) to (1000, 440). A place with a parent moves with it, and states the position relations that hold
while something is there:
"under" means thing under parent; "contains" and names with a "~" mean parent to thing; "under:pf" names
another end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

ROOM_WIDTH, ROOM_TOP, ROOM_BOTTOM = 1000, -60, 440
AIR = 20_000
"""Added to the painting depth of what is in a hand, so that it is drawn over everything on the counter."""


@dataclass(frozen=True)
class At:
    """A place.

    `dz` orders painting relative to the parent; `angle` (64 to a turn) is how a thing is turned there.
    """

    parent: str
    x: int
    y: int
    dz: int = 1
    relations: tuple[str, ...] = ()
    angle: int = 0


@dataclass(frozen=True)
class Prop:
    """An object.

    `grip` is where the right hand touches it (the left one mirrored), `spout` and `tilt` are how it pours, `mouth`
    is where it is filled. Who holds the object also holds its `grip_part`, but the `body_hand` takes the object
    itself. A `steady` object is never drawn turned, only its parts are.
    """

    category: str
    painter: str
    at: At
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


IN = ("inside", "contains")
PART = ("part of",)
CUPS = ("white", "red", "blue", "green", "yellow", "turquoise")


def _on(x: int, y: int) -> At:
    return At("", x, y, 0)


COMMON: dict[str, Prop] = {
    "cup_a": Prop("coffee cup", "cup", _on(256, 372), CUPS, "mug", "empty", grip=(16, -24)),
    "cup_b": Prop(
        "coffee cup", "cup", _on(176, 336), ("=cup_a", "white", "red"), "mug", "empty", grip=(16, -24),
    ),
    "saucer": Prop("saucer", "saucer", _on(344, 388), ("=cup_a", "white"), grip=(30, 4)),
    "spoon": Prop("spoon", "spoon", _on(110, 396), ("silver",), "teaspoon", grip=(48, -32)),
    "coffee": Prop("coffee", "surface", At("machine", 0, -120, -1), ("brown",), "espresso"),
    "carton": Prop(
        "milk carton", "milk_carton", _on(724, 372), ("blue", "green", "red"), state="close",
        grip=(20, -40), spout=(-14, -100), tilt=-15,
    ),
    "cap": Prop(
        "lid", "cap", At("carton", 0, -101, 2, ("attached to",)), ("red", "white"), "cap", grip=(4, -4),
    ),
    "milk": Prop("milk", "surface", At("carton", 0, -40, -1, IN), ("white",)),
    "trash": Prop("trash can", "trash_can", _on(934, 344), ("gray", "black")),
    "towel": Prop("towel", "towel", _on(826, 396), ("blue", "red", "green"), grip=(10, -14)),
    "thing": Prop("unknown", "plant", _on(64, 300), ("orange", "white", "pink")),
}  # fmt: skip

COMMON_PLACES: dict[str, At] = {
    "saucer_front": _on(470, 396),
    "on_saucer": At("saucer", 0, -1, 12, ("on", "~under")),
    "front": _on(560, 404),
    "in_cup": At("cup_a", 0, -43, 2, IN),
    "top_up": At("cup_a", 0, -43, 3, IN),
    "stir": At("cup_a", 4, -38, 1, IN),
    "cap_off": _on(664, 398),
    "in_trash": At("trash", 0, -40, -1, IN),
    "wipe": At("machine", -20, 26, 40, ("under",)),
}

SUGAR: dict[str, Prop] = {
    "jar": Prop("jar", "jar", _on(646, 344), ("beige",), state="close", grip=(18, -26)),
    "jar_lid": Prop("lid", "jar_lid", At("jar", 0, -58, 1, ("attached to", "on")), ("silver", "red"), grip=(4, -12)),
    "sugar": Prop("sugar", "surface", At("jar", 0, -37, 1, IN), ("white",)),
}
SUGAR_PLACES = {
    "jar_lid_off": _on(584, 396),
    "scoop": At("jar", 0, -46, -1, IN),
    "over_cup": At("cup_a", 8, -66, 300),
}

TANK: dict[str, Prop] = {
    "tank": Prop(
        "water tank", "water_tank", At("machine", 122, -8, 2, ("attached to",)), ("transparent",),
        grip=(20, -60),
    ),
    "water": Prop("water", "water", At("tank", 0, 0, 1, IN), ("blue",)),
}  # fmt: skip

FULLY_AUTOMATIC: dict[str, Prop] = {
    "machine": Prop(
        "coffee machine", "fully_automatic", _on(500, 292), ("gray", "red", "black"), "fully automatic",
        "idle",
        grip=(36, -168), mouth=(-6, -206),
    ),
    "power": Prop("button", "button", At("machine", 46, -182, 1, PART), ("green", "red"), "power button"),
    "brew": Prop("button", "button", At("machine", 46, -156, 1, PART), ("silver",), "espresso button"),
    "rinse": Prop("button", "button", At("machine", 72, -156, 1, PART), ("silver", "blue"), "rinse button"),
    "knob": Prop("knob", "knob", At("machine", 80, -112, 1, PART), ("black", "silver"), grip=(0, 4)),
    "hopper_lid": Prop(
        "lid", "hopper_lid", At("machine", 0, -203, 2, ("on", "part of")), ("black", "gray"), "hopper lid",
        "close", grip=(6, -14),
    ),
    "tin": Prop(
        "container", "container", _on(166, 384), ("green", "red", "purple"), "bean container", "full",
        grip=(20, -32), spout=(-22, -62), tilt=-13,
    ),
    "beans": Prop("coffee", "surface", At("tin", 0, -61, 1, IN), ("brown",), "beans"),
    "syrup": Prop(
        "bottle", "bottle", _on(790, 330), ("brown", "orange"), "syrup bottle", grip=(12, -40),
        spout=(0, -100), tilt=-18,
    ),
    "glass": Prop("glass", "glass", _on(112, 330), ("transparent",), grip=(14, -30)),
    "wand": Prop("steam wand", "steam_wand", At("machine", -108, -120, 1, ("attached to",)), ("silver",)),
}  # fmt: skip
FULLY_AUTOMATIC_PLACES: dict[str, At] = {
    "tray": At("machine", 0, -4, 20, ("under",)),
    "lid_off": At("machine", -84, -222, 2, ("on", "part of"), -6),
    "hopper": At("machine", 0, -198, -1, IN),
    "tank_out": _on(700, 330),
    "knob_on": At("machine", 80, -112, 1, PART, 16),
}

CAPSULE: dict[str, Prop] = {
    "store": Prop("container", "capsule_store", _on(500, 316), ("brown", "black"), "capsule store"),
    "machine": Prop(
        "coffee machine", "capsule_machine", At("store", 0, -34, 5, ("on", "~under")),
        ("red", "white", "turquoise"),
        "capsule", "idle",
    ),
    "drawer": Prop(
        "drawer", "drawer", At("store", 0, 0, -20, PART), ("brown", "black"), state="close",
        grip_part="drawer_handle",
    ),
    "drawer_handle": Prop("handle", "drawer_handle", At("drawer", 0, 12, 1, PART), ("silver",), grip=(4, 4)),
    "caps_a": Prop("capsule", "capsule", At("drawer", -30, -10, 2, IN), ("purple", "green"), grip=(12, -2)),
    "caps_b": Prop("capsule", "capsule", At("drawer", 4, -10, 2, IN), ("purple", "yellow"), grip=(12, -2)),
    "caps_c": Prop("capsule", "capsule", At("drawer", 38, -10, 2, IN), ("blue", "green"), grip=(12, -2)),
    "lever": Prop(
        "handle", "lever", At("machine", 34, -182, 6, PART), ("silver", "black"), "lever", "close",
        grip=(-60, 0),
    ),
    "brew": Prop(
        "button", "button", At("machine", -18, -150, 1, PART), ("green", "silver"), "espresso button",
    ),
    "lungo": Prop("button", "button", At("machine", 18, -150, 1, PART), ("silver",), "lungo button"),
    "frother": Prop(
        "milk frother", "milk_frother", _on(806, 356), ("silver", "black"), grip=(18, -40), spout=(-22, -72),
        tilt=-13,
        mouth=(0, -71),
    ),
    "froth": Prop("button", "button", At("frother", 0, -22, 1, PART), ("red", "silver"), "frother button"),
    **SUGAR,
}  # fmt: skip
# The tank of the small machine stands closer to its middle.
CAPSULE |= {"tank": replace(TANK["tank"], at=replace(TANK["tank"].at, x=66)), "water": TANK["water"]}
CAPSULE_PLACES: dict[str, At] = {
    "tray": At("machine", 0, -4, 20, ("under",)),
    "drawer_open": At("store", 0, 36, -20, PART),
    "lever_up": At("machine", 34, -182, 6, PART, 13),
    "slot": At("machine", 0, -150, -1, IN),
    "in_frother": At("frother", 0, -71, 2, IN),
    "tank_out": _on(664, 318),
    **SUGAR_PLACES,
}

PORTAFILTER: dict[str, Prop] = {
    "machine": Prop(
        "coffee machine", "portafilter_machine", _on(516, 290), ("silver", "red", "black"), "portafilter",
        "idle",
    ),
    "brew": Prop("button", "button", At("machine", -98, -168, 1, PART), ("green", "silver"), "brew button"),
    "rinse": Prop("button", "button", At("machine", -72, -168, 1, PART), ("silver",), "rinse button"),
    "hot": Prop("button", "button", At("machine", -46, -168, 1, PART), ("silver", "red"), "water button"),
    "knob": Prop("knob", "knob", At("machine", 88, -158, 1, PART), ("black",), "steam knob", grip=(0, 4)),
    "wand": Prop(
        "steam wand", "steam_wand", At("machine", 92, -122, 30, ("attached to",)), ("silver",), state="close",
    ),
    "pf": Prop(
        "portafilter", "basket", At("machine", -34, -106, 4, ("attached to",), 5), ("silver",), state="empty",
        grip=(4, 6), grip_part="pf_handle", body_hand="left", mouth=(0, -9), steady=True,
    ),
    "pf_handle": Prop("handle", "pf_handle", At("pf", 0, 0, 1, PART), ("black", "brown"), grip=(62, 2)),
    "mill": Prop("coffee mill", "coffee_mill", _on(318, 300), ("red", "black", "green"), state="idle"),
    "grind": Prop("button", "button", At("mill", 0, -102, 1, PART), ("silver", "green"), "grind button"),
    "grounds": Prop("coffee", "surface", At("mill", 0, -100, -1, IN), ("brown",), "ground", steady=True),
    "scale": Prop("scale", "scale", _on(412, 366), ("black", "white"), grip=(40, 4)),
    "tamper": Prop("tamper", "tamper", _on(348, 396), ("brown", "black", "red"), grip=(4, -38)),
    "cup_c": Prop(
        "coffee cup", "cup", At("machine", 70, -206, 1, ("on",)), ("white", "=cup_a"), "mug", "empty",
    ),
    "pitcher": Prop(
        "pitcher", "pitcher", _on(640, 388), ("silver", "blue"), state="empty", grip=(30, -30),
        spout=(-30, -58), tilt=-9,
        mouth=(0, -53),
    ),
}  # fmt: skip
PORTAFILTER_PLACES: dict[str, At] = {
    "locked": PORTAFILTER["pf"].at,
    "unlocked": replace(PORTAFILTER["pf"].at, angle=18),
    "fork": At("mill", 0, -50, 6, ("under",), 4),
    "on_scale": At("scale", 0, -22, 3, ("on", "~under"), 1),
    "in_pf": At("pf", 0, -9, 2, IN),
    "locked_in": At("pf", 0, -4, -1, IN),
    "on_pf": At("pf", 0, -8, 9, ("on", "~under")),
    "tray": At("machine", -34, -6, 20, ("under", "under:pf")),
    "knob_on": replace(PORTAFILTER["knob"].at, angle=20),
    "in_pitcher": At("pitcher", 0, -53, 2, IN),
    "steaming": At("wand", 8, 108, 8, ("under", "~inside")),
    "wiping": At("wand", 6, 52, 400, ("on", "~under")),
}

PROPS: dict[str, dict[str, Prop]] = {
    "fully automatic": {**COMMON, **FULLY_AUTOMATIC, **TANK},
    "capsule": {**COMMON, **CAPSULE},
    "portafilter": {**COMMON, **PORTAFILTER},
}
PLACES: dict[str, dict[str, At]] = {
    "fully automatic": {**COMMON_PLACES, **FULLY_AUTOMATIC_PLACES},
    "capsule": {**COMMON_PLACES, **CAPSULE_PLACES},
    "portafilter": {**COMMON_PLACES, **PORTAFILTER_PLACES},
}
HANDS = {"right": "right hand", "left": "left hand"}
