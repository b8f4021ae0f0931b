"""Reading, validating and deriving all frozen sets at the size of BARISTA, and at 1/10 and 3 times that size.

    python perf/full_scale.py [--scales 0.1 1 3] [--quick]

For each scale a release is generated in a temporary folder (about 1.5 GB at scale 1). Every step runs in a process of
its own: wall and CPU seconds, and peak memory (of the process and all its workers, as if they peaked at once).
Beside it stands what one would write first: json.load and a loop over frames, for reading and one derivation, the
hand-object pairs; both must find the same pairs. The goal at scale 1, for reading, validating and deriving on 2 cores:
30 s and 1 GiB.
"""

import argparse
import json
import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import ClassVar

import numpy as np
from generate_release import generate

from barista_bench.benchmarks import BENCHMARKS, get_task
from barista_bench.builders.plan import plan_task, preparations
from barista_bench.builders.splits import split_videos
from barista_bench.scene_graph import SceneGraph, VideoGraph, validate

CORES = 2
HANDS = ("left hand", "right hand")
TASKS = [task.name for task in BENCHMARKS["barista"]]

Step = Callable[[str], dict[str, object]]
Row = dict[str, object]


def read(root: str) -> Row:
    """Every video graph once, on one core."""
    videos = instances = 0
    for video in SceneGraph(root, cache_videos=1):
        videos, instances = videos + 1, instances + len(video.instances_table.frame)
    return {"found": f"{videos} videos, {instances:,} masks"}


def check(root: str) -> Row:
    """Every record and every mask, on two cores; the videos themselves are absent, which is reported."""
    found = validate(root, num_proc=CORES)
    others = [problem for problem in found.problems if not problem.file.endswith(".mp4")]
    assert not others, others[:3]
    return {"found": f"{sum(v.instances for v in found.videos):,} masks, no problem"}


def derive(root: str) -> Row:
    """All frozen sets with their published sampling; each of two workers reads the release and takes task by task."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(CORES, mp_context=context, initializer=start_worker, initargs=(root,)) as pool:
        said, workers, peaks = zip(*pool.map(derive_one, TASKS), strict=True)
    of_worker = {worker: max(p for w, p in zip(workers, peaks, strict=True) if w == worker) for worker in workers}
    return {"found": "; ".join(said), "memory": own_peak() + sum(of_worker.values())}


class Worker:
    """What a worker process keeps between its tasks."""

    graph: ClassVar[SceneGraph]
    splits: ClassVar[dict[str, str]]


def start_worker(root: str) -> None:
    Worker.graph = SceneGraph(root)
    Worker.splits = split_videos(preparations(Worker.graph))


def derive_one(name: str) -> tuple[str, int, int]:
    """What was found, in words; which worker found it, and its peak memory so far in bytes."""
    busy = time.process_time()
    task = get_task("barista", name)
    plan = plan_task(Worker.graph, task, task.sampling, Worker.splits)
    said = f"{name} {len(plan.examples)} of {plan.candidates:,}, {time.process_time() - busy:.1f} s CPU"
    return said, os.getpid(), own_peak()


def pairs(root: str) -> Row:
    """Reading and one derivation, on one core: (frame, object) pairs that a hand acts on."""
    return {"pairs": sum(hand_pairs(video) for video in SceneGraph(root, cache_videos=1))}


def hand_pairs(video: VideoGraph) -> int:
    table = video.relations_table
    keys = [
        video.relation_frames(position).astype(np.int64) * len(video.objects) + table.target[position]
        for position in range(len(table.start))
        if table.labels[table.label[position]][0] == "human_actions"
        and video.objects[table.source[position]].category in HANDS
    ]
    return len(np.unique(np.concatenate(keys))) if keys else 0


def plain_loop(root: str) -> Row:
    """The same with json.load, asking every frame."""
    found = 0
    for folder in sorted(Path(root).iterdir()):
        with (folder / "coco_annotation.json").open() as file:
            document = json.load(file)
        names = {category["id"]: category["name"] for category in document["categories"]}
        category_of = {k: names[v] for k, v in document["object_id_to_category_id"].items()}
        frames: list[dict[str, dict[str, object]]] = [{} for _ in range(document["video_metadata"][0]["frame_count"])]
        for annotation in document["annotations"]:
            if annotation.get("bbox"):
                frames[annotation["image_id"]][annotation["object_id"]] = annotation
        for frame, objects in enumerate(frames):
            touched = set()
            for relation in document["relations"]:
                source, target = relation["source_object_id"], relation["target_object_id"]
                if relation["relation_type"] != "human_actions" or category_of[source] not in HANDS:
                    continue
                if source not in objects or target not in objects:
                    continue
                if any(r["image_id_start"] <= frame < r["image_id_end"] for r in relation["image_ranges"]):
                    touched.add(target)
            found += len(touched)
    return {"pairs": found}


STEPS: dict[str, Step] = {
    "read (1 core)": read,
    "validate (2 cores)": check,
    "derive all (2 cores)": derive,
    "read + one derivation (1 core)": pairs,
    "the same, plain loop (1 core)": plain_loop,
}
TIMED = ("validate (2 cores)", "derive all (2 cores)")
"""What the goal covers; both read the whole release."""


def own_peak() -> int:
    """Bytes this process has held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def peak_memory() -> int:
    """Bytes: this process, and its workers as if all were as large as the largest."""
    return own_peak() + CORES * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def measured(name: str, root: str) -> Row:
    begin = time.perf_counter()
    row = STEPS[name](root)
    wall = time.perf_counter() - begin
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(item.ru_utime + item.ru_stime for item in usage)
    return {"step": name, "wall": wall, "cpu": cpu, "memory": peak_memory(), **row}


def measure(scale: float) -> None:
    with tempfile.TemporaryDirectory(prefix="full_scale_") as folder:
        size = generate(Path(folder), scale)
        print(f"\n## Scale {scale:g}: {size / 1e6:,.0f} MB of JSON\n", flush=True)
        print("| step | wall s | CPU s | peak MiB | found |\n|:--|--:|--:|--:|:--|", flush=True)
        rows = {}
        for name in STEPS:
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                row = rows[name] = pool.submit(measured, name, folder).result()
            found = row.get("found", f"{row.get('pairs')} pairs")
            memory = int(str(row["memory"])) >> 20
            print(f"| {name} | {row['wall']:.1f} | {row['cpu']:.1f} | {memory} | {found} |", flush=True)
    ours, plain = (rows[name] for name in list(STEPS)[-2:])
    assert ours["pairs"] == plain["pairs"], (ours["pairs"], plain["pairs"])
    wall = sum(float(str(rows[name]["wall"])) for name in TIMED)
    memory = max(int(str(rows[name]["memory"])) for name in TIMED)
    ratio = [float(str(plain[key])) / float(str(ours[key])) for key in ("wall", "cpu")]
    print(f"\nEverything: {wall:.1f} s, {memory >> 20} MiB. ", end="")
    print(f"Plain loop / ours, reading and one derivation: {ratio[0]:.1f}x wall, {ratio[1]:.1f}x CPU.", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scales", type=float, nargs="+", default=[0.1, 1, 3])
    parser.add_argument("--quick", action="store_true", help="4 videos")
    given = parser.parse_args()
    for scale in [0.02] if given.quick else given.scales:
        measure(scale)


if __name__ == "__main__":
    main()
