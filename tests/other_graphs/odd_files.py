"""The same odd files for every importer: what each of them makes of a file that another tool wrote oddly.

    python -m tests.other_graphs.odd_files          # writes the table of docs/validation.md
    python -m tests.other_graphs.odd_files --all    # prints exit status and message of every cell

Every export shows a cup and a hand on three frames (`exports.py`). An oddity changes the whole file, or adds a spoon:
a square of 20 x 20 px. The cup and the hand must stay, and the spoon is there, or its loss is counted.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from PIL import Image
from typer.testing import CliRunner

from barista_bench.annotate.project import open_project, start
from barista_bench.cli import commands as cli
from barista_bench.scene_graph import SceneGraph, decode_mask, encode_mask
from tests.other_graphs import exports
from tests.other_graphs.exports import SEEN, THINGS, flat, packed, write_json, write_pictures
from tests.releases import HEIGHT, WIDTH, document, write_video

PAGE = Path(__file__).parents[2] / "docs" / "validation.md"
MARK, END = "<!-- The table: python -m tests.other_graphs.odd_files -->", "<!-- end of the table -->"
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


Shown = frozenset[tuple[int, str, int]]
"""Frame, category and area in pixels of all masks."""


@dataclass(frozen=True)
class Importer:
    """A reader with a good export of its format; `command` is what it is given as."""

    name: str
    write: Callable[[Path], None]
    add: Callable[[Path, Spoon], None]
    file: str
    arguments: tuple[str, ...]

    @property
    def is_for_projects(self) -> bool:
        return self.arguments[0] == "--format"


def edit(path: Path, change: Callable[[Any], object]) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def _only(condition: bool) -> None:
    if not condition:
        raise Inapplicable


# ---------------------------------------------------------------- the spoon in each format


def add_coco(root: Path, spoon: Spoon) -> None:
    _only(spoon.moment in (0, 1, 2, 99) and spoon.video is None)

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
    _only(0 <= spoon.moment < 3 or spoon.video is not None)
    _only(spoon.picture is None)

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
    _only(len(spoon.points()) == 4)
    (x, y), (right, _), (_, bottom), _ = spoon.points()
    box = {"x": 100 * x / WIDTH, "y": 100 * y / HEIGHT}
    box |= {"width": 100 * (right - x) / WIDTH, "height": 100 * (bottom - y) / HEIGHT}
    frame = spoon.frame + 1
    sequence = [{**box, "frame": frame, "enabled": True}, {**box, "frame": frame + 1, "enabled": False}]
    value = {"framesCount": 40, "sequence": sequence, "labels": [spoon.label]}
    result = {"id": spoon.key, "type": "videorectangle", "from_name": "box", "to_name": "video", "value": value}
    edit(root / "export.json", lambda content: content[0]["annotations"][1]["result"].append(result))


def add_label_studio_picture(root: Path, spoon: Spoon) -> None:
    _only(0 <= spoon.moment < 3)
    result: dict[str, Any] = {"id": spoon.key, "original_width": WIDTH, "original_height": HEIGHT}
    if spoon.bits is not None:
        value = {"format": "rle", "rle": exports.brush(spoon.bits), "brushlabels": [spoon.label]}
        result |= {"type": "brushlabels", "value": value}
    else:
        points = [[100 * x / WIDTH, 100 * y / HEIGHT] for x, y in spoon.points()]
        result |= {"type": "polygonlabels", "value": {"points": points, "polygonlabels": [spoon.label]}}
    edit(root / "export.json", lambda content: content[1]["annotations"][0]["result"].append(result))


def add_labelme(root: Path, spoon: Spoon) -> None:
    _only(0 <= spoon.moment < 3 and spoon.video is None and spoon.hole is None and spoon.runs is None)
    shape = {"label": spoon.label, "group_id": int(spoon.key)}
    shapes = [{**shape, "shape_type": "polygon", "points": _pairs(piece)} for piece in spoon.pieces or ()]
    if spoon.bits is not None:
        shapes = [{**shape, "shape_type": "mask", "points": [[0, 0], [WIDTH - 1, HEIGHT - 1]], "mask": _text(spoon)}]

    def change(content: Any) -> None:
        content["shapes"] += shapes

    if spoon.picture:
        content = {"shapes": shapes, "imagePath": spoon.picture, "imageWidth": WIDTH, "imageHeight": HEIGHT}
        write_json(root / "labels" / "more.json", content)
    else:
        edit(root / "labels" / "0002.json", change)


def _pairs(numbers: list[Any]) -> list[list[Any]]:
    return [list(pair) for pair in zip(numbers[::2], numbers[1::2], strict=True)]


def _text(spoon: Spoon) -> str:
    import base64

    return base64.b64encode(_picture_of_bits(spoon)).decode()


def _picture_of_bits(spoon: Spoon) -> bytes:
    import io

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
    _only(0 <= spoon.moment < 3)
    kind, geometry = _supervisely(spoon)
    thing = {"id": int(spoon.key), "classTitle": spoon.label, "geometryType": kind, **geometry}
    edit(root / "ds" / "ann" / "0002.png.json", lambda content: content["objects"].append(thing))


def _supervisely(spoon: Spoon) -> tuple[str, dict[str, Any]]:
    if spoon.bits is not None:
        return "bitmap", {"bitmap": {"data": packed(_picture_of_bits(spoon)), "origin": [0, 0]}}
    hole = [_pairs(spoon.hole)] if spoon.hole else []
    return "polygon", {"points": {"exterior": replace(spoon, hole=None).points(), "interior": hole}}


def add_fiftyone(root: Path, spoon: Spoon) -> None:
    _only(spoon.picture is None and spoon.hole is None and spoon.runs is None and spoon.pieces is not None)
    points = [[[x / WIDTH, y / HEIGHT] for x, y in _pairs(piece)] for piece in spoon.pieces or ()]
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


def write_pvsg(root: Path) -> None:
    part = root / "data" / "vidor"
    write_pictures(part / "frames" / "clip", 3)
    for number, path in enumerate(sorted((part / "frames" / "clip").iterdir())):
        path.rename(path.with_name(f"{number:04d}.png"))
        (part / "masks" / "clip").mkdir(parents=True, exist_ok=True)
        _labels().save(part / "masks" / "clip" / f"{number:04d}.png")
    video = {
        "video_id": "clip",
        "meta": {"height": HEIGHT, "width": WIDTH, "fps": 5, "num_frames": 3},
        "objects": [{"object_id": number, "category": name} for number, name in enumerate(THINGS, start=1)],
        "relations": [],
    }
    content = {"objects": {"thing": [*THINGS, "spoon"], "stuff": []}, "split": {"vidor": {"train": ["clip"]}}}
    write_json(root / "data" / "pvsg.json", {**content, "data": [video]})


def _labels() -> Image.Image:
    labels = np.zeros((HEIGHT, WIDTH), np.uint8)
    for number, (x, y, width, height) in enumerate(THINGS.values(), start=1):
        labels[y : y + height, x : x + width] = number
    return _palette_picture(labels)


def _palette_picture(labels: np.ndarray) -> Image.Image:
    picture = Image.fromarray(labels, mode="P")
    picture.putpalette([number for number in range(256) for _ in range(3)])
    return picture


def _draw(path: Path, number: int, box: tuple[int, int, int, int] = SQUARE) -> None:
    labels = np.asarray(Image.open(path)).copy()
    x, y, width, height = box
    labels[y : y + height, x : x + width] = number
    _palette_picture(labels).save(path)


def add_pvsg(root: Path, spoon: Spoon) -> None:
    _only(replace(spoon, label="", key="") == replace(Spoon(), label="", key=""))
    thing = {"object_id": int(spoon.key), "category": spoon.label}
    edit(root / "data" / "pvsg.json", lambda content: content["data"][0]["objects"].append(thing))
    _draw(root / "data" / "vidor" / "masks" / "clip" / "0001.png", int(spoon.key))


def write_visor(root: Path) -> None:
    release = root / "GroundTruth-SparseAnnotations"
    folder = release / "rgb_frames" / "train" / "P01" / "P01_01"
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
    write_json(release / "annotations" / "train" / "P01_01.json", {"video_annotations": rows})


def _twenty_times(numbers: list[Any]) -> list[list[Any]]:
    return [[20 * x, 20 * y] for x, y in _pairs(numbers)]


def add_visor(root: Path, spoon: Spoon) -> None:
    _only(0 <= spoon.moment < 3 and spoon.pieces is not None and not (spoon.runs or spoon.bits is not None))
    pieces = [_twenty_times(piece) for piece in [*(spoon.pieces or ()), *([spoon.hole] if spoon.hole else [])]]
    entity = {"id": spoon.key, "name": spoon.label, "segments": pieces}

    def change(content: Any) -> None:
        rows = content["video_annotations"]
        if spoon.picture or spoon.video:
            image = {**rows[0]["image"], "name": spoon.picture or rows[0]["image"]["name"]}
            rows.append({"image": {**image, "video": spoon.video or "P01_01"}, "annotations": [entity]})
        else:
            rows[1]["annotations"].append(entity)

    edit(root / "GroundTruth-SparseAnnotations" / "annotations" / "train" / "P01_01.json", change)


def write_cvat(root: Path) -> None:
    root.mkdir(parents=True)
    images = "".join(
        f'<image id="{frame}" name="f" width="{WIDTH}" height="{HEIGHT}">'
        + "".join(
            f'<polygon label="{name}" group_id="{name[0]}" points="{_cvat(flat(box))}"/>'
            for name, box in THINGS.items()
        )
        + "</image>"
        for frame in SEEN
    )
    (root / "clip.xml").write_text(f"<annotations><meta><task><name>clip</name></task></meta>{images}</annotations>")


def _cvat(numbers: list[Any]) -> str:
    return ";".join(f"{x},{y}" for x, y in _pairs(numbers))


def add_cvat(root: Path, spoon: Spoon) -> None:
    _only(spoon.runs is None and spoon.picture is None and spoon.hole is None)
    path = root / "clip.xml"
    if spoon.video:
        path.write_text(path.read_text().replace("<name>clip</name>", f"<name>{spoon.video}</name>"))
        return
    if spoon.bits is not None:
        runs = 'rle="0, 400" left="8" top="8" width="20" height="20"'
        shape = f'<mask label="{spoon.label}" group_id="{spoon.key}" {runs}/>'
    else:
        points = ";".join(f"{x},{y}" for x, y in spoon.points())
        shape = f'<polygon label="{spoon.label}" group_id="{spoon.key}" points="{points}"/>'
    text, opening = path.read_text(), f'<image id="{spoon.frame}" name="f" width="{WIDTH}" height="{HEIGHT}">'
    if opening in text:
        path.write_text(text.replace(opening, opening + shape))
    else:
        path.write_text(text.replace("</annotations>", f"{opening}{shape}</image></annotations>"))


def write_davis(root: Path) -> None:
    (root / "clip").mkdir(parents=True)
    for frame in SEEN:
        _labels().save(root / "clip" / f"{frame:05d}.png")
    names = {number: [name[0], name] for number, name in enumerate(THINGS, start=1)}
    write_json(root / "objects.json", {"clip": names})


def add_davis(root: Path, spoon: Spoon) -> None:
    _only(spoon.pieces == [flat(SQUARE)] and not spoon.hole and not spoon.picture and not spoon.video)
    _only(spoon.frame >= 0)
    edit(root / "objects.json", lambda content: content["clip"].update({spoon.key: ["s", spoon.label]}))
    path = root / "clip" / f"{spoon.frame:05d}.png"
    if not path.exists():
        _palette_picture(np.zeros((HEIGHT, WIDTH), np.uint8)).save(path)
    _draw(path, int(spoon.key))


def write_release(root: Path) -> None:
    content = document()
    content |= {"attributes": [], "relations": [], "activities": [], "process_steps": []}
    content["categories"] = [{"id": f"c-{name}", "name": name} for name in THINGS]
    content["object_id_to_category_id"] = {name[0]: f"c-{name}" for name in THINGS}
    content["annotations"] = [
        {"image_id": frame, "object_id": name[0], "bbox": list(box), "segmentation": [flat(box)]}
        for frame in SEEN
        for name, box in THINGS.items()
    ]
    write_json(root / "clip" / "coco_annotation.json", content)
    write_video(root / "clip" / "video.mp4")


def add_release(root: Path, spoon: Spoon) -> None:
    _only(spoon.picture is None and spoon.video is None)

    def change(content: Any) -> None:
        content["categories"].append({"id": "c-spoon", "name": spoon.label})
        content["object_id_to_category_id"][spoon.key] = "c-spoon"
        record = {"image_id": spoon.frame, "object_id": spoon.key, "bbox": list(SQUARE)}
        content["annotations"].append({**record, "segmentation": spoon.segmentation()})

    edit(root / "clip" / "coco_annotation.json", change)


def _table(name: str, tool: str, file: str, add: Callable[[Path, Spoon], None]) -> Importer:
    return Importer(
        name, exports.EXPORTS[tool], add, file, ("--from", "table", "--map", tool.removesuffix("_pictures"))
    )


_OWN = ("--from", "table", "--map", "MAP")
IMPORTERS = {
    importer.name: importer
    for importer in (
        Importer("pvsg", write_pvsg, add_pvsg, "data/pvsg.json", ("--from", "pvsg")),
        Importer(
            "visor",
            write_visor,
            add_visor,
            "GroundTruth-SparseAnnotations/annotations/train/P01_01.json",
            ("--from", "visor"),
        ),
        _table("coco", "coco", "annotations/instances.json", add_coco),
        _table("coco_video", "coco_video", "annotations.json", add_coco_video),
        _table("label_studio", "label_studio", "export.json", add_label_studio),
        _table("label_studio, pictures", "label_studio_pictures", "export.json", add_label_studio_picture),
        _table("labelme", "labelme", "labels/0002.json", add_labelme),
        _table("supervisely", "supervisely", "ds/ann/clip.mp4.json", add_supervisely),
        _table("supervisely, pictures", "supervisely_pictures", "ds/ann/0002.png.json", add_supervisely_picture),
        _table("fiftyone", "fiftyone", "frames.json", add_fiftyone),
        Importer("table, JSON lines", write_table, add_table, "rows.jsonl", _OWN),
        Importer("table, CSV", write_csv, add_csv, "rows.csv", _OWN),
        Importer(
            "annotate: coco_video", exports.coco_video, add_coco_video, "annotations.json", ("--format", "coco_video")
        ),
        Importer("annotate: cvat", write_cvat, add_cvat, "clip.xml", ("--format", "cvat")),
        Importer("annotate: davis", write_davis, add_davis, "objects.json", ("--format", "davis")),
        Importer("annotate: release", write_release, add_release, "clip/coco_annotation.json", ("--format", "release")),
    )
}


# ---------------------------------------------------------------- oddities

Change = Callable[[Importer, Path], None]


@dataclass(frozen=True)
class Oddity:
    """What is odd. `may`: the outcomes that obey the rule; `area` of a spoon that is taken.

    `kept`: which of the three frames must be there whatever the file loses. `adds`: a taken record is seen.
    """

    change: Change
    may: tuple[str, ...]
    area: int = 400
    kept: tuple[int, ...] = (0, 1, 2)
    adds: bool = True


def _bytes(change: Callable[[bytes], bytes]) -> Change:
    def apply(importer: Importer, root: Path) -> None:
        path = root / importer.file
        path.write_bytes(change(path.read_bytes()))

    return apply


def _wrong_top(importer: Importer, root: Path) -> None:
    _only(importer.file.endswith((".json", ".xml")))
    path = root / importer.file
    if path.suffix == ".xml":
        path.write_text("<html><body/></html>")
    else:
        path.write_text('{"a": 1}' if path.read_text().lstrip().startswith("[") else "[1]")


def spoon(**fields: Any) -> Change:
    return lambda importer, root: importer.add(root, Spoon(**fields))


def _no_record(importer: Importer, root: Path) -> None:
    """A number in place of a record."""
    places: dict[str, tuple[Any, ...]] = {
        "pvsg": ("data",),
        "visor": ("video_annotations",),
        "coco": ("annotations",),
        "coco_video": ("annotations",),
        "label_studio": (0, "annotations", 1, "result"),
        "label_studio, pictures": (1, "annotations", 0, "result"),
        "labelme": ("shapes",),
        "supervisely": ("objects",),
        "supervisely, pictures": ("objects",),
        "fiftyone": ("frames",),
        "annotate: coco_video": ("annotations",),
        "annotate: release": ("annotations",),
    }
    path = root / importer.file
    if importer.name == "table, JSON lines":
        path.write_text(path.read_text() + "7\n")
        return
    if importer.name == "table, CSV":
        path.write_text(path.read_text() + "clip,eleven\n")
        return
    _only(importer.name in places)

    def change(content: Any) -> None:
        for part in places[importer.name]:
            content = content[part]
        content.append(7)

    edit(path, change)


def _other_ids(importer: Importer, root: Path) -> None:
    """Numbers as texts in all keys that hold an id, else texts as numbers."""
    _only(importer.file.endswith(".json") and importer.name != "annotate: davis")
    names = {
        "id",
        "image_id",
        "category_id",
        "track_id",
        "video_id",
        "group_id",
        "object_id",
        "index",
        "objectKey",
        "key",
    }

    def turned(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: turned(item, key) for key, item in value.items()}
        if isinstance(value, list):
            return [turned(item) for item in value]
        if name not in names or isinstance(value, bool):
            return value
        if isinstance(value, int) and not (name == "index" and importer.name == "supervisely"):
            return str(value)
        is_key = isinstance(value, str) and importer.name in ("visor", "annotate: release") and len(value) == 1
        return ord(value) if is_key else value

    path = root / importer.file
    before = json.loads(path.read_text())
    after = turned(before)
    if importer.name == "pvsg":
        after["data"][0]["video_id"] = "clip"
    if importer.name == "annotate: release":
        objects = after["object_id_to_category_id"]
        after["object_id_to_category_id"] = {str(ord(key)): value for key, value in objects.items()}
        _only(True)
    _only(after != before)
    path.write_text(json.dumps(after))


def _trailing_blank(importer: Importer, root: Path) -> None:
    path = root / importer.file
    text = path.read_text()
    _only('"coffee cup"' in text)
    path.write_text(text.replace('"coffee cup"', '"coffee  cup "', 1 if importer.name != "pvsg" else -1))


def _again(importer: Importer, root: Path) -> None:
    """The spoon twice, with one id."""
    importer.add(root, Spoon())
    path = root / importer.file
    if importer.name in ("table, JSON lines", "table, CSV"):
        path.write_text(path.read_text() + path.read_text().splitlines()[-1] + "\n")
        return
    _only(path.suffix in (".json", ".xml") and importer.name not in ("annotate: davis", "labelme"))
    if path.suffix == ".xml":
        first = path.read_text().index('<polygon label="spoon"')
        shape = path.read_text()[first:].partition("/>")[0] + "/>"
        path.write_text(path.read_text().replace(shape, shape * 2))
        return

    def twice(value: Any) -> None:
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            twice(item)
        if isinstance(value, list) and value and isinstance(value[-1], dict) and _is_spoon(value[-1]):
            value.append(value[-1])

    edit(path, twice)


def _is_spoon(record: dict[str, Any]) -> bool:
    keys = ("track_id", "object_id", "objectKey", "id", "index")
    is_category = "name" in record and "segments" not in record
    is_title = "classTitle" in record and "geometryType" not in record
    return any(str(record.get(key)) == "3" for key in keys) and not (is_category or is_title)


def _no_picture(importer: Importer, root: Path) -> None:
    pictures = sorted(path for path in root.rglob("*") if path.suffix in (".png", ".jpg") and "masks" not in path.parts)
    _only(bool(pictures) and importer.name != "annotate: davis")
    pictures[-1].unlink()


def _other_size(importer: Importer, root: Path) -> None:
    """The masks of the last frame, or those of the spoon, are of another size than the pictures."""
    runs = {"size": [32, 48], "counts": [0, 400, 32 * 48 - 400]}
    path = root / importer.file
    if importer.name in ("pvsg", "annotate: davis"):
        last = sorted((root / "data/vidor/masks/clip" if importer.name == "pvsg" else root / "clip").iterdir())[-1]
        _palette_picture(np.ones((32, 48), np.uint8)).save(last)
    elif importer.name == "annotate: cvat":
        head, _, tail = path.read_text().rpartition(f'width="{WIDTH}"')
        path.write_text(f'{head}width="48"{tail}')
    elif importer.name == "labelme":
        edit(root / "labels" / "0003.json", lambda content: content.update(imageWidth=48, imageHeight=32))
    elif importer.name == "supervisely, pictures":
        edit(root / "ds/ann/0003.png.json", lambda content: content["size"].update(width=48, height=32))
    elif importer.name == "label_studio, pictures":
        edit(path, lambda content: [one.update(original_width=48) for one in content[2]["annotations"][0]["result"]])
    else:
        _only(importer.name not in ("visor", "label_studio", "supervisely", "fiftyone"))
        importer.add(root, Spoon(pieces=None, runs=runs))


def _many_frames(importer: Importer, root: Path) -> None:
    path, many = root / importer.file, 10**9
    if importer.name == "pvsg":
        edit(path, lambda content: content["data"][0]["meta"].update(num_frames=many))
    elif importer.name.endswith("coco_video"):
        edit(path, lambda content: content["videos"][0].update(length=many))
    elif importer.name == "label_studio":
        importer.add(root, Spoon())

        def change(content: Any) -> None:
            value = content[0]["annotations"][1]["result"][-1]["value"]
            value.update(framesCount=many, sequence=value["sequence"][:1])

        edit(path, change)
    elif importer.name == "annotate: release":
        edit(path, lambda content: content["video_metadata"][0].update(frame_count=many))
    else:
        _only(importer.name not in ("coco", "label_studio, pictures", "labelme", "supervisely, pictures", "visor"))
        importer.add(root, Spoon(moment=many))


def _outside(importer: Importer, root: Path) -> None:
    """A video or picture above the folder, which exists."""
    write_pictures(root.parent / "secret", 1)
    (root.parent / "secret" / "0001.png").rename(root.parent / "secret" / "secret.png")
    write_video(root.parent / "secret.mp4")
    if importer.name == "pvsg":
        edit(root / importer.file, lambda content: content["split"].update({"../../secret": {"train": ["clip"]}}))
    elif importer.name in ("coco", "labelme", "visor"):
        importer.add(root, Spoon(picture="../../secret/secret.png"))
    elif importer.name == "label_studio":
        edit(root / importer.file, lambda content: content.append({**content[0], "data": {"video": "../secret.mp4"}}))
    else:
        _only("label_studio" not in importer.name and "supervisely" not in importer.name)
        importer.add(root, Spoon(video="../secret"))


def _unknown_video(importer: Importer, root: Path) -> None:
    importer.add(root, Spoon(video="8"))


def _sampled(importer: Importer, root: Path) -> None:
    """Masks of each second frame only."""
    _only(importer.name.endswith("coco_video"))

    def change(content: Any) -> None:
        names = [f"clip/{frame:05d}.jpg" for frame in range(0, 40, 2)]
        content["videos"][0].update(length=20, file_names=names)
        for track in content["annotations"]:
            track["segmentations"] = track["segmentations"][::2]

    importer.add(root, Spoon(moment=2))
    edit(root / importer.file, change)


def _void(importer: Importer, root: Path) -> None:
    _only(importer.name in ("annotate: davis", "pvsg"))
    folder = root / "clip" if importer.name != "pvsg" else root / "data/vidor/masks/clip"
    _draw(sorted(folder.iterdir())[1], 255)


def _one_bit(importer: Importer, root: Path) -> None:
    bits = np.zeros((HEIGHT, WIDTH), bool)
    bits[8:28, 8:28] = True
    if importer.name == "annotate: davis":
        Image.fromarray(bits).save(root / "clip" / "00020.png")
        edit(root / "objects.json", lambda content: content["clip"].update({"1": ["c", "coffee cup"]}))
    else:
        importer.add(root, Spoon(pieces=None, bits=bits))


def _square_runs(compressed: bool) -> dict[str, Any]:
    bits = np.zeros((HEIGHT, WIDTH), bool)
    bits[8:28, 8:28] = True
    if compressed:
        rle = encode_mask(bits)
        return {"size": list(rle.size), "counts": rle.counts}
    changes = np.flatnonzero(np.diff(bits.T.ravel().astype(int))) + 1
    return {"size": [HEIGHT, WIDTH], "counts": np.diff([0, *changes, bits.size]).tolist()}


TAKEN, LOST, FILE = ("taken",), ("counted",), ("refused",)
WHOLE = ("refused", "counted")
ODDITIES: dict[str, Oddity] = {
    "a byte order mark": Oddity(_bytes(lambda data: b"\xef\xbb\xbf" + data), TAKEN, adds=False),
    "UTF-16": Oddity(
        _bytes(lambda data: data.decode().encode("utf-16")), ("refused", "counted", "taken"), kept=(), adds=False
    ),
    "gzip": Oddity(_bytes(gzip.compress), WHOLE, kept=(), adds=False),
    "cut in half": Oddity(_bytes(lambda data: data[: 5 * len(data) // 9]), WHOLE, kept=(), adds=False),
    "an empty file": Oddity(_bytes(lambda data: b""), WHOLE, kept=(), adds=False),
    "the wrong type at the top": Oddity(_wrong_top, WHOLE, kept=(), adds=False),
    "a number in place of a record": Oddity(_no_record, LOST),
    "NaN in a polygon": Oddity(spoon(pieces=[[8, 8, float("nan"), 8, 28, 28, 8, 28]]), LOST),
    "an unknown video": Oddity(_unknown_video, ("counted", "refused")),
    "an unknown picture": Oddity(spoon(moment=99), LOST),
    "ids as texts, not numbers, or the reverse": Oddity(_other_ids, ("taken", "refused"), kept=(), adds=False),
    "a frame past the end": Oddity(spoon(moment=90), LOST),
    "a negative frame": Oddity(spoon(moment=-20), LOST),
    "sampled frames": Oddity(_sampled, TAKEN, kept=(0, 2)),
    "a polygon of two corners": Oddity(spoon(pieces=[[8, 8, 28, 28]]), LOST),
    "the same beside a good polygon": Oddity(spoon(pieces=[flat(SQUARE), [40, 40, 41, 41]]), TAKEN),
    "an empty polygon beside a good one": Oddity(spoon(pieces=[flat(SQUARE), []]), TAKEN),
    "a hole": Oddity(spoon(hole=flat((12, 12, 10, 10))), TAKEN, area=300),
    "compressed run lengths": Oddity(spoon(pieces=None, runs=_square_runs(True)), TAKEN),
    "run lengths as numbers": Oddity(spoon(pieces=None, runs=_square_runs(False)), TAKEN),
    "damaged run lengths": Oddity(spoon(pieces=None, runs={"size": [HEIGHT, WIDTH], "counts": "zzzz~"}), LOST),
    "a PNG of one bit": Oddity(_one_bit, TAKEN),
    "the void label, 255": Oddity(_void, LOST),
    "blanks in and after a name": Oddity(_trailing_blank, TAKEN, adds=False),
    "one id twice": Oddity(_again, LOST),
    "a missing picture": Oddity(_no_picture, LOST, kept=(0, 1)),
    "masks of another size": Oddity(_other_size, LOST, kept=(0, 1)),
    "a count of 1,000,000,000 frames": Oddity(_many_frames, WHOLE, kept=(), adds=False),
    "a path out of the folder": Oddity(_outside, ("counted", "refused"), kept=()),
}


# ---------------------------------------------------------------- what happens


class Outcome(NamedTuple):
    """`kind`: taken, counted, refused, or what breaks the rule."""

    kind: str
    exit_code: int
    message: str
    masks: int


def outcome(importer: Importer, oddity: Oddity, folder: Path) -> Outcome:
    """Import an odd file in an empty folder. Raises Inapplicable if the format cannot hold it."""
    root = folder / "export"
    importer.write(root)
    oddity.change(importer, root)
    shown, code, text = run(importer, folder)
    kept = [frames(importer)[number] for number in oddity.kept]
    whole = oddity.change is _unknown_video and importer.name == "annotate: cvat"  # a file is one video
    base = {mask for mask in good(importer.name) if mask[0] in kept and not whole}
    spoons = {mask for mask in shown if mask not in good(importer.name)}
    message = next((line for line in text.splitlines() if any(word in line for word in _SAID)), "")
    kind = _kind(shown, base, spoons, oddity, code, text, message)
    if kind not in oddity.may and kind in ("taken", "counted", "refused"):
        kind = f"wrongly {kind}"
    return Outcome(kind, code, message.replace(str(folder), "…"), len(shown))


_SAID = ("lost: ", "Fix:", "left out")


def _kind(shown: Shown, base: set[Any], spoons: set[Any], oddity: Oddity, code: int, text: str, message: str) -> str:
    if "Traceback" in text:
        return "a traceback"
    if not base <= shown:
        return "good records are lost"
    if code and not message:
        return "no reason"
    if code == 0:
        wrong = [mask for mask in spoons if abs(mask[2] - oddity.area) > 2]
        if oddity.adds and not spoons:
            return "a silent loss"
        return f"a wrong mask {sorted(wrong)}" if wrong else "taken"
    return "counted" if shown else "refused"


def frames(importer: Importer) -> list[int]:
    return sorted({frame for frame, _, _ in good(importer.name)})


@cache
def good(name: str) -> Shown:
    """What the good export of an importer shows."""
    importer = IMPORTERS[name]
    with tempfile.TemporaryDirectory() as folder:
        importer.write(Path(folder) / "export")
        shown, code, text = run(importer, Path(folder))
    assert code == 0, f"{name}: {text}"
    assert len(shown) == 6, f"{name}: {shown}"
    return shown


def run(importer: Importer, folder: Path) -> tuple[Shown, int, str]:
    """What is shown after the import, its exit status, and what the command says."""
    source = str(folder / "export")
    if importer.is_for_projects:
        (folder / "videos").mkdir()
        write_video(folder / "videos" / "clip.mp4")
        project = start(folder / "project", folder / "videos")
        arguments = ["annotate", "import", str(project.folder), "--from", source, *importer.arguments, "--by", "a"]
    else:
        given = [str(folder / "map.yaml") if part == "MAP" else part for part in importer.arguments]
        arguments = ["import-graph", source, *given, "--out", str(folder / "graphs"), "--no-progress"]
    done = CliRunner().invoke(cli.app, arguments)
    text = done.output
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        text += f"Traceback: {done.exception!r}"
    return (_accepted(folder) if importer.is_for_projects else _graph(folder / "graphs")), done.exit_code, text


def _accepted(folder: Path) -> Shown:
    accepted = open_project(folder / "project").video("clip").accepted()
    return frozenset(
        (keyframe.frame, accepted.objects[name], int(decode_mask(mask.rle).sum()))
        for keyframe in accepted.keyframes
        for name, mask in keyframe.masks.items()
    )


def _graph(folder: Path) -> Shown:
    if not any(folder.glob("*/coco_annotation.json")):
        return frozenset()
    return frozenset(
        (item.frame, item.object.category, int(video.mask(item).sum()))
        for video in SceneGraph(folder)
        for item in video.instances((0, video.frame_count))
    )


# ---------------------------------------------------------------- the table


def all_outcomes() -> dict[tuple[str, str], Outcome]:
    found = {}
    for name, oddity in ODDITIES.items():
        for importer in IMPORTERS.values():
            with tempfile.TemporaryDirectory() as folder:
                try:
                    found[name, importer.name] = outcome(importer, oddity, Path(folder))
                except Inapplicable:
                    continue
    return found


def table(found: dict[tuple[str, str], Outcome]) -> str:
    """The Markdown table of all outcomes; empty where a format cannot hold the oddity."""
    lines = ["| what is odd | " + " | ".join(IMPORTERS) + " |", "|:--|" + ":-:|" * len(IMPORTERS)]
    for name in ODDITIES:
        cells = [found[name, importer].kind if (name, importer) in found else "" for importer in IMPORTERS]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def stated() -> str:
    """The table on the page."""
    return PAGE.read_text(encoding="utf-8").partition(MARK)[2].partition(END)[0].strip()


def main() -> None:
    found = all_outcomes()
    if "--all" in sys.argv:
        for (name, importer), row in found.items():
            print(f"{name} | {importer} | {row.kind} | {row.masks} masks | exit {row.exit_code} | {row.message}")
        return
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(MARK)
    PAGE.write_text(f"{head}{MARK}\n\n{table(found)}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
