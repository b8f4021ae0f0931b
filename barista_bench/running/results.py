"""`results.json`: one a run, checked against this schema whenever it is written or read."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue

from barista_bench.atomic_files import write_whole
from barista_bench.schema_files import Strict, read_model

SCHEMA_VERSION = 1
RESULTS_FILE = "results.json"
SCORES_FILE = "scores.jsonl"
"""Figures of every sample, beside `RESULTS_FILE`."""


class BoxFormatInfo(Strict):
    order: Literal["xyxy", "yxyx"]
    scale: int | None


class ModelInfo(Strict):
    name: str
    box_format: BoxFormatInfo
    revision: str | None
    settings: dict[str, JsonValue]


class PromptsInfo(Strict):
    """`sha256` is of the prompt file."""

    version: int
    sha256: str


class DatasetInfo(Strict):
    """`content_hash` is the SHA-256 of the evaluated examples' frozen lines."""

    benchmark: str
    task: str
    task_version: int
    config: str
    split: str
    examples: int
    content_hash: str


class Figure(Strict):
    """A figure over runs: mean, sample standard deviation, and the value of each run that has scored samples.

    There is no deviation (None) of one run, nor where the runs were scored over different examples.

    [low, high] is the 95% interval of the mean over videos (`resampling`); None where there is none.
    """

    mean: float
    std: float | None
    runs: list[float]
    low: float | None = None
    high: float | None = None


class Coverage(Strict):
    """Samples by what became of them. `expected` = examples x runs; `scored` leaves out infrastructure errors and
    samples not yet run; `answered` are those with a readable answer."""

    expected: int
    scored: int
    answered: int
    statuses: dict[str, int]

    @property
    def complete(self) -> bool:
        return self.scored == self.expected


class Breakdown(Strict):
    """The primary figure for the examples that share a metadata value."""

    examples: int
    figure: Figure


class Timing(Strict):
    """Seconds by stage over all sessions of the run, and tokens; the only part that differs between equal runs.

    Rates are over the seconds that generation took or stood still, summed over processes. `cost` is in US dollars,
    and None where no prices were given.
    """

    sessions: int
    seconds: dict[str, float]
    input_tokens: int
    output_tokens: int
    samples_per_second: float | None = None
    output_tokens_per_second: float | None = None
    cost: float | None = None


class Results(Strict):
    schema_version: int = SCHEMA_VERSION
    barista_bench: str
    protocol: str
    options: dict[str, JsonValue] = Field(default_factory=dict, description="the task's options")
    model: ModelInfo
    dataset: DatasetInfo
    prompts: PromptsInfo
    generation: dict[str, JsonValue]
    runs: int
    coverage: Coverage
    primary: str
    figures: dict[str, Figure]
    breakdowns: dict[str, dict[str, Breakdown]] = Field(description="metadata key -> value -> primary figure")
    details: list[dict[str, JsonValue]] = Field(description="the task's whole aggregate, one entry a run")
    versions: dict[str, str]
    timing: Timing


def write_results(results: Results, path: Path) -> None:
    write_whole(path, results.model_dump_json(indent=1) + "\n")


def read_results(path: str | Path) -> Results:
    """Read and check.

    Raises:
        DataError: the file is missing, too large, or breaks the schema; names the field.
    """
    return read_model(path, Results, what="no results here", remedy="run `barista-bench score`")
