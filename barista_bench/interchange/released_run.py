"""Read released run folders, and check that each folder holds one run of one model and task."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from barista_bench.benchmarks import task_class
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example
from barista_bench.data.frozen import content_hash, read_frozen, refuse_lines
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.reading import bounded_lines, read_bounded_json, read_bounded_text, read_json_lines
from barista_bench.files.text_out import check_address, check_variable_name, refuse_credentials
from barista_bench.interchange import released_folder
from barista_bench.interchange.released_folder import JsonObject, ReleasedPrediction

MAX_FILE = 2**24
"""Maximum bytes of each small file next to the JSONL files."""

_GENERATION = {"temperature": "temperature", "max_output_tokens": "max_new_tokens", "thinking_level": "thinking_level"}
"""Maps generation settings of `run_config.json` to our names."""


@dataclass(frozen=True, slots=True)
class ReleasedRun:
    """One released run folder.

    Args:
        examples: examples of the frozen file, in its order, with their `content_hash`.
        predictions: records in the order of the file and of `original`.
        generation: generation settings of the run, by our names.
        boxes: the box format from the settings, or None if not set.
        judge: the judge that gave the scores in the records, if any.
        original: the complete content of the folder.
    """

    folder: Path
    examples: tuple[Example, ...]
    content_hash: str
    predictions: tuple[ReleasedPrediction, ...]
    generation: dict[str, Any]
    boxes: BoxFormat | None
    judge: str
    original: released_folder.ReleasedFolder

    @property
    def model(self) -> str:
        return self.predictions[0].model

    @property
    def provider(self) -> str | None:
        return self.predictions[0].provider


def read_released_run(
    folder: Path, examples: str | Path | None, root: str | Path | None, benchmark: str
) -> ReleasedRun:
    """Read and check one folder.

    `examples` is the frozen file if it lies elsewhere. `root` is used as in `read_frozen`.

    Raises:
        DataError: a file is missing or damaged. Or a record is repeated, belongs to no example, or belongs to another
            task or model. The message names every affected line.
    """
    frozen = Path(examples) if examples is not None else folder / released_folder.EXAMPLES
    for path in (folder / released_folder.PREDICTIONS, frozen):
        if not path.is_file():
            raise DataError(
                f"{path}: missing. Fix: name a run folder of the released harness, and its frozen file with "
                "--examples if it lies elsewhere"
            )
    frozen_examples = tuple(read_frozen(frozen, benchmark, root=root))
    records = _read_predictions(
        folder / released_folder.PREDICTIONS, {example.example_id for example in frozen_examples}
    )
    if not frozen_examples or not records:
        empty = folder / released_folder.PREDICTIONS if frozen_examples else frozen
        raise DataError(f"{empty}: is empty. Fix: name a run that answered something")
    first_prediction = records[0][1]
    task = task_class(benchmark, first_prediction.task_name)
    if task.name != frozen_examples[0].task:
        raise DataError(
            f"{folder}: answers {task.name}, its examples are of {frozen_examples[0].task}. Fix: give the right ones"
        )
    config_file, metrics_file = folder / released_folder.CONFIG, folder / released_folder.METRICS
    config, metrics = _read_config(config_file), _read_object(metrics_file)
    params = released_folder.check_record(config or {}, released_folder.ReleasedConfig, config_file).task_params
    released_folder.check_record(metrics or {}, released_folder.RunnerMetrics, metrics_file)
    original = released_folder.ReleasedFolder(
        config=config,
        examples=_released_lines(frozen),
        examples_source=_read_text(folder / released_folder.EXAMPLES_SOURCE),
        predictions=tuple(record for record, _ in records),
        metrics=metrics,
        summary=_read_text(folder / released_folder.SUMMARY),
    )
    model = (config or {}).get("model") or {}
    return ReleasedRun(
        folder=folder,
        examples=frozen_examples,
        content_hash=content_hash(frozen_examples),
        predictions=tuple(prediction for _, prediction in records),
        generation={ours: model[name] for name, ours in _GENERATION.items() if model.get(name) is not None},
        boxes=BoxFormat(params.bbox_format, params.bbox_scale) if params else None,
        judge=(params and params.judge_model) or first_prediction.model,
        original=original,
    )


def _read_predictions(path: Path, example_ids: set[str]) -> list[tuple[JsonObject, ReleasedPrediction]]:
    """Return every record in its original form and in its checked form."""
    problems: dict[str, list[int]] = defaultdict(list)
    seen_ids: set[str] = set()
    records: list[tuple[JsonObject, ReleasedPrediction]] = []
    try:
        for number, line in bounded_lines(path, released_folder.MAX_LINE):
            try:
                # Do not use msgspec's decoder, since it refuses lone surrogates and models write them.
                record = json.loads(line)
                prediction = msgspec.convert(record, ReleasedPrediction)
            except (ValueError, RecursionError) as error:
                problems[f"no prediction ({error}). Fix: correct it"].append(number)
                continue
            first_prediction = records[0][1] if records else prediction
            for problem in _problems(prediction, first_prediction, seen_ids, example_ids):
                problems[f"{problem}. Fix: import one run of one model and task, as it was written"].append(number)
            seen_ids.add(prediction.example_id)
            records.append((record, prediction))
    except OSError as error:
        raise DataError(f"{path}: no predictions ({error.strerror}). Fix: correct the file") from error
    refuse_lines(path, problems)
    return records


def _problems(
    prediction: ReleasedPrediction, first: ReleasedPrediction, seen_ids: set[str], example_ids: set[str]
) -> Iterator[str]:
    """Yield the faults of a record. `first` is the first record, and `seen_ids` holds the example ids so far."""
    if prediction.example_id in seen_ids:
        yield "example_id repeats"
    if prediction.example_id not in example_ids:
        yield "example_id is not one of the examples'"
    for name in ("task_name", "model", "provider"):
        if getattr(prediction, name) != getattr(first, name):
            yield f"{name} is {getattr(prediction, name)!r:.80}, that of the first line {getattr(first, name)!r:.80}"
    known_errors = (released_folder.PROVIDER_ERROR, released_folder.PARSE_ERROR)
    if prediction.error is not None and not prediction.error.startswith(known_errors):
        yield "error is neither provider_error nor parse_error"
    for key, value in (prediction.task_result or {}).items():
        if not key.startswith(released_folder.SCORE_PREFIX):
            continue
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if key.endswith("_score") and value is not None and not (is_number and 0 <= value <= 1):
            yield f"task_result.{key:.80} is neither null nor 0 to 1"
        if key.endswith("_reason") and not isinstance(value, str):
            yield f"task_result.{key:.80} is not text"


def _released_lines(path: Path) -> tuple[JsonObject, ...]:
    """Return the lines of a frozen file in the released layout. Empty for our layout, whose `task_data` differs."""
    lines = read_json_lines(path, released_folder.MAX_LINE, json.loads, what="no frozen example", remedy="freeze again")
    return tuple(record for _, record in lines if not {"inputs", "target"} <= set(record["task_data"]))


def _read_text(path: Path) -> str | None:
    return read_bounded_text(path, MAX_FILE, remedy="correct or remove it") if path.is_file() else None


def _read_object(path: Path) -> JsonObject | None:
    if not path.is_file():
        return None
    value = read_bounded_json(path, MAX_FILE, remedy="correct or remove it")
    if not isinstance(value, dict):
        raise DataError(f"{path}: is not an object. Fix: correct or remove it")
    return value


def _read_config(path: Path) -> JsonObject | None:
    """Read the settings that the release knows. Other settings, and values that look like secrets, are left out."""
    settings = _read_object(path)
    if settings is None:
        return None
    public_settings = {name: settings[name] for name in released_folder.CONFIG_KEYS if name in settings}
    if isinstance(model := public_settings.get("model"), dict):
        names = [name for name in released_folder.MODEL_KEYS if name in model]
        public_settings["model"] = {name: model[name] for name in names if _is_public(name, model[name])}
    return public_settings


def _is_public(name: str, value: object) -> bool:
    try:
        if name == "api_key_env" and isinstance(value, str):
            check_variable_name(name, value)
        if name == "base_url" and isinstance(value, str):
            check_address(name, value)
        refuse_credentials(name, value)
    except ConfigError:
        return False
    return True


_SHARED_FACTS: dict[str, Callable[[ReleasedRun], object]] = {
    "examples": lambda run: run.content_hash,
    "model": lambda run: run.model,
    "provider": lambda run: run.provider,
    "generation settings": lambda run: run.generation,
    "box format": lambda run: run.boxes,
    "judge": lambda run: run.judge,
}


def check_same(first: ReleasedRun, other: ReleasedRun) -> None:
    """Raise ConfigError if two folders are not repetitions of one run."""
    for name, fact_of in _SHARED_FACTS.items():
        if fact_of(first) != fact_of(other):
            raise ConfigError(
                f"{other.folder}: has {name} {fact_of(other)!r}, {first.folder} has {fact_of(first)!r}. "
                "Fix: import them one by one"
            )
