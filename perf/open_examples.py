"""Opening a built set to score it: a folder of ours beside `datasets`, with an empty cache and a filled one.

    python perf/open_examples.py [--quick]

All give the same examples, pictures left alone. The best of k rounds counts; the empty cache is made empty each time.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import datasets

from barista_bench.data.dataset import ExampleSet, open_examples
from barista_bench.data.folder import build
from barista_bench.data.manifest import MANIFEST
from barista_bench.mini import write_kitchen

TASK = "relations"


def made(root: Path, quick: bool) -> tuple[Path, Path]:
    """The set as `build` leaves it, and its copy without a manifest, which is opened through `datasets`."""
    write_kitchen(root / "kitchen", videos=2 if quick else 8, num_proc=2)
    sampling = {"frame_step": 10, "limit": None}
    folder = build(root / "kitchen", root / "ours", configs=[TASK], sampling=sampling, cache=False, num_proc=2).folder
    plain = Path(shutil.copytree(folder, root / "plain"))
    (plain / MANIFEST).unlink()
    return folder, plain


def opened(folder: Path) -> ExampleSet:
    return open_examples(folder, "barista", TASK)


def best(call: Callable[[], ExampleSet], rounds: int, before: Callable[[], None] = lambda: None) -> tuple[float, str]:
    """CPU seconds, and the hash of what was opened."""
    spent, content_hash = [], ""
    for _ in range(rounds):
        before()
        begin = time.process_time()
        content_hash = call().content_hash
        spent.append(time.process_time() - begin)
    return min(spent), content_hash


def size(folder: Path) -> float:
    """MiB below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two videos, one round")
    quick = parser.parse_args().quick
    rounds = 1 if quick else 5
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        datasets.config.HF_DATASETS_CACHE = cache = root / "cache"
        ours, plain = made(root, quick)
        opened(plain)  # everything is imported before the first round
        rows = {
            "folder of `build`": (*best(lambda: opened(ours), rounds), 0.0),
            "`datasets`, cached": (*best(lambda: opened(plain), rounds), size(cache)),
            "`datasets`, empty cache": (
                *best(lambda: opened(plain), rounds, lambda: shutil.rmtree(cache, ignore_errors=True)),
                size(cache),
            ),
        }
        base, expected, _ = rows["folder of `build`"]
        print(f"{len(opened(ours))} examples, {size(ours):.1f} MiB of Parquet")
        print("| opened | CPU ms | x ours | MiB in the cache | examples |\n|:--|--:|--:|--:|:--|")
        for name, (spent, content_hash, held) in rows.items():
            verdict = "equal" if content_hash == expected else "WRONG"
            print(f"| {name} | {spent * 1e3:.0f} | {spent / base:.1f} | {held:.1f} | {verdict} |")


if __name__ == "__main__":
    main()
