"""A hand-made video of twelve seconds: a hand presses a button while the other moves a cup, and a carton is opened."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from barista_bench.media.encoding import encode_video
from tests.generate.graphs import Box, annotation_file
from tests.releases import relation, write_release

WIDTH, HEIGHT, FPS, FRAMES = 320, 200, 10, 120

StateSequence = Callable[[int], Box | None]
"""Where an object is on a frame, (x, y, width, height) in pixels; None where it is out of the picture."""


def cup(frame: int) -> Box:
    return (20 + 5 * min(max(frame - 45, 0), 20), 150, 30, 30)


def right_hand(frame: int) -> Box | None:
    x, y, width, _ = cup(frame)
    return (x + width, y, 20, 40) if 40 <= frame < 70 else None


def left_hand(frame: int) -> Box | None:
    return (20, 32, 12, 30) if 44 <= frame < 64 else None


OBJECTS: Mapping[str, tuple[str, Box | StateSequence]] = {
    "machine": ("coffee machine", (10, 10, 90, 120)),
    "brew": ("button", (20, 20, 12, 12)),
    "rinse": ("button", (50, 20, 12, 12)),
    "knob": ("knob", (80, 20, 12, 12)),
    "mill": ("coffee mill", (120, 10, 40, 100)),
    "grind": ("button", (130, 20, 12, 12)),
    "jar": ("jar", (200, 100, 40, 40)),
    "lid": ("lid", (200, 90, 40, 9)),
    "scale": ("scale", (120, 181, 50, 12)),
    "carton": ("milk carton", (260, 60, 40, 80)),
    "towel": ("towel", (270, 160, 40, 30)),
    "glass": ("glass", (280, 145, 15, 15)),
    "cup": ("coffee cup", cup),
    "left": ("left hand", left_hand),
    "right": ("right hand", right_hand),
}
RELATIONS: tuple[dict[str, Any], ...] = (
    *(relation(part, "machine", "position", "part of", (0, FRAMES)) for part in ("brew", "rinse", "knob")),
    relation("grind", "mill", "position", "part of", (0, FRAMES)),
    relation("lid", "jar", "position", "attached to", (0, FRAMES)),
    relation("cup", "machine", "position", "under", (0, 45)),
    relation("cup", "scale", "position", "on", (66, FRAMES)),
    relation("towel", "carton", "position", "under", (0, FRAMES)),
    relation("glass", "towel", "position", "on", (0, FRAMES)),
    relation("left", "brew", "human_actions", "presses", (48, 60)),
    relation("right", "cup", "human_actions", "holds", (45, 65)),
)
VALUES: tuple[tuple[str, str, str, int, int], ...] = (
    ("brew", "type", "brew button", 0, FRAMES),
    ("rinse", "type", "rinse button", 0, FRAMES),
    ("grind", "type", "grind button", 0, FRAMES),
    ("carton", "state", "close", 0, 50),
    ("carton", "state", "open", 50, 70),
    ("carton", "state", "close", 70, FRAMES),
)
ACTIVITIES = (
    ("Wipe towel", 0, 20),
    ("Open milk carton", 20, 40),
    ("Press brew button", 44, 62),
    ("Pour milk", 66, 80),
    ("Close lid", 80, 100),
    ("Turn knob", 100, 118),
)


def document(
    objects: Mapping[str, tuple[str, Box | StateSequence]] = OBJECTS,
    relations: Sequence[dict[str, Any]] = RELATIONS,
    values: Sequence[tuple[str, str, str, int, int]] = VALUES,
    activities: Sequence[tuple[str, int, int]] = ACTIVITIES,
    fps: float = FPS,
) -> dict[str, Any]:
    """An annotation file of these objects, each masked by its box on every frame on which it is in the picture."""

    def box_of(name: str, frame: int) -> Box | None:
        course = objects[name][1]
        return course(frame) if callable(course) else course

    return annotation_file(
        {name: category for name, (category, _) in objects.items()},
        box_of,
        (WIDTH, HEIGHT),
        FRAMES,
        fps,
        [(name, kind, value, (start, end)) for name, kind, value, start, end in values],
        relations,
        [(name, (start, end)) for name, start, end in activities],
    )


def write_bench(root: Path, content: dict[str, Any], fps: int = FPS) -> Path:
    """A release of one annotation file, with a video of grey frames."""
    write_release(root, "bench", content, video=False)
    grey = (np.full((HEIGHT, WIDTH, 3), 2 * frame, np.uint8) for frame in range(FRAMES))
    encode_video(root / "bench" / "video.mp4", grey, size=(WIDTH, HEIGHT), fps=fps)
    return root
