"""Print the results, notes, errors, warnings and JSON of commands, and help in sections."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec
import typer

from barista_bench.files import text_out

_QUIET = ContextVar("quiet", default=False)
_JSON_ALONE = ContextVar("json_alone", default=False)


def begin_output(quiet: bool) -> None:
    """Set up output from the flags before the command's name. The flag --json comes after the name."""
    _QUIET.set(quiet)
    _JSON_ALONE.set(False)
    show_bars(not quiet)


def show_bars(wanted: bool) -> bool:
    """Suppress progress bars of Hugging Face libraries ("Loading weights") unless bars are wanted."""
    if not wanted:
        os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"  # for later imports, here or in a child process
        if "huggingface_hub" in sys.modules:
            from huggingface_hub.utils.tqdm import disable_progress_bars

            disable_progress_bars()
        if "transformers" in sys.modules:
            from transformers.utils.logging import disable_progress_bar

            disable_progress_bar()
    return wanted


def print_json_alone(wanted: bool) -> bool:
    """Print only JSON from now on. This is the callback of --json."""
    if wanted:
        _QUIET.set(True)
        _JSON_ALONE.set(True)
        show_bars(False)
    return wanted


def is_quiet() -> bool:
    """Return whether --quiet or --json turns off notes and progress bars."""
    return _QUIET.get()


def echo(*lines: str, color: str | None = None, err: bool = False) -> None:
    """Print errors and warnings (`err` is true) or notes on completed work.

    --quiet and --json turn notes off. Use `print_result` for the result of a command.
    """
    if err or not is_quiet():
        with _exit_on_closed_output():
            text_out.echo(*lines, color=color, err=err)


def warn(*lines: str) -> None:
    """Print a warning about lost or left-out data in yellow."""
    echo(*lines, color="yellow", err=True)


def print_result(*lines: str) -> None:
    """Print the result of the command, even with --quiet. With --json, print nothing, since the JSON is the result."""
    if not _JSON_ALONE.get():
        with _exit_on_closed_output():
            text_out.echo(*lines)


def print_json(value: object) -> None:
    """Print the JSON of a command with --json, as its only text on stdout.

    The text is ASCII. A score that is not a number becomes null.
    """
    with _exit_on_closed_output():
        text_out.echo(*json.dumps(json.loads(msgspec.json.encode(value)), indent=1).splitlines())


@contextmanager
def _exit_on_closed_output() -> Iterator[None]:
    """End the command if the reader of its output, such as `head`, has closed the pipe."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # because Python flushes standard output again at exit
        raise typer.Exit(1) from None


def write_sections(formatter: Any, sections: Mapping[str, list[tuple[str, str]]]) -> None:  # noqa: ANN401
    for title, rows in sections.items():
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)
