"""Files that are whole at every moment: whoever reads sees the old one or the new one, also when a write is killed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A hidden file to write beside `path`, which takes its place at the end.

    An error leaves `path` as it was. Several processes may do this at once: the last to end counts.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes | str) -> None:
    """Write `path` at once; text as UTF-8."""
    with replacing(path) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)
