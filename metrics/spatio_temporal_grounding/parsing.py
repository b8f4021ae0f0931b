"""Read tasks and answers of spatio-temporal grounding. References must be valid. Answers may be partly broken.

Times are in seconds. Boxes are [x0, y0, x1, y1] in pixels with x0 < x1 and y0 < y1 (continuous corners: the width is x1
- x0). Time stamps are compared as numbers rounded to milliseconds, so 4, 4.0 and "4" are equal.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

Interval = tuple[float, float]
Box = tuple[float, float, float, float]

KINDS = ("explicit", "implicit")


class ReferenceObject(NamedTuple):
    """An annotated object with its boxes and times. `kind` tells whether the instruction names the object."""

    category: str
    kind: str
    intervals: list[Interval]
    boxes: dict[float, Box]


class ReferenceTask(NamedTuple):
    """An instruction and the objects that it needs."""

    kind: str
    objects: list[ReferenceObject]


class PredictedObject(NamedTuple):
    """A predicted object. `match` is the index of the reference object for which it stands, or None.

    A time stamp may have several boxes. Broken intervals and boxes are left out, and `malformed` then becomes True.
    """

    match: int | None
    intervals: list[Interval]
    boxes: dict[float, list[Box]]
    malformed: bool


RawTask = Mapping[str, Any]
RawAnswer = Sequence[Mapping[str, Any]]


def as_reference(raw: RawTask, where: str = "reference") -> ReferenceTask:
    """Read a task {kind, objects: [{category, kind, intervals, boxes}]}. An object's kind defaults to the task's kind.

    Raises TypeError or ValueError; the message starts with `where`.

    >>> cup = {"category": "cup", "intervals": [[2, 6]], "boxes": {"4": [10, 10, 30, 40]}}
    >>> as_reference({"kind": "implicit", "objects": [cup]}).objects[0].boxes
    {4.0: (10.0, 10.0, 30.0, 40.0)}
    """
    _require_fields(raw, ("kind", "objects"), where)
    kind = _kind(raw["kind"], where)
    objects = _as_list(raw["objects"], f"{where}.objects", "reference objects")
    if not objects:
        raise ValueError(f"{where}: objects is empty; give at least one reference object")
    return ReferenceTask(kind, [_as_object(item, kind, f"{where}.objects[{i}]") for i, item in enumerate(objects)])


def _as_object(raw: Mapping[str, Any], kind: str, where: str) -> ReferenceObject:
    _require_fields(raw, ("category", "intervals", "boxes"), where)
    if not isinstance(raw["category"], str):
        raise TypeError(f"{where}: category is {raw['category']!r}, not a string; give its name")
    own_kind = kind if raw.get("kind") is None else _kind(raw["kind"], where)
    intervals = read_intervals(raw["intervals"])
    if not intervals:
        raise ValueError(
            f"{where}: intervals is {raw['intervals']!r}; give [[start, end], ...] in seconds, start <= end"
        )
    return ReferenceObject(raw["category"], own_kind, intervals, _reference_boxes(raw["boxes"], where))


def _reference_boxes(raw: Any, where: str) -> dict[float, Box]:  # noqa: ANN401
    pairs = _pairs(raw)
    if not pairs:
        raise ValueError(f"{where}: boxes is {raw!r:.80}; give a dict of time stamps (seconds) and boxes, at least one")
    boxes: dict[float, Box] = {}
    for stamp, value in pairs:
        time = _time(stamp)
        if time is None or time in boxes:
            raise ValueError(f"{where}: boxes has the time stamp {stamp!r}; give seconds, each time stamp once")
        frame_boxes, broken = _read_frame(value)
        if broken or len(frame_boxes) != 1:
            raise ValueError(
                f"{where}: boxes has {value!r:.80} at {stamp} s; give one box [x0, y0, x1, y1] with x0 < x1 and y0 < y1"
            )
        boxes[time] = frame_boxes[0]
    return boxes


def as_prediction(raw: RawAnswer, n_objects: int, where: str = "prediction") -> list[PredictedObject]:
    """Read an answer [{match, intervals, boxes}]. `n_objects` is the number of reference objects.

    Missing or broken intervals and boxes of the model count as no grounding, not as an error. Raises TypeError or
    ValueError for other faults, in particular if two objects have the same match.

    >>> [cup] = as_prediction([{"match": 0, "intervals": "soon", "boxes": {"4": [[0, 0, 1, 1], [3, 3, 1, 1]]}}], 1)
    >>> cup.intervals, cup.boxes, cup.malformed
    ([], {4.0: [(0.0, 0.0, 1.0, 1.0)]}, True)
    """
    objects = [_as_predicted(item, f"{where}[{i}]") for i, item in enumerate(_as_list(raw, where, "predicted objects"))]
    positions: dict[int, int] = {}
    for i, predicted in enumerate(objects):
        match = predicted.match
        if match is None:
            continue
        if not 0 <= match < n_objects:
            raise ValueError(
                f"{where}[{i}]: match is {match}; give the index of one of the {n_objects} reference objects"
            )
        if match in positions:
            raise ValueError(
                f"{where}[{i}]: match is {match}, as {where}[{positions[match]}]'s; give the worse one None"
            )
        positions[match] = i
    return objects


def _as_predicted(raw: Mapping[str, Any], where: str) -> PredictedObject:
    _require_fields(raw, ("match",), where)
    match = raw["match"]
    if match is not None and (isinstance(match, bool) or not isinstance(match, Integral)):
        raise TypeError(f"{where}: match is {match!r}; give the index of the reference object, or None")
    intervals = [] if raw.get("intervals") is None else read_intervals(raw["intervals"])
    boxes, broken = read_boxes(raw.get("boxes"))
    return PredictedObject(
        None if match is None else int(match),
        intervals or [],
        boxes,
        bool(raw.get("malformed")) or broken or intervals is None,
    )


def _require_fields(raw: object, names: Iterable[str], where: str) -> None:
    if not isinstance(raw, Mapping):
        raise TypeError(f"{where}: is {raw!r} ({type(raw).__name__}); give a dict with {', '.join(names)}")
    missing = [name for name in names if name not in raw]
    if missing:
        raise ValueError(f"{where}: {', '.join(missing)} is missing; give {', '.join(names)}")


def _kind(kind: object, where: str) -> str:
    if kind not in KINDS:
        raise ValueError(f"{where}: kind is {kind!r}; give {' or '.join(KINDS)}")
    return str(kind)


def _as_list(raw: Any, where: str, what: str) -> Sequence[Any]:  # noqa: ANN401
    if isinstance(raw, str | bytes | Mapping) or not isinstance(raw, Sequence):
        raise TypeError(f"{where}: is {raw!r:.80} ({type(raw).__name__}); give a list of {what}")
    return raw


def read_intervals(raw: Any) -> list[Interval] | None:  # noqa: ANN401
    """Read intervals from an (n, 2) array-like of finite seconds with start <= end. Return None for other data.

    >>> read_intervals([[1, 2], [4, 4]]), read_intervals([]), read_intervals([[2, 1]]), read_intervals([3, 4])
    ([(1.0, 2.0), (4.0, 4.0)], [], None, None)
    """
    array = _numbers(raw)
    if array is not None and array.shape == (0,):
        return []
    if array is None or array.ndim != 2 or array.shape[1] != 2 or (array[:, 0] > array[:, 1]).any():
        return None
    return [(float(start), float(end)) for start, end in array]


def read_boxes(raw: Any) -> tuple[dict[float, list[Box]], bool]:  # noqa: ANN401
    """Return the boxes of each time stamp, and whether data was broken. None has no boxes and is not broken."""
    pairs = [] if raw is None else _pairs(raw)
    boxes: dict[float, list[Box]] = {}
    any_broken = pairs is None
    for stamp, value in pairs or []:
        time = _time(stamp)
        frame_boxes, broken = _read_frame(value)
        any_broken |= broken or time is None
        if frame_boxes and time is not None:
            boxes.setdefault(time, []).extend(frame_boxes)
    return boxes, any_broken


def _pairs(raw: Any) -> list[tuple[Any, Any]] | None:  # noqa: ANN401
    """Return (time stamp, box or boxes) pairs from a dict or from a list of {timestamp, box}, or None for other
    data.
    """
    if isinstance(raw, Mapping):
        return list(raw.items())
    if isinstance(raw, str | bytes) or not isinstance(raw, Sequence):
        return None
    if not all(isinstance(item, Mapping) and "timestamp" in item and "box" in item for item in raw):
        return None
    return [(item["timestamp"], item["box"]) for item in raw]


def _time(stamp: object) -> float | None:
    if isinstance(stamp, bool) or not isinstance(stamp, str | int | float | np.number):
        return None
    try:
        time = float(stamp)
    except ValueError:
        return None
    return round(time, 3) if math.isfinite(time) else None


def _read_frame(raw: Any) -> tuple[list[Box], bool]:  # noqa: ANN401
    """Return the boxes of a time stamp, from a box or a list, and whether any box was broken. None has no box."""
    if raw is None:
        return [], False
    if type(raw) in (list, tuple) and len(raw) == 4 and all(type(x) in (int, float) for x in raw):
        raw = tuple(map(float, raw))  # the usual form, converted without an array
        good = all(map(math.isfinite, raw)) and raw[0] < raw[2] and raw[1] < raw[3]
        return ([raw], False) if good else ([], True)
    array = _numbers(raw)
    if array is not None and array.ndim == 2:
        rows: list[Any] = list(array)
    elif array is not None and not array.size:
        rows = []
    elif array is not None or isinstance(raw, str | bytes | Mapping) or not isinstance(raw, Sequence):
        rows = [array]
    else:  # ragged; read each box separately
        rows = [_numbers(item) for item in raw]
    boxes = [row for row in rows if row is not None and row.shape == (4,) and row[0] < row[2] and row[1] < row[3]]
    return [(float(x0), float(y0), float(x1), float(y1)) for x0, y0, x1, y1 in boxes], len(boxes) != len(rows)


def _numbers(raw: Any) -> np.ndarray[Any, np.dtype[np.float64]] | None:  # noqa: ANN401
    """Return an array of finite numbers, or None for other data, including strings that look like numbers."""
    try:
        array = np.asarray(raw)
    except ValueError:  # ragged
        return None
    if array.size and array.dtype.kind not in "iuf":
        return None
    array = array.astype(np.float64)
    return array if np.isfinite(array).all() else None


def to_json(item: ReferenceTask | Sequence[PredictedObject] | None) -> str:
    """Encode a record as JSON. `as_reference` or `as_prediction` reads an equal record from this text.

    >>> to_json([PredictedObject(0, [(0.0, 2.0)], {1.5: [(0.0, 0.0, 1.0, 1.0)]}, False)])
    '[{"match": 0, "intervals": [[0.0, 2.0]], "boxes": {"1.5": [[0.0, 0.0, 1.0, 1.0]]}, "malformed": false}]'
    """
    if isinstance(item, ReferenceTask):
        return json.dumps({"kind": item.kind, "objects": [each._asdict() for each in item.objects]})
    return json.dumps(None if item is None else [each._asdict() for each in item])
