"""One video of the kitchen: its script, its colours and layout, its timeline, and every frame's drawing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from barista_bench.mini.backdrop import paint_room
from barista_bench.mini.props import HANDS, PropPlace, props_of
from barista_bench.mini.render import Renderer
from barista_bench.mini.scene import KitchenScene
from barista_bench.mini.script import PREPARATIONS, script_of
from barista_bench.mini.seeds import number, pick, spread
from barista_bench.mini.shapes import REFERENCE_HEIGHT
from barista_bench.mini.stage import BEATS, BeatRange, Stage

FPS = 30
SECONDS = (15.0, 30.0)
"""Default shortest and longest video, in seconds: a script's own length is kept between the two."""
TICKS_PER_SECOND = 40
"""Pace of a script that need not be stretched or squeezed."""

DEVICES = (
    ("smart glasses", "scripted glasses 1"),
    ("smartphone", "scripted phone 2"),
    ("smart glasses", "scripted headset 1"),
)
_SLEEVES = ("blue", "gray", "green", "purple", "black")


@dataclass(frozen=True)
class VideoPlan:
    """What a video is made from, small and picklable. `index` counts over the kitchen, from 0."""

    index: int
    seed: int
    width: int
    height: int
    seconds: tuple[float, float] = SECONDS

    @property
    def preparation(self) -> str:
        return PREPARATIONS[self.index % len(PREPARATIONS)]

    @property
    def turn(self) -> int:
        """Which video of its preparation this is, from 0."""
        return self.index // len(PREPARATIONS)

    @property
    def video_id(self) -> str:
        return f"mini_{self.preparation.replace(' ', '_')}_{self.turn + 1:02d}"

    @property
    def device(self) -> tuple[str, str]:
        return spread(f"device:{self.seed}", DEVICES, self.turn)


class Video:
    """A planned video: the timeline, and on demand its frames."""

    def __init__(self, plan: VideoPlan) -> None:
        self.plan = plan
        self._text = f"{plan.seed}:{plan.video_id}"
        self.blocks = script_of(plan.preparation, plan.turn, plan.seed)
        self.line = Stage(plan.preparation, self._homes()).play(self.blocks)
        shortest, longest = (round(s * FPS) for s in plan.seconds)
        self.frame_count = min(max(self.line.length * FPS // (BEATS * TICKS_PER_SECOND), shortest), longest)
        self.colours = self._colours()
        self.keys = (*self.line.props, *HANDS)
        """All objects, in the order of the object map: number 1 is the first."""

    def _homes(self) -> dict[str, PropPlace]:
        """Small changes of the layout: all that stands free, machines apart, is shifted a little."""
        homes = {}
        for key, prop in props_of(self.plan.preparation).items():
            if not prop.home.parent and key not in ("machine", "store", "mill"):
                x = prop.home.x + number(f"x:{self._text}:{key}", 25) - 12
                y = prop.home.y + number(f"y:{self._text}:{key}", 9) - 4
                homes[key] = PropPlace("", x, y, prop.home.depth)
        return homes

    def _colours(self) -> dict[str, str]:
        """Colour names by object.

        "=other" takes another object's colour, so that two things look the same.
        """
        colours = {
            "sleeve": spread(f"sleeve:{self.plan.seed}", _SLEEVES, self.plan.index),
            **dict.fromkeys(HANDS, "skin"),
        }
        for key, prop in self.line.props.items():
            colour = spread(f"colour:{self.plan.seed}:{self.plan.preparation}:{key}", prop.colours, self.plan.turn)
            colours[key] = colours[colour[1:]] if colour.startswith("=") else colour
        return colours

    def beat(self, frame: int) -> int:
        """The moment that a frame shows."""
        return frame * self.line.length // self.frame_count

    def frames_of(self, beats: BeatRange) -> BeatRange:
        """The frames, [start, end), whose moments lie in [start, end) beats."""
        start, end = (-(-b * self.frame_count // self.line.length) for b in beats)
        return min(start, self.frame_count), min(end, self.frame_count)

    def frames(self) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.uint8]]]:
        """Every frame's picture and object map, as `Renderer.frame` returns them."""
        width, height = self.plan.width, self.plan.height
        view = -(-width * REFERENCE_HEIGHT // height)
        scene = KitchenScene(self.line, self.colours, view, pick(f"shake:{self._text}", range(4000)))
        room = paint_room(self._text, height)
        renderer = Renderer(room, width, height, self.keys)
        for frame in range(self.frame_count):
            beat = self.beat(frame)
            yield renderer.frame(scene.drawn(beat), scene.camera(beat))
