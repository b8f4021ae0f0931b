"""Small exports of annotation tools, with the true place of all that is in them: a clip of 40 frames of 96 x 64 px.

A cup of 20 x 20 px is at (50, 30) on frames 10 to 12, a left hand of 10 x 16 px at (44, 40).
"""

from __future__ import annotations

import base64
import io
import json
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.releases import HEIGHT, WIDTH, write_video

CUP, HAND = (50, 30, 20, 20), (44, 40, 10, 16)
SEEN = (10, 11, 12)
THINGS = {"coffee cup": CUP, "left hand": HAND}


def corners(box: tuple[int, int, int, int]) -> list[tuple[int, int]]:
    x, y, width, height = box
    return [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]


def flat(box: tuple[int, int, int, int]) -> list[int]:
    return [number for corner in corners(box) for number in corner]


def write_json(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def write_pictures(folder: Path, count: int = 3, size: tuple[int, int] = (WIDTH, HEIGHT)) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{number:04d}.png" for number in range(1, count + 1)]
    for number, name in enumerate(names):
        Image.new("RGB", size, (40 * number, 90, 90)).save(folder / name)
    return names


def png(bits: np.ndarray) -> bytes:
    held = io.BytesIO()
    Image.fromarray(bits.astype(np.uint8) * 255).save(held, "PNG")
    return held.getvalue()


def packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content)).decode()


def coco(root: Path) -> None:
    """Pictures with tracks: the cup by polygons, the hand by a box."""
    names = write_pictures(root / "images" / "clip")
    shapes: dict[str, dict[str, Any]] = {
        "coffee cup": {"segmentation": [flat(CUP)], "bbox": list(CUP), "attributes": {"color": "white"}},
        "left hand": {"segmentation": [], "bbox": list(HAND)},
    }
    images = [
        {"id": number, "file_name": f"clip/{name}", "width": WIDTH, "height": HEIGHT}
        for number, name in enumerate(names)
    ]
    annotations = [
        {"id": 10 * image["id"] + kind, "image_id": image["id"], "category_id": kind, "track_id": kind, **shapes[name]}
        for image in images
        for kind, name in enumerate(THINGS, start=1)
    ]
    categories = [{"id": kind, "name": name} for kind, name in enumerate(THINGS, start=1)]
    write_json(
        root / "annotations" / "instances.json",
        {"images": images, "annotations": annotations, "categories": categories},
    )


def coco_video(root: Path) -> None:
    (root / "videos").mkdir(parents=True)
    write_video(root / "videos" / "clip.mp4")
    masks = {name: [[flat(box)] if frame in SEEN else None for frame in range(40)] for name, box in THINGS.items()}
    write_json(
        root / "annotations.json",
        {
            "videos": [{"id": 1, "width": WIDTH, "height": HEIGHT, "length": 40, "name": "clip"}],
            "categories": [{"id": kind, "name": name} for kind, name in enumerate(THINGS, start=1)],
            "annotations": [
                {"id": kind, "video_id": 1, "category_id": kind, "segmentations": masks[name]}
                for kind, name in enumerate(THINGS, start=1)
            ],
        },
    )


def label_studio(root: Path) -> None:
    """A track of boxes with two keyframes, a time line, a relation, an attribute."""
    root.mkdir(parents=True)
    write_video(root / "clip.mp4")
    results: list[dict[str, Any]] = []
    for name, (x, y, width, height) in THINGS.items():
        place = {
            "x": 100 * x / WIDTH,
            "y": 100 * y / HEIGHT,
            "width": 100 * width / WIDTH,
            "height": 100 * height / HEIGHT,
            "rotation": 0,
        }
        sequence = [{**place, "frame": 11, "enabled": True}, {**place, "frame": 13, "enabled": False}]
        value = {"framesCount": 40, "sequence": sequence, "labels": [name]}
        results.append(
            {"id": name[:4], "type": "videorectangle", "from_name": "box", "to_name": "video", "value": value}
        )
    results += [
        {"id": "coff", "type": "choices", "from_name": "color", "value": {"choices": ["white"]}},
        {"type": "relation", "from_id": "left", "to_id": "coff", "direction": "right", "labels": ["holds"]},
        {
            "id": "t",
            "type": "timelinelabels",
            "value": {"ranges": [{"start": 11, "end": 30}], "timelinelabels": ["Take cup"]},
        },
    ]
    task = {
        "id": 1,
        "data": {"video": "/data/upload/1/0a1b2c3d-clip.mp4"},
        "annotations": [{"id": 1, "was_cancelled": True, "result": []}, {"id": 2, "result": results}],
    }
    write_json(root / "export.json", [task])


