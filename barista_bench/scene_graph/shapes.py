"""Convert shapes of annotation tools to masks: polygons with holes, boxes, ellipses, run lengths, label images.

Coordinates are pixels from the left and the top. Corners are included in the way in which pycocotools rasterises them:
the box 5, 5, 25, 25 covers 400 pixels. Every importer uses this module for shapes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pycocotools import mask as coco_mask

_LONGEST_OUTLINE = 100
"""Maximum outline of a mask's polygons, in heights and widths of the frame. The rasteriser takes 200 bytes per pixel of
outline.
"""
_CORNERS_OF_ELLIPSE = 72
NO_CORNERS = "no polygon has three corners"
_MOST_BYTES, _MOST_PIXELS = 2**26, 2**26
"""Maximum number of bytes and of pixels of a picture of labels."""


class Rle(msgspec.Struct, frozen=True):
    """A compressed COCO run-length encoding. `size` is (height, width) in pixels. Runs go down the columns."""

    counts: str
    size: tuple[int, int]


def mask_of_polygons(
    polygons: Sequence[Sequence[float]], height: int, width: int, *, even_odd: bool = False
) -> Rle | str:
    """Return the mask of polygons, which are flat lists `[x0, y0, x1, y1, ...]`, or a description of the error.

    Args:
        polygons: the polygons. Polygons with fewer than three corners have no area and are skipped.
        height, width: size of the frame.
        even_odd: True if a pixel inside an even number of polygons is a hole. Otherwise all polygons are joined, as in
            COCO.
    """
    limit, perimeter = 4 * max(height, width), 0.0
    pieces: list[Sequence[float]] = []
    for index, polygon in enumerate(polygons):
        if len(polygon) % 2:
            return f"polygon {index} has {len(polygon)} numbers: an even count is needed"
        # The rasteriser follows every edge: a far-away corner would take unlimited time and memory.
        if not all(abs(number) <= limit for number in polygon):
            return f"polygon {index} reaches more than {limit} pixels from the origin"
        if len(polygon) < 6:
            continue
        corners = np.reshape(polygon, (-1, 2))
        perimeter += float(np.abs(corners - np.roll(corners, 1, axis=0)).sum())
        if perimeter > _LONGEST_OUTLINE * (height + width):
            return f"polygons up to {index} have outlines of {perimeter:.0f} pixels, far more than a frame has room for"
        pieces.append(polygon)
    if not pieces:
        return NO_CORNERS
    encoded = coco_mask.frPyObjects([list(piece) for piece in pieces], height, width)
    if even_odd and len(encoded) > 1:
        odd = np.bitwise_xor.reduce(coco_mask.decode(encoded), axis=2)
        merged = coco_mask.encode(np.asfortranarray(odd))
    else:
        merged = coco_mask.merge(encoded)
    return Rle(counts=merged["counts"].decode("ascii"), size=(height, width))


def mask_of_box(box: tuple[float, float, float, float], height: int, width: int, *, degrees: float = 0.0) -> Rle | str:
    """Return the mask of a box (left, top, right, bottom) that is turned clockwise about its centre."""
    left, top, right, bottom = box
    if not (right > left and bottom > top):
        return f"a box {list(box)} has no area"
    corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
    return _mask_of_corners(corners, ((left + right) / 2, (top + bottom) / 2), degrees, height, width)


def mask_of_ellipse(
    centre: tuple[float, float], radii: tuple[float, float], height: int, width: int, *, degrees: float = 0.0
) -> Rle | str:
    """Return the mask of an ellipse with these half axes along x and y. It is turned clockwise about its centre."""
    if min(radii) <= 0:
        return f"an ellipse of radii {list(radii)} has no area"
    turns = [2 * math.pi * step / _CORNERS_OF_ELLIPSE for step in range(_CORNERS_OF_ELLIPSE)]
    corners = [(centre[0] + radii[0] * math.cos(turn), centre[1] + radii[1] * math.sin(turn)) for turn in turns]
    return _mask_of_corners(corners, centre, degrees, height, width)


def _mask_of_corners(
    corners: Sequence[tuple[float, float]], centre: tuple[float, float], degrees: float, height: int, width: int
) -> Rle | str:
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    turned = [
        number
        for x, y in corners
        for dx, dy in [(x - centre[0], y - centre[1])]
        for number in (centre[0] + cosine * dx - sine * dy, centre[1] + sine * dx + cosine * dy)
    ]
    return mask_of_polygons([turned], height, width)


def mask_of_runs(counts: Sequence[int], size: tuple[int, int]) -> Rle | str:
    """Return the mask of uncompressed COCO run lengths.

    Runs start with background and go down the columns. `size` is (height, width).
    """
    pixels = size[0] * size[1]
    if min(counts, default=0) < 0 or sum(counts) != pixels:
        return f"runs cover {sum(counts)} of {pixels} pixels"
    packed = coco_mask.frPyObjects({"size": list(size), "counts": list(counts)}, *size)
    return Rle(packed["counts"].decode("ascii"), size)


def masks_of_labels(labels: NDArray[np.uint8]) -> dict[int, Rle]:
    """Return the masks of a (height, width) image whose pixels are labels. 0 is not a label.

    All masks are made in one pass over the runs of the image. Encoding one mask after the other takes 20 times as long.
    """
    height, width = labels.shape
    pixels = labels.T.ravel()
    edges = np.flatnonzero(pixels[1:] != pixels[:-1]) + 1
    starts, ends = np.concatenate(([0], edges)), np.concatenate((edges, [pixels.size]))
    values = pixels[starts]
    masks: dict[int, Rle] = {}
    for number in np.unique(values[values > 0]).tolist():
        has_number = values == number
        turns = [0, *np.stack([starts[has_number], ends[has_number]], axis=1).ravel().tolist(), pixels.size]
        counts = [end - start for start, end in pairwise(turns)]
        encoded = coco_mask.frPyObjects(
            {"size": [height, width], "counts": counts if counts[-1] else counts[:-1]}, height, width
        )
        masks[number] = Rle(encoded["counts"].decode("ascii"), (height, width))
    return masks


def read_labels(path: Path) -> NDArray[np.uint8]:
    """Read a PNG of labels as (height, width) numbers.

    The PNG has a palette or grey values, with 8 bits or with one bit, whose label is 1.

    Raises:
        ValueError: the image is missing, damaged, too large or of another kind. The error names the cause.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError(f"larger than {_MOST_BYTES // 2**20} MiB")
        with Image.open(path, formats=("PNG",)) as image:
            if image.width * image.height > _MOST_PIXELS:
                raise ValueError(f"{image.width}x{image.height} px are more than are read")
            if image.mode not in ("1", "L", "P"):
                raise ValueError(f"a PNG of mode {image.mode}, where labels are palette, grey or one bit")
            return np.asarray(image).astype(np.uint8)
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError("the PNG is missing or damaged") from error
