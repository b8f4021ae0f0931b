"""Answers that are masks: `{"masks": [{"frame": 3, "rle": {"size": [height, width], "counts": "..."}}, ...]}`.

`frame` counts the images that were shown, from 0; `rle` is a compressed COCO run-length encoding. Masks of one frame
are united; frames that nobody asked for are passed over. A mask has the size of the annotated frames, or that of the
image shown where it was scaled down; one of any other size, or with damaged run lengths, is dropped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import NamedTuple, cast

from barista_bench.benchmarks.handyvqa.masks import MAX_COUNTS, Size, damage, empty_mask, resized, union
from barista_bench.benchmarks.parsing import integer, json_arrays, unfenced
from barista_bench.core.task import Fields, Json, ParseError, Prediction
from barista_bench.scene_graph import Rle

MAX_MASKS = 4096
"""Entries of one answer that are read."""


class FrameMask(NamedTuple):
    """The mask of one frame; `frame` is a place among the example's frames."""

    frame: int
    mask: Rle


def parse_masks(
    text: str, places: Sequence[int], wanted: Collection[int], sizes: Sequence[Size]
) -> Prediction | ParseError:
    """The masks of the last list of masks in an answer, as a `Prediction` that `masks_of` reads.

    Args:
        places: for each image shown, the place of its frame among the example's.
        wanted: places that are annotated; other masks are passed over.
        sizes: that masks may have; they are brought to the first.
    """
    found = None
    for array in json_arrays(unfenced(text)):
        is_masks = all(isinstance(entry, dict) and "rle" in entry for entry in array)
        if is_masks and (array or found is None):  # an empty list is an answer, but no other list's end
            found = cast("list[dict[str, object]]", array)
    if found is None:
        return ParseError('no list "masks" of frames and run lengths')
    masks: dict[int, list[Rle]] = defaultdict(list)
    dropped = max(0, len(found) - MAX_MASKS)
    for entry in found[:MAX_MASKS]:
        image = integer(entry.get("frame"))
        mask = _mask(entry["rle"], sizes)
        if image is None or not 0 <= image < len(places) or mask is None:
            dropped += 1
        elif places[image] in wanted:
            masks[places[image]].append(resized(mask, sizes[0]))
    united = [FrameMask(frame, union([m.counts for m in parts], sizes[0])) for frame, parts in sorted(masks.items())]
    return Prediction({"masks": written_masks(united)}, dropped)


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


def written_masks(masks: Sequence[FrameMask]) -> Json:
    """Masks as JSON, as answers and targets hold them."""
    return [{"frame": frame, "rle": {"size": list(mask.size), "counts": mask.counts}} for frame, mask in masks]


def masks_of(fields: Fields) -> list[FrameMask]:
    """The masks of a target, or of a parsed answer: the inverse of `written_masks`."""
    found = []
    for entry in cast("Sequence[dict[str, Json]]", fields["masks"]):
        rle = cast("dict[str, Json]", entry["rle"])
        height, width = cast("Sequence[int]", rle["size"])
        mask = Rle(counts=str(rle["counts"]), size=(int(height), int(width)))
        found.append(FrameMask(int(cast("int", entry["frame"])), mask))
    return found


def mask_on(masks: Sequence[FrameMask], frame: int, size: Size) -> Rle:
    """The mask of a frame; the empty one where there is none."""
    return next((mask for place, mask in masks if place == frame), None) or empty_mask(size)


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
