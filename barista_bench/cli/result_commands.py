"""Commands on finished samples: score, report, diff, compact."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barista_bench.cli.app import Data, Options, Root, app, explained
from barista_bench.core.options import parse_pairs
from barista_bench.errors import ConfigError
from barista_bench.files.text_out import echo

if TYPE_CHECKING:
    from barista_bench.runs.score.results import Results


@app.command()
def score(
    folders: Annotated[list[Path] | None, typer.Argument(help="Run folders.")] = None,
    data: Data = None,
    root: Root = None,
    option: Options = None,
    predictions: Annotated[
        Path | None, typer.Option(help="Answers that another harness recorded: a file or a folder, see --format.")
    ] = None,
    form: Annotated[str | None, typer.Option("--format", help="Of --predictions, e.g. handyvqa.")] = None,
    out: Annotated[Path, typer.Option(help="Parent of the run folders that --predictions become.")] = Path("runs"),
    model: Annotated[str | None, typer.Option(help="Whose answers --predictions are, if they do not say.")] = None,
) -> None:
    """Score runs from their logs: writes results.json and scores.jsonl. No model is asked.

    Figures by --option that the run was not started with are kept beside its own, as results.<digest>.json. With
    --predictions, answers that another harness recorded become run folders first.
    """
    from barista_bench.judging import judge_folders
    from barista_bench.runs.score.result_files import options_of_each
    from barista_bench.runs.score.scoring import score as score_run

    with explained():
        options = parse_pairs(option or [])
        if predictions is not None:
            from barista_bench.runs.imports.recorded_answers import import_recorded, known_formats

            if form is None or folders:
                raise ConfigError(
                    "predictions need their format, and no run folder beside them. "
                    f"Remedy: say --format with one of {', '.join(known_formats())}"
                )
            folders, options = import_recorded(predictions, out, form, model=model, options=options), {}
        if not folders:
            raise ConfigError("nothing to score. Remedy: name run folders, or --predictions and --format")
        for folder, chosen in zip(folders, options_of_each(folders, options), strict=True):
            scored = score_run(folder, data=data, root=root, options=chosen)
            echo(summary_line(scored.results))
            for judge in [] if chosen else judge_folders(folder):
                from barista_bench.judging.scoring import score_judged

                score_judged(scored, judge)


@app.command()
def report(
    folders: Annotated[list[Path], typer.Argument(help="Run folders of any tasks and models, together in one report.")],
    out: Annotated[Path, typer.Option(help="Folder for the page, and tables and figures beside it.")] = Path("report"),
    samples: Annotated[int, typer.Option(help="Samples of each task to page through at the most.")] = 1000,
    compare: Annotated[bool, typer.Option(help="Make the paired comparisons, which take longest.")] = True,
    data: Data = None,
    root: Root = None,
    option: Options = None,
) -> None:
    """Write a self-contained HTML page, Markdown, and tables and figures as files. Runs are read, never written."""
    from barista_bench.api import load_results
    from barista_bench.files.writing import REPORT, check_target
    from barista_bench.reporting import write_report

    with explained():
        check_target(out, REPORT)
        scored = load_results(folders, data=data, root=root, options=parse_pairs(option or [])).runs
        html, markdown = write_report(scored, out, samples=samples, compare=compare)
    for run in scored:
        echo(summary_line(run.results))
    echo(f"wrote {html} and {markdown}")


@app.command()
def diff(
    first: Annotated[Path, typer.Argument(help="Run folder.")],
    second: Annotated[Path, typer.Argument(help="Another run folder.")],
    show: Annotated[int, typer.Option(help="Samples of each kind to name at the most.")] = 5,
) -> None:
    """Name what differs between two runs: settings, prompts, pixels, versions, answers, scores. Exit code 1 if any."""
    from barista_bench.runs.diff import as_text
    from barista_bench.runs.diff import diff as compare_runs

    with explained():
        difference = compare_runs(first, second, shown=show)
    echo(*as_text(difference).removesuffix("\n").split("\n"))
    if not difference.same:
        raise typer.Exit(1)


@app.command()
def compact(folder: Annotated[Path, typer.Argument(help="Run folder.")]) -> None:
    """Merge the logs of all processes of a run into one, without lines that a later one replaced."""
    from barista_bench.runs.log.compaction import compact as compact_logs

    with explained():
        done = compact_logs(folder)
    echo(f"{done.before} records became {done.after}, {done.bytes} bytes less")


def summary_line(results: Results) -> str:
    """One line with the primary figure, its spread, the coverage, and what the order of the examples decides of it."""
    from barista_bench.runs.score.results import tie_spread

    figure, coverage = results.figures[results.primary], results.coverage
    std = f" ± {figure.std:.3f}" if figure.std is not None else ""
    statuses = ", ".join(f"{name} {count}" for name, count in coverage.statuses.items() if count)
    incomplete = "" if coverage.complete else " INCOMPLETE"
    options = f", {words}" if (words := results.comparability.options_in_words) else ""
    spread = tie_spread(results)
    order = f"; all scores are equal, so that the order of the examples decides: {spread}" if spread else ""
    return (
        f"{results.dataset.benchmark}/{results.dataset.task}, {results.model.name}: "
        f"{results.primary} {figure.mean:.3f}{std} over {len(figure.runs)} run(s), "
        f"{coverage.answered}/{coverage.expected} answered ({statuses}){incomplete}, "
        f"wording {results.prompts.wording}{options}{order}"
    )
