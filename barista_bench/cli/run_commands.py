"""The commands `run` and `evaluate`: their flags are the fields of `RunConfig`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from barista_bench.cli.app import app, explained
from barista_bench.cli.result_commands import summary_line
from barista_bench.cli.settings import CONFIG_FLAG, given, with_flags
from barista_bench.files.text_out import echo
from barista_bench.runs.ask.config import ENVIRONMENT_PREFIX, RunConfig, resolve

if TYPE_CHECKING:
    from barista_bench.runs.ask.asking import Session

_HELP = f"""Ask a model every example; every answer is logged at once, and nothing answered is asked again.

A setting is taken from the first of: flag, environment variable ({ENVIRONMENT_PREFIX}<NAME>), run file (--config).
Start it under `accelerate launch` to spread whole videos over processes."""


_EVALUATE_HELP = """Run a model, score its answers and report them, in one go; --benchmark all takes every benchmark.

Run folders lie in OUT, and the report in OUT/report. What is answered already is not asked again."""


def run(**flags: Any) -> None:  # noqa: ANN401  (what the flags hold; `resolve` checks it)
    from barista_bench.runs.ask.estimate import as_text, estimate
    from barista_bench.runs.ask.runner import run_config

    file, dry_run = flags.pop("config"), flags.pop("dry_run")
    with explained():
        config = resolve(RunConfig, given(flags), file=file, defaults={"progress": True})
        if dry_run:
            echo(*as_text(estimate(config)).split("\n"))
            return
        session = run_config(config)
    _report_session(session)


def evaluate(**flags: Any) -> None:  # noqa: ANN401  (what the flags hold; `resolve` checks it)
    from barista_bench.files.writing import REPORT, check_target
    from barista_bench.reporting import write_report
    from barista_bench.runs.ask.opening import open_tasks
    from barista_bench.runs.ask.runner import run_config
    from barista_bench.runs.ask.shards import Shard
    from barista_bench.runs.score.scoring import score_tasks

    file = flags.pop("config")
    with explained():
        config = resolve(RunConfig, given(flags), file=file, defaults={"progress": True, "task": "all"})
        Shard.refuse_several()
        check_target(config.out / "report", REPORT)
        opened = open_tasks(config)
        session = run_config(config, opened)
        runs, unscored = score_tasks(opened, config.root)
        for scored in runs:
            echo(summary_line(scored.results))
        for name, error in unscored.items():
            echo(f"not scored: {name}: {error}", color="yellow", err=True)
        if runs:
            page, _ = write_report(runs, config.out / "report")
            echo(f"wrote {page}")
    _report_session(session)
    if not runs:
        raise typer.Exit(1)


def _report_session(session: Session) -> None:
    """What a start did. Ends the command with exit code 1 where samples failed."""
    seconds = ", ".join(f"{name} {value:.1f} s" for name, value in session.seconds.items() if value)
    echo(f"{session.asked} samples answered, {session.already_done} were answered before ({seconds})")
    if session.failed:
        echo(
            f"error: {session.failed} samples failed, first: {session.first_failure}. "
            "Remedy: see to the cause and start the same command again; only they are asked",
            color="red",
            err=True,
        )
        raise typer.Exit(1)


app.command(help=_HELP)(with_flags(run, RunConfig, positional="data"))
app.command(help=_EVALUATE_HELP)(with_flags(evaluate, RunConfig, positional="data", extra=(CONFIG_FLAG,)))
