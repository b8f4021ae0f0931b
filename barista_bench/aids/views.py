"""Show a question with less evidence, or transformed: what a view changes, as data, and how it is painted."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from PIL import Image, ImageDraw

from barista_bench.aids.facts import Scene
from barista_bench.aids.graph_rows import Box
from barista_bench.aids.levels import View
from barista_bench.aids.picture_facts import elsewhere, evidence_boxes
from barista_bench.aids.transformed import mirrored, reversed_clip
from barista_bench.core.example import Example

DILATION = 0.1
"""Width added to each side of an area to paint over, as a fraction of the object's box; the same for the height."""


class Viewed(msgspec.Struct, frozen=True):
    """An example in one view.

    Args:
        example: the question to ask, with the reference that then holds.
        areas: of each of the example's frames, the boxes in pixels that are painted over, or kept by `only_evidence`.
    """

    view: View
    example: Example
    areas: tuple[tuple[Box, ...], ...] = ()

    @property
    def data(self) -> dict[str, object]:
        """What the view changes, in JSON values."""
        changed = self.view in ("mirrored", "reversed")
        question = {"inputs": self.example.inputs} if changed else {}
        return {"example_id": self.example.example_id, "view": self.view, "areas": self.areas, **question}


def viewed(view: View, scene: Scene) -> Viewed | None:
    """Return an example in a view; None if the view would change nothing, or cannot be made."""
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
    """Return the image with these boxes in the mean colour of the rest; with `keep`, the rest in its mean colour.

    Args:
        size: (width, height) in pixels that the boxes refer to.
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
