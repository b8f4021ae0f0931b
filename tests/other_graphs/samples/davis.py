"""DAVIS: a picture of labels for each frame."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from tests.other_graphs.sample import (
    SEEN,
    SQUARE,
    THINGS,
    Sample,
    Spoon,
    draw,
    edit,
    flat,
    only_if,
    palette_picture,
    picture_of_labels,
    write_json,
)
from tests.releases import HEIGHT, WIDTH

FILE = "objects.json"


def write(root: Path) -> None:
    (root / "clip").mkdir(parents=True)
    for frame in SEEN:
        picture_of_labels().save(root / "clip" / f"{frame:05d}.png")
    names = {number: [name[0], name] for number, name in enumerate(THINGS, start=1)}
    write_json(root / FILE, {"clip": names})


def add(root: Path, spoon: Spoon) -> None:
    only_if(spoon.pieces == [flat(SQUARE)] and not spoon.hole and not spoon.picture and not spoon.video)
    only_if(spoon.frame >= 0)
    edit(root / FILE, lambda content: content["clip"].update({spoon.key: ["s", spoon.label]}))
    path = root / "clip" / f"{spoon.frame:05d}.png"
    if not path.exists():
        palette_picture(np.zeros((HEIGHT, WIDTH), np.uint8)).save(path)
    draw(path, int(spoon.key))


def _add_one_bit(root: Path) -> None:
    bits = np.zeros((HEIGHT, WIDTH), bool)
    bits[8:28, 8:28] = True
    Image.fromarray(bits).save(root / "clip" / "00020.png")


def _draw_void(root: Path) -> None:
    draw(root / "clip" / f"{SEEN[1]:05d}.png", 255)


def _change_last_size(root: Path) -> None:
    palette_picture(np.ones((32, 48), np.uint8)).save(root / "clip" / f"{SEEN[-1]:05d}.png")


SAMPLES = (
    Sample(
        write,
        add,
        FILE,
        is_lossless=False,
        own={
            "ids as texts, not numbers, or the reverse": None,
            "one id twice": None,
            "a missing picture": None,
            "a PNG of one bit": _add_one_bit,
            "the void label, 255": _draw_void,
            "masks of another size": _change_last_size,
        },
    ),
)
