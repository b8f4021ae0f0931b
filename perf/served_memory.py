"""Memory and CPU time of a served run: what 200, 1,000, ... requests leave behind, and what one 1080p picture costs.

    python perf/served_memory.py [--requests 10000] [--width 1920] [--quick]

A frozen set of `grounding` (one frame an example) is made of a mini kitchen's frames, each example with a
picture of its own; a local server in another process answers at once. Printed are resident memory of the
asking process after so many requests (all of it, and without pages of mapped files), and CPU time a request.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq

from barista_bench.data.folder import build
from barista_bench.mini import write_kitchen
from barista_bench.models import AnsweredRequest, GenerationConfig, Request
from barista_bench.models.served.model import ServedModel
from barista_bench.runs.ask.config import RunConfig, checked
from barista_bench.runs.ask.opening import open_tasks
from barista_bench.runs.ask.runner import run_config

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests import served_standin
from tests.served_standin import ServedStandIn

MIB = 2**20


def serve(ready: Connection) -> None:
    """Answers at once, and keeps nothing of what it is asked."""

    class Forgetful(list[object]):
        def append(self, item: object) -> None: ...

    served_standin.expected_text = lambda body, choice=0: "[]"
    with ServedStandIn() as server:
        server.calls = Forgetful()  # type: ignore[assignment]
        ready.send(server.url)
        ready.recv()


def make(root: Path, width: int, count: int) -> None:
    """A set of `count` examples below `root`; in a process of its own, whose memory is not counted."""
    datasets.disable_progress_bars()
    write_kitchen(root / "kitchen", videos=1, width=width, height=width * 9 // 16, seconds=(6.0, 8.0), num_proc=1)
    build(root / "kitchen", root / "data", configs=["grounding"], cache=False)
    with_pictures_of_their_own(root / "data", count)


def with_pictures_of_their_own(folder: Path, count: int) -> None:
    """Repeat the rows of a built set up to `count`; a comment in each JPEG makes its bytes its own."""
    files = sorted((folder / "grounding").glob("*.parquet"))
    rows = [row for file in files for row in pq.read_table(file).to_pylist()]
    schema = pq.read_schema(files[0])
    for file in files:
        file.unlink()
    with pq.ParquetWriter(folder / "grounding" / "train-00000-of-00001.parquet", schema) as writer:
        for start in range(0, count, 100):
            part = []
            for number in range(start, min(start + 100, count)):
                row = dict(rows[number % len(rows)], position=number, example_id=f"grounding:made:{number}")
                data = row["images"][0]["bytes"]
                comment = f"{number:08d}".encode()
                own = data[:2] + b"\xff\xfe" + (len(comment) + 2).to_bytes(2, "big") + comment + data[2:]
                part.append({**row, "images": [{"bytes": own, "path": None}]})
            writer.write_table(pa.Table.from_pylist(part, schema=schema))


def memory() -> tuple[float, float]:
    """Resident MiB: all, and anonymous pages alone."""
    lines = dict(line.split(":") for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:])
    rss, anonymous = (int(lines[name].split()[0]) / 1024 for name in ("Rss", "Anonymous"))
    return rss, anonymous


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--width", type=int, default=1920)
    parser.add_argument("--quick", action="store_true", help="600 requests of small pictures")
    options = parser.parse_args()
    count, width = (600, 320) if options.quick else (options.requests, options.width)
    root = Path(tempfile.mkdtemp(prefix="served_memory", dir=os.environ.get("PERF_TMP")))
    datasets.disable_progress_bars()
    spawn = multiprocessing.get_context("spawn")
    maker = spawn.Process(target=make, args=(root, width, count))
    maker.start()
    maker.join()
    stored = sum(file.stat().st_size for file in (root / "data").glob("*/*.parquet")) / count
    ours, theirs = multiprocessing.Pipe()
    server = spawn.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    settings = {"model": "served:m", "base_url": ours.recv(), "api_key_env": None, "runs": 1, "task": ["grounding"]}
    config = checked(RunConfig, {**settings, "data": str(root / "data"), "out": root / "run"})
    marks = [mark for mark in (200, 1_000, 2_854, 5_000, 10_000) if mark < count] + [count]
    seen: list[tuple[int, float, float, float]] = []
    stream = ServedModel.stream

    def counted(
        model: ServedModel, requests: Iterable[Request], generation: GenerationConfig
    ) -> Iterator[AnsweredRequest]:
        for number, answered in enumerate(stream(model, requests, generation), start=1):
            if number in marks:
                seen.append((number, *memory(), time.process_time()))
            yield answered

    ServedModel.stream = counted  # type: ignore[method-assign]
    run_config(config, open_tasks(config))
    ours.send(None)
    print(f"{count} requests with a picture of {width} pixels, {stored / 1000:.0f} kB each\n")
    print("| requests | MiB | of which not files | CPU ms a request since the line above |\n|--:|--:|--:|--:|")
    before: tuple[int, float] | None = None
    for number, rss, anonymous, cpu in seen:
        each = f"{1000 * (cpu - before[1]) / (number - before[0]):.1f}" if before else ""
        print(f"| {number:,} | {rss:.0f} | {anonymous:.0f} | {each} |")
        before = number, cpu
    print(json.dumps({"growth_mib": round(seen[-1][1] - seen[0][1], 1)}))
    shutil.rmtree(root)


if __name__ == "__main__":
    main()
