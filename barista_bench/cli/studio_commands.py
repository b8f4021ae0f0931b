"""The command that opens the studio."""

from __future__ import annotations

import getpass
import signal
import webbrowser
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from barista_bench.cli.app import LOOK, app, exit_on_error, print_result


@app.command(rich_help_panel=LOOK)
def studio(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            help="A release, datasets, runs, an annotation project, review files: any of them. "
            "By default what the folder holds."
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            help="Folder in which the page may run commands and open what they make; "
            "the current one where no path is named, none otherwise."
        ),
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="Who annotates, reviews and answers. Your login name by default.")
    ] = None,
    compare: Annotated[
        list[Path] | None,
        typer.Option(help="Project of another annotator of the same videos; may be given several times."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for people's answers and ratings.")] = Path("people"),
    port: Annotated[int, typer.Option(help="Port on this machine. 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Look at graphs and runs, annotate and review, answer the questions yourself; run the other commands by button: a
    page on this machine alone."""
    with exit_on_error():
        from barista_bench.studio.server import serving
        from barista_bench.studio.workspace import first_opened, open_workspace

        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _ending)  # the server raises it again once it has ended
        if not paths:
            folder = folder or Path()
        named = paths or (first_opened(folder) if folder else [])
        opened = open_workspace(named, person=by or getpass.getuser(), out=out, compared=compare or (), folder=folder)
        with serving(opened, port, typer.main.get_command(app)) as server:
            print_result(server.address)
            if browser:
                webbrowser.open(server.address)
            server.run()


def _ending(number: int, frame: FrameType | None) -> None:
    """End as after Ctrl-C: what the studio has started ends with it."""
    raise SystemExit(128 + number)
