"""Commands on runs: demo, run, evaluate, score, report, diff, compact, merge, compare, agreement, analyse, submit."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barista_bench.benchmarks import parse_pairs
from barista_bench.cli.app import (
    LOOK,
    PUBLISH,
    RUN,
    Data,
    FlagsBySection,
    Json,
    Options,
    Progress,
    Root,
    app,
    echo,
    exit_on_error,
    exit_on_failures,
    print_json,
    print_result,
    scored_runs,
    settings,
    with_flags,
)
from barista_bench.core.guarding import note_fault
from barista_bench.core.resampling import RESAMPLES
from barista_bench.errors import BudgetError, ConfigError, DataError
from barista_bench.files.text_out import decimal
from barista_bench.files.writing import write_whole
from barista_bench.interchange.trackers import Tracker, log_results
from barista_bench.runs.ask.config import ENVIRONMENT_PREFIX, RunConfig
from barista_bench.runs.score.costs import costs_in_words
from barista_bench.runs.score.results import summary_line

if TYPE_CHECKING:
    from barista_bench.hub.files import Existing
    from barista_bench.runs.ask.asking import Session
    from barista_bench.stats import AnswerAgreement, Comparison


@app.command(rich_help_panel=RUN)
def demo(
    out: Annotated[Path, typer.Option(help="Folder for kitchen, data, runs and report.")] = Path("barista_demo"),
    num_proc: Annotated[int, typer.Option(help="Processes that render.", min=1)] = 2,
    browser: Annotated[bool, typer.Option(help="Open the report in a browser.")] = True,
    progress: Progress = True,
) -> None:
    """Start here: render a toy kitchen, ask it BARISTA's tasks and open the report, offline and in under a minute.

    The embedded models' answers come with the package, so that neither torch nor a GPU is needed; they are scored here.
    """
    import webbrowser

    from barista_bench.demo import demo as make

    with exit_on_error():
        page = make(out, num_proc=num_proc, progress=progress, tell=echo)
    print_result(f"report: {page}", *_NEXT.format(out=out).splitlines())
    if browser and not webbrowser.open(page.resolve().as_uri()):
        echo(f"no browser here: open {page} yourself")


_NEXT = """next, each with what it needs:
  pip install 'barista_bench[run]'     # a model itself, with torch: this one, or any checkpoint
  barista-bench run {out}/data --task all --model kitchen --runs 1 --out {out}/asked
  pip install 'barista_bench[viz]'     # figures for papers
  barista-bench report {out}/runs --figures --out {out}/figures
  pip install 'barista_bench[studio]'  # graphs and masks to look at, and your own answers
  barista-bench studio {out}/kitchen {out}/data {out}/runs
served models need [api], videos of your own [annotate]; docs/tutorial.md goes on from here"""
"""What there is to do after the demo, and what each needs."""


_HELP = f"""Ask a model every example; every answer is logged at once, and nothing answered is asked again.

A setting is taken from the first of: flag, environment variable ({ENVIRONMENT_PREFIX}<NAME>), run file (--config).
Start it under `accelerate launch` to spread whole videos over processes."""


_EVALUATE_HELP = """Run a model, score its answers and report them, in one go; --benchmark all takes every benchmark.

