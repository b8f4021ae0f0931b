"""FiftyOne: a video with detections on frames, and a time line."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from tests.other_graphs.sample import (
    SEEN,
    THINGS,
    Sample,
    Spoon,
    adding_twice,
    again,
    edit,
    only_if,
    packed,
    pairs,
    write_json,
)
from tests.releases import HEIGHT, WIDTH, write_video

FILE = "frames.json"
DETECTIONS = ("frames", 0, "ground_truth", "detections")


def write(root: Path) -> None:
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
    write_json(root / FILE, {"frames": frames})


def add(root: Path, spoon: Spoon) -> None:
    only_if(spoon.picture is None and spoon.hole is None and spoon.runs is None and spoon.pieces is not None)
    points = [[[x / WIDTH, y / HEIGHT] for x, y in pairs(piece)] for piece in spoon.pieces or ()]
    label = {"_id": {"$oid": "s"}, "_cls": "Polyline", "label": spoon.label, "index": int(spoon.key)}
    label |= {"points": points, "closed": True, "filled": True}

    def change(content: Any) -> None:
        frames = {frame["frame_number"]: frame for frame in content["frames"]}
        new = {"_sample_id": {"$oid": spoon.video or "s1"}, "frame_number": spoon.frame + 1}
        frame = new if spoon.video else frames.get(spoon.frame + 1, new)
        if frame is new:
            content["frames"].append(new)
        frame["more"] = {"_cls": "Polylines", "polylines": [label]}

    edit(root / FILE, change)


SAMPLES = (
    Sample(
        write,
        add,
        FILE,
        records=("frames",),
        color=True,
        activity=True,
        own={"one id twice": adding_twice(add, FILE, "frames", 1, "more", "polylines")},
        faults={
            "a number of its shape is missing or wrong": again(*DETECTIONS, index=9, bounding_box=[0.5, 0.5]),
            "mask is damaged": again(*DETECTIONS, index=9, mask={"$binary": {"base64": "AAAA"}}),
        },
        left_out={"labels with a confidence, which are a model's": again(*DETECTIONS, index=9, confidence=0.4)},
    ),
)
