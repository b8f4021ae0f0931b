"""What happens when: the one source of motion, relations, states, activities and process steps.

A script is a list of blocks (process steps) of acts. An act's name is its activity ("Verb noun"); an act
without a name is a pause. Lengths are in ticks, 40 to a second unless the script is stretched or squeezed to
its video's length.
"""

from __future__ import annotations

from barista_bench.mini.acts import Act, Block, Fill, State
from barista_bench.mini.seeds import spread

R, L, B = "right", "left", "both"


def _pause(ticks: int) -> Act:
    return Act("", "pause", "", "", ticks)


def _brew(button: str, spout: tuple[str, int, int], ticks: int = 110) -> tuple[Act, ...]:
    effects = (
        State("machine", "extracting", 45, ticks),
        Fill("coffee", "in_cup", "cup_a", spout, 55, ticks - 8),
    )
    return (Act(f"Press {button}", "press", R, "brew", 36, value="presses", effects=effects),)


def _rinse(button: str, ticks: int = 54) -> Act:
    effects = (State("machine", "rinsing", 50, ticks),)
    return Act("Press rinse button", "press", L, button, 36, value="presses", effects=effects)


PREPARE_CUP = Block(
    "Prepare cup",
    (Act("Grasp cup", "grasp", R, "cup_a", 28), Act("Place cup", "place", R, "cup_a", 34, "tray")),
)
PREPARE_CUP_BOTH = Block(
    "Prepare cup",
    (
        Act("Grasp cup", "grasp", B, "cup_a", 30),
        Act("Place cup", "place", B, "cup_a", 38, "tray"),
        Act("Release cup", "press", R, "cup_a", 3, value="touches"),
    ),
)
OPEN_MILK = (
    Act("Open milk carton", "carry", R, "cap", 40, "cap_off", "turns", "carton", (State("carton", "open"),)),
    Act("Grasp milk carton", "grasp", R, "carton", 26),
)
CLOSE_MILK = (
    Act("Place milk carton", "place", R, "carton", 32, "home"),
    Act("Close milk carton", "carry", R, "cap", 40, "home", "turns", "carton", (State("carton", "close", 70),)),
)
MILK_INTO_CUP = Act("Pour milk", "pour", R, "carton", 72, "cup_a", content="milk")
ADD_MILK = Block("Add milk", (*OPEN_MILK, MILK_INTO_CUP, *CLOSE_MILK))
SERVE = Block(
    "Serve coffee",
    (
        Act("Grasp saucer", "grasp", L, "saucer", 26),
        Act("Place saucer", "place", L, "saucer", 30, "saucer_front"),
        Act("Lift cup", "grasp", B, "cup_a", 32),
        Act("Serve cup", "place", B, "cup_a", 40, "on_saucer"),
    ),
)
STIR = Block(
    "Stir coffee",
    (
        Act("Grasp spoon", "grasp", R, "spoon", 30),
        Act("Stir coffee", "work", R, "spoon", 60, "stir", sway=(7, 2), helps="cup_a"),
        Act("Place spoon", "place", R, "spoon", 30, "home"),
    ),
)
MOVE_CUP = Block("Serve coffee", (Act("Move cup", "carry", R, "cup_a", 48, "front"),))
CLEAN = Block(
    "Clean up",
    (
        Act("Grasp towel", "grasp", R, "towel", 28),
        Act("Wipe counter", "work", R, "towel", 60, "wipe", "pushes", sway=(34, 3)),
        Act("Place towel", "place", R, "towel", 32, "home"),
    ),
)
REFILL_WATER = Block(
    "Refill water",
    (
        Act("Remove water tank", "carry", B, "tank", 48, "tank_out", "pulls"),
        Act("Touch water tank", "press", L, "tank", 26, value="touches", early=6),
        Act("Insert water tank", "carry", B, "tank", 48, "home", "pushes"),
    ),
)
OPEN_LEVER = Act("Open lever", "slide", L, "lever", 32, "lever_up", "pulls", effects=(State("lever", "open"),))
CLOSE_LEVER = Act("Close lever", "slide", L, "lever", 32, "home", "pushes", effects=(State("lever", "close"),))

