"""Boxes in prompts and answers: asked for, read within bounds, and made up for the `chance` model."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import TypeVar

from barista_bench.core.example import TypedFields
from barista_bench.core.prompt import GRID, BoxFormat, PromptTexts, Xyxy, from_grid, read_box, write_box
from barista_bench.core.task import Fields
from barista_bench.errors import ConfigError, DataError

BoxesT = TypeVar("BoxesT")


class FrameSize(TypedFields):
    """In pixels, of the frame that an example is about."""

    frame_width: int
    frame_height: int


def frame_size(inputs: Fields) -> tuple[int, int]:
    """(width, height) in pixels of the frame that an example is about."""
    size = FrameSize.read(inputs)
    return size.frame_width, size.frame_height


def read_pixels(numbers: Sequence[float], inputs: Fields, boxes: BoxFormat) -> list[float]:
    """Four numbers in the model's format as [x0, y0, x1, y1] in pixels."""
    return list(read_box(numbers, boxes, *frame_size(inputs)))


def grid_pixels(grid_box: Sequence[float], inputs: Fields, scale: int = GRID) -> list[float]:
    """A box on the release's grid of 0..scale as [x0, y0, x1, y1] in pixels."""
    return list(from_grid(grid_box, *frame_size(inputs), scale))


def truth_scale(target: Fields) -> int:
    """The number that stands for a whole side of the frame in an example's true boxes."""
    scale = target.get("bbox_scale", GRID)
    assert isinstance(scale, int)
    return scale


def annotated(boxes: BoxesT | None, name: str, example_id: str) -> BoxesT:
    """A box, or boxes, in pixels as annotated; released files have boxes on the grid alone.

    Raises:
        DataError: the example has none.
    """
    if boxes is None:
        raise DataError(
            f"{example_id}: has no {name!r}, the boxes in pixels that the paper's protocol scores against. "
            "Remedy: score it with protocol=release, or build the set from the annotations"
        )
    return boxes


def on_usual_grid(box: Sequence[float], scale: int) -> list[float]:
    """A true box on the grid of 0..scale on the usual one of 0..1000, as baselines take it."""
    return list(box) if scale == GRID else [value / scale * GRID for value in box]


def write_grid(
    grid_box: Sequence[float], inputs: Fields, boxes: BoxFormat, scale: int = GRID
) -> list[int] | list[float]:
    """A box on the release's grid of 0..scale as the model would write it."""
    width, height = frame_size(inputs)
    return write_box(from_grid(grid_box, width, height, scale), boxes, width, height)


def box_fields(prompts: PromptTexts, boxes: BoxFormat) -> dict[str, str]:
    """The fields of a wording that describes boxes in its own words, for models that write them as `boxes` says.

    `scale` is the number that a full side maps to; a text `extra.<name>.<order>` fills `{<name>}` in that order.

    Raises:
        ConfigError: the wording names a scale, and the model writes pixels.
    """
    if boxes.scale is None and "{scale}" in prompts.system:
        raise ConfigError(
            f"the wording {prompts.wording} asks for boxes on a scale, and this model writes pixels. "
            "Remedy: give another --box-format, such as xyxy/1000"
        )
    ending = f".{boxes.order}"
    texts = {name.removesuffix(ending): text for name, text in prompts.extra.items() if name.endswith(ending)}
    return {"scale": str(boxes.scale), **texts}


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
