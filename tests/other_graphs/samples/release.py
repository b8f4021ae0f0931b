"""The release: `coco_annotation.json` beside the video."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.other_graphs.sample import (
    SEEN,
    SQUARE,
    THINGS,
    Sample,
    Spoon,
    edit,
    editing,
    flat,
    only_if,
    swap_ids,
    write_json,
)
from tests.releases import document, write_video

FILE = "clip/coco_annotation.json"


def write(root: Path) -> None:
    content = document()
    content |= {"attributes": [], "relations": [], "activities": [], "process_steps": []}
    content["categories"] = [{"id": f"c-{name}", "name": name} for name in THINGS]
    content["object_id_to_category_id"] = {name[0]: f"c-{name}" for name in THINGS}
    content["annotations"] = [
        {"image_id": frame, "object_id": name[0], "bbox": list(box), "segmentation": [flat(box)]}
        for frame in SEEN
        for name, box in THINGS.items()
    ]
    write_json(root / FILE, content)
    write_video(root / "clip" / "video.mp4")


def add(root: Path, spoon: Spoon) -> None:
    only_if(spoon.picture is None and spoon.video is None)

    def change(content: Any) -> None:
        content["categories"].append({"id": "c-spoon", "name": spoon.label})
        content["object_id_to_category_id"][spoon.key] = "c-spoon"
        record = {"image_id": spoon.frame, "object_id": spoon.key, "bbox": list(SQUARE)}
        content["annotations"].append({**record, "segmentation": spoon.segmentation()})

    edit(root / FILE, change)


SAMPLES = (
    Sample(
        write,
        add,
        FILE,
        records=("annotations",),
        own={
            "ids as texts, not numbers, or the reverse": lambda root: swap_ids(root / FILE, letters=True),
            "a count of 1,000,000,000 frames": editing(
                FILE, lambda content: content["video_metadata"][0].update(frame_count=10**9)
            ),
        },
    ),
)
