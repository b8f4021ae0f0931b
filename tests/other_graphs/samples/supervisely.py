"""Supervisely: a video, and pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.other_graphs.sample import (
    CUP,
    HAND,
    SEEN,
    Sample,
    Spoon,
    adding_twice,
    again,
    corners,
    edit,
    editing,
    only_if,
    packed,
    pairs,
    png,
    write_json,
    write_pictures,
)
from tests.releases import HEIGHT, WIDTH, write_video

FILE, PICTURE_FILE = "ds/ann/clip.mp4.json", "ds/ann/0002.png.json"


def write(root: Path) -> None:
    """The cup with a bitmap, the hand with a rectangle, tags of an object and of the video."""
    (root / "ds" / "video").mkdir(parents=True)
    write_video(root / "ds" / "video" / "clip.mp4")
    x, y, width, height = HAND
    cup = {"bitmap": {"data": packed(png(np.ones((20, 20), bool))), "origin": list(CUP[:2])}}
    hand = {"points": {"exterior": [[x, y], [x + width, y + height]], "interior": []}}
    figures = [
        {"key": "f1", "objectKey": "k1", "geometryType": "bitmap", "geometry": cup},
        {"key": "f2", "objectKey": "k2", "geometryType": "rectangle", "geometry": hand},
    ]
    color = {"name": "color", "value": "white", "frameRange": [10, 12]}
    content = {
        "size": {"width": WIDTH, "height": HEIGHT},
        "framesCount": 40,
        "key": "k",
        "objects": [
            {"key": "k1", "classTitle": "coffee cup", "tags": [color]},
            {"key": "k2", "classTitle": "left hand", "tags": []},
        ],
        "frames": [{"index": frame, "figures": figures} for frame in SEEN],
        "tags": [{"name": "Take cup", "value": None, "frameRange": [10, 29]}],
    }
    write_json(root / FILE, content)
    write_json(root / "meta.json", {"classes": [], "tags": []})


def add(root: Path, spoon: Spoon) -> None:
    kind, geometry = _geometry(spoon)
    figure = {"objectKey": spoon.key, "geometryType": kind, "geometry": geometry}

    def change(content: Any) -> None:
        content["objects"].append({"key": spoon.key, "classTitle": spoon.label, "tags": []})
        frames = {frame["index"]: frame for frame in content["frames"]}
        if spoon.frame in frames:
            frames[spoon.frame]["figures"].append(figure)
        else:
            content["frames"].append({"index": spoon.frame, "figures": [figure]})

    edit(root / FILE, change)


def _geometry(spoon: Spoon) -> tuple[str, dict[str, Any]]:
    if spoon.bits is not None:
        return "bitmap", {"bitmap": {"data": packed(spoon.picture_of_bits()), "origin": [0, 0]}}
    hole = [pairs(spoon.hole)] if spoon.hole else []
    return "polygon", {"points": {"exterior": replace(spoon, hole=None).points(), "interior": hole}}


def write_with_pictures(root: Path) -> None:
    for name in write_pictures(root / "ds" / "img"):
        x, y, width, height = HAND
        objects = [
            {
                "id": 1,
                "classTitle": "coffee cup",
                "geometryType": "polygon",
                "points": {"exterior": corners(CUP), "interior": [corners((54, 34, 4, 4))]},
                "tags": [{"name": "color", "value": "white"}],
            },
            {
                "id": 2,
                "classTitle": "left hand",
                "geometryType": "rectangle",
                "points": {"exterior": [[x, y], [x + width, y + height]], "interior": []},
            },
        ]
        write_json(
            root / "ds" / "ann" / f"{name}.json",
            {"size": {"width": WIDTH, "height": HEIGHT}, "tags": [], "objects": objects},
        )


def add_to_picture(root: Path, spoon: Spoon) -> None:
    only_if(0 <= spoon.moment < 3)
    kind, geometry = _geometry(spoon)
    thing = {"id": int(spoon.key), "classTitle": spoon.label, "geometryType": kind, **geometry}
    edit(root / PICTURE_FILE, lambda content: content["objects"].append(thing))


SAMPLES = (
    Sample(
        write,
        add,
        FILE,
        records=("objects",),
        color=True,
        activity=True,
        own={
            "ids as texts, not numbers, or the reverse": None,
            "one id twice": adding_twice(add, FILE, "frames", 1, "figures"),
        },
        faults={"its object 'kN' is not in the file": again("frames", 0, "figures", objectKey="k9")},
    ),
    Sample(
        write_with_pictures,
        add_to_picture,
        PICTURE_FILE,
        variant="pictures",
        records=("objects",),
        of_pictures=True,
        color=True,
        hole=16,
        own={
            "masks of another size": editing(
                "ds/ann/0003.png.json", lambda content: content["size"].update(width=48, height=32)
            )
        },
        faults={"d": again("objects", id=9, geometryType="bitmap", bitmap={"data": "", "origin": [0, 0]})},
        left_out={"shapes without an area: line": again("objects", id=9, geometryType="line")},
    ),
)
