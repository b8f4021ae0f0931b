"""The files of a run folder, and `run.json`, which says what the samples in it are of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from barista_bench import __version__
from barista_bench.core.prompt import BoxFormat
from barista_bench.core.task import Task
from barista_bench.errors import ConfigError
from barista_bench.files.writing import write_whole
from barista_bench.runs.ask.shards import Shard
from barista_bench.runs.description import checked_description, read_description
from barista_bench.runs.log.keys import prompt_options
from barista_bench.runs.log.sample_log import log_files, refuse_other_version

CONFIG_FILE = "run.json"
OWN_EXAMPLES = "examples.jsonl"
"""The examples of an imported run, kept in its folder: it can be scored without the files that it was made from."""
_VERSIONED = ("datasets", "torch", "transformers", "openai", "av", "pillow", "numpy")


def log_file(folder: Path, shard: Shard) -> Path:
    """The sample log of one process."""
    return folder / ("samples.jsonl" if shard.alone else f"samples-{shard.rank}.jsonl")


def sessions_file(folder: Path, shard: Shard) -> Path:
    """One line a start of this process: what it did, and where its seconds went."""
    return folder / ("sessions.jsonl" if shard.alone else f"sessions-{shard.rank}.jsonl")


def run_description(
    task: Task,
    *,
    content_hash: str,
    prompts_hash: str | None,
    model: Mapping[str, Any],
    boxes: BoxFormat,
    generation: Mapping[str, Any],
    split: str = "all",
    versions: Mapping[str, str] = {"barista_bench": __version__},
) -> dict[str, Any]:
    """What any run folder is about; the defaults are those of imported runs.

    `identity` must stay the same when the run is started again.
    """
    return {
        "barista_bench": __version__,
        "protocol": task.protocol,
        "prompts": asdict(task.prompts),
        "options": task.chosen,
        "identity": {
            "benchmark": task.benchmark,
            "task": task.name,
            "task_version": task.version,
            "split": split,
            "content_hash": content_hash,
            "prompts_hash": prompts_hash,
            "model": {**model, "box_format": asdict(boxes)},
            "generation": generation,
            "options": prompt_options(task),
        },
        "versions": versions,
    }


def read_run(folder: str | Path) -> dict[str, Any]:
    """The description of a run folder.

    Raises:
        DataError: it is none, or not one of ours; names file and field.
    """
    return read_description(Path(folder) / CONFIG_FILE)


def claim(folder: Path, described: dict[str, Any]) -> None:
    """Write the run's description, or check that the folder belongs to this run. `runs` may change between starts.

    Raises:
        ConfigError: the folder holds another run.
        DataError: the folder's description is damaged, this one could not be read back, or a log is one of another
            version.
    """
    path = folder / CONFIG_FILE
    for file in log_files(folder):
        refuse_other_version(file)
    now = checked_description(json.loads(json.dumps(described)), path)
    if path.exists():
        _refuse_another(folder, read_run(folder), now)
    elif any(file.stat().st_size for file in log_files(folder)):
        raise ConfigError(f"{folder}: holds samples, but no {CONFIG_FILE} that says of what. Remedy: use another --out")
    write_run(folder, described)


def write_run(folder: Path, described: Mapping[str, Any]) -> None:
    """Write the run's description, whatever stands there."""
    write_whole(folder / CONFIG_FILE, json.dumps(described, indent=1, sort_keys=True) + "\n")


def _refuse_another(folder: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    pairs = [("limit", before["data"]["limit"], now["data"]["limit"])]
    pairs += [("protocol", before["protocol"], now["protocol"])]
    pairs += [(name, before["identity"].get(name), value) for name, value in now["identity"].items()]
    for name, old, new in pairs:
        if old != new:
            raise ConfigError(f"{folder}: holds a run with {name} {old!r}, not {new!r}. Remedy: use another --out")


def package_versions() -> dict[str, str]:
    """Versions of the packages on which answers and figures depend."""
    versions = {}
    for name in _VERSIONED:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return versions
