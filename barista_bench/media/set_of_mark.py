"""Draws the set-of-mark overlay: each object's mask has its own colour, an outline, and its number at the centre.

The overlay equals the release's pixel for pixel (docs/upstream/barista.md, "Relations"). Masks are painted in the order
of their numbers, later masks over earlier masks. The outline has the mark's colour, and the inside is darker; in the
paper's protocol the inside is not darker. The overlay is drawn only with numpy and Pillow. The numbers use Pillow's
built-in font, so their pixels depend on the version of Pillow.
"""

from __future__ import annotations

import colorsys
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

_GOLDEN_RATIO_CONJUGATE = 0.618033988749895
_STRIP_PIXELS = 2**20
"""Number of pixels that are painted at once."""


class Mark(NamedTuple):
    """A number to show, and the object's boolean mask (height, width), which is not empty."""

    number: int
    mask: NDArray[np.bool_]


def draw_marks(
    frame: NDArray[np.uint8],
    marks: Iterable[Mark],
    size: tuple[int, int],
    *,
    mask_alpha: float = 0.5,
    boundary_alpha: float = 0.9,
    font_size: float = 20,
    darken_inside: bool = True,
) -> Image.Image:
    """Return the frame with all marks drawn over it.

    Args:
        frame: (height, width, 3) RGB of any size.
        marks: the marks in the order of their numbers, with masks of `size`. Only one mask is in memory at a time.
        size: (width, height) in pixels of the returned image; the frame is resized to it.
        mask_alpha: opacity of the marks, 0 to 1.
        boundary_alpha: how much darker the inside of a mark is than its outline, 0 (equal) to 1 (black).
        font_size: size of the numbers in pixels.
        darken_inside: True darkens the inside, as in the release. False gives the inside the mark's colour, and draws
            the outline over the frame with the opacity `boundary_alpha`.
    """
    labels, centres = np.zeros((size[1], size[0]), dtype=np.int32), dict[int, tuple[int, int]]()
    for mark in marks:
        labels[mark.mask] = mark.number
        centres[mark.number] = _centre(mark.mask)
    picture = Image.fromarray(frame)
    if picture.size != size:
        picture = picture.resize(size, Image.Resampling.BILINEAR)
    pixels = np.array(picture)
    _paint_labels(pixels, labels, mask_alpha, boundary_alpha, darken_inside)
    picture = Image.fromarray(pixels)
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(size=font_size)
    for number, centre in centres.items():
        pen.text(
            centre,
            str(number),
            fill="white",
            font=font,
            anchor="mm",
            stroke_width=max(1, round(font_size / 14)),
            stroke_fill="black",
        )
    return picture


def _centre(mask: NDArray[np.bool_]) -> tuple[int, int]:
    columns, rows = (np.count_nonzero(mask, axis=axis) for axis in (0, 1))
    means = (float(np.arange(len(counts)) @ counts / counts.sum()) for counts in (columns, rows))
    x, y = map(round, means)
    return x, y


def mark_color(number: int) -> NDArray[np.float32]:
    """Return the RGB colour of a mark, shape (3,), from 0 to 255; consecutive numbers get very different hues.

    >>> mark_color(1).round().tolist()
    [36.0, 96.0, 242.0]
    """
    rgb = colorsys.hsv_to_rgb(number * _GOLDEN_RATIO_CONJUGATE % 1.0, 0.85, 0.95)
    return np.array(rgb, dtype=np.float32) * np.float32(255)


def _paint_labels(
    pixels: NDArray[np.uint8], labels: NDArray[np.int32], mask_alpha: float, boundary_alpha: float, darken_inside: bool
) -> None:
    """Paint every labelled pixel in place, in single precision. The background (label 0) stays unchanged."""
    height, width = labels.shape
    rows = max(1, _STRIP_PIXELS // width)
    for top in range(0, height, rows):
        around = np.pad(labels[max(0, top - 1) : top + rows + 1], ((int(top == 0), int(top + rows >= height)), (1, 1)))
        strip = pixels[top : top + rows]
        _paint_strip(strip, around, mask_alpha, boundary_alpha, darken_inside)


def _paint_strip(
    strip: NDArray[np.uint8], around: NDArray[np.int32], mask_alpha: float, boundary_alpha: float, darken_inside: bool
) -> None:
    labels = around[1:-1, 1:-1]
    painted = labels != 0
    numbers, inverse = np.unique(labels[painted], return_inverse=True)
    color = np.array([mark_color(int(number)) for number in numbers], dtype=np.float32).reshape(-1, 3)[inverse]
    is_boundary = _is_boundary(around)[painted][:, None]
    opacity: np.float32 | NDArray[np.float32] = np.float32(mask_alpha)
    if darken_inside:
        color = np.where(is_boundary, color, (np.float32(1) - np.float32(boundary_alpha)) * color)
    else:
        opacity = np.where(is_boundary, np.float32(boundary_alpha), opacity)
    mixed = strip[painted].astype(np.float32) * (np.float32(1) - opacity) + color * opacity
    strip[painted] = np.clip(np.rint(mixed), 0, 255).astype(np.uint8)


def _is_boundary(around: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return the labelled pixels with a 4-connected neighbour of another label, except at the rim of `around`."""
    labels = around[1:-1, 1:-1]
    neighbours = (around[:-2, 1:-1], around[2:, 1:-1], around[1:-1, :-2], around[1:-1, 2:])
    differs = np.logical_or.reduce([neighbour != labels for neighbour in neighbours])
    return np.asarray((labels != 0) & differs)
