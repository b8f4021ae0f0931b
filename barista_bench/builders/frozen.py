"""Frozen examples as JSONL, in the layout of the release (upstream.md 1.3), one example a line, keys sorted.

    {example_id, task_name, label, frames: [{video_id, frame_index, mp4_path}], metadata, task_data}

In ours `task_data` holds `inputs`, `target` and `evidence`; in a file of the release itself it holds each task's own
fields, and is read all the same. `mp4_path` is written relative to the data root, so that the same examples have the
same bytes in every folder; it is never read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from barista_bench.benchmarks import get_benchmark, task_class
from barista_bench.benchmarks.released import MAX_FRAMES, ReleaseRoot, released_example
from barista_bench.bounded_files import read_json_lines
from barista_bench.errors import ConfigError, DataError
from barista_bench.task import Example, Task

MAX_LINE = 64 * 2**20
"""Bytes of one line; a longer one is refused."""
_SPLIT = re.compile(r"\w+(\.\w+)*")  # what `datasets` takes for the name of one
UNSAID = {
    "target": frozenset({"boxes"}),
    "metadata": frozenset({"colors", "relation", "related_category", "categories", "verbs"}),
}
"""Fields that the release's own lines do not say, so that imported examples lack them: tasks do without, or say so."""


def frozen_line(example: Example) -> str:
    """One example as one line of JSON, without the line end."""
    video_file = get_benchmark(example.benchmark).video_file
    record = {
        "example_id": example.example_id,
        "task_name": task_class(example.benchmark, example.task).upstream_name,
        "label": example.label,
        "frames": [
            {
                "video_id": frame.video_id,
                "frame_index": frame.frame_index,
                "mp4_path": video_file(frame.video_id),
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


def refuse_unusable(examples: Sequence[Example], where: str) -> None:
    """Raise DataError for examples that no set can hold: what was made of somebody's files is their word.

    Args:
        where: in messages, whose they are.
    """
    for example in examples:
        name, split = example.example_id, example.metadata.get("split")
        if not 1 <= len(example.frames) <= MAX_FRAMES:
            count = len(example.frames)
            raise DataError(f"{where}: {name!r} has {count} frames. Remedy: ask for 1 to {MAX_FRAMES} of them")
        if not isinstance(split, str) or not _SPLIT.fullmatch(split) or split == "all":
            raise DataError(f"{where}: {name!r} is of split {split!r:.80}. Remedy: call it as test or train are called")
        try:
            frozen_line(example).encode()
        except ValueError as error:
            remedy = "correct its text (lone surrogates) and numbers (NaN)"
            raise DataError(f"{where}: {name!r} cannot be written ({error}). Remedy: {remedy}") from error
    repeated = [name for name, count in Counter(one.example_id for one in examples).items() if count > 1]
    if repeated:
        raise DataError(f"{where}: example {repeated[0]!r} is there twice. Remedy: keep one")


def write_frozen(examples: Iterable[Example], path: str | Path) -> None:
    with Path(path).open("w", encoding="utf-8", newline="\n") as file:
        for example in examples:
            file.write(frozen_line(example) + "\n")


def read_frozen(path: str | Path, benchmark: str = "barista", *, root: str | Path | None = None) -> Iterator[Example]:
    """Examples of a frozen file, in its order: ours, or one of the release itself.

    Args:
        path: JSONL file.
        benchmark: whose examples they are.
        root: the release, for what a released line leaves out (masks, frame sizes); see
            `benchmarks/barista/released_tasks.py`.

    Raises:
        DataError: a line is no example of a known task, ids repeat or tasks are mixed; names file, line and field.
    """
    path, release = Path(path), ReleaseRoot(Path(root) if root is not None else None)
    records = list(read_json_lines(path, MAX_LINE, _object, what="no frozen example", remedy="freeze again"))
    examples: dict[int, Example] = {}
    # A released line may need its video's annotations: those of one video are read together, since only few are kept.
    for number, record in sorted(records, key=lambda item: _first_video(item[1])):
        try:
            examples[number] = _example(record, benchmark, release)
            frozen_line(examples[number]).encode()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ConfigError) as error:
            raise DataError(f"{path}: line {number}: no frozen example ({error!r}). Remedy: freeze again") from error
        except DataError as error:
            raise DataError(f"{path}: line {number}: {error}") from error
    seen: set[str] = set()
    task = ""
    for number, _ in records:
        example = examples[number]
        if example.example_id in seen:
            raise DataError(f"{path}: line {number}: {example.example_id!r} repeats. Remedy: keep one")
        seen.add(example.example_id)
        if task not in ("", example.task):
            tasks = sorted((task, example.task))
            raise DataError(f"{path}: line {number}: tasks {tasks} are mixed. Remedy: one task a file")
        task = example.task
        yield example


def _object(line: bytes) -> dict[str, Any]:
    record = json.loads(line, parse_constant=_refuse_constant)
    if not isinstance(record, dict):
        raise TypeError("no object")
    return record


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _first_video(record: dict[str, Any]) -> str:
    """By what lines are sorted before they are read; of what is no example, anything."""
    try:
        return str(record["frames"][0]["video_id"])
    except (KeyError, IndexError, TypeError):
        return ""


@cache
def _fields(task: type[Task]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The names that a task's examples must have in inputs, target and metadata."""
    features = task().features()
    parts = ("inputs", "target", "metadata")
    return tuple((part, tuple(name for name in features[part] if name not in UNSAID.get(part, ()))) for part in parts)


def _example(record: dict[str, Any], benchmark: str, release: ReleaseRoot) -> Example:
    task, data = task_class(benchmark, record["task_name"]), record["task_data"]
    owner = get_benchmark(benchmark)
    # In a scene graph's release each video has a folder; elsewhere a video's id is its path below the media.
    line = released_example(record, nested=owner.open_release is not None)
    if "inputs" not in data or "target" not in data:
        importer = owner.import_example
        if importer is None:
            raise DataError("task_data has no inputs and target. Remedy: freeze again")
        return importer(task, line, release)
    fields = {"inputs": dict(data["inputs"]), "target": dict(data["target"]), "metadata": dict(record["metadata"])}
    for part, names in _fields(task):
        missing = [name for name in names if name not in fields[part]]
        if missing:
            raise DataError(f"{part} has no {missing[0]!r}. Remedy: freeze again")
    return Example(
        example_id=line.example_id,
        benchmark=benchmark,
        task=task.name,
        label=line.label,
        frames=line.frames,
        **fields,
        evidence=dict(data.get("evidence", {})),
    )
