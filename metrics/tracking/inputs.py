"""Sequences of masks with identities, as they come: checked, and made ready for pycocotools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

RawSequence = Any  # a list of frames, each a dict from track id to a compressed COCO RLE dict or None
Frame = dict[str, dict[str, Any]]
"""Track id to COCO run lengths: `size` as [height, width], `counts` as bytes."""

_ADVICE = "give a COCO RLE dict with size and counts as pycocotools.mask.encode makes it"
_LONGEST_CODE = 7  # characters of a run: 35 bits, more than any frame has pixels


def checked(predictions: Any, references: Any) -> tuple[list[list[Frame] | None], list[list[Frame]]]:  # noqa: ANN401
    """Both columns. Raises TypeError unless they are lists of sequences, ValueError unless equally long."""
    for name, column in (("predictions", predictions), ("references", references)):
        _require_list(column, name, "one entry per sequence")
    if len(predictions) != len(references):
        raise ValueError(
            f"there are {len(predictions)} predictions for {len(references)} references; "
            "give one prediction per reference, None where there is no usable answer"
        )
    expected = [as_sequence(raw, f"references[{index}]") for index, raw in enumerate(references)]
    answers = [
        None if raw is None else as_prediction(raw, sequence, f"predictions[{index}]")
        for index, (raw, sequence) in enumerate(zip(predictions, expected, strict=True))
    ]
    return answers, expected


def as_sequence(raw: RawSequence, where: str) -> list[Frame]:
    """The frames of a sequence, without masks that are None or have no pixel: all masks are of one size.

    Raises TypeError or ValueError; the message starts with `where`.
    """
    _require_list(raw, where, "one dict of masks per frame")
    frames = [_as_frame(frame, f"{where}[{index}]") for index, frame in enumerate(raw)]
    sizes = sorted({tuple(mask["size"]) for frame in frames for mask in frame.values()})
    if len(sizes) > 1:
        raise ValueError(f"{where}: has masks of the sizes {sizes}; give masks of one size, [height, width]")
    return frames


def as_prediction(raw: RawSequence, reference: Sequence[Frame], where: str) -> list[Frame]:
    """The frames of a predicted sequence, which fit the reference's in number and size."""
    frames = as_sequence(raw, where)
    if len(frames) != len(reference):
        raise ValueError(f"{where}: has {len(frames)} frames, its reference {len(reference)}; give {{}} for no mask")
    size, true_size = (
        next((mask["size"] for frame in sequence for mask in frame.values()), None) for sequence in (frames, reference)
    )
    if size and true_size and size != true_size:
        raise ValueError(f"{where}: has masks of {size}, its reference of {true_size}; give masks of the same size")
    return frames


def _require_list(raw: object, where: str, of: str) -> None:
    if raw is None or isinstance(raw, str | bytes | Mapping) or not hasattr(raw, "__len__"):
        raise TypeError(f"{where}: is of type {type(raw).__name__}; give a list with {of}")


def _as_frame(raw: object, where: str) -> Frame:
    if not isinstance(raw, Mapping):
        raise TypeError(f"{where}: is of type {type(raw).__name__}; give a dict from track id to mask")
    if len(set(map(str, raw))) < len(raw):
        raise ValueError(f"{where}: has an id as number and as text, {sorted(map(str, raw))}; give one kind of ids")
    masks: Frame = {}
    for track, mask in raw.items():
        if mask is not None:
            area, encoded = _as_mask(mask, f"{where}[{track!r}]")
            if area:
                masks[str(track)] = encoded
    return masks


def _as_mask(raw: object, where: str) -> tuple[int, dict[str, Any]]:
    """How many pixels a mask has, and its encoding."""
    if not isinstance(raw, Mapping) or not {"size", "counts"} <= raw.keys():
        raise TypeError(f"{where}: is {raw!r:.60}; {_ADVICE}")
    size, counts = np.asarray(raw["size"]), raw["counts"]
    if size.shape != (2,) or size.dtype.kind not in "iu" or size.min() < 1:
        raise ValueError(f"{where}: size is {raw['size']!r}; give [height, width] in pixels")
    if not isinstance(counts, str | bytes):
        raise TypeError(f"{where}: counts is of type {type(counts).__name__}; {_ADVICE}")
    encoded = counts.encode("utf-8") if isinstance(counts, str) else counts
    height, width = size.tolist()
    runs = _runs(encoded)
    if runs is None or runs.min() < 0 or runs.sum() != height * width:
        raise ValueError(f"{where}: counts does not fill the {height} x {width} pixels of size; {_ADVICE}")
    return int(runs[1::2].sum()), {"size": [height, width], "counts": encoded}


def _runs(counts: bytes) -> NDArray[np.int64] | None:
    """The run lengths of a compressed string, background first; None where it is none.

    pycocotools trusts what it reads. The format: groups of five bits from 48 on, low ones first, bit 5 set where a run
    goes on, two's complement; from the fourth run on, the difference to the run two before.
    """
    symbols = np.frombuffer(counts, np.uint8).astype(np.int64) - 48
    if not symbols.size or symbols.min() < 0 or symbols.max() > 63 or symbols[-1] > 31:
        return None
    last = np.flatnonzero(symbols < 32)
    first = np.append(0, last[:-1] + 1)
    length = last - first + 1
    if length.max() > _LONGEST_CODE:
        return None
    runs = np.add.reduceat((symbols & 31) << 5 * (np.arange(symbols.size) - first.repeat(length)), first)
    runs -= (symbols[last] >> 4) << 5 * length
    runs[1::2].cumsum(out=runs[1::2])
    runs[2::2].cumsum(out=runs[2::2])
    return runs
