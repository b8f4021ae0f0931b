"""COCO: pictures with tracks, the cup by polygons, the hand by a box."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.other_graphs.sample import (
    CUP,
    HAND,
    THINGS,
    Sample,
    Spoon,
    again,
    edit,
    flat,
    only_if,
    write_json,
    write_pictures,
)
from tests.releases import HEIGHT, WIDTH

FILE = "annotations/instances.json"


def write(root: Path) -> None:
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
    write_json(root / FILE, {"images": images, "annotations": annotations, "categories": categories})


def add(root: Path, spoon: Spoon) -> None:
    only_if(spoon.moment in (0, 1, 2, 99) and spoon.video is None)

    def change(content: Any) -> None:
        content["categories"].append({"id": 3, "name": spoon.label})
        image = content["images"][1]["id"] if spoon.moment != 99 else 99
        if spoon.picture:
            image = 50
            content["images"].append({"id": image, "file_name": spoon.picture, "width": WIDTH, "height": HEIGHT})
        annotation = {"id": 900, "image_id": image, "category_id": 3, "track_id": int(spoon.key)}
        content["annotations"].append({**annotation, "segmentation": spoon.segmentation()})

    edit(root / FILE, change)


SAMPLES = (
    Sample(
        write,
        add,
        FILE,
        records=("annotations",),
        of_pictures=True,
        color=True,
        faults={
            "its category is not in the file": again("annotations", id=90, track_id=9, category_id=9),
            "an even count is needed": again("annotations", track_id=9, segmentation=[[1, 1, 5, 1, 5]]),
            "has no area": again("annotations", track_id=9, segmentation=[], bbox=[5, 5, 0, 0]),
            "neither segmentation nor bbox": again("annotations", track_id=9, segmentation=[], bbox=None),
            "Expected `float`": again("annotations", track_id=9, segmentation=[], bbox=[float("nan"), 5, 3, 3]),
            "pixels from the origin": again("annotations", track_id=9, segmentation=[[900, 9, 950, 9, 950, 60]]),
            "not exactly one picture below the source is named so": again("images", id=9, file_name="clip/0009.png"),
        },
        left_out={"crowds: several things as one mask": again("annotations", id=90, track_id=9, iscrowd=1)},
    ),
)
