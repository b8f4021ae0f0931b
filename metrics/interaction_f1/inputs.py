"""Check the metric's input for a frame, and convert it to plain Python numbers.

A box is (x0, y0, x1, y1), with x to the right and y down. The corner (x1, y1) is excluded, so the width is x1 - x0.
Predictions and references may use any common unit (pixels, a 0..1000 grid).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

HAND_TYPES = ("left", "right", "both")
_PLAIN_NUMBERS = {int, float}

Box = tuple[float, float, float, float]
RawInteraction = Mapping[str, Any]
RawFrame = Sequence[RawInteraction]


class Interaction(NamedTuple):
    """One or two hands that act on one object. Boxes are (x0, y0, x1, y1)."""

    hand_boxes: tuple[Box, ...]
    object_box: Box
    hand_type: str


def as_interaction(raw: RawInteraction, where: str = "interaction") -> Interaction:
    """Check a dict with hand_boxes (list of 4 numbers), object_box (4 numbers) and hand_type.

    Boxes may be lists, numpy arrays or torch tensors. hand_type is left, right or both; case and surrounding white
    space do not matter. Further keys are ignored. Raises TypeError or ValueError; the message starts with `where`
    and names the field.

    >>> as_interaction({"hand_boxes": [[0, 0, 2, 2]], "object_box": [1, 1, 4, 4], "hand_type": " Left"})
    Interaction(hand_boxes=((0.0, 0.0, 2.0, 2.0),), object_box=(1.0, 1.0, 4.0, 4.0), hand_type='left')
    >>> as_interaction({"hand_boxes": [], "object_box": [1, 1, 4], "hand_type": "left"}, "predictions[2][0]")
    Traceback (most recent call last):
        ...
    ValueError: predictions[2][0]: object_box is [1, 1, 4]; give the four numbers x0, y0, x1, y1
    """
    fields = ", ".join(Interaction._fields)
    if not isinstance(raw, Mapping):
        raise TypeError(f"{where}: is {raw!r} ({type(raw).__name__}); give a dict with {fields}")
    missing = [name for name in Interaction._fields if name not in raw]
    if missing:
        raise ValueError(f"{where}: {', '.join(missing)} is missing; give {fields}")
    hands = _as_plain(raw["hand_boxes"])
    if not isinstance(hands, Sequence) or isinstance(hands, str | bytes):
        kind = type(raw["hand_boxes"]).__name__
        raise TypeError(f"{where}: hand_boxes is {raw['hand_boxes']!r} ({kind}); give a list of boxes [x0, y0, x1, y1]")
    return Interaction(
        tuple(_box(box, f"hand_boxes[{index}]", where) for index, box in enumerate(hands)),
        _box(raw["object_box"], "object_box", where),
        _hand_type(raw["hand_type"], where),
    )


def _as_plain(raw: object) -> object:
    """Return lists and tuples unchanged. Convert other data that numpy can read (arrays, tensors) to nested lists."""
    if isinstance(raw, list | tuple) or raw is None or isinstance(raw, str | bytes | Mapping):
        return raw
    try:
        return np.asarray(raw).tolist()
    except (TypeError, ValueError, RuntimeError):  # for example a tensor with a gradient or on a GPU
        return raw


def _box(raw: object, name: str, where: str) -> Box:
    values = _as_plain(raw)
    if not isinstance(values, list | tuple):
        kind = type(raw).__name__
        raise TypeError(
            f"{where}: {name} is {raw!r} ({kind}); give a list, a numpy array or a detached CPU tensor of four numbers"
        )
    if len(values) != 4:
        raise ValueError(f"{where}: {name} is {raw!r}; give the four numbers x0, y0, x1, y1")
    x0, y0, x1, y1 = values
    # Check the usual case at once. Finite numbers may have a sum that is not finite.
    if {type(x0), type(y0), type(x1), type(y1)} <= _PLAIN_NUMBERS and isfinite(x0 + y0 + x1 + y1):
        return float(x0), float(y0), float(x1), float(y1)
    x0, y0, x1, y1 = (_number(value, name, where) for value in values)
    return x0, y0, x1, y1


def _number(raw: object, name: str, where: str) -> float:
    value = _as_plain(raw)
    # bool is an int in Python, but a box of truth values is a mistake.
    if isinstance(value, bool) or not isinstance(value, float | int):
        raise TypeError(f"{where}: {name} holds {raw!r} ({type(raw).__name__}), not a number; give numbers only")
    if not isfinite(value):
        raise ValueError(f"{where}: {name} holds {raw!r}; give finite numbers")
    return float(value)


def _hand_type(raw: object, where: str) -> str:
    if not isinstance(raw, str):
        kind = type(raw).__name__
        raise TypeError(f"{where}: hand_type is {raw!r} ({kind}), not a string; give left, right or both")
    hand_type = raw.strip().casefold()
    if hand_type not in HAND_TYPES:
        raise ValueError(f"{where}: hand_type is {raw!r}; give left, right or both")
    return hand_type


def as_frame(raw: RawFrame, where: str, *, needs_hands: bool = False) -> list[Interaction]:
    """Return all interactions of a frame.

    If `needs_hands` is true (references), refuse interactions without hand boxes.
    """
    if isinstance(raw, str | bytes | Mapping) or not isinstance(raw, Sequence | np.ndarray):
        raise TypeError(f"{where}: is {raw!r} ({type(raw).__name__}); give a list of interactions, [] for none")
    interactions = [as_interaction(item, f"{where}[{index}]") for index, item in enumerate(raw)]
    for index, interaction in enumerate(interactions):
        if needs_hands and not interaction.hand_boxes:
            raise ValueError(f"{where}[{index}]: hand_boxes is empty; give the box of each hand of a reference")
    return interactions


def check_columns(
    predictions: Any,  # noqa: ANN401
    references: Any,  # noqa: ANN401
) -> tuple[list[list[Interaction] | None], list[list[Interaction]]]:
    """Check both columns.

    Raises TypeError unless both are lists of frames, and ValueError unless both are equally long.
    """
    for name, column in (("predictions", predictions), ("references", references)):
        if isinstance(column, str | bytes | Mapping) or not isinstance(column, Sequence | np.ndarray):
            raise TypeError(f"{name}: is of type {type(column).__name__}; give a list with one entry per frame")
    if len(predictions) != len(references):
        raise ValueError(
            f"there are {len(predictions)} predictions for {len(references)} references; "
            "give one prediction per reference, None where there is no usable answer"
        )
    return (
        [None if raw is None else as_frame(raw, f"predictions[{index}]") for index, raw in enumerate(predictions)],
        [as_frame(raw, f"references[{index}]", needs_hands=True) for index, raw in enumerate(references)],
    )
