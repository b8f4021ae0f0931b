"""Define the files of a released run folder, the fields that we read, and how files are written.

Fields that we read have a type here. All other fields are copied unread. A released folder may contain data for which
our run has no field. So import makes every released file again from our run, and saves the differences in
`released.jsonl` of the imported run folder. Export restores the differences.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from barista_bench.core.boxes import BoxOrder
from barista_bench.errors import DataError
from barista_bench.files.reading import read_json_lines

CONFIG, EXAMPLES, EXAMPLES_SOURCE = "run_config.json", "benchmark_examples.jsonl", "benchmark_examples_source.txt"
PREDICTIONS, ERRORS, METRICS, SUMMARY = "predictions.jsonl", "errors.jsonl", "metrics.json", "summary.txt"
DIRECTORY = "Run directory: "
"""Start of the first line of `summary.txt`. The original folder of the run follows."""
PROVIDER_ERROR, PARSE_ERROR = "provider_error:", "parse_error:"
"""Prefixes of a record's `error`."""
UNREADABLE = f"{PARSE_ERROR} could not parse response"
CONFIG_KEYS = (
    *("concurrency", "dataset_root", "debug_samples", "model", "output_dir", "system_prompt", "task", "task_params"),
)
MODEL_KEYS = (
    *("api_key_env", "api_version", "base_url", "location", "max_output_tokens", "max_retries", "model", "project"),
    *("provider", "temperature", "thinking_level", "timeout_sec", "vertexai"),
)
"""All keys of `run_config.json` and of its `model`.

The release refuses other keys. No value of these keys is a secret.
"""
SCORE_PREFIX = "geval_"
"""Prefix of a judge's keys in a `task_result`."""
MEAN_SCORE = "geval_mean_score"
MAX_LINE = 64 * 2**20
"""Maximum bytes of a line in a JSONL file. Longer lines are refused."""
LARGEST = 2**53
"""Largest count or time. Sums are exact up to this number."""

JsonObject = dict[str, Any]
Number = Annotated[float, msgspec.Meta(ge=0, le=LARGEST)]
Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
StructT = TypeVar("StructT", bound=msgspec.Struct)


class Usage(msgspec.Struct):
    """Token usage. A server may report any value, so sums omit implausible counts."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    thinking_tokens: int | None = None
    total_tokens: int | None = None


class ReleasedAnswer(msgspec.Struct, kw_only=True):
    """The answer in a record of `predictions.jsonl`."""

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
    """Parameters of a released task, with the release's defaults."""

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
    """The fields about the run in `metrics.json`."""

    wall_clock_ms: Number | None = None
    concurrency: Count | None = None
    resumed_examples: Count | None = None
    debug_frames_saved: Count | None = None
    total_input_tokens: Count | None = None
    total_output_tokens: Count | None = None
    total_thinking_tokens: Count | None = None


RUNNER_METRICS = frozenset(RunnerMetrics.__struct_fields__)
SCHEMAS: dict[str, type[msgspec.Struct]] = {CONFIG: ReleasedConfig, METRICS: RunnerMetrics, PREDICTIONS: ReleasedAnswer}
"""Schemas by file. Fields of other files are not read."""


def check_record(values: Mapping[str, Any], schema: type[StructT], where: object) -> StructT:
    """Return values as a typed record. If a value has another type, raise a DataError that names the field."""
    try:
        return msgspec.convert(values, schema)
    except msgspec.ValidationError as error:
        raise DataError(f"{where}: {str(error).replace('$.', '')}. Fix: correct it") from error


@dataclass(frozen=True, slots=True)
class ReleasedFolder:
    """Content of one run folder. A missing file is None. `errors.jsonl` is derived from the predictions."""

    config: JsonObject | None
    examples: tuple[JsonObject, ...]
    examples_source: str | None
    predictions: tuple[JsonObject, ...]
    metrics: JsonObject | None
    summary: str | None

    @property
    def directory(self) -> str | None:
        """Return the original path of the run's folder, from its summary."""
        first_line = (self.summary or "").partition("\n")[0]
        return first_line.removeprefix(DIRECTORY) if first_line.startswith(DIRECTORY) else None

    def write(self, folder: Path) -> None:
        """Write all files into an existing folder."""
        texts = {EXAMPLES_SOURCE: self.examples_source, SUMMARY: self.summary}
        failures = [record for record in self.predictions if record.get("error") is not None]
        for name, records in ((EXAMPLES, self.examples), (PREDICTIONS, self.predictions), (ERRORS, failures)):
            texts[name] = "".join(as_json(record) + "\n" for record in records)
        for name, value in ((CONFIG, self.config), (METRICS, self.metrics)):
            texts[name] = None if value is None else json.dumps(value, indent=2, sort_keys=True) + "\n"
        for name, text in texts.items():
            if text is not None:
                (folder / name).write_text(text, encoding="utf-8", newline="\n")


def as_json(value: object) -> str:
    """Return JSON on one line, as in the release's JSONL files."""
    return json.dumps(value, sort_keys=True)


KEPT_FILE = "released.jsonl"


class KeptFields(msgspec.Struct, frozen=True, omit_defaults=True):
    """Fields that differ in a file of one repetition, or in a line of the file.

    Args:
        values: the release's values of differing fields.
        absent: fields that the release lacks.
        text: the complete content if the file is not JSON.
    """

    repetition: int
    file: str
    example_id: str = ""
    values: dict[str, Any] = {}
    absent: tuple[str, ...] = ()
    text: str | None = None


