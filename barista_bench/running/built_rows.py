"""Rows of a built config: their columns at once, their pictures when the first is asked for.

Whoever scores or reports reads no picture. A folder that `build` made is therefore read column by column, and
`datasets`, which copies a set into its cache before it gives out a row, is called for pictures alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from barista_bench.builders.card import MANIFEST
from barista_bench.builders.folder import quiet_datasets
from barista_bench.errors import ConfigError, DataError

if TYPE_CHECKING:
    import datasets
    import pyarrow as pa

_SHARD = re.compile(r"(.+)-\d+-of-\d+\.parquet")


class BuiltRows:
    """`columns` are all but pictures, a row an example, in the drawn order.

    Args:
        columns: of every row, those of linked frames among them.
        pictures: opens the rows with their `images`, in the same order; what comes is in Arrow format.
    """

    def __init__(self, columns: pa.Table, pictures: Callable[[], datasets.Dataset]) -> None:
        self.columns = columns
        self.is_linked = "frames" in columns.column_names
        self._open, self._lock = pictures, Lock()
        self._pictures: datasets.Dataset | None = None

    def __getitem__(self, index: int) -> Mapping[str, Any]:
        """One row with its media, which are not decoded.

        Raises:
            DataError: the rows cannot be opened, or are others than they were.
        """
        row: Mapping[str, Any] = self.columns.slice(index, 1).to_pylist()[0]
        if self.is_linked:
            return row
        with self._lock:  # frames are fetched by several threads
            if self._pictures is None:
                self._pictures = self._open()
        full: Mapping[str, Any] = self._pictures[index].to_pylist()[0]
        if full["example_id"] != row["example_id"]:
            raise DataError(f"{row['example_id']}: the dataset was changed while it was read. Remedy: start again")
        if "images" not in full:
            raise DataError(f"{row['example_id']}: neither images nor frames. Remedy: build the dataset again")
        return full


def open_rows(data: str | Path, config: str, split: str, limit: int | None) -> BuiltRows:
    """Rows of a folder that `build` made, a name in the `datasets` cache, or a Hub dataset.

    Raises:
        DataError, ConfigError: there is no such dataset, config or split.
    """
    if not (Path(data) / MANIFEST).is_file():
        loaded = _loaded(data, config, split, limit)
        light = loaded.remove_columns([name for name in loaded.column_names if name == "images"])
        return BuiltRows(light[:], lambda: loaded)
    columns = _read(Path(data), config, split)
    drawn = np.argsort(columns["position"].to_numpy(), kind="stable")[:limit]
    return BuiltRows(columns.take(drawn), lambda: _loaded(data, config, split, limit))


def local_configs(folder: Path) -> tuple[str, ...]:
    """Names of the configs of a folder that `build` made."""
    return tuple(path.name for path in sorted(folder.iterdir()) if path.is_dir() and _shards(path))


def unloadable() -> tuple[type[Exception], ...]:
    """What `datasets` raises where it finds no dataset; RuntimeError for one that is a script."""
    import datasets

    return ValueError, FileNotFoundError, ConnectionError, RuntimeError, datasets.exceptions.DatasetsError


def _read(folder: Path, config: str, split: str) -> pa.Table:
    """Every column but pictures, of the Parquet files that `build` names by split."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = _shards(folder / config)
    if not found:
        raise DataError(f"{folder}: no config {config!r}. Remedy: run `barista-bench build`")
    _refuse_unknown(f"{folder}/{config}", split, list(dict.fromkeys(name for name, _ in found)))
    tables = []
    for name, path in found:
        if split in ("all", name):
            try:
                with pq.ParquetFile(path) as file:
                    tables.append(file.read([name for name in file.schema_arrow.names if name != "images"]))
            except (OSError, pa.ArrowException) as error:
                raise DataError(f"{path}: cannot be read ({error}). Remedy: build the dataset again") from error
    try:
        table = pa.concat_tables(tables)
    except pa.ArrowException as error:
        raise DataError(f"{folder}/{config}: its files differ ({error}). Remedy: build it again") from error
    if "position" not in table.column_names:
        raise DataError(f"{folder}/{config}: has no column position. Remedy: build it again")
    return table


def _shards(folder: Path) -> list[tuple[str, Path]]:
    """Split and file, in the order of their names."""
    return [(match[1], path) for path in sorted(folder.glob("*")) if (match := _SHARD.fullmatch(path.name))]


def _loaded(data: str | Path, config: str, split: str, limit: int | None) -> datasets.Dataset:
    """Rows through `datasets`, in Arrow format: nothing is decoded, images stay the bytes that they are."""
    import datasets

    with quiet_datasets():
        try:
            loaded = datasets.load_dataset(str(data), config)
        except unloadable() as error:
            raise DataError(f"{data}: no config {config!r} ({error}). Remedy: run `barista-bench build`") from error
    _refuse_unknown(f"{data}/{config}", split, list(loaded))
    names = list(loaded) if split == "all" else [split]
    rows = datasets.concatenate_datasets([loaded[name] for name in names]).with_format("arrow")
    if "position" not in rows.column_names:
        raise DataError(f"{data}/{config}: has no column position. Remedy: build it with this package")
    return rows.select(np.argsort(rows["position"][:].to_numpy(), kind="stable")[:limit])


def _refuse_unknown(where: str, split: str, known: list[str]) -> None:
    if split != "all" and split not in known:
        raise ConfigError(f"{where}: no split {split!r}. Remedy: use one of all, {', '.join(known)}")
