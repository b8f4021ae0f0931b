"""A small file of each tool and format, with the true place of all that is in it: a clip of 40 frames of 96 x 64 px.

A cup of 20 x 20 px is at (50, 30) on frames 10 to 12, a left hand of 10 x 16 px at (44, 40). Tests of all importers
change such a file, or add a spoon to it. `samples/labelme.py` is a sample of a tool, and `samples/davis.py` of masks.
"""

from __future__ import annotations

import base64
import io
import json
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.releases import HEIGHT, WIDTH

CUP, HAND = (50, 30, 20, 20), (44, 40, 10, 16)
SEEN = (10, 11, 12)
THINGS = {"coffee cup": CUP, "left hand": HAND}
SQUARE = (8, 8, 20, 20)

Change = Callable[[Path], None]
"""Changes the files in a folder."""
ContentChange = Callable[[Any], None]
"""Changes the content of a JSON file."""


class Inapplicable(Exception):
    """The format cannot hold this oddity."""


def flat(box: tuple[int, int, int, int]) -> list[int]:
    return [number for corner in corners(box) for number in corner]


def corners(box: tuple[int, int, int, int]) -> list[tuple[int, int]]:
    x, y, width, height = box
    return [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]


@dataclass(frozen=True)
class Spoon:
    """An added object. `pieces` are polygons, the second of a `hole`; `runs` a COCO mask, `bits` a picture of it."""

    label: str = "spoon"
    moment: int = 1
    pieces: list[list[Any]] | None = field(default_factory=lambda: [flat(SQUARE)])
    runs: dict[str, Any] | None = None
    bits: np.ndarray | None = None
    hole: list[int] | None = None
    key: str = "3"
    picture: str | None = None
    video: str | None = None
    area: int = 400

    @property
    def frame(self) -> int:
        return SEEN[0] + self.moment

    def points(self) -> list[tuple[Any, Any]]:
        """The only polygon, as points."""
        if self.pieces is None or len(self.pieces) != 1 or self.hole or self.picture or self.video:
            raise Inapplicable
        return list(zip(self.pieces[0][::2], self.pieces[0][1::2], strict=True))

    def segmentation(self) -> Any:
        if self.hole or self.bits is not None:
            raise Inapplicable
        return self.runs or self.pieces

    def picture_of_bits(self) -> bytes:
        held = io.BytesIO()
        Image.fromarray(self.bits).save(held, "PNG")  # of one bit
        return held.getvalue()


@dataclass(frozen=True)
class Sample:
    """A good file, and the ways to change it. The fields without a default are all that a new format needs.

    `add` adds a spoon to the second of the three frames, and raises Inapplicable if the format cannot hold it.
    `variant` names one of several samples of a tool. `records` is the place of a list of records in the JSON of `file`;
    if `add` appends elsewhere, `own` has a change for "one id twice".

    The graph of a tool's export: `of_pictures`, each of the three pictures is a frame; `color`, the cup is white;
    `activity`, "Take cup" on frames 10 to 29; `hole`, pixels that the cup lacks.

    `is_lossless`: masks that are written come back, also where they overlap. `file_is_video`: a file has one video.

    `own` has the sample's own change for an oddity of `odd_files.py`, or None if the format cannot hold the oddity.
    `faults` maps a part of a reason to a change that loses one record in `file`; `left_out` to a change without a loss.
    """

    write: Change
    add: Callable[[Path, Spoon], None]
    file: str
    variant: str = ""
    records: tuple[str | int, ...] | None = None
    of_pictures: bool = False
    color: bool = False
    activity: bool = False
    hole: int = 0
    is_lossless: bool = True
    file_is_video: bool = False
    own: Mapping[str, Change | None] = field(default_factory=dict)
    faults: Mapping[str, ContentChange] = field(default_factory=dict)
    left_out: Mapping[str, ContentChange] = field(default_factory=dict)


def samples_of(name: str) -> tuple[Sample, ...]:
    """The samples of a tool or format: `SAMPLES` of the module with its name. None if there is no such module."""
    module = f"tests.other_graphs.samples.{name}"
    return import_module(module).SAMPLES if find_spec(module) else ()


def write_json(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def edit(path: Path, change: Callable[[Any], object]) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def editing(file: str, change: Callable[[Any], object]) -> Change:
    """A change of the content of a JSON file."""
    return lambda root: edit(root / file, change)


def put(*path: str | int, value: object) -> ContentChange:
    """Set a value."""

    def change(content: Any) -> None:
        at(content, path[:-1])[path[-1]] = value

    return change


def again(*path: str | int, **fields: Any) -> ContentChange:
    """Append a copy of the first record of a list, with other fields."""

    def change(content: Any) -> None:
        records = at(content, path)
        records.append({**records[0], **fields})

    return change


def adding_twice(add: Callable[[Path, Spoon], None], file: str, *path: str | int) -> Change:
    """Add the spoon, and append it again to its list."""

    def change(root: Path) -> None:
        add(root, Spoon())
        edit(root / file, lambda content: at(content, path).append(at(content, path)[-1]))

    return change


def at(content: Any, path: tuple[str | int, ...]) -> Any:
    for part in path:
        content = content[part]
    return content


def swap_ids(path: Path, *, letters: bool = False) -> None:
    """Make texts of numbers in all keys that hold an id, and numbers of ids that are one letter."""
    keys = "id|image_id|category_id|track_id|video_id|group_id|object_id|objectKey|key|index"
    before = path.read_text()
    after = re.sub(rf'"({keys})": (\d+)', r'"\1": "\2"', before)
    if letters:
        after = re.sub(rf'"({keys})": "(\w)"', lambda found: f'"{found[1]}": {ord(found[2])}', after)
        after = re.sub(r'"(\w)": "c-', lambda found: f'"{ord(found[1])}": "c-', after)
    only_if(after != before)
    path.write_text(after)


def only_if(condition: bool) -> None:
    if not condition:
        raise Inapplicable


def pairs(numbers: list[Any]) -> list[list[Any]]:
    return [list(pair) for pair in zip(numbers[::2], numbers[1::2], strict=True)]


def write_pictures(folder: Path, count: int = 3, size: tuple[int, int] = (WIDTH, HEIGHT)) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{number:04d}.png" for number in range(1, count + 1)]
    for number, name in enumerate(names):
        Image.new("RGB", size, (40 * number, 90, 90)).save(folder / name)
    return names


def png(bits: np.ndarray) -> bytes:
    held = io.BytesIO()
    Image.fromarray(bits.astype(np.uint8) * 255).save(held, "PNG")
    return held.getvalue()


def packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content)).decode()


def picture_of_labels() -> Image.Image:
    """The things of a frame, numbered from 1."""
    labels = np.zeros((HEIGHT, WIDTH), np.uint8)
    for number, (x, y, width, height) in enumerate(THINGS.values(), start=1):
        labels[y : y + height, x : x + width] = number
    return palette_picture(labels)


def palette_picture(labels: np.ndarray) -> Image.Image:
    picture = Image.fromarray(labels, mode="P")
    picture.putpalette([number for number in range(256) for _ in range(3)])
    return picture


def draw(path: Path, number: int, box: tuple[int, int, int, int] = SQUARE) -> None:
    labels = np.asarray(Image.open(path)).copy()
    x, y, width, height = box
    labels[y : y + height, x : x + width] = number
    palette_picture(labels).save(path)
