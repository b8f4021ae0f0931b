"""Show a question with less evidence or transformed. Views are defined as data and painted on the images."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from PIL import Image, ImageDraw

from barista_bench.aids.facts import QuestionScene
from barista_bench.aids.graph_rows import Box
from barista_bench.aids.levels import View
from barista_bench.aids.picture_facts import elsewhere, evidence_boxes
from barista_bench.aids.transformed import mirrored, reversed_clip
from barista_bench.core.example import Example

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


def viewed(view: View, scene: QuestionScene) -> Viewed | None:
    """Return an example in a view, or None if the view would change nothing or cannot be made."""
    if view in ("mirrored", "reversed"):
        transformed = mirrored(scene.example, scene.video.size) if view == "mirrored" else reversed_clip(scene)
        return None if transformed is None else Viewed(view, transformed)
    evidence = [
        [_dilated(box, scene.video.size) for box in evidence_boxes(scene, frame.frame_index)]
        for frame in scene.example.frames
    ]
    if not any(evidence):
        return None
    areas = [tuple(boxes) for boxes in evidence]
    if view == "hide_elsewhere":
        areas = [
            tuple(
                place
                for box in boxes
                if (place := elsewhere(box, boxes, scene.video.size, f"{scene.example.example_id} {frame} {box}"))
            )
            for frame, boxes in enumerate(evidence)
        ]
        if list(map(len, areas)) != list(map(len, evidence)):
            return None
    return Viewed(view, scene.example, tuple(areas))


def _dilated(box: Box, size: tuple[int, int]) -> Box:
    across, down = DILATION * (box[2] - box[0]), DILATION * (box[3] - box[1])
    x0, y0, x1, y1 = box[0] - across, box[1] - down, box[2] + across, box[3] + down
    return max(0.0, x0), max(0.0, y0), min(float(size[0]), x1), min(float(size[1]), y1)


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
