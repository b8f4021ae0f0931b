"""Print results, notes, errors, warnings and JSON of commands, and help in sections."""

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
    """Set up the output of a command from the flags before it; --json comes after it."""
    _QUIET.set(quiet)
    _JSON_ALONE.set(False)
    show_bars(not quiet)


def show_bars(wanted: bool) -> bool:
    """Suppress progress bars of Hugging Face libraries ("Loading weights") unless bars are wanted."""
    if not wanted:
        os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"  # for libraries imported later, here or in a child process
        if "huggingface_hub" in sys.modules:
            from huggingface_hub.utils.tqdm import disable_progress_bars

            disable_progress_bars()
        if "transformers" in sys.modules:
            from transformers.utils.logging import disable_progress_bar

            disable_progress_bar()
    return wanted


def print_json_alone(wanted: bool) -> bool:
    """Callback of --json: print only JSON from now on."""
    if wanted:
        _QUIET.set(True)
        _JSON_ALONE.set(True)
        show_bars(False)
    return wanted


def is_quiet() -> bool:
    """Whether --quiet or --json turns off notes and progress bars."""
    return _QUIET.get()


def echo(*lines: str, color: str | None = None, err: bool = False) -> None:
    """Print errors and warnings (`err`), and notes on completed work.

    --quiet and --json turn notes off; use `print_result` for the result of a command.
    """
    if err or not is_quiet():
        with _exit_on_closed_output():
            text_out.echo(*lines, color=color, err=err)


def warn(*lines: str) -> None:
    """Print, in yellow, what was lost or left out."""
    echo(*lines, color="yellow", err=True)


def print_result(*lines: str) -> None:
    """Print the result of the command, with --quiet too. With --json, print nothing: the JSON is the result."""
    if not _JSON_ALONE.get():
        with _exit_on_closed_output():
            text_out.echo(*lines)


def print_json(value: object) -> None:
    """Print the only text on stdout of a command with --json, in ASCII; a score that is not a number becomes null."""
    with _exit_on_closed_output():
        text_out.echo(*json.dumps(json.loads(msgspec.json.encode(value)), indent=1).splitlines())


@contextmanager
def _exit_on_closed_output() -> Iterator[None]:
    """End the command if the reader of its output, such as `head`, has closed it."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes standard output again at exit
        raise typer.Exit(1) from None


def write_sections(formatter: Any, sections: Mapping[str, list[tuple[str, str]]]) -> None:  # noqa: ANN401
    for title, rows in sections.items():
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)
