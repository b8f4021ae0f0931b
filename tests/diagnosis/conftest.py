"""A small kitchen's dataset with its graph, and the aids of its tasks."""

from collections.abc import Callable
from pathlib import Path

import pytest

from barista_bench.aids.texts import AidBook
from barista_bench.benchmarks import BENCHMARKS, get_task
from barista_bench.core.example import Example
from barista_bench.core.task import Task
from barista_bench.data.dataset import open_examples
from tests.conftest import MadeOnce

AIDED_TASKS = [task for benchmark in BENCHMARKS.values() for task in benchmark.tasks if hasattr(task, "aids")]
TASKS = [task.name for task in AIDED_TASKS if task.benchmark == "barista"]
SAMPLING = {
    "grounding": {"limit": 120},
    "hand_object": {"limit": 60},
    "relations": {"frame_step": 15},
    "referring": {"frame_step": 30},
    "temporal_vqa": {"spacing": 5, "seed": 1},
    "activity": {"frames": 4, "limit": 30},
}


@pytest.fixture(scope="session")
def kitchen_data(made_once: MadeOnce) -> Path:
    """Four videos of eight seconds, with graph tables."""
    from barista_bench.data.folder import build
    from barista_bench.mini import write_kitchen

    def make(root: Path) -> None:
        write_kitchen(root / "kitchen", videos=4, width=160, height=90, fps=15, seconds=(8.0, 9.0), num_proc=1)
        build(root / "kitchen", root / "data", frames="linked", sampling=SAMPLING, cache=False)

    return made_once("diagnosis/kitchen", make) / "data"


Aids = Callable[[str], tuple[Task, list[Example], AidBook]]


@pytest.fixture(scope="session")
def aids_of(kitchen_data: Path) -> Aids:
    """A task with its examples and their aids."""

    def opened(name: str) -> tuple[Task, list[Example], AidBook]:
        task, examples = get_task("barista", name), open_examples(kitchen_data, "barista", name)
        return task, list(examples.examples), AidBook.open(task, examples.examples, str(kitchen_data))

    return opened
