"""Commands for logged answers: report, compare, publish submission."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barista_bench.cli.app import Data, Json, Options, Root, app, exit_on_error, scored_runs
from barista_bench.cli.flags import flag_command, resolve_flags
from barista_bench.cli.output import echo, print_json, print_result
from barista_bench.cli.tree import ParentCommand
from barista_bench.core.intervals import PERMUTATIONS
from barista_bench.core.settings import part_of
from barista_bench.errors import DataError
from barista_bench.files.text_out import decimal
from barista_bench.files.writing import write_whole
from barista_bench.hub.settings import SubmissionSettings, SubmissionTarget
from barista_bench.runs.score.costs import costs_in_words
from barista_bench.runs.score.results import summary_line
from barista_bench.runs.score.scoring import split_stopped

if TYPE_CHECKING:
    from barista_bench.stats import AnswerAgreement, Comparison, GuessComparison


Folders = Annotated[list[Path], typer.Argument(help="Run folders, or folders of them.")]
Judge = Annotated[
    str | None,
    typer.Option(help="Judge whose scores rank models on text tasks; by default the only language model that judged."),
]
Permutations = Annotated[int, typer.Option(min=100, max=100_000, help="Maximum number of permutations of the test.")]


@app.command()
def report(
    folders: Annotated[list[Path], typer.Argument(help="Run folders of any tasks and models, for one report.")],
    out: Annotated[Path, typer.Option(help="Folder for the page and the Markdown file.")] = Path("report"),
    samples: Annotated[int, typer.Option(help="Maximum number of samples per task to browse.")] = 1000,
    max_size: Annotated[float, typer.Option(help="Maximum size of the page in megabytes.", min=0)] = 18,
    compare: Annotated[bool, typer.Option(help="Compute the paired comparisons, the slowest part.")] = True,
    tables: Annotated[bool, typer.Option("--tables", help="Write every table as CSV and LaTeX too.")] = False,
    figures: Annotated[
        bool, typer.Option("--figures", help="Draw figures for papers: SVG, PDF, CSV, LaTeX; needs the extra viz.")
    ] = False,
    judge: Judge = None,
    data: Data = None,
    root: Root = None,
    option: Options = None,
) -> None:
    """Write a self-contained HTML page and a Markdown summary with links to the page. Runs are read, never changed."""
    from barista_bench.files.owned_folders import REPORT, check_target
    from barista_bench.reporting import write_report
    from barista_bench.reporting.aided import find_diagnoses
    from barista_bench.stats import run_labels

    with exit_on_error():
        check_target(out, REPORT)
        with scored_runs(folders, data, root, option, with_stopped=True) as scored:
            size = round(max_size * 1_000_000)
            html, markdown = write_report(
                scored,
                out,
                samples=samples,
                compare=compare,
                max_bytes=size,
                tables=tables,
                figures=figures,
                judge=judge,
            )
            shown, _ = find_diagnoses(scored)
            labels = run_labels(shown)
            for run in shown:
                echo(summary_line(run.results, labels[run.folder]))
            echo(f"wrote {html} and {markdown}")


@app.command("compare settings")
def diff(
    first: Annotated[Path, typer.Argument(help="Run folder.")],
    second: Annotated[Path, typer.Argument(help="Another run folder.")],
    show: Annotated[int, typer.Option(help="Maximum number of samples of each kind to list.")] = 5,
) -> None:
    """List the differences between two runs: settings, prompts, pixels, versions, answers, scores.

    The exit code is 1 if there are differences.
    """
    from barista_bench.runs.diff import as_text, diff as compare_runs

    with exit_on_error():
        difference = compare_runs(first, second, show=show)
    print_result(*as_text(difference).removesuffix("\n").split("\n"))
    if not difference.is_same:
        raise typer.Exit(1)


@app.command(cls=ParentCommand)
def compare(
    folders: Folders,
    permutations: Permutations = PERMUTATIONS,
    csv: Annotated[Path | None, typer.Option(help="Write the table to this file too.")] = None,
    data: Data = None,
    root: Root = None,
    option: Options = None,
    json: Json = False,
) -> None:
    """Compare models on the same examples by difference with interval, Holm-corrected p-value and effect size."""
    from barista_bench.diagnosis.records import compared_shares
    from barista_bench.files.owned_folders import check_output_path
    from barista_bench.reporting.aided import find_diagnoses, labelled_diagnoses
    from barista_bench.stats import compare_runs, differing_circumstances, run_labels
    from barista_bench.stats.tables import comparison_table
    from barista_bench.tables import Table, to_csv, to_text

    with exit_on_error():
        if csv is not None:
            check_output_path(csv)
        with scored_runs(folders, data, root, option, with_stopped=True) as scored:
            all_runs, diagnosed = find_diagnoses(scored)
            runs, stopped = split_stopped(all_runs)
            comparisons = compare_runs(runs, permutations=permutations) if len(runs) > 1 or not stopped else ()
            if csv is not None:
                write_whole(csv, to_csv(Table.of_frame("comparisons", comparison_table(comparisons))))
            circumstances = differing_circumstances(runs)
            labels = run_labels(runs)
            costs = {f"{run.task.name}, {labels[run.folder]}": run.results.timing.costs for run in runs}
            decisions = {str(run.folder): summary_line(run.results) for run in stopped}
            if json:
                dumped = {
                    run: {name: cost.model_dump() for name, cost in of_run.items()} for run, of_run in costs.items()
                }
                compared = [asdict(item) for item in comparisons]
                print_json({"comparisons": compared, "beside": circumstances, "costs": dumped, "stopped": decisions})
            for line in decisions.values():
                print_result(line)
            for item in comparisons:
                print_result(comparison_line(item))
            diagnoses = [each for run in runs for each in labelled_diagnoses(run, labels[run.folder], diagnosed)]
            if (shares := compared_shares(diagnoses)).rows:
                print_result(*to_text(shares).splitlines())
            for line in circumstances:
                print_result(f"beside: {line}")
            for name, run_costs in costs.items():
                if run_costs:
                    print_result(f"costs: {name}: {costs_in_words(run_costs)}")
            if csv is not None:
                echo(f"wrote {csv}")


@app.command("compare agreement")
def agreement(folders: Folders, data: Data = None, root: Root = None, option: Options = None) -> None:
    """Measure how far answers agree, for each pair of runs of a task, for all people, and for all runs.

    For a study, first show each participant's progress, passed checks and time.
    """
    from barista_bench.stats import answer_agreement
    from barista_bench.studio.study_scores import participant_text, studies_of, study_scores

    with exit_on_error(), scored_runs(folders, data, root, option) as runs:
        participants = [metrics for study in studies_of(folders) for metrics in study_scores(study, runs)]
        for metrics in participants:
            print_result(participant_text(metrics))
        try:
            for row in answer_agreement(runs):
                print_result(agreement_line(row))
        except DataError as error:  # a single person has no pair; only the rows above are shown
            if not participants:
                raise
            echo(str(error))


@app.command("compare contamination")
def contamination(
    public: Annotated[Path, typer.Argument(help="Folder of runs on the published set: text_only:MODEL and prior.")],
    private: Annotated[Path, typer.Argument(help="Folder of the same runs on the private set.")],
    public_data: Annotated[str | None, typer.Option(help="The published set, if it has moved.")] = None,
    private_data: Annotated[str | None, typer.Option(help="The private set, if it has moved.")] = None,
    json: Json = False,
) -> None:
    """Check whether a model guesses better on a published set than on a private set of other videos.

    Without images, a model's advantage over prior should be equal on both sets.
    """
    from barista_bench.stats import compare_guesses

    with (
        exit_on_error(),
        scored_runs([public], public_data, None, None) as on_public,
        scored_runs([private], private_data, None, None) as on_private,
    ):
        found = compare_guesses(on_public, on_private)
        if json:
            print_json([asdict(each) | {"difference": each.difference, "interval": each.interval} for each in found])
        for each in found:
            print_result(guess_line(each))


@app.command("compare all")
def analyse(
    folders: Folders,
    out: Annotated[Path, typer.Option(help="Folder for the tables.")] = Path("analysis"),
    judge: Judge = None,
    permutations: Permutations = PERMUTATIONS,
    data: Data = None,
    root: Root = None,
    option: Options = None,
) -> None:
    """Write all analyses as CSV: scores, breakdowns, comparisons, agreement, propagation, baselines, failures."""
    from barista_bench.files.owned_folders import ANALYSIS, check_target
    from barista_bench.judging.chosen import ranked_by_judge
    from barista_bench.judging.scoring import all_judged
    from barista_bench.stats.tables import analysis_tables, write_tables

    with exit_on_error():
        check_target(out, ANALYSIS)
        with scored_runs(folders, data, root, option) as runs:
            judged = {run.folder: all_judged(run) for run in runs}
            tables, left_out = analysis_tables(ranked_by_judge(runs, judged, judge), permutations=permutations)
            for path in write_tables(tables, out):
                echo(f"wrote {path}")
            for name, reason in left_out.items():
                echo(f"no {name}: {reason}")


def comparison_line(item: Comparison) -> str:
    """Describe the comparison of a pair of models in words."""
    signed = partial(decimal, sign=True)
    interval = "no interval"
    if item.low is not None and item.high is not None:
        interval = f"95% [{signed(item.low)}, {signed(item.high)}]"
    first, second = f"{item.first} {decimal(item.first_value)}", f"{item.second} {decimal(item.second_value)}"
    effect = "none" if item.effect_size is None else decimal(item.effect_size, 2, sign=True)
    few = " (too few to show a difference)" if item.certainty == "too few" else ""
    extent = "" if item.samples == item.expected_samples else f" of {item.expected_samples}"
    extent += "".join(f"; INCOMPLETE: {name} lacks {count} samples" for name, count in item.missing_by_model.items())
    return (
        f"{item.task}, {item.name}: {first} − {second} "
        f"= {signed(item.difference)} {interval}, p {item.p_value:.4f} (Holm {item.p_adjusted:.4f}); "
        f"{item.sample_name} {signed(item.sample_difference)}, d {effect}, "
        f"{item.wins} better, {item.ties} equal, {item.losses} worse; "
        f"{item.examples} examples in {item.units} resampling units{few}, {item.samples} samples{extent}"
    )


def guess_line(item: GuessComparison) -> str:
    """Describe a model's advantages over `prior` without images in words."""
    signed = partial(decimal, sign=True)
    sides = [
        f"{signed(side.difference)} on the {name} set ({side.examples} examples in {side.units} resampling units)"
        for name, side in (("public", item.public), ("private", item.private))
    ]
    line = f"{item.public.task}, {item.public.name}: {item.model} without images, minus prior: {' and '.join(sides)}"
    if item.interval is None:
        return f"{line}; no interval of the difference: too few resampling units differ"
    low, high = item.interval
    verdict = "not shown to be larger on the public set"
    if item.is_larger_on_public:
        verdict = "LARGER on the public set: the model may have seen its answers"
    return f"{line}; difference {signed(item.difference)} 95% [{signed(low)}, {signed(high)}], {verdict}"


