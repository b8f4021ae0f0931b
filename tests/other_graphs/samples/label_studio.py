"""Label Studio: a video, and pictures."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tests.other_graphs.sample import (
    CUP,
    HAND,
    THINGS,
    Sample,
    Spoon,
    again,
    corners,
    edit,
    editing,
    only_if,
    put,
    write_json,
    write_pictures,
)
from tests.releases import HEIGHT, WIDTH, write_video

FILE = "export.json"
RESULTS = (0, "annotations", 1, "result")
RESULTS_OF_PICTURE = (0, "annotations", 0, "result")


def write(root: Path) -> None:
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
    write_json(root / FILE, [task])


def add(root: Path, spoon: Spoon) -> None:
    only_if(len(spoon.points()) == 4)
    (x, y), (right, _), (_, bottom), _ = spoon.points()
    box = {"x": 100 * x / WIDTH, "y": 100 * y / HEIGHT}
    box |= {"width": 100 * (right - x) / WIDTH, "height": 100 * (bottom - y) / HEIGHT}
    frame = spoon.frame + 1
    sequence = [{**box, "frame": frame, "enabled": True}, {**box, "frame": frame + 1, "enabled": False}]
    value = {"framesCount": 40, "sequence": sequence, "labels": [spoon.label]}
    result = {"id": spoon.key, "type": "videorectangle", "from_name": "box", "to_name": "video", "value": value}
    edit(root / FILE, lambda content: content[0]["annotations"][1]["result"].append(result))


def _count_many_frames(root: Path) -> None:
    add(root, Spoon())

    def change(content: Any) -> None:
        value = content[0]["annotations"][1]["result"][-1]["value"]
        value.update(framesCount=10**9, sequence=value["sequence"][:1])

    edit(root / FILE, change)


def write_with_pictures(root: Path) -> None:
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
                "value": {"format": "rle", "rle": _brush(bits), "brushlabels": ["left hand"]},
                **size,
            },
        ]
        tasks.append(
            {"id": 1, "data": {"image": f"/data/local-files/?d=pictures/{name}"}, "annotations": [{"result": results}]}
        )
    write_json(root / FILE, tasks)


def _brush(bits: np.ndarray) -> list[int]:
    """Label Studio's run lengths of a mask; the first pixels word by word, the rest as runs."""
    data = np.repeat(bits.reshape(-1, 1).astype(np.uint8) * 255, 4, axis=1).ravel()
    text = f"{len(data):032b}{7:05b}" + "".join(f"{size - 1:04b}" for size in (3, 4, 8, 16))
    text += "0" + "10" + f"{7:08b}" + "".join(f"{word:08b}" for word in data[:8])
    edges = [8, *(np.flatnonzero(np.diff(data[8:].astype(int))) + 9).tolist(), len(data)]
    for start, end in pairwise(edges):
        text += "1" + "11" + f"{end - start - 1:016b}" + f"{data[start]:08b}"
    text += "0" * (-len(text) % 8)
    return [int(text[at : at + 8], 2) for at in range(0, len(text), 8)]


def add_to_picture(root: Path, spoon: Spoon) -> None:
    only_if(0 <= spoon.moment < 3)
    result: dict[str, Any] = {"id": spoon.key, "original_width": WIDTH, "original_height": HEIGHT}
    if spoon.bits is not None:
        value = {"format": "rle", "rle": _brush(spoon.bits), "brushlabels": [spoon.label]}
        result |= {"type": "brushlabels", "value": value}
    else:
        points = [[100 * x / WIDTH, 100 * y / HEIGHT] for x, y in spoon.points()]
        result |= {"type": "polygonlabels", "value": {"points": points, "polygonlabels": [spoon.label]}}
    edit(root / FILE, lambda content: content[1]["annotations"][0]["result"].append(result))


SAMPLES = (
    Sample(
        write,
        add,
        FILE,
        records=RESULTS,
        color=True,
        activity=True,
        own={
            "a count of 1,000,000,000 frames": _count_many_frames,
            "a path out of the folder": editing(
                FILE, lambda content: content.append({**content[0], "data": {"video": "../secret.mp4"}})
            ),
        },
        faults={
            "a number of the videorectangle is missing": again(*RESULTS, id="x", value={"labels": ["cup"]}),
            "'x' is not in": again(*RESULTS, type="relation", from_id="left", to_id="x", labels=["on"]),
            "no video or picture below the source": again(data={"video": "other.mp4"}),
        },
    ),
    Sample(
        write_with_pictures,
        add_to_picture,
        FILE,
        variant="pictures",
        records=(1, *RESULTS_OF_PICTURE[1:]),
        of_pictures=True,
        own={
            "masks of another size": editing(
                FILE, lambda content: [one.update(original_width=48) for one in content[2]["annotations"][0]["result"]]
            )
        },
        faults={
            "it has no category": put(*RESULTS_OF_PICTURE, 0, "value", "polygonlabels", value=[]),
            "mask is damaged": put(*RESULTS_OF_PICTURE, 1, "value", "rle", value=[0, 1, 2]),
        },
        left_out={"results of type keypoint": again(*RESULTS_OF_PICTURE, id="k", type="keypointlabels")},
    ),
)
