"""Read and write frozen examples as JSONL with sorted keys, one example per line, in our layout or the release's.

    {example_id, task_name, label, frames: [{video_id, frame_index, mp4_path}], metadata, task_data}

In our layout, `task_data` has `inputs`, `target` and `evidence`, and the line has the task's version. In the release's
layout, `task_data` has the fields of each task. Such lines are read unchanged, and written with `build --layout
release`. `mp4_path` is written relative to the data root, so that the same examples have the same bytes in every
folder. It is never read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from barista_bench.benchmarks import FrozenFormat, get_benchmark, task_class
from barista_bench.core.example import Example
from barista_bench.core.frozen_lines import MAX_FRAMES, ReleaseRoot, frozen_line_of
from barista_bench.core.options import Sampling
from barista_bench.core.task import Task
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.reading import read_json_lines

MAX_LINE = 64 * 2**20
"""Maximum number of bytes of one line. A longer line is refused."""
_SPLIT = re.compile(r"\w+(\.\w+)*")  # the names of splits that `datasets` accepts
UNRELEASED_FIELDS = {
    "target": frozenset({"boxes"}),
    "metadata": frozenset({"colors", "relation", "related_category", "categories", "verbs"}),
}
"""Fields that released lines and the examples from them lack. Tasks work without these fields, or raise an error."""


def frozen_line(example: Example) -> str:
    """Return one example as a line of JSON in our layout, without the line end."""
    benchmark, task = get_benchmark(example.benchmark), task_class(example.benchmark, example.task)
    record = {
        "example_id": example.example_id,
        "task_name": task.upstream_name,
        "task_version": task.version,
        "label": example.label,
        "frames": [
            {"video_id": f.video_id, "frame_index": f.frame_index, "mp4_path": benchmark.video_file(f.video_id)}
            for f in example.frames
        ],
        "metadata": example.metadata,
        "task_data": {"inputs": example.inputs, "target": example.target, "evidence": example.evidence},
    }
    return json.dumps(record, sort_keys=True, ensure_ascii=False, allow_nan=False)


def released_line(example: Example, question: str | None = None) -> str:
    """Return one example in the format of the benchmark's release, without the line end.

    Args:
        question: the sentence that the release freezes with some tasks, for examples that lack it.

    Raises:
        ConfigError: the benchmark's release freezes no examples.
    """
    return json.dumps(_released_format(example).write(example, question), sort_keys=True, allow_nan=False)


def _released_format(owner: Example | Task) -> FrozenFormat:
    frozen_format = get_benchmark(owner.benchmark).frozen_format
    if frozen_format is None:
        raise ConfigError(f"{owner.benchmark}: its release freezes no examples. Fix: use --layout ours")
    return frozen_format


def content_hash(examples: Iterable[Example]) -> str:
    """Return the SHA-256 of questions and references. It identifies a set, whatever its order, split or layout.

    If the benchmark's release freezes examples, `FrozenFormat.identity` selects the hashed fields. For other
    benchmarks, the complete frozen line is hashed.
    """
    return lines_sha256(sorted(_identity(example) for example in examples))


def _identity(example: Example) -> str:
    frozen_format = get_benchmark(example.benchmark).frozen_format
    fields = None if frozen_format is None else frozen_format.identity(example)
    return frozen_line(example) if fields is None else json.dumps(fields, sort_keys=True, allow_nan=False)


def lines_sha256(lines: Iterable[str]) -> str:
    """Return the SHA-256 of texts, with a line break after each text."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()


def refuse_other_version(version: object, task: type[Task]) -> None:
    """Raise DataError for examples that another version of the task froze."""
    if version != task.version:
        raise DataError(
            f"frozen by version {version!r:.20} of {task.benchmark}/{task.name}, which is now {task.version}: its "
            "rules have changed. Fix: build the set again"
        )


def refuse_unusable(examples: Sequence[Example], where: str) -> None:
    """Raise DataError for examples that no set can contain. Other people's files are untrusted.

    Args:
        where: beginning of messages.
    """
    for example in examples:
        name, split, count = example.example_id, example.metadata.get("split"), len(example.frames)
        if not 1 <= count <= MAX_FRAMES:
            raise DataError(f"{where}: {name!r} has {count} frames. Fix: ask for 1 to {MAX_FRAMES} of them")
        if not isinstance(split, str) or not _SPLIT.fullmatch(split) or split == "all":
            raise DataError(f"{where}: {name!r} is of split {split!r:.80}. Fix: call it as test or train are called")
        try:
            frozen_line(example).encode()
        except ValueError as error:
            remedy = "correct its text (lone surrogates) and numbers (NaN)"
            raise DataError(f"{where}: {name!r} cannot be written ({error}). Fix: {remedy}") from error
    repeated = [name for name, count in Counter(example.example_id for example in examples).items() if count > 1]
    if repeated:
        raise DataError(f"{where}: example {repeated[0]!r} is there twice. Fix: keep one")


def write_frozen(examples: Iterable[Example], path: str | Path) -> None:
    with Path(path).open("w", encoding="utf-8", newline="\n") as file:
        for example in examples:
            file.write(frozen_line(example) + "\n")


