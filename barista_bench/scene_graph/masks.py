"""Masks of the release: COCO run-length encodings, checked before any native code reads them, decoded on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco_mask

from barista_bench.errors import DataError
from barista_bench.scene_graph.release import MALFORMED

LONGEST_RUN_CODE = 7
"""Characters a run may take: 35 bits, far more than any frame has pixels."""
_QUICK_RUN_CODE = 6
"""Characters of a run that the quick look reads: 30 bits with their sign."""
_MOST_PIXELS = 2**28
_PART_BYTES = 2**16


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
    (found,) = parse_segmentations([raw], height, width)
    if isinstance(found, DataError):
        raise found
    return found


def parse_segmentations(raws: Sequence[bytes | msgspec.Raw], height: int, width: int) -> list[Rle | DataError]:
    """As `parse_segmentation`, of many at once: what it would return or raise for each."""
    found = [_unchecked(raw, height, width) for raw in raws]
    doubtful = [place for place, rle in enumerate(found) if isinstance(rle, Rle)]
    problems = run_problems([rle.counts for rle in found if isinstance(rle, Rle)], height * width)
    for place, problem in zip(doubtful, problems, strict=True):
        if problem:
            found[place] = DataError(f"mask counts are not a run-length encoding: {problem}")
    return found


def _unchecked(raw: bytes | msgspec.Raw, height: int, width: int) -> Rle | DataError:
    """An encoding of the frame's size whose runs are still to be checked."""
    try:
        parsed = msgspec.json.decode(raw, type=Rle | Polygons)
        if isinstance(parsed, list):
            return _from_polygons(parsed, height, width)
    except MALFORMED as error:
        return DataError(f"segmentation is neither run-length encoded nor polygons: {error}")
    except DataError as error:
        return error
    if parsed.size != (height, width):
        return DataError(f"mask size {list(parsed.size)} is not the frame's [{height}, {width}]")
    return parsed


def decode_mask(rle: Rle) -> NDArray[np.bool_]:
    """The mask as (height, width) booleans. `rle` must come from `parse_segmentation`, which checked it."""
    counts = rle.counts.encode("ascii")
    return coco_mask.decode({"size": list(rle.size), "counts": counts}).astype(bool)


def mask_boxes(counts: Sequence[str], height: int, width: int) -> NDArray[np.float64]:
    """Smallest boxes [x, y, width, height] around the pixels of masks, (n, 4); zeros around none.

    `run_problems` must have passed the `counts`. No pixel is drawn. A run of no pixels, which no encoder writes inside
    of a mask, counts as one.
    """
    encoded = [{"size": [height, width], "counts": text.encode("ascii")} for text in counts]
    return np.asarray(coco_mask.toBbox(encoded), dtype=np.float64).reshape(-1, 4)


def encode_mask(mask: NDArray[np.bool_]) -> Rle:
    """The inverse of `decode_mask`."""
    encoded = coco_mask.encode(np.asfortranarray(mask, dtype=np.uint8))
    return Rle(counts=encoded["counts"].decode("ascii"), size=(mask.shape[0], mask.shape[1]))


def run_problems(counts: Sequence[str], pixels: int) -> list[str | None]:
    """For each compressed `counts` string what is wrong with it, or None: its runs must be >= 0 and sum to `pixels`.

    pycocotools trusts its input (a wrong sum reads or writes past its buffer), and decoding every mask of a release
    takes hours, so the sums of many strings are computed at once, without drawing a pixel. The code: each run is
    written in characters of 5 bits, low bits first, 48 added, bit 5 set on all but its last character, bit 4 of the
    last one the sign; from the fourth run on, the run two places back is subtracted.

    A quick look that only says yes or no passes healthy strings; what it does not pass is taken apart with care.
    """
    problems: list[str | None] = [None] * len(counts)
    usable: Sequence[int] = range(len(counts))
    lengths = np.fromiter(map(len, counts), np.int64, len(counts))
    if not lengths.all() or not "".join(counts).isascii():
        usable = [index for index, text in enumerate(counts) if text and text.isascii()]
        lengths = lengths[usable]
        for index in set(range(len(counts))).difference(usable):
            problems[index] = "empty, or not ASCII"
    texts = [counts[index] for index in usable]
    data = "".join(texts).encode("ascii")
    edges = np.concatenate(([0], np.cumsum(lengths))).tolist()
    for part in _parts(lengths):
        sound = _sound(data[edges[part.start] : edges[part.stop]], lengths[part], pixels)
        doubtful = (part.start + np.flatnonzero(~sound)).tolist()
        if doubtful:
            found = _check_runs([texts[place].encode("ascii") for place in doubtful], pixels)
            for place, problem in zip(doubtful, found, strict=True):
                problems[usable[place]] = problem
    return problems


