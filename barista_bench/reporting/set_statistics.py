"""What a dataset holds, in the tables and figures with which its benchmark's paper describes its own."""

from __future__ import annotations

import re
from pathlib import Path

from barista_bench.benchmarks import get_benchmark
from barista_bench.data.dataset import config_names, open_examples
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.writing import STATISTICS, replacing_folder
from barista_bench.reporting.figures import can_draw
from barista_bench.reporting.markdown import table_text
from barista_bench.reporting.paper import PaperPart, rendered


def set_statistics(data: str | Path, benchmark: str, *, plots: bool = True) -> PaperPart:
    """The counterparts of the paper's tables about its set (`Benchmark.set_tables`), of a dataset made by `build`.

    Raises:
        ConfigError: the benchmark's paper has no such table, or plots are wanted and matplotlib is absent.
        DataError: there is no such dataset, or nothing in it that the tables count.
    """
    record = get_benchmark(benchmark)
    if record.set_tables is None:
        raise ConfigError(f"stats: there are no tables of a set of {record.title}. Remedy: name another benchmark")
    if plots and not can_draw():
        raise ConfigError("stats: plots need matplotlib. Remedy: install the extra viz, or add --no-plots")
    examples = {config: open_examples(data, benchmark, config).examples for config in config_names(data)}
    parts = record.set_tables(examples)
    if not parts:
        raise DataError(f"{data}: no task of {record.title} in it. Remedy: name its dataset folder")
    return rendered(record, f"What this set of {record.title} holds", parts, drawing=plots)


def as_markdown(part: PaperPart) -> str:
    """Every table with its title and note."""
    texts = [f"# {part.heading}"]
    for table in part.tables:
        texts += [f"## {table.title}", table_text(table), *([table.note] if table.note else [])]
    return "\n\n".join(texts) + "\n"


def write_set_statistics(part: PaperPart, out: str | Path) -> list[Path]:
    """Write `statistics.md` and the figures as SVG into the folder `out`, and return their paths."""
    with replacing_folder(Path(out), STATISTICS) as folder:
        (folder / "statistics.md").write_text(as_markdown(part), encoding="utf-8", errors="backslashreplace")
        files = {f"{re.sub('[^a-z0-9]+', '_', figure.title.lower())}.svg": figure.svg for figure in part.figures}
        for name, content in files.items():
            (folder / name).write_bytes(content)
    return [Path(out) / name for name in ("statistics.md", *files)]
