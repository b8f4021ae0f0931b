"""PVSG and VISOR in their exact layouts (docs/other_graphs.md), made from kitchens, so that the truth is known."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image

from barista_bench.media.video import read_frames
from barista_bench.other_graphs.importing import ImportReport, import_graphs
from barista_bench.scene_graph import SceneGraph, VideoGraph, validate
from barista_bench.scene_graph.domain import load_domain

EVERY = 6
"""Frames of a kitchen, 30 a second, for one of PVSG."""
SPARSE = 12
"""Frames of a kitchen for one picture of VISOR."""
PART = "epic_kitchen"
CLASSES = {"left hand": 300, "right hand": 301}


def participant(number: int) -> str:
    """A name as EPIC-KITCHENS-100 has them."""
    return f"P{number + 1:02d}_101"


def write_pvsg(kitchen: Path, root: Path, *, withheld: float = 0.0) -> Path:
    """`root/data` as released: `pvsg.json`, frames and masks; `withheld` is the fraction of relations left out."""
    graph, rng = SceneGraph(kitchen), random.Random(0)
    videos = [_pvsg_video(video, graph.video_path(video.video_id), root / "data" / PART) for video in graph]
    for video in videos:
        video["relations"] = [row for row in video["relations"] if rng.random() >= withheld]
    names = sorted({item["category"] for video in videos for item in video["objects"]})
    content = {
        "objects": {"thing": names, "stuff": ["wall"]},
        "relations": sorted({row[2] for video in videos for row in video["relations"]}),
        "split": {PART: {"train": [video["video_id"] for video in videos], "val": []}},
        "data": videos,
    }
    (root / "data" / "pvsg.json").write_text(json.dumps(content))
    return root


def _pvsg_video(video: VideoGraph, path: Path, part: Path) -> dict[str, Any]:
    width, height = video.video.width, video.video.height
    frames = list(range(0, video.frame_count, EVERY))
    for kind in ("frames", "masks"):
        (part / kind / video.video_id).mkdir(parents=True)
    palette = [value for number in range(256) for value in (number, 255 - number, number * 7 % 256)]
    for number, (frame, picture) in enumerate(zip(frames, read_frames(path, frames), strict=True)):
        Image.fromarray(picture).save(part / "frames" / video.video_id / f"{number:04d}.png")
        labels = Image.fromarray(panoptic(video, frame, (height, width)), mode="P")
        labels.putpalette(palette)
        labels.save(part / "masks" / video.video_id / f"{number:04d}.png")
    numbers = {item.id: number for number, item in enumerate(video.objects, start=1)}
    domain = load_domain()
    words = {domain.contact_type: lambda value: domain.contacts[value].doing, domain.place_type: lambda value: value}
    relations = [
        [
            numbers[video.objects[int(table.source[at])].id],
            numbers[video.objects[int(table.target[at])].id],
            words[kind](value),
            [[-(-start // EVERY), (end - 1) // EVERY]],
        ]
        for table in [video.relations_table]
        for at in range(len(table.start))
        for kind, value, start, end, _ in [table.entry(at)]
        if -(-start // EVERY) <= (end - 1) // EVERY
    ]
    return {
        "video_id": video.video_id,
        "meta": {"height": height, "width": width, "fps": 5, "duration": len(frames) / 5, "num_frames": len(frames)},
        "objects": [
            {"object_id": numbers[item.id], "category": item.category, "is_thing": True, "status": []}
            for item in video.objects
        ],
        "relations": relations,
        "captions": [{"time": "0000-0002", "description": "A hand (1) holds a cup (2)."}],
        "qa_pairs": [{"time": "0001", "question": "What is on the table?", "answer": "A cup."}],
        "summary": "Somebody makes coffee.",
    }


def panoptic(video: VideoGraph, frame: int, size: tuple[int, int]) -> np.ndarray:
    """Labels (height, width) of a frame: of masks that overlap the smaller is in front."""
    labels = np.zeros(size, np.uint8)
    masks = [(video.mask(item), video.objects.index(item.object) + 1) for item in video.instances(frame)]
    for mask, number in sorted(masks, key=lambda row: -row[0].sum()):
        labels[mask] = number
    return labels


def write_visor(kitchen: Path, root: Path, *, size: tuple[int, int] = (640, 360), withheld: float = 0.0) -> Path:
    """`root/GroundTruth-SparseAnnotations` as released; `withheld` is the fraction of entities left out, and with
    each the claim that a picture has all of that name."""
    graph, rng = SceneGraph(kitchen), random.Random(0)
    release = root / "GroundTruth-SparseAnnotations"
    for number, video in enumerate(graph):
        name, split = participant(number), "train" if number else "val"
        frames = list(range(0, video.frame_count, SPARSE))
        pictures = release / "rgb_frames" / split / name[:3] / name
        pictures.mkdir(parents=True)
        (release / "annotations" / split).mkdir(parents=True, exist_ok=True)
        rows = []
        for frame, picture in zip(frames, read_frames(graph.video_path(video.video_id), frames), strict=True):
            file = f"{name}_frame_{frame + 1:010d}.jpg"
            Image.fromarray(picture).resize(size, Image.Resampling.NEAREST).save(pictures / file)
            sub = f"{name}_seq_{frame // 100 + 1:05d}"
            image = {"image_path": f"{name}/{file}", "name": file, "subsequence": sub, "video": name}
            rows.append({"image": image, "annotations": list(_entities(video, frame, rng, withheld))})
        content = {"info": {"description": "stand-in"}, "video_annotations": rows}
        (release / "annotations" / split / f"{name}.json").write_text(json.dumps(content))
    return root


def _entities(video: VideoGraph, frame: int, rng: random.Random, withheld: float) -> Iterable[dict[str, Any]]:
    scale = np.array([1920 / video.video.width, 1080 / video.video.height])
    contacts: dict[str, set[str]] = {}
    for row in video.hand_contacts(frame):
        contacts.setdefault(row.hand.id, set()).add(row.object.id)
    shown = [item for item in video.instances(frame) if rng.random() >= withheld]
    gone = {item.object.category for item in video.instances(frame)} if len(shown) < len(video.boxes(frame)) else set()
    ids = {item.object.id for item in shown}
    for item in shown:
        outlines = _outlines(video.mask(item))
        entity: dict[str, Any] = {
            "id": item.object.id,
            "name": item.object.category,
            "class_id": CLASSES.get(item.object.category, 7),
            "segments": [(outline * scale).tolist() for outline in outlines],
            "exhaustive": "inconclusive" if item.object.category in gone else "y",
        }
        if item.object.category in CLASSES:
            touched = contacts.get(item.object.id, set())
            one = next(iter(touched), "hand-not-in-contact") if len(touched) < 2 else "inconclusive"
            entity["in_contact_object"] = one if one in ids or len(touched) != 1 else "none-of-the-above"
        if entity["segments"]:
            yield entity


def _outlines(mask: np.ndarray) -> list[np.ndarray]:
    """Outlines along the edges of pixels, (points, 2), so that the polygon covers the pixels of the mask."""
    grown = np.kron(mask.astype(np.uint8), np.ones((4, 4), np.uint8))
    found, _ = cv2.findContours(grown, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    return [(outline[:, 0, :] + 0.5) / 4 for outline in found if len(outline) >= 3]


def imported(reader: str, root: Path) -> tuple[VideoGraph, ImportReport]:
    """The only video of a source as a valid graph, in `graphs` beside the source."""
    out = root.parent / "graphs"
    report = import_graphs(reader, root, out)
    assert not validate(out).problems
    (graph,) = SceneGraph(out)
    return graph, report
