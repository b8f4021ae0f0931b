"""Commands that open the studio and invite people to a study."""

from __future__ import annotations

import getpass
import shlex
import signal
import webbrowser
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from barista_bench.cli.app import app, exit_on_error, split_names
from barista_bench.cli.output import echo, print_result
from barista_bench.cli.tree import ParentCommand
from barista_bench.errors import ConfigError


@app.command(cls=ParentCommand)
def studio(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            help=(
                "What to open: a release, datasets, runs, an annotation project, review files, or any "
                "combination. A study must be the only path, and is served to its participants. By "
                "default everything in the current folder."
            )
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            help=(
                "Folder in which the page may run commands and open their results. Without paths, the "
                "current folder; otherwise none."
            )
        ),
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="Your name as annotator, reviewer and participant; your login name by default.")
    ] = None,
    compare: Annotated[
        list[Path] | None, typer.Option(help="Another annotator's project of the same videos; may be repeated.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for people's answers and ratings.")] = Path("people"),
    port: Annotated[int, typer.Option(help="Port on this machine; 0 takes a free port.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Open a page on this machine to browse graphs and runs, annotate, review, answer questions and run commands.

    If PATHS is a study, serve the study instead.
    """
    with exit_on_error():
        from barista_bench.studio.server import studio_server
        from barista_bench.studio.study import is_study
        from barista_bench.studio.workspace import default_paths, open_workspace

        # A closed terminal and `kill` end the studio like Ctrl-C, together with all processes that it has started.
        # uvicorn takes the signal while it serves, and raises the signal again afterwards.
        signal.signal(signal.SIGTERM, _exit_on_signal)
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # `nohup` sets this handler
            # An exception from a handler could end a request instead of the server.
            signal.signal(signal.SIGHUP, lambda number, frame: signal.raise_signal(signal.SIGTERM))
        if paths and any(map(is_study, paths)):
            _serve_study(paths, has_other_options=bool(folder or by or compare or port))
            return
        if not paths:
            folder = folder or Path()
        person, to_open = by or getpass.getuser(), paths or (default_paths(folder) if folder else [])
        workspace = open_workspace(to_open, person=person, out=out, compared=compare or (), folder=folder)
        with studio_server(workspace, port, typer.main.get_command(app)) as server:
            print_result(server.address)
            if browser:
                webbrowser.open(server.address)
            server.run()


@app.command("studio invite")
def invite(
    data: Annotated[list[Path], typer.Argument(help="Datasets written by `build`, one per benchmark.")],
    participants: Annotated[str, typer.Option(help="Names, separated by commas; the report shows them.")],
    task: Annotated[str, typer.Option(help="Tasks to ask, separated by commas, or all.")] = "all",
    items: Annotated[int, typer.Option(min=1, max=10_000, help="Scored questions per task and person.")] = 20,
    overlap: Annotated[
        int | None, typer.Option(min=0, help="Number of questions that everyone gets; all by default.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Study folder; created or continued.")] = Path("study"),
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on this machine that serves the study.")] = 8800,
    public_url: Annotated[
        str | None,
        typer.Option(
            metavar="https://HOST",
            help="Address for the links: a reverse proxy that adds TLS. By default the port itself.",
        ),
    ] = None,
) -> None:
    """Invite people to answer the models' questions, in a study with a link for each person.

    A second invitation renews a person's link.
    """
    with exit_on_error():
        from barista_bench.studio.inviting import invite as invite_people
        from barista_bench.studio.study import Study, public_origin

        study = Study(
            version=1,
            port=port,
            public_url=public_origin(public_url) if public_url else "",
            data=tuple(str(folder.resolve()) for folder in data),
            tasks=split_names(task),
            items=items,
            overlap=items if overlap is None else overlap,
        )
        for name, link in invite_people(out, study, split_names(participants)).items():
            print_result(f"{name}  {link}")
        echo(f"links are shown only once; serve the study with: barista-bench studio {shlex.quote(str(out))}")


def _serve_study(paths: list[Path], *, has_other_options: bool) -> None:
    from barista_bench.studio.sharing import study_server

    if has_other_options or len(paths) != 1:
        remedy = (
            "name the folder of one study, and no other path, --folder, --by, --compare or --port "
            "(`studio invite` takes it)"
        )
        raise ConfigError(f"a study is served separately, at the port that `studio invite` saved. Fix: {remedy}")
    with study_server(paths[0]) as server:
        study = server.study
        print_result(f"{len(study.participants)} people can answer at {study.origin}, by their links")
        if study.public_url:
            echo(f"the reverse proxy of {study.public_url} forwards to 127.0.0.1:{study.port}")
        server.run()


def _exit_on_signal(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
