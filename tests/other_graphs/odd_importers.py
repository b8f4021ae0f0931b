"""The importers under test: other datasets and formats of masks, each with a good file and a spoon to add."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from typer.testing import CliRunner

from barista_bench.annotate.project import open_project, start_project
from barista_bench.cli import commands as cli
from barista_bench.scene_graph import SceneGraph, decode_mask
from tests.other_graphs import exports, spoons
from tests.other_graphs.exports import SEEN, THINGS, flat, write_json, write_pictures
from tests.other_graphs.spoons import SQUARE, Spoon, edit, only_if, pairs
from tests.releases import HEIGHT, WIDTH, document, write_video

Shown = frozenset[tuple[int, str, int]]
"""Frame, category and area in pixels of all masks."""


@dataclass(frozen=True)
class Importer:
    """A reader with a good export of its format; `command` is its argument on the command line."""

    name: str
    write: Callable[[Path], None]
    add: Callable[[Path, Spoon], None]
    file: str
    arguments: tuple[str, ...]

    @property
    def is_for_projects(self) -> bool:
        return self.arguments[0] == "--format"


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


def add_pvsg(root: Path, spoon: Spoon) -> None:
    only_if(replace(spoon, label="", key="") == replace(Spoon(), label="", key=""))
    thing = {"object_id": int(spoon.key), "category": spoon.label}
    edit(root / "data" / "pvsg.json", lambda content: content["data"][0]["objects"].append(thing))
    draw(root / "data" / "vidor" / "masks" / "clip" / "0001.png", int(spoon.key))


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
    return [[20 * x, 20 * y] for x, y in pairs(numbers)]


def add_visor(root: Path, spoon: Spoon) -> None:
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
    return ";".join(f"{x},{y}" for x, y in pairs(numbers))


def add_cvat(root: Path, spoon: Spoon) -> None:
    only_if(spoon.runs is None and spoon.picture is None and spoon.hole is None)
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
    only_if(spoon.pieces == [flat(SQUARE)] and not spoon.hole and not spoon.picture and not spoon.video)
    only_if(spoon.frame >= 0)
    edit(root / "objects.json", lambda content: content["clip"].update({spoon.key: ["s", spoon.label]}))
    path = root / "clip" / f"{spoon.frame:05d}.png"
    if not path.exists():
        palette_picture(np.zeros((HEIGHT, WIDTH), np.uint8)).save(path)
    draw(path, int(spoon.key))


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
    only_if(spoon.picture is None and spoon.video is None)

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
        _table("coco", "coco", "annotations/instances.json", spoons.add_coco),
        _table("coco_video", "coco_video", "annotations.json", spoons.add_coco_video),
        _table("label_studio", "label_studio", "export.json", spoons.add_label_studio),
        _table("label_studio, pictures", "label_studio_pictures", "export.json", spoons.add_label_studio_picture),
        _table("labelme", "labelme", "labels/0002.json", spoons.add_labelme),
        _table("supervisely", "supervisely", "ds/ann/clip.mp4.json", spoons.add_supervisely),
        _table("supervisely, pictures", "supervisely_pictures", "ds/ann/0002.png.json", spoons.add_supervisely_picture),
        _table("fiftyone", "fiftyone", "frames.json", spoons.add_fiftyone),
        Importer("table, JSON lines", spoons.write_table, spoons.add_table, "rows.jsonl", _OWN),
        Importer("table, CSV", spoons.write_csv, spoons.add_csv, "rows.csv", _OWN),
        Importer(
            "annotate: coco_video",
            exports.coco_video,
            spoons.add_coco_video,
            "annotations.json",
            ("--format", "coco_video"),
        ),
        Importer("annotate: cvat", write_cvat, add_cvat, "clip.xml", ("--format", "cvat")),
        Importer("annotate: davis", write_davis, add_davis, "objects.json", ("--format", "davis")),
        Importer("annotate: release", write_release, add_release, "clip/coco_annotation.json", ("--format", "release")),
    )
}


def frames(importer: Importer) -> list[int]:
    return sorted({frame for frame, _, _ in good(importer.name)})


@cache
def good(name: str) -> Shown:
    """The content of an importer's good export."""
    importer = IMPORTERS[name]
    with tempfile.TemporaryDirectory() as folder:
        importer.write(Path(folder) / "export")
        shown, code, text = run(importer, Path(folder))
    assert code == 0, f"{name}: {text}"
    assert len(shown) == 6, f"{name}: {shown}"
    return shown


def run(importer: Importer, folder: Path) -> tuple[Shown, int, str]:
    """The graph after the import, its exit status, and the output of the command."""
    source = str(folder / "export")
    if importer.is_for_projects:
        (folder / "videos").mkdir()
        write_video(folder / "videos" / "clip.mp4")
        project = start_project(folder / "project", folder / "videos")
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
