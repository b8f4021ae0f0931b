"""Does reading, checking and deriving grow with the masks alone? Releases of 50, 185 and 1,000 videos of one kind.

    python perf/release_growth.py [--videos 50 185 1000] [--length 0.2] [--rounds 2] [--quick]

The smaller releases are hard links to the first videos of the largest, so that every video costs the same. Each
measurement is a process of its own; sizes and numbers of processes take turns. Other work on the machine makes every
CPU second shorter in effect (shared cores, caches, frequency), so that a fixed loop is timed beside each measurement:
"load" is its CPU time over the least one seen, and the least of all rounds counts.
"""

import argparse
import multiprocessing
import os
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from full_scale import everything
from generate_release import VIDEOS, generate

Measured = tuple[float, float, float, int]


def fixed_loop() -> float:
    """CPU seconds of the same work, always."""
    begin, total = time.process_time(), 0
    for number in range(3_000_000):
        total += number * number & 7
    return time.process_time() - begin


def cpu(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def measured(root: str, processes: int) -> Measured:
    """CPU seconds of this process and of its workers, of the fixed loop before and after, and masks."""
    loops = [fixed_loop()]
    begin = cpu(resource.RUSAGE_SELF)
    row = everything(root, processes)
    own = cpu(resource.RUSAGE_SELF) - begin
    loops.append(fixed_loop())
    masks = int(str(row["found"]).split(" ")[0].replace(",", ""))
    return own, cpu(resource.RUSAGE_CHILDREN), sum(loops) / 2, masks


def first_videos(source: Path, count: int, out: Path) -> None:
    """A release of the first videos of another, linked."""
    for folder in sorted(source.iterdir())[:count]:
        (out / folder.name).mkdir(parents=True)
        for file in folder.iterdir():
            os.link(file, out / folder.name / file.name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--videos", type=int, nargs="+", default=[50, 185, 1000])
    parser.add_argument("--length", type=float, default=0.2, help="fraction of the length of BARISTA's videos")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="4 and 8 short videos, once")
    given = parser.parse_args()
    if given.quick:
        given.videos, given.length, given.rounds = [4, 8], 0.05, 1
    rows: dict[tuple[int, int], list[Measured]] = {}
    with tempfile.TemporaryDirectory(prefix="release_growth_") as folder:
        whole = Path(folder) / "whole"
        generate(whole, max(given.videos) / VIDEOS, given.length)
        for count in given.videos:
            first_videos(whole, count, Path(folder) / str(count))
        for _ in range(given.rounds):
            for processes in (1, 2):
                for count in given.videos:
                    context = multiprocessing.get_context("spawn")
                    with ProcessPoolExecutor(1, mp_context=context) as pool:
                        row = pool.submit(measured, f"{folder}/{count}", processes).result()
                    rows.setdefault((processes, count), []).append(row)
                    print(processes, count, row, flush=True)
    idle = min(loop for some in rows.values() for _, _, loop, _ in some)
    print(
        "\n| processes | videos | masks | CPU s: parent | workers | us a mask | load |\n|--:|--:|--:|--:|--:|--:|--:|"
    )
    for (processes, count), some in sorted(rows.items()):
        own, workers, loop, masks = min(some, key=lambda row: row[0] + row[1])
        each = (own + workers) / masks * 1e6
        print(f"| {processes} | {count} | {masks:,} | {own:.1f} | {workers:.1f} | {each:.1f} | {loop / idle:.2f} |")


if __name__ == "__main__":
    main()
