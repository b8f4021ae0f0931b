"""A spoon in each export of a tool, however oddly it is written: a square of 20 x 20 px (`exports.py` has the rest)."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from PIL import Image

from tests.other_graphs import exports
from tests.other_graphs.exports import SEEN, THINGS, flat, packed, write_json
from tests.releases import HEIGHT, WIDTH, write_video

SQUARE = (8, 8, 20, 20)


class Inapplicable(Exception):
    """The format cannot hold this oddity."""


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


def edit(path: Path, change: Callable[[Any], object]) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def only_if(condition: bool) -> None:
    if not condition:
        raise Inapplicable


def add_coco(root: Path, spoon: Spoon) -> None:
    only_if(spoon.moment in (0, 1, 2, 99) and spoon.video is None)

    def change(content: Any) -> None:
        content["categories"].append({"id": 3, "name": spoon.label})
        image = content["images"][1]["id"] if spoon.moment != 99 else 99
        if spoon.picture:
            image = 50
            content["images"].append({"id": image, "file_name": spoon.picture, "width": WIDTH, "height": HEIGHT})
        annotation = {"id": 900, "image_id": image, "category_id": 3, "track_id": int(spoon.key)}
        content["annotations"].append({**annotation, "segmentation": spoon.segmentation()})

    edit(root / "annotations" / "instances.json", change)


def add_coco_video(root: Path, spoon: Spoon) -> None:
    only_if(0 <= spoon.moment < 3 or spoon.video is not None)
    only_if(spoon.picture is None)

    def change(content: Any) -> None:
        content["categories"].append({"id": 3, "name": spoon.label})
        video = 1 if spoon.video is None else 8
        if spoon.video and spoon.video != "8":
            content["videos"].append({**content["videos"][0], "id": 8, "name": spoon.video})
        masks = [spoon.segmentation() if frame == spoon.frame else None for frame in range(40)]
        track = {"id": int(spoon.key), "video_id": video, "category_id": 3, "segmentations": masks}
        content["annotations"].append(track)

    edit(root / "annotations.json", change)


def add_label_studio(root: Path, spoon: Spoon) -> None:
    only_if(len(spoon.points()) == 4)
    (x, y), (right, _), (_, bottom), _ = spoon.points()
    box = {"x": 100 * x / WIDTH, "y": 100 * y / HEIGHT}
    box |= {"width": 100 * (right - x) / WIDTH, "height": 100 * (bottom - y) / HEIGHT}
    frame = spoon.frame + 1
    sequence = [{**box, "frame": frame, "enabled": True}, {**box, "frame": frame + 1, "enabled": False}]
    value = {"framesCount": 40, "sequence": sequence, "labels": [spoon.label]}
    result = {"id": spoon.key, "type": "videorectangle", "from_name": "box", "to_name": "video", "value": value}
    edit(root / "export.json", lambda content: content[0]["annotations"][1]["result"].append(result))


def add_label_studio_picture(root: Path, spoon: Spoon) -> None:
    only_if(0 <= spoon.moment < 3)
    result: dict[str, Any] = {"id": spoon.key, "original_width": WIDTH, "original_height": HEIGHT}
    if spoon.bits is not None:
        value = {"format": "rle", "rle": exports.brush(spoon.bits), "brushlabels": [spoon.label]}
        result |= {"type": "brushlabels", "value": value}
    else:
        points = [[100 * x / WIDTH, 100 * y / HEIGHT] for x, y in spoon.points()]
        result |= {"type": "polygonlabels", "value": {"points": points, "polygonlabels": [spoon.label]}}
    edit(root / "export.json", lambda content: content[1]["annotations"][0]["result"].append(result))


def add_labelme(root: Path, spoon: Spoon) -> None:
    only_if(0 <= spoon.moment < 3 and spoon.video is None and spoon.hole is None and spoon.runs is None)
    shape = {"label": spoon.label, "group_id": int(spoon.key)}
    shapes = [{**shape, "shape_type": "polygon", "points": pairs(piece)} for piece in spoon.pieces or ()]
    if spoon.bits is not None:
        shapes = [
            {
                **shape,
                "shape_type": "mask",
                "points": [[0, 0], [WIDTH - 1, HEIGHT - 1]],
                "mask": base64.b64encode(_picture_of_bits(spoon)).decode(),
            }
        ]

    def change(content: Any) -> None:
        content["shapes"] += shapes

    if spoon.picture:
        content = {"shapes": shapes, "imagePath": spoon.picture, "imageWidth": WIDTH, "imageHeight": HEIGHT}
        write_json(root / "labels" / "more.json", content)
    else:
        edit(root / "labels" / "0002.json", change)


def pairs(numbers: list[Any]) -> list[list[Any]]:
    return [list(pair) for pair in zip(numbers[::2], numbers[1::2], strict=True)]


def _text(spoon: Spoon) -> str:
    return base64.b64encode(_picture_of_bits(spoon)).decode()


def _picture_of_bits(spoon: Spoon) -> bytes:
    held = io.BytesIO()
    Image.fromarray(spoon.bits).save(held, "PNG")  # of one bit
    return held.getvalue()


def add_supervisely(root: Path, spoon: Spoon) -> None:
    kind, geometry = _supervisely(spoon)
    figure = {"objectKey": spoon.key, "geometryType": kind, "geometry": geometry}

    def change(content: Any) -> None:
        content["objects"].append({"key": spoon.key, "classTitle": spoon.label, "tags": []})
        frames = {frame["index"]: frame for frame in content["frames"]}
        if spoon.frame in frames:
            frames[spoon.frame]["figures"].append(figure)
        else:
            content["frames"].append({"index": spoon.frame, "figures": [figure]})

    edit(root / "ds" / "ann" / "clip.mp4.json", change)


def add_supervisely_picture(root: Path, spoon: Spoon) -> None:
    only_if(0 <= spoon.moment < 3)
    kind, geometry = _supervisely(spoon)
    thing = {"id": int(spoon.key), "classTitle": spoon.label, "geometryType": kind, **geometry}
    edit(root / "ds" / "ann" / "0002.png.json", lambda content: content["objects"].append(thing))


def _supervisely(spoon: Spoon) -> tuple[str, dict[str, Any]]:
    if spoon.bits is not None:
        return "bitmap", {"bitmap": {"data": packed(_picture_of_bits(spoon)), "origin": [0, 0]}}
    hole = [pairs(spoon.hole)] if spoon.hole else []
    return "polygon", {"points": {"exterior": replace(spoon, hole=None).points(), "interior": hole}}


def add_fiftyone(root: Path, spoon: Spoon) -> None:
    only_if(spoon.picture is None and spoon.hole is None and spoon.runs is None and spoon.pieces is not None)
    points = [[[x / WIDTH, y / HEIGHT] for x, y in pairs(piece)] for piece in spoon.pieces or ()]
    label = {"_id": {"$oid": "s"}, "_cls": "Polyline", "label": spoon.label, "index": int(spoon.key)}
    label |= {"points": points, "closed": True, "filled": True}

    def change(content: Any) -> None:
        frames = {frame["frame_number"]: frame for frame in content["frames"]}
        new = {"_sample_id": {"$oid": spoon.video or "s1"}, "frame_number": spoon.frame + 1}
        frame = new if spoon.video else frames.get(spoon.frame + 1, new)
        if frame is new:
            content["frames"].append(new)
        frame["more"] = {"_cls": "Polylines", "polylines": [label]}

    edit(root / "frames.json", change)


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


def write_table(root: Path) -> None:
    root.mkdir(parents=True)
    write_video(root / "clip.mp4")
    lines = [
        {"clip": "clip", "frame": frame, "track": track, "label": label, "mask": [flat(box)]}
        for frame in SEEN
        for track, (label, box) in enumerate(THINGS.items(), start=1)
    ]
    (root / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (root.parent / "map.yaml").write_text(yaml.safe_dump(MAP))


def add_table(root: Path, spoon: Spoon) -> None:
    row = {"clip": spoon.video or spoon.picture or "clip", "frame": spoon.frame, "track": spoon.key}
    mask: Any = "mask.png" if spoon.bits is not None else spoon.segmentation()
    if spoon.bits is not None:
        (root / mask).write_bytes(_picture_of_bits(spoon))
    with (root / "rows.jsonl").open("a") as file:
        file.write(json.dumps({**row, "label": spoon.label, "mask": mask}) + "\n")


CSV_MAP = {"objects": {**MAP["objects"], "file": "rows.csv", "box": ["x", "y", "w", "h"]}}


def write_csv(root: Path) -> None:
    root.mkdir(parents=True)
    write_video(root / "clip.mp4")
    lines = ["clip,frame,track,label,x,y,w,h,mask"]
    for track, (label, box) in enumerate(THINGS.items(), start=1):
        lines += [f"clip,{frame},{track},{label},{','.join(map(str, box))}," for frame in SEEN]
    (root / "rows.csv").write_text("\n".join(lines) + "\n")
    (root.parent / "map.yaml").write_text(yaml.safe_dump(CSV_MAP))


def add_csv(root: Path, spoon: Spoon) -> None:
    mask: Any = "mask.png" if spoon.bits is not None else json.dumps(spoon.segmentation()).replace('"', '""')
    if spoon.bits is not None:
        (root / mask).write_bytes(_picture_of_bits(spoon))
    clip = spoon.video or spoon.picture or "clip"
    with (root / "rows.csv").open("a") as file:
        file.write(f'{clip},{spoon.frame},{spoon.key},{spoon.label},,,,,"{mask}"\n')
