"""Run once for each combination of some settings: `run --sweep frames=4,8,16 --sweep max_side=512,1024`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from barista_bench.core.settings import check_settings
from barista_bench.errors import ConfigError
from barista_bench.files.writing import write_whole
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.opening import open_tasks
from barista_bench.runs.ask.runner import run_config
from barista_bench.runs.score.results import Results
from barista_bench.runs.score.scoring import score_tasks
from barista_bench.tables import Cell, RangedScore, Table, interval, number_columns, text_columns, to_csv

MOST_RUNS = 100


def sweep_configs(config: RunConfig) -> Iterator[tuple[str, RunConfig]]:
    """Yield the name and the settings of each combination. Its folder is OUT/NAME.

    Raises:
        ConfigError: an entry does not have the form NAME=VALUE,VALUE, or there are too many combinations.
    """
    axes: list[list[tuple[str, str]]] = []
    for text in config.sweep:
        name, equals, values = text.partition("=")
        name = name.strip().replace("-", "_")
        parts = [value.strip() for value in values.split(",") if value.strip()]
        if not equals or not name or not parts or name in ("sweep", "out"):
            raise ConfigError(f"sweep: {text!r:.100} is not NAME=VALUE,VALUE. Fix: say e.g. --sweep frames=4,8,16")
        axes.append([(name, value) for value in parts])
    if config.until or any(name == "until" for axis in axes for name, _ in axis):
        raise ConfigError("sweep compares scores, but a run that stops early has no score. Fix: leave until out")
    if config.is_bounded or any(name in ("max_cost", "max_tokens_total") for axis in axes for name, _ in axis):
        raise ConfigError("max_cost and max_tokens_total bound one run, not a sweep. Fix: start a run for each value")
    given = {name: getattr(config, name) for name in config.model_fields_set if name != "sweep"}
    combinations = list(product(*axes))
    if len(combinations) > MOST_RUNS:
        raise ConfigError(f"sweep: {len(combinations)} combinations are more than {MOST_RUNS}. Fix: give fewer values")
    for combination in combinations:
        label = ",".join(f"{name}={value}" for name, value in combination)
        fields = {name: value for name, value in combination if name in RunConfig.model_fields}
        options = tuple(f"{name}={value}" for name, value in combination if name not in fields)
        folder = config.out / label.replace("/", "_")
        settings = {**given, **fields, "out": folder, "option": (*config.option, *options)}
        yield label, check_settings(RunConfig, settings)


def run_sweep(config: RunConfig) -> Table:
    """Run, score and tabulate every combination, and write OUT/sweep.csv. A second call resumes the sweep.

    Raises:
        ConfigError, DataError, ModelError, BudgetError: the same as `run`.
    """
    found: list[tuple[str, Results]] = []
    for label, of_cell in list(sweep_configs(config)):  # the list checks all names first
        opened_tasks = open_tasks(of_cell)
        run_config(of_cell, opened_tasks)
        runs, unscored = score_tasks(opened_tasks, of_cell.root)
        for error in unscored.values():
            raise error
        found += [(label, run.results) for run in runs]
    table = sweep_table(found)
    write_whole(config.out / "sweep.csv", to_csv(table))
    return table


def sweep_table(found: Sequence[tuple[str, Results]]) -> Table:
    """Return one row per combination and task: the score, then tokens and seconds per sample.

    The table is drawn as points.
    """
    rows = []
    for label, results in found:
        metric, costs = results.metrics[results.primary], results.timing.costs
        ends = None if metric.low is None or metric.high is None else (metric.low, metric.high)
        value = Cell(RangedScore(metric.mean, *ends), notes=(interval(*ends),)) if ends else Cell(metric.mean)
        means = [costs[name].mean if name in costs else None for name in ("input_tokens", "output_tokens", "seconds")]
        rows.append((f"{results.dataset.task}, {label}", value, *means))
    columns = (*text_columns("task and settings"), *number_columns("", "score", "input tokens", "output tokens", "s"))
    note = "Tokens and seconds are means of a sample; the score is each task's primary metric."
    table = Table.of("Sweep", columns, rows, note)
    return Table(table.title, table.columns, table.rows, table.note, drawn="scatter")
