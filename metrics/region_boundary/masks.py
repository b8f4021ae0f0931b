"""Read binary masks (arrays, tensors, COCO run lengths), and access them through their bounding boxes.

Axis 0 of an array is y (down), axis 1 is x (right), in pixels. COCO's run lengths go down the columns and start with
background. Boxes and windows are half-open: rows y0 to y1 - 1, columns x0 to x1 - 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco_mask

RawMask = Any  # an array-like of shape (height, width), or a COCO RLE dict with size and counts
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

_SYMBOLS = bytes(range(48, 112))
_ADVICE = "give a 2-D array (height, width) of booleans or integers, or a COCO RLE dict with size and counts"


class Window(NamedTuple):
    """A half-open rectangle of pixels."""

    y0: int
    x0: int
    y1: int
    x1: int


@dataclass(frozen=True)
class PixelMask:
    """A mask stored as booleans of shape (height, width)."""

    pixels: Bools

    @property
    def size(self) -> tuple[int, int]:
        height, width = self.pixels.shape
        return height, width

    @cached_property
    def box(self) -> Window | None:
        """Return the tight box around the foreground, or None without foreground."""
        if self.pixels.flags.f_contiguous:  # scanning along memory is many times faster
            flipped = _tight_box(self.pixels.T)
            return flipped and Window(flipped.x0, flipped.y0, flipped.x1, flipped.y1)
        return _tight_box(self.pixels)

    @cached_property
    def area(self) -> int:
        """Return the number of foreground pixels."""
        return int(np.count_nonzero(self.window(self.box))) if self.box else 0

    def window(self, window: Window) -> Bools:
        """Return the pixels of a window as an array (rows, columns)."""
        return self.pixels[window.y0 : window.y1, window.x0 : window.x1]

    @cached_property
    def rle(self) -> dict[str, Any]:
        """Return the mask as compressed COCO run lengths: size, and counts as bytes."""
        encoded: dict[str, Any] = coco_mask.encode(np.asfortranarray(self.pixels, dtype=np.uint8))
        return encoded


def _tight_box(pixels: Bools) -> Window | None:
    rows = np.flatnonzero(pixels.any(axis=1))
    if not rows.size:
        return None
    y0, y1 = int(rows[0]), int(rows[-1]) + 1
    columns = np.flatnonzero(pixels[y0:y1].any(axis=0))
    return Window(y0, int(columns[0]), y1, int(columns[-1]) + 1)


@dataclass(frozen=True)
class RunMask:
    """A mask stored as COCO run lengths. `ends` holds the cumulative sums of the runs, background first."""

    rle: dict[str, Any]
    ends: Ints

    @property
    def size(self) -> tuple[int, int]:
        height, width = self.rle["size"]
        return height, width

    @cached_property
    def _foreground(self) -> tuple[Ints, Ints]:
        """Return the starts and stops of foreground runs, in pixels down the columns. Empty runs are left out."""
        stops = self.ends[1::2]
        starts = self.ends[0::2][: stops.size]
        is_filled = stops > starts
        return starts[is_filled], stops[is_filled]

    @cached_property
    def box(self) -> Window | None:
        """Return the tight box around the foreground, or None without foreground."""
        height = self.size[0]
        starts, stops = self._foreground
        if not starts.size:
            return None
        (x0, x1), last = (int(starts[0]) // height, int(stops[-1] - 1) // height + 1), stops - 1
        if (starts // height != last // height).any():  # a run that continues in the next column spans the full height
            return Window(0, x0, height, x1)
        return Window(int((starts % height).min()), x0, int((last % height).max()) + 1, x1)

    @cached_property
    def area(self) -> int:
        """Return the number of foreground pixels."""
        return int(coco_mask.area(self.rle))

    def window(self, window: Window) -> Bools:
        """Return the pixels of a window as an array (rows, columns). Only its columns are decoded."""
        height = self.size[0]
        low, high = window.x0 * height, window.x1 * height
        lengths = np.diff(self.ends.clip(low, high), prepend=low)
        columns = np.repeat(np.arange(lengths.size) % 2 == 1, lengths).reshape(-1, height)
        return columns[:, window.y0 : window.y1].T


Mask = PixelMask | RunMask


def as_masks(raws: Sequence[RawMask], where: Sequence[str]) -> list[Mask]:
    """Read several masks. A mask is an array (height, width) with nonzero foreground, or a COCO RLE dict.

    Raises TypeError or ValueError; the message starts with the mask's entry in `where`.

    >>> array, runs = as_masks([[[0, 1, 1], [0, 0, 0]], {"size": [2, 3], "counts": [2, 1, 1, 1, 1]}], ["a", "b"])
    >>> array.box, runs.area
    (Window(y0=0, x0=1, y1=1, x1=3), 2)
    """
    pixels = {i: _as_pixels(raw, where[i]) for i, raw in enumerate(raws) if not isinstance(raw, Mapping)}
    rows = [i for i in range(len(raws)) if i not in pixels]
    runs = dict(zip(rows, _read_runs([raws[i] for i in rows], [where[i] for i in rows]), strict=True))
    return [pixels[i] if i in pixels else runs[i] for i in range(len(raws))]


def _as_pixels(raw: RawMask, where: str) -> PixelMask:
    if raw is None or isinstance(raw, str | bytes):
        raise TypeError(f"{where}: is {raw!r} ({type(raw).__name__}); {_ADVICE}")
    try:
        array = np.asarray(raw)
    except ValueError as error:
        raise ValueError(f"{where}: is not a rectangle of pixels ({error}); {_ADVICE}") from error
    if array.dtype.kind not in "biu":
        raise TypeError(f"{where}: has the dtype {array.dtype}; {_ADVICE}; cut scores at a threshold first")
    if array.ndim != 2 or not array.size:
        raise ValueError(f"{where}: has the shape {array.shape}; {_ADVICE}")
    if array.dtype == np.uint8 and array.max() <= 1:
        return PixelMask(array.view(bool))  # the usual form; copying a large mask takes longer than J and F
    return PixelMask(array.astype(bool, copy=False))


def _read_runs(raws: list[Mapping[str, Any]], where: list[str]) -> list[RunMask]:
    sizes = [_size(raw, name) for raw, name in zip(raws, where, strict=True)]
    counts = [raw["counts"] for raw in raws]
    strings = {i: _string(text, where[i]) for i, text in enumerate(counts) if isinstance(text, str | bytes)}
    parsed = dict(zip(strings, parse_counts(list(strings.values())), strict=True))
    masks = []
    for i, size in enumerate(sizes):
        runs = parsed[i] if i in parsed else np.asarray(counts[i])
        if runs.ndim != 1 or runs.dtype.kind not in "iu":
            raise TypeError(f"{where[i]}: counts is {counts[i]!r:.60}; give a string, bytes, or a list of integers")
        runs = runs.astype(np.int64, copy=False)
        ends = runs.cumsum()
        if not runs.size or ends[-1] != size[0] * size[1] or np.minimum.reduce(runs) < 0:
            raise ValueError(
                f"{where[i]}: the runs of counts do not fill the {size[0]} x {size[1]} pixels of size; "
                "give size as [height, width] and counts unchanged as pycocotools made them"
            )
        string = strings.get(i)
        if string is None:
            string = coco_mask.frPyObjects({"size": size, "counts": runs.tolist()}, *size)["counts"]
        masks.append(RunMask({"size": size, "counts": string}, ends))
    return masks


def _size(raw: Mapping[str, Any], where: str) -> list[int]:
    for name in ("size", "counts"):
        if name not in raw:
            raise ValueError(f"{where}: {name} is missing; {_ADVICE}")
    size = list(raw["size"]) if hasattr(raw["size"], "__len__") else []
    if len(size) != 2 or not all(isinstance(side, Integral) and int(side) > 0 for side in size):
        raise ValueError(f"{where}: size is {raw['size']!r}; give [height, width] in pixels")
    return [int(size[0]), int(size[1])]


def _string(text: str | bytes, where: str) -> bytes:
    """Return the counts as bytes. pycocotools writes six bits per byte, from 48 on; bit 5 marks a continued value."""
    raw = text.encode("utf-8") if isinstance(text, str) else text
    if not raw or raw.translate(None, _SYMBOLS) or raw[-1] >= 80:
        raise ValueError(f"{where}: counts is not a compressed COCO RLE string; give it as pycocotools made it")
    return raw


def parse_counts(strings: Sequence[bytes]) -> list[Ints]:
    """Return the run lengths of compressed COCO RLE strings. All strings are read in one pass.

    The format has little-endian groups of five bits, in two's complement. Bit 5 is set if the value continues. From the
    fourth run on, a value is the difference to the run two before. Broken strings may give negative runs or runs that
    are too long.

    >>> [runs.tolist() for runs in parse_counts([b"30258", b"d0"])]
    [[3, 0, 2, 5, 10], [20]]
    """
    if not strings:
        return []
    symbols = np.frombuffer(b"".join(strings), np.uint8).astype(np.int64) - 48
    last = np.flatnonzero(symbols < 32)
    first = np.zeros_like(last)
    first[1:] = last[:-1] + 1
    length = last - first + 1
    shift = np.minimum(5 * (np.arange(symbols.size) - first.repeat(length)), 30)
    values = np.add.reduceat((symbols & 31) << shift, first)
    values -= (symbols[last] >> 4 & 1) << np.minimum(5 * length, 35)
    values[length > 7] = -(1 << 50)  # no run is that long; the caller refuses negative runs
    cuts = last.searchsorted(np.cumsum([len(string) for string in strings]))
    runs = np.split(values, cuts[:-1])
    for part in runs:
        part[1::2].cumsum(out=part[1::2])
        part[2::2].cumsum(out=part[2::2])
    return runs
