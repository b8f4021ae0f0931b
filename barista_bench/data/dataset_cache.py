"""Handle the cache of `datasets`: names, entries, and reading without progress bars.

Entries that `build` made are identified by content: `load_dataset(benchmark, config, entry=ID)` finds an entry, with or
without this package. The plain name, `load_dataset(benchmark, config)`, is a link to the last built entry. No other
data is stored under the plain name. Otherwise, `datasets` would take the folder that was changed last. `map` over older
rows saves results beside these rows, and so would change which rows the name stands for.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from barista_bench.errors import DataError

if TYPE_CHECKING:
    import datasets

log = logging.getLogger(__name__)

CACHE_INFO = "dataset_info.json"
"""The file that marks an entry in the cache of `datasets`."""
VIDEOS_NOTE = "videos_root"
"""The file of a linked entry with the place of the videos, which is valid only on this machine."""
_CACHED_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


def refuse_unknown_name(data: str | Path) -> None:
    """Refuse a name that is no folder, no `org/name` and not in the `datasets` cache. The Hub is not asked.

    Raises:
        DataError: the name is refused. The error names the searched cache.
    """
    import datasets

    cache = Path(datasets.config.HF_DATASETS_CACHE).expanduser()
    if "/" not in str(data) and not Path(data).exists() and not (cache / data).is_dir():
        raise DataError(
            f"{data}: no folder here, and no dataset of that name in {cache}. "
            "Fix: give a folder that `barista-bench build` wrote, or a Hub dataset as org/name"
        )


def refuse_uncached_name(name: str) -> None:
    """Raise ValueError for a name that cannot be in the `datasets` cache, such as a path."""
    if not _CACHED_NAME.fullmatch(name):
        raise ValueError("no dataset that `build` wrote, and no name in the cache")


def load_cached(name: str, config: str) -> datasets.DatasetDict:
    """Load a config of a set in the `datasets` cache, without the Hub. Raises ValueError if the cache lacks it."""
    from datasets.packaged_modules.cache.cache import Cache

    last = name.rpartition("/")[2]
    builder = Cache(repo_id=name, dataset_name=last, config_name=config, version="auto", hash="auto")
    builder.download_and_prepare()
    return builder.as_dataset()


@contextmanager
def reading_datasets(problem: str, remedy: str) -> Iterator[None]:
    """Run `datasets` without progress bars. If it finds no dataset, raise a DataError that begins with `problem`."""
    import datasets

    try:
        with quiet_datasets():
            yield
    # RuntimeError is raised for a dataset that is a script.
    except (ValueError, FileNotFoundError, ConnectionError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        raise DataError(f"{problem} ({error}). Fix: {remedy}") from error


@contextmanager
def quiet_datasets() -> Iterator[None]:
    """Keep `datasets` from drawing a bar for every split, shard and cast, since we draw one per config."""
    import datasets

    had_bars = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if had_bars:
            datasets.enable_progress_bars()


def warn_of_other_entries(benchmark: str, configs: Sequence[str]) -> None:
    """Log which entries the configs' plain names stand for, if the cache has several. Only the first config is logged
    in full.
    """
    messages = {config: message for config in configs if (message := _other_entries(benchmark, config))}
    if messages:
        first, *more = messages
        log.warning("%s%s", messages[first], f". Likewise: {', '.join(more)}" if more else "")


def _other_entries(benchmark: str, config: str) -> str | None:
    import datasets

    root = Path(datasets.config.HF_DATASETS_CACHE).expanduser() / benchmark
    newest_ids = [path.name for path in (root / config).glob("*/*") if path.is_symlink() and path.exists()]
    build_times = {info.parent.name: info.stat().st_mtime for info in root.glob(f"{config}-entry=*/*/*/{CACHE_INFO}")}
    entry_texts = {
        entry: f"{entry} (built {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(build_times[entry]))})"
        for entry in sorted(build_times, key=lambda entry: build_times[entry], reverse=True)
    }
    other_ids = [entry for entry in entry_texts if entry not in newest_ids]
    if not newest_ids or not other_ids:
        return None
    call = f'load_dataset("{benchmark}", "{config}"'
    newest_text = ", ".join(text for entry, text in entry_texts.items() if entry in newest_ids)
    return (
        f"{call}) is the entry {newest_text}. Others: {', '.join(entry_texts[entry] for entry in other_ids)}. "
        f"To have the first of them: {call}, entry={other_ids[0]!r})"
    )


def link_plain_name(folder: Path, config: str) -> None:
    """Link a config's plain name to the prepared entry at `<cache>/<benchmark>/<id>/<version>/<entry>`."""
    for path in (folder, folder / CACHE_INFO):
        os.utime(path)
    plain_folder = folder.parents[2] / config
    link = plain_folder / folder.parent.name / folder.name
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(Path("..", "..", *folder.parts[-3:]))
    for other in plain_folder.glob("*/*"):
        if other.is_symlink() and other != link:
            other.unlink()
