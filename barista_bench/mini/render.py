"""Frames from scenes: colours and, from the very same drawing, which object every pixel belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from barista_bench.mini import drawing
from barista_bench.mini.scene import Drawn
from barista_bench.mini.script import ROOM_BOTTOM, ROOM_TOP, ROOM_WIDTH, pick


@dataclass(frozen=True)
class _Layer:
    """A picture and its object map. `corner` is where its first pixel lies in the room, (x, y) in pixels."""

    picture: NDArray[np.uint8]
    owners: NDArray[np.uint8]
    corner: tuple[int, int]


def _common(a: Sequence[Drawn], b: Sequence[Drawn]) -> list[Drawn]:
    """The things at the start that are the same in both."""
    return [x for x, _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False))]


class Renderer:
    """Paints one video's frames of `width` x `height` pixels over its room.

    Most things stand still in the room from frame to frame, so the far ones that did are kept painted, as one
    layer.
    """

    def __init__(self, room: NDArray[np.uint8], width: int, height: int, owners: Sequence[str]) -> None:
        """`owners` are the objects' keys. The n-th one is number n + 1 in an object map; 0 is nobody."""
        self._size = (height, width)
        self._numbers = {key: n for n, key in enumerate(owners, 1)}
        self._sprites: dict[tuple[str, str, int, int, bool, bool], drawing.Sprite] = {}
        self._room = room
        self._origin = (0, drawing.to_pixels(ROOM_TOP * drawing.FINE, height))
        self._layer = _Layer(room.copy(), np.zeros(room.shape[:2], np.uint8, order="F"), self._origin)
        self._kept: list[Drawn] = []
        self._before: list[Drawn] = []

    def frame(self, things: Sequence[Drawn], camera: tuple[int, int]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """The picture, (height, width, 3) RGB, and the object map, (height, width) in Fortran order."""
        self._keep(_common(self._before, things))
        self._before = list(things)
        (height, width), (x0, y0) = self._size, self._origin
        left, top = (drawing.to_pixels(c, height) for c in camera)
        view = (slice(top - y0, top - y0 + height), slice(left - x0, left - x0 + width))
        layer = _Layer(self._layer.picture[view].copy(), self._layer.owners[view].copy(order="F"), (left, top))
        for thing in things[len(self._kept) :]:
            self._paint(layer, thing)
        return layer.picture, layer.owners

    def _keep(self, still: list[Drawn]) -> None:
        """Have the kept layer show these things, by adding to it where that is enough."""
        if _common(self._kept, still) != self._kept:
            self._layer.picture[...] = self._room
            self._layer.owners[...] = 0
            self._kept = []
        for thing in still[len(self._kept) :]:
            self._paint(self._layer, thing)
        self._kept = still

    def _paint(self, layer: _Layer, thing: Drawn) -> None:
        sprite = self._sprite(thing)
        x = drawing.to_pixels(thing.x, self._size[0]) - layer.corner[0] + sprite.left
        y = drawing.to_pixels(thing.y, self._size[0]) - layer.corner[1] + sprite.top
        rows, columns = sprite.mask.shape
        x0, y0 = max(0, x), max(0, y)
        x1, y1 = min(layer.owners.shape[1], x + columns), min(layer.owners.shape[0], y + rows)
        if x0 >= x1 or y0 >= y1:
            return
        part = (slice(y0 - y, y1 - y), slice(x0 - x, x1 - x))
        target = layer.picture[y0:y1, x0:x1]
        # At most 255 * 255 + 128, so 16 bits do; the shifts divide by 255 with rounding.
        mixed = target * sprite.clear[part]
        mixed += sprite.weighted[part]
        mixed += 128
        mixed += mixed >> 8
        mixed >>= 8
        target[...] = mixed
        np.copyto(layer.owners[y0:y1, x0:x1], self._numbers.get(thing.owner, 0), where=sprite.mask[part])

    def _sprite(self, thing: Drawn) -> drawing.Sprite:
        key = (thing.painter, thing.colour, thing.variant, thing.angle % 64, thing.mirror, thing.aloft)
        sprite = self._sprites.get(key)
        if sprite is None:
            canvas = drawing.Canvas()
            drawing.paint(canvas, thing.painter, thing.colour, thing.variant)
            if thing.aloft:
                canvas = drawing.Canvas([shape for shape in canvas.shapes if shape.kind != "shadow"])
            sprite = drawing.make_sprite(canvas.mirrored() if thing.mirror else canvas, self._size[0], thing.angle)
            self._sprites[key] = sprite
        return sprite


COUNTER_TOP, COUNTER_EDGE = 238, 420
WALLS: tuple[drawing.RGB, ...] = ((206, 218, 216), (222, 214, 200), (202, 212, 226), (220, 204, 196), (210, 220, 200))
WOODS: tuple[drawing.RGB, ...] = ((196, 154, 108), (172, 128, 92), (210, 180, 140), (150, 112, 84))


def paint_room(text: str, height: int) -> NDArray[np.uint8]:
    """The whole room for a picture of `height` pixels, (rows, columns, 3).

    The text chooses colours and grain.
    """
    wall, wood = pick(f"wall:{text}", WALLS), pick(f"wood:{text}", WOODS)
    salt = pick(f"salt:{text}", range(1, 1000))
    rows, columns = (n * height // drawing.REFERENCE_HEIGHT + 2 for n in (ROOM_BOTTOM - ROOM_TOP, ROOM_WIDTH))
    # Quarter units, to keep fine lines fine.
    y = (np.arange(rows) * drawing.REFERENCE_HEIGHT * 4 // height + ROOM_TOP * 4)[:, None]
    x = (np.arange(columns) * drawing.REFERENCE_HEIGHT * 4 // height)[None, :]
    shade = np.where(y < COUNTER_TOP * 4, _tiles(x, y, salt), _planks(x, y, salt))
    base = np.where((y < COUNTER_TOP * 4)[..., None], np.array(wall), np.array(wood))
    room = base * (256 + shade[..., None]) // 256
    room = np.where((y >= COUNTER_EDGE * 4)[..., None], np.array(drawing.dark(wood, 45)), room)
    rim = (y >= COUNTER_EDGE * 4 - 12) & (y < COUNTER_EDGE * 4)
    room = np.where(rim[..., None], np.array(drawing.light(wood, 30)), room)
    # The wall darkens towards the counter, where light does not reach.
    contact = np.clip(COUNTER_TOP * 4 - y, 0, 48)
    falloff = np.where(y < COUNTER_TOP * 4, 256 - (48 - contact), 256)
    lit: NDArray[np.uint8] = np.clip(room * falloff[..., None] // 256, 0, 255).astype(np.uint8)
    return lit


def _noise(x: NDArray[np.int64], y: NDArray[np.int64], salt: int) -> NDArray[np.int64]:
    """A number in [0, 256) for every cell (x, y)."""
    mixed = (x * 374761393 + y * 668265263 + salt * 2246822519) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 13)) * 1274126177) & 0xFFFFFFFF
    return (mixed ^ (mixed >> 16)) & 255


def _tiles(x: NDArray[np.int64], y: NDArray[np.int64], salt: int) -> NDArray[np.int64]:
    row = y // 136
    shifted = x + row % 2 * 110
    tone = _noise(shifted // 220, row, salt) % 14 - 7
    joint = (y % 136 < 6) | (shifted % 220 < 6)
    gleam = (y % 136 < 12) | (shifted % 220 < 12)
    return np.where(joint, -30, np.where(gleam, 14, tone))


def _planks(x: NDArray[np.int64], y: NDArray[np.int64], salt: int) -> NDArray[np.int64]:
    plank = (y - COUNTER_TOP * 4) // 184
    start = x + _noise(plank, plank * 0, salt) * 8
    tone = _noise(start // 1300, plank, salt + 1) % 24 - 12
    bow = (start // 90 % 8 - 4) ** 2 // 4
    grain = _noise(start // 900, (y + bow) // 10, salt + 2) % 20 - 10
    fine = _noise(start // 260, y // 4, salt + 3) % 10 - 5
    joint = ((y - COUNTER_TOP * 4) % 184 < 4) | (start % 1300 < 4)
    return np.where(joint, -52, tone + grain + fine)
