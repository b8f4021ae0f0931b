"""CVAT 1.1 XML, for images or for video: masks as runs along the rows of their box, background first.

Written is one file a video in the form for images: `image id` is the frame, `group_id` and the attribute `object` say
which masks are one object. Read are both forms; files with a DOCTYPE are refused, since entities can spell gigabytes.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from barista_bench.errors import DataError
from barista_bench.files.reading import confined, read_bounded
from barista_bench.files.writing import write_whole
from barista_bench.scene_graph.masks import MaskTracks, Rle, decode_mask, encode_mask, mask_boxes

_MAX_BYTES = 2**30
_MAX_SIDE = 16384
_REMEDY = "export it as `CVAT for images 1.1` or `CVAT for video 1.1` with masks"


def read(path: Path) -> Iterator[MaskTracks]:
    """The video of a file, or of each file of a folder. Raises DataError, naming the frame."""
    for file in sorted(path.glob("*.xml")) if path.is_dir() else [path]:
        root = _parse(file)
        try:
            yield _read_tracks(root, file)
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise DataError(f"{file}: no CVAT annotations ({error}). Remedy: {_REMEDY}") from error


def _parse(file: Path) -> ElementTree.Element:
    content = read_bounded(file, _MAX_BYTES, remedy=_REMEDY)

    def refuse(*declaration: object) -> None:
        raise DataError(f"{file}: has a DOCTYPE, which is not read. Remedy: {_REMEDY}")

    guard = expat.ParserCreate()
    guard.StartDoctypeDeclHandler = refuse
    try:
        guard.Parse(content, True)
        return ElementTree.fromstring(content)  # noqa: S314
    except (expat.ExpatError, ElementTree.ParseError) as error:
        raise DataError(f"{file}: is not XML ({error}). Remedy: {_REMEDY}") from error


def _read_tracks(root: ElementTree.Element, file: Path) -> MaskTracks:
    name = root.findtext("meta/task/name") or file.stem
    size = _original_size(root)
    categories: dict[str, str] = {}
    masks: dict[int, dict[str, Rle]] = {}
    for image in root.findall("image"):
        size = _check_size(int(image.attrib["width"]), int(image.attrib["height"]))
        frame_masks = masks.setdefault(int(image.attrib["id"]), {})
        for number, shape in enumerate(image.findall("mask")):
            label = shape.attrib["label"]
            group = shape.get("group_id")
            identity = _object_name(shape) or (
                f"{label} {group}" if group else f"{label} {image.attrib['id']}/{number}"
            )
            _add_mask(frame_masks, categories, identity, label, _rle(shape, size))
    for track in root.findall("track"):
        label = track.attrib["label"]
        for shape in track.findall("mask"):
            if shape.get("outside") != "1":
                frame_masks = masks.setdefault(int(shape.attrib["frame"]), {})
                identity = _object_name(shape) or f"{label} {track.attrib['id']}"
                _add_mask(frame_masks, categories, identity, label, _rle(shape, _check_size(*size)))
    if any(frame < 0 for frame in masks):
        raise ValueError("a frame is negative")
    return MaskTracks(name, *_check_size(*size), categories, dict(sorted(masks.items())))


def _add_mask(frame_masks: dict[str, Rle], categories: dict[str, str], identity: str, label: str, rle: Rle) -> None:
    if identity in frame_masks:
        raise ValueError(f"{identity!r} has two masks on one frame")
    if categories.setdefault(identity, label) != label:
        raise ValueError(f"{identity!r} is both {categories[identity]!r} and {label!r}")
    frame_masks[identity] = rle


def _original_size(root: ElementTree.Element) -> tuple[int, int]:
    for path in ("meta/task/original_size", "meta/original_size"):
        size = root.find(path)
        if size is not None:
            return int(size.findtext("width") or 0), int(size.findtext("height") or 0)
    return 0, 0


def _check_size(width: int, height: int) -> tuple[int, int]:
    if not (0 < width <= _MAX_SIDE and 0 < height <= _MAX_SIDE):
        raise ValueError(f"pictures of {width}x{height} px")
    return width, height


def _object_name(shape: ElementTree.Element) -> str | None:
    return next((item.text for item in shape.findall("attribute") if item.get("name") == "object"), None)


def _rle(shape: ElementTree.Element, size: tuple[int, int]) -> Rle:
    """A mask as runs down the columns of its picture, from runs along the rows of its box."""
    width, height = size
    left, top, across, down = (int(shape.attrib[name]) for name in ("left", "top", "width", "height"))
    if not (left >= 0 and top >= 0 and 0 < across <= width - left and 0 < down <= height - top):
        raise ValueError(f"a mask at {left},{top} of {across}x{down} px leaves the {width}x{height} picture")
    runs = np.array([int(run) for run in shape.attrib["rle"].split(",")], dtype=np.int64)
    if (runs < 0).any() or (runs > across * down).any() or runs.sum() != across * down:
        raise ValueError(f"runs sum to {runs.sum()}, not to the {across * down} pixels of their box")
    values = np.arange(len(runs)) % 2 == 1
    canvas = np.zeros((height, width), dtype=np.bool_)
    canvas[top : top + down, left : left + across] = np.repeat(values, runs).reshape(down, across)
    return encode_mask(canvas)


def write(tracks: Iterable[MaskTracks], folder: Path) -> list[str]:
    """`NAME.xml` for each video."""
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
        write_whole(confined(folder, f"{video.video_id}.xml"), content)
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