class OriginalContents:
    """The contents of the original folder. `differences` collects the differences of our version."""

    def __init__(self, original: ReleasedFolder, repetition: int) -> None:
        self._repetition = repetition
        self._texts = {
            EXAMPLES_SOURCE: original.examples_source,
            SUMMARY: original.summary,
            DIRECTORY: original.directory,
        }
        self._records = {(CONFIG, ""): original.config, (METRICS, ""): original.metrics}
        self._records |= {(EXAMPLES, record["example_id"]): record for record in original.examples}
        self._records |= {
            (PREDICTIONS, record["example_id"]): _without_scores(record) for record in original.predictions
        }
        self.differences: list[KeptFields] = []

    def record(self, file: str, own_record: JsonObject, example_id: str = "") -> JsonObject:
        original = self._records.get((file, example_id))
        if original is None:
            return own_record
        # Compare as text, since 1, 1.0 and True are equal in Python.
        values = {
            name: value
            for name, value in original.items()
            if name not in own_record or as_json(value) != as_json(own_record[name])
        }
        absent = tuple(name for name in own_record if name not in original)
        if values or absent:
            self.differences.append(KeptFields(self._repetition, file, example_id, values, absent))
        return original

    def text(self, file: str, own_text: str) -> str:
        original = self._texts[file]
        if original is None:
            return own_text
        if original != own_text:
            self.differences.append(KeptFields(self._repetition, file, text=original))
        return original


class RestoredContents:
    """Contents made from our run, with saved fields restored. Only imported runs have saved fields."""

    def __init__(self, kept: Iterable[KeptFields], repetition: int) -> None:
        self._kept = {(entry.file, entry.example_id): entry for entry in kept if entry.repetition == repetition}

    def record(self, file: str, own_record: JsonObject, example_id: str = "") -> JsonObject:
        entry = self._kept.get((file, example_id))
        if entry is None:
            return own_record
        return {name: value for name, value in own_record.items() if name not in entry.absent} | entry.values

    def text(self, file: str, own_text: str) -> str:
        entry = self._kept.get((file, ""))
        return own_text if entry is None or entry.text is None else entry.text


ReleasedContents = OriginalContents | RestoredContents
"""Gives the released form of each file of our run."""


def _without_scores(record: Mapping[str, Any]) -> JsonObject:
    """Return a record of `predictions.jsonl` without the judge's scores. The judge's folder holds them."""
    result = record.get("task_result")
    if not isinstance(result, dict):
        return dict(record)
    return {**record, "task_result": {k: v for k, v in result.items() if not k.startswith(SCORE_PREFIX)}}


def write_kept_fields(differences: Sequence[KeptFields], folder: Path) -> None:
    lines = (as_json(msgspec.to_builtins(entry)) + "\n" for entry in differences)
    (folder / KEPT_FILE).write_text("".join(lines), encoding="utf-8", newline="\n")


def read_kept_fields(folder: Path) -> list[KeptFields]:
    """Return the saved fields of an imported run.

    Other runs have none. Raises a DataError that names a damaged line.
    """
    path = folder / KEPT_FILE
    if not path.is_file():
        return []
    differences = []
    what, remedy = "is not a saved field of a released run", "import again"
    lines = read_json_lines(
        path, MAX_LINE, lambda line: msgspec.convert(json.loads(line), KeptFields), what=what, remedy=remedy
    )
    for number, entry in lines:
        if entry.file in SCHEMAS:
            check_record(entry.values, SCHEMAS[entry.file], f"{path}: line {number}: {entry.file}")
        differences.append(entry)
    return differences


_MEAN = "mean_geval_"


def summary_text(task: str, metrics: JsonObject, directory: str, *, total_tokens: int) -> str:
    """Return the content of `summary.txt`, which shows the scores of `metrics.json` as text, without a line end.

    The template is `templates/summary.txt`. For the task referring, the release also adds random best and worst
    answers, drawn without a seed. They are left out.

    Args:
        task: the task's name in the release.
        metrics: the content of `metrics.json`.
        directory: the run's folder as shown in the text.
        total_tokens: sum over the records. It is shown if any record reports usage.
    """
    texts = Environment(  # noqa: S701  (plain text: nothing is to be escaped)
        loader=PackageLoader(__package__), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    texts.filters |= {"share": _fraction, "duration": _duration}
    values = {"prefix": DIRECTORY, "directory": directory, "task": task, "m": metrics, "total_tokens": total_tokens}
    criteria = [key.removeprefix(_MEAN) for key in metrics if key.startswith(_MEAN) and key != f"{_MEAN}score"]
    return texts.get_template("summary.txt").render(values, criteria=criteria).rstrip("\n")


def _duration(milliseconds: float | None) -> str:
    """Return a time in the release's format.

    >>> _duration(1234.0), _duration(11.6), _duration(None)
    ('1.23s', '12ms', 'N/A')
    """
    if milliseconds is None:
        return "N/A"
    return f"{milliseconds / 1000:.2f}s" if milliseconds >= 1000 else f"{milliseconds:.0f}ms"


def _fraction(value: float | None) -> str:
    return "N/A" if value is None else f"{value:.4f}"
