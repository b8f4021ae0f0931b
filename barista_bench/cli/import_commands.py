"""The command `import-run`: run folders of the released harness as run folders of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from barista_bench.cli.app import Protocol, ProtocolChoice, app, explained
from barista_bench.errors import ConfigError


@app.command(name="import-run")
def import_run(
    folders: Annotated[list[Path], typer.Argument(help="Run folder of the released harness; several are repetitions.")],
    out: Annotated[Path, typer.Option(help="Run folder to make, for score and report.")],
    examples: Annotated[
        Path | None, typer.Option(help="Frozen file that was run, if no benchmark_examples.jsonl lies in the folder.")
    ] = None,
    root: Annotated[Path | None, typer.Option(help="The release: videos, and what the frozen file leaves out.")] = None,
    box_format: Annotated[
        str | None, typer.Option(help="How the model was asked to write boxes, e.g. yxyx/1000, if not as its family.")
    ] = None,
    protocol: Protocol = ProtocolChoice.release,
) -> None:
    """Take over predictions.jsonl of the released harness, so that they can be scored and reported here."""
    from barista_bench.prompt import BoxFormat
    from barista_bench.running.imported import import_run as make

    with explained():
        try:
            boxes = None if box_format is None else BoxFormat.parse(box_format)
        except ValueError as error:
            raise ConfigError(f"{error}. Remedy: say e.g. --box-format yxyx/1000") from error
        done = make(folders, out, examples=examples, root=root, box_format=boxes, protocol=protocol.value)
    counts = ", ".join(f"{status} {count}" for status, count in sorted(done.statuses.items()))
    typer.echo(f"{done.task}: {done.runs} run(s), {counts}, {done.unanswered} without a record")
    for what, ids in (
        ("unreadable for the release and kept so, readable here", done.kept_failures),
        ("readable for the release, unreadable here", done.new_failures),
    ):
        if ids:
            typer.secho(f"{len(ids)} samples {what}, first: {ids[0]}", fg="yellow", err=True)
    typer.echo(f"wrote {done.folder}")
