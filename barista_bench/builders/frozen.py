"""Frozen examples as JSONL, in the layout of the release (upstream.md 1.3), one example a line, keys sorted.

    {example_id, task_name, label, frames: [{video_id, frame_index, mp4_path}], metadata, task_data}

`task_data` holds our `inputs`, `target` and `evidence`; `mp4_path` is relative to the data root, so that the same
examples have the same bytes in every folder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from barista_bench.benchmarks import get_task
from barista_bench.errors import ConfigError, DataError
from barista_bench.scene_graph.release import VIDEO_FILE
from barista_bench.task import Example, FrameRef

MAX_LINE = 64 * 2**20
"""Bytes of one line that are read."""


def frozen_line(example: Example) -> str:
    """One example as one line of JSON, without the line end."""
    record = {
        "example_id": example.example_id,
        "task_name": get_task(example.benchmark, example.task).upstream_name,
        "label": example.label,
        "frames": [
            {
                "video_id": frame.video_id,
                "frame_index": frame.frame_index,
                "mp4_path": f"{frame.video_id}/{VIDEO_FILE}",
            }
            for frame in example.frames
        ],
        "metadata": example.metadata,
        "task_data": {"inputs": example.inputs, "target": example.target, "evidence": example.evidence},
    }
    return json.dumps(record, sort_keys=True, ensure_ascii=False, allow_nan=False)


def content_hash(examples: Iterable[Example]) -> str:
    """SHA-256 over the frozen lines, sorted: the identity of a set, in whatever order or splits it is held."""
    digest = hashlib.sha256()
    for line in sorted(frozen_line(example) for example in examples):
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()


def write_frozen(examples: Iterable[Example], path: str | Path) -> None:
    with Path(path).open("w", encoding="utf-8", newline="\n") as file:
        for example in examples:
            file.write(frozen_line(example) + "\n")


def read_frozen(path: str | Path, benchmark: str = "barista") -> Iterator[Example]:
    """Examples of a frozen file, in its order.

    Raises:
        DataError: a line is no example of a known task, ids repeat or tasks are mixed; names file and line.
    """
    path, seen, tasks = Path(path), set(), set()
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE), b""), start=1):
            if not line.strip():
                continue
            try:
                example = _example(json.loads(line), benchmark)
            except (ValueError, KeyError, TypeError, AttributeError, ConfigError) as error:
                raise DataError(
                    f"{path}: line {number}: no frozen example ({error!r}). Remedy: freeze again"
                ) from error
            if example.example_id in seen:
                raise DataError(f"{path}: line {number}: {example.example_id!r} repeats. Remedy: keep one")
            seen.add(example.example_id)
            tasks.add(example.task)
            if len(tasks) > 1:
                raise DataError(f"{path}: line {number}: tasks {sorted(tasks)} are mixed. Remedy: one task a file")
            yield example


def _example(record: dict[str, Any], benchmark: str) -> Example:
    data = record["task_data"]
    return Example(
        example_id=str(record["example_id"]),
        benchmark=benchmark,
        task=get_task(benchmark, record["task_name"]).name,
        label=str(record["label"]),
        frames=tuple(FrameRef(str(f["video_id"]), int(f["frame_index"])) for f in record["frames"]),
        inputs=dict(data["inputs"]),
        target=dict(data["target"]),
        metadata=dict(record["metadata"]),
        evidence=dict(data.get("evidence", {})),
    )
