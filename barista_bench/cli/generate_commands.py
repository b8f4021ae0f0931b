"""Commands that generate question sets and training sets, and audit sets: generate, show audit, export."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from barista_bench.cli.app import Cluster, Progress, app, exit_on_error, parsed_box_format, scored_runs, split_names
from barista_bench.cli.output import echo, print_result, warn
from barista_bench.cli.tree import ParentCommand
from barista_bench.core.guarding import raise_faults

if TYPE_CHECKING:
    from barista_bench.generate.generator import FamilyReport

_SHOWN_REASONS = 3


@app.command(cls=ParentCommand)
def generate(
    source: Annotated[Path, typer.Option(help="Scene graphs in the release layout: one folder per video.")],
    out: Annotated[
        Path | None, typer.Option(help="New folder for a release of each family and the evidence of each item.")
    ] = None,
    families: Annotated[
        str, typer.Option(help="Benchmarks whose questions to generate, separated by commas.")
    ] = "vista,handyvqa,tog_bench,egocot",
    per_subtask: Annotated[int, typer.Option(help="Maximum number of items per subtask.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed; the same graphs, domain and seed give the same bytes.")] = 0,
    domain: Annotated[
        Path | None, typer.Option(help="Domain file: names, values and their relations; coffee making by default.")
    ] = None,
    review: Annotated[
        Path | None,
        typer.Option(help="Completed review.jsonl of an earlier run: rejected items are dropped, revised texts used."),
    ] = None,
    ceiling: Annotated[
        float | None,
        typer.Option(
            help="Accuracy that a text-only guesser may reach on a subtask (`show audit`); chance by default."
        ),
    ] = None,
    difficulty: Annotated[
        str, typer.Option(help="Difficulty of the questions: easy, medium, hard or a range of these.")
    ] = "easy:hard",
    strict: Annotated[
        bool, typer.Option(help="Fail and write nothing if one of the families has no questions.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option(help="Only estimate the yield of each family, and name what would increase it.")
    ] = False,
    num_proc: Annotated[int, typer.Option(help="Processes.")] = 1,
    cluster: Cluster = None,
    progress: Progress = True,
) -> None:
    """Generate question sets for other benchmarks from any scene graph, each answer computed and proved.

    Then run `build --benchmark NAME --source OUT/NAME`, as for the benchmark's own release.
    """
    from barista_bench.errors import ConfigError
    from barista_bench.generate.forecast import forecast
    from barista_bench.generate.generator import generate as make, missing_lines, read_missing

    with exit_on_error():
        if dry_run:
            expected = forecast(
                source,
                split_names(families),
                per_subtask=per_subtask,
                seed=seed,
                domain=domain,
                ceiling=ceiling,
                difficulty=difficulty,
                num_proc=num_proc,
                progress=progress,
            )
            echo(*expected.lines())
            return
        if out is None:
            raise ConfigError("out: is not given. Fix: name a new folder with --out, or give --dry-run")
        reports = make(
            source,
            out,
            split_names(families),
            per_subtask=per_subtask,
            seed=seed,
            domain=domain,
            review=review,
            ceiling=ceiling,
            difficulty=difficulty,
            strict=strict,
            num_proc=num_proc,
            cluster=cluster,
            progress=progress,
        )
    for report in reports:
        _print_report(report)
    for report in reports:
        if not report.sampled:
            warn(f"warning: {report.shortage}")
    for line in missing_lines(read_missing(out)):
        echo(line)
    echo(f"wrote {out}")


def _print_report(report: FamilyReport) -> None:
    """Print one line per subtask: the number of sampled items, and the reasons for a shortage."""
    echo(f"{report.family}: {report.sampled} items")
    for row in report.subtasks:
        echo(f"  {row.subtask}: {row.sampled} of {row.wanted}, {row.candidates} candidates")
        if row.sampled < row.wanted:
            for reason, count in list(row.refused.items())[:_SHOWN_REASONS]:
                echo(f"    {count} x {reason}")
    for retention in report.review:
        rate = "nothing reviewed"
        if retention.rate is not None:
            rate = f"{retention.rate:.1%} of {retention.reviewed} reviewed items kept"
        echo(f"  {retention.subtask}: {rate}, {retention.revised} revised, {retention.rejected} rejected")
        for reason, count in retention.reasons.items():
            echo(f"    {count} x {reason}")
    for video_id, problem in report.lost_videos.items():
        warn(f"  lost: {video_id}: {problem}")


@app.command("show audit")
def audit(
    data: Annotated[str, typer.Argument(help="Dataset folder made by `build`, or folder made by `generate`.")],
    benchmark: Annotated[str, typer.Option(help="Benchmark of a dataset's tasks.")] = "barista",
    split: Annotated[str, typer.Option(help="Split; all by default.")] = "all",
    runs: Annotated[
        list[Path] | None, typer.Option(help="Scored run folder, e.g. of text_only:MODEL; may be repeated.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Page to write.")] = Path("audit.html"),
) -> None:
    """Look for clues that give answers away: balance, positions, similar choices, and guessers that see no video."""
    from barista_bench.files.writing import write_whole
    from barista_bench.generate.audit import audit_sets, choice_sets, generated_sets
    from barista_bench.reporting.audit_page import AblatedRun, audit_page, name_guess, verdict

    with exit_on_error():
        audits = audit_sets(generated_sets(Path(data)) or choice_sets(data, benchmark, split))
        with scored_runs(runs, None, None, None) if runs else nullcontext(()) as scored:
            results = [run.results for run in scored]
            ablated = [AblatedRun(r.dataset.task, r.model.label, r.metrics[r.primary].mean) for r in results]
            write_whole(out, audit_page(data, audits, ablated))
    for row in audits:
        best = row.best
        print_result(
            f"{row.task}: {row.items} questions of {row.videos} videos; best of {len(row.guessers)} guesses: "
            f"{name_guess(best)}, {best.guesses.accuracy:.3f} right (chance {best.guesses.chance:.3f}, "
            f"p {best.p_adjusted:.3f})"
        )
    print_result(verdict(audits))
    echo(f"wrote {out}")


@app.command(cls=ParentCommand)
def export(
    data: Annotated[Path, typer.Argument(help="Dataset folder written by build.")],
    form: Annotated[
        Literal["chat", "preference", "coco", "davis"],
        typer.Option("--format", help="Chats or preference pairs for TRL, or boxes and masks of the release."),
    ],
    out: Annotated[Path, typer.Option(help="Folder to write.")] = Path("training_set"),
    split: Annotated[str, typer.Option(help="Must be train: all other splits are held out for tests.")] = "train",
    task: Annotated[
        list[str] | None,
        typer.Option(help="For chat: tasks, separated by commas or repeated; by default all with text answers."),
    ] = None,
    box_format: Annotated[str | None, typer.Option(help="For chat: the model's box format, e.g. yxyx/1000.")] = None,
    run: Annotated[
        Path | None, typer.Option(help="For preference: run folder whose wrong answers become the rejected answers.")
    ] = None,
    held_out: Annotated[
        list[Path] | None,
        typer.Option(help="Another built dataset whose test videos are refused too; may be repeated."),
    ] = None,
    root: Annotated[
        Path | None, typer.Option(help="For coco and davis: the release; otherwise the videos of a linked dataset.")
    ] = None,
) -> None:
    """Write the training videos of a dataset as a training set. Test videos are refused, by content."""
    from barista_bench.training.exporting import export as make

    with exit_on_error():
        exported = make(
            data,
            out,
            form,
            split=split,
            tasks=split_names(*(task or ())),
            box_format=parsed_box_format(box_format),
            run=run,
            held_out=held_out or (),
            root=root,
        )
    echo(*exported.notes, f"wrote {exported.folder}: {exported.rows} rows of {exported.videos} videos")
    with exit_on_error():
        raise_faults(exported.faults)
