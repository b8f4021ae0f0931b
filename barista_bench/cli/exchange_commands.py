"""Commands that exchange results with others: submission, submit, import-run, export-run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barista_bench.cli.app import Data, Protocol, ProtocolChoice, Root, app, explained
from barista_bench.errors import ConfigError
from barista_bench.files.text_out import echo

if TYPE_CHECKING:
    from barista_bench.hub.files import Existing


@app.command()
def submission(
    run: Annotated[Path, typer.Argument(help="Run folder; answers of its questions may be hidden.")],
    out: Annotated[Path, typer.Option(help="File to write: .json or .jsonl.")] = Path("submission.jsonl"),
    repetition: Annotated[int, typer.Option(help="Which of its runs, from 0.")] = 0,
    data: Data = None,
    allow_incomplete: Annotated[bool, typer.Option("--allow-incomplete", help="Take an unfinished run.")] = False,
) -> None:
    """Write the file that a benchmark's own leaderboard takes, from one run's answers. Nothing is uploaded."""
    from barista_bench.interchange.submission_file import write_submission_file

    with explained():
        path, count = write_submission_file(run, out, repetition, data=data, allow_incomplete=allow_incomplete)
    echo(f"wrote {path}: {count} answers")


@app.command()
def submit(
    runs: Annotated[list[Path], typer.Argument(help="Scored run folders of one model, one a task.")],
    model_repo: Annotated[str, typer.Option(help="Repository of the model on the Hub: org/model.")],
    dataset_repo: Annotated[str, typer.Option(help="Repository of the benchmark's dataset on the Hub.")],
    out: Annotated[Path, typer.Option(help="Folder for the files; nothing else may lie in it.")] = Path("submission"),
    model_name: Annotated[str | None, typer.Option(help="What the model is called in the runs, if otherwise.")] = None,
    model_folder: Annotated[
        Path | None, typer.Option(help="Copy of the model repository, whose card and results are merged with.")
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(help="Dataset whose truth counts: a built folder, which is published too, or a Hub dataset."),
    ] = None,
    data: Annotated[str | None, typer.Option(help="Where the dataset of the runs lies now, if it has moved.")] = None,
    root: Root = None,
    dataset_revision: Annotated[str | None, typer.Option(help="Commit of --dataset-repo, 40 digits.")] = None,
    results_repo: Annotated[str | None, typer.Option(help="Dataset that a leaderboard Space reads.")] = None,
    judge: Annotated[str | None, typer.Option(help="Judge whose scores count, where a run has several.")] = None,
    date: Annotated[str | None, typer.Option(help="When it was evaluated, ISO 8601.")] = None,
    source_url: Annotated[str | None, typer.Option(help="https address where the results can be looked into.")] = None,
    source_name: Annotated[str | None, typer.Option(help="What the source is called.")] = None,
    allow_incomplete: Annotated[bool, typer.Option("--allow-incomplete", help="Take unfinished runs; marked.")] = False,
    push: Annotated[bool, typer.Option("--push", help="Upload. Without it nothing leaves this machine.")] = False,
    pull_request: Annotated[bool, typer.Option("--pull-request", help="Upload to pull requests: the default.")] = False,
    branch: Annotated[
        str | None, typer.Option(help="Upload to this branch, or to an open pull request: refs/pr/7.")
    ] = None,
    to_main: Annotated[bool, typer.Option("--to-main", help="Upload to main.")] = False,
    token_env: Annotated[str | None, typer.Option(help="Variable that holds the token, if not HF_TOKEN.")] = None,
) -> None:
    """Write a model's results as leaderboards on the Hub read them, check them, and upload them if told to.

    Everything lands in OUT to look at: model/ (.eval_results, README.md), dataset/ (eval.yaml, and the dataset itself
    with --dataset) and results/ (for a leaderboard Space).
    """
    from barista_bench.files.writing import SUBMISSION, check_target
    from barista_bench.hub.files import all_files, model_files, write_files
    from barista_bench.hub.pushing import Destination, Pusher, find_token
    from barista_bench.hub.submission import make_submission

    target = {
        "model_repo": model_repo,
        "dataset_repo": dataset_repo,
        "dataset_revision": dataset_revision,
        "model_name": model_name,
        "date": date,
        "source_url": source_url,
        "source_name": source_name,
    }
    with explained():
        _refuse_contradictions(push, pull_request, branch, to_main, model_folder)
        check_target(out, SUBMISSION)
        made = make_submission(
            runs, target, judge=judge, allow_incomplete=allow_incomplete, data=data, root=root, dataset=dataset
        )
        published = Path(dataset) if dataset is not None and Path(dataset).is_dir() else None
        pusher = Pusher(find_token(token_env), Destination(branch, to_main)) if push else None
        existing = _local(model_folder, made.benchmark) if model_folder else None
        if pusher:
            existing = pusher.existing(model_repo, made.benchmark)
        files = all_files(made, existing, published)
        written = write_files(files, out)
        for row in made.rows:
            echo(f"{row.task_id}: {row.metric} {row.value:g}" + (" INCOMPLETE" if row.missing else ""))
        echo(f"{len(written)} files written to {out}, {sum(map(len, files.items().values()))} in all")
        if pusher is None:
            return
        # The model's repository always, the dataset's with --dataset alone, the Space's where it is named.
        done = [pusher.push_model(model_repo, made.benchmark, lambda there: model_files(made, there))]
        if published is not None:
            done.append(pusher.push(dataset_repo, "dataset", files.dataset))
        if results_repo is not None:
            done.append(pusher.push(results_repo, "dataset", files.results))
    for pushed in done:
        what = f"{len(pushed.changed)} files" if pushed.changed else "nothing new"
        echo(f"{pushed.repo_type} {pushed.repo_id}: {what}: {pushed.url}")


def _refuse_contradictions(
    push: bool, pull_request: bool, branch: str | None, to_main: bool, model_folder: Path | None
) -> None:
    if not push and (pull_request or branch or to_main):
        raise ConfigError("nothing is uploaded without --push. Remedy: add it, or leave its options out")
    if pull_request and (branch or to_main):
        raise ConfigError("more than one place to upload to. Remedy: give one of --pull-request, --branch, --to-main")
    if push and model_folder:
        raise ConfigError("--push merges with what the Hub has, not with --model-folder. Remedy: leave one of them out")


def _local(folder: Path, benchmark: str) -> Existing:
    from barista_bench.hub.files import README, Existing, eval_results_path

    card, results = folder / README, folder / eval_results_path(benchmark)
    return Existing(card.read_bytes(), results.read_bytes() if results.exists() else None)


@app.command(name="import-run")
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
    protocol: Protocol = ProtocolChoice.release,
) -> None:
    """Take over a run of the released harness, with its judge's scores, so that it can be scored and reported here."""
    from barista_bench.core.prompt import BoxFormat
    from barista_bench.interchange.importing import import_run as make

    with explained():
        try:
            boxes = None if box_format is None else BoxFormat.parse(box_format)
        except ValueError as error:
            raise ConfigError(f"{error}. Remedy: say e.g. --box-format yxyx/1000") from error
        done = make(folders, out, examples=examples, root=root, box_format=boxes, protocol=protocol.value)
    counts = ", ".join(f"{status} {count}" for status, count in sorted(done.statuses.items()))
    judged = f", {done.judged} judged" if done.judged else ""
    echo(f"{done.task}: {done.runs} run(s), {counts}, {done.unanswered} without a record{judged}")
    for what, names in (
        ("samples unreadable for the release and kept so, readable here", done.kept_failures),
        ("samples readable for the release, unreadable here", done.new_failures),
        ("samples with other figures than we make of the same answer", done.other_results),
        ("keys of metrics.json with other values than we make of the same answers", done.other_figures),
    ):
        if names:
            echo(f"{len(names)} {what}, first: {names[0]}", color="yellow", err=True)
    echo(f"wrote {done.folder}")


@app.command(name="export-run")
def export_run(
    run: Annotated[Path, typer.Argument(help="Run folder of barista, ours or imported.")],
    out: Annotated[Path, typer.Option(help="Folder to make; of several repetitions each has a folder below it.")],
    judge: Annotated[
        str | None, typer.Option(help="Which folder of RUN/judges has the scores, if there are several.")
    ] = None,
    data: Data = None,
    root: Root = None,
) -> None:
    """Write a run in the layout of the released harness: what was imported comes out as it was."""
    from barista_bench.interchange.exporting import export_run as make

    with explained():
        done = make(run, out, judge=judge, data=data, root=root)
    judged = f", judged by {done.judge}" if done.judge else ""
    echo(f"{done.task}: {done.records} records{judged}")
    for folder in done.folders:
        echo(f"wrote {folder}")
