"""Handle masks of questions and answers: check COCO run lengths before pycocotools reads them, and unite, resize and
score masks.

Answers are `{"masks": [{"frame": 3, "rle": {"size": [height, width], "counts": "..."}}, ...]}`. `frame` counts the
shown images, from 0. `rle` is a compressed COCO run-length encoding. Masks of one frame are united, and frames that
were not requested are ignored. A mask has the size of the annotated frames, or the size of the shown image if that
image was scaled down. A mask of any other size, or with damaged run lengths, is dropped.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple, cast

import numpy as np
from PIL import Image
from pycocotools import mask as coco_mask

from barista_bench.benchmarks.kinds.box_answers import CENTRE_FRACTIONS
from barista_bench.benchmarks.parsing import NOTHING_READ, integer, last_array, strip_fence
from barista_bench.core.display import Explanation, RowKind
from barista_bench.core.example import Fields, ParseError, Prediction, TypedFields
from barista_bench.core.prompt import object_schema
from barista_bench.metrics.region_boundary.scoring import boundary_f, region_j
from barista_bench.scene_graph import Rle, decode_mask, encode_mask
from barista_bench.scene_graph.masks import mask_boxes, run_problems
from barista_bench.scene_graph.shapes import mask_of_runs

Size = tuple[int, int]
"""(height, width) in pixels, as in COCO's run lengths."""

MAX_PIXELS = 2**28
"""Maximum number of pixels of a mask: the size of the largest frame of a release."""
MAX_COUNTS = 2**20
"""Maximum number of characters of one mask in an answer: outlines at 1080p take some thousands."""
FOUND_J = 0.5
"""In explanations, a frame with a higher J counts as found. DAVIS' recall has the same bound."""


class MaskScore(NamedTuple):
    """Region similarity and contour accuracy of one frame, 0 to 1."""

    j: float
    f: float


def mask_fault(counts: Sequence[str], size: Size) -> str | None:
    """Return the fault of the first compressed run lengths that do not fill `size`; None if all run lengths are
    valid.
    """
    return next((problem for problem in run_problems(counts, size[0] * size[1]) if problem), None)


def unite_masks(counts: Sequence[str], size: Size) -> Rle:
    """Return the union of several valid masks; for no masks, the empty mask."""
    if not counts:
        return empty_mask(size)
    if len(counts) == 1:
        return Rle(counts=counts[0], size=size)
    merged = coco_mask.merge([{"size": list(size), "counts": text.encode("ascii")} for text in counts])
    return Rle(counts=merged["counts"].decode("ascii"), size=size)


def empty_mask(size: Size) -> Rle:
    """Return the mask without foreground, as one run of background."""
    encoding = coco_mask.frPyObjects({"size": list(size), "counts": [size[0] * size[1]]}, *size)
    return Rle(counts=encoding["counts"].decode("ascii"), size=size)


def box_mask(box: Sequence[float], size: Size) -> Rle:
    """Return the mask of all pixels whose corner lies in [x0, y0, x1, y1]. The far edges are exclusive."""
    mask = np.zeros(size, dtype=bool)
    x0, y0, x1, y1 = (max(0, round(number)) for number in box)
    mask[y0:y1, x0:x1] = True
    return encode_mask(mask)


def fraction_box_mask(box: Sequence[float], size: Size) -> Rle:
    """Return the mask of a box [x0, y0, x1, y1], which is given in fractions of the frame."""
    (height, width), (x0, y0, x1, y1) = size, box
    return box_mask((x0 * width, y0 * height, x1 * width, y1 * height), size)


def random_box_mask(rng: random.Random, size: Size) -> Rle:
    """Return the mask of a random rectangle."""
    xs, ys = (sorted(rng.uniform(0, side) for _ in range(2)) for side in reversed(size))
    return box_mask((xs[0], ys[0], xs[1], ys[1]), size)


