"""Makes the shapes of rows: functions that take a frame's (height, width) and return a mask, a box or an error text.

`scene_graph.shapes` and `scene_graph.masks` read geometry; this module converts the units and encodings of other tools.
"""

from __future__ import annotations

import base64
import binascii
import io
import math
import zlib
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pycocotools import mask as coco_mask

from barista_bench.other_graphs.rows import Shape, XywhBox
from barista_bench.scene_graph.masks import encode_mask, parse_segmentations
from barista_bench.scene_graph.shapes import NO_CORNERS, Rle, mask_of_box, mask_of_polygons

Unit: TypeAlias = Literal["pixels", "fractions", "percent"]
Layout: TypeAlias = Literal["xywh", "xyxy", "centre"]
"""(Left, top, width, height), (left, top, right, bottom), or (centre x, centre y, width, height)."""
Bits: TypeAlias = NDArray[np.bool_]
_MOST_PIXELS = 2**26


def factors(unit: Unit, height: int, width: int) -> tuple[float, float]:
    """Return the width and the height of one unit in pixels."""
    return {"pixels": (1.0, 1.0), "fractions": (width, height), "percent": (width / 100, height / 100)}[unit]


def box_shape(box: Sequence[float], layout: Layout = "xywh", unit: Unit = "pixels", degrees: float = 0.0) -> Shape:
    """Return a box, cut at the frame's edge.

    `degrees` turns the box clockwise about its top left corner. For a turned box, return the upright box around it.
    """

    def draw(height: int, width: int) -> Rle | XywhBox | str:
        across, down = factors(unit, height, width)
        a, b, c, d = (float(number) * factor for number, factor in zip(box, (across, down) * 2, strict=True))
        if layout == "xyxy":
            c, d = c - a, d - b
        elif layout == "centre":
            a, b = a - c / 2, b - d / 2
        if not (c > 0 and d > 0):
            return f"a box {[a, b, c, d]} has no area"
        if unit == "pixels" and c < 1 and d < 1:
            return "a box is smaller than a pixel: set `unit: fractions` in the map if it is in fractions of the frame"
        if degrees:
            a, b, c, d = _box_around_turned(a, b, c, d, degrees)
        left, top, right, bottom = max(a, 0.0), max(b, 0.0), min(a + c, float(width)), min(b + d, float(height))
        if not (right > left and bottom > top):
            return f"a box {[a, b, c, d]} is not on the {width}x{height} frame"
        return left, top, right - left, bottom - top

    return draw


def _box_around_turned(left: float, top: float, width: float, height: float, degrees: float) -> XywhBox:
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    across, down = [0, width * cosine, -height * sine], [0, width * sine, height * cosine]
    across, down = [*across, across[1] + across[2]], [*down, down[1] + down[2]]
    return left + min(across), top + min(down), max(across) - min(across), max(down) - min(down)


def polygon_shape(
    polygons: Sequence[Sequence[Sequence[float]]], unit: Unit = "pixels", *, holes: bool = False
) -> Shape:
    """Return a mask of polygons; each polygon is a list of corners (x, y).

    With `holes`, a polygon inside another polygon is a hole.
    """

    def draw(height: int, width: int) -> Rle | XywhBox | str:
        across, down = factors(unit, height, width)
        flat = [[number for x, y in polygon for number in (x * across, y * down)] for polygon in polygons]
        return mask_of_polygons(flat, height, width, even_odd=holes)

    return draw


def coco_shape(segmentation: bytes | msgspec.Raw) -> Shape:
    """Read a COCO segmentation: polygons in pixels, or run lengths, compressed or uncompressed."""
    return lambda height, width: parse_segmentations([segmentation], height, width)[0]


def joined_shape(shapes: Sequence[Shape]) -> Shape:
    """Join several masks. A box is filled to a rectangle; a polygon with fewer than three corners adds nothing."""

    def draw(height: int, width: int) -> Rle | XywhBox | str:
        masks: list[Rle] = []
        for shape in shapes:
            drawn = shape(height, width)
            if isinstance(drawn, tuple):
                drawn = mask_of_box((drawn[0], drawn[1], drawn[0] + drawn[2], drawn[1] + drawn[3]), height, width)
            if isinstance(drawn, Rle):
                masks.append(drawn)
            elif drawn != NO_CORNERS:
                return drawn
        if not masks:
            return NO_CORNERS
        codes = [{"size": list(mask.size), "counts": mask.counts.encode("ascii")} for mask in masks]
        return Rle(coco_mask.merge(codes)["counts"].decode("ascii"), (height, width))

    return draw if len(shapes) > 1 else shapes[0]


def bitmap_shape(read: Callable[[], Bits], left: int, top: int) -> Shape:
    """Place a mask (rows, columns) with its top left pixel at (left, top); parts outside of the frame are cut off."""

    def draw(height: int, width: int) -> Rle | XywhBox | str:
        try:
            bits = read()
        except (ValueError, OSError, SyntaxError, EOFError, zlib.error, Image.DecompressionBombError) as error:
            return f"the picture of the mask is damaged ({type(error).__name__})"
        canvas = np.zeros((height, width), dtype=np.bool_)
        inside = bits[max(0, -top) : max(0, height - top), max(0, -left) : max(0, width - left)]
        y, x = max(0, top), max(0, left)
        canvas[y : y + inside.shape[0], x : x + inside.shape[1]] = inside
        return encode_mask(canvas)

    return draw


def unpack(text: str) -> bytes:
    """Decode bytes that were compressed by zlib and encoded in base64.

    Raises ValueError or zlib.error if the text is invalid or the result is too large.
    """
    stream = zlib.decompressobj()
    content = stream.decompress(_decode(text), _MOST_PIXELS)
    if stream.unconsumed_tail:
        raise ValueError("too large")
    return content


def png_bits(content: bytes) -> Bits:
    """Read a PNG file as a mask: its opaque pixels if it has transparency, else its pixels that are not black."""
    with Image.open(io.BytesIO(content), formats=("PNG",)) as image:
        if image.width * image.height > _MOST_PIXELS:
            raise ValueError("too large")
        if image.mode in ("RGBA", "LA"):
            return np.asarray(image.getchannel("A")) > 0
        return np.asarray(image if image.mode in ("1", "L", "P") else image.convert("L")) > 0


def png_of_base64(text: str) -> Bits:
    """Decode a PNG file from base64, and read it as a mask."""
    return png_bits(_decode(text))


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("no base64") from error
