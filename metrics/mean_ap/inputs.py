"""Check the metric's input for each image, and convert it to flat arrays over all images.

A box is (x0, y0, x1, y1) in pixels, with x to the right and y down. Its width is x1 - x0 (no + 1). A box without
extent, or with swapped corners, is allowed but overlaps no other box. A mask is a COCO run-length encoding {"size":
[height, width], "counts": ...}. Needs numpy. Masks need pycocotools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from numbers import Integral
from typing import Any, Literal

import numpy as np

from .values import Bools, Floats, Ints, as_numbers, as_rle, shorten

IouType = Literal["bbox", "segm"]
RawImage = Mapping[str, Any]

FIELDS = ("boxes", "masks", "scores", "labels")
UNLABELLED = "object"


@dataclass(frozen=True, slots=True)
class ImageInstances:
    """The boxes or masks of one side (predictions or references) over all images, in the given order.

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
class Column:
    """One side of some images, checked and flat. Each column has its own label numbers.

    * `counts`: (n_images,) boxes or masks of each image; `failed`: (n_images,) True for images without a usable answer.
    * `boxes`: (n, 4), zeros with masks; `masks`: n run-length encodings, or None for boxes.
    * `scores`, `label`: (n,), or None where they are not given; `label` holds positions in `names`.
    """

    counts: Ints
    failed: Bools
    boxes: Floats
    masks: list[dict[str, Any]] | None
    scores: Floats | None
    label: Ints | None
    names: list[str]


@dataclass(frozen=True, slots=True)
class Examples:
    """All images: both sides, the label names, and `failed` (n_images,), which is True for images without an answer."""

    predicted: ImageInstances
    reference: ImageInstances
    labels: list[str]
    failed: Bools


def read_examples(
    predictions: Sequence[RawImage | None], references: Sequence[RawImage], iou_type: IouType = "bbox"
) -> Examples:
    """Check and flatten all images. Raises a TypeError or ValueError that names the image, the field and the remedy.

    >>> cup = {"boxes": [[0, 0, 4, 2]], "labels": "cup"}
    >>> examples = read_examples([cup, None], [cup, {"boxes": [[1, 1, 2, 2], [0, 0, 1, 1]], "labels": ["cup", 7]}])
    >>> examples.reference.image.tolist(), examples.reference.label.tolist(), examples.labels
    ([0, 1, 1], [0, 0, 1], ['cup', '7'])
    >>> read_examples([{"boxes": [[0, 0, 4]]}], [{"boxes": []}])
    Traceback (most recent call last):
        ...
    ValueError: predictions[0]: boxes has the shape (1, 3); give n boxes of 4 numbers x0, y0, x1, y1 (pixels)
    """
    check_columns(predictions, references)
    predicted = read_column("predictions", predictions, iou_type)
    return join_columns([predicted], [read_column("references", references, iou_type)])


def check_columns(predictions: Any, references: Any) -> tuple[Sequence[Any], Sequence[Any]]:  # noqa: ANN401
    """Check both columns.

    Raises TypeError unless both are lists of images, and ValueError unless both are equally long.
    """
    for name, column in (("predictions", predictions), ("references", references)):
        if isinstance(column, str | bytes | Mapping) or not isinstance(column, Sequence):
            raise TypeError(f"{name}: is of type {type(column).__name__}; give a list with one entry per image")
    if len(predictions) != len(references):
        raise ValueError(
            f"there are {len(predictions)} predictions for {len(references)} references; "
            "give one prediction per reference, None where there is no usable answer"
        )
    return predictions, references


def check_same_labelling(predicted: Column, reference: Column) -> None:
    """Raise ValueError if only one side has labels. A side without boxes fits either case."""
    if len(predicted.boxes) and len(reference.boxes) and (predicted.label is None) != (reference.label is None):
        side, other = ("predictions", "references") if predicted.label is None else ("references", "predictions")
        raise ValueError(
            f"{side}: have no labels, {other} have; give labels on both sides "
            "(one label for all boxes of an image will do) or on neither"
        )


def join_columns(predicted: Sequence[Column], reference: Sequence[Column]) -> Examples:
    """Join the images of several batches.

    Raises ValueError if only some batches have labels, or only some have scores.
    """
    left, right = _concatenate("predictions", predicted), _concatenate("references", reference)
    if not len(right.counts):
        raise ValueError("predictions and references are empty: there is nothing to score; give >= 1 example")
    check_same_labelling(left, right)
    codes = _Codes()
    return Examples(_instances(left, codes), _instances(right, codes), codes.names, left.failed)


