"""Reads labelme's files as rows; each picture has one JSON file, beside the picture or in a separate folder."""

from __future__ import annotations

import math
import posixpath
from collections import defaultdict
from functools import partial

import msgspec

from barista_bench.other_graphs.drawing import bitmap_shape, box_shape, joined_shape, png_of_base64, polygon_shape
from barista_bench.other_graphs.rows import AttributeRow, ObjectRow, Rows, Shape
from barista_bench.scene_graph.release import tidy_name
from barista_bench.scene_graph.shapes import mask_of_ellipse

_AREAS = ("polygon", "rectangle", "oriented_rectangle", "circle", "mask")


class _Shape(msgspec.Struct):
    label: str
    points: list[tuple[float, float]]
    shape_type: str | None = "polygon"
    group_id: int | str | None = None
    flags: dict[str, bool] | None = None
    mask: str | None = None


class _File(msgspec.Struct):
    shapes: list[msgspec.Raw]
    imagePath: str
    imageWidth: int | None = None
    imageHeight: int | None = None


def add_rows(rows: Rows, export: str | None) -> None:
    """Add all files.

    Shapes with the same label and group belong to one object. A shape without a group is a separate object.
    """
    for path in rows.files(export or "**/*.json"):
        if content := rows.content(path, _File):
            _add_file(rows, rows.place(path), content)


def _add_file(rows: Rows, place: str, content: _File) -> None:
    named = posixpath.normpath(posixpath.join(posixpath.dirname(place), content.imagePath.replace("\\", "/")))
    found = rows.find(f"./{named}") or rows.find(posixpath.basename(named))
    if found is None:
        rows.lose(f"{place}: imagePath", "its picture is not below the source")
        return
    video, moment = rows.picture(found)
    video.annotated.append(moment)
    width, height = content.imageWidth, content.imageHeight
    size = (width, height) if width and height else None
    groups: dict[tuple[str, str], list[tuple[str, Shape]]] = defaultdict(list)
    for where, shape in rows.records(content.shapes, _Shape, f"{place}: shapes", lambda _: (video, moment)):
        if shape.shape_type not in _AREAS:
            video.tally.left_out[f"shapes without an area: {str(shape.shape_type)[:50]}"] += 1
            continue
        key = where if shape.group_id is None else f"{tidy_name(shape.label)} {shape.group_id}"
        groups[key, tidy_name(shape.label)].append((where, _shape(shape)))
        for flag in (name for name, is_set in (shape.flags or {}).items() if is_set):
            video.attributes.append(AttributeRow(where, key, flag))
    for (key, label), parts in groups.items():
        where, shape_of = parts[0][0], joined_shape([part for _, part in parts])
        rows.add_object(video, ObjectRow(where, key, label, moment, shape_of, size))
        guess = "identities: a shape without a group is an object of its own"
        video.tally.guessed[guess] += key == where


def _shape(shape: _Shape) -> Shape:
    points = shape.points
    if shape.shape_type == "polygon":
        return polygon_shape([points])
    if len(points) != (4 if shape.shape_type == "oriented_rectangle" else 2):
        return lambda height, width: f"a {shape.shape_type} of {len(points)} points"
    (left, right), (top, bottom) = (sorted((min(column), max(column))) for column in zip(*points, strict=True))
    if shape.shape_type == "circle":
        radius = math.dist(*points)
        return lambda height, width: mask_of_ellipse(points[0], (radius, radius), height, width)
    if shape.shape_type == "mask":
        return bitmap_shape(partial(png_of_base64, shape.mask or ""), round(left), round(top))
    return box_shape((left, top, right, bottom), "xyxy")
