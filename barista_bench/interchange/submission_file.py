"""The file that a benchmark's own leaderboard takes (`Benchmark.submission`), made from a run folder."""

from __future__ import annotations

from pathlib import Path

from barista_bench.benchmarks import get_benchmark
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.writing import check_place
from barista_bench.runs.score.samples import read_samples


def write_submission_file(
    folder: str | Path, out: str | Path, run: int = 0, *, data: str | Path | None = None, allow_incomplete: bool = False
) -> tuple[Path, int]:
    """Write one run's answers as their benchmark wants them. Answers of the questions may be hidden.

    Args:
        run: which repetition, from 0.
        allow_incomplete: whether questions may be missing that were not answered yet, that infrastructure cost, or that
            the run's `limit` left out.

    Returns:
        The path written, and the number of answers.

    Raises:
        ConfigError: the benchmark takes no such file, or `out` lies in a folder that a command made.
        DataError: the run is none, or not finished.
    """
    check_place(Path(out))
    read = read_samples(folder, data=data)
    benchmark = get_benchmark(read.task.benchmark)
    if benchmark.submission is None:
        raise ConfigError(f"{benchmark.name} takes no submission file. Remedy: use `barista-bench submit` for the Hub")
    samples = [s for s in read.samples if s.record.run == run and s.record.finished]
    if not samples:
        raise DataError(f"{folder}: run {run} has no finished sample. Remedy: finish it, or name another run")
    limit = read.described.data.limit
    if limit is not None and not allow_incomplete:
        raise DataError(
            f"{folder}: was run on the first {limit} questions alone. "
            "Remedy: run it anew without limit, or say --allow-incomplete"
        )
    missing = len(read.examples) - len(samples)
    if missing and not allow_incomplete:
        raise DataError(
            f"{folder}: run {run} lacks {missing} of {len(read.examples)} answers. "
            "Remedy: start it again, or say --allow-incomplete"
        )
    return benchmark.submission([sample.as_scored for sample in samples], Path(out)), len(samples)
