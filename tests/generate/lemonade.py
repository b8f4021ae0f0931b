"""A clip with human annotations: twelve seconds in a kitchen with look-alike things and short actions."""

from pathlib import Path
from typing import Any

from tests.generate.graphs import Box, Range, annotation_file, on_top
from tests.releases import relation, write_release

FRAMES, FPS, SIZE = 360, 30.0, (640, 360)
THINGS: dict[str, tuple[str, str]] = {
    "left": ("left hand", ""),
    "right": ("right hand", ""),
    "lemon1": ("lemon", "yellow"),
    "lemon2": ("lemon", "yellow"),
    "knife": ("knife", "black"),
    "board": ("cutting board", "brown"),
    "bowl": ("vessel", "white"),
    "cup": ("coffee cup", "white"),
    "cup2": ("coffee cup", "white"),
    "grater": ("grater", "silver"),
}
RESTING: dict[str, Box] = {
    "left": (20, 300, 60, 50),
    "right": (560, 300, 60, 50),
    "lemon1": (60, 60, 45, 40),
    "lemon2": (180, 60, 45, 40),
    "knife": (500, 60, 20, 90),
    "board": (240, 190, 150, 80),
    "bowl": (420, 200, 70, 60),
    "cup": (300, 40, 40, 50),
    "cup2": (400, 40, 40, 50),
    "grater": (560, 160, 40, 80),
}
MOVES: list[tuple[str, Range, Box]] = [
    ("lemon1", (45, 210), (290, 205, 45, 40)),
    ("lemon1", (210, 360), (435, 205, 40, 36)),
    ("knife", (75, 165), (310, 190, 20, 70)),
    ("lemon2", (225, 300), (290, 205, 45, 40)),
    ("lemon2", (300, 360), (100, 200, 45, 40)),
    ("cup", (320, 360), (200, 290, 40, 50)),
]
CONTACTS: list[tuple[str, str, str, Range]] = [
    ("left", "holds", "lemon1", (30, 170)),
    ("right", "holds", "knife", (60, 180)),
    ("left", "holds", "lemon1", (190, 215)),
    ("left", "holds", "lemon2", (220, 305)),
    ("right", "holds", "grater", (228, 290)),
    ("right", "holds", "cup", (308, 345)),
]
PLACES: list[tuple[str, str, str, Range]] = [
    ("lemon1", "on", "board", (48, 205)),
    ("lemon1", "inside", "bowl", (212, 360)),
    ("lemon2", "on", "board", (230, 296)),
]
STATES: list[tuple[str, str, Range]] = [
    ("lemon1", "whole", (0, 100)),
    ("lemon1", "cut", (100, 360)),
    ("lemon2", "whole", (0, 250)),
    ("lemon2", "grated", (250, 360)),
]
ACTIVITIES: list[tuple[str, Range]] = [
    ("Reach lemon", (20, 30)),
    ("Pick lemon", (30, 42)),
    ("Place lemon", (42, 54)),
    ("Pick knife", (60, 73)),
    ("Cut lemon", (80, 160)),
    ("Place knife", (166, 180)),
    ("Move lemon", (195, 215)),
    ("Pick lemon", (220, 230)),
    ("Grate lemon", (236, 290)),
    ("Place lemon", (293, 305)),
    ("Pick cup", (308, 319)),
    ("Place cup", (335, 345)),
]
STEPS: list[tuple[str, Range]] = [
    ("Prepare lemon", (20, 75)),
    ("Cut lemon", (75, 180)),
    ("Fill bowl", (180, 216)),
    ("Grate lemon", (216, 306)),
    ("Serve cup", (306, 360)),
]


def lemonade(root: Path, name: str = "lemonade") -> Path:
    """Write the graph of the clip as a release without its video."""

    def thing_box(item: str, frame: int) -> Box:
        return next((box for moved, (a, b), box in MOVES if moved == item and a <= frame < b), RESTING[item])

    def box_of(item: str, frame: int) -> Box:
        held = next((t for hand, _, t, (a, b) in CONTACTS if hand == item and a <= frame < b), None)
        return on_top(thing_box(held, frame), RESTING[item]) if held else thing_box(item, frame)

    colours = [(item, "color", colour, (0, FRAMES)) for item, (_, colour) in THINGS.items() if colour]
    content: dict[str, Any] = annotation_file(
        {item: category for item, (category, _) in THINGS.items()},
        box_of,
        SIZE,
        FRAMES,
        FPS,
        [*colours, *((item, "state", value, during) for item, value, during in STATES)],
        [
            relation(source, target, kind, value, during)
            for kind, rows in (("human_actions", CONTACTS), ("position", PLACES))
            for source, value, target, during in rows
        ],
        ACTIVITIES,
        STEPS,
    )
    write_release(root, name, content, video=False)
    return root