def label_studio_pictures(root: Path) -> None:
    """Boxes in percent, a polygon, and a brush."""
    tasks = []
    for name in write_pictures(root / "pictures"):
        size = {"original_width": WIDTH, "original_height": HEIGHT}
        points = [[100 * x / WIDTH, 100 * y / HEIGHT] for x, y in corners(CUP)]
        bits = np.zeros((HEIGHT, WIDTH), bool)
        x, y, width, height = HAND
        bits[y : y + height, x : x + width] = True
        results = [
            {"id": "a", "type": "polygonlabels", "value": {"points": points, "polygonlabels": ["coffee cup"]}, **size},
            {
                "id": "b",
                "type": "brushlabels",
                "value": {"format": "rle", "rle": brush(bits), "brushlabels": ["left hand"]},
                **size,
            },
        ]
        tasks.append(
            {"id": 1, "data": {"image": f"/data/local-files/?d=pictures/{name}"}, "annotations": [{"result": results}]}
        )
    write_json(root / "export.json", tasks)


def brush(bits: np.ndarray) -> list[int]:
    """Label Studio's run lengths of a mask; the first pixels word by word, the rest as runs."""
    data = np.repeat(bits.reshape(-1, 1).astype(np.uint8) * 255, 4, axis=1).ravel()
    text = f"{len(data):032b}{7:05b}" + "".join(f"{size - 1:04b}" for size in (3, 4, 8, 16))
    text += "0" + "10" + f"{7:08b}" + "".join(f"{word:08b}" for word in data[:8])
    edges = [8, *(np.flatnonzero(np.diff(data[8:].astype(int))) + 9).tolist(), len(data)]
    for start, end in pairwise(edges):
        text += "1" + "11" + f"{end - start - 1:016b}" + f"{data[start]:08b}"
    text += "0" * (-len(text) % 8)
    return [int(text[at : at + 8], 2) for at in range(0, len(text), 8)]


