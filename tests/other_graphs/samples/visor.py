"""VISOR: polygons at 20 times the size of the pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PIL import Image

from tests.other_graphs.sample import (
    THINGS,
    Sample,
    Spoon,
    adding_twice,
    edit,
    flat,
    only_if,
    pairs,
    swap_ids,
    write_json,
    write_pictures,
)
from tests.releases import WIDTH

FILE = "GroundTruth-SparseAnnotations/annotations/train/P01_01.json"


def write(root: Path) -> None:
    folder = root / "GroundTruth-SparseAnnotations" / "rgb_frames" / "train" / "P01" / "P01_01"
    names = [f"P01_01_frame_{number:010d}.jpg" for number in (1, 31, 61)]
    for name, made in zip(names, write_pictures(folder, 3, (WIDTH, 54)), strict=True):
        Image.open(folder / made).save(folder / name)
        (folder / made).unlink()
    rows = [
        {
            "image": {
                "image_path": f"P01_01/{name}",
                "name": name,
                "subsequence": "P01_01_seq_00001",
                "video": "P01_01",
            },
            "annotations": [
                {"id": label[0], "name": label, "segments": [_twenty_times(flat(box))]} for label, box in THINGS.items()
            ],
        }
        for name in names
    ]
    write_json(root / FILE, {"video_annotations": rows})


def _twenty_times(numbers: list[Any]) -> list[list[Any]]:
    return [[20 * x, 20 * y] for x, y in pairs(numbers)]


def add(root: Path, spoon: Spoon) -> None:
    only_if(0 <= spoon.moment < 3 and spoon.pieces is not None and not (spoon.runs or spoon.bits is not None))
    pieces = [_twenty_times(piece) for piece in [*(spoon.pieces or ()), *([spoon.hole] if spoon.hole else [])]]
    entity = {"id": spoon.key, "name": spoon.label, "segments": pieces}

    def change(content: Any) -> None:
        rows = content["video_annotations"]
        if spoon.picture or spoon.video:
            image = {**rows[0]["image"], "name": spoon.picture or rows[0]["image"]["name"]}
            rows.append({"image": {**image, "video": spoon.video or "P01_01"}, "annotations": [entity]})
        else:
            rows[1]["annotations"].append(entity)

    edit(root / FILE, change)


SAMPLES = (
    Sample(
        write,
        add,
        FILE,
        records=("video_annotations",),
        own={
            "ids as texts, not numbers, or the reverse": lambda root: swap_ids(root / FILE, letters=True),
            "one id twice": adding_twice(add, FILE, "video_annotations", 1, "annotations"),
        },
    ),
)
