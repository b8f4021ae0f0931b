"""Commands that ask models and score answers: demo, evaluate, run, diagnose, score, show setup."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barista_bench.benchmarks import parse_pairs
from barista_bench.cli.app import Data, Json, Options, Progress, Root, app, exit_on_error, exit_on_failures
from barista_bench.cli.flags import flag_command, resolve_flags
from barista_bench.cli.output import echo, print_json, print_result, warn
from barista_bench.core.guarding import raise_faults
from barista_bench.diagnosis.running import DiagnoseConfig
from barista_bench.errors import BudgetError, TaskError
from barista_bench.interchange.trackers import Tracker, log_results
from barista_bench.preflight.settings import PreflightConfig, is_seen, mark_seen
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.watching import WatchConfig
from barista_bench.runs.score.results import summary_line

if TYPE_CHECKING:
    from barista_bench.runs.log.sessions import Session


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for kitchen, dataset, runs and report.")] = Path("barista_demo"),
    num_proc: Annotated[int, typer.Option(help="Number of processes that render.", min=1)] = 2,
    browser: Annotated[bool, typer.Option(help="Open the report in a browser.")] = True,
    progress: Progress = True,
) -> None:
    """Render a toy kitchen, score stored answers and open the report. This works offline, in under a minute.

    The package contains the answers of its embedded models, and only scores them here. So no torch and no GPU are
    needed.
    """
    import webbrowser

    from barista_bench.demo import demo as make

    with exit_on_error():
        page = make(out, num_proc=num_proc, progress=progress, tell=echo)
    print_result(f"report: {page}", *_NEXT_STEPS.format(out=shlex.quote(str(out))).splitlines())
    if browser and not webbrowser.open(page.resolve().as_uri()):
        echo(f"no browser found: open {page} yourself")


_NEXT_STEPS = """next, each with what it needs:
  barista-bench compare {out}/runs/kitchen/referring {out}/runs/kitchen_early/referring  # is one better?
  pip install 'barista_bench[run]'     # a model itself, with torch: this one, or any checkpoint
  barista-bench run {out}/data --task all --model kitchen --repetitions 1 --out {out}/asked
  pip install 'barista_bench[viz]'     # figures for papers
  barista-bench report {out}/runs --figures --out {out}/figures
  pip install 'barista_bench[studio]'  # graphs and masks to look at, and your own answers
  barista-bench studio {out}/kitchen {out}/data {out}/runs
served models need [api], videos of your own [annotate]; docs/tutorial.md continues from here"""
"""Commands to try after the demo, and their requirements."""


@app.command("show setup")
def doctor(json: Json = False) -> None:
    """Show this machine's setup (Python, GPUs, codecs, optional parts, caches) and how to add missing parts."""
    from itertools import groupby

    from barista_bench.doctor import examine_machine

    facts = examine_machine()
    if json:
        print_json(facts)
        return
    for topic, of_topic in groupby(facts, key=lambda fact: fact.topic):
        print_result(topic)
        for fact in of_topic:
            print_result(f"  {fact.result:<7}  {fact.name:<13} {fact.found}")
            if fact.remedy:
                print_result(f"{'':<25}{fact.remedy}")


@flag_command(app, RunConfig, positional="data", dry_run=True)
def run(**flags: Any) -> None:  # noqa: ANN401  (what the flags hold; `resolve_settings` checks it)
    """Ask a model every example. Each answer is logged at once and never asked again.

    A flag overrides the environment variable (BARISTA_BENCH_<NAME>), and this variable overrides the run file
    (--config). Start the command under `accelerate launch` to distribute complete videos over processes.
    """
    from barista_bench.runs.ask.runner import estimate, estimate_text, run_config
    from barista_bench.runs.ask.sweep import sweep_configs

    dry_run = flags.pop("dry_run")
    with exit_on_error():
        config = resolve_flags(RunConfig, flags)
        if dry_run:
            for label, one in sweep_configs(config) if config.sweep else [("", config)]:
                print_result(*filter(None, [label]), *estimate_text(estimate(one)).split("\n"))
            return
        _offer_preflight(config)
        if config.sweep:
            _sweep(config)
            return
        session = run_config(config)
        mark_seen(config)
    _report_session(session)


def _sweep(config: RunConfig) -> None:
    """Run all combinations and print their table. Draw the table if the libraries are installed."""
    from barista_bench.runs.ask.sweep import run_sweep
    from barista_bench.tables import to_text

    table = run_sweep(config)
    print_result(*to_text(table).splitlines())
    written = [config.out / "sweep.csv"]
    if find_spec("matplotlib"):
        from barista_bench.plots import write_figure

        written = write_figure(table, config.out, "sweep")  # the same sweep.csv among them
    for path in written:
        echo(f"wrote {path}")


