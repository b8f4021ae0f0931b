"""What commands print: results, notes, errors and warnings, JSON; and help in sections."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec
import typer

from barista_bench.files import text_out

_QUIET = ContextVar("quiet", default=False)
_JSON_ALONE = ContextVar("json_alone", default=False)


def begin(quiet: bool) -> None:
    """Take note of the flags before the command; --json comes after it."""
    _QUIET.set(quiet)
    _JSON_ALONE.set(False)


def json_alone(wanted: bool) -> bool:
    """The callback of --json."""
    if wanted:
        _QUIET.set(True)
        _JSON_ALONE.set(True)
    return wanted


def is_quiet() -> bool:
    """Whether --quiet or --json asks for no notes and no progress bars."""
    return _QUIET.get()


def echo(*lines: str, color: str | None = None, err: bool = False) -> None:
    """Print errors and warnings (`err`), and notes of what was done.

    Notes are left out where --quiet or --json asks for that; what a command was asked for is `print_result`'s.
    """
    if err or not is_quiet():
        with _ending_unread():
            text_out.echo(*lines, color=color, err=err)


def warn(*lines: str) -> None:
    """Print what was lost or left out, in yellow."""
    echo(*lines, color="yellow", err=True)


def print_result(*lines: str) -> None:
    """Print the result of the command: shown with --quiet too. With --json the JSON is that."""
    if not _JSON_ALONE.get():
        with _ending_unread():
            text_out.echo(*lines)


def print_json(value: object) -> None:
    """The only text on stdout of a command with --json, in ASCII; a figure that is not a number is null."""
    with _ending_unread():
        text_out.echo(*json.dumps(json.loads(msgspec.json.encode(value)), indent=1).splitlines())


@contextmanager
def _ending_unread() -> Iterator[None]:
    """Ends the command where whoever read its output, such as `head`, has gone."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes standard output once more at the end
        raise typer.Exit(1) from None


def write_sections(formatter: Any, sections: Mapping[str, list[tuple[str, str]]]) -> None:  # noqa: ANN401
    for title, rows in sections.items():
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)