Run folders lie in OUT, and the report in OUT/report. What is answered already is not asked again."""


def run(**flags: Any) -> None:  # noqa: ANN401  (what the flags hold; `resolve` checks it)
    from barista_bench.runs.ask.estimate import as_text, estimate
    from barista_bench.runs.ask.runner import run_config

    dry_run = flags.pop("dry_run")
    with exit_on_error():
        config = settings(RunConfig, flags)
        if dry_run:
            print_result(*as_text(estimate(config)).split("\n"))
            return
        session = run_config(config)
    _report_session(session)


def evaluate(**flags: Any) -> None:  # noqa: ANN401  (what the flags hold; `resolve` checks it)
    from barista_bench.files.writing import REPORT, check_target
    from barista_bench.reporting import write_report
    from barista_bench.runs.ask.config import Shard
    from barista_bench.runs.ask.opening import open_tasks
    from barista_bench.runs.ask.runner import run_config
    from barista_bench.runs.score.scoring import score_tasks

    with exit_on_error():
        config = settings(RunConfig, flags, task="all")
        Shard.refuse_several()
        check_target(config.out / "report", REPORT)
        opened = open_tasks(config)
        session, stopped = None, None
        try:
            session = run_config(config, opened)
        except BudgetError as spent:  # what was answered is scored, as incomplete
            stopped = spent
        runs, unscored = score_tasks(opened, config.root)
        for scored in runs:
            print_result(summary_line(scored.results))
        for name, error in unscored.items():
            echo(f"not scored: {name}: {error}", color="yellow", err=True)
        if runs:
            page, _ = write_report(runs, config.out / "report")
            echo(f"wrote {page}")
        if stopped:
            raise stopped
        if session:
            _report_session(session)
    if not runs:
        raise typer.Exit(1)


def _report_session(session: Session) -> None:
    """Tell what a start did. Ends the command with exit code 1 where samples failed."""
    seconds = ", ".join(f"{name} {value:.1f} s" for name, value in session.seconds.items() if value)
    echo(f"{session.asked} samples answered, {session.already_done} were answered before ({seconds})")
    exit_on_failures(session, "samples")


app.command(help=_HELP, cls=FlagsBySection, rich_help_panel=RUN)(
    with_flags(run, RunConfig, positional="data", dry_run=True)
)
app.command(help=_EVALUATE_HELP, cls=FlagsBySection, rich_help_panel=RUN)(
    with_flags(evaluate, RunConfig, positional="data")
)


@app.command(rich_help_panel=RUN)
def score(
    folders: Annotated[list[Path] | None, typer.Argument(help="Run folders, or folders of them.")] = None,
    data: Data = None,
    root: Root = None,
    option: Options = None,
    predictions: Annotated[
        Path | None, typer.Option(help="Answers that another harness recorded: a file or a folder, see --format.")
    ] = None,
    form: Annotated[str | None, typer.Option("--format", help="Of --predictions, e.g. handyvqa.")] = None,
    out: Annotated[Path, typer.Option(help="Parent of the run folders that --predictions become.")] = Path("runs"),
    model: Annotated[str | None, typer.Option(help="Whose answers --predictions are, if they do not say.")] = None,
    log_to: Annotated[
        Tracker | None, typer.Option(help="Experiment tracker that gets settings, figures and coverage too.")
    ] = None,
    num_proc: Annotated[int, typer.Option(help="Processes; each scores whole runs.", min=1)] = 1,
    json: Json = False,
) -> None:
    """Score runs from their logs: writes results.json and scores.jsonl. No model is asked.

    Figures by --option that the run was not started with are kept beside its own, as results.<digest>.json. With
    --predictions, answers that another harness recorded become run folders first.
    """
    from barista_bench.api import run_folders
    from barista_bench.cluster import map_in_processes
    from barista_bench.judging.scoring import ScoreJob, score_with_judges
    from barista_bench.runs.score.scoring import options_of_each

    results = []
    with exit_on_error():
        options = parse_pairs(option or [])
        if predictions is not None:
            from barista_bench.interchange.recorded_answers import import_recorded, known_formats

            if form is None or folders:
                raise ConfigError(
                    "predictions need their format, and no run folder beside them. "
                    f"Remedy: say --format with one of {', '.join(known_formats())}"
                )
            folders, options = import_recorded(predictions, out, form, model=model, options=options), {}
        if not folders:
            raise ConfigError("nothing to score. Remedy: name run folders, or --predictions and --format")
        folders = run_folders(folders)
        jobs = [
            ScoreJob(folder, data, root, chosen)
            for folder, chosen in zip(folders, options_of_each(folders, options), strict=True)
        ]
        for job, (scored, faults) in zip(jobs, map_in_processes(score_with_judges, jobs, num_proc), strict=True):
            for fault in faults:
                note_fault(fault)
            if scored is None:
                continue
            print_result(summary_line(scored))
            results.append({"folder": str(job.folder), **scored.model_dump(mode="json")})
            if log_to is not None:
                log_results(log_to, scored, job.folder)
        if json:
            print_json(results)


@app.command(rich_help_panel=LOOK)
def report(
    folders: Annotated[list[Path], typer.Argument(help="Run folders of any tasks and models, together in one report.")],
    out: Annotated[Path, typer.Option(help="Folder for the page and the Markdown file.")] = Path("report"),
    samples: Annotated[int, typer.Option(help="Samples of each task to look through at the most.")] = 1000,
    max_size: Annotated[float, typer.Option(help="Megabytes that the page may have.", min=0)] = 18,
    compare: Annotated[bool, typer.Option(help="Make the paired comparisons, which take longest.")] = True,
    tables: Annotated[bool, typer.Option("--tables", help="Write every table as CSV and LaTeX, too.")] = False,
    figures: Annotated[
        bool, typer.Option("--figures", help="Draw figures for papers: SVG, PDF, CSV, LaTeX; needs the extra viz.")
    ] = False,
    data: Data = None,
    root: Root = None,
    option: Options = None,
) -> None:
    """Write a self-contained HTML page, and Markdown that leads into it. Runs are read, never written."""
    from barista_bench.files.writing import REPORT, check_target
    from barista_bench.reporting import write_report

    with exit_on_error():
        check_target(out, REPORT)
        scored = scored_runs(folders, data, root, option)
        size = round(max_size * 1_000_000)
        html, markdown = write_report(
            scored, out, samples=samples, compare=compare, max_bytes=size, tables=tables, figures=figures
        )
        for run in scored:
            echo(summary_line(run.results))
        echo(f"wrote {html} and {markdown}")


@app.command(rich_help_panel=LOOK)
def diff(
    first: Annotated[Path, typer.Argument(help="Run folder.")],
    second: Annotated[Path, typer.Argument(help="Another run folder.")],
    show: Annotated[int, typer.Option(help="Samples of each kind to name at the most.")] = 5,
) -> None:
    """Name what differs between two runs: settings, prompts, pixels, versions, answers, scores. Exit code 1 if any."""
    from barista_bench.runs.diff import as_text, diff as compare_runs

    with exit_on_error():
        difference = compare_runs(first, second, shown=show)
    print_result(*as_text(difference).removesuffix("\n").split("\n"))
    if not difference.same:
        raise typer.Exit(1)


@app.command(rich_help_panel=RUN)
def compact(folder: Annotated[Path, typer.Argument(help="Run folder.")]) -> None:
    """Merge the logs of all processes of a run into one, without lines that a later one replaced."""
    from barista_bench.runs.log.log_reader import compact as compact_logs

    with exit_on_error():
        done = compact_logs(folder)
    echo(f"{done.before} records became {done.after}, {done.bytes} bytes less")


@app.command(rich_help_panel=RUN)
def merge(
    folders: Annotated[list[Path], typer.Argument(help="Run folders of one run, from machines that share nothing.")],
    out: Annotated[Path, typer.Option(help="Run folder to write.")],
) -> None:
    """Join the run folders that machines without a common disk have written of one run."""
    from barista_bench.runs.log.merging import merge as merge_runs

    with exit_on_error():
        done = merge_runs(folders, out)
    echo(f"{done.before} records became {done.after} in {out}")


Folders = Annotated[list[Path], typer.Argument(help="Run folders, or folders of them.")]
Resamples = Annotated[
    int, typer.Option(min=100, max=100_000, help="Resamples of the bootstrap and of the permutation test.")
]


@app.command(rich_help_panel=LOOK)
def compare(
    folders: Folders,
    resamples: Resamples = RESAMPLES,
    csv: Annotated[Path | None, typer.Option(help="Write the table to this file too.")] = None,
    data: Data = None,
    root: Root = None,
    option: Options = None,
    json: Json = False,
) -> None:
    """Compare models on the same examples: difference with its interval, p-value corrected by Holm, effect size."""
    from barista_bench.files.writing import check_place
    from barista_bench.stats import compare_runs, differing_circumstances, run_labels
    from barista_bench.stats.tables import comparison_table
    from barista_bench.tables import Table, to_csv

    with exit_on_error():
        if csv is not None:
            check_place(csv)
        runs = scored_runs(folders, data, root, option)
        comparisons = compare_runs(runs, resamples=resamples)
        if csv is not None:
            write_whole(csv, to_csv(Table.of_frame("comparisons", comparison_table(comparisons))))
        beside = differing_circumstances(runs)
        labels = run_labels(runs)
        costs = {f"{run.task.name}, {labels[run.folder]}": run.results.timing.costs for run in runs}
        if json:
            numbers = {name: {kind: cost.model_dump() for kind, cost in of.items()} for name, of in costs.items()}
            print_json({"comparisons": [asdict(item) for item in comparisons], "beside": beside, "costs": numbers})
        for item in comparisons:
            print_result(comparison_line(item))
        for line in beside:
            print_result(f"beside: {line}")
        for name, taken in costs.items():
            if taken:
                print_result(f"costs: {name}: {costs_in_words(taken)}")
        if csv is not None:
            echo(f"wrote {csv}")


@app.command(rich_help_panel=LOOK)
def agreement(folders: Folders, data: Data = None, root: Root = None, option: Options = None) -> None:
    """Say how far answers agree, those of people too: each pair of runs of a task, all people, and all runs. Of a study
    it says first how far its participants are, how they passed the checks, and how long they took."""
    from barista_bench.stats import answer_agreement
    from barista_bench.studio.study_figures import in_words, studies_of, study_figures

    with exit_on_error():
        runs = scored_runs(folders, data, root, option)
        people = [figures for study in studies_of(folders) for figures in study_figures(study, runs)]
        for figures in people:
            print_result(in_words(figures))
        try:
            for row in answer_agreement(runs):
                print_result(agreement_line(row))
        except DataError as error:  # of one person alone there is no pair, and all the above
            if not people:
                raise
            echo(str(error))


@app.command(rich_help_panel=LOOK)
def analyse(
    folders: Folders,
    out: Annotated[Path, typer.Option(help="Folder for the tables.")] = Path("analysis"),
    resamples: Resamples = RESAMPLES,
    data: Data = None,
    root: Root = None,
    option: Options = None,
) -> None:
    """Write all analyses as CSV: figures, breakdowns, comparisons, agreement, propagation, baselines, failures."""
    from barista_bench.files.writing import ANALYSIS, check_target
    from barista_bench.stats.tables import analysis_tables, write_tables

    with exit_on_error():
        check_target(out, ANALYSIS)
        runs = scored_runs(folders, data, root, option)
        tables, left_out = analysis_tables(runs, resamples=resamples)
        for path in write_tables(tables, out):
            echo(f"wrote {path}")
        for name, reason in left_out.items():
            echo(f"no {name}: {reason}")


def comparison_line(item: Comparison) -> str:
    """One pair of models in words."""
    signed = partial(decimal, sign=True)
    interval = "no interval"
    if item.low is not None and item.high is not None:
        interval = f"95% [{signed(item.low)}, {signed(item.high)}]"
    first, second = f"{item.first} {decimal(item.first_value)}", f"{item.second} {decimal(item.second_value)}"
    effect = "none" if item.effect_size is None else decimal(item.effect_size, 2, sign=True)
    part = "" if item.samples == item.expected_samples else f" of {item.expected_samples}"
    part += "".join(f"; INCOMPLETE: {name} lacks {count} samples" for name, count in item.incomplete.items())
    return (
        f"{item.task}, {item.name}: {first} − {second} "
        f"= {signed(item.difference)} {interval}, p {item.p_value:.4f} (Holm {item.p_adjusted:.4f}); "
        f"{item.sample_name} {signed(item.sample_difference)}, d {effect}, "
        f"{item.wins} better, {item.ties} equal, {item.losses} worse; "
        f"{item.examples} examples in {item.units} resampling units, {item.samples} samples{part}"
    )


def agreement_line(row: AnswerAgreement) -> str:
    """Some raters of one task in words."""
    if row.score is not None:
        measured = f"score of one answer with another as the reference {decimal(row.score)}"
    else:
        alpha = "none, since all choices are one" if row.alpha is None else decimal(row.alpha)
        measured = f"same choice {row.same:.3f}, Krippendorff's alpha {alpha}"
    who = " and ".join(row.raters)
    return f"{row.benchmark}/{row.task}, {who}: {measured}; {row.examples} examples, {row.pairs} pairs"


@app.command(rich_help_panel=PUBLISH)
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
        str | None, typer.Option(help="Dataset whose reference counts: a built folder, or a Hub dataset.")
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

    Everything lands in OUT to look at: model/ (.eval_results, README.md) and results/ (for a leaderboard Space).
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
    with exit_on_error():
        _refuse_contradictions(push, pull_request, branch, to_main, model_folder)
        check_target(out, SUBMISSION)
        made = make_submission(
            runs, target, judge=judge, allow_incomplete=allow_incomplete, data=data, root=root, dataset=dataset
        )
        pusher = Pusher(find_token(token_env), Destination(branch, to_main)) if push else None
        existing = _local(model_folder, made.benchmark) if model_folder else None
        if pusher:
            existing = pusher.existing(model_repo, made.benchmark)
        files = all_files(made, existing)
        written = write_files(files, out)
        for row in made.rows:
            echo(f"{row.task_id}: {row.metric} {row.value:g}" + (" INCOMPLETE" if row.missing else ""))
        echo(f"{len(written)} files written to {out}, {sum(map(len, files.items().values()))} in all")
        if pusher is None:
            return
        done = [pusher.push_model(model_repo, made.benchmark, lambda there: model_files(made, there))]
        if results_repo is not None:
            done.append(pusher.push(results_repo, "dataset", files.results))
    for pushed in done:
        what = f"{len(pushed.changed)} files" if pushed.changed else "nothing new"
        print_result(f"{pushed.repo_type} {pushed.repo_id}: {what}: {pushed.url}")


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