@flag_command(app, WatchConfig, positional="checkpoints data", hidden=("model", "sweep"), name="run watch")
def run_watch(**flags: Any) -> None:  # noqa: ANN401  (what the flags hold; `resolve_settings` checks it)
    """Score a fixed part of a dataset at every checkpoint of a training, and write the curve to OUT/curve.csv.

    Start the command again to resume. With --follow it waits for further checkpoints.
    """
    from barista_bench.runs.ask.watching import watch
    from barista_bench.tables import to_text

    with exit_on_error():
        config = resolve_flags(WatchConfig, flags)
        print_result(*to_text(watch(config, tell=echo)).splitlines())
        echo(f"wrote {config.out / 'curve.csv'}")


def _offer_preflight(config: RunConfig) -> None:
    """Suggest a preflight in one line, if this machine has not asked the model before."""
    if not is_seen(config):
        address = f" --base-url {shlex.quote(config.base_url)}" if config.base_url else ""
        echo(
            f"new model: `barista-bench preflight --model {shlex.quote(config.model)}{address}` asks 20 questions with "
            "known answers, and names wrong settings"
        )


@flag_command(app, PreflightConfig, positional="")
def preflight(**flags: Any) -> None:  # noqa: ANN401  (what the flags hold; `resolve_settings` checks it)
    """Ask a model 20 drawn questions with known answers.

    The answers show box format, images, length, thoughts, tokens and cost.

    If a setting is wrong, the command names the flag and ends with exit code 1.
    """
    from barista_bench.preflight.findings import preflight as ask_preflight

    with exit_on_error():
        found = ask_preflight(resolve_flags(PreflightConfig, flags))
    for finding in found:
        print_result(f"{finding.result:<8} {finding.topic:<9} {finding.found}")
        if finding.remedy:
            print_result(f"{'':<18} Fix: {finding.remedy}")
    if any(finding.result == "problem" for finding in found):
        raise typer.Exit(1)


@flag_command(app, RunConfig, positional="data")
def evaluate(**flags: Any) -> None:  # noqa: ANN401  (what the flags hold; `resolve_settings` checks it)
    """Run a model, score its answers and report them in one command. --benchmark all runs every benchmark.

    DATA may also be a release (a folder or a Hub id). Its dataset is built once in the cache, with the published
    settings. Run folders go to OUT, and the report goes to OUT/report. Answered samples are not asked again.
    """
    from barista_bench.files.owned_folders import REPORT, check_target
    from barista_bench.reporting import write_report
    from barista_bench.runs.ask.opening import open_tasks, with_built_release
    from barista_bench.runs.ask.runner import run_config
    from barista_bench.runs.ask.shard import Shard
    from barista_bench.runs.score.scoring import score_tasks
    from barista_bench.stats import run_labels

    with exit_on_error():
        config = resolve_flags(RunConfig, flags)
        Shard.refuse_several()
        check_target(config.out / "report", REPORT)
        config = with_built_release(config, echo)
        opened_tasks = open_tasks(config)
        session, budget_error = None, None
        try:
            session = run_config(config, opened_tasks)
        except BudgetError as spent:  # score the answers so far, as incomplete
            budget_error = spent
        runs, unscored = score_tasks(opened_tasks, config.root)
        labels = run_labels(runs)
        for scored in runs:
            print_result(summary_line(scored.results, labels[scored.folder]))
        for name, error in unscored.items():
            warn(f"not scored: {name}: {error}")
        if any(scored.results.stopped is None for scored in runs):
            page, _ = write_report(runs, config.out / "report")
            echo(f"wrote {page}")
        if budget_error:
            raise budget_error
        if session:
            _report_session(session)
        raise_faults(
            [
                *(fault for scored in runs for fault in scored.task.faults),
                *(str(error) for error in unscored.values() if isinstance(error, TaskError)),
            ]
        )
    if not runs:
        raise typer.Exit(1)


@flag_command(app, DiagnoseConfig, positional="data", dry_run=True, hidden=("until", "against", "alpha"))
def diagnose(**flags: Any) -> None:  # noqa: ANN401  (what the flags hold; `resolve_settings` checks it)
    """Find out why a model fails: tell it the truth about one level of the graph after the other, and ask again.

    Runs go to OUT/CONDITION/TASK, and the findings to OUT/diagnosis.json. Answered samples are not asked again.
    """
    from barista_bench.diagnosis.records import adjusted_p_values, diagnosis_table
    from barista_bench.diagnosis.running import diagnose as make_diagnoses, plan_lines, plan_tasks
    from barista_bench.diagnosis.sentences import finding_sentences
    from barista_bench.tables import to_text

    dry_run = flags.pop("dry_run")
    with exit_on_error():
        config = resolve_flags(DiagnoseConfig, flags)
        if dry_run:
            print_result(*plan_lines(config, plan_tasks(config)), "dry run: nothing was asked")
            return
        diagnoses = make_diagnoses(config, tell=echo)
        print_result(*to_text(diagnosis_table(diagnoses)).splitlines())
        for each, adjusted in zip(diagnoses, adjusted_p_values(diagnoses), strict=True):
            print_result("", *finding_sentences(each, adjusted))
        echo(f"wrote {config.out / 'diagnosis.json'}")


