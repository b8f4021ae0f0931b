"""Handle boxes in prompts and answers: formats, reading within bounds, baselines and failures.

The kinds of failure start from the matching of the task's score, and name only the boxes that were left unmatched.
Unmatched boxes of reference and answer are paired by similarity, the closest pair first. A box without a partner is
missed or hallucinated. The JSON Schema of a box bounds coordinates by the widest range of all box formats for the
frame.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from math import isfinite
from statistics import mode
from typing import TypeVar, cast

import numpy as np

from barista_bench.core.boxes import BOX_ORDERS, GRID, BoxFormat, as_xyxy, from_grid, read_box, to_grid, write_box
from barista_bench.core.display import AnswerFailure
from barista_bench.core.example import Fields, Inputs
from barista_bench.core.prompt import PromptTexts
from barista_bench.errors import ConfigError, DataError
from barista_bench.metrics.interaction_f1.scoring import box_iou

Box = Sequence[float]
Boxes = list[list[float]]
BoxesT = TypeVar("BoxesT")
CENTRE_FRACTIONS = (0.25, 0.25, 0.75, 0.75)
"""The middle of an image, half as wide and half as high: [x0, y0, x1, y1] in fractions of the image."""
CENTRE_ON_GRID = (250.0, 250.0, 750.0, 750.0)
"""`CENTRE_FRACTIONS` on the release's grid of 0..1000."""
LOOSE_IOU = 0.1
"""A box that matches no true box is loose if its IoU with one is at least this, and elsewhere if not."""
MATCH_IOU = 0.5
"""The IoU above which two boxes count as boxes of the same thing, as in the scores."""
SMALL, LARGE = 32**2, 96**2
"""COCO's bounds of small, medium and large objects, in square pixels."""
LARGEST_SINGLE = 3e38
"""The largest coordinate in pixels: mean average precision uses single precision, which cannot hold larger ones."""


class FrameSize(Inputs):
    """The size in pixels of the example's frame."""

    frame_width: int
    frame_height: int


def frame_size(inputs: Fields) -> tuple[int, int]:
    """Return (width, height) in pixels of the example's frame."""
    size = FrameSize.read(inputs)
    return size.frame_width, size.frame_height


def read_pixels(numbers: Sequence[float], inputs: Fields, box_format: BoxFormat) -> list[float]:
    """Return four numbers in the model's format as [x0, y0, x1, y1] in pixels."""
    return list(read_box(numbers, box_format, *frame_size(inputs)))


def grid_to_pixels(grid_box: Sequence[float], inputs: Fields, scale: int = GRID) -> list[float]:
    """Return, in pixels, a box [x0, y0, x1, y1] that is on the release's grid of 0..scale."""
    return list(from_grid(grid_box, *frame_size(inputs), scale))


def pixels_to_grid(box: Sequence[float], inputs: Fields) -> list[int]:
    """Return, on the release's usual grid, a box [x0, y0, x1, y1] in pixels. Rounding is as for true boxes."""
    return to_grid(as_xyxy(box), *frame_size(inputs))


def reference_scale(target: Fields) -> int:
    """Return the number that stands for a full side of the frame in an example's true boxes."""
    scale = target.get("bbox_scale", GRID)
    assert isinstance(scale, int)
    return scale


def reference_box(box: Sequence[float], size: tuple[int, int], target: Fields) -> list[int]:
    """Return a box in pixels on the grid of an example's true boxes. `size` is the frame's (width, height)."""
    return [round(value * reference_scale(target) / GRID) for value in to_grid(as_xyxy(box), *size)]


def require_annotated(boxes: BoxesT | None, name: str, example_id: str) -> BoxesT:
    """Return a box, or boxes, in pixels as annotated. Released files have boxes only on the grid.

    Raises DataError if the example has no such box.
    """
    if boxes is None:
        raise DataError(
            f"{example_id}: has no {name!r}, the boxes in pixels that the paper's protocol scores against. "
            "Fix: score it with protocol=release, or build the set from the annotations"
        )
    return boxes


def on_usual_grid(box: Sequence[float], scale: int) -> list[float]:
    """Convert a true box from the grid of 0..scale to the usual grid of 0..1000, which baselines need.

    >>> on_usual_grid([0, 10, 50, 100], 100)
    [0.0, 100.0, 500.0, 1000.0]
    """
    return list(box) if scale == GRID else [value / scale * GRID for value in box]


def write_grid(
    grid_box: Sequence[float], inputs: Fields, box_format: BoxFormat, scale: int = GRID
) -> list[int] | list[float]:
    """Return a box on the release's grid of 0..scale as the model would write it."""
    width, height = frame_size(inputs)
    return write_box(from_grid(grid_box, width, height, scale), box_format, width, height)


def box_fields(prompts: PromptTexts, box_format: BoxFormat) -> dict[str, str]:
    """Return the fields of a wording that describes boxes itself, for models that write `box_format`.

    `scale` is the number for a full side. The text `extra.<name>.<order>` fills `{<name>}` for models with that order.
    Raises ConfigError if the wording names a scale but the model writes pixels, or if the wording describes boxes only
    in other orders.
    """
    if box_format.scale is None and "{scale}" in prompts.system:
        raise ConfigError(
            f"the wording {prompts.wording} asks for boxes on a scale, and this model writes pixels. "
            "Fix: give another --box-format, such as xyxy/1000"
        )
    ending = f".{box_format.order}"
    texts = {name.removesuffix(ending): text for name, text in prompts.extra.items() if name.endswith(ending)}
    for name in prompts.extra:
        place, _, order = name.rpartition(".")
        if order in BOX_ORDERS and place not in texts:
            raise ConfigError(
                f"the wording {prompts.wording} has extra.{name}, and no extra.{place}{ending}. "
                f"Fix: write it, or give another --box-format, such as {order}/1000"
            )
    return {"scale": str(box_format.scale), **texts}


