"""Run folders as the released harness leaves them, of examples and answers that tests make."""

import json
from pathlib import Path
from typing import Any

from barista_bench.benchmarks import get_task
from barista_bench.benchmarks.barista.released_sets import released_record
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example
from barista_bench.data.frozen import read_frozen
from tests.data.released_files import UPSTREAM_NAMES, write_records

GEMINI, QWEN = BoxFormat("yxyx", 1000), BoxFormat("xyxy", 1000)


def ours(folder: Path, name: str) -> list[Example]:
    """The examples of a built folder."""
    return list(read_frozen(folder / f"frozen/{name}.jsonl"))


def prediction(example: Example, text: str | None, **changes: Any) -> dict[str, Any]:
    """A record without result, as older folders have them."""
    line: Any = released_record(example)
    return {
        "example_id": example.example_id,
        "task_name": UPSTREAM_NAMES[example.task],
        "model": "gemini-3-flash",
        "provider": "gemini",
        "raw_text": text,
        "error": None,
        "latency_ms": 1500.0,
        "usage": {"input_tokens": 1000, "output_tokens": 20, "thinking_tokens": 5, "total_tokens": 1025},
        "metadata": line["metadata"],
        "task_result": None,
        "label": line["label"],
        "finish_reason": "STOP",
        "provider_response_id": "abc",
        "prompt_text": "asked in their words",
        **changes,
    }


def right(example: Example, box_format: BoxFormat = GEMINI, **changes: Any) -> dict[str, Any]:
    return prediction(example, get_task("barista", example.task).reference_answer(example, box_format), **changes)


def run_folder(path: Path, examples: list[Example], predictions: list[dict[str, Any]]) -> Path:
    """The two files that no import can do without, and settings."""
    path.mkdir(parents=True)
    write_records(path / "benchmark_examples.jsonl", [released_record(example, "what?") for example in examples])
    write_records(path / "predictions.jsonl", predictions)
    settings = {"model": {"temperature": 0.7, "max_output_tokens": 4096}, "api_key": "never kept"}
    (path / "run_config.json").write_text(json.dumps(settings))
    return path


def answered(path: Path, folder: Path, name: str, *args: Any, **changes: Any) -> Path:
    """A run folder of all examples of a built folder's task with right answers; other fields come from `right`."""
    examples = ours(folder, name)
    return run_folder(path, examples, [right(example, *args, **changes) for example in examples])
