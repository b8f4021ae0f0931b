"""Answers that are masks: `{"masks": [{"frame": 3, "rle": {"size": [height, width], "counts": "..."}}, ...]}`.

`frame` counts the images that were shown, from 0; `rle` is a compressed COCO run-length encoding. Masks of one frame
are united; frames that nobody asked for are passed over. A mask has the size of the annotated frames, or that of the
image shown where it was scaled down; one of any other size, or with damaged run lengths, is dropped.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import NamedTuple, cast

from barista_bench.benchmarks.handyvqa.masks import MAX_COUNTS, Size, damage, empty_mask, resized, union
from barista_bench.benchmarks.parsing import integer, json_arrays, unfenced
from barista_bench.core.example import TypedFields
from barista_bench.core.task import Fields, Json, ParseError, Prediction
from barista_bench.scene_graph import Rle

MAX_MASKS = 4096
"""Entries of one answer that are read."""


class FrameMask(NamedTuple):
    """The mask of one frame; `frame` is an index among the example's frames."""

    frame: int
    mask: Rle


class RunLengthFields(TypedFields):
    """Compressed COCO run lengths; `size` is [height, width] in pixels."""

    size: list[int]
    counts: str


class MaskFields(TypedFields):
    """A `FrameMask` as answers and targets hold it."""

    frame: int
    rle: RunLengthFields

    @classmethod
    def of(cls, frame: int, mask: Rle) -> MaskFields:
        return cls(frame, RunLengthFields(list(mask.size), mask.counts))


class MaskAnswer(TypedFields):
    """A parsed answer, one mask a frame."""

    masks: list[MaskFields]


def parse_masks(
    text: str, shown: Sequence[int], annotated: Collection[int], sizes: Sequence[Size]
) -> Prediction | ParseError:
    """The masks of the last list of masks in an answer, as a `Prediction` that `masks_of` reads.

    Args:
        shown: for each image shown, the index of its frame among the example's.
        annotated: indices of the annotated frames; other masks are passed over.
        sizes: that masks may have; they are brought to the first.
    """
    entries = None
    for array in json_arrays(unfenced(text)):
        is_masks = all(isinstance(entry, dict) and "rle" in entry for entry in array)
        if is_masks and (array or entries is None):  # an empty list is an answer, but no other list's end
            entries = cast("list[dict[str, object]]", array)
    if entries is None:
        return ParseError('no list "masks" of frames and run lengths')
    masks: dict[int, list[Rle]] = defaultdict(list)
    dropped = max(0, len(entries) - MAX_MASKS)
    for entry in entries[:MAX_MASKS]:
        image = integer(entry.get("frame"))
        mask = _mask(entry["rle"], sizes)
        if image is None or not 0 <= image < len(shown) or mask is None:
            dropped += 1
        elif shown[image] in annotated:
            masks[shown[image]].append(resized(mask, sizes[0]))
    answer = MaskAnswer(
        [MaskFields.of(frame, union([m.counts for m in parts], sizes[0])) for frame, parts in sorted(masks.items())]
    )
    return Prediction(answer.write(), dropped)


def _mask(rle: object, sizes: Sequence[Size]) -> Rle | None:
    """A sound mask of one of the sizes; None for anything else."""
    if not isinstance(rle, dict) or not isinstance(rle.get("size"), list) or len(rle["size"]) != 2:
        return None
    counts, (height, width) = rle.get("counts"), (integer(side) for side in rle["size"])
    if height is None or width is None or (height, width) not in sizes:
        return None
    if not isinstance(counts, str) or len(counts) > MAX_COUNTS or damage([counts], (height, width)):
        return None
    return Rle(counts=counts, size=(height, width))


def write_masks(masks: Sequence[FrameMask]) -> str:
    """An answer with these masks; `frame` counts the images shown."""
    return json.dumps(MaskAnswer([MaskFields.of(*mask) for mask in masks]).write())


def frame_masks(fields: Sequence[MaskFields]) -> list[FrameMask]:
    """The masks of a target, or of a parsed answer."""
    return [
        FrameMask(entry.frame, Rle(counts=entry.rle.counts, size=(entry.rle.size[0], entry.rle.size[1])))
        for entry in fields
    ]


def answered_masks(prediction: Prediction | None) -> list[FrameMask]:
    """The masks of a parsed answer; none of one that cannot be read."""
    return [] if prediction is None else frame_masks(MaskAnswer.read(prediction.value).masks)


def mask_on(masks: Sequence[FrameMask], frame: int, size: Size) -> Rle:
    """The mask of a frame; the empty one where there is none."""
    return next((mask for index, mask in masks if index == frame), None) or empty_mask(size)


def masks_schema(images: int) -> Fields:
    """JSON Schema of an answer about that many images."""
    side: Json = {"type": "integer", "minimum": 1}
    rle: Json = {
        "type": "object",
        "properties": {
            "size": {"type": "array", "items": side, "minItems": 2, "maxItems": 2},
            "counts": {"type": "string", "minLength": 1},
        },
        "required": ["size", "counts"],
        "additionalProperties": False,
    }
    entry: Json = {
        "type": "object",
        "properties": {"frame": {"type": "integer", "minimum": 0, "maximum": images - 1}, "rle": rle},
        "required": ["frame", "rle"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"masks": {"type": "array", "items": entry}},
        "required": ["masks"],
        "additionalProperties": False,
    }
