"""Draw the pictures of aids."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from barista_bench.aids.graph_rows import Box
from barista_bench.aids.levels import Picture
from barista_bench.media.set_of_mark import Mark, draw_marks

TINT = 0.15
"""Opacity of a mark's inside."""


def draw_picture(picture: Picture, frame: NDArray[np.uint8], size: tuple[int, int]) -> Image.Image:
    """Draw a picture in the frame's own resolution.

    Args:
        frame: (height, width, 3) RGB.
        size: (width, height) in pixels to which the picture's boxes refer.
    """
    height, width = frame.shape[:2]
    if picture.marks:
        boxes = {number: _scaled(box, size, (width, height)) for number, box in picture.marks}
        largest_first = sorted(boxes, key=lambda number: (-_area(boxes[number]), number))
        marks = (Mark(number, _mask(boxes[number], (height, width))) for number in largest_first)
        return draw_marks(frame, marks, (width, height), mask_alpha=TINT, darken_inside=False)
    image = Image.fromarray(frame)
    return image.crop(_scaled(picture.crop, size, (width, height))) if picture.crop else image


def _scaled(box: Box, size: tuple[int, int], to: tuple[int, int]) -> tuple[int, int, int, int]:
    """Scale a box to whole pixels of another size.

    The box is at least one pixel wide and high and lies in the frame.
    """
    x0, x1 = (value * to[0] / size[0] for value in box[::2])
    y0, y1 = (value * to[1] / size[1] for value in box[1::2])
    left, top = min(max(0, int(x0)), to[0] - 1), min(max(0, int(y0)), to[1] - 1)
    return left, top, min(to[0], max(left + 1, round(x1))), min(to[1], max(top + 1, round(y1)))


def _area(box: tuple[int, int, int, int]) -> int:
    return (box[2] - box[0]) * (box[3] - box[1])


def _mask(box: tuple[int, int, int, int], shape: tuple[int, int]) -> NDArray[np.bool_]:
    mask = np.zeros(shape, dtype=np.bool_)
    mask[box[1] : box[3], box[0] : box[2]] = True
    return mask
