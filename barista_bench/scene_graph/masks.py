"""Handle masks of the release: COCO run-length encodings, checked before native code reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco_mask

from barista_bench.scene_graph.release import MALFORMED
from barista_bench.scene_graph.shapes import Rle as Rle, mask_of_polygons, mask_of_runs

LONGEST_RUN_CODE = 7
"""Maximum number of characters of a run. They have 35 bits, far more than the pixels of any frame need."""
_ARRAY_RUN_CODE = 6
"""Maximum number of characters of a run that fits arrays of 32 bits: 30 bits, including the sign."""
_MOST_PIXELS = 2**28
_PART_BYTES = 2**16


@dataclass(frozen=True)
class MaskTracks:
    """The masks of named objects over the frames of one video.

    Args:
        video_id: id of the video.
        width, height: size of the frames, in pixels.
        categories: category by object id.
        masks: masks by frame (from 0), then by object id. A frame in this mapping is annotated completely unless it is
        `incomplete`: any other object is absent on the frame.
        frame_count: number of frames of the video, if known.
        incomplete: frames of `masks` on which something was left out.
        left_out: number of records that could not be read, by reason.
    """

    video_id: str
    width: int
    height: int
    categories: Mapping[str, str]
    masks: Mapping[int, Mapping[str, Rle]] = field(default_factory=dict)
    frame_count: int | None = None
    incomplete: frozenset[int] = frozenset()
    left_out: Mapping[str, int] = field(default_factory=dict)


class _UncompressedRle(msgspec.Struct):
    counts: list[Annotated[int, msgspec.Meta(ge=0, le=_MOST_PIXELS)]]
    size: tuple[int, int]


Polygons = list[list[float]]
_SEGMENTATION = msgspec.json.Decoder(Rle | Polygons)
_UNCOMPRESSED = msgspec.json.Decoder(_UncompressedRle)


def parse_segmentations(raws: Sequence[bytes | msgspec.Raw], height: int, width: int) -> list[Rle | str]:
    """Return the checked encoding of each annotation's `segmentation` at the frame's size, or the error as a text.

    An encoding, compressed or not, must have the size (height, width) and runs that fill the frame. Polygons (flat
    lists `[x0, y0, x1, y1, ...]` in pixels) are rasterised, as the release's loader does.
    """
    parsed = [_parse_unchecked(raw, height, width) for raw in raws]
    encoded = [index for index, rle in enumerate(parsed) if isinstance(rle, Rle)]
    problems = run_problems([rle.counts for rle in parsed if isinstance(rle, Rle)], height * width)
    for index, problem in zip(encoded, problems, strict=True):
        if problem:
            parsed[index] = f"mask counts are not a run-length encoding: {problem}"
    return parsed


def _parse_unchecked(raw: bytes | msgspec.Raw, height: int, width: int) -> Rle | str:
    """Return an encoding of the frame's size with unchecked runs, or a description of the error."""
    try:
        segmentation = _SEGMENTATION.decode(raw)
    except MALFORMED as error:
        return _parse_uncompressed(
            raw, height, width, f"segmentation is neither run-length encoded nor polygons: {error}"
        )
    if isinstance(segmentation, list):
        return mask_of_polygons(segmentation, height, width)
    if segmentation.size != (height, width):
        return f"mask size {list(segmentation.size)} is not the frame's [{height}, {width}]"
    return segmentation


def _parse_uncompressed(raw: bytes | msgspec.Raw, height: int, width: int, otherwise: str) -> Rle | str:
    """Return the mask of numeric runs, as in YouTube-VIS and pycocotools' `decode`, or a description of the error."""
    try:
        segmentation = _UNCOMPRESSED.decode(raw)
    except MALFORMED:
        return otherwise
    if segmentation.size != (height, width):
        return f"mask size {list(segmentation.size)} is not the frame's [{height}, {width}]"
    return mask_of_runs(segmentation.counts, segmentation.size)


def decode_mask(rle: Rle) -> NDArray[np.bool_]:
    """Return a mask from `parse_segmentations`, which checks encodings, as (height, width) booleans."""
    height, width = rle.size
    data = rle.counts.encode("ascii")
    code = np.frombuffer(data, dtype=np.uint8) - np.uint8(48)
    value = _values(code, np.flatnonzero(code > 31))
    if value is None:  # a number that was written with more characters than needed
        return coco_mask.decode({"size": [height, width], "counts": data}).astype(bool)
    runs = _runs(value, np.zeros(1, np.int64))
    return np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape(width, height).T


