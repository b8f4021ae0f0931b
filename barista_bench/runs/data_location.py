"""Where a run's data lie: written so that a run folder can be read from any folder, and after it was moved.

A path is stored relative to the run folder, which holds while both are moved together, and absolute, which holds while
the data stay. It begins with `./` or `../`; anything else is a name in the `datasets` cache or on the Hub. What lies
there is believed only if its examples have the hash that the run was made on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from barista_bench.data.dataset import ExampleSet, open_examples
from barista_bench.data.manifest import MANIFEST
from barista_bench.errors import BaristaError, DataError
from barista_bench.runs.run_folder import OWN_EXAMPLES


def data_location(folder: Path, data: str | None, root: str | Path | None, limit: int | None) -> dict[str, Any]:
    """The `data` of a `run.json` that will lie in `folder`; `data` is None for examples of the folder's own."""
    path: tuple[str, str | None] = (data or f"./{OWN_EXAMPLES}", None)
    if data and Path(data).exists():
        path = _relative_and_absolute(folder, data)
    videos = _relative_and_absolute(folder, root) if root else (None, None)
    return {
        "path": path[0],
        "absolute_path": path[1],
        "root": videos[0],
        "absolute_root": videos[1],
        "limit": limit,
    }


def _relative_and_absolute(folder: Path, path: str | Path) -> tuple[str, str]:
    """Relative to the folder, where both are on one drive, and absolute."""
    absolute = Path(path).resolve()
    try:
        relative = Path(os.path.relpath(absolute, folder.resolve())).as_posix()
    except ValueError:
        return str(absolute), str(absolute)
    return relative if relative.startswith("../") or relative in (".", "..") else f"./{relative}", str(absolute)


def open_run_examples(
    folder: Path, described: Mapping[str, Any], data: str | Path | None, root: str | Path | None
) -> ExampleSet:
    """The examples that a run was made on.

    Args:
        folder: the run folder.
        described: its `run.json`.
        data: where they lie now; None looks where they lay, relative to the run folder and absolute, and then among
            what lies beside the run folder.
        root: where the videos of a linked set lie now; None looks in the same way, by name.

    Raises:
        DataError: they are not there, or others are.
    """
    identity, stored = described["identity"], described["data"]
    refusals: list[BaristaError] = []
    for candidate in [data] if data else _candidates(folder, stored["path"], stored.get("absolute_path")):
        try:
            examples = open_examples(
                candidate,
                identity["benchmark"],
                identity["task"],
                split=identity["split"],
                root=root or _root(folder, stored),
                limit=stored["limit"],
            )
        except BaristaError as error:
            refusals.append(error)
            continue
        if examples.content_hash == identity["content_hash"]:
            return examples
        refusals.append(
            DataError(
                f"{folder}: was run on examples {identity['content_hash'][:12]}, and {candidate} holds "
                f"{examples.content_hash[:12]}. Remedy: name the dataset that was run with --data"
            )
        )
    if data and refusals:
        raise refusals[0]
    why = f" ({str(refusals[0]).partition(' Remedy:')[0].rstrip('.')})" if refusals else ""
    raise DataError(
        f"{folder}: the examples {identity['content_hash'][:12]} that it was run on are neither at {stored['path']} "
        f"nor beside the run folder{why}. Remedy: name the dataset that was run with --data"
    )


def _candidates(folder: Path, written: str, absolute: str | None) -> Iterator[str | Path]:
    """Where a path may lead to, the likeliest first. It is looked for elsewhere only when the next one is asked for."""
    if not written.startswith("."):
        yield written
        return
    folder = folder.resolve()
    stored = Path(os.path.normpath(folder / written))
    known = dict.fromkeys([stored, Path(absolute or stored), folder.parent / stored.name])
    yield from (path for path in known if path.exists())
    yield from (path for path in sorted(folder.parent.glob("[!.]*")) if path not in known and _is_dataset(path))


def _is_dataset(path: Path) -> bool:
    return (path / MANIFEST).is_file()


def _root(folder: Path, stored: Mapping[str, Any]) -> str | Path | None:
    """Where the videos lie; the first place again if they are in none, for what is read without them."""
    root, absolute = stored["root"], stored.get("absolute_root")
    if root is None or not root.startswith("."):
        return root
    return next((path for path in _candidates(folder, root, absolute) if not _is_dataset(Path(path))), folder / root)
