"""CVAT 1.1 for images: polygons on the frames of a video."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.other_graphs.sample import SEEN, THINGS, Sample, Spoon, flat, only_if, pairs
from tests.releases import HEIGHT, WIDTH

FILE = "clip.xml"


def write(root: Path) -> None:
    root.mkdir(parents=True)
    images = "".join(
        f'<image id="{frame}" name="f" width="{WIDTH}" height="{HEIGHT}">'
        + "".join(
            f'<polygon label="{name}" group_id="{name[0]}" points="{_text(pairs(flat(box)))}"/>'
            for name, box in THINGS.items()
        )
        + "</image>"
        for frame in SEEN
    )
    (root / FILE).write_text(f"<annotations><meta><task><name>clip</name></task></meta>{images}</annotations>")


def _text(points: list[Any]) -> str:
    return ";".join(f"{x},{y}" for x, y in points)


def add(root: Path, spoon: Spoon) -> None:
    only_if(spoon.runs is None and spoon.picture is None and spoon.hole is None)
    path = root / FILE
    if spoon.video:
        path.write_text(path.read_text().replace("<name>clip</name>", f"<name>{spoon.video}</name>"))
        return
    if spoon.bits is not None:
        runs = 'rle="0, 400" left="8" top="8" width="20" height="20"'
        shape = f'<mask label="{spoon.label}" group_id="{spoon.key}" {runs}/>'
    else:
        shape = f'<polygon label="{spoon.label}" group_id="{spoon.key}" points="{_text(spoon.points())}"/>'
    text, opening = path.read_text(), f'<image id="{spoon.frame}" name="f" width="{WIDTH}" height="{HEIGHT}">'
    if opening in text:
        path.write_text(text.replace(opening, opening + shape))
    else:
        path.write_text(text.replace("</annotations>", f"{opening}{shape}</image></annotations>"))


def _add_twice(root: Path) -> None:
    add(root, Spoon())
    text = (root / FILE).read_text()
    shape = text[text.index('<polygon label="spoon"') :].partition("/>")[0] + "/>"
    (root / FILE).write_text(text.replace(shape, shape * 2))


def _change_last_size(root: Path) -> None:
    head, _, tail = (root / FILE).read_text().rpartition(f'width="{WIDTH}"')
    (root / FILE).write_text(f'{head}width="48"{tail}')


SAMPLES = (
    Sample(
        write,
        add,
        FILE,
        file_is_video=True,
        own={"one id twice": _add_twice, "masks of another size": _change_last_size},
    ),
)
