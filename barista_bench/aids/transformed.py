"""Mirror the columns of an example: boxes and masks are mirrored, and the words for left and right are exchanged."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from barista_bench.core.example import Example
from barista_bench.scene_graph import Rle, decode_mask
from barista_bench.scene_graph.masks import encode_mask, run_problems

_SIDE = re.compile(r"\b(left|right)(?= (?:hands?|of|side)\b)|^(left|right)$", re.IGNORECASE)
_OTHER_SIDE = {"left": "right", "right": "left", "Left": "Right", "Right": "Left"}
_PIXELS, _ON_GRID = {"box", "boxes", "hand_pixels", "object_pixels"}, {"ground_truth_boxes", "hand_boxes", "object_box"}
_CORNER_AND_SIZE = {"bbox", "bbox_xywh"}


def mirror_fields(example: Example, size: tuple[int, int]) -> Example:
    """Return the example with mirrored inputs and target. `size` is the (width, height) of its frames in pixels."""
    scale = example.target.get("bbox_scale", 0)
    inputs, target = (_mirrored("", fields, size[0], scale) for fields in (example.inputs, example.target))
    return replace(example, label=swap_sides(example.label), inputs=inputs, target=target)


def swap_sides(text: str) -> str:
    """Exchange left and right where these words name sides of hands and places.

    >>> swap_sides("held by left hand"), swap_sides("what is left")
    ('held by right hand', 'what is left')
    """
    return _SIDE.sub(lambda match: _OTHER_SIDE[match[0]], text)


def _mirrored(name: str, value: Any, width: int, scale: Any) -> Any:  # noqa: ANN401  (JSON)
    if isinstance(value, str):
        return value if name.endswith(("_id", "_ids")) else swap_sides(value)
    if isinstance(value, dict):
        if name == "segmentation":
            return _mirrored_mask(value)
        return {key: _mirrored(key, each, width, scale) for key, each in value.items()}
    if not isinstance(value, list):
        return value
    if len(value) == 4 and all(isinstance(each, int | float) for each in value):
        if name in _CORNER_AND_SIZE:
            return [width - value[0] - value[2], *value[1:]]
        side = width if name in _PIXELS else scale if name in _ON_GRID else None
        return value if side is None else [side - value[2], value[1], side - value[0], value[3]]
    return [_mirrored(name, each, width, scale) for each in value]


def _mirrored_mask(segmentation: dict[str, Any]) -> dict[str, Any]:
    """Mirror a mask. A mask that cannot be drawn stays unchanged, and the drawing code reports it."""
    height, width = segmentation["size"]
    if not segmentation["counts"] or run_problems([segmentation["counts"]], height * width)[0]:
        return segmentation
    mask = decode_mask(Rle(segmentation["counts"], (height, width)))
    return {"size": [height, width], "counts": encode_mask(np.ascontiguousarray(mask[:, ::-1])).counts}
