"""Paths from annotations, archives and listings stay inside a folder."""

from __future__ import annotations

import errno
import os
import re
import unicodedata
from pathlib import Path

from barista_bench.errors import DataError

_MAX_NAME_BYTES = 255


_DRIVE = re.compile(r"[A-Za-z]:")


# Control characters, lone surrogates (from file names that are not UTF-8), and line and paragraph separators.
_REFUSED_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})


def name_problem(name: str) -> str | None:
    """Return why `name` cannot be one component of a path on every system; None for a valid name."""
    if name in ("", ".", ".."):
        return f"{name!r} is not a name"
    if any(unicodedata.category(character) in _REFUSED_CATEGORIES for character in name):
        return "it holds a control character or undecodable bytes"
    if "/" in name or "\\" in name:
        return "it holds a path separator"
    if _DRIVE.match(name):
        return "it starts with a drive letter"
    if len(name.encode()) > _MAX_NAME_BYTES:
        return f"it is longer than {_MAX_NAME_BYTES} bytes"
    return None


def valid_video_id(name: str) -> bool:
    """Return True if `name` can be the folder of one video: one path component that every file system accepts.

    >>> valid_video_id("video_001"), valid_video_id(".."), valid_video_id("a/b")
    (True, False, False)
    """
    return name_problem(name) is None


def confine(root: Path, *parts: str) -> Path:
    """Return `root` joined with `parts`, guaranteed to lie inside `root` after symbolic links are followed.

    A part is a name, or several names joined by "/". The file need not exist. Raises DataError if a part is absolute,
    contains ".." or another invalid name, or leads outside through a symbolic link. The error names that part.
    """
    names = [name for part in parts for name in part.split("/")]
    joined_path = "/".join(parts)
    for name in names:
        problem = name_problem(name)
        if problem is not None:
            raise DataError(
                f"{root}: the path {joined_path!r} is refused because of {name!r}: {problem}. "
                "Fix: give a plain relative path below the folder"
            )
    base = root.resolve()
    path = base.joinpath(*names)
    target = _follow_links(path)
    if not (target.is_relative_to(base) or _is_hub_blob(base, target)):
        raise DataError(
            f"{root}: the path {joined_path!r} leads outside the folder, to {target}, through a symbolic link. "
            "Fix: put the file itself (or a hard link) in its place"
        )
    return path


def _follow_links(path: Path) -> Path:
    """Return `path` with all symbolic links followed. Raises DataError if they form a loop."""
    try:
        target = path.resolve()
        # Since Python 3.13 a loop is resolved to itself instead of raising RuntimeError.
        if any(place.is_symlink() for place in (target, *target.parents)):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    except (OSError, RuntimeError) as error:
        raise DataError(f"{path}: its symbolic links cannot be followed ({error}). Fix: remove the loop") from error
    return target


def _is_hub_blob(base: Path, target: Path) -> bool:
    """Return True if `base` lies in a snapshot of the Hugging Face cache and `target` is a file of that cache.

    Snapshots consist of links: `<cache>/datasets--<org>--<name>/snapshots/<sha>/...` -> `.../blobs/<etag>`, or
    `<cache>/blobs/...` if the cache shares files between repositories. Without this rule, you could not use the folder
    that `hf download` prints.
    """
    for folder in base.parents:
        repo = folder.parent
        if folder.name == "snapshots" and repo.name.startswith("datasets--"):
            return target.is_relative_to(repo / "blobs") or target.is_relative_to(repo.parent / "blobs")
    return False
