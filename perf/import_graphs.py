"""Import a synthetic PVSG or VISOR of the real one's size: seconds, peak memory, and their growth with the videos.

    python perf/import_graphs.py pvsg OUT [--videos 400] [--frames 382] [--objects 20]
    python perf/import_graphs.py visor OUT [--videos 179] [--frames 45] [--objects 12]

The defaults are 400 videos of 382 frames, and 8,000 sparse pictures; the numbers of objects are assumed. Blobs that
drift; the pictures of a video are one grey file, linked over and over.
"""

import argparse
import json
import os
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from barista_bench.other_graphs.importing import import_graphs

PVSG_SIZE, VISOR_SIZE = (480, 360), (1920, 1080)


def blob(rng: np.random.Generator, at: float, size: tuple[int, int]) -> list[tuple[float, float]]:
    """An outline of 40 points that moves with `at`."""
    angles = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    radius = size[1] / 8 * (1 + 0.3 * np.sin(3 * angles + at))
    x = size[0] * (0.2 + 0.6 * rng.random()) + radius * np.cos(angles) + 10 * np.sin(at)
    y = size[1] * (0.2 + 0.6 * rng.random()) + radius * np.sin(angles)
    return [(round(float(a), 2), round(float(b), 2)) for a, b in zip(x, y, strict=True)]


def write_pvsg(root: Path, videos: int, frames: int, objects: int) -> None:
    part, data = root / "data" / "vidor", []
    root.joinpath("data").mkdir(parents=True)
    masks = [root / f"mask{number}.png" for number in range(16)]
    for number, path in enumerate(masks):
        labels = np.full(PVSG_SIZE[::-1], 1, np.uint8)
        for item in range(2, objects + 1):
            x, y = (item * 53 + number * 3) % 400, (item * 37 + number * 2) % 300
            labels[y : y + 60 + item, x : x + 70 - item] = item
        Image.fromarray(labels, mode="L").save(path)
    for video in range(videos):
        name = f"{video:04d}"
        for kind in ("frames", "masks"):
            (part / kind / name).mkdir(parents=True)
        grey = root / f"grey{video}.png"  # a file has room for some 65,000 links
        Image.new("RGB", PVSG_SIZE, (90, 90, 90)).save(grey)
        for frame in range(frames):
            os.link(grey, part / "frames" / name / f"{frame:04d}.png")
            os.link(masks[frame % len(masks)], part / "masks" / name / f"{frame:04d}.png")
        relations = [[a, a + 1, "on", [[0, frames // 2], [frames // 2 + 5, frames - 1]]] for a in range(1, objects)]
        meta = {"height": PVSG_SIZE[1], "width": PVSG_SIZE[0], "fps": 5, "num_frames": frames, "duration": frames / 5}
        listed = [
            {"object_id": n, "category": f"thing {n}", "is_thing": True, "status": []} for n in range(1, objects + 1)
        ]
        data.append({"video_id": name, "meta": meta, "objects": listed, "relations": relations})
    names = {"thing": [f"thing {n}" for n in range(1, 116)], "stuff": ["wall"]}
    split = {"vidor": {"train": [f"{video:04d}" for video in range(videos)], "val": []}}
    (root / "data" / "pvsg.json").write_text(
        json.dumps({"objects": names, "relations": ["on"], "split": split, "data": data})
    )


def write_visor(root: Path, videos: int, frames: int, objects: int) -> None:
    release, rng = root / "GroundTruth-SparseAnnotations", np.random.default_rng(0)
    (release / "annotations" / "train").mkdir(parents=True)
    Image.new("RGB", VISOR_SIZE, (90, 90, 90)).save(root / "grey.jpg")
    for video in range(videos):
        name, rows = f"P{video % 37 + 1:02d}_{video:03d}", list[dict[str, Any]]()
        folder = release / "rgb_frames" / "train" / name[:3] / name
        folder.mkdir(parents=True)
        for frame in range(frames):
            file = f"{name}_frame_{60 * frame + 1:010d}.jpg"
            os.link(root / "grey.jpg", folder / file)
            names = ["left hand", "right hand", *(f"thing {n}" for n in range(objects - 2))]
            entities = [
                {"id": f"{n}", "name": what, "segments": [blob(rng, frame, VISOR_SIZE)], "exhaustive": "y"}
                for n, what in enumerate(names)
            ]
            entities[0]["in_contact_object"], entities[1]["in_contact_object"] = "2", "hand-not-in-contact"
            image = {"name": file, "subsequence": f"{name}_seq_{frame // 6:05d}", "video": name, "image_path": file}
            rows.append({"image": image, "annotations": entities})
        (release / "annotations" / "train" / f"{name}.json").write_text(json.dumps({"video_annotations": rows}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=("pvsg", "visor"))
    parser.add_argument("out", type=Path)
    for option in ("videos", "frames", "objects"):
        parser.add_argument(f"--{option}", type=int)
    asked = parser.parse_args()
    usual = {"pvsg": (400, 382, 20), "visor": (179, 45, 12)}[asked.name]
    videos, frames, objects = (
        given or default for given, default in zip((asked.videos, asked.frames, asked.objects), usual, strict=True)
    )
    source = asked.out / "source"
    {"pvsg": write_pvsg, "visor": write_visor}[asked.name](source, videos, frames, objects)
    tenth = sorted(path.name for path in (source / "data/vidor/masks").glob("*"))[: max(1, videos // 10)]
    for label, chosen in (("a tenth", tenth if asked.name == "pvsg" else []), ("all", [])):
        if label == "a tenth" and not chosen:
            continue
        started, used = time.perf_counter(), time.process_time()
        report = import_graphs(asked.name, source, asked.out / label.replace(" ", "_"), videos=chosen)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        seconds, cpu = time.perf_counter() - started, time.process_time() - used
        counts = f"{report.videos} videos, {report.tally.taken['frames']} frames, {report.tally.taken['masks']} masks"
        print(f"{label}: {counts}: {seconds:.1f} s, {cpu:.1f} s of CPU, peak {peak:.0f} MiB")


if __name__ == "__main__":
    main()
