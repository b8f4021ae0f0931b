"""Small graphs of the generator's tests, which hold only the facts that a test states."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from barista_bench.generate.candidates import Choice, QuestionCandidate
from barista_bench.generate.scene import Scene
from barista_bench.scene_graph import SceneGraph, encode_mask
from barista_bench.scene_graph.domain import Domain, load_domain
from tests.releases import relation, span, write_release

WIDTH, HEIGHT, FPS = 320, 240, 10.0
Range = tuple[int, int]
Box = tuple[int, int, int, int]
"""(x, y, width, height) in pixels."""

_PLACES = [(x, y, 40, 40) for y in (10, 100, 190) for x in (10, 90, 170, 250)]
"""Boxes apart from each other."""


def graph_document(
    objects: Mapping[str, str],
    *,
    frames: int = 100,
    seen: Mapping[str, Sequence[Range]] | None = None,
    boxes: Mapping[str, Box] | None = None,
    attributes: Sequence[tuple[str, str, str, Range]] = (),
    relations: Sequence[tuple[str, str, str, str, Range]] = (),
    activities: Sequence[tuple[str, Range]] = (),
    steps: Sequence[tuple[str, Range]] = (),
    fps: float = FPS,
) -> dict[str, Any]:
    """An annotation file of these objects (id to category). Only a hand and its touched objects meet, unless `boxes`
    places them; all are visible throughout unless `seen` says otherwise."""
    seen, boxes = seen or {}, boxes or {}
    places = {name: boxes.get(name, default) for name, default in zip(objects, _PLACES, strict=False)}

    touched = {
        (source, frame): target
        for source, kind, _, target, (start, end) in relations
        if kind == "human_actions" and source not in boxes
        for frame in range(start, end)
    }

    def box_of(name: str, frame: int) -> Box | None:
        if not any(start <= frame < end for start, end in seen.get(name, [(0, frames)])):
            return None
        return on_top(places[touched[name, frame]], places[name]) if (name, frame) in touched else places[name]

    contacts = [relation(source, target, kind, value, rows) for source, kind, value, target, rows in relations]
    return annotation_file(objects, box_of, (WIDTH, HEIGHT), frames, fps, attributes, contacts, activities, steps)


def on_top(thing: Box, hand: Box) -> Box:
    """The box of a hand that is on a thing."""
    return thing[0] + thing[2] // 3, thing[1] + thing[3] // 3, *hand[2:]


def annotation_file(
    objects: Mapping[str, str],
    box_of: Callable[[str, int], Box | None],
    size: tuple[int, int],
    frames: int,
    fps: float,
    attributes: Iterable[tuple[str, str, str, Range]] = (),
    relations: Iterable[dict[str, Any]] = (),
    activities: Iterable[tuple[str, Range]] = (),
    steps: Iterable[tuple[str, Range]] = (),
) -> dict[str, Any]:
    """An annotation file of objects (id to category).

    Args:
        box_of: the box of an object on a frame, which is also its mask; None where it is out of the picture.
        size: width and height in pixels.
    """

    @cache
    def mask(box: Box) -> dict[str, Any]:
        x, y, width, height = box
        pixels = np.zeros(size[::-1], dtype=bool)
        pixels[y : y + height, x : x + width] = True
        rle = encode_mask(pixels)
        return {"counts": rle.counts, "size": list(rle.size)}

    def segments(prefix: str, rows: Iterable[tuple[str, Range]]) -> list[dict[str, Any]]:
        return [
            {"image_range": span(*during), "activity_class_id": f"{prefix}-{name}", "display_name": name}
            for name, during in rows
        ]

    length = round(frames / fps * 1000) if fps else 0
    return {
        "video_metadata": [
            {"width": size[0], "height": size[1], "frame_count": frames, "fps": fps, "length_in_ms": length}
        ],
        "categories": [{"id": f"c-{name}", "name": name} for name in dict.fromkeys(objects.values())],
        "object_id_to_category_id": {name: f"c-{category}" for name, category in objects.items()},
        "annotations": [
            {"image_id": frame, "object_id": name, "bbox": list(map(float, box)), "segmentation": mask(box)}
            for frame in range(frames)
            for name in objects
            if (box := box_of(name, frame)) is not None
        ],
        "attributes": [
            {"object_id": name, "attribute_type": kind, "value": value, "image_ranges": [span(*during)]}
            for name, kind, value, during in attributes
        ],
        "relations": list(relations),
        "activities": segments("a", activities),
        "process_steps": segments("s", steps),
    }


def candidate_of(*choices: Choice, **fields: Any) -> QuestionCandidate:
    """A question with its first choice as the right one."""
    usual = {"subtask": "s", "video_id": "v1", "question": "?", "span": (0, 100), "frames": (0,)}
    return QuestionCandidate(right=choices[:1], distractors=choices[1:], **(usual | fields))


def scene_of(root: Path, content: dict[str, Any], domain: Domain | None = None) -> Scene:
    """The scene of one annotation file, `v1`; no video is written."""
    write_release(root, "v1", content, video=False)
    return Scene(SceneGraph(root)["v1"], domain or load_domain())


Said = Sequence[tuple[str, str, str, int, int]]


def table(
    root: Path,
    things: Mapping[str, str],
    *,
    frames: int = 120,
    seen: Mapping[str, Sequence[Range]] | None = None,
    attributes: Said = (),
    contacts: Said = (),
    places: Said = (),
    activities: Sequence[tuple[str, int, int]] = (),
    steps: Sequence[tuple[str, int, int]] = (),
) -> Scene:
    """The scene of things on a table, each on all frames that `seen` does not say.

    Args:
        attributes: (object, type, value, start, end).
        contacts: (hand, value, object, start, end).
        places: (object, predicate, object, start, end).
        activities: (name, start, end); `steps` likewise.
    """
    kinds = (("human_actions", contacts), ("position", places))
    content = graph_document(
        things,
        frames=frames,
        seen=seen,
        attributes=[(name, kind, value, (start, end)) for name, kind, value, start, end in attributes],
        relations=[
            (name, kind, value, other, (start, end)) for kind, rows in kinds for name, value, other, start, end in rows
        ],
        activities=[(name, (start, end)) for name, start, end in activities],
        steps=[(name, (start, end)) for name, start, end in steps],
    )
    return scene_of(root, content)
