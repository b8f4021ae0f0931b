"""Show generated questions beside their frames in one self-contained HTML file, for people who check the questions.

    python scripts/contact_sheet.py --source GRAPHS --items mine/egocot.items.jsonl --out sheet.html --number 50

Items are drawn by seed. Each item has its choices, with the right choices marked, and its frames in the order in which
they are shown. Frames have the boxes of the objects that the item's statements name. Joined clips have one row each.
`--images FOLDER` also writes each item's frames as one JPEG.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import random
from pathlib import Path
from typing import Any

import jinja2
from PIL import Image, ImageDraw

from barista_bench.files.writing import write_whole
from barista_bench.media.frame_choice import evenly_spaced
from barista_bench.media.video import open_reader
from barista_bench.scene_graph import SceneGraph, VideoGraph

WIDTH = 480
"""Width of a frame on the sheet, in pixels."""
ALONG = 6
COLUMNS = 3
COLOURS = ("#ff3030", "#30ff30", "#30a0ff", "#ffd000", "#ff60ff", "#00ffff")
PAGE = jinja2.Template(
    """<!doctype html><meta charset="utf-8"><title>{{ title }}</title>
<style>body{font:15px sans-serif;max-width:1300px;margin:auto}section{border-top:1px solid #999;padding:1em 0}
img{max-width:100%}.right{font-weight:bold;color:#060}</style>
<h1>{{ title }}</h1>
{% for item in items %}<section><h2>{{ item.id }}</h2><p>{{ item.video_id }}, {{ item.subtask }}</p>
<p>{{ item.question }}{% if item.subtask.startswith("rvos") %}
(answered by masks, without options){% endif %}</p>
<ol type="A">{% for choice in item.choices %}
<li{% if loop.index0 in item.correct %} class="right"{% endif %}>{{ choice.text }}</li>{% endfor %}</ol>
<img alt="frames of {{ item.id }}" src="data:image/jpeg;base64,{{ item.picture }}"></section>
{% endfor %}""",
    autoescape=True,
)


def sample_items(path: Path, number: int, seed: int) -> list[dict[str, Any]]:
    """Return at most `number` items of a file. Subtasks take turns."""
    items = [json.loads(line) for line in path.read_bytes().splitlines()]
    random.Random(seed).shuffle(items)  # noqa: S311
    turns: dict[str, int] = {}
    ranked = []
    for index, item in enumerate(items):
        turn = turns[item["subtask"]] = turns.get(item["subtask"], 0) + 1
        ranked.append((turn, index, item))
    return [item for _, _, item in sorted(ranked, key=lambda row: row[:2])][:number]


def frames_of(item: dict[str, Any]) -> list[int]:
    """Return the frames that a reader must see: frames along the clip, and the moments that the item names, in order.

    If clips are joined, each has one row of frames, in the order in which they are joined.
    """
    clips = item["extra"].get("spans") or [item["span"]]
    if len(clips) > 1:
        return [start + index for start, stop in clips for index in evenly_spaced(stop - start, COLUMNS)]
    (start, stop), moments = clips[0], asked_frames(item)
    along = [start + index for index in evenly_spaced(stop - start, ALONG)]
    return sorted({*moments, *along})


def asked_frames(item: dict[str, Any]) -> set[int]:
    """Return the frames of the question and of the choices' statements."""
    parts = [choice["statement"] for choice in item["choices"]]
    parts += [part for statement in parts for part in statement.get("parts", ())]
    ends = {part["end"] - 1 for part in parts if "end" in part}
    return {
        *item["frames"],
        *ends,
        *(part[key] for part in parts for key in ("frame", "until", "start") if key in part),
    }


def named_objects(statement: object) -> list[str]:
    """Return the object ids that a statement names, in order."""
    if isinstance(statement, list):
        return [name for part in statement for name in named_objects(part)]
    if not isinstance(statement, dict):
        return []
    named = [statement[key] for key in ("object", "other") if isinstance(statement.get(key), str)]
    deeds = [statement[key][1] for key in ("left", "right") if isinstance(statement.get(key), list)]
    inner = [name for value in statement.values() for name in named_objects(value)]
    return [*named, *deeds, *statement.get("objects", ()), *inner]


def picture(item: dict[str, Any], graph: VideoGraph, path: Path) -> bytes:
    """Return the frames of an item in rows, as one JPEG."""
    statements = [choice["statement"] for choice in item["choices"]]
    ids = list(dict.fromkeys([*item["objects"], *named_objects(statements)]))
    colours = dict(zip(ids, COLOURS * (len(ids) // len(COLOURS) + 1), strict=False))
    frames, moments = frames_of(item), asked_frames(item)
    with open_reader(path) as reader:
        pictures = [Image.fromarray(rgb) for rgb in reader.read(frames)]
        fps = graph.video.fps or reader.fps
    height = round(pictures[0].height * WIDTH / pictures[0].width)
    sheet = Image.new("RGB", (WIDTH * COLUMNS, (height + 14) * -(-len(frames) // COLUMNS)))
    for index, (frame, full) in enumerate(zip(frames, pictures, strict=True)):
        small = full.resize((WIDTH, height))
        mark_objects(small, graph, frame, colours, WIDTH / full.width)
        left, top = index % COLUMNS * WIDTH, index // COLUMNS * (height + 14)
        sheet.paste(small, (left, top + 14))
        mark = " ASKED" if frame in moments else ""
        ImageDraw.Draw(sheet).text((left + 2, top + 1), f"frame {frame} {frame / fps:.2f} s{mark}", fill="white")
    content = io.BytesIO()
    sheet.save(content, "JPEG", quality=80)
    return content.getvalue()


def mark_objects(image: Image.Image, graph: VideoGraph, frame: int, colours: dict[str, str], scale: float) -> None:
    pen = ImageDraw.Draw(image)
    for instance in graph.instances(frame):
        if instance.object.id in colours:
            x, y, width, height = (side * scale for side in instance.bbox)
            colour = colours[instance.object.id]
            pen.rectangle((x, y, x + width, y + height), outline=colour)
            pen.text((x + 2, y + 1), instance.object.category, fill=colour)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", required=True, help="folder of scene graphs and videos")
    parser.add_argument("--items", required=True, type=Path, help="items.jsonl of a family")
    parser.add_argument("--out", required=True, type=Path, help="HTML file to write")
    parser.add_argument("--number", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--images", type=Path, help="folder for one JPEG an item")
    options = parser.parse_args()
    source = SceneGraph(options.source)
    items = sample_items(options.items, options.number, options.seed)
    for number, item in enumerate(items):
        content = picture(item, source[item["video_id"]], source.video_path(item["video_id"]))
        item["picture"] = base64.b64encode(content).decode()
        if options.images:
            options.images.mkdir(parents=True, exist_ok=True)
            (options.images / f"{number:02d}.jpg").write_bytes(content)
    write_whole(options.out, PAGE.render(title=f"{len(items)} items of {options.items}", items=items))
    print(f"wrote {len(items)} items to {options.out}")


if __name__ == "__main__":
    main()
