"""The command `run`: its flags are the fields of `RunConfig`."""

from __future__ import annotations

from typing import Any

import typer

from barista_bench.cli.app import app, explained
from barista_bench.cli.settings import given, with_flags
from barista_bench.printable import printable
from barista_bench.running.config import ENVIRONMENT_PREFIX, RunConfig, resolve

_HELP = f"""Ask a model every example; every answer is logged at once, and nothing answered is asked again.

A setting is taken from the first of: flag, environment variable ({ENVIRONMENT_PREFIX}<NAME>), run file (--config).
Start it under `accelerate launch` to spread whole videos over processes."""


def run(**flags: Any) -> None:  # noqa: ANN401  (what the flags hold; `resolve` checks it)
    from barista_bench.running.estimate import as_text, estimate
    from barista_bench.running.runner import run_config

    file, dry_run = flags.pop("config"), flags.pop("dry_run")
    with explained():
        config = resolve(RunConfig, given(flags), file=file, defaults={"progress": True})
        if dry_run:
            typer.echo(as_text(estimate(config)))
            return
        session = run_config(config)
    seconds = ", ".join(f"{name} {value:.1f} s" for name, value in session.seconds.items() if value)
    typer.echo(f"{session.asked} samples answered, {session.already_done} were answered before ({seconds})")
    if session.failed:
        typer.secho(
            f"error: {session.failed} samples failed, first: {printable(session.first_failure)}. "
            "Remedy: see to the cause and start the same command again; only they are asked",
            fg="red",
            err=True,
        )
        raise typer.Exit(1)


app.command(help=_HELP)(with_flags(run, RunConfig, positional="data"))
