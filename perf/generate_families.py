"""Question sets of all four families from 1, 4, 16, ... times a kitchen: CPU seconds a video, and memory.

    python perf/generate_families.py KITCHEN [--times 1 4 16] [--per-subtask 50] [--steps offered generate]

KITCHEN is what `barista-bench mini KITCHEN` wrote. Each copy of it has the same graphs and videos (hard links) under
ids of its own. Each step and size runs in a fresh process: all that the videos offer, the part that grows with their
number, and the whole of `generate`, which writes a set of the same size from any number of them. Memory is the highest
RSS (ru_maxrss). Linear: as many CPU seconds a video at every size. Bounded: memory does not grow with the videos.
"""

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from barista_bench.generate.family import FAMILIES, family_class
from barista_bench.generate.generator import generate, offers_of
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.domain import load_domain


class Cost(NamedTuple):
    """CPU seconds, the highest RSS in bytes, and how many candidates or items were `made`."""

    cpu: float
    memory: int
    made: int


def offers(source: str, per_subtask: int) -> int:
    """What all videos offer."""
    families = {name: family_class(name)(load_domain()) for name in FAMILIES}
    held = offers_of(SceneGraph(source), families, per_subtask, seed=0)
    return sum(map(len, held.candidates.values()))


def everything(source: str, per_subtask: int) -> int:
    """The releases, written."""
    with tempfile.TemporaryDirectory(prefix="families_") as folder:
        reports = generate(source, Path(folder) / "out", tuple(FAMILIES), per_subtask=per_subtask)
    return sum(report.sampled for report in reports)


STEPS: dict[str, Callable[[str, int], int]] = {"offered": offers, "generate": everything}


def measured(step: str, source: str, per_subtask: int) -> Cost:
    begin = time.process_time()
    made = STEPS[step](source, per_subtask)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Cost(time.process_time() - begin, peak, made)


def copied(kitchen: Path, times: int, out: Path) -> Path:
    """The same videos that many times, under other ids."""
    for number in range(times):
        for video in sorted(path for path in kitchen.iterdir() if path.is_dir()):
            copy = out / f"{video.name}_{number:03d}"
            copy.mkdir(parents=True)
            for file in video.iterdir():
                (copy / file.name).hardlink_to(file)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kitchen", type=Path)
    parser.add_argument("--times", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--per-subtask", type=int, default=50)
    parser.add_argument("--steps", nargs="+", choices=list(STEPS), default=list(STEPS))
    given = parser.parse_args()
    print("| step | videos | CPU s | CPU s a video | peak MiB | made |\n|:--|--:|--:|--:|--:|--:|", flush=True)
    with tempfile.TemporaryDirectory(prefix="families_", dir=given.kitchen.parent) as folder:
        for step in given.steps:
            for times in given.times:
                source = Path(folder) / f"{times}"
                if not source.exists():
                    copied(given.kitchen, times, source)
                with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
                    cost = pool.submit(measured, step, str(source), given.per_subtask).result()
                videos = len(list(source.iterdir()))
                row = f"{cost.cpu:.1f} | {cost.cpu / videos:.2f} | {cost.memory >> 20} | {cost.made:,}"
                print(f"| {step} | {videos} | {row} |", flush=True)


if __name__ == "__main__":
    main()
