"""Commands that exchange data and results with others: publish, submission, import-run, export-run, lmms-eval-tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from barista_bench.cli.app import PUBLISH, Data, Protocol, Root, app, exit_on_error, parsed_box_format, protocol_options
from barista_bench.cli.flags import flag_command, named_flags
from barista_bench.cli.output import echo, print_result, warn
from barista_bench.core.guarding import raise_faults
from barista_bench.errors import ConfigError
from barista_bench.runs.ask.config import QUESTION_SETTINGS, RunConfig


@app.command(rich_help_panel=PUBLISH)
def publish(
    folder: Annotated[Path, typer.Argument(help="Built dataset, or a Space, such as those of metrics/.")],
    repo: Annotated[str, typer.Option(help="Repository on the Hub, made where it is not there: org/name.")],
    public: Annotated[bool, typer.Option("--public", help="For everybody to see. Private otherwise.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and list what would leave this machine.")] = False,
    token_env: Annotated[str | None, typer.Option(help="Variable that holds the token, if not HF_TOKEN.")] = None,
) -> None:
    """Upload a dataset or a Space to the Hub, checked before. The same command again goes on where one was cut off."""
    from huggingface_hub import HfApi

    from barista_bench.hub.publishing import publication
    from barista_bench.hub.pushing import Destination, Pusher, find_token

    with exit_on_error():
        to_publish = publication(folder, repo)
        sizes = {name: path.stat().st_size for name, path in to_publish.files.items()}
        if dry_run:
            print_result(*(f"{size:>13,}  {name}" for name, size in sizes.items()))
        total = f"{len(sizes)} files, {sum(sizes.values()):,} bytes"
        destination = f"the {'public' if public else 'private'} {to_publish.repo_type} {repo} at {HfApi().endpoint}"
        tell = print_result if dry_run else echo
        tell(f"{total}, to {destination}{': nothing was sent' if dry_run else ''}")
        if not dry_run:
            print_result(Pusher(find_token(token_env), Destination(to_main=True)).publish(to_publish, public=public))


@app.command(rich_help_panel=PUBLISH)
def submission(
    run: Annotated[Path, typer.Argument(help="Run folder; answers of its questions may be hidden.")],
    out: Annotated[Path, typer.Option(help="File to write: .json or .jsonl.")] = Path("submission.jsonl"),
    repetition: Annotated[int, typer.Option(help="Which of its runs, from 0.")] = 0,
    data: Data = None,
    allow_incomplete: Annotated[bool, typer.Option("--allow-incomplete", help="Take an unfinished run.")] = False,
) -> None:
    """Write the file that a benchmark's own leaderboard takes, from one run's answers. Nothing is uploaded."""
    from barista_bench.interchange.recorded_answers import write_submission_file

    with exit_on_error():
        path, count = write_submission_file(run, out, repetition, data=data, allow_incomplete=allow_incomplete)
    echo(f"wrote {path}: {count} answers")


@app.command(name="import-run", rich_help_panel=PUBLISH)
def import_run(
    folders: Annotated[list[Path], typer.Argument(help="Run folder of the released harness; several are repetitions.")],
    out: Annotated[Path, typer.Option(help="Run folder to make, for score and report.")],
    examples: Annotated[
        Path | None, typer.Option(help="Frozen file that was run, if no benchmark_examples.jsonl lies in the folder.")
    ] = None,
    root: Annotated[Path | None, typer.Option(help="The release: videos, and what the frozen file leaves out.")] = None,
    box_format: Annotated[
        str | None,
        typer.Option(help="How the model was asked to write boxes, e.g. yxyx/1000, if run_config.json does not say."),
    ] = None,
    protocol: Protocol = "release",
) -> None:
    """Take over a run of the released harness, with its judge's scores, so that it can be scored and reported here."""
    from barista_bench.interchange.importing import import_run as make

    with exit_on_error():
        written_as, options = parsed_box_format(box_format), protocol_options(protocol)
        imported = make(folders, out, examples=examples, root=root, box_format=written_as, options=options)
    counts = ", ".join(f"{status} {count}" for status, count in sorted(imported.statuses.items()))
    judged_text = f", {imported.judged} judged" if imported.judged else ""
    echo(f"{imported.task}: {imported.runs} run(s), {counts}, {imported.unanswered} without a record{judged_text}")
    for complaint, names in (
        ("samples unreadable for the release and kept so, readable here", imported.kept_failures),
        ("samples readable for the release, unreadable here", imported.new_failures),
        ("samples with other figures than we make of the same answer", imported.other_results),
        ("keys of metrics.json with other values than we make of the same answers", imported.other_figures),
    ):
        if names:
            warn(f"{len(names)} {complaint}, first: {names[0]}")
    echo(f"wrote {imported.folder}")
    with exit_on_error():
        raise_faults(imported.faults)


@app.command(name="export-run", rich_help_panel=PUBLISH)
def export_run(
    run: Annotated[Path, typer.Argument(help="Run folder; for the released layout of barista, ours or imported.")],
    out: Annotated[Path, typer.Option(help="Folder to make.")],
    form: Annotated[
        Literal["released", "fiftyone"],
        typer.Option(
            "--format", help="Layout of the released harness (a folder a repetition), or a dataset for FiftyOne."
        ),
    ] = "released",
    judge: Annotated[
        str | None, typer.Option(help="Which folder of RUN/judges has the scores, if there are several.")
    ] = None,
    data: Data = None,
    root: Root = None,
) -> None:
    """Write a run for other tools. In the released layout, what was imported comes out as it was."""
    from barista_bench.interchange.exporting import export_run as make
    from barista_bench.interchange.fiftyone_dataset import write_fiftyone

    with exit_on_error():
        if form == "fiftyone":
            if judge is not None:
                raise ConfigError("--judge is for the released layout. Remedy: leave it out")
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


@flag_command(app, RunConfig, positional="data", hidden=_HIDDEN, name="lmms-eval-tasks", rich_help_panel=PUBLISH)
def lmms_eval_tasks(**flags: Any) -> None:  # noqa: ANN401  (what the flags hold; `resolve` checks it)
    """Write task files for lmms-eval and print their folder: --include_path $(barista-bench lmms-eval-tasks DATA)."""
    from barista_bench.harness.lmms_eval import write_tasks

    del flags["config"]  # a run file says how to ask, too
    with exit_on_error():
        folder, names = write_tasks({"task": "all", **named_flags(flags)})
    echo(f"wrote {', '.join(names)}", err=True)
    print_result(str(folder))  # what the shell puts into --include_path