FULLY_AUTOMATIC: dict[str, Block] = {
    "start": Block(
        "Start machine",
        (
            Act("Press power button", "press", R, "power", 36, value="presses"),
            Act("Turn knob", "slide", R, "knob", 32, "knob_on", "turns"),
            _rinse("rinse"),
        ),
    ),
    "beans": Block(
        "Refill beans",
        (
            Act(
                "Open lid", "slide", L, "hopper_lid", 34, "lid_off", "pulls",
                effects=(State("hopper_lid", "open"),),
            ),
            Act("Grasp container", "grasp", R, "tin", 28, early=10),
            Act(
                "Pour beans", "pour", R, "tin", 70, "machine", content="beans",
                effects=(State("tin", "empty", 80),),
            ),
            Act("Place container", "place", R, "tin", 34, "home"),
            Act(
                "Close lid", "slide", L, "hopper_lid", 34, "home", "pushes", early=12,
                effects=(State("hopper_lid", "close"),),
            ),
        ),
    ),
    "cup": PREPARE_CUP,
    "cups": PREPARE_CUP_BOTH,
    "water": REFILL_WATER,
    "brew": Block(
        "Brew coffee",
        (
            *_brew("espresso button", ("machine", 0, -90)),
            Act("Touch display", "press", L, "machine", 34, value="touches"),
            _pause(64),
        ),
    ),
    "milk": ADD_MILK,
    "syrup": Block(
        "Sweeten coffee",
        (
            Act("Grasp bottle", "grasp", R, "syrup", 28),
            Act("Hold cup", "press", L, "cup_a", 40, value="holds", early=8),
            Act("Pour syrup", "pour", R, "syrup", 60, "cup_a"),
            Act("Place bottle", "place", R, "syrup", 30, "home"),
        ),
    ),
    "serve": SERVE,
    "move": MOVE_CUP,
    "stir": STIR,
    "clean": CLEAN,
}  # fmt: skip

CAPSULE: dict[str, Block] = {
    "capsule": Block(
        "Insert capsule",
        (
            Act(
                "Open drawer", "slide", L, "drawer", 36, "drawer_open", "pulls",
                effects=(State("drawer", "open"),),
            ),
            Act("Grasp capsule", "grasp", R, "caps_a", 26),
            Act(
                "Close drawer", "slide", L, "drawer", 34, "home", "pushes",
                effects=(State("drawer", "close"),), early=10,
            ),
            OPEN_LEVER,
            Act("Insert capsule", "place", R, "caps_a", 34, "slot", "pushes"),
            CLOSE_LEVER,
        ),
    ),
    "cup": PREPARE_CUP,
    "cups": PREPARE_CUP_BOTH,
    "water": REFILL_WATER,
    "brew": Block("Brew coffee", (*_brew("espresso button", ("machine", 0, -86), 96), _pause(76))),
    "froth": Block(
        "Froth milk",
        (
            *OPEN_MILK,
            Act("Fill frother", "pour", R, "carton", 62, "frother", content="milk", helps="frother"),
            *CLOSE_MILK,
            Act("Press frother button", "press", L, "froth", 32, value="presses", early=8),
            _pause(14),
            Act("Grasp frother", "grasp", R, "frother", 28),
            Act("Pour milk", "pour", R, "frother", 64, "cup_a", content="milk"),
            Act("Place frother", "place", R, "frother", 32, "home"),
        ),
    ),
    "sugar": Block(
        "Sweeten coffee",
        (
            Act(
                "Open jar", "carry", R, "jar_lid", 38, "jar_lid_off", "turns", "jar", (State("jar", "open"),),
            ),
            Act("Grasp spoon", "grasp", R, "spoon", 30),
            Act("Scoop sugar", "work", R, "spoon", 44, "scoop", sway=(3, 4)),
            Act("Add sugar", "work", R, "spoon", 34, "over_cup", sway=(2, 2)),
            Act("Stir coffee", "work", R, "spoon", 48, "stir", sway=(7, 2)),
            Act("Place spoon", "place", R, "spoon", 30, "home"),
            Act(
                "Close jar", "carry", L, "jar_lid", 38, "home", "turns",
                effects=(State("jar", "close", 70),), early=10,
            ),
        ),
    ),
    "discard": Block(
        "Clean up",
        (
            OPEN_LEVER,
            Act("Grasp capsule", "grasp", R, "caps_a", 30),
            Act("Discard capsule", "place", R, "caps_a", 44, "in_trash"),
            CLOSE_LEVER,
        ),
    ),
    "serve": SERVE,
    "move": MOVE_CUP,
    "clean": CLEAN,
}  # fmt: skip

