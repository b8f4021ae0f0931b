"""The command that opens the studio."""

from __future__ import annotations

import getpass
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from barista_bench.cli.app import LOOK, app, exit_on_error, print_result


@app.command(rich_help_panel=LOOK)
def studio(
    paths: Annotated[
        list[Path], typer.Argument(help="A release, datasets, runs, an annotation project, review files: any of them.")
    ],
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
    """Look at graphs and runs, annotate and review, answer the questions yourself: a page on this machine alone."""
    with exit_on_error():
        from barista_bench.studio.server import serving
        from barista_bench.studio.workspace import open_workspace

        workspace = open_workspace(paths, person=by or getpass.getuser(), out=out, compared=compare or ())
        with serving(workspace, port) as server:
            print_result(server.address)
            if browser:
                webbrowser.open(server.address)
            server.run()
