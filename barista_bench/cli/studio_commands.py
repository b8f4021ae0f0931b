"""The commands that open the studio, and invite people to a study."""

from __future__ import annotations

import getpass
import shlex
import signal
import webbrowser
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from barista_bench.cli.app import LOOK, app, exit_on_error, split_names
from barista_bench.cli.output import echo, print_result
from barista_bench.errors import ConfigError

_STUDY_ADDRESS = "127.0.0.1:8800"


@app.command(rich_help_panel=LOOK)
def studio(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            help="A release, datasets, runs, an annotation project, review files: any of them; or a study alone, which "
            "is then served to its participants. By default what the folder holds."
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
    share_on: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Serve a study, and nothing else, beyond this machine, at the address that its links have.",
        ),
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="PEM file of the certificate of that address.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="PEM file of the certificate's key.")] = None,
) -> None:
    """Look at graphs and runs, annotate and review, answer the questions yourself; run the other commands by button: a
    page on this machine alone. Or serve a study."""
    with exit_on_error():
        from barista_bench.studio.server import studio_server
        from barista_bench.studio.study import is_study
        from barista_bench.studio.workspace import default_paths, open_workspace

        # A closed terminal and `kill` end the studio as Ctrl-C does: what it has started ends with it. uvicorn takes
        # the signal while it serves, and raises it again afterwards.
        signal.signal(signal.SIGTERM, _exit_on_signal)
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # which `nohup` sets
            # An exception out of a handler could end a request in the place of the server.
            signal.signal(signal.SIGHUP, lambda number, frame: signal.raise_signal(signal.SIGTERM))
        if share_on or tls_cert or tls_key or any(map(is_study, paths or ())):
            _serve_study(paths or [], bool(folder or by or compare or port), share_on, tls_cert, tls_key)
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


@app.command(rich_help_panel=LOOK)
def invite(
    data: Annotated[list[Path], typer.Argument(help="Datasets made by `build`, one a benchmark.")],
    participants: Annotated[str, typer.Option(help="Names, with commas; they stand in the report.")],
    task: Annotated[str, typer.Option(help="Tasks to ask, with commas, or all.")] = "all",
    items: Annotated[int, typer.Option(min=1, max=10_000, help="Questions a task and person that count.")] = 20,
    overlap: Annotated[
        int | None, typer.Option(min=0, help="How many of them are the same for everybody; all by default.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the study, which is made or goes on.")] = Path("study"),
    share_on: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Where `studio` will share it, and the links lead. By default this machine alone."
        ),
    ] = None,
) -> None:
    """Invite people to answer what models are asked: a study with a link for each. Who is invited again gets a new
    link."""
    with exit_on_error():
        from barista_bench.studio.inviting import invite as invite_people
        from barista_bench.studio.study import Study

        study = Study(
            version=1,
            address=share_on or _STUDY_ADDRESS,
            shared=share_on is not None,
            data=tuple(str(folder.resolve()) for folder in data),
            tasks=split_names(task),
            items=items,
            overlap=items if overlap is None else overlap,
        )
        for name, link in invite_people(out, study, split_names(participants)).items():
            print_result(f"{name}  {link}")
        files = f" --share-on {share_on} --tls-cert FILE --tls-key FILE" if share_on else ""
        echo(f"links are shown once; serve them with: barista-bench studio {shlex.quote(str(out))}{files}")


def _serve_study(
    paths: list[Path], has_other_options: bool, share_on: str | None, tls_cert: Path | None, tls_key: Path | None
) -> None:
    from barista_bench.studio.sharing import study_server
    from barista_bench.studio.study import is_study, read_study

    if has_other_options or len(paths) != 1 or not is_study(paths[0]):
        remedy = (
            "name the folder of one study, which `invite` makes, and no other path, --folder, --by, --compare or --port"
        )
        raise ConfigError(f"nothing but a study is shared, and it is served alone. Remedy: {remedy}")
    address = read_study(paths[0]).address
    if share_on not in (None, address):
        raise ConfigError(f"--share-on {share_on}: the links of {paths[0]} lead to {address}. Remedy: invite again")
    with study_server(paths[0], tls_cert if share_on else None, tls_key if share_on else None) as server:
        print_result(f"{len(server.study.participants)} people can answer at {server.study.origin}, by their links")
        server.run()


def _exit_on_signal(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
