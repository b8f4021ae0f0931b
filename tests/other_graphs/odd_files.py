"""The same odd files for every importer, with the expected outcome of each importer.

    python -m tests.other_graphs.odd_files          # writes the table of docs/other_graphs.md
    python -m tests.other_graphs.odd_files --all    # prints exit status and message of every cell

Every export shows a cup and a hand on three frames (`exports.py`). An oddity changes the whole file, or adds a spoon:
a square of 20 x 20 px. The cup and the hand must stay, and the spoon is there, or its loss is counted.
"""

from __future__ import annotations

import gzip
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from barista_bench.scene_graph import encode_mask
from tests.other_graphs.exports import flat, write_pictures
from tests.other_graphs.odd_importers import IMPORTERS, Importer, Shown, draw, frames, good, palette_picture, run
from tests.other_graphs.spoons import SQUARE, Inapplicable, Spoon, edit, only_if
from tests.releases import HEIGHT, WIDTH, write_video

PAGE = Path(__file__).parents[2] / "docs" / "other_graphs.md"
MARK, END = "<!-- The table: python -m tests.other_graphs.odd_files -->", "<!-- end of the table -->"


Change = Callable[[Importer, Path], None]


@dataclass(frozen=True)
class Oddity:
    """An oddity. `may`: the outcomes that obey the rule; `area` of a spoon that is taken.

    `kept`: the frames, of three, that remain after any loss. `adds`: a taken record is seen.
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
    only_if(importer.file.endswith((".json", ".xml")))
    path = root / importer.file
    if path.suffix == ".xml":
        path.write_text("<html><body/></html>")
    else:
        path.write_text('{"a": 1}' if path.read_text().lstrip().startswith("[") else "[1]")


def spoon(**fields: Any) -> Change:
    return lambda importer, root: importer.add(root, Spoon(**fields))


def _runs(counts: object) -> Change:
    return spoon(pieces=None, runs={"size": [HEIGHT, WIDTH], "counts": counts})


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
    only_if(importer.name in places)

    def change(content: Any) -> None:
        for part in places[importer.name]:
            content = content[part]
        content.append(7)

    edit(path, change)


def _other_ids(importer: Importer, root: Path) -> None:
    """Numbers as texts in all keys that hold an id, else texts as numbers."""
    only_if(importer.file.endswith(".json") and importer.name != "annotate: davis")
    keys = "id|image_id|category_id|track_id|video_id|group_id|object_id|objectKey|key"
    keys += "|index" * (importer.name != "supervisely")
    path = root / importer.file
    before = path.read_text()
    after = re.sub(rf'"({keys})": (\d+)', r'"\1": "\2"', before)
    if importer.name in ("visor", "annotate: release"):
        after = re.sub(rf'"({keys})": "(\w)"', lambda found: f'"{found[1]}": {ord(found[2])}', after)
        after = re.sub(r'"(\w)": "c-', lambda found: f'"{ord(found[1])}": "c-', after)
    only_if(after != before)
    path.write_text(after)


def _trailing_blank(importer: Importer, root: Path) -> None:
    path = root / importer.file
    text = path.read_text()
    only_if('"coffee cup"' in text)
    path.write_text(text.replace('"coffee cup"', '"coffee  cup "', 1 if importer.name != "pvsg" else -1))


def _again(importer: Importer, root: Path) -> None:
    """The spoon twice, with one id."""
    importer.add(root, Spoon())
    path = root / importer.file
    if importer.name in ("table, JSON lines", "table, CSV"):
        path.write_text(path.read_text() + path.read_text().splitlines()[-1] + "\n")
        return
    only_if(path.suffix in (".json", ".xml") and importer.name not in ("annotate: davis", "labelme"))
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
    only_if(bool(pictures) and importer.name != "annotate: davis")
    pictures[-1].unlink()


def _other_size(importer: Importer, root: Path) -> None:
    """The masks of the last frame, or the spoon's masks, have another size than the pictures."""
    path = root / importer.file
    if importer.name in ("pvsg", "annotate: davis"):
        last = sorted((root / "data/vidor/masks/clip" if importer.name == "pvsg" else root / "clip").iterdir())[-1]
        palette_picture(np.ones((32, 48), np.uint8)).save(last)
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
        only_if(importer.name not in ("visor", "label_studio", "supervisely", "fiftyone"))
        importer.add(root, Spoon(pieces=None, runs={"size": [32, 48], "counts": [0, 400, 1136]}))


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
        only_if(importer.name not in ("coco", "label_studio, pictures", "labelme", "supervisely, pictures", "visor"))
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
        only_if("label_studio" not in importer.name and "supervisely" not in importer.name)
        importer.add(root, Spoon(video="../secret"))


def _unknown_video(importer: Importer, root: Path) -> None:
    importer.add(root, Spoon(video="8"))


def _sampled(importer: Importer, root: Path) -> None:
    """Masks of each second frame only."""
    only_if(importer.name.endswith("coco_video"))

    def change(content: Any) -> None:
        names = [f"clip/{frame:05d}.jpg" for frame in range(0, 40, 2)]
        content["videos"][0].update(length=20, file_names=names)
        for track in content["annotations"]:
            track["segmentations"] = track["segmentations"][::2]

    importer.add(root, Spoon(moment=2))
    edit(root / importer.file, change)


def _void(importer: Importer, root: Path) -> None:
    only_if(importer.name in ("annotate: davis", "pvsg"))
    folder = root / "clip" if importer.name != "pvsg" else root / "data/vidor/masks/clip"
    draw(sorted(folder.iterdir())[1], 255)


def _one_bit(importer: Importer, root: Path) -> None:
    bits = _square()
    if importer.name == "annotate: davis":
        Image.fromarray(bits).save(root / "clip" / "00020.png")
        edit(root / "objects.json", lambda content: content["clip"].update({"1": ["c", "coffee cup"]}))
    else:
        importer.add(root, Spoon(pieces=None, bits=bits))


def _square() -> np.ndarray:
    bits = np.zeros((HEIGHT, WIDTH), bool)
    bits[8:28, 8:28] = True
    return bits


_NUMBERS = [8 * HEIGHT + 8, *[20, HEIGHT - 20] * 19, 20, HEIGHT * WIDTH - 27 * HEIGHT - 28]
TAKEN, LOST = ("taken",), ("counted",)
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
    "compressed run lengths": Oddity(_runs(encode_mask(_square()).counts), TAKEN),
    "run lengths as numbers": Oddity(_runs(_NUMBERS), TAKEN),
    "damaged run lengths": Oddity(_runs("zzzz~"), LOST),
    "a PNG of one bit": Oddity(_one_bit, TAKEN),
    "the void label, 255": Oddity(_void, LOST),
    "blanks in and after a name": Oddity(_trailing_blank, TAKEN, adds=False),
    "one id twice": Oddity(_again, LOST),
    "a missing picture": Oddity(_no_picture, LOST, kept=(0, 1)),
    "masks of another size": Oddity(_other_size, LOST, kept=(0, 1)),
    "a count of 1,000,000,000 frames": Oddity(_many_frames, WHOLE, kept=(), adds=False),
    "a path out of the folder": Oddity(_outside, ("counted", "refused"), kept=()),
}


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