def _instances(column: Column, codes: _Codes) -> ImageInstances:
    scores = np.ones(len(column.boxes)) if column.scores is None else column.scores
    image = np.repeat(np.arange(len(column.counts)), column.counts)
    return ImageInstances(image, _renumber(column, codes), column.boxes, scores, column.masks)


def _renumber(column: Column, codes: _Codes) -> Ints:
    if column.label is None:
        return np.full(len(column.boxes), codes[UNLABELLED] if len(column.boxes) else 0)
    return np.array([codes[name] for name in column.names], dtype=np.int64)[column.label]


def _concatenate(side: str, columns: Sequence[Column]) -> Column:
    if len(columns) == 1:
        return columns[0]
    filled = [column for column in columns if len(column.boxes)]
    for name, field in (("labels", "label"), ("scores", "scores")):
        if len({getattr(column, field) is None for column in filled}) > 1:
            lacking_counts = [column.counts * (getattr(column, field) is None) for column in columns]
            raise _missing_from_some(side, int(np.flatnonzero(np.concatenate(lacking_counts))[0]), name)
    codes = _Codes()
    label = [_renumber(column, codes) for column in filled if column.label is not None]
    scores = [column.scores for column in filled if column.scores is not None]
    masks = [column.masks for column in columns if column.masks is not None]
    return Column(
        counts=np.concatenate([np.zeros(0, np.int64), *(column.counts for column in columns)]),
        failed=np.concatenate([np.zeros(0, bool), *(column.failed for column in columns)]),
        boxes=np.concatenate([np.zeros((0, 4)), *(column.boxes for column in columns)]),
        masks=list(chain.from_iterable(masks)) if masks else None,
        scores=np.concatenate(scores) if scores else None,
        label=np.concatenate(label) if label else None,
        names=codes.names,
    )


class _Codes(dict[object, int]):
    """Numbers labels in order of appearance. Labels are compared as strings, so 3 is the label "3"."""

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