def usual_box(masks: Iterable[Rle]) -> Sequence[float]:
    """Return the median of the tight boxes of masks, in fractions of the frame; for no masks, the centre box."""
    tight_boxes = [(box, mask.size) for mask in masks if (box := mask_bounds(mask))]
    relative = [(x0 / width, y0 / height, x1 / width, y1 / height) for (x0, y0, x1, y1), (height, width) in tight_boxes]
    return np.median(relative, axis=0).tolist() if relative else CENTRE_FRACTIONS


def mask_bounds(rle: Rle) -> tuple[float, float, float, float] | None:
    """Return the tight box [x0, y0, x1, y1] of a valid mask; None if the mask is empty. The far edges are exclusive."""
    x, y, width, height = mask_boxes([rle.counts], *rle.size)[0].tolist()
    return (x, y, x + width, y + height) if width and height else None


def resize_mask(rle: Rle, size: Size) -> Rle:
    """Return a valid mask at another size; each pixel has the value of the nearest old pixel."""
    if rle.size == size:
        return rle
    image = Image.fromarray(decode_mask(rle)).resize((size[1], size[0]), Image.Resampling.NEAREST)
    return encode_mask(np.asarray(image, dtype=bool))


def reduced_size(width: int, height: int, max_side: int | None) -> tuple[int, int]:
    """Return (width, height) scaled down until the longer side is `max_side` pixels. Sizes are never scaled up.

    >>> reduced_size(1920, 1080, 480), reduced_size(320, 240, 480)
    ((480, 270), (320, 240))
    """
    longer = max(width, height)
    if max_side is None or longer <= max_side:
        return width, height
    return max(1, round(width * max_side / longer)), max(1, round(height * max_side / longer))


@lru_cache(maxsize=2**14)
def score_frame(predicted: str, true: str, size: Size) -> MaskScore:
    """Return J and F (DAVIS) of two valid masks of one size.

    Results are cached, since tables score the same masks many times.
    """
    pair = tuple({"size": list(size), "counts": counts} for counts in (predicted, true))
    return MaskScore(region_j(*pair), boundary_f(*pair))


def explain_masks(scores: Iterable[tuple[str, MaskScore, bool]]) -> Explanation:
    """Return one row for each requested mask. A mask is a hit if its J is above 0.5.

    Args:
        scores: the name, J and F, and whether the answer has a mask, for each requested mask.
    """
    rows: dict[RowKind, list[str]] = {"hit": [], "miss": [], "wrong": []}
    for name, score, has_mask in scores:
        kind: RowKind = "hit" if score.j > FOUND_J else "wrong" if has_mask else "miss"
        note = " (no mask)" if kind == "miss" else ""
        rows[kind].append(f"{name}: J {score.j:.2f}, F {score.f:.2f}{note}")
    return Explanation.of(*rows.values())


MAX_MASKS = 4096
"""Maximum number of entries of one answer that are read."""


class FrameMask(NamedTuple):
    """The mask of one frame. `frame` is an index among the example's frames."""

    frame: int
    mask: Rle


class RunLengthFields(TypedFields):
    """Compressed COCO run lengths. `size` is [height, width] in pixels.

    Run lengths are checked after reading, since a dataset may come from anywhere and pycocotools trusts its input.
    """

    size: list[int]
    counts: str

    def __post_init__(self) -> None:
        if len(self.size) != 2 or min(self.size) < 1 or self.size[0] * self.size[1] > MAX_PIXELS:
            raise ValueError(f"size is {self.size!r:.80}, no [height, width] of up to {MAX_PIXELS} pixels")
        if problem := mask_fault([self.counts], (self.size[0], self.size[1])):
            raise ValueError(f"counts are no run lengths of {self.size}: {problem}")

    @classmethod
    def of(cls, mask: Rle) -> RunLengthFields:
        return cls(list(mask.size), mask.counts)

    @property
    def mask(self) -> Rle:
        return Rle(counts=self.counts, size=(self.size[0], self.size[1]))


class MaskFields(TypedFields):
    """A `FrameMask` in the form of answers and targets."""

    frame: int
    rle: RunLengthFields

    @classmethod
    def of(cls, frame: int, mask: Rle) -> MaskFields:
        return cls(frame, RunLengthFields.of(mask))


