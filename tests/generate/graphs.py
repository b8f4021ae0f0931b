"""Small graphs of the generator's tests: whatever a test says of them, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from barista_bench.generate.scene import Scene
from barista_bench.scene_graph import SceneGraph, encode_mask
from barista_bench.scene_graph.domain import Domain, load_domain
from tests.releases import relation, span

WIDTH, HEIGHT, FPS = 320, 240, 10.0
Range = tuple[int, int]

_PLACES = [(x, y, 40, 40) for y in (10, 100, 190) for x in (10, 90, 170, 250)]
"""Boxes apart from each other, (x, y, width, height)."""


def graph_document(
    objects: Mapping[str, str],
    *,
    frames: int = 100,
    seen: Mapping[str, Sequence[Range]] | None = None,
    boxes: Mapping[str, tuple[int, int, int, int]] | None = None,
    attributes: Sequence[tuple[str, str, str, Range]] = (),
    relations: Sequence[tuple[str, str, str, str, Range]] = (),
    activities: Sequence[tuple[str, Range]] = (),
    steps: Sequence[tuple[str, Range]] = (),
    fps: float = FPS,
) -> dict[str, Any]:
    """An annotation file of these objects (id to category), apart from each other, and seen throughout unless `seen`
    says otherwise."""
    seen, boxes = seen or {}, boxes or {}
    places = {name: boxes.get(name, place) for name, place in zip(objects, _PLACES, strict=False)}
    masks = {name: _segmentation(box) for name, box in places.items()}
    return {
        "video_metadata": [{"width": WIDTH, "height": HEIGHT, "frame_count": frames, "fps": fps}],
        "categories": [{"id": f"c-{name}", "name": name} for name in sorted(set(objects.values()))],
        "object_id_to_category_id": {name: f"c-{category}" for name, category in objects.items()},
        "annotations": [
            {"image_id": frame, "object_id": name, "bbox": list(map(float, places[name])), "segmentation": masks[name]}
            for frame in range(frames)
            for name in objects
            if any(start <= frame < end for start, end in seen.get(name, [(0, frames)]))
        ],
        "attributes": [
            {"object_id": name, "attribute_type": kind, "value": value, "image_ranges": [span(*frames_of)]}
            for name, kind, value, frames_of in attributes
        ],
        "relations": [
            relation(source, target, kind, value, frames_of) for source, kind, value, target, frames_of in relations
        ],
        "activities": _segments("a", activities),
        "process_steps": _segments("s", steps),
    }


def _segments(prefix: str, rows: Sequence[tuple[str, Range]]) -> list[dict[str, Any]]:
    return [
        {"image_range": span(*frames), "activity_class_id": f"{prefix}-{name}", "display_name": name}
        for name, frames in rows
    ]


def _segmentation(box: tuple[int, int, int, int]) -> dict[str, Any]:
    x, y, width, height = box
    mask = np.zeros((HEIGHT, WIDTH), dtype=bool)
    mask[y : y + height, x : x + width] = True
    rle = encode_mask(mask)
    return {"counts": rle.counts, "size": list(rle.size)}


def scene_of(root: Path, content: dict[str, Any], domain: Domain | None = None) -> Scene:
    """The scene of one annotation file; no video is written."""
    folder = root / "v1"
    folder.mkdir(parents=True)
    (folder / "coco_annotation.json").write_text(json.dumps(content), encoding="utf-8")
    return Scene(SceneGraph(root)["v1"], domain or load_domain())
