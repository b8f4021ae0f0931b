"""CPU time and memory of `score` and `report`, and of reading a log, on runs of very many samples.

    python perf/large_runs.py [--examples 10000] [--repetitions 10] [--tasks relations,activity] [--quick]

A frozen set of each task is made of a mini kitchen's rows, repeated under video ids of their own, 50 examples a video
and one small picture an image (the largest of the five benchmarks has 11,000 questions); `chance` answers all of it.
Each command runs in a process of its own, whose CPU time (its children's included) and largest resident memory are
printed. The log reader is timed beside `json.loads` of each line.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import typer
from PIL import Image

from barista_bench.data.folder import build
from barista_bench.mini import write_kitchen
from barista_bench.runs.ask.runner import run
from barista_bench.runs.log.sample_log import LOG_FILE
from barista_bench.runs.log_reader import LogReader

EXAMPLES_A_VIDEO = 50
ROWS_AT_ONCE = 2000


def make_set(kitchen: Path, folder: Path, task: str, count: int) -> None:
    """A frozen set of one task with `count` examples, whose pictures are small."""
    build(kitchen, folder, configs=[task], sampling={"limit": 100}, cache=False)
    files = sorted((folder / task).glob("*.parquet"))
    rows = [row for file in files for row in pq.read_table(file).to_pylist()]
    schema = pq.read_schema(files[0])
    for file in files:
        file.unlink()
    picture = io.BytesIO()
    Image.new("RGB", (16, 16)).save(picture, "JPEG")
    stored = {"bytes": picture.getvalue(), "path": None}
    with pq.ParquetWriter(folder / task / "train-00000-of-00001.parquet", schema) as writer:
        for start in range(0, count, ROWS_AT_ONCE):
            part = []
            for position in range(start, min(start + ROWS_AT_ONCE, count)):
                row = rows[position % len(rows)]
                own = {
                    "position": position,
                    "video_id": f"v{position // EXAMPLES_A_VIDEO:05d}",
                    "example_id": f"{row['example_id']}:{position}",
                    "images": [stored] * len(row["images"]),
                }
                part.append({**row, **own})
            writer.write_table(pa.Table.from_pylist(part, schema=schema))


def make_run(root: Path, task: str, count: int, repetitions: int) -> Path:
    """A run of `chance` over the set of one task."""
    data, out = root / f"data_{task}", root / "runs"
    make_set(root / "kitchen", data, task, count)
    run(data, out, model="chance", repetitions=repetitions, task=[task], progress=False)
    return out / task


def measure_command(arguments: Sequence[object]) -> tuple[float, float, float]:
    """CPU seconds and wall seconds of a command, and the largest resident memory of one of its processes in MiB."""
    before, begun = os.times(), time.perf_counter()
    command: list[str | Path] = [Path(sys.executable).with_name("barista-bench"), *map(str, arguments)]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(map(str, arguments))} failed")
    after = os.times()
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return cpu, time.perf_counter() - begun, usage.ru_maxrss / 1024


def time_readers(folder: Path) -> None:
    begun = time.process_time()
    with LogReader(folder, keep=True) as reader:  # as `score` and `report` read it
        records = sum(1 for _ in reader)
    ours = time.process_time() - begun
    begun = time.process_time()
    with (folder / LOG_FILE).open("rb") as file:
        lines = sum(1 for line in file if json.loads(line))
    plain = time.process_time() - begun
    print(f"{folder.name}, log of {records} records: {plain / ours:.2f}x as fast as json.loads of {lines} lines")


def main(examples: int = 10_000, repetitions: int = 10, tasks: str = "relations,activity", quick: bool = False) -> None:
    count, repetitions = (500, 4) if quick else (examples, repetitions)
    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory() as made:
        root = Path(made)
        write_kitchen(root / "kitchen", videos=3, width=128, height=72, seconds=(6.0, 8.0), num_proc=1)
        for task in tasks.split(","):
            run_folder, page = make_run(root, task, count, repetitions), root / f"report_{task}"
            time_readers(run_folder)
            for command in (["score", run_folder], ["report", run_folder, "--out", page]):
                cpu, wall, memory = measure_command(command)
                what = f"{task}, {count} x {repetitions} samples, {command[0]}"
                print(f"{what}: {cpu:.1f} CPU s, {wall:.1f} s, {memory:.0f} MiB", flush=True)


if __name__ == "__main__":
    typer.run(main)