@app.command()
def plan(
    data: Annotated[str, typer.Argument(help="Dataset folder written by build, as for run.")],
    against: Annotated[Path, typer.Option(help="Complete run to compare with, or the folder of its tasks.")],
    difference: Annotated[float, typer.Option(help="Difference of scores to plan for.", min=0.001, max=0.999)] = 0.05,
    alpha: Annotated[float, typer.Option(help="Maximum probability of a wrong decision.", min=0.0001, max=0.5)] = 0.05,
    prices: Annotated[Path | None, typer.Option(help="Price file, as for run.")] = None,
    model: Annotated[str | None, typer.Option(help="Name in the price file; by default the run's model.")] = None,
    root: Root = None,
    json: Json = False,
) -> None:
    """Plan a comparison: estimate its answers, tokens, dollars and hours, and the difference that it can show.

    The estimates cover a complete run and a run that stops early.
    """
    from barista_bench.api import load_results
    from barista_bench.runs.decide.planning import plan_table, plan_tasks
    from barista_bench.runs.described import Prices, read_prices
    from barista_bench.tables import to_json, to_text

    with exit_on_error():
        runs = load_results(against, data=data, root=root).runs
        price = read_prices(prices, model or runs[0].results.model.name) if prices else Prices()
        table = plan_table(plan_tasks(runs, difference, alpha), difference, alpha, price)
        if json:
            print_json(to_json(table))
        print_result(*to_text(table).splitlines(), table.note)
        for run in runs:
            if run.task.decided_by is None:
                echo(f"{run.task.name}: {run.results.primary} cannot be decided early")


def _report_session(session: Session) -> None:
    """Print a summary of a start. End the command with exit code 1 if samples failed."""
    seconds = ", ".join(f"{name} {value:.1f} s" for name, value in session.seconds.items() if value)
    echo(f"{session.asked} samples answered, {session.already_done} were answered before ({seconds})")
    if session.decision:
        print_result(*session.decision.split("\n"))
    exit_on_failures(session, "samples")


@app.command()
def score(
    folders: Annotated[list[Path], typer.Argument(help="Run folders, or folders of them.")],
    data: Data = None,
    root: Root = None,
    option: Options = None,
    box_format: Annotated[
        str | None, typer.Option(help="Read the logged boxes in this format, e.g. yxyx/1000, instead of the run's.")
    ] = None,
    think_tags: Annotated[
        str | None,
        typer.Option(help=("Opening and closing tag of thoughts in the logged answers, separated by a comma.")),
    ] = None,
    log_to: Annotated[
        Tracker | None, typer.Option(help="Experiment tracker that also receives settings, scores and coverage.")
    ] = None,
    num_proc: Annotated[int, typer.Option(help="Number of processes; each scores complete runs.", min=1)] = 1,
    json: Json = False,
) -> None:
    """Score runs from their logs, and write results.json and scores.jsonl. No model is asked.

    If --option, --box-format or --think-tags differ from the start of the run, scores are saved separately, as
    results.<digest>.json. `publish submission` takes only the scores with the run's own settings. For answers that
    another harness recorded, use `run import` first.
    """
    from barista_bench.api import run_folders
    from barista_bench.cluster import map_in_processes
    from barista_bench.judging.scoring import ScoreJob, score_with_judges
    from barista_bench.runs.score.result_files import options_of_each

    results, all_faults = [], list[str]()
    with exit_on_error():
        options = parse_pairs(option or [])
        again = {"box_format": box_format, "think_tags": think_tags}
        options |= {name: value for name, value in again.items() if value is not None}
        folders = run_folders(folders)
        jobs = [
            ScoreJob(folder, data, root, run_options)
            for folder, run_options in zip(folders, options_of_each(folders, options), strict=True)
        ]
        for job, (scored, faults) in zip(jobs, map_in_processes(score_with_judges, jobs, num_proc), strict=True):
            all_faults += faults
            if scored is None:
                continue
            print_result(summary_line(scored))
            results.append({"folder": str(job.folder), **scored.model_dump(mode="json")})
            if log_to is not None:
                log_results(log_to, scored, job.folder)
        if json:
            print_json(results)
        raise_faults(all_faults)


@app.command("run compact")
def compact(folder: Annotated[Path, typer.Argument(help="Run folder.")]) -> None:
    """Merge the logs of all processes of a run into one log, without superseded lines."""
    from barista_bench.runs.merging import compact as compact_logs

    with exit_on_error():
        compacted = compact_logs(folder)
    echo(f"{compacted.before} records became {compacted.after}, {compacted.bytes} bytes less")


@app.command("run merge")
def merge(
    folders: Annotated[list[Path], typer.Argument(help="Run folders of one run, from machines without a shared disk.")],
    out: Annotated[Path, typer.Option(help="Run folder to write.")],
) -> None:
    """Merge folders of one run that machines without a shared disk wrote."""
    from barista_bench.runs.merging import merge as merge_runs

    with exit_on_error():
        merged = merge_runs(folders, out)
    echo(f"{merged.before} records became {merged.after} in {out}")
