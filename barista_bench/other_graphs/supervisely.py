"""Reads a Supervisely project as rows: `<dataset>/ann/<name>.json` beside `<dataset>/{img,video}/<name>`."""

from __future__ import annotations

from functools import partial
from pathlib import PurePosixPath
from typing import Any

import msgspec

from barista_bench.other_graphs.drawing import bitmap_shape, box_shape, png_bits, polygon_shape, unpack
from barista_bench.other_graphs.rows import AttributeRow, Moment, ObjectRow, Rows, SegmentRow, Shape, Span, VideoRows


class _Size(msgspec.Struct):
    width: int
    height: int


class _Tag(msgspec.Struct, rename="camel"):
    name: str
    value: Any = None
    frame_range: tuple[int, int] | None = None


class _Points(msgspec.Struct):
    exterior: list[tuple[float, float]]
    interior: list[list[tuple[float, float]]] = []


class _Bitmap(msgspec.Struct):
    data: str
    origin: tuple[int, int]


class _Geometry(msgspec.Struct):
    points: _Points | None = None
    bitmap: _Bitmap | None = None


class _Object(msgspec.Struct, rename="camel"):
    class_title: str
    id: int | str | None = None
    key: str | None = None
    geometry_type: str = ""
    points: _Points | None = None
    bitmap: _Bitmap | None = None
    tags: list[_Tag] = []

    @property
    def name(self) -> str:
        """The key if the record has a key, as in videos; else the id."""
        return self.key or str(self.id if self.id is not None else "")


class _Figure(msgspec.Struct, rename="camel"):
    geometry_type: str
    geometry: _Geometry
    object_key: str | None = None
    object_id: int | str | None = None


class _Frame(msgspec.Struct):
    index: int
    figures: list[msgspec.Raw] = []


class _File(msgspec.Struct):
    size: _Size
    objects: list[msgspec.Raw] = []
    tags: list[_Tag] = []
    frames: list[msgspec.Raw] | None = None


def add_rows(rows: Rows, export: str | None) -> None:
    """Add all annotation files."""
    for path in rows.files(export or "**/ann/*.json"):
        place = rows.place(path)
        content = rows.content(path, _File)
        if content is None:
            continue
        folder, name = PurePosixPath(place).parent.parent, PurePosixPath(place).stem
        kind = "img" if content.frames is None else "video"
        found = rows.find(f"./{folder / kind / name}")
        if found is None:
            rows.lose(f"{place}: file", f"there is no {kind}/ with its picture or video")
        elif content.frames is None:
            video, moment = rows.picture(found)
            _add_picture(rows, place, content, video, moment)
        else:
            _add_video(rows, place, content, rows.video(found))


def _add_picture(rows: Rows, place: str, content: _File, video: VideoRows, moment: Moment) -> None:
    video.annotated.append(moment)
    video.tally.left_out["tags of pictures"] += len(content.tags)
    size = content.size.width, content.size.height
    for where, item in rows.records(content.objects, _Object, f"{place}: objects", lambda _: (video, moment)):
        key = f"{place} {item.name or where}"
        is_taken = _add_shape(rows, video, where, key, item.class_title, moment, item.geometry_type, item, size)
        video.tally.guessed["identities: each object of a picture is an object of its own"] += is_taken
        for tag in item.tags if is_taken else ():
            _add_tag(video, where, key, tag, None)


def _add_video(rows: Rows, place: str, content: _File, video: VideoRows) -> None:
    size = content.size.width, content.size.height
    titles: dict[str, str] = {}
    for where, item in rows.records(content.objects, _Object, f"{place}: objects", lambda _: (video, None)):
        titles |= dict.fromkeys({item.key or "", str(item.id or "")} - {""}, item.class_title)
        for tag in item.tags:
            _add_tag(video, where, item.name, tag, tag.frame_range and Span(*tag.frame_range))
    for tag in content.tags:
        if tag.frame_range is None:
            video.tally.left_out["tags of whole videos"] += 1
            continue
        name = tag.value if isinstance(tag.value, str) and tag.value else tag.name
        video.segments.append(SegmentRow(f"{place}: tag {tag.name}", "activities", name, Span(*tag.frame_range)))
    for frame_place, frame in rows.records(content.frames or [], _Frame, f"{place}: frames", lambda _: (video, None)):
        video.annotated.append(frame.index)
        holder = partial(_holder, video, frame.index)
        for where, figure in rows.records(frame.figures, _Figure, f"{frame_place}.figures", holder):
            key = figure.object_key or str(figure.object_id or "")
            if key not in titles:
                video.lose(where, f"its object {key!r} is not in the file", moment=frame.index)
                continue
            shape = figure.geometry
            _add_shape(rows, video, where, key, titles[key], frame.index, figure.geometry_type, shape, size)


def _holder(video: VideoRows, frame: int, raw: msgspec.Raw) -> tuple[VideoRows, Moment]:
    return video, frame


def _add_shape(
    rows: Rows,
    video: VideoRows,
    where: str,
    key: str,
    title: str,
    moment: Moment,
    kind: str,
    geometry: _Geometry | _Object,
    size: tuple[int, int],
) -> bool:
    shape = _shape(kind, geometry)
    if shape is None:
        video.tally.left_out[f"shapes without an area: {kind[:50]}"] += 1
    else:
        rows.add_object(video, ObjectRow(where, key, title, moment, shape, size))
    return shape is not None


def _shape(kind: str, geometry: _Geometry | _Object) -> Shape | None:
    points, bitmap = geometry.points, geometry.bitmap
    if kind == "bitmap" and bitmap:
        data = bitmap.data
        return bitmap_shape(lambda: png_bits(unpack(data)), *bitmap.origin)
    if kind == "polygon" and points:
        return polygon_shape([points.exterior, *points.interior], holes=True)
    if kind == "rectangle" and points:
        if len(points.exterior) != 2:
            return lambda height, width: f"a rectangle of {len(points.exterior)} points"
        (x, y), (right, bottom) = points.exterior
        return box_shape((min(x, right), min(y, bottom), max(x, right), max(y, bottom)), "xyxy")
    return None


def _add_tag(video: VideoRows, where: str, key: str, tag: _Tag, span: Span | None) -> None:
    """Add a tag as an attribute: the tag's name is the type, or, if the tag has no value, the value."""
    if isinstance(tag.value, str) and tag.value:
        video.attributes.append(AttributeRow(where, key, tag.value, tag.name, span))
    elif tag.value is None:
        video.attributes.append(AttributeRow(where, key, tag.name, None, span))
    else:
        video.tally.left_out["tags whose value is no text"] += 1
