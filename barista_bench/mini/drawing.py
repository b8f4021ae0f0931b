"""Painters of everything in the kitchen: most are lists of shapes in `sprites.yaml`, those that change are functions.

A painter takes the canvas, the object's colour, and a variant number whose meaning its docstring gives. Units and
origin are those of `shapes`; standing things have y = 0 at their foot.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources

import msgspec

from barista_bench.mini.shapes import RGB, Canvas, dark, light, mix


class _SpriteTables(msgspec.Struct):
    colours: dict[str, RGB]
    sprites: dict[str, list[str]]


_TABLES = msgspec.yaml.decode(resources.files(__package__).joinpath("sprites.yaml").read_bytes(), type=_SpriteTables)
PALETTE = _TABLES.colours


def paint(canvas: Canvas, painter: str, colour: str, variant: int = 0) -> None:
    """Draw an object in a named colour."""
    if painter in _CHANGING:
        _CHANGING[painter](canvas, PALETTE[colour], variant)
        return
    for line in _TABLES.sprites[painter]:
        _draw(canvas, line, PALETTE[colour])


def _draw(canvas: Canvas, line: str, base: RGB) -> None:
    """One line of `sprites.yaml`: its head says how they are written."""
    shape, colour, mode, repeat = ([part.split() for part in line.split("|")] + [[]] * 3)[:4]
    word, *texts = shape
    numbers = [int(text) for text in texts]
    if word == "shadow":
        canvas.shadow(*numbers)
        return
    kind, opacity = (mode[0], int(mode[1]) if len(mode) > 1 else 255) if mode else ("paint", 255)
    view = Canvas(canvas.shapes, "paint" if kind == "glass" else kind, opacity)
    filled = _colour(colour, base)
    if word == "poly":
        view.poly(list(zip(numbers[::2], numbers[1::2], strict=True)), filled)
    elif word == "rect":
        left, top, right, bottom, *radius = numbers
        times, step = map(int, repeat[1:] or (1, 0))
        for shift in range(times):
            view.rect(left + shift * step, top, right + shift * step, bottom, filled, *radius)
    elif word == "bone":
        x0, y0, x1, y1, width, *end = numbers
        view.bone(x0, y0, x1, y1, width, filled, *end)
    elif word == "oval":
        x, y, rx, ry = numbers
        view.oval(x, y, rx, ry, filled)
    else:
        x, y, rx, ry, width = numbers
        view.ring(x, y, rx, ry, width, filled)


def _colour(words: list[str], base: RGB) -> RGB:
    """`[COLOUR] [light N | dark N | mix COLOUR N]`, a colour being a name or three numbers."""
    colour, words = _named(words, base)
    match words:
        case ["light", percent]:
            return light(colour, int(percent))
        case ["dark", percent]:
            return dark(colour, int(percent))
        case ["mix", *other, percent]:
            return mix(colour, _named(other, base)[0], int(percent))
    return colour


def _named(words: list[str], base: RGB) -> tuple[RGB, list[str]]:
    """The colour at the start of the words (the object's own where there is none), and the words after it."""
    if words and words[0] in PALETTE:
        return PALETTE[words[0]], words[1:]
    if words and words[0].isdigit():
        red, green, blue = map(int, words[:3])
        return (red, green, blue), words[3:]
    return base, words


def _surface(c: Canvas, colour: RGB, level: int) -> None:
    """The liquid in a cup's or jug's mouth; `level` 1..8 is how full it is."""
    rx, ry = 8 + level * 3 // 2, 2 + level * 3 // 8
    c.oval(0, 0, rx, ry, colour)
    c.shade(90).oval(-rx // 3, 0, rx // 2, max(1, ry // 2), light(colour, 45))


def _stream(c: Canvas, colour: RGB, height: int) -> None:
    """Liquid falling from the origin over `height` units."""
    c.bone(0, 0, 0, max(3, height), 4, colour)
    c.shade(110).rect(-1, 0, 0, height, light(colour, 60))


def _steam(c: Canvas, _: RGB, phase: int) -> None:
    """Vapour rising from the origin: see-through, in nobody's mask. `phase` 0..3."""
    for k in range(4):
        x = (-7, 5, -4, 8)[(k + phase) % 4]
        Canvas(c.shapes, "shadow", 52).oval(x, -8 - 11 * k - 3 * phase, 6 + 2 * k, 7, (255, 255, 255))


def _button(c: Canvas, colour: RGB, pressed: int) -> None:
    """`pressed` 1 shows it pushed in and lit."""
    c.oval(0, 0, 9, 9, dark(PALETTE["silver"], 40))
    c.oval(0, 0, 7, 7, mix(colour, (255, 250, 190), 55) if pressed else colour)
    c.shade(200).ring(0, 0, 4, 4, 1, PALETTE["black"] if sum(colour) > 360 else (240, 240, 240))


def _hand(c: Canvas, colour: RGB, pose: int) -> None:
    """A right hand, seen from behind.

    `pose` 0 rests open, 1 grips, 2 points; the origin is where it touches.
    """
    edge, nail = dark(colour, 24), light(colour, 45)
    if pose == 2:
        fingers = [(20, 38, 2, 4), (34, 36, 28, 20), (44, 42, 40, 28), (54, 52, 50, 40)]
        thumb = (20, 62, -2, 50)
    elif pose == 1:
        fingers = [(22, 30, -8, 0), (28, 38, -8, 13), (32, 48, -5, 26), (38, 58, 1, 39)]
        thumb = (26, 66, 12, 60)
    else:
        fingers = [(18, 36, 2, 0), (30, 32, 22, -10), (42, 34, 40, -6), (54, 42, 56, 9)]
        thumb = (16, 62, -12, 44)
    c.bone(*thumb, 19, edge, 16)
    c.bone(*thumb, 17, colour, 14)
    c.bone(48, 78, 118, 250, 40, colour, 56)
    c.poly([(14, 40), (26, 28), (52, 32), (64, 46), (70, 92), (34, 96), (14, 66)], colour)
    c.oval(38, 58, 28, 30, colour)
    c.shade(70).poly([(58, 104), (74, 92), (154, 250), (118, 270)], edge)
    for x0, y0, x1, y1 in fingers:
        c.bone(x0, y0, x1, y1, 16, edge, 14)
        c.bone(x0, y0, x1, y1, 14, colour, 12)
        c.shade(190).oval(x1 - 1, y1 - 1, 4, 3, nail)
    c.oval(40, 60, 23, 22, colour)
    for x0, y0, _, _ in fingers:
        c.shade(80).bone(x0 + 2, y0 + 5, x0 + 7, y0 + 4, 2, edge)


_CHANGING: dict[str, Callable[[Canvas, RGB, int], None]] = {
    "surface": _surface,
    "stream": _stream,
    "steam": _steam,
    "button": _button,
    "hand": _hand,
}