class MaskAnswer(TypedFields):
    """A parsed answer with one mask per frame."""

    masks: list[MaskFields]


def parse_masks(
    text: str, image_frames: Sequence[int], annotated_frames: Collection[int], sizes: Sequence[Size]
) -> Prediction | ParseError:
    """Return the masks of the last list of masks in an answer, as a `Prediction` for `answered_masks`.

    Args:
        image_frames: the index, among the example's frames, of the frame of each shown image.
        annotated_frames: indices of the annotated frames; other masks are ignored.
        sizes: allowed sizes of masks. All masks are resized to the first size.
    """
    entries = mask_entries(strip_fence(text))
    if entries is None:
        return NO_MASKS
    masks: dict[int, list[Rle]] = defaultdict(list)
    dropped = max(0, len(entries) - MAX_MASKS)
    for entry in entries[:MAX_MASKS]:
        image = integer(entry.get("frame"))
        mask = sound_mask(entry["rle"], sizes)
        if image is None or not 0 <= image < len(image_frames) or mask is None:
            dropped += 1
        elif image_frames[image] in annotated_frames:
            masks[image_frames[image]].append(resize_mask(mask, sizes[0]))
    if entries and dropped == len(entries):
        return NOTHING_READ
    answer = MaskAnswer(
        [
            MaskFields.of(frame, unite_masks([m.counts for m in parts], sizes[0]))
            for frame, parts in sorted(masks.items())
        ]
    )
    return Prediction(answer.write(), dropped)


NO_MASKS = ParseError('no list "masks" of frames and run lengths')


def mask_entries(text: str) -> list[dict[str, object]] | None:
    """Return the last list of objects with an `rle` in an answer; None if the answer has no such list."""
    entries = last_array(text, lambda array: all(isinstance(entry, dict) and "rle" in entry for entry in array))
    return cast("list[dict[str, object]] | None", entries)


def sound_mask(rle: object, sizes: Sequence[Size]) -> Rle | None:
    """Return the mask if it is valid and has one of the sizes; None for any other value."""
    if not isinstance(rle, dict) or not isinstance(rle.get("size"), list) or len(rle["size"]) != 2:
        return None
    counts, (height, width) = rle.get("counts"), (integer(side) for side in rle["size"])
    if height is None or width is None or (height, width) not in sizes:
        return None
    if isinstance(counts, list) and len(counts) <= MAX_COUNTS and all(type(run) is int for run in counts):
        mask = mask_of_runs(counts, (height, width))
        return mask if isinstance(mask, Rle) else None
    if not isinstance(counts, str) or len(counts) > MAX_COUNTS or mask_fault([counts], (height, width)):
        return None
    return Rle(counts=counts, size=(height, width))


def write_masks(masks: Sequence[FrameMask]) -> str:
    """Write an answer with these masks; `frame` counts the shown images."""
    return json.dumps(MaskAnswer([MaskFields.of(*mask) for mask in masks]).write())


def frame_masks(fields: Sequence[MaskFields]) -> list[FrameMask]:
    """Return the masks of a target, or of a parsed answer."""
    return [FrameMask(entry.frame, entry.rle.mask) for entry in fields]


def answered_masks(prediction: Prediction | None) -> list[FrameMask]:
    """Return the masks of a parsed answer; empty for an unreadable answer."""
    return [] if prediction is None else frame_masks(MaskAnswer.read(prediction.value).masks)


def mask_of_frame(masks: Sequence[FrameMask], frame: int, size: Size) -> Rle:
    """Return the mask of a frame; the empty mask if the frame has no mask."""
    return next((mask for index, mask in masks if index == frame), None) or empty_mask(size)


def masks_schema(images: int) -> Fields:
    """Return the JSON Schema of an answer about a number of images."""
    size: Fields = {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 2, "maxItems": 2}
    rle = object_schema({"size": size, "counts": {"type": "string", "minLength": 1}})
    frame: Fields = {"type": "integer", "minimum": 0, "maximum": images - 1}
    return object_schema({"masks": {"type": "array", "items": object_schema({"frame": frame, "rle": rle})}})
