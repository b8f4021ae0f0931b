"""Reading, validating and deriving all frozen sets at the size of BARISTA, and at other scales.

    python perf/full_scale.py [--scale 1]        --quick: 4 videos

A release is generated in a temporary folder (about 1.5 GB at scale 1). The work runs in a process of its own, first on
one process and then on two: wall seconds, CPU seconds of all processes, and peak memory, the sum of the highest RSS
(ru_maxrss) of the process and of each worker as if they peaked at once. Both must give the same frozen sets.
The goal at scale 1 on 2 cores: 30 s and 1 GiB.
"""

import hashlib
import multiprocessing
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import typer
from generate_release import generate

from barista_bench.benchmarks import BENCHMARKS, get_task
from barista_bench.data.origin import split_videos
from barista_bench.data.plan import plan_tasks
from barista_bench.scene_graph import SceneGraph, validate

TASKS = [get_task("barista", task.name) for task in BENCHMARKS["barista"].tasks]


def measure(root: str, num_proc: int) -> tuple[str, str]:
    """Check every record and mask, and derive all frozen sets with their published sampling.

    The videos themselves are absent, which is reported. Returns a row of the table, and the hash of the frozen sets.
    """
    begin = time.perf_counter()
    wanted = [(task, task.sampling) for task in TASKS]
    made = plan_tasks(SceneGraph(root), wanted, split=split_videos, num_proc=num_proc)
    validation = validate(root, num_proc=num_proc)
    others = [problem for problem in validation.problems if not problem.file.endswith(".mp4")]
    assert not others, others[:3]
    wall = time.perf_counter() - begin
    own, workers = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    cpu = sum(item.ru_utime + item.ru_stime for item in (own, workers))
    # `workers` is the largest worker: count every worker as large as it.
    memory = (own.ru_maxrss + num_proc * workers.ru_maxrss) >> 10
    sets = "; ".join(f"{name} {len(plan.examples)} of {plan.candidates:,}" for name, plan in made.by_task.items())
    masks = sum(video.instances for video in validation.videos)
    digest = hashlib.sha256("".join(plan.content_hash for plan in made.by_task.values()).encode()).hexdigest()
    return f"| {num_proc} | {wall:.1f} | {cpu:.1f} | {memory} | {masks:,} masks; {sets} |", digest


def main(scale: float = 1, quick: bool = False) -> None:
    with tempfile.TemporaryDirectory(prefix="full_scale_") as folder:
        generate(Path(folder), 0.02 if quick else scale)
        files = list(Path(folder).glob("*/*.json"))
        print(f"{len(files)} videos, {sum(file.stat().st_size for file in files) / 1e6:,.0f} MB of JSON\n")
        print("| processes | wall s | CPU s | peak MiB | found |\n|:--|--:|--:|--:|:--|", flush=True)
        digests = set()
        for num_proc in (1, 2):
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
                row, digest = pool.submit(measure, folder, num_proc).result()
            print(row, flush=True)
            digests.add(digest)
        assert len(digests) == 1


if __name__ == "__main__":
    typer.run(main)