def mask_boxes(counts: Sequence[str], height: int, width: int) -> NDArray[np.float64]:
    """Return the (n, 4) smallest boxes [x, y, width, height] around masks; zeros for empty masks.

    The `counts` must have passed `run_problems`. No pixel is drawn. An empty run inside a mask, which no encoder
    writes, counts as one pixel.
    """
    encoded = [{"size": [height, width], "counts": text.encode("ascii")} for text in counts]
    return np.asarray(coco_mask.toBbox(encoded), dtype=np.float64).reshape(-1, 4)


def mask_ious(rles: Sequence[Rle], others: Sequence[Rle]) -> NDArray[np.float64]:
    """Return the (n, m) intersections over union of n masks with m others of the same size; 0 for two empty masks."""
    if not rles or not others:
        return np.zeros((len(rles), len(others)))
    first, second = (
        [{"size": list(rle.size), "counts": rle.counts.encode("ascii")} for rle in masks] for masks in (rles, others)
    )
    return np.asarray(coco_mask.iou(first, second, [0] * len(second)), dtype=np.float64)


def encode_mask(mask: NDArray[np.bool_]) -> Rle:
    """Encode a mask. This is the inverse of `decode_mask`."""
    height, width = mask.shape
    start = [0, 0] if mask[0, 0] else [0]  # runs begin with background
    runs = np.diff(np.concatenate([start, _changes(mask), [height * width]]))
    encoded = coco_mask.frPyObjects({"size": [height, width], "counts": runs.tolist()}, height, width)
    return Rle(counts=encoded["counts"].decode("ascii"), size=(height, width))


