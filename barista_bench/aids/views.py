"""Show a question with less evidence or transformed. Views are defined as data and painted on the images.

hide_evidence    the objects of the evidence are painted over
hide_elsewhere   equal areas elsewhere are painted over: the control of `hide_evidence`
only_evidence    all else is painted over
mirrored         left and right are exchanged, in pictures, question and reference
reversed         a clip runs backwards
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec
import numpy as np
from PIL import Image, ImageDraw

from barista_bench.aids.facts import QuestionScene, elsewhere, widened
from barista_bench.aids.graph_rows import Box
from barista_bench.core.example import Example, evidence_objects
from barista_bench.scene_graph import Rle, decode_mask
from barista_bench.scene_graph.masks import encode_mask, run_problems

View: TypeAlias = Literal["hide_evidence", "hide_elsewhere", "only_evidence", "mirrored", "reversed"]
VIEWS: Final[tuple[View, ...]] = get_args(View)
FRAME_VIEWS: Final[tuple[View, ...]] = tuple(view for view in VIEWS if view != "reversed")
"""The views of a question whose frames need no order."""
_SIDE = re.compile(r"\b(left|right)(?= (?:hands?|of|side)\b)|^(left|right)$", re.IGNORECASE)
_OTHER_SIDE = {"left": "right", "right": "left", "Left": "Right", "Right": "Left"}
_PIXELS, _ON_GRID = {"box", "boxes", "hand_pixels", "object_pixels"}, {"ground_truth_boxes", "hand_boxes", "object_box"}
_CORNER_AND_SIZE = {"bbox", "bbox_xywh"}
DILATION = 0.1
"""Margin on each side of a painted area, as a fraction of the width or height of the object's box."""


class Viewed(msgspec.Struct, frozen=True):
    """An example in one view.

    Args:
        example: the question to ask, with the reference for this view.
        areas: for each frame of the example, the boxes in pixels to paint over. `only_evidence` keeps these boxes
            instead.
    """

    view: View
    example: Example
    areas: tuple[tuple[Box, ...], ...] = ()

    @property
    def data(self) -> dict[str, object]:
        """Return the changes of the view as JSON values."""
        changed = self.view in ("mirrored", "reversed")
        question = {"inputs": self.example.inputs} if changed else {}
        return {"example_id": self.example.example_id, "view": self.view, "areas": self.areas, **question}


def viewed(
    view: View,
    scene: QuestionScene,
    mirror: Callable[[Example, tuple[int, int]], Example | None],
    reverse: Callable[[QuestionScene], Example | None],
) -> Viewed | None:
    """Return an example in a view, or None if the view would change nothing. The task mirrors and reverses it."""
    size = scene.video.size
    if view in ("mirrored", "reversed"):
        transformed = mirror(scene.example, size) if view == "mirrored" else reverse(scene)
        return None if transformed is None else Viewed(view, transformed)
    areas = [
        tuple(widened(box, DILATION, (float(size[0]), float(size[1]))) for box in _evidence_boxes(scene, frame))
        for frame in (each.frame_index for each in scene.example.frames)
    ]
    if not any(areas):
        return None
    if view == "hide_elsewhere":
        others = [
            [elsewhere(box, boxes, size, f"{scene.example.example_id} {frame} {box}") for box in boxes]
            for frame, boxes in enumerate(areas)
        ]
        if any(None in boxes for boxes in others):
            return None
        areas = [tuple(box for box in boxes if box) for boxes in others]
    return Viewed(view, scene.example, tuple(areas))


def _evidence_boxes(scene: QuestionScene, frame: int) -> list[Box]:
    """Return the boxes of the example's evidence on a frame: its objects and the hands that act on these objects."""
    hands = scene.example.evidence.get("hand_ids")
    ids = {*evidence_objects(scene.example), *(map(str, hands) if isinstance(hands, list) else ())}
    return [row.box for row in scene.boxes(frame, ids)]


def paint(image: Image.Image, boxes: Sequence[Box], size: tuple[int, int], *, keep: bool) -> Image.Image:
    """Paint the boxes in the mean colour of the remaining image.

    If `keep` is true, paint the remaining image in its mean colour instead.

    Args:
        size: (width, height) in pixels to which the boxes refer.
    """
    mask = Image.new("1", image.size)
    pen = ImageDraw.Draw(mask)
    for box in boxes:
        x0, x1 = (value * image.width / size[0] for value in box[::2])
        y0, y1 = (value * image.height / size[1] for value in box[1::2])
        pen.rectangle((round(x0), round(y0), max(round(x0), round(x1) - 1), max(round(y0), round(y1) - 1)), fill=1)
    pixels, inside = np.array(image), np.array(mask)
    if inside.all() or not inside.any():
        rest = pixels.reshape(-1, 3)
    else:
        rest = pixels[~inside]
    pixels[~inside if keep else inside] = rest.mean(axis=0).round().astype(np.uint8)
    return Image.fromarray(pixels)


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
