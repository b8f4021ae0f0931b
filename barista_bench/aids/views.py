"""Show a question with less evidence or transformed. Views are defined as data and painted on the images."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from PIL import Image, ImageDraw

from barista_bench.aids.facts import QuestionScene
from barista_bench.aids.graph_rows import Box
from barista_bench.aids.places import elsewhere, widened
from barista_bench.aids.task_aids import TaskAids, View
from barista_bench.core.example import Example, evidence_objects

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


def viewed(view: View, scene: QuestionScene, aids: TaskAids) -> Viewed | None:
    """Return an example in a view, or None if the view would change nothing or cannot be made."""
    size = scene.video.size
    if view in ("mirrored", "reversed"):
        transformed = aids.mirrored(scene.example, size) if view == "mirrored" else aids.reversed(scene)
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
