"""COCO video (YouTube-VIS): polygons on the frames of a video."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.other_graphs.sample import SEEN, THINGS, Sample, Spoon, again, edit, editing, flat, only_if, write_json
from tests.releases import HEIGHT, WIDTH, write_video

FILE = "annotations.json"


def write(root: Path) -> None:
    (root / "videos").mkdir(parents=True)
    write_video(root / "videos" / "clip.mp4")
    masks = {name: [[flat(box)] if frame in SEEN else None for frame in range(40)] for name, box in THINGS.items()}
    write_json(
        root / FILE,
        {
            "videos": [{"id": 1, "width": WIDTH, "height": HEIGHT, "length": 40, "name": "clip"}],
            "categories": [{"id": kind, "name": name} for kind, name in enumerate(THINGS, start=1)],
            "annotations": [
                {"id": kind, "video_id": 1, "category_id": kind, "segmentations": masks[name]}
                for kind, name in enumerate(THINGS, start=1)
            ],
        },
    )


def add(root: Path, spoon: Spoon) -> None:
    only_if(0 <= spoon.moment < 3 or spoon.video is not None)
    only_if(spoon.picture is None)

    def change(content: Any) -> None:
        content["categories"].append({"id": 3, "name": spoon.label})
        video = 1 if spoon.video is None else 8
        if spoon.video and spoon.video != "8":
            content["videos"].append({**content["videos"][0], "id": 8, "name": spoon.video})
        masks = [spoon.segmentation() if frame == spoon.frame else None for frame in range(40)]
        track = {"id": int(spoon.key), "video_id": video, "category_id": 3, "segmentations": masks}
        content["annotations"].append(track)

    edit(root / FILE, change)


def _sample_frames(root: Path) -> None:
    """Keep the masks of each second frame only."""

    def change(content: Any) -> None:
        names = [f"clip/{frame:05d}.jpg" for frame in range(0, 40, 2)]
        content["videos"][0].update(length=20, file_names=names)
        for track in content["annotations"]:
            track["segmentations"] = track["segmentations"][::2]

    add(root, Spoon(moment=2))
    edit(root / FILE, change)


SAMPLES = (
    Sample(
        write,
        add,
        FILE,
        records=("annotations",),
        own={
            "sampled frames": _sample_frames,
            "a count of 1,000,000,000 frames": editing(FILE, lambda content: content["videos"][0].update(length=10**9)),
        },
        faults={"tracks: their category is not in the file": again("annotations", id=9, category_id=8)},
    ),
)
