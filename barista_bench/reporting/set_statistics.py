"""What a dataset holds, in the tables and figures with which its benchmark's paper describes its own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from barista_bench.benchmarks import get_benchmark
from barista_bench.data.dataset import config_names, open_examples
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.text_out import markdown
from barista_bench.reporting.markdown import table_lines
from barista_bench.reporting.paper import as_tables
from barista_bench.reporting.tables import Table


def set_statistics(data: str | Path, benchmark: str) -> tuple[Table, ...]:
    """The counterparts of the paper's tables about its set (`Benchmark.set_tables`).

    Args:
        data: a dataset made by `build`.

    Raises:
        ConfigError: the benchmark's paper has no such table.
        DataError: there is no such dataset, or nothing in it that the tables count.
    """
    record = get_benchmark(benchmark)
    if record.set_tables is None:
        raise ConfigError(f"stats: there are no tables of a set of {record.title}. Remedy: name another benchmark")
    examples = {config: open_examples(data, benchmark, config).examples for config in config_names(data)}
    parts = record.set_tables(examples)
    if not parts:
        raise DataError(f"{data}: no task of {record.title} in it. Remedy: name its dataset folder")
    return as_tables(parts)


def as_text(tables: Iterable[Table], benchmark: str) -> str:
    """As Markdown."""
    lines = [f"# What this set of {get_benchmark(benchmark).title} holds"]
    for table in tables:
        lines += ["", f"## {markdown(table.title)}", "", *table_lines(table)]
        lines += ["", markdown(table.note)] if table.note else []
    return "\n".join(lines) + "\n"
