"""What a built folder says of itself to programs: `barista_bench.json`."""

from __future__ import annotations

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barista_bench import __version__
from barista_bench.core.task import ProtocolName
from barista_bench.data.rows import FramesMode
from barista_bench.errors import DataError
from barista_bench.files.bounded import read_bounded_json
from barista_bench.files.writing import DATASET, MAX_MANIFEST
from barista_bench.scene_graph import Problem

DEFAULT = "barista"
"""The benchmark that commands mean where none is named."""
MANIFEST = DATASET.manifest
"""Written last into a finished folder, whose files it lists."""


@dataclass(frozen=True, slots=True)
class LostExample:
    """An example whose frames or images cannot be made."""

    example_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class BuiltConfig:
    """One config of the folder. `content_hash` identifies the frozen examples (SHA-256), None for graph tables."""

    name: str
    rows: Mapping[str, int]
    content_hash: str | None = None
    candidates: int | None = None
    skipped: Sequence[str] = ()
    lost: Sequence[LostExample] = ()
    groups: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Examples by value of each metadata key by which results are broken down."""
    labels: Mapping[str, int] = field(default_factory=dict)
    sampling: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Built:
    """What `build` wrote: `empty` are tasks without an example, `problems` and `source` the release's."""

    folder: Path
    configs: tuple[BuiltConfig, ...]
    empty: tuple[str, ...]
    problems: tuple[Problem, ...]
    source: Mapping[str, Any]
    protocol: ProtocolName = "release"
    benchmark: str = "barista"


def write_manifest(folder: Path, built: Built, frames: FramesMode, root: Path) -> None:
    """Last file of all: its presence says that the folder is complete."""
    counts = Counter(problem.severity for problem in built.problems)
    manifest = {
        "version": __version__,
        "benchmark": built.benchmark,
        "protocol": built.protocol,
        "frames": frames,
        "source": dict(built.source),
        "data_root": os.path.relpath(root.resolve(), built.folder.resolve()) if frames == "linked" else None,
        "problems": {"errors": counts["error"], "warnings": counts["warning"]},
        "configs": [dataclasses.asdict(config) for config in built.configs],
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """The manifest of a built folder.

    Raises:
        DataError: the folder is none, or was not finished.
    """
    path = Path(folder) / MANIFEST
    remedy = "run `barista-bench build`"
    manifest = read_bounded_json(path, MAX_MANIFEST, what="no built dataset here", remedy=remedy)
    if not isinstance(manifest, dict):
        raise DataError(f"{path}: is {type(manifest).__name__}, not an object. Remedy: {remedy}")
    return manifest
