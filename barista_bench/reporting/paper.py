"""Make counterparts of the papers' tables and figures from runs.

`Benchmark.paper_tables` receives the samples of every model and returns tables and charts as data. No code here is for
a single benchmark.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from barista_bench.benchmarks import Benchmark, get_benchmark
from barista_bench.core.model_samples import ModelSamples, sample_name
from barista_bench.data.dataset import config_names, open_examples
from barista_bench.errors import BaristaError, ConfigError, DataError
from barista_bench.judging.chosen import JudgedRuns as JudgedRuns
from barista_bench.judging.judged_run import JudgedRun, raw_scores
from barista_bench.reporting.judges import labelled_judges
from barista_bench.runs.score.labels import own_name
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.tables import Table

RunsByLabel = Sequence[tuple[str, ScoredRun]]
"""Runs of one benchmark by their models' labels."""


@dataclass(frozen=True, slots=True)
class PaperPart:
    """One benchmark's tables. Without tables, `left_out` is the reason."""

    benchmark: str
    heading: str
    tables: tuple[Table, ...] = ()
    left_out: str = ""


def paper_part(benchmark: Benchmark, heading: str, runs: RunsByLabel, judged_runs: JudgedRuns) -> PaperPart:
    """Return the tables that `benchmark.paper_tables` makes of these runs."""
    if benchmark.paper_tables is None:
        return PaperPart(benchmark.name, heading)
    try:
        samples = [model_samples(label, run, judged_runs.get(run.folder, ())) for label, run in runs]
        return PaperPart(benchmark.name, heading, tuple(benchmark.paper_tables(samples)))
    except BaristaError as error:
        return PaperPart(benchmark.name, heading, left_out=f"The tables of {heading}: {error}")


def model_samples(label: str, run: ScoredRun, judges: Sequence[JudgedRun]) -> ModelSamples:
    """Return a run in the form that `paper_tables` takes.

    A judge's score of a sample is the mean over criteria, if all criteria have a score.
    """
    scores_by_judge: dict[str, dict[str, float]] = {}
    for _, judge, judged_run in labelled_judges([(label, judges)]):
        scores_of = scores_by_judge.setdefault(judge, {})
        for (example_id, repetition), verdicts in judged_run.verdicts.items():
            scores = raw_scores(verdicts)
            if scores and len(scores) == len({verdict.criterion for verdict in verdicts}):
                scores_of[sample_name(example_id, repetition)] = statistics.fmean(scores.values())
    runs = tuple(tuple(sample.as_scored for sample in group.samples) for group in run.counted.values())
    name = own_name(run.name, run.results.model)
    return ModelSamples(label, run.task, runs, scores_by_judge, run.results.model.settings, name)


def set_statistics(data: str | Path, benchmark: str) -> tuple[Table, ...]:
    """Return counterparts of the paper's tables that describe its set (`Benchmark.set_tables`).

    Args:
        data: a dataset that `build` made.

    Raises:
        ConfigError: the benchmark's paper has no such table.
        DataError: the dataset does not exist, or the tables find nothing to count.
    """
    record = get_benchmark(benchmark)
    if record.set_tables is None:
        raise ConfigError(f"show stats: there are no tables of a set of {record.title}. Fix: name another benchmark")
    examples = {config: open_examples(data, benchmark, config).examples for config in config_names(data)}
    tables = record.set_tables(examples)
    if not tables:
        raise DataError(f"{data}: no task of {record.title} in it. Fix: name its dataset folder")
    return tuple(tables)
