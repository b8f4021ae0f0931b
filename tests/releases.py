"""Small hand-made release folders: every number in them is known, and every part can be broken on purpose."""

import json
from pathlib import Path
from typing import Any

import av
import numpy as np

from barista_bench.scene_graph import encode_mask

WIDTH, HEIGHT, FRAMES = 96, 64, 40

MACHINE, CUP, LEFT, RIGHT, BUTTON = "o-machine", "o-cup", "o-left", "o-right", "o-button"
CATEGORIES = {MACHINE: "coffee machine", CUP: "coffee cup", LEFT: "left hand", RIGHT: "right hand", BUTTON: "button"}
BOXES = {
    MACHINE: (4, 4, 40, 50),
    CUP: (50, 30, 20, 20),
    LEFT: (44, 40, 10, 16),
    RIGHT: (68, 36, 12, 18),
    BUTTON: (10, 10, 4, 4),
}
"""[x, y, width, height] in pixels, the same on every frame on which the object is seen."""
SEEN = {MACHINE: (0, 40), CUP: (0, 40), LEFT: (0, 20), RIGHT: (10, 40), BUTTON: (0, 40)}
"""[start, end) of the frames on which the object is annotated."""


def span(start: int, end: int) -> dict[str, int]:
    return {"image_id_start": start, "image_id_end": end}


def segmentation(box: tuple[int, int, int, int]) -> dict[str, Any]:
    x, y, width, height = box
    mask = np.zeros((HEIGHT, WIDTH), dtype=bool)
    mask[y : y + height, x : x + width] = True
    rle = encode_mask(mask)
    return {"counts": rle.counts, "size": list(rle.size)}


def document(preparation: str = "capsule") -> dict[str, Any]:
    """A valid annotation file: 40 frames, five objects, both hands on the cup in turn."""
    masks = {name: segmentation(box) for name, box in BOXES.items()}
    return {
        "video_metadata": [
            {
                "width": WIDTH,
                "height": HEIGHT,
                "frame_count": FRAMES,
                "fps": 30.0,
                "length_in_ms": 1333,
                "recording_device_type": "smart glasses",
            }
        ],
        "categories": [{"id": f"c-{name}", "name": name} for name in CATEGORIES.values()],
        "object_id_to_category_id": {name: f"c-{category}" for name, category in CATEGORIES.items()},
        "annotations": [
            {"image_id": frame, "object_id": name, "bbox": list(map(float, BOXES[name])), "segmentation": masks[name]}
            for frame in range(FRAMES)
            for name, (start, end) in SEEN.items()
            if start <= frame < end
        ],
        "attributes": [
            {"object_id": MACHINE, "attribute_type": "type", "value": preparation, "image_ranges": [span(0, 40)]},
            {"object_id": CUP, "attribute_type": "color", "value": "white", "image_ranges": [span(0, 40)]},
            {"object_id": MACHINE, "attribute_type": "state", "value": "extracting", "image_ranges": [span(20, 30)]},
        ],
        "relations": [
            relation(BUTTON, MACHINE, "position", "part of", (0, 40)),
            relation(CUP, MACHINE, "position", "under", (0, 40)),
            relation(LEFT, CUP, "human_actions", "holds", (0, 40)),
            relation(RIGHT, CUP, "human_actions", "holds", (5, 15), (30, 40)),
        ],
        "activities": [
            {"image_range": span(0, 20), "activity_class_id": "a-place-cup", "display_name": "Place cup"},
            {"image_range": span(20, 40), "activity_class_id": "a-press-button", "display_name": "Press button"},
        ],
        "process_steps": [
            {"image_range": span(0, 40), "activity_class_id": "s-extract", "display_name": "Extract coffee"}
        ],
    }


def eventful(preparation: str = "capsule") -> dict[str, Any]:
    """The document with one change of each category of temporal VQA from frame 0 to 20, and none after."""
    content = document(preparation)
    content["attributes"][2]["image_ranges"] = [span(10, 40)]
    content["attributes"].append({**content["attributes"][2], "value": "idle", "image_ranges": [span(0, 10)]})
    content["relations"][1] = relation(CUP, MACHINE, "position", "under", (9, 40))
    content["relations"][2] = relation(LEFT, CUP, "human_actions", "holds", (0, 13))
    content["relations"][3] = relation(RIGHT, CUP, "human_actions", "holds", (5, 15))
    content["activities"][0]["image_range"] = span(0, 18)
    return content


def relation(source: str, target: str, kind: str, value: str, *ranges: tuple[int, int]) -> dict[str, Any]:
    return {
        "source_object_id": source,
        "target_object_id": target,
        "relation_type": kind,
        "value": value,
        "image_ranges": [span(*item) for item in ranges],
    }


def write_video(path: Path, frames: int = FRAMES, size: tuple[int, int] = (WIDTH, HEIGHT)) -> None:
    """An H.264 video whose grey level rises from frame to frame."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=30)
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        stream.codec_context.thread_count = 1  # with several threads, the bytes of two equal videos may differ
        for index in range(frames):
            image = np.full((size[1], size[0], 3), 20 + index * 5 % 220, dtype=np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode(None))


def write_release(root: Path, video_id: str = "v1", content: Any = None, *, video: bool = True) -> Path:
    """`<root>/<video_id>/{coco_annotation.json, video.mp4}`; `content` may be a document, or the file's bytes."""
    folder = root / video_id
    folder.mkdir(parents=True, exist_ok=True)
    content = document() if content is None else content
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    (folder / "coco_annotation.json").write_bytes(data)
    if video:
        write_video(folder / "video.mp4")
    return root
