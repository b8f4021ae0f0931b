"""Entries of the `datasets` cache that `build` makes: told apart by content, the newest under the config's plain name.

`load_dataset(benchmark, config, entry=ID)` finds an entry, with or without this package. The plain name,
`load_dataset(benchmark, config)`, is a link to the one built last, and `datasets` names the folder it took. Nothing
else lies under it: of several folders `datasets` takes the one changed last, and `map` over older rows, which keeps its
results beside them, would change theirs.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import datasets

from barista_bench.data.rows import FramesMode

log = logging.getLogger(__name__)

_INFO = datasets.config.DATASET_INFO_FILENAME
_DIGITS = 16
"""Of the content's hash in an id: `datasets` keeps settings of up to 32 characters readable in names."""


class CacheEntry(NamedTuple):
    id: str
    built: float
    """When last, in seconds since the epoch."""

    def __str__(self) -> str:
        return f"{self.id} (built {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(self.built))})"


@contextmanager
def quiet_datasets() -> Iterator[None]:
    """`datasets` draws a bar for every split, shard and cast; ours is one a config."""
    shown = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            datasets.enable_progress_bars()


def entry_id(frames: FramesMode, content_hash: str) -> str:
    """What an entry is called: how its frames are stored, and the start of its content's hash (hexadecimal)."""
    return f"{frames}-{content_hash[:_DIGITS]}"


def config_id(config: str, entry: str) -> str:
    """The folder in which `load_dataset(..., config, entry=entry)` looks."""
    return datasets.BuilderConfig(config).create_config_id({"entry": entry})


def make_newest(folder: Path, benchmark: str, config: str) -> None:
    """Put the plain name of a config on a prepared entry, which lies at `<cache>/<benchmark>/<id>/<version>/<entry>`.

    A warning says so where the cache holds others.
    """
    for path in (folder, folder / _INFO):
        os.utime(path)
    plain = folder.parents[2] / config
    link = plain / folder.parent.name / folder.name
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(Path("..", "..", *folder.parts[-3:]))
    for other in plain.glob("*/*"):
        if other.is_symlink() and other != link:
            other.unlink()
    warn_of_others(benchmark, config)


def warn_of_others(benchmark: str, config: str) -> None:
    """Log what the plain name of a config means now, where the cache holds more than one entry of it."""
    root = Path(datasets.config.HF_DATASETS_CACHE).expanduser() / benchmark
    newest = [path.name for path in (root / config).glob("*/*") if path.is_symlink() and path.exists()]
    entries = sorted(_entries(root, config), key=lambda entry: entry.built, reverse=True)
    others = [entry for entry in entries if entry.id not in newest]
    if not newest or not others:
        return
    chosen = ", ".join(str(entry) for entry in entries if entry.id in newest)
    call = f'load_dataset("{benchmark}", "{config}"'
    log.warning(
        "%s) is the entry %s. Others: %s. To have the first of them: %s, entry=%r)",
        call, chosen, ", ".join(map(str, others)), call, others[0].id,
    )  # fmt: skip


def _entries(root: Path, config: str) -> Iterator[CacheEntry]:
    for info in root.glob(f"{config}-entry=*/*/*/{_INFO}"):
        yield CacheEntry(info.parent.name, info.stat().st_mtime)
