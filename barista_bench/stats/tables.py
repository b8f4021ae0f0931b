"""Return all analyses of several runs as pandas frames, and write them as CSV files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from barista_bench.core.intervals import PERMUTATIONS
from barista_bench.errors import BaristaError
from barista_bench.files.owned_folders import ANALYSIS, replacing_folder
from barista_bench.files.writing import write_whole
from barista_bench.runs.score.labels import run_labels
from barista_bench.runs.score.results import MetricValue
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.stats.agreement import RankAgreement, answer_agreement, rank_agreement
from barista_bench.stats.baselines import baseline_gaps, consistency
from barista_bench.stats.breakdowns import breakdown_keys, breakdowns, failure_rows
from barista_bench.stats.comparison import Comparison, compare_runs
from barista_bench.stats.propagation import propagation
from barista_bench.stats.repetitions import repeated_scores
from barista_bench.tables import Table, interval, to_csv


def analysis_tables(
    runs: Sequence[ScoredRun], *, permutations: int = PERMUTATIONS
) -> tuple[dict[str, pd.DataFrame], dict[str, str]]:
    """Return every analysis that these runs allow by name, and for each left-out analysis the reason."""
    tables = {
        "metrics": metric_table(runs),
        "breakdowns": breakdown_table(runs),
        "failures": pd.DataFrame(
            {**asdict(row), **labels} for run, labels in with_labels(runs) for row in failure_rows(run)
        ),
        "consistency": pd.DataFrame(
            {**asdict(row), **labels} for run, labels in with_labels(runs) if (row := consistency(run)) is not None
        ),
    }
    tables["repetitions"] = pd.DataFrame(
        {
            **{name: getattr(row, name) for name in ("way", "k", "mean", "examples")},
            "low": row.interval and row.interval.low,
            "high": row.interval and row.interval.high,
            **labels,
        }
        for run, labels in with_labels(runs)
        for row in repeated_scores(run)
    )
    left_out = {}
    makers: dict[str, Callable[[], pd.DataFrame]] = {
        "comparisons": lambda: comparison_table(compare_runs(runs, permutations=permutations)),
        "rank_agreement": lambda: agreement_table(rank_agreement(runs)),
        "answer_agreement": lambda: pd.DataFrame(
            {**asdict(row), "raters": ", ".join(row.raters)} for row in answer_agreement(runs)
        ),
        "propagation": lambda: propagation_table(runs),
        "baselines": lambda: pd.DataFrame(
            {"model": gap.model, "kind": gap.kind, **asdict(gap.comparison)}
            for gap in baseline_gaps(runs, permutations=permutations)
        ),
    }
    for name, make in makers.items():
        try:
            tables[name] = make()
        except BaristaError as error:
            left_out[name] = str(error)
    left_out.update({name: "nothing to tell of these runs" for name, table in tables.items() if table.empty})
    return {name: table for name, table in tables.items() if not table.empty}, left_out


def write_tables(tables: Mapping[str, pd.DataFrame], out: Path) -> list[Path]:
    """Write `<out>/<name>.csv` for each table.

    Raises ConfigError if `out` may not be replaced (`replacing_folder`).
    """
    with replacing_folder(out, ANALYSIS) as folder:
        for name, table in tables.items():
            write_whole(folder / f"{name}.csv", to_csv(Table.of_frame(name, table)))
    return [out / f"{name}.csv" for name in tables]


def with_labels(runs: Iterable[ScoredRun]) -> Iterator[tuple[ScoredRun, dict[str, str]]]:
    """Yield each run with the names of its model and task."""
    runs = tuple(runs)
    labels = run_labels(runs)
    return ((run, {"model": labels[run.folder], "task": run.task.name}) for run in runs)


def numbers(metric: MetricValue) -> dict[str, float | int | None]:
    return {
        "mean": metric.mean,
        "std": metric.std,
        "low": metric.low,
        "high": metric.high,
        "repetitions": len(metric.repetitions),
    }


def metric_table(runs: Iterable[ScoredRun]) -> pd.DataFrame:
    """Return a row per model, task and metric. Values are in the metric's unit, usually a fraction from 0 to 1.

    The columns are `model`, `task`, `metric`, `primary` (True for the task's primary metric), `mean` and `std` over
    repetitions, `low` and `high` of the 95% interval over resampling units, and `runs`. The coverage follows, in
    samples (examples x repetitions): `expected`, `scored`, `answered`. `trained_on` counts the videos of these examples
    on which the model was trained.
    """
    return pd.DataFrame(
        {
            **{**labels, "metric": name, "primary": name == run.results.primary, **numbers(metric)},
            **run.results.coverage.model_dump(include={"expected", "scored", "answered"}),
            "trained_on": run.results.trained_on,
        }
        for run, labels in with_labels(runs)
        for name, metric in run.results.metrics.items()
    )


def headline_table(runs: Iterable[ScoredRun]) -> Table:
    """Return a row per run with the primary metric, its 95% interval, and the readable answers."""
    rows = []
    for run, labels in with_labels(runs):
        results = run.results
        metric, coverage = results.metrics[results.primary], results.coverage
        marks = ("" if coverage.is_complete else " INCOMPLETE") + (" TRAINED ON" if results.trained_on else "")
        interval_text = "none" if metric.low is None or metric.high is None else interval(metric.low, metric.high)
        answered_text = f"{coverage.answered}/{coverage.expected}{marks}"
        task = f"{run.task.benchmark}/{run.task.name}"
        rows.append((labels["model"], task, results.primary, metric.mean, interval_text, answered_text))
    return Table.of("", ("model", "task", "metric", "mean", "95% interval", "answered"), rows)


def breakdown_table(
    runs: Iterable[ScoredRun], keys: Iterable[str] | None = None, *, intervals: bool = True
) -> pd.DataFrame:
    """Return a row per run, key and group. If `keys` is None, use all keys that divide the examples."""
    keys_wanted = None if keys is None else tuple(keys)
    rows = []
    for run, labels in with_labels(runs):
        known_keys = breakdown_keys(run)
        keys = known_keys if keys_wanted is None else [key for key in keys_wanted if key in known_keys]
        for rows_of_key in breakdowns(run, keys, intervals=intervals).values():
            for row in rows_of_key:
                counts = {name: getattr(row, name) for name in ("key", "value", "examples", "units", "samples")}
                rows.append({**labels, **counts, **numbers(row.metric)})
    return pd.DataFrame(rows)


def comparison_table(comparisons: Iterable[Comparison]) -> pd.DataFrame:
    """Return a row per pair of models."""
    return pd.DataFrame(asdict(item) for item in comparisons)


def agreement_table(agreement: RankAgreement) -> pd.DataFrame:
    """Return a row and a column per task."""
    table = pd.DataFrame(agreement.tau, columns=list(agreement.tasks))
    table.insert(0, "task", list(agreement.tasks))
    return table


def propagation_table(runs: Iterable[ScoredRun]) -> pd.DataFrame:
    """Return a row per model and edge."""
    by_model: dict[str, list[ScoredRun]] = defaultdict(list)
    for run, labels in with_labels(runs):
        by_model[labels["model"]].append(run)
    graphs = [propagation(group, label=label) for label, group in by_model.items()]
    return pd.DataFrame({"model": graph.model, **asdict(edge)} for graph in graphs for edge in graph.edges)
