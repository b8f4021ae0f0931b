"""labelme: a cup in two pieces of one group, and a hand as a picture of its mask."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np

from tests.other_graphs.sample import (
    CUP,
    HAND,
    Sample,
    Spoon,
    again,
    corners,
    edit,
    editing,
    only_if,
    pairs,
    png,
    write_json,
    write_pictures,
)
from tests.releases import HEIGHT, WIDTH

FILE = "labels/0002.json"


def write(root: Path) -> None:
    x, y, width, height = CUP
    for name in write_pictures(root / "frames"):
        halves = [(x, y, width // 2, height), (x + width // 2, y, width // 2, height)]
        shapes: list[dict[str, Any]] = [
            {
                "label": "coffee cup",
                "points": corners(half),
                "group_id": 1,
                "shape_type": "polygon",
                "flags": {"white": True},
            }
            for half in halves
        ]
        bits = np.ones((HAND[3], HAND[2]), bool)
        shapes.append(
            {
                "label": "left hand",
                "points": [[HAND[0], HAND[1]], [HAND[0] + HAND[2] - 1, HAND[1] + HAND[3] - 1]],
                "group_id": 2,
                "shape_type": "mask",
                "mask": base64.b64encode(png(bits)).decode(),
            }
        )
        content = {"version": "5.5.0", "shapes": shapes, "imagePath": f"..\\frames\\{name}"}
        write_json(
            root / "labels" / f"{name[:4]}.json",
            {**content, "imageWidth": WIDTH, "imageHeight": HEIGHT, "imageData": None},
        )


def add(root: Path, spoon: Spoon) -> None:
    only_if(0 <= spoon.moment < 3 and spoon.video is None and spoon.hole is None and spoon.runs is None)
    shape = {"label": spoon.label, "group_id": int(spoon.key)}
    shapes = [{**shape, "shape_type": "polygon", "points": pairs(piece)} for piece in spoon.pieces or ()]
    if spoon.bits is not None:
        mask = base64.b64encode(spoon.picture_of_bits()).decode()
        points = [[0, 0], [WIDTH - 1, HEIGHT - 1]]
        shapes = [{**shape, "shape_type": "mask", "points": points, "mask": mask}]

    def change(content: Any) -> None:
        content["shapes"] += shapes

    if spoon.picture:
        content = {"shapes": shapes, "imagePath": spoon.picture, "imageWidth": WIDTH, "imageHeight": HEIGHT}
        write_json(root / "labels" / "more.json", content)
    else:
        edit(root / FILE, change)


SAMPLES = (
    Sample(
        write,
        add,
        FILE,
        records=("shapes",),
        of_pictures=True,
        color=True,
        own={
            "masks of another size": editing(
                "labels/0003.json", lambda content: content.update(imageWidth=48, imageHeight=32)
            ),
            "one id twice": None,
        },
        faults={
            "a circle of N points": again("shapes", group_id=7, shape_type="circle"),
            "Expected `array`, got `str`": again("shapes", group_id=7, points="no"),
            "mask is damaged": again("shapes", group_id=7, shape_type="mask", points=[[1, 1], [3, 3]], mask="?"),
        },
        left_out={"shapes without an area: linestrip": again("shapes", shape_type="linestrip")},
    ),
)