def _changes(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the positions of pixels that differ from the previous pixel.

    Pixels are read column by column, without copying or transposing.
    """
    if mask.flags.f_contiguous:
        pixels = mask.T.ravel()
        return np.flatnonzero(pixels[1:] != pixels[:-1]) + 1
    height, width = mask.shape
    row, column = np.divmod(np.flatnonzero(mask[1:] != mask[:-1]), width)
    # Columns whose first pixel differs from the last pixel of the previous column.
    heads = np.flatnonzero(mask[0, 1:] != mask[-1, :-1]) + 1
    return np.sort(np.concatenate([column * height + row + 1, heads * height]))


def run_problems(counts: Sequence[str], pixels: int) -> list[str | None]:
    """Return the error of each compressed `counts` string, or None. The runs must be >= 0 and sum to `pixels`.

    pycocotools trusts its input: a wrong sum reads or writes past its buffer. Decoding every mask of a release takes
    hours, so the sums of many strings are computed at once, without drawing a pixel. In the code, each run is written
    in characters of 5 bits, low bits first, with 48 added. Bit 5 is set on all characters of a run except the last, and
    bit 4 of the last character is the sign. From the fourth run on, the run two places back is subtracted.

    Array operations over many strings accept valid strings. Every other string is then read separately to describe its
    error.
    """
    problems: list[str | None] = [None] * len(counts)
    usable: Sequence[int] = range(len(counts))
    lengths = np.fromiter(map(len, counts), np.int64, len(counts))
    if not lengths.all() or not "".join(counts).isascii():
        usable = [index for index, text in enumerate(counts) if text and text.isascii()]
        lengths = lengths[usable]
        for index in set(range(len(counts))).difference(usable):
            problems[index] = "empty, or not ASCII"
    data = "".join(counts[index] for index in usable).encode("ascii")
    edges = np.concatenate(([0], np.cumsum(lengths))).tolist()
    for part in _slices(lengths):
        are_sound = _are_surely_sound(data[edges[part.start] : edges[part.stop]], lengths[part], pixels)
        for position in (part.start + np.flatnonzero(~are_sound)).tolist():
            problems[usable[position]] = _run_problem(counts[usable[position]], pixels)
    return problems


def _run_problem(counts: str, pixels: int) -> str | None:
    """Return the error of one ASCII string, which is read run by run."""
    codes = [ord(character) - 48 for character in counts]
    if min(codes) < 0 or max(codes) > 63:
        return "characters outside the code"
    if codes[-1] & 32:
        return "the last run is cut off"
    runs: list[int] = []
    value = bits = 0
    for code in codes:
        value |= (code & 31) << bits
        bits += 5
        if bits > 5 * LONGEST_RUN_CODE:
            return "a run is too long"
        if not code & 32:
            value -= (code >> 4) << bits  # the sign
            runs.append(value + (runs[-2] if len(runs) > 2 else 0))
            value = bits = 0
    if min(runs) < 0:
        return "a run is negative"
    return None if sum(runs) == pixels else f"runs cover {sum(runs)} of {pixels} pixels"


def _slices(lengths: NDArray[np.int64]) -> Iterator[slice]:
    """Yield slices with about `_PART_BYTES` of strings each, so that their arrays fit the processor's cache."""
    part_of = np.cumsum(lengths) // _PART_BYTES
    cuts = np.flatnonzero(np.diff(part_of)) + 1
    edges = [0, *cuts.tolist(), len(lengths)]
    for start, stop in pairwise(edges):
        if start < stop:
            yield slice(start, stop)


def _are_surely_sound(data: bytes, lengths: NDArray[np.int64], pixels: int) -> NDArray[np.bool_]:
    """Return, for each of the joined strings, whether it is certainly valid. Other strings may be valid or invalid.

    Numbers have at most 32 bits. Sums over the runs before a run may wrap around, yet no wrong string passes. As long
    as all runs so far are within 0..pixels, the next run differs by less than 2^29 and cannot wrap.
    """
    code = np.frombuffer(data, dtype=np.uint8) - np.uint8(48)
    ends = np.cumsum(lengths)
    # This covers any character outside the code, and any string whose last run does not end.
    if pixels > _MOST_PIXELS or code.max() > 63 or (code[ends - 1] > 31).any():
        return np.zeros(len(lengths), dtype=bool)
    ongoing = np.flatnonzero(code > 31)
    value = _values(code, ongoing)
    if value is None:
        return np.zeros(len(lengths), dtype=bool)
    begin = ends - lengths
    first = begin - np.searchsorted(ongoing, begin)
    runs = _runs(value, first)
    are_sound: NDArray[np.bool_] = np.add.reduceat(runs, first, dtype=np.int64) == pixels
    size = runs.view(np.uint32)  # as an unsigned number, a negative run is huge
    if size.max() > pixels:
        are_sound &= np.maximum.reduceat(size, first) <= pixels
    return are_sound


def _values(code: NDArray[np.uint8], ongoing: NDArray[np.int64]) -> NDArray[np.int32] | None:
    """Return the numbers as written, or None if a number has more than 6 characters.

    `ongoing` has the positions of characters that do not end a number.
    """
    low = code & np.uint8(31)
    sign = np.uint8(16)
    ending = (low[code < 32] ^ sign) - sign
    value = ending.view(np.int8).astype(np.int32)
    if not len(ongoing):
        return value
    # Few numbers have more than one character. Before the character at `ongoing[i]`, `ongoing[i] - i` numbers have
    # ended.
    digit = np.arange(len(ongoing), dtype=np.int32)
    number = ongoing - digit
    heads = np.concatenate(([0], np.flatnonzero(number[1:] != number[:-1]) + 1))
    extra = np.diff(heads, append=len(ongoing))
    if extra.max() >= _ARRAY_RUN_CODE:
        return None
    digit -= np.repeat(heads.astype(np.int32), extra)
    further_digits = np.add.reduceat(low[ongoing].astype(np.int32) << (5 * digit), heads)
    long = number[heads]
    value[long] = (value[long] << (5 * extra).astype(np.int32)) + further_digits
    return value


def _runs(value: NDArray[np.int32], first: NDArray[np.int64]) -> NDArray[np.int32]:
    """Undo the differences. From the second run of a string on, a run is the sum of every other value up to the run.

    The first run of a string is not part of any sum. Sums run over all strings, and the sum before each string is
    subtracted.
    """
    runs = np.empty_like(value)
    for parity in (0, 1):
        summed = np.add.accumulate(np.ascontiguousarray(value[parity::2]))
        if not len(summed):
            continue
        begin = (first + 1 - parity) // 2
        before = begin + (first % 2 == parity)  # the sums of a string start after the string's first run
        base = np.where(before > 0, summed[before - 1], np.int32(0))
        runs[parity::2] = summed - np.repeat(base, np.diff(begin, append=len(summed)))
    runs[first] = value[first]
    return runs
