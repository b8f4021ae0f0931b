"""Files of others, read within bounds: whatever they hold, no more is held in memory than the reader asked for.

`bounded_bytes` and `bounded_lines` raise OSError also for what is too large, for readers that log what they leave out;
the functions above them raise errors of this package, which name the file and the remedy.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, TypeVar

from barista_bench.errors import BaristaError, DataError

T = TypeVar("T")


def read_bounded(
    path: str | Path,
    most: int,
    *,
    what: str = "cannot be read",
    remedy: str,
    error: type[BaristaError] = DataError,
) -> bytes:
    """A file's bytes, at most `most`.

    Args:
        what: what errors say of a file that is missing or larger, such as `no rubric file`.
        remedy: what errors advise.
        error: what is raised.

    Raises:
        BaristaError: of the kind `error`, for a file that cannot be read or is larger.
    """
    try:
        return bounded_bytes(path, most)
    except OSError as raised:
        raise error(f"{path}: {what} ({raised.strerror}). Remedy: {remedy}") from raised


def read_bounded_text(
    path: str | Path, most: int, *, what: str = "cannot be read", remedy: str, encoding: str = "utf-8"
) -> str:
    """A file's text. Raises DataError as `read_bounded` does, also for bytes of another encoding."""
    try:
        return read_bounded(path, most, what=what, remedy=remedy).decode(encoding)
    except UnicodeDecodeError as raised:
        raise DataError(f"{path}: {what} (is not UTF-8: {raised.reason}). Remedy: {remedy}") from raised


def read_bounded_json(path: str | Path, most: int, *, what: str = "cannot be read", remedy: str) -> object:
    """A file's JSON value. Raises DataError as `read_bounded` does, also for what is no JSON."""
    data = read_bounded(path, most, what=what, remedy=remedy)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as raised:
        raise DataError(f"{path}: {what} ({raised}). Remedy: {remedy}") from raised


def read_json_lines(
    path: str | Path, most: int, decode: Callable[[bytes], T], *, what: str, remedy: str
) -> Iterator[tuple[int, T]]:
    """Number, counted from 1, and record of each line that is not blank.

    Args:
        most: bytes of a line.
        decode: makes a record of a line, or raises ValueError, TypeError, KeyError or RecursionError.
        what: what errors say, such as `no frozen example`.
        remedy: what errors advise.

    Raises:
        DataError: the file cannot be read, a line is longer, or `decode` does not take it; names the line.
    """
    try:
        for number, line in bounded_lines(path, most):
            try:
                record = decode(line)
            except (ValueError, TypeError, KeyError, RecursionError) as raised:
                raise DataError(f"{path}: line {number}: {what} ({raised}). Remedy: {remedy}") from raised
            yield number, record
    except OSError as raised:
        raise DataError(f"{path}: {what} ({raised.strerror}). Remedy: {remedy}") from raised


def bounded_bytes(path: str | Path, most: int) -> bytes:
    """A file's bytes. Raises OSError, EFBIG for a file of more than `most` bytes."""
    with Path(path).open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise _too_large(path, f"is larger than {most} bytes")
    return data


def bounded_lines(
    path: str | Path, most: int, *, overlong: Literal["refuse", "cut"] = "refuse", max_file: int | None = None
) -> Iterator[tuple[int, bytes]]:
    """Number, counted from 1, and content of each line that is not blank; one line at a time is held.

    Args:
        most: bytes of a line, its end included.
        overlong: what becomes of a longer one: an error, or its first `most + 1` bytes, by which it is known.
        max_file: bytes of the file, if bounded.

    Raises:
        OSError: EFBIG for what is too large.
    """
    with Path(path).open("rb") as file:
        if max_file is not None and os.fstat(file.fileno()).st_size > max_file:
            raise _too_large(path, f"is larger than {max_file} bytes")
        number = 0
        while line := file.readline(most + 1):
            number += 1
            if len(line) > most and overlong == "refuse":
                raise _too_large(path, f"line {number} is longer than {most} bytes")
            rest = line
            while rest and not rest.endswith(b"\n"):
                rest = file.readline(most)
            if line.strip():
                yield number, line


def _too_large(path: str | Path, problem: str) -> OSError:
    return OSError(errno.EFBIG, problem, str(path))
