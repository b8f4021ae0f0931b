"""The command itself, and what its parts share."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from barista_bench import __version__
from barista_bench.errors import BaristaError
from barista_bench.printable import printable

app = typer.Typer(
    name="barista-bench",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Evaluate vision-language models on egocentric video, from one scene graph.\n\n"
    "The way of the data: mini or a release -> validate -> build -> run -> score -> report.",
)


class ProtocolChoice(StrEnum):
    release = "release"
    paper = "paper"


Protocol = Annotated[
    ProtocolChoice, typer.Option(help="Whose rules: the released code's, or the paper's where they differ.")
]
Options = Annotated[
    list[str] | None,
    typer.Option(help="Option of the task that changes scores alone, name=value; may be given several times."),
]
Progress = Annotated[bool, typer.Option(help="Show progress bars.")]
Root = Annotated[Path | None, typer.Option(help="Folder of the videos of a linked dataset, if they have moved.")]


def main() -> None:
    """The entry point. What this package raises on purpose ends as one line and exit code 1."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    app()


@contextmanager
def explained() -> Iterator[None]:
    """One line for what went wrong, and exit code 1."""
    try:
        yield
    except (BaristaError, OSError) as error:
        # OSError: a disk that is full, a folder that is a file or may not be written; its text names the file.
        typer.secho(f"error: {printable(' '.join(str(error).splitlines()))}", fg="red", err=True)
        raise typer.Exit(1) from error


def _version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version
