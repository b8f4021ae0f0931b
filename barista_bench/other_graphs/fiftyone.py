"""Reads FiftyOne's native export (`FiftyOneDataset`): `samples.json`, `frames.json` for videos, and the media."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
from PIL import Image

from barista_bench.other_graphs.drawing import Bits, bitmap_shape, box_shape, polygon_shape, unpack
from barista_bench.other_graphs.rows import (
    OBJECTS,
    AttributeRow,
    Moment,
    ObjectRow,
    Rows,
    SegmentRow,
    Shape,
    Span,
    VideoRows,
    XywhBox,
)
from barista_bench.scene_graph.release import tidy_name
from barista_bench.scene_graph.shapes import Rle

_LISTS = {"Detections": "detections", "Polylines": "polylines", "TemporalDetections": "detections"}
_OWN = {"label", "bounding_box", "mask", "mask_path", "confidence", "index", "tags", "attributes", "instance", "points"}
_OWN |= {"closed", "filled", "support"}
Record = dict[str, Any]


class _Samples(msgspec.Struct):
    samples: list[msgspec.Raw]


class _Frames(msgspec.Struct):
    frames: list[msgspec.Raw]


class _Sample(msgspec.Struct):
    filepath: str


class _Frame(msgspec.Struct):
    frame_number: int


def add_rows(rows: Rows, export: str | None) -> None:
    """Add the labels that people made. Labels with a `confidence` come from a model and are left out."""
    videos: dict[str, VideoRows] = {}
    for path in rows.files(export or "samples.json"):
        place = f"{rows.place(path)}: samples"
        content = rows.content(path, _Samples)
        raws = content.samples if content else []
        for where, sample, record in _with_records(rows, raws, _Sample, place):
            found = rows.find(sample.filepath)
            if found is None:
                rows.lose(where, "not exactly one video or picture below the source is named so")
            elif rows.is_video(found):
                videos[_oid(record)] = rows.video(found)
                _add_labels(rows, videos[_oid(record)], record, None, where)
            else:
                video, moment = rows.picture(found)
                video.annotated.append(moment)
                _add_labels(rows, video, record, moment, where)
    frames_path = rows.source / "frames.json"
    if not frames_path.is_file():
        return
    content_of_frames = rows.content(frames_path, _Frames)
    raws = content_of_frames.frames if content_of_frames else []
    for where, frame, record in _with_records(rows, raws, _Frame, "frames.json: frames"):
        holder = videos.get(_oid(record, "_sample_id"))
        if holder is None:
            rows.lose(where, "its sample is not among those with a video")
            continue
        holder.annotated.append(frame.frame_number - 1)
        _add_labels(rows, holder, record, frame.frame_number - 1, where)


def _with_records(
    rows: Rows, raws: list[msgspec.Raw], kind: type[Any], place: str
) -> Iterator[tuple[str, Any, Record]]:
    """Yield each record with its place in two forms: with only the known fields, and with all fields."""
    for where, record in rows.records(raws, dict[str, Any], place):
        try:
            yield where, msgspec.convert(record, kind), record
        except msgspec.ValidationError as error:
            rows.lose(where, str(error).partition(" - at")[0], "objects")


def _oid(record: Mapping[str, Any], name: str = "_id") -> str:
    value = record.get(name)
    return str(value.get("$oid")) if isinstance(value, dict) else str(value)


def _add_labels(rows: Rows, video: VideoRows, record: Record, moment: Moment | None, place: str) -> None:
    for field, value in record.items():
        kind = value.get("_cls") if isinstance(value, dict) else None
        if not isinstance(kind, str):
            continue
        if kind not in _LISTS and f"{kind}s" not in _LISTS:
            video.tally.left_out[f"fields of {kind[:50]}"] += kind != "ImageMetadata" and kind != "VideoMetadata"
            continue
        labels = value.get(_LISTS[kind]) if kind in _LISTS else [value]
        for number, label in enumerate(labels if isinstance(labels, list) else []):
            where = f"{place}.{field}[{number}]"
            if isinstance(label, dict) and label.get("confidence") is not None:
                video.tally.left_out["labels with a confidence, which are a model's"] += 1
                continue
            try:
                _add_label(rows, video, kind, label, moment, where)
            except (KeyError, TypeError, ValueError, AttributeError):
                section = "activities" if kind.startswith("Temporal") else OBJECTS
                video.lose(where, "a field is missing or wrong", moment=moment, section=section)


def _add_label(rows: Rows, video: VideoRows, kind: str, label: Record, moment: Moment | None, where: str) -> None:
    if kind.startswith("Temporal"):
        first, last = (int(frame) - 1 for frame in label["support"])  # frames are counted from 1
        video.segments.append(SegmentRow(where, "activities", label["label"], Span(first, last)))
        return
    if moment is None:
        raise ValueError("an object of a complete video")
    if kind.startswith("Polyline") and not (label.get("closed") or label.get("filled")):
        video.tally.left_out["shapes without an area: open polylines"] += 1
        return
    shape = polygon_shape(label["points"], "fractions") if kind.startswith("Polyline") else _shape(label)
    name, index = tidy_name(str(label["label"])), label.get("index")
    key = f"{name} {index}" if index is not None else _oid(label)
    video.tally.guessed["identities: a label without an index is an object of its own"] += index is None
    rows.add_object(video, ObjectRow(where, key, name, moment, shape))
    values = {type_: value for type_, value in label.items() if type_ not in _OWN and not type_.startswith("_")}
    values |= {type_: value.get("value") for type_, value in (label.get("attributes") or {}).items()}
    for type_, value in values.items():
        if isinstance(value, str) and value:
            video.attributes.append(AttributeRow(where, key, value, type_))


def _shape(label: Record) -> Shape:
    """Return a box as fractions of the picture; if the label has a mask, scale the mask to the box."""
    box = box_shape([float(number) for number in label["bounding_box"]], "xywh", "fractions")
    if label.get("mask_path"):
        raise ValueError("a mask in a separate file")
    if label.get("mask") is None:
        return box
    text = label["mask"]["$binary"]["base64"]

    def draw(height: int, width: int) -> Rle | XywhBox | str:
        drawn = box(height, width)
        if not isinstance(drawn, tuple):
            return drawn
        left, top = round(drawn[0]), round(drawn[1])
        size = max(1, round(drawn[0] + drawn[2]) - left), max(1, round(drawn[1] + drawn[3]) - top)
        return bitmap_shape(lambda: _scale(np.load(io.BytesIO(unpack(text)), allow_pickle=False), size), left, top)(
            height, width
        )

    return draw


def _scale(mask: Bits, size: tuple[int, int]) -> Bits:
    if mask.ndim != 2 or not mask.size:
        raise ValueError("no picture")
    picture = Image.fromarray((mask > 0).astype(np.uint8) * 255)
    return np.asarray(picture.resize(size, Image.Resampling.NEAREST)) > 0
