"""Commands that analyse scored runs: compare models, write every analysis as tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barista_bench.cli.app import Data, Options, Root, app, explained
from barista_bench.core.interval import DRAWS
from barista_bench.core.options import parse_pairs
from barista_bench.files import text_out
from barista_bench.files.text_out import echo
from barista_bench.files.writing import write_whole

if TYPE_CHECKING:
    from barista_bench.stats import Comparison

Folders = Annotated[list[Path], typer.Argument(help="Run folders, or folders of them.")]
Draws = Annotated[int, typer.Option(min=100, max=100_000, help="Draws of the bootstrap and of the permutation test.")]


@app.command()
def compare(
    folders: Folders,
    draws: Draws = DRAWS,
    csv: Annotated[Path | None, typer.Option(help="Write the table to this file too.")] = None,
    data: Data = None,
    root: Root = None,
    option: Options = None,
) -> None:
    """Compare models on the same examples: difference with its interval, p-value corrected by Holm, effect size."""
    from barista_bench.api import load_results
    from barista_bench.files.writing import check_place
    from barista_bench.stats import compare_runs, differing_circumstances
    from barista_bench.stats.tables import comparison_table

    with explained():
        if csv is not None:
            check_place(csv)
        runs = load_results(folders, data=data, root=root, options=parse_pairs(option or [])).runs
        comparisons = compare_runs(runs, draws=draws)
        if csv is not None:
            write_whole(csv, text_out.csv(comparison_table(comparisons)))
    for item in comparisons:
        echo(comparison_line(item))
    for line in differing_circumstances(runs):
        echo(f"beside: {line}")
    if csv is not None:
        echo(f"wrote {csv}")


@app.command()
def analyse(
    folders: Folders,
    out: Annotated[Path, typer.Option(help="Folder for the tables.")] = Path("analysis"),
    draws: Draws = DRAWS,
    data: Data = None,
    root: Root = None,
    option: Options = None,
) -> None:
    """Write all analyses as CSV: figures, breakdowns, comparisons, rank agreement, propagation, baselines, failures."""
    from barista_bench.api import load_results
    from barista_bench.files.writing import ANALYSIS, check_target
    from barista_bench.stats.tables import analysis_tables, write_tables

    with explained():
        check_target(out, ANALYSIS)
        runs = load_results(folders, data=data, root=root, options=parse_pairs(option or [])).runs
        tables, left_out = analysis_tables(runs, draws=draws)
        for path in write_tables(tables, out):
            echo(f"wrote {path}")
    for name, reason in left_out.items():
        echo(f"no {name}: {reason}")


def comparison_line(item: Comparison) -> str:
    """One pair of models in words."""
    interval = "no interval" if item.low is None or item.high is None else f"95% [{item.low:+.3f}, {item.high:+.3f}]"
    effect = "none" if item.effect_size is None else f"{item.effect_size:+.2f}"
    part = "" if item.samples == item.expected_samples else f" of {item.expected_samples}: INCOMPLETE"
    return (
        f"{item.task}, {item.name}: {item.first} {item.first_value:.3f} - {item.second} {item.second_value:.3f} "
        f"= {item.difference:+.3f} {interval}, p {item.p_value:.4f} (Holm {item.p_adjusted:.4f}); "
        f"{item.sample_name} {item.sample_difference:+.3f}, d {effect}, "
        f"{item.wins} better, {item.ties} equal, {item.losses} worse; "
        f"{item.examples} examples in {item.videos} videos, {item.samples} samples{part}"
    )
