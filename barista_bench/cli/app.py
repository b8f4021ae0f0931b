"""Define the command `barista-bench`, and code that its subcommands share."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from barista_bench.benchmarks import parse_pairs
from barista_bench.cli.output import begin_output, echo, is_quiet, print_json_alone, print_result, show_bars, warn
from barista_bench.cli.tree import Commands
from barista_bench.core.guarding import raise_faults
from barista_bench.core.settings import CLUSTER_HELP
from barista_bench.errors import BaristaError, BudgetError, ConfigError
from barista_bench.files.text_out import LogFormatter, echo as write_line, system_problem
from barista_bench.version import __version__

if TYPE_CHECKING:
    from barista_bench.core.boxes import BoxFormat
    from barista_bench.runs.log.sessions import AskCounts
    from barista_bench.runs.score.scoring import ScoredRun


EXIT_SPENT = 3
"""Exit code of a command that stopped at `--max-cost` or `--max-tokens-total`."""


app = typer.Typer(
    name="barista-bench",
    cls=Commands,
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Evaluate vision-language models on egocentric video, and see where they fail.\n\n"
    "Start with `barista-bench demo`, which shows all steps in a minute. "
    "Order of the commands: mini or a release -> validate -> build -> run -> score -> report. "
    "Some commands have names of two words, such as `show stats`: `barista-bench show --help` lists those of `show`.",
)


Protocol = Annotated[
    Literal["release", "paper"], typer.Option(help="Rules to follow where they differ: the released code or the paper.")
]


def protocol_options(protocol: str) -> dict[str, object]:
    """Return the task options that the flag sets. Some tasks have no protocol option."""
    return {} if protocol == "release" else {"protocol": protocol}


Options = Annotated[
    list[str] | None, typer.Option(help="Task option that changes only scores, name=value; may be repeated.")
]
Cluster = Annotated[str | None, typer.Option(help=CLUSTER_HELP)]
Progress = Annotated[
    bool, typer.Option(help="Show progress bars.", callback=lambda wanted: show_bars(wanted and not is_quiet()))
]
Json = Annotated[bool, typer.Option("--json", help="Print only JSON, for programs.", callback=print_json_alone)]
Data = Annotated[str | None, typer.Option(help="Current location of the dataset, if it has moved.")]
Root = Annotated[Path | None, typer.Option(help="Folder with the videos of a linked dataset, if they have moved.")]


def split_names(*texts: str) -> tuple[str, ...]:
    """Split texts into names at commas.

    >>> split_names("a, b", "c,")
    ('a', 'b', 'c')
    """
    return tuple(name.strip() for text in texts for name in text.split(",") if name.strip())


@contextmanager
def scored_runs(
    folders: list[Path], data: str | None, root: Path | None, option: list[str] | None, *, with_stopped: bool = False
) -> Iterator[tuple[ScoredRun, ...]]:
    """Yield the runs in the given folders, scored with the given flags.

    Runs that stopped early are printed instead. If `with_stopped` is true, they are yielded last.

    If a task's code raised an error, TaskError follows at the end of the `with` statement, after all other work.
    """
    from barista_bench.api import load_results
    from barista_bench.runs.score.results import summary_line

    evaluation = load_results(folders, data=data, root=root, options=parse_pairs(option or []))
    for run in () if with_stopped else evaluation.stopped:
        print_result(summary_line(run.results))
    yield (*evaluation.runs, *evaluation.stopped) if with_stopped else evaluation.runs
    raise_faults(chain(evaluation.unscored.values(), *(run.task.faults for run in evaluation.runs)))


def exit_on_failures(counts: AskCounts, noun: str, hint: str = "") -> None:
    """End the command with exit code 1 if some of the requested work failed."""
    if counts.failed:
        raise _failure(
            f"{counts.failed} {noun} failed, first: {counts.first_failure}. Fix: fix the cause{hint} and "
            "run the same command again; only the failed ones are asked"
        )
    if counts.faulty:
        raise _failure(f"{counts.faulty} logged answers cannot be read by the task, first: {counts.first_fault}")


def _failure(message: str) -> typer.Exit:
    echo(f"error: {message}", color="red", err=True)
    return typer.Exit(1)


def run_command() -> None:
    """Run the command in `sys.argv`. An expected error (`BaristaError`) is printed as one line, with exit code 1."""
    handler = logging.StreamHandler()
    handler.setFormatter(LogFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    # These libraries install a handler on import, so messages would appear twice.
    for library in ("datasets", "huggingface_hub"):
        logging.getLogger(library).propagate = False
    # The resource tracker of a stopped worker cleans up after the worker's libraries. Its warnings are not needed.
    sys.warnoptions.append("ignore:resource_tracker")
    # Commands hold many small records and few cycles. Garbage collection would take a fifth of the time of scoring.
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    app()


@contextmanager
def exit_on_error() -> Iterator[None]:
    """End the command with a one-line error message and exit code 1.

    A spent budget is not an error. Its exit code is `EXIT_SPENT`.
    """
    try:
        yield
    except BudgetError as error:
        warn(str(error))
        raise typer.Exit(EXIT_SPENT) from error
    except (BaristaError, OSError) as error:
        message = system_problem(error) if isinstance(error, OSError) else str(error)
        raise _failure(" ".join(message.splitlines())) from error


def parsed_box_format(text: str | None) -> BoxFormat | None:
    """Return the box format that `--box-format` names, if given. Raises ConfigError."""
    from barista_bench.core.boxes import BoxFormat

    try:
        return None if text is None else BoxFormat.parse(text)
    except ValueError as error:
        raise ConfigError(f"{error}. Fix: say e.g. --box-format yxyx/1000") from error


def _print_version(wanted: bool) -> None:
    if wanted:
        write_line(__version__)
        raise typer.Exit


_HELLO = f"""barista-bench {__version__}: evaluate vision-language models on egocentric video, and see where they fail.

First steps, offline and without a GPU:
  barista-bench demo        the whole way in a minute: a toy kitchen, answers of small models, a report in the browser
  barista-bench show setup  what this machine has, and how to add what is missing

The way of the data, with videos and models of yours:
  barista-bench validate FOLDER                             is every record, mask and video of a release sound?
  barista-bench evaluate FOLDER --model MODEL --out runs    questions, answers, scores, and runs/report/report.html

All commands: barista-bench --help. One of them: barista-bench COMMAND --help."""


@app.callback()
def _global_options(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            help="Print only results, warnings and errors; no notes or progress bars. Goes before the command.",
        ),
    ] = False,
) -> None:
    del version
    begin_output(quiet)
    if ctx.invoked_subcommand is None:
        print_result(*_HELLO.splitlines())
