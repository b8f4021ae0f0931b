"""Find the data of a run by the paths in its `run.json`, and open its examples.

Each path is stored twice. The relative path helps if run folder and data move together, the absolute path if the data
stay. A relative path begins with `./` or `../`. Any other text is a name in the `datasets` cache or on the Hub. Data
are used only if the examples have the run's content hash. A run folder may come from a stranger. So its paths are only
read in place (a built dataset, a frozen file or a cache entry), and nothing is searched for or fetched.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from barista_bench.benchmarks import task_class
from barista_bench.data.chosen import reorder_choices, with_ids
from barista_bench.data.dataset import ExampleSet, open_examples
from barista_bench.data.manifest import MANIFEST
from barista_bench.errors import BaristaError, DataError
from barista_bench.runs.run_folder import OWN_EXAMPLES, Location, RunData, RunDescription


def data_location(folder: Path, data: str | None, root: str | Path | None, limit: int | None) -> RunData:
    """Return the `data` entry for the `run.json` in `folder`.

    `data` is None if the examples are stored in the folder.
    """
    path: tuple[str, str | None] = (data or f"./{OWN_EXAMPLES}", None)
    if data and Path(data).exists():
        path = _relative_and_absolute(folder, data)
    videos = _relative_and_absolute(folder, root) if root else (None, None)
    return RunData(path=path[0], absolute_path=path[1], root=videos[0], absolute_root=videos[1], limit=limit)


def moved_data(data: RunData, before: Path, now: Path) -> RunData:
    """Return the same location with paths relative to the run folder `now` instead of `before`."""

    def moved_path(path: str | None) -> str | None:
        return _relative_and_absolute(now, before / path)[0] if path and path.startswith(".") else path

    return data.model_copy(update={"path": moved_path(data.path), "root": moved_path(data.root)})


def _relative_and_absolute(folder: Path, path: str | Path) -> tuple[str, str]:
    """Return a path relative to the folder (if both are on one drive), and the absolute path."""
    absolute = Path(path).resolve()
    try:
        relative = Path(os.path.relpath(absolute, folder.resolve())).as_posix()
    except ValueError:
        return str(absolute), str(absolute)
    return relative if relative.startswith("../") or relative in (".", "..") else f"./{relative}", str(absolute)


def open_run_examples(folder: Path, description: RunDescription, data: Location, root: Location) -> ExampleSet:
    """Open the examples of a run.

    Args:
        data: current location of the data. None tries the recorded relative and absolute paths, then files next to the
            run folder.
        root: current location of the videos of a linked set. None searches the same places by name.

    Raises:
        DataError: the examples are missing, or differ from the examples of the run.
    """
    identity, stored = description.identity, description.data
    refusals: list[BaristaError] = []
    settings: dict[str, Any] = {"split": identity.split, "root": root or _root(folder, stored), "limit": stored.limit}
    for candidate in [data] if data else data_places(folder, stored.path, stored.absolute_path):
        try:
            examples = open_examples(candidate, identity.benchmark, identity.task, **settings, fetch=bool(data))
        except BaristaError as error:
            refusals.append(error)
            continue
        if stored.part is not None:
            examples = with_ids(examples, stored.part.ids)
        examples = reorder_choices(examples, task_class(identity.benchmark, identity.task)(), description.all_options)
        if examples.content_hash == identity.content_hash:
            return examples
        refusals.append(
            DataError(
                f"{folder}: was run on examples {identity.content_hash[:12]}, and {candidate} holds "
                f"{examples.content_hash[:12]}. Fix: name the dataset that was run with --data"
            )
        )
    if data and refusals:
        raise refusals[0]
    why = f" ({str(refusals[0]).partition(' Fix:')[0].rstrip('.')})" if refusals else ""
    raise DataError(
        f"{folder}: the examples {identity.content_hash[:12]} that it was run on are neither at {stored.path} "
        f"nor beside the run folder{why}; what only a run folder names is not fetched. "
        "Fix: name the dataset that was run with --data"
    )


def data_places(folder: Path, written: str, absolute: str | None) -> Iterator[str | Path]:
    """Yield the places that a data path of a run may mean, most likely first.

    Later places are searched only when requested.
    """
    if not written.startswith("."):
        yield written
        return
    folder = folder.resolve()
    stored_path = Path(os.path.normpath(folder / written))
    likely_places = dict.fromkeys([stored_path, Path(absolute or stored_path), folder.parent / stored_path.name])
    yield from (path for path in likely_places if path.exists())
    yield from (path for path in sorted(folder.parent.glob("[!.]*")) if path not in likely_places and _is_dataset(path))


def _is_dataset(path: Path) -> bool:
    return (path / MANIFEST).is_file()


def _root(folder: Path, stored: RunData) -> str | Path | None:
    """Return the folder of the videos.

    If no place has the videos, return the first place, since some uses need no videos.
    """
    root, absolute = stored.root, stored.absolute_root
    if root is None or not root.startswith("."):
        return root
    return next((path for path in data_places(folder, root, absolute) if not _is_dataset(Path(path))), folder / root)
