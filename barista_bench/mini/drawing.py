"""Draws filled shapes as sprites, with integers only, so that masks are the same on every machine.

Painters draw on a `Canvas` in kitchen units: one unit is one pixel of a picture that is 360 pixels high. The y axis
points down, and the origin is the object's anchor. A `Sprite` is the canvas at one size, with colours, opacity and a
hard-edged mask.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources

import msgspec
import numpy as np
from numpy.typing import NDArray

RGB = tuple[int, int, int]
Point = tuple[int, int]

REFERENCE_HEIGHT = 360
"""Picture height, in pixels, at which one kitchen unit is one pixel."""

FINE = 64
"""Steps per kitchen unit, and per pixel, in which outlines are measured."""

ANGLES = 64
"""Steps per full turn. Angles grow clockwise, since y points down."""

_QUARTER = ANGLES // 4
_SAMPLES = 4  # samples per pixel and axis
_STEP = FINE // _SAMPLES
# Rounding to 1/4096 removes differences in the last bit between the cosines of different platforms.
_COS = tuple(round(math.cos(2 * math.pi * k / ANGLES) * 4096) for k in range(ANGLES))


def turn(x: int, y: int, angle: int) -> Point:
    """Return the point (x, y), turned about the origin by `angle` steps."""
    cos, sin = _COS[angle % ANGLES], _COS[(angle - _QUARTER) % ANGLES]
    return (x * cos - y * sin + 2048) >> 12, (x * sin + y * cos + 2048) >> 12


def mix(a: RGB, b: RGB, percent: int) -> RGB:
    """Return a mix of `percent` of colour b with colour a."""
    red, green, blue = ((p * (100 - percent) + q * percent) // 100 for p, q in zip(a, b, strict=True))
    return red, green, blue


def light(colour: RGB, percent: int = 30) -> RGB:
    return mix(colour, (255, 255, 255), percent)


def dark(colour: RGB, percent: int = 25) -> RGB:
    return mix(colour, (10, 8, 16), percent)


@dataclass(frozen=True)
class Shape:
    """Closed outlines, filled by the even-odd rule. Points are in 1/FINE units."""

    outlines: tuple[tuple[Point, ...], ...]
    colour: RGB
    opacity: int
    kind: str  # "paint" belongs to the object; "shade" stays within the painted area; "shadow" belongs to no object


@dataclass
class Canvas:
    """The canvas of a painter: shapes in the order of painting, so that later shapes cover earlier shapes."""

    shapes: list[Shape] = field(default_factory=list)
    kind: str = "paint"
    opacity: int = 255

    def add_outlines(self, outlines: Iterable[Iterable[Point]], colour: RGB) -> None:
        self.shapes.append(Shape(tuple(tuple(o) for o in outlines), colour, self.opacity, self.kind))

    def poly(self, points: Sequence[Point], colour: RGB) -> None:
        self.add_outlines([[(x * FINE, y * FINE) for x, y in points]], colour)

    def rect(self, x0: int, y0: int, x1: int, y1: int, colour: RGB, radius: int = 0) -> None:
        """Draw the rectangle from (x0, y0) to (x1, y1), with round corners if `radius` is given."""
        if not radius:
            return self.poly([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], colour)
        left, top, right, bottom = x0 + radius, y0 + radius, x1 - radius, y1 - radius
        outline = []
        for n, (x, y) in enumerate(((right, bottom), (left, bottom), (left, top), (right, top))):
            outline += _arc(x, y, 2 * radius, 2 * radius, range(n * _QUARTER, (n + 1) * _QUARTER + 1, 2))
        self.add_outlines([outline], colour)

    def oval(self, cx: int, cy: int, rx: int, ry: int, colour: RGB) -> None:
        self.add_outlines([_ellipse(cx, cy, rx, ry)], colour)

    def ring(self, cx: int, cy: int, rx: int, ry: int, width: int, colour: RGB) -> None:
        """Draw an ellipse with a hole; `width` is the width of the rim."""
        self.add_outlines([_ellipse(cx, cy, rx, ry), _ellipse(cx, cy, rx - width, ry - width)], colour)

    def bone(self, x0: int, y0: int, x1: int, y1: int, width: int, colour: RGB, end: int | None = None) -> None:
        """Draw a thick line with round ends, `width` wide at its start and `end` (default: `width`) wide at its end."""
        end = width if end is None else end
        length = max(1, math.isqrt(((x1 - x0) ** 2 + (y1 - y0) ** 2) * FINE * FINE))
        nx, ny = (y0 - y1) * FINE, (x1 - x0) * FINE
        corners = []
        for x, y, half in ((x0, y0, width), (x1, y1, end), (x1, y1, -end), (x0, y0, -width)):
            corners.append((x * FINE + nx * half * 32 // length, y * FINE + ny * half * 32 // length))
        self.add_outlines([corners], colour)
        self.add_outlines([_circle(x0, y0, width)], colour)
        self.add_outlines([_circle(x1, y1, end)], colour)

    def shade(self, opacity: int = 255) -> Canvas:
        """Return a view of this canvas that draws only within the painted area."""
        return Canvas(self.shapes, "shade", opacity)

    def mirror(self) -> Canvas:
        """Return this canvas with left and right exchanged."""
        return Canvas(
            [replace(s, outlines=tuple(tuple((-x, y) for x, y in o) for o in s.outlines)) for s in self.shapes]
        )

    def shadow(self, cx: int, cy: int, rx: int, ry: int) -> None:
        """Draw a soft shadow on the things below. A shadow belongs to no mask."""
        for growth in (4, 2, 0):
            Canvas(self.shapes, "shadow", 28).oval(cx, cy, rx + growth, max(1, ry + growth // 2), (20, 12, 8))


def _ellipse(cx: int, cy: int, rx: int, ry: int) -> list[Point]:
    return _arc(cx, cy, 2 * rx, 2 * ry, range(0, ANGLES, 1 if max(rx, ry) > 30 else 2))


def _circle(cx: int, cy: int, diameter: int) -> list[Point]:
    return _arc(cx, cy, diameter, diameter, range(0, ANGLES, 4 if diameter < 14 else 2))


def _arc(cx: int, cy: int, width: int, height: int, angles: range) -> list[Point]:
    """Return the points of an ellipse around (cx, cy) at these angles."""
    return [
        (cx * FINE + (_COS[a % ANGLES] * width >> 7), cy * FINE + (_COS[(a - _QUARTER) % ANGLES] * height >> 7))
        for a in angles
    ]


@dataclass(frozen=True)
class Sprite:
    """A canvas in pixels.

    `weighted` is colour times opacity; (left, top) is the sprite's corner relative to the anchor.
    """

    weighted: NDArray[np.uint16]  # (rows, columns, 3), at most 255 * 255
    clear: NDArray[np.uint16]  # (rows, columns, 1), holds 255 - opacity
    mask: NDArray[np.bool_]  # (rows, columns), in Fortran order like the frame's object map
    left: int
    top: int


def to_pixels(value: int, height: int) -> int:
    """Return a length in 1/FINE units as pixels of a picture `height` pixels high, rounded down."""
    return value * height // (REFERENCE_HEIGHT * FINE)


def make_sprite(canvas: Canvas, height: int, angle: int = 0) -> Sprite:
    """Turn the canvas by `angle`, scale it to a picture of `height` pixels and rasterise it."""
    shapes = [(s, [_scaled_outline(o, height, angle) for o in s.outlines]) for s in canvas.shapes]
    left, top, right, bottom = _pixel_bounds([o for s, os in shapes if s.kind != "shade" for o in os])
    opacity = np.zeros((bottom - top, right - left), np.int64)
    ownership = np.zeros_like(opacity)
    weighted = np.zeros((*opacity.shape, 3), np.int64)
    for shape, outlines in shapes:
        x0, y0, x1, y1 = _pixel_bounds(outlines)
        x0, y0, x1, y1 = max(x0, left), max(y0, top), min(x1, right), min(y1, bottom)
        if x0 >= x1 or y0 >= y1:
            continue
        coverage = _coverage([o - (x0 * FINE, y0 * FINE) for o in outlines], (y1 - y0, x1 - x0))
        area = (slice(y0 - top, y1 - top), slice(x0 - left, x1 - left))
        alpha = coverage * shape.opacity // 255
        below = opacity[area]
        fraction = alpha * below // 255 if shape.kind == "shade" else alpha
        weighted[area] = fraction[..., None] * np.array(shape.colour) + weighted[area] * (255 - alpha)[..., None] // 255
        if shape.kind != "shade":
            opacity[area] = alpha + below * (255 - alpha) // 255
        if shape.kind == "paint":
            ownership[area] = coverage + ownership[area] * (255 - coverage) // 255
    weighted = np.minimum(weighted, 255 * opacity[..., None])
    return Sprite(
        weighted.astype(np.uint16),
        (255 - opacity)[..., None].astype(np.uint16),
        np.asfortranarray(ownership >= 128),
        left,
        top,
    )


def _pixel_bounds(outlines: list[NDArray[np.int64]]) -> tuple[int, int, int, int]:
    """Return the left, top, right and bottom of the pixels that the outlines can touch."""
    points = np.concatenate(outlines)
    (left, top), (right, bottom) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    return left // FINE, top // FINE, right // FINE + 1, bottom // FINE + 1


def _scaled_outline(outline: tuple[Point, ...], height: int, angle: int) -> NDArray[np.int64]:
    """Return the outline in 1/FINE pixels."""
    points = [turn(x, y, angle) for x, y in outline] if angle else outline
    return np.array(points, np.int64) * height // REFERENCE_HEIGHT


def _coverage(outlines: list[NDArray[np.int64]], size: tuple[int, int]) -> NDArray[np.int64]:
    """Return how much of each pixel is inside, 0..255, from a grid of sample points and exact edge crossings."""
    rows, columns = size[0] * _SAMPLES, size[1] * _SAMPLES
    half = _STEP // 2
    edges = np.concatenate([np.hstack([outline, np.roll(outline, -1, axis=0)]) for outline in outlines])
    edges = np.where(edges[:, 1:2] > edges[:, 3:4], edges[:, [2, 3, 0, 1]], edges)  # each edge starts at its upper end
    first, last = (np.clip((edges[:, index] + half - 1) // _STEP, 0, rows) for index in (1, 3))
    crossings = last - first
    xa, ya, xb, yb = np.repeat(edges, crossings, axis=0).T
    row = np.arange(crossings.sum()) + np.repeat(first - np.cumsum(crossings) + crossings, crossings)
    x = xa + (row * _STEP + half - ya) * (xb - xa) // (yb - ya)
    crossed = np.zeros((rows, columns + 1), np.uint8)
    np.bitwise_xor.at(crossed, (row, np.clip((x + half - 1) // _STEP, 0, columns)), 1)
    inside = np.bitwise_xor.accumulate(crossed, axis=1)[:, :columns]
    in_row = np.add.reduce([inside[:, index::_SAMPLES] for index in range(_SAMPLES)])
    count: NDArray[np.int64] = np.add.reduce([in_row[index::_SAMPLES] for index in range(_SAMPLES)], dtype=np.int64)
    return count * 255 // (_SAMPLES * _SAMPLES)


class _SpriteTables(msgspec.Struct):
    colours: dict[str, RGB]
    sprites: dict[str, list[str]]


_TABLES = msgspec.yaml.decode(resources.files(__package__).joinpath("sprites.yaml").read_bytes(), type=_SpriteTables)
PALETTE = _TABLES.colours


def paint(canvas: Canvas, painter: str, colour: str, variant: int = 0) -> None:
    """Draw an object in a named colour."""
    if painter in _VARIED_PAINTERS:
        _VARIED_PAINTERS[painter](canvas, PALETTE[colour], variant)
        return
    for line in _TABLES.sprites[painter]:
        _draw(canvas, line, PALETTE[colour])


def _draw(canvas: Canvas, line: str, base: RGB) -> None:
    """Draw one line of `sprites.yaml`; the head of that file describes the format of lines."""
    shape, colour, mode, repeat = ([part.split() for part in line.split("|")] + [[]] * 3)[:4]
    word, *texts = shape
    numbers = [int(text) for text in texts]
    if word == "shadow":
        canvas.shadow(*numbers)
        return
    kind, opacity = (*mode, "255")[:2] if mode else ("paint", "255")
    view = Canvas(canvas.shapes, "paint" if kind == "glass" else kind, int(opacity))
    fill_colour = _colour(colour, base)
    if word == "poly":
        view.poly(list(zip(numbers[::2], numbers[1::2], strict=True)), fill_colour)
    elif word == "rect":
        left, top, right, bottom, *radius = numbers
        times, step = map(int, repeat[1:] or (1, 0))
        for shift in range(times):
            view.rect(left + shift * step, top, right + shift * step, bottom, fill_colour, *radius)
    elif word == "bone":
        x0, y0, x1, y1, width, *end = numbers
        view.bone(x0, y0, x1, y1, width, fill_colour, *end)
    elif word == "oval":
        x, y, rx, ry = numbers
        view.oval(x, y, rx, ry, fill_colour)
    else:
        x, y, rx, ry, width = numbers
        view.ring(x, y, rx, ry, width, fill_colour)


def _colour(words: list[str], base: RGB) -> RGB:
    """Read `[COLOUR] [light N | dark N | mix COLOUR N]`; a colour is a name or three numbers."""
    colour, words = _first_colour(words, base)
    match words:
        case ["light", percent]:
            return light(colour, int(percent))
        case ["dark", percent]:
            return dark(colour, int(percent))
        case ["mix", *other, percent]:
            return mix(colour, _first_colour(other, base)[0], int(percent))
    return colour


def _first_colour(words: list[str], base: RGB) -> tuple[RGB, list[str]]:
    if words and words[0] in PALETTE:
        return PALETTE[words[0]], words[1:]
    if words and words[0].isdigit():
        red, green, blue = map(int, words[:3])
        return (red, green, blue), words[3:]
    return base, words


def _surface(c: Canvas, colour: RGB, level: int) -> None:
    rx, ry = 8 + level * 3 // 2, 2 + level * 3 // 8
    c.oval(0, 0, rx, ry, colour)
    c.shade(90).oval(-rx // 3, 0, rx // 2, max(1, ry // 2), light(colour, 45))


def _stream(c: Canvas, colour: RGB, height: int) -> None:
    c.bone(0, 0, 0, max(3, height), 4, colour)
    c.shade(110).rect(-1, 0, 0, height, light(colour, 60))


def _steam(c: Canvas, _: RGB, phase: int) -> None:
    """Draw steam that rises from the origin: transparent, and in no mask. `phase` is 0..3."""
    for k in range(4):
        x = (-7, 5, -4, 8)[(k + phase) % 4]
        Canvas(c.shapes, "shadow", 52).oval(x, -8 - 11 * k - 3 * phase, 6 + 2 * k, 7, (255, 255, 255))


def _button(c: Canvas, colour: RGB, pressed: int) -> None:
    """Draw a button; with `pressed` 1, the button is pushed in and lit."""
    c.oval(0, 0, 9, 9, dark(PALETTE["silver"], 40))
    c.oval(0, 0, 7, 7, mix(colour, (255, 250, 190), 55) if pressed else colour)
    c.shade(200).ring(0, 0, 4, 4, 1, PALETTE["black"] if sum(colour) > 360 else (240, 240, 240))


def _hand(c: Canvas, colour: RGB, pose: int) -> None:
    """Draw a right hand, seen from behind.

    `pose` 0 is an open resting hand, 1 grips, and 2 points. The origin is the point where the hand touches.
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


_VARIED_PAINTERS: dict[str, Callable[[Canvas, RGB, int], None]] = {
    "surface": _surface,
    "stream": _stream,
    "steam": _steam,
    "button": _button,
    "hand": _hand,
}
