"""The room behind the objects: a tiled wall, a shelf line and a wooden counter, from whole-number noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from barista_bench.mini.props import ROOM_BOTTOM, ROOM_TOP, ROOM_WIDTH
from barista_bench.mini.seeds import pick
from barista_bench.mini.shapes import REFERENCE_HEIGHT, RGB, dark, light

COUNTER_TOP, COUNTER_EDGE = 238, 420
WALLS: tuple[RGB, ...] = ((206, 218, 216), (222, 214, 200), (202, 212, 226), (220, 204, 196), (210, 220, 200))
WOODS: tuple[RGB, ...] = ((196, 154, 108), (172, 128, 92), (210, 180, 140), (150, 112, 84))


def paint_room(text: str, height: int) -> NDArray[np.uint8]:
    """The whole room for a picture of `height` pixels, (rows, columns, 3).

    The text chooses colours and grain.
    """
    wall, wood = pick(f"wall:{text}", WALLS), pick(f"wood:{text}", WOODS)
    salt = pick(f"salt:{text}", range(1, 1000))
    rows, columns = (n * height // REFERENCE_HEIGHT + 2 for n in (ROOM_BOTTOM - ROOM_TOP, ROOM_WIDTH))
    # Quarter units, to keep fine lines fine.
    y = (np.arange(rows) * REFERENCE_HEIGHT * 4 // height + ROOM_TOP * 4)[:, None]
    x = (np.arange(columns) * REFERENCE_HEIGHT * 4 // height)[None, :]
    shade = np.where(y < COUNTER_TOP * 4, _tiles(x, y, salt), _planks(x, y, salt))
    base = np.where((y < COUNTER_TOP * 4)[..., None], np.array(wall), np.array(wood))
    room = base * (256 + shade[..., None]) // 256
    room = np.where((y >= COUNTER_EDGE * 4)[..., None], np.array(dark(wood, 45)), room)
    rim = (y >= COUNTER_EDGE * 4 - 12) & (y < COUNTER_EDGE * 4)
    room = np.where(rim[..., None], np.array(light(wood, 30)), room)
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
