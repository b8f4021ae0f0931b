"""Reading, validating and deriving all frozen sets at the size of BARISTA, and at 1/10 and 3 times that size.

    python perf/full_scale.py [--scales 0.1 1 3] [--quick]

For each scale a release is generated in a temporary folder (about 1.5 GB at scale 1). Every step runs in a process of
its own: wall seconds, CPU seconds of all processes, and peak memory, the sum of the highest RSS (ru_maxrss) of the
process and of each worker as if they peaked at once.
Frozen sets made on one and on two processes must have the same hashes.
The goal at scale 1, for everything on 2 cores: 30 s and 1 GiB.
"""

import argparse
import hashlib
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from generate_release import generate

from barista_bench.benchmarks import BENCHMARKS, get_task
from barista_bench.data.origin import split_videos
from barista_bench.data.plan import plan_tasks
from barista_bench.scene_graph import SceneGraph, validate

CORES = 2
TASKS = [get_task("barista", task.name) for task in BENCHMARKS["barista"].tasks]

Row = dict[str, object]


def read(root: str) -> Row:
    """Every video graph once, on one core."""
    videos = instances = 0
    for video in SceneGraph(root, cache_videos=1):
        videos, instances = videos + 1, instances + len(video.instances_table.frame)
    return {"found": f"{videos} videos, {instances:,} masks"}


def measure_everything(root: str, num_proc: int) -> Row:
    """Every record and mask checked, and all frozen sets with their published sampling.

    The videos themselves are absent, which is reported.
    """
    wanted = [(task, task.sampling) for task in TASKS]
    made = plan_tasks(SceneGraph(root), wanted, split=split_videos, num_proc=num_proc)
    validation = validate(root, num_proc=num_proc)
    others = [problem for problem in validation.problems if not problem.file.endswith(".mp4")]
    assert not others, others[:3]
    sets = [f"{name} {len(plan.examples)} of {plan.candidates:,}" for name, plan in made.by_task.items()]
    digest = hashlib.sha256("".join(plan.content_hash for plan in made.by_task.values()).encode()).hexdigest()
    masks = sum(video.instances for video in validation.videos)
    found = f"{masks:,} masks, no problem; {'; '.join(sets)}; hash {digest[:12]}"
    return {"found": found, "hash": digest, "workers": num_proc}


GOAL = f"everything ({CORES} processes)"
STEPS: dict[str, Callable[[str], Row]] = {
    "read (1 process)": read,
    "everything (1 process)": partial(measure_everything, num_proc=1),
    GOAL: partial(measure_everything, num_proc=CORES),
}


def measure_one(name: str, root: str) -> Row:
    begin = time.perf_counter()
    row = STEPS[name](root)
    wall = time.perf_counter() - begin
    own, workers = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    cpu = sum(item.ru_utime + item.ru_stime for item in (own, workers))
    # `workers` is the largest worker: count every worker as large as it.
    memory = (own.ru_maxrss + int(str(row.get("workers", 0))) * workers.ru_maxrss) >> 10
    return {"wall": wall, "cpu": cpu, "memory": memory, **row}


def measure(folder: str) -> Row:
    """Prints a table of all steps; returns the row of the goal."""
    size = sum(path.stat().st_size for path in Path(folder).glob("*/*.json"))
    print(f"\n## {len(list(Path(folder).iterdir()))} videos, {size / 1e6:,.0f} MB of JSON\n", flush=True)
    print("| step | wall s | CPU s | peak MiB | found |\n|:--|--:|--:|--:|:--|", flush=True)
    rows = {}
    for name in STEPS:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            row = rows[name] = pool.submit(measure_one, name, folder).result()
        print(f"| {name} | {row['wall']:.1f} | {row['cpu']:.1f} | {row['memory']} | {row['found']} |", flush=True)
    assert rows[GOAL]["hash"] == rows["everything (1 process)"]["hash"]
    return rows[GOAL]


def growth(rows: dict[float, Row]) -> None:
    """The cost of the whole work at each scale, and its ratio to the cost at the first."""
    first = next(iter(rows.values()))
    print("\n| scale | wall s | CPU s | peak MiB | wall, CPU and memory against the first |\n|--:|--:|--:|--:|:--|")
    for scale, row in rows.items():
        times = ", ".join(f"{float(str(row[key])) / float(str(first[key])):.1f}x" for key in ("wall", "cpu", "memory"))
        print(f"| {scale:g} | {row['wall']:.1f} | {row['cpu']:.1f} | {row['memory']} | {times} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scales", type=float, nargs="+", default=[0.1, 1, 3])
    parser.add_argument("--quick", action="store_true", help="4 videos")
    given = parser.parse_args()
    rows = {}
    for scale in [0.02] if given.quick else given.scales:
        with tempfile.TemporaryDirectory(prefix="full_scale_") as folder:
            generate(Path(folder), scale)
            rows[scale] = measure(folder)
    growth(rows)


if __name__ == "__main__":
    main()
