"""Runs of recorded answers, written by a function of the example."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from barista_bench.cli import commands as cli
from barista_bench.core.example import Example
from barista_bench.data.frozen import read_frozen
from tests.one_run import run


def recorded_run(
    data: Path, folder: Path, task: str, answer: Callable[[Example], str], *, repetitions: int = 1, **settings: Any
) -> Path:
    """Make a run folder of the answers to each example of a task of BARISTA."""
    rows: list[object] = [{"format": "barista_bench.predictions/1", "box_format": "xyxy/1000"}]
    for example in read_frozen(data / f"frozen/{task}.jsonl", "barista"):
        rows.append({"example_id": example.example_id, "answer": answer(example)})
    answers = folder.with_suffix(".jsonl")
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run(data, folder, task=task, model=f"predictions:{answers}", repetitions=repetitions, **settings)
    return folder


def barista(*words: object, code: int = 0) -> Result:
    """Run a command in this process."""
    done = CliRunner().invoke(cli.app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done
