"""Boxes in answers of models: read within bounds, and made up for the `chance` model."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

from barista_bench.boxes import GRID, Xyxy, from_grid, read_box, write_box
from barista_bench.errors import DataError
from barista_bench.prompt import BoxFormat
from barista_bench.task import Fields, Json


def frame_size(inputs: Fields) -> tuple[int, int]:
    """(width, height) in pixels of the frame that an example is about."""
    width, height = inputs["frame_width"], inputs["frame_height"]
    assert isinstance(width, int)
    assert isinstance(height, int)
    return width, height


def read_pixels(numbers: Sequence[float], inputs: Fields, boxes: BoxFormat) -> list[float]:
    """Four numbers in the model's format as [x0, y0, x1, y1] in pixels."""
    return list(read_box(numbers, boxes, *frame_size(inputs)))


def grid_pixels(grid_box: Sequence[float], inputs: Fields) -> list[float]:
    """A box on the release's grid as [x0, y0, x1, y1] in pixels."""
    return list(from_grid(grid_box, *frame_size(inputs)))


def annotated(fields: Mapping[str, Json], name: str, example_id: str) -> Json:
    """A box, or boxes, in pixels as annotated, from a target's field; released files have boxes on the grid alone.

    Raises:
        DataError: the example has none.
    """
    if name not in fields:
        raise DataError(
            f"{example_id}: has no {name!r}, the boxes in pixels that the paper's protocol scores against. "
            "Remedy: score it with protocol=release, or build the set from the annotations"
        )
    return fields[name]


def write_grid(grid_box: Sequence[float], inputs: Fields, boxes: BoxFormat) -> list[int] | list[float]:
    """A box on the release's grid as the model would write it."""
    width, height = frame_size(inputs)
    return write_box(from_grid(grid_box, width, height), boxes, width, height)


def random_grid_box(rng: random.Random) -> list[float]:
    """Two different positions on either axis, every pair as likely as any other."""
    x0, x1 = sorted(rng.sample(range(GRID + 1), 2))
    y0, y1 = sorted(rng.sample(range(GRID + 1), 2))
    return [x0, y0, x1, y1]


def as_xyxy(box: Sequence[float]) -> Xyxy:
    """The four numbers of a box as a tuple."""
    x0, y0, x1, y1 = box
    return x0, y0, x1, y1


def in_words(box: Sequence[float]) -> str:
    """A pixel box for people.

    >>> in_words([1.0, 2.4, 30.6, 40])
    '[1, 2, 31, 40]'
    """
    return f"[{', '.join(str(round(value)) if math.isfinite(value) else '?' for value in box)}]"
