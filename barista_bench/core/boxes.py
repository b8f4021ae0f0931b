"""Convert boxes between the forms that annotations, releases and models use.

The ground truth is always `[x0, y0, x1, y1]` in pixels of the displayed frame. The release freezes boxes on an integer
grid of 0..1000 (`to_grid`). Models write boxes in their declared `BoxFormat`, which is never guessed from an answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never, get_args

BoxOrder: TypeAlias = Literal["xyxy", "yxyx", "xywh"]
"""The order of the four numbers: two corners, with x or y first in both, or one corner, then width and height."""
BOX_ORDERS: tuple[BoxOrder, ...] = get_args(BoxOrder)


@dataclass(frozen=True, slots=True)
class BoxFormat:
    """A way to write a box: the order of the four numbers, and the number that stands for a full side of the image.

    `scale` 1000 means integers 0..1000, and 100 means integers 0..100. 1 means fractions; None means pixels of the
    image as sent.
    """

    order: BoxOrder = "xyxy"
    scale: int | None = 1000

    def __str__(self) -> str:
        """Return the text that `parse` reads."""
        return f"{self.order}/{self.scale or 'pixels'}"

    @classmethod
    def parse(cls, text: str) -> BoxFormat:
        """Return the format that a text such as `yxyx/1000` names. The scale is any whole number of at least 1.

        Raises:
            ValueError: the text is not a box format.

        >>> BoxFormat.parse("yxyx/1000"), BoxFormat.parse("xyxy/pixels")
        (BoxFormat(order='yxyx', scale=1000), BoxFormat(order='xyxy', scale=None))
        """
        order, _, scale = text.partition("/")
        if order in BOX_ORDERS and re.fullmatch("pixels|[1-9][0-9]{0,5}", scale):
            return cls(order, None if scale == "pixels" else int(scale))
        raise ValueError(
            f"{text[:20]!r} is not a box format: write {', '.join(BOX_ORDERS)}, then /pixels or the scale, such as "
            "/1000, /1 for fractions"
        )


DEFAULT_BOX_FORMAT = BoxFormat()
"""The box format of models of unknown architectures and of the columns of datasets."""
FORMATS_BY_ARCHITECTURE = {
    "gemma": BoxFormat("yxyx"),
    "gemini": BoxFormat("yxyx"),
    "gpt": BoxFormat("yxyx"),
    "qwen": BoxFormat(),
}
"""The box format that each architecture was trained on, by the start of its name. The release asks for the same
formats.
"""
GRID = 1000
LARGEST = 1e9
"""The largest accepted coordinate: arithmetic on larger numbers could overflow."""
_NAMES = {
    "xyxy": ("x_min", "y_min", "x_max", "y_max"),
    "yxyx": ("y_min", "x_min", "y_max", "x_max"),
    "xywh": ("x_min", "y_min", "width", "height"),
}

Xyxy = tuple[float, float, float, float]


def four_numbers(values: object, limit: float = LARGEST) -> list[float] | None:
    """Return `values` if they are a list of four numbers from `-limit` to `limit`, or else None. Booleans do not count.

    >>> four_numbers([1, 2.5, 3, 4]), four_numbers([1, 2, 3, True]), four_numbers([1, 2, 3, 1e400])
    ([1.0, 2.5, 3.0, 4.0], None, None)
    """
    if not isinstance(values, list | tuple) or len(values) != 4:
        return None
    # An int of any length compares with a float without overflow; NaN compares false.
    is_usable = all(isinstance(v, int | float) and not isinstance(v, bool) and -limit <= v <= limit for v in values)
    return [float(value) for value in values] if is_usable else None


def as_xyxy(box: Sequence[float]) -> Xyxy:
    """Return the four numbers of a box as a tuple."""
    x0, y0, x1, y1 = box
    return x0, y0, x1, y1


def xywh_to_xyxy(box: Sequence[float]) -> Xyxy:
    """Return the annotation's `[x, y, width, height]` as corners, in pixels.

    >>> xywh_to_xyxy((10, 20, 30, 40))
    (10, 20, 40, 60)
    """
    x, y, width, height = box
    return x, y, x + width, y + height


def to_grid(box: Xyxy, width: int, height: int) -> list[int]:
    """Convert a pixel box to the release's grid, xyxy: `clamp(round(pixel / size * 1000))` (docs/upstream/barista.md).

    >>> to_grid((0, 90, 640, 400), 640, 360)
    [0, 250, 1000, 1000]
    """
    return [min(GRID, max(0, round(value / size * GRID))) for value, size in zip(box, (width, height) * 2, strict=True)]


def from_grid(box: Sequence[float], width: int, height: int, scale: int = GRID) -> Xyxy:
    """Convert a box on the release's grid of 0..scale, xyxy, to pixels.

    The order of operations is the release's, so results are equal to the last digit.

    >>> from_grid([0, 250, 1000, 1000], 640, 360)
    (0.0, 90.0, 640.0, 360.0)
    """
    x0, y0, x1, y1 = (value / scale * size for value, size in zip(box, (width, height) * 2, strict=True))
    return x0, y0, x1, y1


def _reorder(box: Sequence[float], order: BoxOrder) -> Xyxy:
    x0, y0, x1, y1 = box
    match order:
        case "xyxy":
            return x0, y0, x1, y1
        case "yxyx":
            return y0, x0, y1, x1
        case "xywh":
            return x0, y0, x1 - x0, y1 - y0
        case _:
            assert_never(order)


def _corners(numbers: Sequence[float], order: BoxOrder) -> Xyxy:
    a, b, c, d = numbers
    match order:
        case "xyxy":
            return a, b, c, d
        case "yxyx":
            return b, a, d, c
        case "xywh":
            return xywh_to_xyxy((a, b, c, d))
        case _:
            assert_never(order)


def write_box(
    box: Xyxy, box_format: BoxFormat, width: int, height: int, *, exact: bool = False
) -> list[int] | list[float]:
    """Return the numbers that a model of this format writes for a pixel box.

    They are integers, or fractions with four decimals for scale 1.

    `exact` neither rounds the numbers nor clips the box to the image, so `read_box` returns the same box.

    >>> write_box((0, 90, 640, 360), BoxFormat("yxyx", 1000), 640, 360)
    [250, 0, 1000, 1000]
    """
    scaled = [
        value if box_format.scale is None else value / size * box_format.scale
        for value, size in zip(box, (width, height) * 2, strict=True)
    ]
    if exact:
        return list(_reorder(scaled, box_format.order))
    if box_format.scale == 1:
        corners = [min(1.0, max(0.0, round(value, 4))) for value in scaled]
        return [round(value, 4) for value in _reorder(corners, box_format.order)]
    limit = box_format.scale or max(width, height)
    whole_corners = [min(limit, max(0, round(value))) for value in scaled]
    return [round(value) for value in _reorder(whole_corners, box_format.order)]


def read_box(numbers: Sequence[float], box_format: BoxFormat, width: int, height: int) -> Xyxy:
    """Return the pixel box that a model of this format wrote as four numbers.

    Inverted and degenerate boxes stay as they are.

    >>> read_box([250, 0, 1000, 1000], BoxFormat("yxyx", 1000), 640, 360)
    (0.0, 90.0, 640.0, 360.0)
    """
    x0, y0, x1, y1 = _corners(numbers, box_format.order)
    if box_format.scale is None:
        return float(x0), float(y0), float(x1), float(y1)
    return from_grid((x0, y0, x1, y1), width, height, box_format.scale)


def describe_format(box_format: BoxFormat) -> str:
    """Return the format in words, for prompts.

    >>> describe_format(BoxFormat("yxyx", 1000))
    '[y_min, x_min, y_max, x_max], integers from 0 to 1000 relative to the size of the image'
    """
    names = ", ".join(_NAMES[box_format.order])
    if box_format.scale is None:
        return f"[{names}], integers in pixels of the image"
    if box_format.scale == 1:
        return f"[{names}], fractions from 0 to 1 of the size of the image"
    return f"[{names}], integers from 0 to {box_format.scale} relative to the size of the image"


def box_names(box_format: BoxFormat) -> str:
    """Return the names of the numbers in order, e.g. `y_min, x_min, y_max, x_max`."""
    return ", ".join(_NAMES[box_format.order])
