"""Runs of scripted models over the small datasets of BARISTA's tasks, in small blocks."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from barista_bench.benchmarks import get_task
from barista_bench.core.example import content_seed
from barista_bench.data.dataset import open_examples
from barista_bench.models.base import ScriptedModel
from barista_bench.runs.ask import runner
from barista_bench.runs.decide import order
from barista_bench.runs.log.sessions import Session

TASK = "referring"


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "BLOCK", 8)


def skilled(data: Path, skill: float, name: str, task_name: str = TASK) -> ScriptedModel:
    """A model that gives the reference to this share of the examples, and nothing of it to the others."""
    task = get_task("barista", task_name)
    by_id = {example.example_id: example for example in open_examples(data, "barista", task_name).examples}

    def answer(request: str, seed: int) -> str:
        example, rng = by_id[request], random.Random(content_seed(name, request, seed))
        box_format = ScriptedModel(name, answer).box_format
        right = rng.random() < skill
        return task.reference_answer(example, box_format) if right else task.random_answer(example, rng, box_format)

    return ScriptedModel(name, answer)


Asks = Callable[..., Session]


@pytest.fixture
def asks(six_tasks: Path, monkeypatch: pytest.MonkeyPatch) -> Asks:
    """Runs a model on a task; `out` is the parent of the run folder."""

    def ask(out: Path, model: ScriptedModel, **settings: object) -> Session:
        monkeypatch.setattr(runner, "load_model", lambda *args, **kwargs: model)
        name = model.identity.name
        return runner.run(six_tasks, out, **{"task": (TASK,), "repetitions": 1, "model": name, **settings})

    return ask


@pytest.fixture
def weak(six_tasks: Path, asks: Asks, tmp_path: Path) -> Path:
    """The folder of a complete run by a weak model."""
    asks(tmp_path / "weak", skilled(six_tasks, 0.3, "weak"))
    return tmp_path / "weak"