# In its group, a portafilter's content cannot be seen.
_HIDE_GROUNDS = Fill("grounds", "locked_in", "pf", ("pf", 0, 0), 84, 0)
PORTAFILTER: dict[str, Block] = {
    "rinse": Block("Start machine", (_rinse("rinse", 40), _pause(10))),
    "grind": Block(
        "Grind beans",
        (
            Act("Unlock portafilter", "slide", R, "pf", 32, "unlocked", "turns"),
            Act("Remove portafilter", "grasp", R, "pf", 26, value="pulls"),
            Act("Place portafilter", "place", R, "pf", 34, "fork"),
            Act(
                "Press grind button", "press", L, "grind", 36, value="presses", early=6,
                effects=(
                    State("mill", "grinding", 45, 50),
                    Fill("grounds", "in_pf", "pf", ("mill", 0, -72), 50, 44),
                ),
            ),
            _pause(30),
        ),
    ),
    "tamp": Block(
        "Tamp coffee",
        (
            Act("Move portafilter", "carry", R, "pf", 42, "on_scale"),
            Act("Grasp tamper", "grasp", R, "tamper", 26),
            Act("Tamp coffee", "work", R, "tamper", 56, "on_pf", "pushes", sway=(0, 4), helps="pf"),
            Act("Place tamper", "place", R, "tamper", 28, "home"),
        ),
    ),
    "lock": Block(
        "Lock portafilter",
        (
            Act("Grasp portafilter", "grasp", B, "pf", 26),
            Act("Insert portafilter", "place", B, "pf", 40, "unlocked", "pushes", effects=(_HIDE_GROUNDS,)),
            Act("Lock portafilter", "slide", R, "pf", 34, "locked", "turns"),
        ),
    ),
    "cup": PREPARE_CUP,
    "cups": PREPARE_CUP_BOTH,
    "brew": Block("Brew coffee", (*_brew("brew button", ("machine", -34, -86), 100), _pause(72))),
    "steam": Block(
        "Froth milk",
        (
            *OPEN_MILK,
            Act("Fill pitcher", "pour", R, "carton", 60, "pitcher", content="milk"),
            Act("Place milk carton", "place", R, "carton", 28, "home"),
            Act("Grasp pitcher", "grasp", R, "pitcher", 26),
            Act("Turn knob", "slide", L, "knob", 30, "knob_on", "turns", effects=(State("wand", "open"),)),
            Act("Froth milk", "work", R, "pitcher", 58, "steaming", sway=(2, 3), early=8),
            Act("Close knob", "slide", L, "knob", 28, "home", "turns", effects=(State("wand", "close"),)),
            Act(
                "Pour milk", "pour", R, "pitcher", 64, "cup_a", content="milk",
                effects=(State("pitcher", "empty", 82),),
            ),
            Act("Place pitcher", "place", R, "pitcher", 30, "home"),
        ),
    ),
    "milk": ADD_MILK,
    "wand": Block(
        "Clean up",
        (
            Act("Grasp towel", "grasp", L, "towel", 28),
            Act("Wipe steam wand", "work", L, "towel", 50, "wiping", "touches", sway=(1, 14)),
            Act("Place towel", "place", L, "towel", 30, "home"),
        ),
    ),
    "serve": SERVE,
    "move": MOVE_CUP,
    "stir": STIR,
}  # fmt: skip

BLOCKS = {"fully automatic": FULLY_AUTOMATIC, "capsule": CAPSULE, "portafilter": PORTAFILTER}
PREPARATIONS = tuple(BLOCKS)
ORDERS: dict[str, tuple[str, ...]] = {
    "fully automatic": (
        "start cup brew milk serve",
        "beans start cups brew syrup clean",
        "water cup start brew stir serve",
        "beans cup brew milk move clean",
    ),
    "capsule": (
        "capsule cup brew discard serve",
        "water capsule cups brew sugar",
        "cup capsule brew froth move",
        "capsule cups brew froth discard",
    ),
    "portafilter": (
        "grind tamp lock cup brew serve",
        "rinse grind tamp lock cup brew steam",
        "grind tamp lock cups brew move wand",
        "grind tamp lock cup brew stir",
    ),
}


def script_of(preparation: str, turn: int, seed: int) -> list[Block]:
    """The blocks of the `turn`-th video (from 0) of a preparation."""
    order = spread(f"order:{seed}:{preparation}", ORDERS[preparation], turn)
    return [BLOCKS[preparation][name] for name in order.split()]
