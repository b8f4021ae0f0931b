"""Set-of-mark overlay: every object's mask in a colour of its own, outlined, with its number at its centre.

Parameters are the published ones (upstream.md 1.3 and 1.9): fill alpha 0.5, boundary alpha 0.9, number of size 20,
hue = mark x golden ratio conjugate. Drawn with numpy and Pillow alone, so the pixels are the same on every platform;
the font is the one that Pillow carries.
"""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

FILL_ALPHA = 0.5
BOUNDARY_ALPHA = 0.9
FONT_SIZE = 20
_GOLDEN_RATIO_CONJUGATE = 0.618033988749895


class Mark(NamedTuple):
    """A number to show and the (height, width) boolean mask that it stands for."""

    number: int
    mask: NDArray[np.bool_]


def mark_color(number: int) -> tuple[int, int, int]:
    """RGB colour of a mark: neighbouring numbers get hues far apart.

    >>> mark_color(1)
    (36, 96, 242)
    """
    red, green, blue = colorsys.hsv_to_rgb(number * _GOLDEN_RATIO_CONJUGATE % 1.0, 0.85, 0.95)
    return round(red * 255), round(green * 255), round(blue * 255)


def draw_marks(frame: NDArray[np.uint8], marks: Sequence[Mark]) -> Image.Image:
    """The frame, (height, width, 3) RGB, with all marks drawn over it in the given order."""
    canvas = frame.copy()
    for mark in marks:
        _blend(canvas, mark)
    image = Image.fromarray(canvas)
    pen = ImageDraw.Draw(image)
    font = ImageFont.load_default(size=FONT_SIZE)
    for mark in marks:
        if mark.mask.any():
            rows, columns = np.nonzero(mark.mask)
            center = (round(float(columns.mean())), round(float(rows.mean())))
            pen.text(
                center,
                str(mark.number),
                fill="white",
                font=font,
                anchor="mm",
                stroke_width=2,
                stroke_fill="black",
            )
    return image


def _blend(canvas: NDArray[np.uint8], mark: Mark) -> None:
    """Colour one mask in place; only its bounding box is touched."""
    rows, columns = np.flatnonzero(mark.mask.any(axis=1)), np.flatnonzero(mark.mask.any(axis=0))
    if not len(rows):
        return
    window = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    mask = mark.mask[window]
    alpha = np.where(mask, np.where(_boundary(mask), BOUNDARY_ALPHA, FILL_ALPHA), 0.0)[..., None]
    color = np.array(mark_color(mark.number), dtype=np.float64)
    canvas[window] = np.rint(canvas[window] * (1 - alpha) + color * alpha).astype(np.uint8)


def _boundary(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mask pixels with a neighbour (4-connected) outside the mask; beyond the window counts as outside."""
    padded = np.pad(mask, 1)
    inner = padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    return mask & ~inner
