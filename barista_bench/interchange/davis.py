"""Read and write DAVIS and YouTube-VOS: per video a folder of palette PNGs, one per frame.

A palette index is an object.

A pixel belongs to at most one object. If objects overlap, the smaller is drawn over the larger, and the lost pixels are
reported. `objects.json` next to the folders has the names and categories of objects. Without this file, objects are
named by number and have the category `unknown`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from barista_bench.errors import DataError
from barista_bench.files.paths import confine
from barista_bench.files.reading import as_utf8, read_bounded
from barista_bench.files.text_out import without_numbers
from barista_bench.files.writing import atomic_write, write_whole
from barista_bench.scene_graph.masks import MaskTracks, Rle, decode_mask
from barista_bench.scene_graph.release import MALFORMED, MAX_FRAMES, tidy_name
from barista_bench.scene_graph.shapes import masks_of_labels, read_labels
from barista_bench.scene_graph.video_graph import UNNAMED

OBJECTS_FILE = "objects.json"
_MAX_BYTES = 2**26
_MOST_OBJECTS = 255
_VOID = 255
"""Label of DAVIS and Pascal VOC for pixels without a clear object, for example at edges."""
_REMEDY = "give a folder a video of PNGs of labels, named by frame, such as 00000.png"
_ObjectName = tuple[str, str]
"""Id and category of an object."""
_Objects = dict[str, dict[Annotated[int, msgspec.Meta(ge=1, le=_MOST_OBJECTS)], _ObjectName]]


def read(folder: Path) -> Iterator[MaskTracks | DataError]:
    """Yield the videos of a folder. An unusable video is yielded as a DataError.

    Raises:
        DataError: the folder is missing, or its objects.json cannot be read.
    """
    objects: _Objects = {}
    if (folder / OBJECTS_FILE).is_file():
        try:
            path = folder / OBJECTS_FILE
            content = as_utf8(read_bounded(path, _MAX_BYTES, remedy=_REMEDY), str(path))
            objects = msgspec.json.decode(content, type=_Objects)
        except MALFORMED as error:
            raise DataError(f"{folder / OBJECTS_FILE}: {error}. Fix: {_REMEDY}") from error
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder. Fix: {_REMEDY}")
    for video in sorted(path for path in folder.iterdir() if path.is_dir()):
        try:
            yield _read_video(video, objects.get(video.name, {}))
        except DataError as error:
            yield error


def _read_video(folder: Path, objects: dict[int, _ObjectName]) -> MaskTracks:
    masks: dict[int, dict[str, Rle]] = {}
    categories: dict[str, str] = {}
    left_out: Counter[str] = Counter()
    with_void: set[int] = set()
    size: tuple[int, int] | None = None
    for path in sorted(folder.glob("*.png")):
        try:
            picture = _read_indices(confine(folder, path.name), size)
        except ValueError as error:
            left_out[f"pictures: {without_numbers(str(error))}"] += 1
            continue
        size, frame = (picture.shape[0], picture.shape[1]), int(path.stem)
        frame_masks = masks.setdefault(frame, {})
        for number, mask in masks_of_labels(picture).items():
            if number == _VOID and number not in objects:
                left_out["areas marked as void (255)"] += 1
                with_void.add(frame)
                continue
            name, category = objects.get(number, (str(number), UNNAMED))
            categories[name] = tidy_name(category)
            frame_masks[name] = mask
    if size is None:
        reasons = "; ".join(left_out) or "it holds no PNG"
        raise DataError(f"{folder}: no picture can be used ({reasons}). Fix: {_REMEDY}")
    return MaskTracks(folder.name, size[1], size[0], categories, masks, None, frozenset(with_void), dict(left_out))


def _read_indices(path: Path, size: tuple[int, int] | None) -> NDArray[np.uint8]:
    """Read the picture of a frame. Raises ValueError if its name is not a frame number or its size is not `size`."""
    if not path.stem.isdecimal() or int(path.stem) >= MAX_FRAMES:
        raise ValueError("not named by their frame")
    picture = read_labels(path)
    if size not in (None, picture.shape):
        raise ValueError("of another size than the first one")
    return picture


def write(tracks: Iterable[MaskTracks], folder: Path) -> list[str]:
    """Write `NAME/00000.png` for each annotated frame, and objects.json."""
    lines = []
    objects: dict[str, dict[int, _ObjectName]] = {}
    for video in tracks:
        names = sorted(video.categories)
        if len(names) > _MOST_OBJECTS:
            remedy = "export as coco_video"
            raise DataError(f"{video.video_id}: {len(names)} objects, and DAVIS holds 255. Fix: {remedy}")
        numbers = {name: number for number, name in enumerate(names, start=1)}
        objects[video.video_id] = {number: (name, video.categories[name]) for name, number in numbers.items()}
        target = confine(folder, video.video_id)
        target.mkdir()
        cut = 0
        for frame, masks in sorted(video.masks.items()):
            picture, lost = _draw_picture(video, masks, numbers)
            cut += lost
            image = Image.fromarray(picture, mode="P")
            image.putpalette(_palette())
            with atomic_write(target / f"{frame:05d}.png") as partial:
                image.save(partial, format="PNG")
        what = f"{cut} pixels of overlapping objects were cut" if cut else "no objects overlap"
        lines.append(f"{video.video_id}: {len(video.masks)} frames, {len(names)} objects; {what}")
    write_whole(folder / OBJECTS_FILE, json.dumps(objects, indent=1))
    return lines


def _draw_picture(video: MaskTracks, masks: Mapping[str, Rle], numbers: Mapping[str, int]) -> tuple[np.ndarray, int]:
    """Return the picture, and the number of mask pixels that overlaps hide."""
    planes = {name: decode_mask(rle) for name, rle in masks.items()}
    picture = np.zeros((video.height, video.width), dtype=np.uint8)
    for name in sorted(planes, key=lambda name: (-int(planes[name].sum()), name)):
        picture[planes[name]] = numbers[name]
    total = sum(int(plane.sum()) for plane in planes.values())
    return picture, total - int(np.count_nonzero(picture))


def _palette() -> list[int]:
    """Return the colours of DAVIS and Pascal VOC. The bits of an index go to red, green and blue in turn."""
    return [
        sum((index >> (3 * step + channel) & 1) << (7 - step) for step in range(3))
        for index in range(256)
        for channel in range(3)
    ]
