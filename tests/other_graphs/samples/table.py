"""Tables of our own, with a map beside the folder: JSON lines, and CSV."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.other_graphs.sample import SEEN, THINGS, Change, Sample, Spoon, flat
from tests.releases import write_video

MAP = {
    "objects": {
        "file": "rows.jsonl",
        "video": "clip",
        "frame": "frame",
        "frames": "from_0",
        "id": "track",
        "category": "label",
        "mask": "mask",
    }
}
CSV_MAP = {"objects": {**MAP["objects"], "file": "rows.csv", "box": ["x", "y", "w", "h"]}}


def write(root: Path) -> None:
    lines = [
        {"clip": "clip", "frame": frame, "track": track, "label": label, "mask": [flat(box)]}
        for frame in SEEN
        for track, (label, box) in enumerate(THINGS.items(), start=1)
    ]
    _write(root, MAP, "rows.jsonl", [json.dumps(line) for line in lines])


def _write(root: Path, table_map: dict[str, Any], file: str, lines: list[str]) -> None:
    root.mkdir(parents=True)
    write_video(root / "clip.mp4")
    (root / file).write_text("\n".join(lines) + "\n")
    (root.parent / "map.yaml").write_text(yaml.safe_dump(table_map))


def add(root: Path, spoon: Spoon) -> None:
    row = {"clip": spoon.video or spoon.picture or "clip", "frame": spoon.frame, "track": spoon.key}
    _add_line("rows.jsonl", json.dumps({**row, "label": spoon.label, "mask": _mask(root, spoon)}), root)


def _mask(root: Path, spoon: Spoon) -> Any:
    if spoon.bits is None:
        return spoon.segmentation()
    (root / "mask.png").write_bytes(spoon.picture_of_bits())
    return "mask.png"


def write_csv(root: Path) -> None:
    lines = ["clip,frame,track,label,x,y,w,h,mask"]
    for track, (label, box) in enumerate(THINGS.items(), start=1):
        lines += [f"clip,{frame},{track},{label},{','.join(map(str, box))}," for frame in SEEN]
    _write(root, CSV_MAP, "rows.csv", lines)


def add_csv(root: Path, spoon: Spoon) -> None:
    mask = _mask(root, spoon)
    mask = mask if spoon.bits is not None else json.dumps(mask).replace('"', '""')
    clip = spoon.video or spoon.picture or "clip"
    _add_line("rows.csv", f'{clip},{spoon.frame},{spoon.key},{spoon.label},,,,,"{mask}"', root)


def _add_line(file: str, line: str, root: Path) -> None:
    with (root / file).open("a") as text:
        text.write(f"{line}\n")


def _again(file: str, add: Any) -> Change:
    """The spoon twice."""

    def change(root: Path) -> None:
        add(root, Spoon())
        _add_line(file, (root / file).read_text().splitlines()[-1], root)

    return change


SAMPLES = (
    Sample(
        write,
        add,
        "rows.jsonl",
        variant="JSON lines",
        own={
            "a number in place of a record": partial(_add_line, "rows.jsonl", "7"),
            "one id twice": _again("rows.jsonl", add),
        },
    ),
    Sample(
        write_csv,
        add_csv,
        "rows.csv",
        variant="CSV",
        own={
            "a number in place of a record": partial(_add_line, "rows.csv", "clip,eleven"),
            "one id twice": _again("rows.csv", add_csv),
        },
    ),
)
