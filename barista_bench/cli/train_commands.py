"""The command that makes training sets: export."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from barista_bench.cli.app import MAKE, app, echo, exit_on_error, parsed_box_format


class TrainingFormat(StrEnum):
    chat = "chat"
    preference = "preference"
    coco = "coco"
    davis = "davis"


@app.command(rich_help_panel=MAKE)
def export(
    data: Annotated[Path, typer.Argument(help="Dataset folder made by build.")],
    form: Annotated[
        TrainingFormat,
        typer.Option("--format", help="Chats or preference pairs for TRL, or boxes and masks of the release."),
    ],
    out: Annotated[Path, typer.Option(help="Folder to write.")] = Path("training_set"),
    split: Annotated[str, typer.Option(help="Only train: all others are held out for tests.")] = "train",
    task: Annotated[
        list[str] | None, typer.Option(help="Of chat; several times. By default all that a text answers.")
    ] = None,
    box_format: Annotated[
        str | None, typer.Option(help="Of chat: how the model writes boxes, as run takes it, e.g. yxyx/1000.")
    ] = None,
    run: Annotated[
        Path | None, typer.Option(help="Of preference: run folder whose wrong answers are rejected.")
    ] = None,
    held_out: Annotated[
        list[Path] | None, typer.Option(help="Another built dataset whose test videos are refused, too; several times.")
    ] = None,
    root: Annotated[
        Path | None, typer.Option(help="Of coco and davis: the release; else the videos of a linked set.")
    ] = None,
) -> None:
    """Write the training videos of a dataset as a training set. Test videos are refused, by content."""
    from barista_bench.training.exporting import export as make

    with exit_on_error():
        done = make(
            data,
            out,
            form.value,
            split=split,
            tasks=task or (),
            box_format=parsed_box_format(box_format),
            run=run,
            held_out=held_out or (),
            root=root,
        )
    echo(*done.notes, f"wrote {done.folder}: {done.rows} rows of {done.videos} videos")