def agreement_line(row: AnswerAgreement) -> str:
    """Describe the agreement of some raters on a task in words."""
    if row.score is not None:
        measured = f"score of one answer with another as the reference {decimal(row.score)}"
    else:
        alpha = "none, since all choices are one" if row.alpha is None else decimal(row.alpha)
        measured = f"same choice {row.same:.3f}, Krippendorff's alpha {alpha}"
    raters = " and ".join(row.raters)
    return f"{row.benchmark}/{row.task}, {raters}: {measured}; {row.examples} examples, {row.pairs} pairs"


@flag_command(
    app,
    SubmissionSettings,
    positional="runs",
    config=False,
    hidden=("source_user", "source_org"),
    name="publish submission",
)
def submit(**flags: Any) -> None:  # noqa: ANN401  (what the flags hold; `check_settings` checks it)
    """Write and check a model's results in the format of leaderboards on the Hub, and upload them on request.

    Inspect the files in OUT first: model/ (.eval_results, README.md) and results/ (for a leaderboard Space).
    """
    from barista_bench.files.owned_folders import SUBMISSION, check_target
    from barista_bench.hub.files import README, ExistingFiles, all_files, eval_results_path, model_files, write_files
    from barista_bench.hub.pushing import Destination, Pusher, find_token
    from barista_bench.hub.submission import make_submission

    with exit_on_error():
        settings = resolve_flags(SubmissionSettings, flags)
        settings.refuse_contradictions()
        check_target(settings.out, SUBMISSION)
        submission = make_submission(
            settings.runs,
            SubmissionTarget(**part_of(settings, SubmissionTarget)),
            judge=settings.judge,
            allow_incomplete=settings.allow_incomplete,
            data=settings.data,
            root=settings.root,
            dataset=settings.dataset,
            adapter=settings.adapter,
        )
        model_repo, benchmark = settings.model_repo, submission.benchmark
        destination = Destination(settings.branch, settings.to_main)
        pusher = Pusher(find_token(settings.token_env), destination) if settings.push else None
        existing = pusher.existing_files(model_repo, benchmark) if pusher else None
        if settings.model_folder:
            results = settings.model_folder / eval_results_path(benchmark)
            results_there = results.read_bytes() if results.exists() else None
            existing = ExistingFiles((settings.model_folder / README).read_bytes(), results_there)
        files = all_files(submission, existing)
        written = write_files(files, settings.out)
        for row in submission.rows:
            echo(f"{row.task_id}: {row.metric} {row.value:g}" + (" INCOMPLETE" if row.gaps else ""))
        echo(f"{len(written)} files written to {settings.out}, {sum(map(len, files))} in all")
        if pusher is None:
            return
        pushes = [pusher.push_model(model_repo, benchmark, partial(model_files, submission))]
        if settings.results_repo is not None:
            pushes.append(pusher.push(settings.results_repo, "dataset", files.results))
    for pushed in pushes:
        content = f"{len(pushed.changed)} files" if pushed.changed else "nothing new"
        print_result(f"{pushed.repo_type} {pushed.repo_id}: {content}: {pushed.url}")