def _parts(lengths: NDArray[np.int64]) -> Iterator[slice]:
    """Stretches of strings of about `_PART_BYTES` in all, so that the arrays of one stay in the processor's cache."""
    part_of = np.cumsum(lengths) // _PART_BYTES
    cuts = np.flatnonzero(np.diff(part_of)) + 1
    edges = [0, *cuts.tolist(), len(lengths)]
    for start, stop in pairwise(edges):
        if start < stop:
            yield slice(start, stop)


def _sound(data: bytes, lengths: NDArray[np.int64], pixels: int) -> NDArray[np.bool_]:
    """Whether each of the joined strings is surely right. False means: look closer, not: wrong.

    Works on 32 bits at most. Sums over a run's predecessors may wrap around, yet none is passed by mistake: as long as
    all runs so far are within 0..pixels, the next one, which differs by less than 2^29, cannot wrap.
    """
    code = np.frombuffer(data, dtype=np.uint8) - np.uint8(48)
    ends = np.cumsum(lengths)
    # Any character outside the code, or a string whose last run does not end.
    if pixels > _MOST_PIXELS or code.max() > 63 or (code[ends - 1] > 31).any():
        return np.zeros(len(lengths), dtype=bool)
    ongoing = np.flatnonzero(code > 31)
    value = _values(code, ongoing)
    if value is None:
        return np.zeros(len(lengths), dtype=bool)
    begin = ends - lengths
    first = begin - np.searchsorted(ongoing, begin)
    runs = _runs(value, first)
    sound: NDArray[np.bool_] = np.add.reduceat(runs, first, dtype=np.int64) == pixels
    size = runs.view(np.uint32)  # a negative run is a huge one
    if size.max() > pixels:
        sound &= np.maximum.reduceat(size, first) <= pixels
    return sound


def _values(code: NDArray[np.uint8], ongoing: NDArray[np.int64]) -> NDArray[np.int32] | None:
    """The numbers as written, or None where one takes more than 6 characters. `ongoing`: places that do not end one."""
    low = code & np.uint8(31)
    sign = np.uint8(16)
    ending = (low[code < 32] ^ sign) - sign
    value = ending.view(np.int8).astype(np.int32)
    if not len(ongoing):
        return value
    # Few numbers are longer than one character. Before the character at `ongoing[i]`, `ongoing[i] - i` numbers ended.
    place = np.arange(len(ongoing), dtype=np.int32)
    number = ongoing - place
    heads = np.concatenate(([0], np.flatnonzero(number[1:] != number[:-1]) + 1))
    extra = _gaps(heads, len(ongoing))
    if extra.max() >= _QUICK_RUN_CODE:
        return None
    place -= np.repeat(heads.astype(np.int32), extra)
    parts = np.add.reduceat(low[ongoing].astype(np.int32) << (5 * place), heads)
    long = number[heads]
    value[long] = (value[long] << (5 * extra).astype(np.int32)) + parts
    return value


def _runs(value: NDArray[np.int32], first: NDArray[np.int64]) -> NDArray[np.int32]:
    """Undo the differences: from its second run on, a string's run is the sum over every other value up to it.

    The first run of a string stands alone. Sums run on over all strings, and what came before a string is subtracted.
    """
    runs = np.empty_like(value)
    for parity in (0, 1):
        summed = np.add.accumulate(np.ascontiguousarray(value[parity::2]))
        if not len(summed):
            continue
        begin = (first + 1 - parity) // 2
        before = begin + (first % 2 == parity)  # sums of a string start after its first run
        base = np.where(before > 0, summed[before - 1], np.int32(0))
        runs[parity::2] = summed - np.repeat(base, _gaps(begin, len(summed)))
    runs[first] = value[first]
    return runs


def _gaps(edges: NDArray[np.int64], end: int) -> NDArray[np.int64]:
    gaps = np.empty_like(edges)
    np.subtract(edges[1:], edges[:-1], out=gaps[:-1])
    gaps[-1] = end - edges[-1]
    return gaps


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
