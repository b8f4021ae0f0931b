"""A run folder in the released layout: what its files are called, and how they are written."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONFIG, EXAMPLES, EXAMPLES_SOURCE = "run_config.json", "benchmark_examples.jsonl", "benchmark_examples_source.txt"
PREDICTIONS, ERRORS, METRICS, SUMMARY = "predictions.jsonl", "errors.jsonl", "metrics.json", "summary.txt"
DIRECTORY = "Run directory: "
"""How the first line of `summary.txt` begins; where the run was written then follows."""
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
JsonObject = dict[str, Any]


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
        """Where the run was written, as its summary says it."""
        first = (self.summary or "").partition("\n")[0]
        return first.removeprefix(DIRECTORY) if first.startswith(DIRECTORY) else None


def as_json(value: object) -> str:
    """One line, as the release writes those of its JSONL files."""
    return json.dumps(value, sort_keys=True)


def write_released(run: ReleasedFolder, folder: Path) -> None:
    """Write all files of a run into a folder that is there."""
    texts = {
        CONFIG: _indented(run.config),
        EXAMPLES: _lines(run.examples),
        EXAMPLES_SOURCE: run.examples_source,
        PREDICTIONS: _lines(run.predictions),
        ERRORS: _lines(record for record in run.predictions if record.get("error") is not None),
        METRICS: _indented(run.metrics),
        SUMMARY: run.summary,
    }
    for name, text in texts.items():
        if text is not None:
            (folder / name).write_text(text, encoding="utf-8", newline="\n")


def _lines(records: Iterable[JsonObject]) -> str:
    return "".join(as_json(record) + "\n" for record in records)


def _indented(value: JsonObject | None) -> str | None:
    return None if value is None else json.dumps(value, indent=2, sort_keys=True) + "\n"
