"""Masks of the release: COCO run-length encodings, checked before any native code reads them, decoded on demand."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco_mask

from barista_bench.errors import DataError

LONGEST_RUN_CODE = 7
"""Characters a run may take: 35 bits, far more than any frame has pixels."""


class Rle(msgspec.Struct, frozen=True):
    """A compressed COCO run-length encoding; `size` is (height, width) in pixels, columns run first."""

    counts: str
    size: tuple[int, int]


Polygons = list[list[float]]


def parse_segmentation(raw: bytes | msgspec.Raw, height: int, width: int) -> Rle:
    """The `segmentation` of one annotation as a checked encoding of the frame's size.

    Polygons (flat lists `[x0, y0, x1, y1, ...]` in pixels) are rasterised, as the release's loader does.

    Raises:
        DataError: it is neither form, its size is not (height, width), or its runs do not fill the frame.
    """
    try:
        parsed = msgspec.json.decode(raw, type=Rle | Polygons)
    except msgspec.MsgspecError as error:
        raise DataError(f"segmentation is neither run-length encoded nor polygons: {error}") from error
    if isinstance(parsed, list):
        return _from_polygons(parsed, height, width)
    if parsed.size != (height, width):
        raise DataError(f"mask size {list(parsed.size)} is not the frame's [{height}, {width}]")
    problem = run_problems([parsed.counts], height * width)[0]
    if problem:
        raise DataError(f"mask counts are not a run-length encoding: {problem}")
    return parsed


def decode_mask(rle: Rle) -> NDArray[np.bool_]:
    """The mask as (height, width) booleans. `rle` must come from `parse_segmentation`, which checked it."""
    counts = rle.counts.encode("ascii")
    return coco_mask.decode({"size": list(rle.size), "counts": counts}).astype(bool)


def encode_mask(mask: NDArray[np.bool_]) -> Rle:
    """The inverse of `decode_mask`."""
    encoded = coco_mask.encode(np.asfortranarray(mask, dtype=np.uint8))
    return Rle(counts=encoded["counts"].decode("ascii"), size=(mask.shape[0], mask.shape[1]))


def run_problems(counts: Sequence[str], pixels: int) -> list[str | None]:
    """For each compressed `counts` string what is wrong with it, or None: its runs must be >= 0 and sum to `pixels`.

    pycocotools trusts its input (a wrong sum reads or writes past its buffer), and decoding every mask of a release
    takes hours, so the sums of all strings of a video are computed at once, without drawing a pixel. The code: each
    run is written in characters of 5 bits, low bits first, 48 added, bit 5 set on all but its last character, bit 4
    of the last one the sign; from the fourth run on, the run two places back is subtracted.
    """
    problems: list[str | None] = [None] * len(counts)
    usable: list[int] = []
    for index, text in enumerate(counts):
        if not text or not text.isascii():
            problems[index] = "empty, or not ASCII"
        else:
            usable.append(index)
    if usable:
        found = _check_runs([counts[index].encode("ascii") for index in usable], pixels)
        for index, problem in zip(usable, found, strict=True):
            problems[index] = problem
    return problems


def _check_runs(strings: list[bytes], pixels: int) -> list[str | None]:
    lengths = np.array([len(s) for s in strings])
    code = np.frombuffer(b"".join(strings), dtype=np.uint8).astype(np.int64) - 48
    owner = np.repeat(np.arange(len(strings)), lengths)
    ends = np.cumsum(lengths) - 1
    last = (code & 32) == 0
    bad_code = _any_of((code < 0) | (code > 63), owner, len(strings))
    open_ended = ~last[ends]
    last[ends] = True

    stop = np.flatnonzero(last)
    start = np.concatenate(([0], stop[:-1] + 1))
    size = stop - start + 1
    too_long = _any_of(size > LONGEST_RUN_CODE, owner[start], len(strings))
    place = np.minimum(np.arange(len(code)) - np.repeat(start, size), LONGEST_RUN_CODE)
    value = np.add.reduceat((code & 31) << (5 * place), start)
    value -= np.where(code[stop] & 16, np.int64(1) << np.minimum(5 * size, 60), 0)

    runs, run_owner = _undo_differences(value, owner[start])
    negative = _any_of(runs < 0, run_owner, len(strings))
    total = np.bincount(run_owner, weights=runs, minlength=len(strings))
    return [
        "characters outside the code" if bad_code[i]
        else "the last run is cut off" if open_ended[i]
        else "a run is too long" if too_long[i]
        else "a run is negative" if negative[i]
        else f"runs cover {int(total[i])} of {pixels} pixels" if total[i] != pixels
        else None
        for i in range(len(strings))
    ]  # fmt: skip


def _undo_differences(
    value: NDArray[np.int64], owner: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Runs from the second on are sums over every other value of their string; the first stands alone."""
    first = np.searchsorted(owner, np.arange(owner[-1] + 1))
    place = np.arange(len(value)) - first[owner]
    runs = value.copy()
    for parity in (0, 1):
        chosen = np.flatnonzero((place % 2 == parity) & (place > 0))
        if len(chosen):
            summed = np.cumsum(value[chosen])
            begins = np.searchsorted(owner[chosen], owner[chosen])
            runs[chosen] = summed - (summed[begins] - value[chosen[begins]])
    return runs, owner


def _any_of(flags: NDArray[np.bool_], owner: NDArray[np.int64], count: int) -> NDArray[np.bool_]:
    return np.bincount(owner[flags], minlength=count) > 0


def _from_polygons(polygons: Polygons, height: int, width: int) -> Rle:
    limit = 4 * max(height, width)
    for index, polygon in enumerate(polygons):
        if len(polygon) < 6 or len(polygon) % 2:
            raise DataError(f"polygon {index} has {len(polygon)} numbers: an even count of 6 or more is needed")
        # The rasteriser walks along every edge: a far-away corner would cost unbounded time and memory.
        if not all(abs(number) <= limit for number in polygon):
            raise DataError(f"polygon {index} reaches more than {limit} pixels from the origin")
    if not polygons:
        raise DataError("segmentation has no polygon")
    merged = coco_mask.merge(coco_mask.frPyObjects(polygons, height, width))
    return Rle(counts=merged["counts"].decode("ascii"), size=(height, width))
