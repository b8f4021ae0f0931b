"""Run folders of the released harness (upstream.md 1.3): `predictions.jsonl`, the examples, and what was set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from barista_bench.benchmarks import task_class
from barista_bench.bounded_files import read_bounded_json, read_json_lines
from barista_bench.builders.frozen import content_hash, read_frozen
from barista_bench.errors import ConfigError, DataError
from barista_bench.task import Example

PREDICTIONS, EXAMPLES, SETTINGS = "predictions.jsonl", "benchmark_examples.jsonl", "run_config.json"
PROVIDER_ERROR, PARSE_ERROR = "provider_error:", "parse_error:"
"""How the `error` of a record begins."""
MAX_LINE = 64 * 2**20
"""Bytes of one line; a longer one is refused."""
MAX_SETTINGS = 2**24
"""Bytes of `run_config.json`."""

_MAX_NUMBER = 2**53
_GENERATION = {"temperature": "temperature", "max_output_tokens": "max_new_tokens", "thinking_level": "thinking_level"}
"""Settings of `run_config.json` that are kept, and what they are called here."""


class Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    thinking_tokens: int | None = None


class Predicted(msgspec.Struct):
    """A line of `predictions.jsonl`: the fields that are used."""

    example_id: str
    task_name: str
    model: str
    provider: str | None = None
    raw_text: str | None = None
    error: str | None = None
    latency_ms: float | None = None
    usage: Usage | None = None
    finish_reason: str | None = None
    prompt_text: str | None = None


_DECODER = msgspec.json.Decoder(Predicted)


@dataclass(frozen=True, slots=True)
class Source:
    """One folder of the released harness. `content_hash` is that of its examples."""

    folder: Path
    examples: tuple[Example, ...]
    content_hash: str
    predicted: tuple[Predicted, ...]
    generation: dict[str, Any]

    @property
    def model(self) -> str:
        return self.predicted[0].model

    @property
    def provider(self) -> str | None:
        return self.predicted[0].provider


def read_source(folder: Path, examples: str | Path | None, root: str | Path | None, benchmark: str) -> Source:
    """Read and check one folder; `examples` is the frozen file where it lies elsewhere, `root` as in `read_frozen`.

    Raises:
        DataError: a file is missing or damaged, a record is of no example, repeats, or is of another task or model.
    """
    frozen = Path(examples) if examples is not None else folder / EXAMPLES
    for path in (folder / PREDICTIONS, frozen):
        if not path.is_file():
            raise DataError(
                f"{path}: missing. Remedy: name a run folder of the released harness, and its frozen file with "
                "--examples if it lies elsewhere"
            )
    found = tuple(read_frozen(frozen, benchmark, root=root))
    predicted = tuple(_predictions(folder / PREDICTIONS, {example.example_id for example in found}))
    if not found or not predicted:
        empty = folder / PREDICTIONS if found else frozen
        raise DataError(f"{empty}: is empty. Remedy: name a run that answered something")
    task = task_class(benchmark, predicted[0].task_name)
    if task.name != found[0].task:
        raise DataError(
            f"{folder}: answers {task.name}, its examples are of {found[0].task}. Remedy: give the right ones"
        )
    return Source(folder, found, content_hash(found), predicted, _generation(folder / SETTINGS))


def _predictions(path: Path, known: set[str]) -> Iterator[Predicted]:
    seen: set[str] = set()
    first: Predicted | None = None
    for number, one in read_json_lines(
        path, MAX_LINE, _DECODER.decode, what="no prediction", remedy="correct the line"
    ):
        first = first or one
        problem = _problem(one, first, seen, known)
        if problem:
            raise DataError(f"{path}: line {number}: {problem}. Remedy: import one run of one model and task")
        seen.add(one.example_id)
        yield one


def _problem(one: Predicted, first: Predicted, seen: set[str], known: set[str]) -> str:
    """What makes a record unfit to stand beside the others; empty where nothing does."""
    if one.example_id in seen:
        return f"{one.example_id!r} repeats"
    if one.example_id not in known:
        return f"{one.example_id!r} is none of the examples"
    for name in ("task_name", "model", "provider"):
        if getattr(one, name) != getattr(first, name):
            return f"{name} is {getattr(one, name)!r}, that of the first line {getattr(first, name)!r}"
    if one.error is not None and not one.error.startswith((PROVIDER_ERROR, PARSE_ERROR)):
        return f"error is {one.error[:80]!r}, neither provider_error nor parse_error"
    return ""


def _generation(path: Path) -> dict[str, Any]:
    """What `run_config.json` says of generation, at its top or one level below; empty without the file."""
    if not path.is_file():
        return {}
    settings = read_bounded_json(path, MAX_SETTINGS, remedy="correct or remove it")
    levels = [settings, *settings.values()] if isinstance(settings, dict) else []
    found: dict[str, Any] = {}
    for level in (level for level in levels if isinstance(level, dict)):
        for name, ours in _GENERATION.items():
            value = level.get(name)
            if isinstance(value, str | int | float) and value is not True and value is not False:
                if not isinstance(value, str) and not abs(value) <= _MAX_NUMBER:
                    raise DataError(f"{path}: {name} is no usual number. Remedy: correct or remove it")
                found.setdefault(ours, value)
    return found


def check_same(first: Source, other: Source) -> None:
    """Raise ConfigError where two folders are not repetitions of one run."""
    for what in ("content_hash", "model", "provider", "generation"):
        one, two = getattr(first, what), getattr(other, what)
        if one != two:
            raise ConfigError(
                f"{other.folder}: has {what} {two!r}, {first.folder} has {one!r}. Remedy: import them one by one"
            )
