"""A run in a separate process, slow enough to be killed anywhere."""

import os
import time
from pathlib import Path

import datasets  # noqa: F401  (imported here, it is imported once, by the server that tests fork from)

from barista_bench.models import Model
from barista_bench.models.base import ScriptedModel
from barista_bench.runs.ask import catalog, runner
from barista_bench.runs.ask.catalog import TaskExamples
from barista_bench.runs.ask.config import ModelSettings
from tests.one_run import run


def slow_run(
    dataset: Path, out: Path, asked: Path, pause: float, batch_size: int, workers: int, rank: int, world: int
) -> None:
    """Run `chance` with a pause before each answer, and append each request to `<asked>-<rank>`."""
    if world > 1:
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(world))

    def slow_model(settings: ModelSettings, tasks: TaskExamples) -> Model:
        chance = catalog.load_model(settings, tasks)
        assert isinstance(chance, ScriptedModel)

        def answer(example_id: str, seed: int) -> str:
            time.sleep(pause)
            with Path(f"{asked}-{rank}").open("a", encoding="utf-8") as file:
                file.write(f"{example_id} {seed}\n")
            return chance._answer(example_id, seed)

        return ScriptedModel("chance", answer, batch_size=batch_size)

    runner.load_model = slow_model
    run(dataset, out, task="relations", model="chance", workers=workers)
