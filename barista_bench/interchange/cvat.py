"""Read and write CVAT 1.1 XML, for images or for video.

Shapes are masks (runs along the rows of their box), polygons, boxes and ellipses. `write` makes one file per video in
the form for images. There `image id` is the frame, and masks with equal `group_id` and attribute `object` are one
object. `read` accepts both forms and every shape that has an area. A file with a DOCTYPE is refused, since entities can
expand to gigabytes.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from barista_bench.errors import DataError
from barista_bench.files.paths import confine
from barista_bench.files.reading import read_bounded, refuse_packed
from barista_bench.files.text_out import without_numbers
from barista_bench.files.writing import write_whole
from barista_bench.scene_graph.masks import MaskTracks, Rle, decode_mask, encode_mask, mask_boxes
from barista_bench.scene_graph.release import MAX_FRAMES, tidy_name
from barista_bench.scene_graph.shapes import mask_of_box, mask_of_ellipse, mask_of_polygons

_MAX_BYTES = 2**30
_MAX_SIDE = 16384
_REMEDY = "export it as `CVAT for images 1.1` or `CVAT for video 1.1`"


def read(path: Path) -> Iterator[MaskTracks | DataError]:
    """Yield the video of a file, or of each file in a folder. An unusable file is yielded as a DataError."""
    for file in sorted(path.glob("*.xml")) if path.is_dir() else [path]:
        try:
            yield _Reader(_parse(file), file).tracks()
        except DataError as error:
            yield error


def _parse(file: Path) -> ElementTree.Element:
    content = read_bounded(file, _MAX_BYTES, remedy=_REMEDY)
    refuse_packed(content, str(file))

    def refuse(*declaration: object) -> None:
        raise DataError(f"{file}: has a DOCTYPE, which is not read. Fix: {_REMEDY}")

    guard = expat.ParserCreate()
    guard.StartDoctypeDeclHandler = refuse
    try:
        guard.Parse(content, True)
        return ElementTree.fromstring(content)  # noqa: S314
    except (expat.ExpatError, ElementTree.ParseError, UnicodeError) as error:
        raise DataError(f"{file}: is not XML ({error}). Fix: {_REMEDY}") from error


class _Reader:
    """Reads one file. Unreadable shapes are counted by reason, and their frames are marked incomplete."""

    def __init__(self, root: ElementTree.Element, file: Path) -> None:
        self._root, self._file = root, file
        self._categories: dict[str, str] = {}
        self._masks: dict[int, dict[str, Rle]] = {}
        self._incomplete: set[int] = set()
        self._left_out: Counter[str] = Counter()

    def tracks(self) -> MaskTracks:
        """Return the video. Raises DataError if the file gives no size, or has neither images nor tracks."""
        name = self._root.findtext("meta/task/name") or self._file.stem
        size = self._size()
        for image in self._root.findall("image"):
            frame = self._frame(image.get("id"), "images")
            if frame is None:
                continue
            self._masks.setdefault(frame, {})
            if (image.get("width"), image.get("height")) != (str(size[0]), str(size[1])):
                self._leave_out(f"images that are not {size[0]}x{size[1]} px", frame)
                continue
            for number, shape in enumerate(image):
                group, label = shape.get("group_id"), tidy_name(shape.get("label") or "")
                name_of_shape = f"{label} {group}" if group else f"{label} {frame}/{number}"
                self._add(shape, label, name_of_shape, frame, size)
        for track in self._root.findall("track"):
            for shape in track:
                frame = self._frame(shape.get("frame"), "shapes of tracks")
                if frame is not None and shape.get("outside") != "1":
                    self._masks.setdefault(frame, {})
                    label = tidy_name(track.get("label") or "")
                    self._add(shape, label, f"{label} {track.get('id')}", frame, size)
        masks = dict(sorted(self._masks.items()))
        return MaskTracks(name, *size, self._categories, masks, None, frozenset(self._incomplete), dict(self._left_out))

    def _size(self) -> tuple[int, int]:
        """Return (width, height) of the video from the task, or from the first image."""
        sizes = [
            (node.findtext("width"), node.findtext("height"))
            for path in ("meta/task/original_size", "meta/original_size")
            if (node := self._root.find(path)) is not None
        ]
        sizes += [(image.get("width"), image.get("height")) for image in self._root.findall("image")[:1]]
        for width, height in sizes:
            try:
                size = int(width or 0), int(height or 0)
            except ValueError:
                continue
            if 0 < size[0] <= _MAX_SIDE and 0 < size[1] <= _MAX_SIDE:
                return size
        what = f"its root is {self._root.tag!r}, and the size of the pictures is missing"
        raise DataError(f"{self._file}: no CVAT annotations ({what}). Fix: {_REMEDY}")

    def _frame(self, text: str | None, noun: str) -> int | None:
        frame = int(text) if text is not None and text.isascii() and text.isdecimal() else MAX_FRAMES
        if frame < MAX_FRAMES:
            return frame
        self._left_out[f"{noun} whose frame is no number from 0"] += 1
        return None

    def _leave_out(self, reason: str, frame: int) -> None:
        self._left_out[reason] += 1
        self._incomplete.add(frame)

    def _add(self, shape: ElementTree.Element, label: str, name: str, frame: int, size: tuple[int, int]) -> None:
        if shape.tag == "tag":  # a tag describes the whole frame
            self._left_out["tags"] += 1
            return
        if shape.tag not in _SHAPES:
            self._leave_out(f"shapes without an area: {shape.tag}", frame)
            return
        if not label:
            self._leave_out(f"shapes without a label: {shape.tag}", frame)
            return
        identity = _object_name(shape) or name
        try:
            mask = _SHAPES[shape.tag](shape, size)
        except (ValueError, KeyError, OverflowError):
            mask = "a number is missing or wrong"
        if isinstance(mask, str):
            self._leave_out(f"{shape.tag}: {without_numbers(mask)}", frame)
        elif identity in self._masks[frame]:
            self._leave_out("further shapes of an object that has one on the frame", frame)
        elif self._categories.setdefault(identity, label) != label:
            self._leave_out("shapes of an object with another label", frame)
        else:
            self._masks[frame][identity] = mask


def _object_name(shape: ElementTree.Element) -> str | None:
    return next((item.text for item in shape.findall("attribute") if item.get("name") == "object"), None)


def _number(shape: ElementTree.Element, name: str, default: str | None = None) -> float:
    text = shape.get(name, default)
    if text is None:
        raise KeyError(name)
    return float(text)


def _mask_of_runs(shape: ElementTree.Element, size: tuple[int, int]) -> Rle | str:
    """Convert runs along the rows of a box to a mask with runs down the columns of the picture."""
    width, height = size
    left, top, across, down = (int(shape.attrib[name]) for name in ("left", "top", "width", "height"))
    if not (left >= 0 and top >= 0 and 0 < across <= width - left and 0 < down <= height - top):
        return f"at {left},{top} of {across}x{down} px leaves the {width}x{height} picture"
    runs = np.array([int(run) for run in shape.attrib["rle"].split(",")], dtype=np.int64)
    if (runs < 0).any() or (runs > across * down).any() or runs.sum() != across * down:
        return f"runs sum to {runs.sum()}, not to the {across * down} pixels of their box"
    values = np.arange(len(runs)) % 2 == 1
    canvas = np.zeros((height, width), dtype=np.bool_)
    canvas[top : top + down, left : left + across] = np.repeat(values, runs).reshape(down, across)
    return encode_mask(canvas)


def _mask_of_polygon(shape: ElementTree.Element, size: tuple[int, int]) -> Rle | str:
    corners = [corner.split(",") for corner in shape.attrib["points"].split(";")]
    return mask_of_polygons([[float(number) for corner in corners for number in corner]], size[1], size[0])


def _mask_of_box(shape: ElementTree.Element, size: tuple[int, int]) -> Rle | str:
    left, top, right, bottom = (_number(shape, name) for name in ("xtl", "ytl", "xbr", "ybr"))
    return mask_of_box((left, top, right, bottom), size[1], size[0], degrees=_number(shape, "rotation", "0"))


def _mask_of_ellipse(shape: ElementTree.Element, size: tuple[int, int]) -> Rle | str:
    x, y, across, down = (_number(shape, name) for name in ("cx", "cy", "rx", "ry"))
    return mask_of_ellipse((x, y), (across, down), size[1], size[0], degrees=_number(shape, "rotation", "0"))


_SHAPES = {"mask": _mask_of_runs, "polygon": _mask_of_polygon, "box": _mask_of_box, "ellipse": _mask_of_ellipse}
"""Converters of the shapes that have an area."""


def write(tracks: Iterable[MaskTracks], folder: Path) -> list[str]:
    """Write `NAME.xml` for each video."""
    lines = []
    for video in tracks:
        root = ElementTree.Element("annotations")
        ElementTree.SubElement(root, "version").text = "1.1"
        task = ElementTree.SubElement(ElementTree.SubElement(root, "meta"), "task")
        ElementTree.SubElement(task, "name").text = video.video_id
        groups = {name: number for number, name in enumerate(sorted(video.categories), start=1)}
        for frame, masks in sorted(video.masks.items()):
            size = {"width": str(video.width), "height": str(video.height)}
            image = ElementTree.SubElement(root, "image", {"id": str(frame), "name": f"frame_{frame:06d}", **size})
            for name, rle in sorted(masks.items()):
                box = mask_boxes([rle.counts], *rle.size)[0].astype(int).tolist()
                if box[2] and box[3]:
                    shape = ElementTree.SubElement(image, "mask", _attributes(rle, box))
                    shape.set("label", video.categories[name])
                    shape.set("group_id", str(groups[name]))
                    ElementTree.SubElement(shape, "attribute", name="object").text = name
        ElementTree.indent(root)
        content = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
        write_whole(confine(folder, f"{video.video_id}.xml"), content)
        lines.append(f"{video.video_id}: {len(video.masks)} frames, {len(video.categories)} objects")
    return lines


def _attributes(rle: Rle, box: list[int]) -> dict[str, str]:
    left, top, width, height = box
    crop: NDArray[np.bool_] = decode_mask(rle)[top : top + height, left : left + width]
    runs = [(value, len(list(run))) for value, run in groupby(crop.ravel().tolist())]
    lengths = [length for _, length in runs]
    run_lengths = [0, *lengths] if runs[0][0] else lengths
    shape = {"left": left, "top": top, "width": width, "height": height, "z_order": 0, "occluded": 0}
    return {"rle": ", ".join(map(str, run_lengths)), **{key: str(value) for key, value in shape.items()}}
