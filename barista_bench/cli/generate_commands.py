"""Commands for question sets and training sets: generate and its further commands, show audit, export."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from barista_bench.cli.app import app, exit_on_error, exit_on_failures, parsed_box_format, scored_runs, split_names
from barista_bench.cli.flags import ABOUT_IMAGES, flag_command, resolve_flags, switch
from barista_bench.cli.output import echo, print_result, warn
from barista_bench.cli.tree import ParentCommand
from barista_bench.core.guarding import raise_faults
from barista_bench.generate.settings import GenerateSettings
from barista_bench.writing.config import QuestionConfig, RewordConfig, WriteConfig

if TYPE_CHECKING:
    from barista_bench.generate.generator import FamilyReport
    from barista_bench.generate.review import Retention

_SHOWN_REASONS = 3
_NOT_ASKED = {"box_format", "threshold", "mask_threshold"}

_DRY_RUN = switch("dry_run", "Only estimate the yield of each family, and name what would increase it.")


@flag_command(app, GenerateSettings, config=False, more=(_DRY_RUN,))
def generate(**flags: Any) -> None:  # noqa: ANN401  (what the flags hold; `check_settings` checks it)
    """Generate question sets for other benchmarks from any scene graph. Each answer is computed and proved.

    Afterwards run `build --benchmark NAME --source OUT/NAME`, as for the benchmark's own release.
    """
    from barista_bench.errors import ConfigError
    from barista_bench.generate.forecast import forecast
    from barista_bench.generate.generator import generate as make, missing_lines, read_missing

    dry_run = flags.pop("dry_run")
    with exit_on_error():
        settings = resolve_flags(GenerateSettings, flags)
        if dry_run:
            echo(*forecast(**dict(settings)).lines())
            return
        if settings.out is None:
            raise ConfigError("out: is not given. Fix: name a new folder with --out, or give --dry-run")
        out = settings.out
        reports = make(**dict(settings))
    for report in reports:
        _print_report(report)
    for report in reports:
        if not report.sampled:
            warn(f"warning: {report.shortage}")
    for line in missing_lines(read_missing(out)):
        echo(line)
    echo(f"wrote {out}")


def _print_report(report: FamilyReport) -> None:
    """Print one line per subtask with the number of sampled items and the reasons for a shortage."""
    echo(f"{report.family}: {report.sampled} items")
    for row in report.subtasks:
        echo(f"  {row.subtask}: {row.sampled} of {row.wanted}, {row.candidates} candidates")
        if row.sampled < row.wanted:
            for reason, count in list(row.refused.items())[:_SHOWN_REASONS]:
                echo(f"    {count} x {reason}")
    for retention in report.review:
        echo(*_retention_lines(retention))
    for video_id, problem in report.lost_videos.items():
        warn(f"  lost: {video_id}: {problem}")


def _retention_lines(retention: Retention) -> list[str]:
    """Return a line with the fraction of reviewed items that were kept, and the reasons."""
    rate = "nothing reviewed"
    if retention.rate is not None:
        rate = f"{retention.rate:.1%} of {retention.reviewed} reviewed items kept"
    counts = f"{retention.revised} revised, {retention.rejected} rejected"
    reasons = (f"    {count} x {reason}" for reason, count in retention.reasons.items())
    return [f"  {retention.subtask}: {rate}, {counts}", *reasons]


@app.command("generate reviewed")
def reviewed(
    files: Annotated[list[Path], typer.Argument(help="Review file of each reviewer of the same items.")],
    lead: Annotated[
        Path | None, typer.Option(help="Review file of a lead, whose verdicts count instead of the majority's.")
    ] = None,
) -> None:
    """Show how many items a review keeps, the reasons, and how well the reviewers agree."""
    from barista_bench.generate.review_statistics import read_votes, review_statistics

    with exit_on_error():
        result = review_statistics(read_votes(files, lead))
    for retention in (*result.retention, result.total):
        print_result(*_retention_lines(retention))
    if result.compared:
        alpha = "undefined: all verdicts are equal" if result.alpha is None else f"{result.alpha:.3f}"
        print_result(
            f"exact agreement: {result.agreed / result.compared:.1%} of {result.compared} items of several reviewers",
            f"Krippendorff's alpha: {alpha}",
        )
    print_result(f"decided by the lead: {result.adjudicated}, {result.overruled} of these against a majority")
    for item in result.undecided:
        warn(f"undecided: {item}: the reviewers do not agree. The lead must decide")


@flag_command(app, QuestionConfig, positional="run", hidden=ABOUT_IMAGES, name="generate questions")
def questions(**flags: Any) -> None:  # noqa: ANN401  (what the flags hold; `resolve_settings` checks it)
    """Let a model write the questions of temporal_vqa from the changes in a release.

    As in the release, clips are drawn from all videos without questions. Usable questions are written in the release's
    cache format, for `build`. With --protocol paper, a question must also name every change and nothing else.
    """
    from barista_bench.writing.questions import write_questions

    with exit_on_error():
        config = resolve_flags(QuestionConfig, flags)
        session = write_questions(config)
    echo(
        f"{session.written} of {session.wanted} questions written to {session.folder}, "
        f"{session.asked} replies asked for, {session.already_done} were there before"
    )
    for reason in session.refusals[:20]:
        warn(f"  left out: {reason}")
    exit_on_failures(session, "replies")


@flag_command(app, RewordConfig, positional="folder", hidden=ABOUT_IMAGES, name="generate reworded")
def reword(**flags: Any) -> None:  # noqa: ANN401  (what the flags hold; `resolve_settings` checks it)
    """Let a model rephrase generated items without changing the question or its answer.

    Each text is checked against the template's text. A refused text is requested once more, and after a second refusal
    the template's text stays. Accepted texts are in OUT/review.jsonl. Review them, and run `generate` again with
    --review and the same arguments.
    """
    from barista_bench.writing.rewording import reword as make

    with exit_on_error():
        session = make(resolve_flags(RewordConfig, flags))
    echo(
        f"{session.revised} of {session.items} items reworded in {session.folder}, "
        f"{session.asked} replies asked for, {session.already_done} were there before"
    )
    for reason, count in session.kept_by_reason.items():
        warn(f"  the template stays: {count} x {reason}")
    exit_on_failures(session, "replies")


@flag_command(app, WriteConfig, hidden=_NOT_ASKED, name="generate written")
def write(**flags: Any) -> None:  # noqa: ANN401  (what the flags hold; `resolve_settings` checks it)
    """Let a model write items of ToG-Bench and EgoCoT-Bench about tracked objects in videos.

    The items are unverified until two people have accepted them: fill in copies of OUT/review.jsonl, and run the same
    command again with --review for each. Run the same command again to resume.
    """
    from barista_bench.writing.items import write_items

    with exit_on_error():
        session = write_items(resolve_flags(WriteConfig, flags))
    echo(
        f"{session.written} of {session.planned} items written in {session.folder}, {session.unverified} unverified, "
        f"{session.asked} replies asked for, {session.already_done} were there before"
    )
    for reason, count in session.refused.items():
        warn(f"  left out: {count} x {reason}")
    exit_on_failures(session, "replies")


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
        Literal["chat", "preference", "prompts", "coco", "davis"],
        typer.Option(
            "--format", help="Chats, preference pairs or prompts with references for TRL, or boxes and masks."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder to write.")] = Path("training_set"),
    split: Annotated[str, typer.Option(help="Must be train: all other splits are held out for tests.")] = "train",
    task: Annotated[
        list[str] | None,
        typer.Option(
            help="For chat and prompts: tasks, separated by commas or repeated; by default all with text answers."
        ),
    ] = None,
    box_format: Annotated[
        str | None, typer.Option(help="For chat and prompts: the model's box format, e.g. yxyx/1000.")
    ] = None,
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
    aids: Annotated[
        Literal["true", "inert"] | None,
        typer.Option(help="For chat: put some aids of a diagnosis, or their inert controls, before each question."),
    ] = None,
) -> None:
    """Write the training videos of a dataset as a training set, or a run for other tools (`export run`).

    Test videos are recognised by content and refused.
    """
    from barista_bench.training.exporting import export_training_set as make

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
            aids=aids,
        )
    echo(*exported.notes, f"wrote {exported.folder}: {exported.rows} rows of {exported.videos} videos")
    with exit_on_error():
        raise_faults(exported.faults)
