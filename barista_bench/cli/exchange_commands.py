"""Commands that exchange data and results: publish, import and export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from barista_bench.cli.app import Data, Protocol, Root, app, exit_on_error, parsed_box_format, protocol_options
from barista_bench.cli.flags import flag_command, named_flags
from barista_bench.cli.output import echo, print_result, warn
from barista_bench.cli.tree import ParentCommand
from barista_bench.core.guarding import raise_faults
from barista_bench.errors import ConfigError
from barista_bench.runs.ask.config import QUESTION_SETTINGS, RunConfig


@app.command(cls=ParentCommand)
def publish(
    folder: Annotated[Path, typer.Argument(help="Built dataset, or a Space, such as those of metrics/.")],
    repo: Annotated[str, typer.Option(help="Repository on the Hub, org/name; created if it does not exist.")],
    public: Annotated[bool, typer.Option("--public", help="Make the repository public; private by default.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check and list the files that would be uploaded.")
    ] = False,
    token_env: Annotated[str | None, typer.Option(help="Environment variable with the token, if not HF_TOKEN.")] = None,
) -> None:
    """Check a dataset or a Space and upload it to the Hub.

    Run the same command again to resume an interrupted upload.
    """
    from huggingface_hub import HfApi

    from barista_bench.hub.publishing import check_publication
    from barista_bench.hub.pushing import Destination, Pusher, find_token

    with exit_on_error():
        to_publish = check_publication(folder, repo)
        sizes = {name: path.stat().st_size for name, path in to_publish.files.items()}
        if dry_run:
            print_result(*(f"{size:>13,}  {name}" for name, size in sizes.items()))
        total = f"{len(sizes)} files, {sum(sizes.values()):,} bytes"
        destination = f"the {'public' if public else 'private'} {to_publish.repo_type} {repo} at {HfApi().endpoint}"
        tell = print_result if dry_run else echo
        tell(f"{total}, to {destination}{': nothing was sent' if dry_run else ''}")
        if not dry_run:
            print_result(Pusher(find_token(token_env), Destination(to_main=True)).publish(to_publish, public=public))


@app.command("publish answers")
def submission(
    run: Annotated[Path, typer.Argument(help="Run folder; the reference answers may be hidden.")],
    out: Annotated[Path, typer.Option(help="File to write: .json or .jsonl.")] = Path("submission.jsonl"),
    repetition: Annotated[int, typer.Option(help="Repetition to export, counted from 0.")] = 0,
    data: Data = None,
    allow_incomplete: Annotated[bool, typer.Option("--allow-incomplete", help="Accept an unfinished run.")] = False,
) -> None:
    """Write a file with a run's answers for a benchmark's official leaderboard. Nothing is uploaded."""
    from barista_bench.interchange.recorded_answers import write_submission_file

    with exit_on_error():
        path, count = write_submission_file(run, out, repetition, data=data, allow_incomplete=allow_incomplete)
    echo(f"wrote {path}: {count} answers")


@app.command("run import")
def import_run(
    folders: Annotated[
        list[Path],
        typer.Argument(
            help="Run folder of the released harness (several are repetitions); with --format, one file or folder."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Run folder to create; with --format, the parent of the run folders.")],
    form: Annotated[
        str | None, typer.Option("--format", help="Format of answers that another harness recorded, e.g. handyvqa.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="With --format: model, if the answers do not name it.")] = None,
    examples: Annotated[
        Path | None, typer.Option(help="Frozen file of the run, if its folder has no benchmark_examples.jsonl.")
    ] = None,
    root: Annotated[
        Path | None, typer.Option(help="The release: videos, and data that the frozen file leaves out.")
    ] = None,
    box_format: Annotated[
        str | None,
        typer.Option(help="Box format that the model was asked for, e.g. yxyx/1000, if run_config.json lacks it."),
    ] = None,
    protocol: Protocol = "release",
) -> None:
    """Import a run of the released harness with its judge's scores, or answers of another harness (--format)."""
    from barista_bench.interchange.importing import import_run as make
    from barista_bench.interchange.recorded_answers import import_recorded

    with exit_on_error():
        if form is not None:
            if len(folders) > 1:
                raise ConfigError("--format reads one file or folder. Fix: import each in its own call")
            for folder in import_recorded(folders[0], out, form, model=model):
                echo(f"wrote {folder}")
            return
        written_as, options = parsed_box_format(box_format), protocol_options(protocol)
        imported = make(folders, out, examples=examples, root=root, box_format=written_as, options=options)
    counts = ", ".join(f"{status} {count}" for status, count in sorted(imported.statuses.items()))
    judged_text = f", {imported.judged} judged" if imported.judged else ""
    echo(
        f"{imported.task}: {imported.repetitions} repetition(s), {counts}, "
        f"{imported.unanswered} without a record{judged_text}"
    )
    for complaint, names in (
        ("samples unreadable for the release and kept so, readable here", imported.kept_failures),
        ("samples readable for the release, unreadable here", imported.new_failures),
        ("samples with other scores than we make of the same answer", imported.other_results),
        ("keys of metrics.json with other values than we make of the same answers", imported.other_metrics),
    ):
        if names:
            warn(f"{len(names)} {complaint}, first: {names[0]}")
    echo(f"wrote {imported.folder}")
    with exit_on_error():
        raise_faults(imported.faults)


@app.command("export run")
def export_run(
    run: Annotated[Path, typer.Argument(help="Run folder; for the released layout of barista, ours or imported.")],
    out: Annotated[Path, typer.Option(help="Folder to create.")],
    form: Annotated[
        Literal["released", "fiftyone"],
        typer.Option(
            "--format", help="Layout of the released harness (one folder per repetition), or a dataset for FiftyOne."
        ),
    ] = "released",
    judge: Annotated[
        str | None, typer.Option(help="Folder of RUN/judges with the scores, if there are several.")
    ] = None,
    data: Data = None,
    root: Root = None,
) -> None:
    """Write a run for other tools. In the released layout, imported content is written unchanged."""
    from barista_bench.interchange.exporting import export_run as make
    from barista_bench.interchange.fiftyone_dataset import write_fiftyone

    with exit_on_error():
        if form == "fiftyone":
            if judge is not None:
                raise ConfigError("--judge is for the released layout. Fix: leave it out")
            counts = write_fiftyone(run, out, data=data, root=root)
            echo(f"{counts.samples} samples", f"wrote {out}")
            if counts.left_out:
                warn(f"{counts.left_out} examples left out: their images cannot be decoded")
            return
        exported = make(run, out, judge=judge, data=data, root=root)
    judged_text = f", judged by {exported.judge}" if exported.judge else ""
    echo(f"{exported.task}: {exported.records} records{judged_text}")
    for folder in exported.folders:
        echo(f"wrote {folder}")


_HIDDEN = {"image_format", *(RunConfig.model_fields.keys() - QUESTION_SETTINGS)}


@flag_command(app, RunConfig, positional="data", config=False, hidden=_HIDDEN, name="export lmms-eval-tasks")
def lmms_eval_tasks(**flags: Any) -> None:  # noqa: ANN401  (what the flags hold; `resolve_settings` checks it)
    """Write task files for lmms-eval and print their folder: --include_path $(barista-bench export lmms-eval-tasks
    DATA).
    """
    from barista_bench.harness.lmms_eval import write_tasks

    with exit_on_error():
        folder, names = write_tasks({"task": "all", **named_flags(flags)})
    echo(f"wrote {', '.join(names)}", err=True)
    print_result(str(folder))  # the shell passes this line on to --include_path