def labelme(root: Path) -> None:
    """A cup in two pieces of one group, and a hand as a picture of its mask."""
    x, y, width, height = CUP
    for name in write_pictures(root / "frames"):
        halves = [(x, y, width // 2, height), (x + width // 2, y, width // 2, height)]
        shapes: list[dict[str, Any]] = [
            {
                "label": "coffee cup",
                "points": corners(half),
                "group_id": 1,
                "shape_type": "polygon",
                "flags": {"white": True},
            }
            for half in halves
        ]
        bits = np.ones((HAND[3], HAND[2]), bool)
        shapes.append(
            {
                "label": "left hand",
                "points": [[HAND[0], HAND[1]], [HAND[0] + HAND[2] - 1, HAND[1] + HAND[3] - 1]],
                "group_id": 2,
                "shape_type": "mask",
                "mask": base64.b64encode(png(bits)).decode(),
            }
        )
        content = {"version": "5.5.0", "shapes": shapes, "imagePath": f"..\\frames\\{name}"}
        write_json(
            root / "labels" / f"{name[:4]}.json",
            {**content, "imageWidth": WIDTH, "imageHeight": HEIGHT, "imageData": None},
        )


def supervisely(root: Path) -> None:
    """A video: the cup with a bitmap, the hand with a rectangle, tags of an object and of the video."""
    (root / "ds" / "video").mkdir(parents=True)
    write_video(root / "ds" / "video" / "clip.mp4")
    x, y, width, height = HAND
    cup = {"bitmap": {"data": packed(png(np.ones((20, 20), bool))), "origin": list(CUP[:2])}}
    hand = {"points": {"exterior": [[x, y], [x + width, y + height]], "interior": []}}
    figures = [
        {"key": "f1", "objectKey": "k1", "geometryType": "bitmap", "geometry": cup},
        {"key": "f2", "objectKey": "k2", "geometryType": "rectangle", "geometry": hand},
    ]
    color = {"name": "color", "value": "white", "frameRange": [10, 12]}
    content = {
        "size": {"width": WIDTH, "height": HEIGHT},
        "framesCount": 40,
        "key": "k",
        "objects": [
            {"key": "k1", "classTitle": "coffee cup", "tags": [color]},
            {"key": "k2", "classTitle": "left hand", "tags": []},
        ],
        "frames": [{"index": frame, "figures": figures} for frame in SEEN],
        "tags": [{"name": "Take cup", "value": None, "frameRange": [10, 29]}],
    }
    write_json(root / "ds" / "ann" / "clip.mp4.json", content)
    write_json(root / "meta.json", {"classes": [], "tags": []})


def supervisely_pictures(root: Path) -> None:
    for name in write_pictures(root / "ds" / "img"):
        x, y, width, height = HAND
        objects = [
            {
                "id": 1,
                "classTitle": "coffee cup",
                "geometryType": "polygon",
                "points": {"exterior": corners(CUP), "interior": [corners((54, 34, 4, 4))]},
                "tags": [{"name": "color", "value": "white"}],
            },
            {
                "id": 2,
                "classTitle": "left hand",
                "geometryType": "rectangle",
                "points": {"exterior": [[x, y], [x + width, y + height]], "interior": []},
            },
        ]
        write_json(
            root / "ds" / "ann" / f"{name}.json",
            {"size": {"width": WIDTH, "height": HEIGHT}, "tags": [], "objects": objects},
        )


def fiftyone(root: Path) -> None:
    """A video with detections on frames, and a time line."""
    (root / "data").mkdir(parents=True)
    write_video(root / "data" / "clip.mp4")
    held = io.BytesIO()
    np.save(held, np.ones((20, 20), bool))
    mask = {"$binary": {"base64": packed(held.getvalue()), "subType": "00"}}
    frames = []
    for frame in SEEN:
        detections = [
            {
                "_id": {"$oid": f"{frame}{number}"},
                "_cls": "Detection",
                "label": name,
                "index": number,
                "bounding_box": [box[0] / WIDTH, box[1] / HEIGHT, box[2] / WIDTH, box[3] / HEIGHT],
                **({"mask": mask, "color": "white"} if name == "coffee cup" else {}),
            }
            for number, (name, box) in enumerate(THINGS.items())
        ]
        labels = {"_cls": "Detections", "detections": detections}
        frames.append({"_sample_id": {"$oid": "s1"}, "frame_number": frame + 1, "ground_truth": labels})
    event = {"_cls": "TemporalDetection", "label": "Take cup", "support": [11, 30]}
    sample = {
        "_id": {"$oid": "s1"},
        "filepath": "/home/someone/data/clip.mp4",
        "_media_type": "video",
        "events": {"_cls": "TemporalDetections", "detections": [event]},
    }
    write_json(root / "samples.json", {"samples": [sample]})
    write_json(root / "frames.json", {"frames": frames})


EXPORTS: dict[str, Callable[[Path], None]] = {
    "coco": coco,
    "coco_video": coco_video,
    "label_studio": label_studio,
    "label_studio_pictures": label_studio_pictures,
    "labelme": labelme,
    "supervisely": supervisely,
    "supervisely_pictures": supervisely_pictures,
    "fiftyone": fiftyone,
}
