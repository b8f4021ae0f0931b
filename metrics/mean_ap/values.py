"""Check numbers and COCO run-length encodings. A broken encoding would send pycocotools into an endless loop.

A mask is {"size": [height, width], "counts": ...}. The counts are lengths of alternating runs of 0 and 1, column by
column, as a list or in COCO's text form. Needs numpy. A list of runs needs pycocotools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def as_sortable(codes: Ints, count: int) -> NDArray[np.integer[Any]]:
    """Convert codes below `count` to the type that numpy sorts fastest. Numpy sorts up to 16 bits by radix.

    >>> as_sortable(np.array([2**15]), 2**15 + 1).tolist()
    [32768]
    """
    return codes.astype(np.int16) if count <= 2**15 else codes


def as_numbers(raw: object, name: str, where: str) -> Floats:
    """Return a float64 array from a list, a numpy array or a tensor.

    Raises TypeError or ValueError unless all numbers are finite.
    """
    try:
        values = np.asarray(raw)
    except (TypeError, ValueError, RuntimeError) as error:  # ragged lists, tensors that need a gradient
        raise TypeError(f"{where}: {name} is {shorten(raw)}; give equally long lists of numbers ({error})") from None
    if values.dtype.kind not in "fiu":
        raise TypeError(f"{where}: {name} is {shorten(raw)}; give numbers")
    numbers = values.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{where}: {name} is {shorten(raw)}; give finite numbers")
    return numbers


def as_rle(raw: object, where: str) -> dict[str, Any]:
    """Return an encoding in COCO's text form whose runs fill the mask. Raises TypeError or ValueError.

    >>> as_rle({"size": [2, 3], "counts": b"132"}, "masks[0]")
    {'size': [2, 3], 'counts': '132'}
    >>> as_rle({"size": [2, 4], "counts": "132"}, "masks[0]")
    Traceback (most recent call last):
        ...
    ValueError: masks[0]: counts add up to 6 instead of 2 x 4 pixels; give a whole run-length encoding
    """
    if not isinstance(raw, Mapping) or not raw.keys() >= {"size", "counts"}:
        raise TypeError(f"{where} is {shorten(raw)}; give a dict with size [height, width] and counts")
    size = [int(side) for side in as_numbers(raw["size"], "size", where).reshape(-1)]
    if len(size) != 2 or min(size) < 1:
        raise ValueError(f"{where}: size is {shorten(raw['size'])}; give [height, width] in pixels")
    counts = raw["counts"]
    text = counts.encode() if isinstance(counts, str) else counts
    runs = runs_of(text) if isinstance(text, bytes) else as_numbers(text, "counts", where)
    if runs is None or runs.ndim != 1 or (runs < 0).any() or (runs % 1).any():
        raise ValueError(f"{where}: counts is {shorten(counts)}; give a COCO run-length encoding")
    if runs.sum() != size[0] * size[1]:
        raise ValueError(
            f"{where}: counts add up to {runs.sum():.0f} instead of {size[0]} x {size[1]} pixels; "
            "give a whole run-length encoding"
        )
    if not isinstance(text, bytes):
        from pycocotools import mask  # boxes do not need pycocotools

        text = mask.frPyObjects({"size": size, "counts": runs.astype(int).tolist()}, *size)["counts"]
    return {"size": size, "counts": text.decode("ascii")}


def runs_of(text: bytes) -> Ints | None:
    """Return the runs of COCO's text form, or None if the text is invalid.

    Each number is written in groups of 5 bits, the lowest first, one character (from "0") per group, with 32 added
    if more groups follow. From the fourth number on, it is the difference to the second-last run.

    >>> runs = runs_of(b"132N")
    >>> runs.tolist()
    [1, 3, 2, 1]
    """
    codes = np.frombuffer(text, np.uint8).astype(np.int64) - 48
    last = (codes & 32) == 0
    if not len(codes) or codes.min() < 0 or codes.max() > 63 or not last[-1]:
        return None
    start = np.flatnonzero(np.concatenate([[True], last[:-1]]))
    digit = np.arange(len(codes)) - np.repeat(start, np.diff(start, append=len(codes)))
    if digit.max() > 6:  # more than 32 bits
        return None
    values = np.add.reduceat((codes & 31) << (5 * digit), start)
    negative = (codes[last] & 16) > 0
    values[negative] -= 1 << (5 * (digit[last][negative] + 1))
    for first in (1, 2):
        values[first::2] = np.cumsum(values[first::2])
    return values


def shorten(raw: object) -> str:
    """Describe a value and its type for a message."""
    text = repr(raw)
    return f"{text if len(text) <= 80 else text[:77] + '...'} ({type(raw).__name__})"
