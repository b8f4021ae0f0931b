"""Build the dataset of a release once, with the published settings, in the user's cache (`user_cache`)."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path

from barista_bench.benchmarks import BENCHMARKS, get_benchmark
from barista_bench.data.frozen import lines_sha256
from barista_bench.data.manifest import MANIFEST, read_manifest
from barista_bench.data.source import commit_of_release
from barista_bench.files.file_cache import user_cache
from barista_bench.files.hashes import file_sha256
from barista_bench.scene_graph.release import ANNOTATION_FILE
from barista_bench.version import __version__

log = logging.getLogger(__name__)
_DIGITS = 16


def dataset_of(
    data: str,
    benchmark: str,
    *,
    protocol: str = "release",
    num_proc: int = 1,
    progress: bool = False,
    tell: Callable[[str], None] = log.info,
) -> str:
    """Return the dataset of a release. If `data` is not a release, return `data` itself.

    A later call with the same content, version and settings returns the same folder without a build.

    Args:
        data: a release's folder, a release's id on the Hub, or anything that `open_examples` accepts.
        benchmark: the benchmark of the release.
        protocol: as the task option.
        num_proc: number of processes, which does not change the dataset.
        tell: receives one line about the built or reused folder.

    Raises:
        DataError, SourceError, ConfigError: see `build`.
    """
    if benchmark not in BENCHMARKS:
        return data
    commit = commit_of_release(data)
    if commit is None and not _is_release_folder(Path(data), benchmark):
        return data
    from barista_bench.data.folder import build  # imports `datasets`

    content = commit or _content_sha256(Path(data))
    identity = [__version__, benchmark, protocol, content]
    key = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:_DIGITS]
    folder = user_cache("built") / f"{benchmark}-{key}"
    if (folder / MANIFEST).is_file():
        tell(f"reusing the dataset that was built from {data}: {folder}")
    else:
        tell(f"building the dataset of {data} with the published settings: {folder}")
        build(
            data,
            folder,
            benchmark=benchmark,
            configs=get_benchmark(benchmark).task_names,
            revision=commit,
            protocol=protocol,
            cache=False,
            num_proc=num_proc,
            progress=progress,
        )
    lost = read_manifest(folder)["problems"]["lost_videos"]
    if lost:
        log.warning("%s: %d videos cannot be used; `barista-bench validate` says why", data, lost)
    return str(folder)


def _is_release_folder(folder: Path, benchmark: str) -> bool:
    """Return True for a folder with scene graphs or a benchmark's annotations; False for built or Parquet data."""
    if not folder.is_dir():
        return False
    if get_benchmark(benchmark).open_release is None:
        return any(folder.glob(f"*/{ANNOTATION_FILE}"))
    return not any(True for name in (MANIFEST, f"*/{MANIFEST}", "*.parquet", "*/*.parquet") for _ in folder.glob(name))


def _content_sha256(folder: Path) -> str:
    """Return the SHA-256 of the names and contents of all files."""
    files = sorted(Path(parent, name) for parent, _, names in os.walk(folder, followlinks=True) for name in names)
    return lines_sha256(f"{path.relative_to(folder)!r} {file_sha256(path, across_processes=True)}" for path in files)
