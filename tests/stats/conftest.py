"""One dataset of all six tasks, and runs of four models of different skill over it, made once by the real runner."""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest

from barista_bench.benchmarks import get_task, task_names
from barista_bench.core.example import content_seed
from barista_bench.core.task import Example, Task
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.models.base import ScriptedModel
from barista_bench.runs import run_folder
from barista_bench.runs.ask import opening, runner
from barista_bench.runs.score import scoring
from barista_bench.runs.score.scoring import ScoredRun
from tests.conftest import MadeOnce
from tests.releases import CUP, MACHINE, document, relation, span, write_release

Runs = dict[tuple[str, str], ScoredRun]
"""By model and task."""
TASKS = task_names("barista")
SKILLS = {"strong": 0.9, "fair": 0.6, "weak": 0.3}
"""How often a model tells the reference; else it answers as `chance` does."""
ACTIVITIES = ("Place cup", "Press button", "Remove cup", "Place pod")
SAMPLING = {
    "grounding": {"fraction": 1.0, "frame_step": 8},
    "hand_object": {"frame_step": 8},
    "relations": {"frame_step": 8},
    "referring": {"frame_step": 8, "per_frame": 2},
    "activity": {"frames": 4},
    "temporal_vqa": {"frames": 6, "spacing": 4},
}


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine videos of 40 frames, three of each preparation."""
    root = tmp_path_factory.mktemp("analysis_release")
    for index, preparation in enumerate(("capsule", "portafilter", "fully automatic") * 3):
        content = document(preparation)
        content["relations"][1] = relation(CUP, MACHINE, "position", "under", (9, 40))
        content["attributes"][2]["image_ranges"] = [span(10, 30)]
        content["activities"] = [
            {"image_range": span(10 * at, 10 * at + 10), "activity_class_id": f"a-{name}", "display_name": name}
            for at, name in enumerate(ACTIVITIES)
        ]
        write_release(root, f"v{index}", content)
    return root


@pytest.fixture(scope="session")
def six_tasks(release: Path, made_once: MadeOnce) -> Path:
    """All tasks over the release."""
    settings = {"configs": list(TASKS), "sampling": SAMPLING, "cache": False}
    return made_once("analysis/barista", lambda out: build(release, out, **settings))


Known = dict[str, tuple[Task, Example]]


def all_examples(data: Path) -> Known:
    tasks = [get_task("barista", name) for name in TASKS]
    return {e.example_id: (task, e) for task in tasks for e in open_examples(data, "barista", task.name).examples}


def answers(known: Known, skill: float) -> Callable[[str, int], str]:
    def answer(request: str, seed: int) -> str:
        task, example = known[request]
        box_format = ScriptedModel("", answer).box_format
        rng = random.Random(content_seed(request, seed))
        if rng.random() < 0.05:
            return "" if rng.random() < 0.5 else "I cannot see that."
        if rng.random() < skill:
            return task.reference_answer(example, box_format)
        return task.random_answer(example, rng, box_format)

    return answer


def renamed(run: ScoredRun, name: str) -> ScoredRun:
    """The run as of another model."""
    model = run.results.model.model_copy(update={"name": name})
    return replace(run, results=run.results.model_copy(update={"model": model}))


@pytest.fixture(scope="session")
def scored(six_tasks: Path, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """(model, task) -> three scored runs, for `strong`, `fair`, `weak` and the real `chance` and `oracle`."""
    out = tmp_path_factory.mktemp("analysis_runs")
    known, models = all_examples(six_tasks), (*SKILLS, "chance", "oracle")
    with pytest.MonkeyPatch.context() as patch:
        opened = lru_cache(open_examples)  # each of the six sets is opened once for all runs
        patch.setattr(opening, "open_examples", opened)
        patch.setattr(run_folder, "open_examples", opened)
        for name in models:
            with patch.context() as inner:
                if name in SKILLS:
                    model = ScriptedModel(name, answers(known, SKILLS[name]))
                    inner.setattr(runner, "load_model", lambda *args, model=model, **kwargs: model)
                runner.run(six_tasks, out / name, task=TASKS, runs=3, model=name)
        return {(model, task): scoring.score(out / model / task) for model in models for task in TASKS}


@pytest.fixture
def runs_of(scored: Runs) -> Callable[..., list[ScoredRun]]:
    """Runs by model or task, in the order of the fixture."""

    def chosen(*, models: tuple[str, ...] = tuple(SKILLS), tasks: tuple[str, ...] = TASKS) -> list[ScoredRun]:
        return [scored[model, task] for model in models for task in tasks]

    return chosen
