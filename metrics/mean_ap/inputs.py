"""What the metric accepts for an image, checked and brought into flat arrays over all images.

A box is (x0, y0, x1, y1) in pixels: x to the right, y down, x1 - x0 wide (no + 1). A box without extent, or with its
corners swapped, is allowed: it overlaps nothing. A mask is a COCO run-length encoding {"size": [height, width],
"counts": ...}. Needs numpy; masks need pycocotools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from numbers import Integral
from typing import Any, Literal

import numpy as np

from .values import Bools, Floats, Ints, as_numbers, as_rle, shortened

IouType = Literal["bbox", "segm"]
RawImage = Mapping[str, Any]

FIELDS = ("boxes", "masks", "scores", "labels")
UNLABELLED = "object"


@dataclass(frozen=True, slots=True)
class ImageInstances:
    """The boxes or masks of one side (predictions or references), over all images, in the order given.

    * `image`, `label`: (n,) the number of the image, and the position of the label in `Examples.labels`.
    * `boxes`: (n, 4) pixels, x0, y0, x1, y1. With masks: zeros.
    * `scores`: (n,) confidences; all 1 where none are given, and for references.
    * `masks`: n run-length encodings, or None for boxes.
    """

    image: Ints
    label: Ints
    boxes: Floats
    scores: Floats
    masks: list[dict[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class Examples:
    """All images: both sides, the names of the labels, and which images have no usable answer, (n_images,) bool."""

    predicted: ImageInstances
    reference: ImageInstances
    labels: list[str]
    failed: Bools


def read_examples(
    predictions: Sequence[RawImage | None], references: Sequence[RawImage], iou_type: IouType = "bbox"
) -> Examples:
    """Check and flatten all images. Raises TypeError or ValueError naming the image, the field and the remedy.

    >>> cup = {"boxes": [[0, 0, 4, 2]], "labels": "cup"}
    >>> examples = read_examples([cup, None], [cup, {"boxes": [[1, 1, 2, 2], [0, 0, 1, 1]], "labels": ["cup", 7]}])
    >>> examples.reference.image.tolist(), examples.reference.label.tolist(), examples.labels
    ([0, 1, 1], [0, 0, 1], ['cup', '7'])
    >>> read_examples([{"boxes": [[0, 0, 4]]}], [{"boxes": []}])
    Traceback (most recent call last):
        ...
    ValueError: predictions[0]: boxes has the shape (1, 3); give n boxes of 4 numbers x0, y0, x1, y1 (pixels)
    """
    if iou_type not in ("bbox", "segm"):
        raise ValueError(f"iou_type is {iou_type!r}; give 'bbox' or 'segm'")
    check_columns(predictions, references)
    if not len(references):
        raise ValueError("predictions and references are empty: there is nothing to score; give >= 1 example")
    codes = _Codes()
    predicted, predicted_labelled = _read("predictions", predictions, iou_type, codes)
    reference, reference_labelled = _read("references", references, iou_type, codes)
    _check_same_labelling(predicted_labelled, reference_labelled)
    return Examples(predicted, reference, codes.names, np.array([raw is None for raw in predictions]))


def check_columns(predictions: Any, references: Any) -> tuple[Sequence[Any], Sequence[Any]]:  # noqa: ANN401
    """Both columns. Raises TypeError unless they are lists of images, ValueError unless equally long."""
    for name, column in (("predictions", predictions), ("references", references)):
        if isinstance(column, str | bytes | Mapping) or not isinstance(column, Sequence):
            raise TypeError(f"{name}: is of type {type(column).__name__}; give a list with one entry per image")
    if len(predictions) != len(references):
        raise ValueError(
            f"there are {len(predictions)} predictions for {len(references)} references; "
            "give one prediction per reference, None where there is no usable answer"
        )
    return predictions, references


def _check_same_labelling(predicted: bool | None, reference: bool | None) -> None:
    if predicted is not None and reference is not None and predicted != reference:
        side, other = ("predictions", "references") if reference else ("references", "predictions")
        raise ValueError(
            f"{side}: have no labels, {other} have; give labels on both sides "
            "(one label for all boxes of an image will do) or on neither"
        )


class _Codes(dict[object, int]):
    """Labels to numbers in order of appearance. Labels are compared as strings: 3 is the label "3"."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __missing__(self, label: object) -> int:
        name = str(label)
        if name not in self:
            super().__setitem__(name, len(self.names))
            self.names.append(name)
        self[label] = self[name]
        return self[name]


def _read(
    side: str, images: Sequence[RawImage | None], iou_type: IouType, codes: _Codes
) -> tuple[ImageInstances, bool | None]:
    """One side, and whether it has labels (None: it is empty)."""
    rows = [_checked_row(raw, f"{side}[{number}]") for number, raw in enumerate(images)]
    if iou_type == "segm":
        masks = [_masks(row, f"{side}[{number}]") for number, row in enumerate(rows)]
        counts = [len(some) for some in masks]
        boxes = np.zeros((sum(counts), 4))
    else:
        boxes, counts = _boxes(rows, side)
    label, labelled = _labels(rows, counts, side, codes)
    return (
        ImageInstances(
            image=np.repeat(np.arange(len(counts)), counts),
            label=label,
            boxes=boxes,
            scores=_scores(rows, counts, side),
            masks=[mask for some in masks for mask in some] if iou_type == "segm" else None,
        ),
        labelled,
    )


_KNOWN = frozenset(FIELDS)
_NOTHING: RawImage = {"boxes": [], "masks": []}


