"""PVSG: pictures of frames, and pictures of labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.other_graphs.sample import (
    THINGS,
    Sample,
    Spoon,
    adding_twice,
    draw,
    edit,
    editing,
    only_if,
    palette_picture,
    picture_of_labels,
    write_json,
    write_pictures,
)
from tests.releases import HEIGHT, WIDTH

FILE = "data/pvsg.json"
MASKS = "data/vidor/masks/clip"


def write(root: Path) -> None:
    frames = root / "data" / "vidor" / "frames" / "clip"
    write_pictures(frames, 3)
    for number, path in enumerate(sorted(frames.iterdir())):
        path.rename(path.with_name(f"{number:04d}.png"))
        (root / MASKS).mkdir(parents=True, exist_ok=True)
        picture_of_labels().save(root / MASKS / f"{number:04d}.png")
    video = {
        "video_id": "clip",
        "meta": {"height": HEIGHT, "width": WIDTH, "fps": 5, "num_frames": 3},
        "objects": [{"object_id": number, "category": name} for number, name in enumerate(THINGS, start=1)],
        "relations": [],
    }
    content = {"objects": {"thing": [*THINGS, "spoon"], "stuff": []}, "split": {"vidor": {"train": ["clip"]}}}
    write_json(root / FILE, {**content, "data": [video]})


def add(root: Path, spoon: Spoon) -> None:
    only_if(replace(spoon, label="", key="") == replace(Spoon(), label="", key=""))
    thing = {"object_id": int(spoon.key), "category": spoon.label}
    edit(root / FILE, lambda content: content["data"][0]["objects"].append(thing))
    draw(root / MASKS / "0001.png", int(spoon.key))


def _add_blanks(root: Path) -> None:
    """Also in the vocabulary."""
    path = root / FILE
    path.write_text(path.read_text().replace('"coffee cup"', '"coffee  cup "'))


SAMPLES = (
    Sample(
        write,
        add,
        FILE,
        records=("data",),
        own={
            "one id twice": adding_twice(add, FILE, "data", 0, "objects"),
            "the void label, 255": lambda root: draw(root / MASKS / "0001.png", 255),
            "blanks in and after a name": _add_blanks,
            "masks of another size": lambda root: palette_picture(np.ones((32, 48), np.uint8)).save(
                root / MASKS / "0002.png"
            ),
            "a count of 1,000,000,000 frames": editing(
                FILE, lambda content: content["data"][0]["meta"].update(num_frames=10**9)
            ),
            "a path out of the folder": editing(
                FILE, lambda content: content["split"].update({"../../secret": {"train": ["clip"]}})
            ),
        },
    ),
)
