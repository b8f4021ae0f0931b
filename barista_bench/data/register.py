"""Extend `datasets.load_dataset` in one process: load releases by name, and decode the frames of linked sets.

`datasets` has no plug-in point for this: it reads no entry points, and runs no scripts since 4.0. So `register` wraps
the function that gives `load_dataset` its builder, and you must call `register` yourself. Tests watch for changes in
`datasets`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets.load

from barista_bench.benchmarks import BENCHMARKS
from barista_bench.data.builder import BenchmarkBuilder
from barista_bench.data.dataset import recorded_root
from barista_bench.data.dataset_cache import VIDEOS_NOTE
from barista_bench.data.manifest import MANIFEST
from barista_bench.data.origin import config_names_of
from barista_bench.data.tables import GRAPH_TABLES
from barista_bench.errors import ConfigError
from barista_bench.media.frames import AnyDataset, link_frames
from barista_bench.version import __version__

_original_loader = datasets.load.load_dataset_builder
_DOWNLOAD_SETTINGS = ("download_config", "download_mode", "revision")


def register() -> None:
    """Extend `datasets.load_dataset` in this process; `unregister` undoes it.

    Linked sets get `frames` that are decoded on access (`media.frames.LazyFrames`). In torch format, frames are uint8
    tensors of shape (frames, 3, height, width), like the `images` of frozen sets. This works for folders and cache
    entries that `build` made on this machine. For other sets, the folder of the videos is unknown: use `link_frames`
    and give the folder.

    With `source`, a benchmark's name is read directly from its release, without a build: `load_dataset("barista",
    "relations", source="/data/BARISTA", frames="linked")` works from any folder, and so does `load_dataset("vista",
    "all", source=ANNOTATIONS, videos=VIDEOS)`. Keyword arguments are the fields of `BenchmarkConfig`. The prepared set
    is saved in the `datasets` cache. Its key is made of the settings, the version of this package and the state of the
    release (names, sizes and modification times of the files), so that a changed release is prepared again.
    """
    datasets.load.load_dataset_builder = _load_builder


def unregister() -> None:
    """Restore the original function of `datasets`."""
    datasets.load.load_dataset_builder = _original_loader


def _load_builder(
    path: str,
    name: str | None = None,
    **settings: Any,  # noqa: ANN401  # the settings of `load_dataset_builder`
) -> datasets.DatasetBuilder | _LinkingBuilder:
    if path in BENCHMARKS and settings.get("source"):
        config_names = config_names_of(path)
        if name not in config_names:
            raise ConfigError(f"{path}: no config {name!r}. Fix: use one of {', '.join(config_names)}")
        builder_settings = {key: value for key, value in settings.items() if key not in _DOWNLOAD_SETTINGS}
        builder = BenchmarkBuilder(dataset_name=path, config_name=name, hash=__version__, **builder_settings)
    else:
        builder = _original_loader(path, name, **settings)
    root = None if name in GRAPH_TABLES else _linked_root(path, builder)
    return builder if root is None else _LinkingBuilder(builder, root)


def _linked_root(path: str, builder: datasets.DatasetBuilder) -> Path | None:
    """Return the folder of the videos that a set is linked to; None for frozen sets and unknown folders."""
    if isinstance(builder, BenchmarkBuilder):
        return builder.origin.media if builder.config.frames == "linked" else None
    if (Path(path) / MANIFEST).is_file():
        return recorded_root(path)
    note = Path(builder.cache_dir) / VIDEOS_NOTE
    return Path(os.fsdecode(note.read_bytes())) if note.is_file() else None


@dataclass(frozen=True)
class _LinkingBuilder:
    """A builder whose datasets have frames linked to the videos below `root`."""

    builder: datasets.DatasetBuilder
    root: Path

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # any attribute of the builder
        return getattr(self.builder, name)

    def as_dataset(self, *args: object, **settings: object) -> Any:  # noqa: ANN401  # one of four types, or a list
        return self._link(self.builder.as_dataset(*args, **settings))

    def as_streaming_dataset(self, *args: object, **settings: object) -> Any:  # noqa: ANN401
        return self._link(self.builder.as_streaming_dataset(*args, **settings))

    def _link(self, splits: AnyDataset | list[AnyDataset]) -> AnyDataset | list[AnyDataset]:
        if isinstance(splits, list):
            return [link_frames(split, root=self.root) for split in splits]
        return link_frames(splits, root=self.root)