def write_released(task: Task, sampling: Sampling, examples: Iterable[Example], folder: Path) -> None:
    """Write a set for the benchmark's own harness. No video is opened, since that harness decodes the frames.

        <folder>/<task_name>.jsonl          the frozen lines, in the order sampled
        <folder>/<task_name>.config.json    task_params, shuffle_seed and limit of these lines

    Raises:
        ConfigError: the benchmark's release freezes no examples, or lacks a parameter of the sampling.
    """
    config = {
        "task": task.upstream_name,
        "task_params": dict(_released_format(task).parameters(task.name, sampling)),
        "shuffle_seed": sampling.seed,
        "limit": sampling.limit,
    }
    lines = [released_line(example, task.frozen_question(example)) for example in examples]
    path = folder / f"{task.upstream_name}.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    config_text = json.dumps(config, indent=2, sort_keys=True) + "\n"
    path.with_suffix(".config.json").write_text(config_text, encoding="utf-8", newline="\n")


def read_frozen(path: str | Path, benchmark: str = "barista", *, root: str | Path | None = None) -> Iterator[Example]:
    """Read the examples of a frozen file, in order. The file is ours or the release's.

    Args:
        path: JSONL file.
        benchmark: the benchmark of the examples.
        root: the release. It supplies data that a released line omits (masks, frame sizes), see
            `benchmarks/barista/frozen_line_reader.py`.

    Raises:
        DataError: lines are not examples of a known task, ids repeat, or tasks are mixed. The error names the file, and
        every bad line with its fault.
    """
    path, release = Path(path), ReleaseRoot(Path(root) if root is not None else None)
    records = list(read_json_lines(path, MAX_LINE, _json_object, what="no frozen example", remedy="freeze again"))
    examples: dict[int, Example] = {}
    problems: dict[str, list[int]] = defaultdict(list)
    # A released line may need the annotations of its video. The cache is small, so all lines of one video are read
    # together.
    for number, record in sorted(records, key=lambda item: _first_video(item[1])):
        try:
            examples[number] = _example(record, benchmark, release)
            frozen_line(examples[number]).encode()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ConfigError) as error:
            problems[f"no frozen example ({error!r:.200}). Fix: freeze again"].append(number)
        except DataError as error:
            problems[str(error)].append(number)
    ordered_examples = {number: examples[number] for number, _ in records if number in examples}
    task = next((example.task for example in ordered_examples.values()), "")
    first_lines: dict[str, int] = {}
    for number, example in ordered_examples.items():
        first = first_lines.setdefault(example.example_id, number)
        if first != number:
            problems[f"{example.example_id!r} repeats line {first}. Fix: keep one"].append(number)
        if example.task != task:
            problems[f"tasks {sorted((example.task, task))} are mixed. Fix: one task a file"].append(number)
    refuse_lines(path, problems)
    yield from ordered_examples.values()


def refuse_lines(path: Path, problems: Mapping[str, Sequence[int]]) -> None:
    """Raise DataError if there are problems. The error groups them by fault and names every line, in order.

    Args:
        problems: maps each fault, with its remedy, to line numbers from 1.
    """
    if problems:
        listed = sorted((sorted(numbers), what) for what, numbers in problems.items())
        parts = (f"line {number_ranges(numbers)}: {what}" for numbers, what in listed)
        raise DataError(f"{path}: " + "; ".join(parts))


def number_ranges(numbers: Sequence[int]) -> str:
    """Write sorted integers in short form.

    >>> number_ranges([1, 2, 3, 7])
    '1-3, 7'
    """
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1].append(number)
        else:
            ranges.append([number])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in ranges)


def _json_object(line: bytes) -> dict[str, Any]:
    record = json.loads(line, parse_constant=_refuse_constant)
    if not isinstance(record, dict):
        raise TypeError("no object")
    return record


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _first_video(record: dict[str, Any]) -> str:
    """Return the first video of an unread line, as a sort key; empty for a line that is not an example."""
    try:
        return str(record["frames"][0]["video_id"])
    except (KeyError, IndexError, TypeError):
        return ""


@cache
def _fields(task: type[Task]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the names of the required fields in inputs, target and metadata of a task's examples."""
    features = task().features()
    return tuple(
        (column, tuple(name for name in features[column] if name not in UNRELEASED_FIELDS.get(column, ())))
        for column in ("inputs", "target", "metadata")
    )


def _example(record: dict[str, Any], benchmark: str, release: ReleaseRoot) -> Example:
    benchmark_record = get_benchmark(benchmark)
    # In a scene graph's release, each video has a folder. In other releases, a video's id is its path below the media.
    line = frozen_line_of(record, nested=benchmark_record.open_release is not None)
    task, data = task_class(benchmark, line.task_name), line.task_data
    if "inputs" not in data or "target" not in data:
        if benchmark_record.frozen_format is None:
            raise DataError("task_data has no inputs and target. Fix: freeze again")
        return benchmark_record.frozen_format.read(task, line, release)
    refuse_other_version(record.get("task_version"), task)
    fields = {"inputs": dict(data["inputs"]), "target": dict(data["target"]), "metadata": line.metadata}
    for column, names in _fields(task):
        absent_names = [name for name in names if name not in fields[column]]
        if absent_names:
            raise DataError(f"{column} has no {absent_names[0]!r}. Fix: freeze again")
    return Example(
        example_id=line.example_id,
        benchmark=benchmark,
        task=task.name,
        label=line.label,
        frames=line.frame_refs,
        **fields,
        evidence=dict(data.get("evidence", {})),
    )
