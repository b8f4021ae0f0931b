"""Annotation files that claim or hold far too much of one thing, by name: all are made here, and small on the disk."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from tests.releases import BUTTON, CUP, FRAMES, HEIGHT, LEFT, MACHINE, RIGHT, WIDTH, document, relation, span

HostileFile = Callable[[random.Random], bytes]
MANY = 20_000
"""Records of files that hold many: a few megabytes."""
WHOLE = (0, 2**31 - 1)


def claiming(**metadata: Any) -> HostileFile:
    """A sound file whose video claims to be another one."""

    def make(_: random.Random) -> bytes:
        content = document()
        content["video_metadata"][0] |= metadata
        return as_bytes(content)

    return make


def claiming_and_covered(frames: int, objects: int = 5, ranges: int = 1, boxed: int = 0) -> HostileFile:
    """Everything in the file holds over all the frames that it claims; hand and cup are to be seen on `boxed`."""

    def make(_: random.Random) -> bytes:
        content = document()
        content["video_metadata"][0]["frame_count"] = frames
        add_objects(content, objects)
        content["activities"] = [segment(0, frames, "a1", "Place cup"), segment(0, frames, "a2", "Press button")]
        content["process_steps"] = [segment(0, frames, "s1", "Extract coffee")]
        content["relations"] = [
            relation(LEFT, CUP, "human_actions", f"holds {number % 500}", WHOLE) for number in range(ranges)
        ]
        content["attributes"] += [
            {"object_id": CUP, "attribute_type": "color", "value": f"white {n % 500}", "image_ranges": [span(*WHOLE)]}
            for n in range(ranges)
        ]
        content["annotations"].append({**content["annotations"][0], "image_id": frames - 1})
        box = {"bbox": [1, 1, 20, 20], "segmentation": content["annotations"][0]["segmentation"]}
        content["annotations"] += [
            {"image_id": frame, "object_id": name, **box} for frame in range(FRAMES, boxed) for name in (LEFT, CUP)
        ]
        return as_bytes(content)

    return make


def segment(start: int, end: int, class_id: str, name: str) -> dict[str, Any]:
    return {"image_range": span(start, end), "activity_class_id": class_id, "display_name": name}


def add_objects(content: dict[str, Any], count: int, *, frames: int = 0) -> None:
    """More objects; with `frames`, each has a box on this many frames."""
    content["object_id_to_category_id"] |= {f"more-{number}": "c-coffee cup" for number in range(count)}
    content["annotations"] += [
        {**content["annotations"][0], "image_id": frame, "object_id": f"more-{number}"}
        for number in range(count)
        for frame in range(frames)
    ]


def with_section(section: str, records: Callable[[random.Random], list[Any]]) -> HostileFile:
    """A sound file with these records after its own in one section."""

    def make(rng: random.Random) -> bytes:
        content = document()
        content[section] = [*content[section], *records(rng)]
        return as_bytes(content)

    return make


def with_masks(segmentation: Callable[[random.Random], Any], count: int = 170) -> HostileFile:
    """A sound file whose first annotations have these masks instead."""

    def make(rng: random.Random) -> bytes:
        content = document()
        for annotation in content["annotations"][:count]:
            annotation["segmentation"] = segmentation(rng)
        return as_bytes(content)

    return make


def changed(change: Callable[[dict[str, Any]], Any]) -> HostileFile:
    def make(_: random.Random) -> bytes:
        content = document()
        change(content)
        return as_bytes(content)

    return make


def replaced(old: str, new: Callable[[], str]) -> HostileFile:
    """A sound file in whose text `old` stands otherwise, wherever it stands first."""

    def make(_: random.Random) -> bytes:
        text = json.dumps(document())
        assert old in text, old
        return text.replace(old, new(), 1).encode()

    return make


def as_bytes(content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def many_ranges(count: int, start: int, end: int, records: int = 1) -> HostileFile:
    """Relations that all hold the same range again and again."""
    item = relation(LEFT, CUP, "human_actions", "touches", (start, end))

    def make(_: random.Random) -> bytes:
        content = document()
        content["relations"] = ["MARK"]
        text = json.dumps({**item, "image_ranges": ["RANGES"]}, separators=(",", ":"))
        ranges = ",".join([json.dumps(span(start, end), separators=(",", ":"))] * (count // records))
        return as_bytes(content).replace(b'"MARK"', ",".join([text.replace('"RANGES"', ranges)] * records).encode())

    return make


def random_ranges(rng: random.Random) -> list[Any]:
    return [
        relation(LEFT, CUP, "human_actions", "holds", (rng.randint(-(2**31), 2**31 - 1), rng.randint(-9, 2**31 - 1)))
        for _ in range(MANY)
    ]


def overlapping_segments(rng: random.Random) -> list[Any]:
    return [segment(rng.randint(0, 9), rng.randint(20, 40), f"a{n % 50}", f"Do {n % 50}") for n in range(MANY)]


def far_polygon(rng: random.Random) -> Any:
    return [[0, 0, 10.0 ** rng.randint(3, 300), 0, 0, 10.0 ** rng.randint(3, 300)]]


def zigzag(points: int) -> list[float]:
    return [coordinate for n in range(points) for coordinate in (n % 2 * 95, n // 2 % 64)]


def nested(depth: int, opening: str = "[", closing: str = "]") -> str:
    return opening * depth + closing * depth


LONG = 2_000_000
"""Characters of a long text."""

HOSTILE: dict[str, HostileFile] = {
    # the claims of the video
    "ten million frames": claiming(frame_count=10_000_000),
    "ten million frames, all covered": claiming_and_covered(10_000_000),
    "ten million frames, 2,000 objects": claiming_and_covered(10_000_000, objects=2_000),
    "a million frames, 300 ranges over all": claiming_and_covered(1_000_000, ranges=300),
    "a hundred thousand frames, 2,000 objects and ranges": claiming_and_covered(99_999, objects=2_000, ranges=2_000),
    "a hundred thousand frames, 4,800 ranges of each kind, 1,200 frames with boxes": claiming_and_covered(
        99_999, objects=9_000, ranges=4_800, boxed=1_200
    ),
    "more frames than numbers hold": claiming(frame_count=10**30),
    "minus one frame": claiming(frame_count=-1),
    "frames as a text": claiming(frame_count="10000000"),
    "frames as a fraction": claiming(frame_count=1e7),
    "16,384 pixels a side": claiming(width=16_384, height=16_384),
    "8,192 pixels a side": claiming(width=8_192, height=8_192),
    "8,192 by 4,096 pixels": claiming(width=8_192, height=4_096),
    "16,384 by 1 pixel": claiming(width=16_384, height=1),
    "more pixels than numbers hold": claiming(width=2**63, height=2**63),
    "a thousandth of a frame a second": claiming(fps=1e-300),
    "a huge rate": claiming(fps=1e300),
    "NaN frames a second": claiming(fps=float("nan")),
    "an endless length": claiming(length_in_ms=float("inf")),
    # many records
    "many objects": changed(lambda content: add_objects(content, 60_000)),
    "many objects on a frame": changed(lambda content: add_objects(content, 6_000, frames=1)),
    "many objects on all frames": changed(lambda content: add_objects(content, 400, frames=FRAMES)),
    "one object many times on a frame": with_section(
        "annotations", lambda _: [{**document()["annotations"][0], "image_id": 3} for _ in range(MANY)]
    ),
    "many unknown objects": with_section(
        "annotations", lambda _: [{"image_id": 1, "object_id": f"x{n}", "bbox": [0, 0, 1, 1]} for n in range(MANY)]
    ),
    "many annotations past the end": with_section(
        "annotations", lambda _: [{**document()["annotations"][0], "image_id": 2**31 - 1 - n} for n in range(MANY)]
    ),
    "many categories": with_section("categories", lambda _: [{"id": f"c{n}", "name": f"n{n}"} for n in range(MANY)]),
    "many categories of one name": with_section(
        "categories", lambda _: [{"id": f"c{n}", "name": " cup" * (n % 9 + 1)} for n in range(MANY)]
    ),
    "a million ranges in one relation": many_ranges(1_000_000, 0, 40),
    "many ranges that are empty": many_ranges(100_000, 7, 7),
    "many ranges past the end": many_ranges(100_000, 0, 2**31 - 1, records=10_000),
    "as many ranges as a file may have": many_ranges(9_900, 0, 2**31 - 1, records=900),
    "a range a record": many_ranges(MANY, 0, 40, records=MANY),
    "random ranges": with_section("relations", random_ranges),
    "many ranges of one attribute": with_section(
        "attributes",
        lambda _: [
            {"object_id": CUP, "attribute_type": "color", "value": "red", "image_ranges": [span(0, 40)] * 100_000}
        ],
    ),
    "many values of relations": with_section(
        "relations", lambda _: [relation(LEFT, CUP, "human_actions", f"does {n}", (0, 40)) for n in range(MANY)]
    ),
    "many types of relations": with_section(
        "relations", lambda _: [relation(CUP, MACHINE, f"type {n}", "on", (0, 40)) for n in range(MANY)]
    ),
    "many colors": with_section(
        "attributes",
        lambda _: [
            {"object_id": CUP, "attribute_type": "color", "value": f"c{n}", "image_ranges": [span(0, 40)]}
            for n in range(MANY)
        ],
    ),
    "many activities at once": with_section("activities", overlapping_segments),
    "many steps at once": with_section("process_steps", overlapping_segments),
    "many records of nothing": with_section("relations", lambda _: [None] * 500_000),
    "many coverage ranges": changed(lambda content: content.update(coverage={"frames": [span(0, 40)] * 200_000})),
    "coverage of many categories": changed(
        lambda content: content.update(
            coverage={"frames": [span(0, 40)], "categories": {f"n{n}": [span(0, 40)] for n in range(MANY)}}
        )
    ),
    # deep and odd JSON
    "deep JSON": lambda _: nested(1_000_000).encode(),
    "deep objects": lambda _: nested(300_000, '{"a":', "}").replace("}", "1}", 1).encode(),
    "deep JSON in an unknown key": replaced('"relations": [', lambda: f'"deep": {nested(900_000)}, "relations": ['),
    "JSON of medium depth in an unknown key": replaced(
        '"relations": [', lambda: f'"deep": {nested(900)}, "relations": ['
    ),
    "deep JSON in a mask": replaced('"size": [64, 96]', lambda: f'"size": {nested(500_000)}'),
    "deep JSON in a box": replaced('"bbox": [4.0', lambda: f'"bbox": [{nested(500_000)}, 4.0'),
    "deep masks all over": with_masks(lambda _: json.loads(nested(500))),
    "an unclosed list": lambda _: b"[" * 2_000_000,
    "many empty lists": replaced('"relations": [', lambda: f'"more": [{"[]," * 700_000}[]], "relations": ['),
    "many empty objects": replaced('"relations": [', lambda: f'"more": [{"{}," * 700_000}{{}}], "relations": ['),
    "many keys": replaced(
        '"relations": [', lambda: ",".join(f'"k{n}":{n}' for n in range(200_000)) + ', "relations": ['
    ),
    "a key many times": replaced('"relations": [', lambda: '"activities": [], ' * 100_000 + '"relations": ['),
    "many NaN": replaced('"relations": [', lambda: f'"more": [{"NaN," * 300_000}NaN], "relations": ['),
    "NaN in every box": changed(lambda content: [a.update(bbox=[float("nan")] * 4) for a in content["annotations"]]),
    "numbers of many digits": replaced('"frame_count": 40', lambda: '"frame_count": ' + "9" * LONG),
    "a fraction of many digits": replaced('"fps": 30.0', lambda: '"fps": 30.' + "1" * LONG),
    "a huge exponent": replaced('"bbox": [4.0', lambda: '"bbox": [1e999999999'),
    "many blanks": lambda _: b" " * LONG + as_bytes(document()) + b"\n" * LONG,
    # masks
    "many polygons": with_masks(lambda _: [[4, 4, 44, 4, 44, 54, 4, 54]] * 20_000, 3),
    "many polygons everywhere": with_masks(lambda _: [[4, 4, 44, 4, 44, 54, 4, 54]] * 300),
    "many tiny polygons": with_masks(lambda _: [[4, 4, 4.1, 4, 4.1, 4.1]] * 30_000, 3),
    "a polygon of many corners": with_masks(lambda _: [zigzag(100_000)], 3),
    "far polygons": with_masks(far_polygon),
    "empty polygons": with_masks(lambda _: [[]] * 1_000),
    "many runs": with_masks(lambda _: {"counts": "01" * 50_000, "size": [HEIGHT, WIDTH]}, 20),
    "a run past the end": with_masks(lambda _: {"counts": "o" * 6 + "0", "size": [HEIGHT, WIDTH]}),
    "a mask of another size": with_masks(lambda _: {"counts": "PPPP8", "size": [16_384, 16_384]}),
    "full masks of the largest frame that is read": changed(lambda content: huge_masks(content, 5_792)),
    "full masks of a larger frame": changed(lambda content: huge_masks(content, 8_000)),
    # long texts
    "a long category": replaced('"name": "coffee cup"', lambda: f'"name": "{"cup " * (LONG // 4)}"'),
    "a long activity": replaced('"Place cup"', lambda: f'"Place {"x" * LONG}"'),
    "a long value": replaced('"value": "white"', lambda: f'"value": "{"white " * (LONG // 6)}"'),
    "a long relation": replaced('"value": "under"', lambda: f'"value": "{"u" * LONG}"'),
    "a long device": claiming(recording_device_type="d" * LONG),
    "a long object id": lambda _: json.dumps(document()).replace(BUTTON, "o" * 20_000).encode(),
    "a long object id once": replaced(f'"{RIGHT}": "c-right hand"', lambda: f'"{"o" * LONG}": "c-right hand"'),
    "a long unknown key": replaced('"relations": [', lambda: f'"{"k" * LONG}": 1, "relations": ['),
    "a long text of wide letters": replaced('"Place cup"', lambda: f'"Place {chr(0x1F600) * (LONG // 4)}"'),
    "a long text of escapes": replaced('"Place cup"', lambda: '"Place ' + r"\ud83d\ude00" * (LONG // 12) + '"'),
    "half a pair of surrogates": replaced('"Place cup"', lambda: r'"Place \ud83d"'),
}
"""Each beside a sound video of 40 frames of 96 x 64 pixels."""


def huge_masks(content: dict[str, Any], side: int) -> None:
    """Every object is the whole frame, of this side."""
    from pycocotools import mask as coco_mask

    counts = coco_mask.frPyObjects({"size": [side, side], "counts": [0, side * side]}, side, side)["counts"].decode()
    content["video_metadata"][0] |= {"width": side, "height": side}
    for annotation in content["annotations"]:
        annotation |= {"bbox": [0, 0, side, side], "segmentation": {"counts": counts, "size": [side, side]}}


LOST = frozenset(
    {
        "16,384 by 1 pixel",
        "16,384 pixels a side",
        "8,192 pixels a side",
        "a long device",
        "a million frames, 300 ranges over all",
        "a range a record",
        "an unclosed list",
        "deep JSON",
        "deep JSON in a box",
        "deep JSON in a mask",
        "deep JSON in an unknown key",
        "deep objects",
        "frames as a fraction",
        "frames as a text",
        "full masks of a larger frame",
        "half a pair of surrogates",
        "many activities at once",
        "many categories",
        "many categories of one name",
        "many colors",
        "many objects",
        "many ranges past the end",
        "many steps at once",
        "many types of relations",
        "many values of relations",
        "minus one frame",
        "more frames than numbers hold",
        "more pixels than numbers hold",
        "numbers of many digits",
        "random ranges",
        "ten million frames",
        "ten million frames, 2,000 objects",
        "ten million frames, all covered",
    }
)
"""Those that are more than `scene_graph/limits.py` allows, or are no graph at all: they cost their video."""
