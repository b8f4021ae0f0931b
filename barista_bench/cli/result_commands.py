"""Commands on finished samples: score, report, diff, compact."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barista_bench.cli.app import Root, app, explained

if TYPE_CHECKING:
    from barista_bench.running.results import Results


@app.command()
def score(
    folder: Annotated[Path, typer.Argument(help="Run folder.")],
    data: Annotated[str | None, typer.Option(help="Where the dataset lies now, if it has moved.")] = None,
    root: Root = None,
) -> None:
    """Score a run from its log: writes results.json and scores.jsonl. The model is not asked."""
    from barista_bench.running.scoring import score as score_run

    with explained():
        scored = score_run(folder, data=data, root=root)
    typer.echo(summary_line(scored.results))


@app.command()
def report(
    folders: Annotated[list[Path], typer.Argument(help="Run folders of any tasks and models, together in one report.")],
    out: Annotated[Path, typer.Option(help="Folder for the page, and tables and figures beside it.")] = Path("report"),
    samples: Annotated[int, typer.Option(help="Samples of each task to page through at the most.")] = 1000,
    compare: Annotated[bool, typer.Option(help="Make the paired comparisons, which take longest.")] = True,
    data: Annotated[str | None, typer.Option(help="Where the dataset lies now, if it has moved.")] = None,
    root: Root = None,
) -> None:
    """Score runs and write a self-contained HTML page, Markdown, and tables and figures as files."""
    from barista_bench.reporting import write_report
    from barista_bench.running.scoring import score as score_run

    with explained():
        scored = [score_run(folder, data=data, root=root) for folder in folders]
        html, markdown = write_report(scored, out, samples=samples, compare=compare)
    for run_ in scored:
        typer.echo(summary_line(run_.results))
    typer.echo(f"wrote {html} and {markdown}")


@app.command()
def diff(
    first: Annotated[Path, typer.Argument(help="Run folder.")],
    second: Annotated[Path, typer.Argument(help="Another run folder.")],
    show: Annotated[int, typer.Option(help="Samples of each kind to name at the most.")] = 5,
) -> None:
    """Name what differs between two runs: settings, prompts, pixels, versions, answers, scores. Exit code 1 if any."""
    from barista_bench.running.diff import as_text
    from barista_bench.running.diff import diff as compare_runs

    with explained():
        found = compare_runs(first, second, shown=show)
    typer.echo(as_text(found), nl=False)
    if not found.same:
        raise typer.Exit(1)


@app.command()
def compact(folder: Annotated[Path, typer.Argument(help="Run folder.")]) -> None:
    """Merge the logs of all processes of a run into one, without lines that a later one replaced."""
    from barista_bench.running.compaction import compact as compact_logs

    with explained():
        done = compact_logs(folder)
    typer.echo(f"{done.before} records became {done.after}, {done.bytes} bytes less")


def summary_line(results: Results) -> str:
    """One line with the primary figure, its spread and the coverage."""
    figure, coverage = results.figures[results.primary], results.coverage
    spread = f" ± {figure.std:.3f}" if figure.std is not None else ""
    statuses = ", ".join(f"{name} {count}" for name, count in coverage.statuses.items() if count)
    incomplete = "" if coverage.complete else " INCOMPLETE"
    return (
        f"{results.dataset.task}, {results.model.name}: {results.primary} {figure.mean:.3f}{spread} "
        f"over {len(figure.runs)} run(s), "
        f"{coverage.answered}/{coverage.expected} answered ({statuses}){incomplete}"
    )