BOX_PLACES = frozenset({"format", "box_format", "box_order"})
"""Places for a description of boxes in our wordings."""


def own_box_places(prompts: PromptTexts) -> set[str]:
    """Return the places that `box_fields` fills in a wording that describes boxes itself."""
    names = {name.rpartition(".")[0] for name in prompts.extra if name.rpartition(".")[2] in BOX_ORDERS}
    return names | ({"scale"} if "{scale}" in prompts.system else set())


def random_grid_box(rng: random.Random) -> list[float]:
    """Return a random box. Each axis has two different positions, and every pair is equally likely."""
    x0, x1 = sorted(rng.sample(range(GRID + 1), 2))
    y0, y1 = sorted(rng.sample(range(GRID + 1), 2))
    return [x0, y0, x1, y1]


def box_text(box: Sequence[float]) -> str:
    """Format a pixel box for people.

    >>> box_text([1.0, 2.4, 30.6, 40])
    '[1, 2, 31, 40]'
    """
    return f"[{', '.join(str(round(value)) if isfinite(value) else '?' for value in box)}]"


def usual_boxes(answers: Sequence[Boxes]) -> Boxes:
    """Return the expected boxes of several lists of boxes.

    The result has the most frequent number of boxes. Each box is the mean over the lists with that number, whose boxes
    are paired from left to right. At least one list is required.

    >>> usual_boxes([[[0, 0, 10, 10]], [[20, 0, 30, 20]], [[0, 0, 1, 1], [5, 5, 6, 6]]])
    [[10.0, 0.0, 20.0, 15.0]]
    """
    count = mode(sorted(map(len, answers)))  # of several modes, the smallest
    lists = [sorted(boxes) for boxes in answers if len(boxes) == count]
    return cast("Boxes", np.mean(np.array(lists, dtype=float).reshape(len(lists), count, 4), axis=0).tolist())


def box_size(box: Box) -> str:
    """Return COCO's word for the area of [x0, y0, x1, y1] in pixels.

    >>> box_size([40, 0, 71, 31]), box_size([0, 0, 32, 32]), box_size([0, 0, 100, 100])
    ('small', 'medium', 'large')
    """
    area = max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])
    return "small" if area < SMALL else "medium" if area < LARGE else "large"


def box_failures(
    reference: Sequence[Box], predicted: Sequence[Box], pairs: Iterable[tuple[int, int]], objects: Sequence[str]
) -> list[AnswerFailure]:
    """Return the failures of boxes in pixels. `pairs` has the indices (reference, answer) that count as right.

    `objects` are the ids of the true boxes' objects. If the data lack ids, `objects` is shorter or empty.
    """

    def ids_of(index: int) -> tuple[str, ...]:
        return tuple(name for name in objects[index : index + 1] if name)

    matched = list(pairs)
    missed = [i for i in range(len(reference)) if i not in {i for i, _ in matched}]
    wrong = [j for j in range(len(predicted)) if j not in {j for _, j in matched}]
    failures = [AnswerFailure("loose_box", ids_of(i)) for i, _ in _pair_leftovers(missed, wrong, reference, predicted)]
    failures += [AnswerFailure("missed", ids_of(i)) for i in missed]
    for j in wrong:
        same = [i for i, _ in matched if box_iou(reference[i], predicted[j]) > MATCH_IOU]
        failures.append(AnswerFailure("duplicate", ids_of(same[0])) if same else AnswerFailure("hallucinated"))
    return failures


def _pair_leftovers(
    missed: list[int], wrong: list[int], reference: Sequence[Box], predicted: Sequence[Box]
) -> list[tuple[int, int]]:
    """Pair boxes that overlap by at least `LOOSE_IOU`, largest overlap first, and remove them from both lists."""
    overlaps = sorted((-box_iou(reference[i], predicted[j]), i, j) for i in missed for j in wrong)
    pairs = []
    for overlap, i, j in overlaps:
        if -overlap >= LOOSE_IOU and i in missed and j in wrong:
            pairs.append((i, j))
            missed.remove(i)
            wrong.remove(j)
    return pairs


def box_schema(inputs: Fields) -> Fields:
    number: Fields = {"type": "number", "minimum": 0, "maximum": max(GRID, *frame_size(inputs))}
    return {"type": "array", "items": number, "minItems": 4, "maxItems": 4}


def released_number(value: object, box_format: BoxFormat) -> float:
    """Return a number of an answer, which may be a text. The result is an integer unless the model writes fractions.

    Raises:
        TypeError, ValueError: the value is not a number.
        OverflowError: the number is too large.
    """
    number = float(cast("float", value))
    return number if box_format.scale == 1 and isfinite(number) else round(number)


def released_pixels(box: Sequence[float], inputs: Fields, box_format: BoxFormat) -> list[float]:
    pixels = read_pixels(box, inputs, box_format)
    if not all(abs(value) <= LARGEST_SINGLE for value in pixels):
        raise OverflowError("a coordinate has no single precision")
    return pixels
