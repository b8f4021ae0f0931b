"""Reads Label Studio's JSON export as rows: shapes in percent of the picture, box tracks, time lines and relations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
import numpy as np

from barista_bench.other_graphs.drawing import Bits, bitmap_shape, box_shape, polygon_shape
from barista_bench.other_graphs.rows import (
    AttributeRow,
    Moment,
    ObjectRow,
    PredicateRow,
    Rows,
    SegmentRow,
    Shape,
    Span,
    VideoRows,
)
from barista_bench.scene_graph.shapes import mask_of_ellipse

_UPLOADED = 9
"""Number of characters that Label Studio puts before the name of an uploaded file: eight digits and a hyphen."""
_KINDS = ("rectangle", "polygon", "ellipse", "brush", "videorectangle")


class _Result(msgspec.Struct):
    type: str
    id: str = ""
    value: dict[str, Any] = {}
    from_name: str = ""
    original_width: int | None = None
    original_height: int | None = None
    from_id: str = ""
    to_id: str = ""
    direction: str = "right"
    labels: list[str] = []


class _Annotation(msgspec.Struct):
    result: list[msgspec.Raw]
    was_cancelled: bool = False
    ground_truth: bool = False


class _Task(msgspec.Struct):
    data: dict[str, Any]
    annotations: list[_Annotation]
    id: int | str = ""


def add_rows(rows: Rows, export: str | None) -> None:
    """Add all tasks.

    If a task has several annotations, the ground truth is used, or else the first annotation that was not cancelled.
    """
    for path in rows.files(export or "*.json"):
        place = rows.place(path)
        for where, task in rows.records(rows.content(path, list[msgspec.Raw]) or (), _Task, f"{place}: task"):
            found = next((found for text in task.data.values() if (found := _find(rows, text))), None)
            if found is None:
                rows.lose(where, "no video or picture below the source is the one that its data name")
                continue
            is_picture = not rows.is_video(found)
            video, moment = rows.picture(found) if is_picture else (rows.video(found), None)
            usable = [one for one in task.annotations if not one.was_cancelled]
            usable.sort(key=lambda one: not one.ground_truth)
            video.tally.left_out["further, or cancelled, annotations of a task"] += len(task.annotations) - len(
                usable[:1]
            )
            for annotation in usable[:1]:
                if moment is not None:
                    video.annotated.append(moment)
                _TaskReader(rows, video, moment).add(annotation, where)


def _find(rows: Rows, reference: object) -> str | None:
    """Find the video or picture of a task by an address, a path in local storage, or an uploaded file."""
    if not isinstance(reference, str) or not reference:
        return None
    parts = urlsplit(reference)
    path = parse_qs(parts.query).get("d", [unquote(parts.path)])[0]
    folder, _, name = path.rpartition("/")
    is_uploaded = len(name) > _UPLOADED and name[_UPLOADED - 1] == "-"
    return rows.find(f"/{path}") or (rows.find(f"/{folder}/{name[_UPLOADED:]}") if is_uploaded else None)


class _TaskReader:
    def __init__(self, rows: Rows, video: VideoRows, moment: Moment | None) -> None:
        self._rows, self._video, self._moment = rows, video, moment

    def add(self, annotation: _Annotation, place: str) -> None:
        records = list(
            self._rows.records(annotation.result, _Result, f"{place}.result", lambda _: (self._video, self._moment))
        )
        labels: dict[str, str] = {}
        for _, record in records:
            if record.id and (label := _label(record)):
                labels.setdefault(record.id, label)
        shapes = {record.id for _, record in records if _kind(record) in _KINDS}
        for where, record in records:
            kind = _kind(record)
            if kind in _KINDS:
                self._add_shape(where, kind, record, labels.get(record.id, ""))
            elif kind in ("timeline", "timeseries"):
                self._add_segments(where, record)
            elif record.type == "relation":
                self._add_relation(where, record)
            elif record.type == "choices" and record.id in shapes:
                for value in record.value.get("choices", []):
                    self._video.attributes.append(AttributeRow(where, record.id, str(value), record.from_name or None))
            elif record.type != "labels":
                self._video.tally.left_out[f"results of type {record.type[:50]}"] += 1

    def _add_shape(self, where: str, kind: str, record: _Result, label: str) -> None:
        size = (
            (record.original_width, record.original_height)
            if record.original_width and record.original_height
            else None
        )
        try:
            if kind == "videorectangle":
                for frame, shape in self._track(record.value):
                    self._rows.add_object(self._video, ObjectRow(where, record.id, label, frame, shape, size))
            elif self._moment is not None:
                shape = _shape(kind, record.value)
                self._rows.add_object(self._video, ObjectRow(where, record.id, label, self._moment, shape, size))
            else:
                self._video.lose(where, f"a {kind} on a video gives no frame")
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            self._video.lose(where, f"a number of the {kind} is missing or wrong", moment=self._moment)

    def _track(self, value: dict[str, Any]) -> Iterator[tuple[int, Shape]]:
        """Yield the boxes of a track.

        Boxes are interpolated linearly between keyframes, and the last box stays until the end.

        The track counts frames from 1. A keyframe that is not `enabled` ends a stretch.
        """
        keys = sorted(value["sequence"], key=lambda key: key["frame"])
        names = ("x", "y", "width", "height", "rotation")
        boxes = [np.array([float(key.get(name, 0)) for name in names]) for key in keys]
        between = 0
        for key, box, next_key, next_box in zip(keys, boxes, [*keys[1:], None], [*boxes[1:], boxes[-1]], strict=True):
            frame = int(key["frame"])
            end = int(next_key["frame"]) if next_key else int(value.get("framesCount") or frame) + 1
            count = max(1, end - frame) if key.get("enabled", True) else 1
            if count > 10**6:
                raise ValueError("far too many frames")
            between += count - 1
            for step in range(count):
                *corners, degrees = (box + (next_box - box) * step / count).tolist()
                yield frame - 1 + step, box_shape(corners, "xywh", "percent", degrees)
        self._video.tally.guessed["boxes between keyframes, by a straight line"] += between

    def _add_segments(self, where: str, record: _Result) -> None:
        for span in record.value.get("ranges", []):
            try:
                name, first, last = _label(record), int(span["start"]) - 1, int(span["end"]) - 1
            except (KeyError, TypeError, ValueError):
                self._video.lose(where, "a range has no start or end", section="activities")
                continue
            self._video.segments.append(SegmentRow(where, "activities", name, Span(first, last)))

    def _add_relation(self, where: str, record: _Result) -> None:
        if not record.labels:
            self._video.tally.left_out["relations without a label"] += 1
        ends = {"left": [(record.to_id, record.from_id)], "right": [(record.from_id, record.to_id)]}
        both = [*ends["right"], *ends["left"]]
        for label in record.labels:
            for subject, target in ends.get(record.direction, both):
                self._video.relations.append(PredicateRow(where, subject, label, target))


def _kind(record: _Result) -> str:
    """Return the kind of a result; `rectanglelabels` and `rectangle` are the same kind."""
    return record.type if record.type == "labels" else record.type.removesuffix("labels")


def _label(record: _Result) -> str:
    names = record.value.get(record.type) or record.value.get("labels") or record.value.get("timelinelabels") or []
    return str(names[0]) if isinstance(names, list) and names else ""


def _shape(kind: str, value: dict[str, Any]) -> Shape:
    """Return the shape of a result; its values are in percent of the picture.

    Shapes are turned about their top left corner, but ellipses about their centre.
    """
    if kind == "polygon":
        return polygon_shape([[(float(x), float(y)) for x, y in value["points"]]], "percent")
    if kind == "brush":
        return lambda height, width: bitmap_shape(partial(_brush_bits, value["rle"], height, width), 0, 0)(
            height, width
        )
    degrees = float(value.get("rotation") or 0)
    if kind == "rectangle":
        box = [float(value[name]) for name in ("x", "y", "width", "height")]
        return box_shape(box, "xywh", "percent", degrees)
    x, y, across, down = (float(value[name]) / 100 for name in ("x", "y", "radiusX", "radiusY"))
    return lambda height, width: mask_of_ellipse(
        (x * width, y * height), (across * width, down * height), height, width, degrees=degrees
    )


def _brush_bits(rle: list[int], height: int, width: int) -> Bits:
    """Decode a mask of Label Studio's brush: run lengths over the bytes of an RGBA picture.

    The last byte of each pixel is the mask. The header has 32 + 5 + 4 x 4 bits: the number of words, the bits per word
    minus 1, and the bits of each of four kinds of lengths minus 1. Blocks follow: 1 bit (1 if one word repeats), 2 bits
    for the kind of length, the length minus 1, and the word or words.
    """
    bits = np.unpackbits(np.array(rle, dtype=np.uint8))
    text, bit = (bits + ord("0")).tobytes().decode("ascii"), 0

    def number(size: int) -> int:
        nonlocal bit
        bit += size
        return int(text[bit - size : bit], 2)

    count, word = number(32), number(5) + 1
    sizes = [number(4) + 1 for _ in range(4)]
    if count != 4 * height * width or word != 8:
        raise ValueError("of another size")
    values, filled = np.zeros(count, dtype=np.uint8), 0
    while filled < count:
        is_run = number(1)
        length = min(number(sizes[number(2)]) + 1, count - filled)
        words = 1 if is_run else length
        block = np.packbits(bits[bit : bit + 8 * words])
        bit += 8 * words
        values[filled : filled + length] = block
        filled += length
    return values.reshape(height, width, 4)[:, :, 3] > math.floor(255 / 2)