def _checked_row(raw: object, where: str) -> RawImage:
    if raw is None and where.startswith("predictions"):
        return _NOTHING
    if not isinstance(raw, Mapping):
        remedy = "give a dict with boxes" + (", or None without a usable answer" if "pred" in where else "")
        raise TypeError(f"{where}: is {raw!r} ({type(raw).__name__}); {remedy}")
    if not raw.keys() <= _KNOWN:
        unknown = ", ".join(str(key) for key in raw if key not in FIELDS)
        raise ValueError(f"{where}: has the unknown field {unknown}; the fields are {', '.join(FIELDS)}")
    return raw


def _boxes(rows: list[RawImage], side: str) -> tuple[Floats, list[int]]:
    """(n, 4) all boxes, and how many each image has."""
    for number, row in enumerate(rows):
        if "boxes" not in row:
            raise ValueError(f"{side}[{number}]: boxes is missing; give boxes, [] for none (masks: iou_type='segm')")
    column = [row["boxes"] for row in rows]
    quick = _quick_boxes(column)
    if quick is not None:
        return quick, [len(raw) for raw in column]
    arrays = [_boxes_of_image(raw, f"{side}[{number}]") for number, raw in enumerate(column)]
    return np.concatenate(arrays), [len(array) for array in arrays]


def _boxes_of_image(raw: object, where: str) -> Floats:
    boxes = as_numbers(raw, "boxes", where)
    if boxes.size == 0:
        return np.zeros((0, 4))
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ValueError(
            f"{where}: boxes has the shape {boxes.shape}; give n boxes of 4 numbers x0, y0, x1, y1 (pixels)"
        )
    return boxes


def _quick_boxes(column: list[Any]) -> Floats | None:
    """All boxes at once where each image has a list of lists of 4 plain numbers; None sends to the slow, clear way."""
    if not all(type(boxes) is list for boxes in column):
        return None
    boxes = list(chain.from_iterable(column))
    if not set(map(type, boxes)) <= {list, tuple} or not set(map(len, boxes)) <= {4}:
        return None
    numbers = _quick_numbers(list(chain.from_iterable(boxes)))
    return None if numbers is None else numbers.reshape(-1, 4)


def _quick_numbers(values: list[Any]) -> Floats | None:
    if not set(map(type, values)) <= {float, int}:
        return None
    try:
        numbers = np.array(values, dtype=np.float64)
    except OverflowError:  # an int beyond all floats
        return None
    return numbers if np.isfinite(numbers).all() else None


def _masks(row: RawImage, where: str) -> list[dict[str, Any]]:
    if "masks" not in row:
        raise ValueError(f"{where}: masks is missing; give run-length encodings, [] for none")
    masks = row["masks"]
    if isinstance(masks, str | bytes | Mapping) or not isinstance(masks, Sequence):
        raise TypeError(f"{where}: masks is of type {type(masks).__name__}; give a list of run-length encodings")
    return [as_rle(mask, f"{where}: masks[{index}]") for index, mask in enumerate(masks)]


def _check_all_or_none(rows: list[RawImage], counts: list[int], name: str, side: str) -> bool | None:
    """Whether the images that have boxes have the field too; None without any box. Raises ValueError if some have."""
    given = [row.get(name) is not None for row, count in zip(rows, counts, strict=True) if count]
    if any(given) and not all(given):
        numbers = [number for number, count in enumerate(counts) if count]
        number = numbers[given.index(False)]
        raise ValueError(f"{side}[{number}]: {name} is missing, which others have; give it for all images or none")
    return given[0] if given else None


def _labels(rows: list[RawImage], counts: list[int], side: str, codes: _Codes) -> tuple[Ints, bool | None]:
    labelled = _check_all_or_none(rows, counts, "labels", side)
    if not labelled:
        return np.full(sum(counts), codes[UNLABELLED] if sum(counts) else 0), labelled
    label: list[int] = []
    for number, (row, count) in enumerate(zip(rows, counts, strict=True)):
        if count or row.get("labels") is not None:
            label += [codes[name] for name in as_labels(row["labels"], count, f"{side}[{number}]")]
    return np.array(label, dtype=np.int64), labelled


def _scores(rows: list[RawImage], counts: list[int], side: str) -> Floats:
    if not _check_all_or_none(rows, counts, "scores", side):
        return np.ones(sum(counts))
    column = [[] if row.get("scores") is None else row["scores"] for row in rows]
    if all(type(raw) is list for raw in column) and [len(raw) for raw in column] == counts:
        quick = _quick_numbers(list(chain.from_iterable(column)))
        if quick is not None:
            return quick
    arrays = []
    for number, (raw, count) in enumerate(zip(column, counts, strict=True)):
        scores = as_numbers(raw, "scores", f"{side}[{number}]")
        if scores.shape != (count,):
            raise ValueError(
                f"{side}[{number}]: scores has the shape {scores.shape} for {count} boxes or masks; give one for each"
            )
        arrays.append(scores)
    return np.concatenate(arrays)


def as_labels(raw: object, count: int, where: str) -> list[Any]:
    """One str or int per box; a single one is that of all boxes. Raises TypeError or ValueError."""
    values = raw.tolist() if hasattr(raw, "tolist") else raw  # numpy arrays, tensors
    if isinstance(values, str | Integral):
        values = [values] * count
    if type(values) is list and len(values) == count and set(map(type, values)) <= {str, int}:
        return values
    if isinstance(values, bytes | Mapping) or not isinstance(values, Sequence):
        raise TypeError(f"{where}: labels is {shortened(raw)}; give a category (str or int) per box, or one for all")
    if len(values) != count:
        raise ValueError(f"{where}: there are {len(values)} labels for {count} boxes or masks; give one for each")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, str | Integral):
            raise TypeError(f"{where}: labels holds {value!r} ({type(value).__name__}); give a str or an int")
    return list(values)