def read_column(side: str, images: Sequence[RawImage | None], iou_type: IouType) -> Column:
    """Check and flatten one side.

    `side` is "predictions" or "references". Errors are the same as in `read_examples`.
    """
    if iou_type not in ("bbox", "segm"):
        raise ValueError(f"iou_type is {iou_type!r}; give 'bbox' or 'segm'")
    rows = [
        raw if type(raw) is dict and raw.keys() <= _KNOWN else _checked_row(raw, f"{side}[{number}]")
        for number, raw in enumerate(images)
    ]
    masks = None
    if iou_type == "segm":
        by_image = [_masks(row, f"{side}[{number}]") for number, row in enumerate(rows)]
        counts, masks = list(map(len, by_image)), list(chain.from_iterable(by_image))
        boxes = np.zeros((len(masks), 4))
    else:
        boxes, counts = _boxes(rows, side)
    label, names = _labels(rows, counts, side)
    return Column(
        counts=np.array(counts, dtype=np.int64),
        failed=np.array([raw is None for raw in images], dtype=bool),
        boxes=boxes,
        masks=masks,
        scores=_scores(rows, counts, side),
        label=label,
        names=names,
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
    """Return all boxes (n, 4), and the number of boxes per image."""
    try:
        column = [row["boxes"] for row in rows]
    except KeyError:
        number = next(number for number, row in enumerate(rows) if "boxes" not in row)
        raise ValueError(
            f"{side}[{number}]: boxes is missing; give boxes, [] for none (masks: iou_type='segm')"
        ) from None
    quick = _quick_boxes(column)
    if quick is not None:
        return quick, list(map(len, column))
    arrays = [np.zeros((0, 4))]
    for number, raw in enumerate(column):
        boxes = as_numbers(raw, "boxes", f"{side}[{number}]")
        if boxes.size and (boxes.ndim != 2 or boxes.shape[1] != 4):
            what = f"boxes has the shape {boxes.shape}; give n boxes of 4 numbers x0, y0, x1, y1 (pixels)"
            raise ValueError(f"{side}[{number}]: {what}")
        arrays.append(boxes.reshape(-1, 4))
    return np.concatenate(arrays), list(map(len, arrays[1:]))


def _quick_boxes(column: list[Any]) -> Floats | None:
    """Convert all boxes at once if each image has a list of lists of 4 plain numbers.

    Otherwise return None (slow path).
    """
    if not set(map(type, column)) <= {list}:
        return None
    boxes = list(chain.from_iterable(column))
    if not set(map(type, boxes)) <= {list, tuple} or not set(map(len, boxes)) <= {4}:
        return None
    numbers = _quick_numbers(tuple(chain.from_iterable(boxes)))
    return None if numbers is None else numbers.reshape(-1, 4)


def _quick_numbers(values: tuple[Any, ...]) -> Floats | None:
    if not set(map(type, values)) <= {float, int}:
        return None
    try:
        numbers = np.array(values, dtype=np.float64)
    except OverflowError:  # an int too large for a float
        return None
    return numbers if np.isfinite(numbers).all() else None


def _masks(row: RawImage, where: str) -> list[dict[str, Any]]:
    if "masks" not in row:
        raise ValueError(f"{where}: masks is missing; give run-length encodings, [] for none")
    masks = row["masks"]
    if isinstance(masks, str | bytes | Mapping) or not isinstance(masks, Sequence):
        raise TypeError(f"{where}: masks is of type {type(masks).__name__}; give a list of run-length encodings")
    return [as_rle(mask, f"{where}: masks[{index}]") for index, mask in enumerate(masks)]


def _field_of_images(rows: list[RawImage], counts: list[int], name: str, side: str) -> list[Any] | None:
    """Return the field of each image, or None if no image with boxes has it.

    Raises ValueError if only some images have it.
    """
    column = [row.get(name) for row in rows]
    missing = [number for number, raw in enumerate(column) if raw is None and counts[number]]
    if not missing:
        return column if any(counts) else None
    if any(raw is not None and counts[number] for number, raw in enumerate(column)):
        raise _missing_from_some(side, missing[0], name)
    return None


def _missing_from_some(side: str, number: int, name: str) -> ValueError:
    return ValueError(f"{side}[{number}]: {name} is missing, which others have; give it for all images or none")


def _labels(rows: list[RawImage], counts: list[int], side: str) -> tuple[Ints | None, list[str]]:
    """Return positions in the label names (n,), and the names. Positions are None without labels."""
    column = _field_of_images(rows, counts, "labels", side)
    if column is None:
        return None, []
    labels = _quick_labels(column, counts)
    if labels is None:
        labels = []
        for number, (raw, count) in enumerate(zip(column, counts, strict=True)):
            labels += [] if raw is None else as_labels(raw, count, f"{side}[{number}]")
    codes = _Codes()
    return np.fromiter(map(codes.__getitem__, labels), np.int64, len(labels)), codes.names


def _quick_labels(column: list[Any], counts: list[int]) -> list[Any] | None:
    """Return all labels if each image has a list of plain labels or a single label.

    Otherwise return None (slow path).
    """
    if not set(map(type, column)) <= {list, str, int, type(None)}:
        return None
    lists = [
        raw if type(raw) is list else [] if raw is None else [raw] * count
        for raw, count in zip(column, counts, strict=True)
    ]
    labels = list(chain.from_iterable(lists))
    return labels if list(map(len, lists)) == counts and set(map(type, labels)) <= {str, int} else None


def _scores(rows: list[RawImage], counts: list[int], side: str) -> Floats | None:
    column = _field_of_images(rows, counts, "scores", side)
    if column is None:
        return None
    lists = [[] if raw is None else raw for raw in column]
    if set(map(type, lists)) <= {list} and list(map(len, lists)) == counts:
        quick = _quick_numbers(tuple(chain.from_iterable(lists)))
        if quick is not None:
            return quick
    arrays = [as_numbers(raw, "scores", f"{side}[{number}]") for number, raw in enumerate(lists)]
    for number, (scores, count) in enumerate(zip(arrays, counts, strict=True)):
        if scores.shape != (count,):
            raise ValueError(
                f"{side}[{number}]: scores has the shape {scores.shape} for {count} boxes or masks; give one for each"
            )
    return np.concatenate(arrays)


def as_labels(raw: object, count: int, where: str) -> list[Any]:
    """Return one str or int per box. A single label applies to all boxes. Raises TypeError or ValueError."""
    values = raw.tolist() if hasattr(raw, "tolist") else raw  # numpy arrays, tensors
    if isinstance(values, str | Integral):
        values = [values] * count
    if type(values) is list and len(values) == count and set(map(type, values)) <= {str, int}:
        return values
    if isinstance(values, bytes | Mapping) or not isinstance(values, Sequence):
        raise TypeError(f"{where}: labels is {shorten(raw)}; give a category (str or int) per box, or one for all")
    if len(values) != count:
        raise ValueError(f"{where}: there are {len(values)} labels for {count} boxes or masks; give one for each")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, str | Integral):
            raise TypeError(f"{where}: labels holds {value!r} ({type(value).__name__}); give a str or an int")
    return list(values)
