"""A released run folder, as the released harness writes it: its files, what is read of them, and how they are written.

What is read has a type here; all else is carried along and never looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from barista_bench.core.prompt import BoxOrder
from barista_bench.errors import DataError

CONFIG, EXAMPLES, EXAMPLES_SOURCE = "run_config.json", "benchmark_examples.jsonl", "benchmark_examples_source.txt"
PREDICTIONS, ERRORS, METRICS, SUMMARY = "predictions.jsonl", "errors.jsonl", "metrics.json", "summary.txt"
DIRECTORY = "Run directory: "
"""How the first line of `summary.txt` begins; the folder in which the run was written follows."""
PROVIDER_ERROR, PARSE_ERROR = "provider_error:", "parse_error:"
"""How the `error` of a record begins."""
UNREADABLE = f"{PARSE_ERROR} could not parse response"
CONFIG_KEYS = (
    *("concurrency", "dataset_root", "debug_samples", "model", "output_dir", "system_prompt", "task", "task_params"),
)
MODEL_KEYS = (
    *("api_key_env", "api_version", "base_url", "location", "max_output_tokens", "max_retries", "model", "project"),
    *("provider", "temperature", "thinking_level", "timeout_sec", "vertexai"),
)
"""All that `run_config.json` holds, and its `model`; the release refuses other keys, and none of them is a secret."""
SCORE_PREFIX = "geval_"
"""How the keys of a judge begin in a `task_result`."""
MEAN_SCORE = "geval_mean_score"
MAX_LINE = 64 * 2**20
"""Bytes of one line of a JSONL file; a longer one is refused."""
LARGEST = 2**53
"""Up to here sums are exact; nothing that is counted or timed here is larger."""

JsonObject = dict[str, Any]
Number = Annotated[float, msgspec.Meta(ge=0, le=LARGEST)]
Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
StructT = TypeVar("StructT", bound=msgspec.Struct)


class Usage(msgspec.Struct):
    """A server may say anything: sums leave out what is no usual count."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    thinking_tokens: int | None = None
    total_tokens: int | None = None


class ReleasedAnswer(msgspec.Struct, kw_only=True):
    """What a record of `predictions.jsonl` says of the answer."""

    raw_text: str | None = None
    error: str | None = None
    latency_ms: Number | None = None
    usage: Usage | None = None
    finish_reason: str | None = None
    prompt_text: str | None = None
    task_result: dict[str, Any] | None = None


class ReleasedPrediction(ReleasedAnswer, kw_only=True):
    """A record of `predictions.jsonl`."""

    example_id: str
    task_name: str
    model: str
    provider: str | None = None


class ReleasedModelConfig(msgspec.Struct):
    temperature: Number | None = None
    max_output_tokens: Count | None = None
    thinking_level: str | Number | None = None


class ReleasedTaskParams(msgspec.Struct):
    """The release's defaults stand where a run says nothing else."""

    bbox_format: BoxOrder = "yxyx"
    bbox_scale: Annotated[int, msgspec.Meta(ge=1, le=10**6)] | None = 1000
    judge_model: str | None = None
    geval_criteria: list[str] | None = None


class ReleasedConfig(msgspec.Struct):
    """`run_config.json`."""

    model: ReleasedModelConfig | None = None
    task_params: ReleasedTaskParams | None = None
    concurrency: Count | None = None


class RunnerMetrics(msgspec.Struct):
    """What `metrics.json` tells of the run, not of the answers."""

    wall_clock_ms: Number | None = None
    concurrency: Count | None = None
    resumed_examples: Count | None = None
    debug_frames_saved: Count | None = None
    total_input_tokens: Count | None = None
    total_output_tokens: Count | None = None
    total_thinking_tokens: Count | None = None


RUNNER_METRICS = frozenset(RunnerMetrics.__struct_fields__)
SCHEMAS: dict[str, type[msgspec.Struct]] = {
    CONFIG: ReleasedConfig,
    METRICS: RunnerMetrics,
    PREDICTIONS: ReleasedAnswer,
}
"""By file; of other files no field is looked at."""


def checked(values: Mapping[str, Any], schema: type[StructT], where: object) -> StructT:
    """Values as a typed record. Raises DataError, naming the field, for values of another type."""
    try:
        return msgspec.convert(values, schema)
    except msgspec.ValidationError as error:
        raise DataError(f"{where}: {str(error).replace('$.', '')}. Remedy: correct it") from error


@dataclass(frozen=True, slots=True)
class ReleasedFolder:
    """Content of one run folder; None for a file that is not there. `errors.jsonl` follows from the predictions."""

    config: JsonObject | None
    examples: tuple[JsonObject, ...]
    examples_source: str | None
    predictions: tuple[JsonObject, ...]
    metrics: JsonObject | None
    summary: str | None

    @property
    def directory(self) -> str | None:
        """The folder in which the run was written, as its summary says it."""
        first = (self.summary or "").partition("\n")[0]
        return first.removeprefix(DIRECTORY) if first.startswith(DIRECTORY) else None

    def write(self, folder: Path) -> None:
        """Write all files into an existing folder."""
        texts = {
            CONFIG: _indented(self.config),
            EXAMPLES: _lines(self.examples),
            EXAMPLES_SOURCE: self.examples_source,
            PREDICTIONS: _lines(self.predictions),
            ERRORS: _lines(record for record in self.predictions if record.get("error") is not None),
            METRICS: _indented(self.metrics),
            SUMMARY: self.summary,
        }
        for name, text in texts.items():
            if text is not None:
                (folder / name).write_text(text, encoding="utf-8", newline="\n")


def as_json(value: object) -> str:
    """One line, as the release writes those of its JSONL files."""
    return json.dumps(value, sort_keys=True)


def _lines(records: Iterable[JsonObject]) -> str:
    return "".join(as_json(record) + "\n" for record in records)


def _indented(value: JsonObject | None) -> str | None:
    return None if value is None else json.dumps(value, indent=2, sort_keys=True) + "\n"
