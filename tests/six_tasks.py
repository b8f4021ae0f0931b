"""One dataset of BARISTA's tasks and one folder of runs over it, each made once a session, for every test that needs
several tasks or several models."""

import random
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pytest

from barista_bench.benchmarks import get_task, task_names
from barista_bench.core.example import Example, content_seed
from barista_bench.core.task import Task
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.models.base import ScriptedModel
from barista_bench.runs import data_location
from barista_bench.runs.ask import opening, runner
from barista_bench.runs.score import scoring
from barista_bench.runs.score.scoring import ScoredRun
from tests.releases import CUP, MACHINE, document, relation, span, write_release

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


class Runs(dict[tuple[str, str], ScoredRun]):
    """Scored runs by model and task, each scored when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def __missing__(self, key: tuple[str, str]) -> ScoredRun:
        model, task = key
        self[key] = scoring.score(self._folder / model / task)
        return self[key]


def write_videos(root: Path, rounds: int = 3) -> None:
    """Videos of 40 frames, `rounds` of each preparation."""
    for index, preparation in enumerate(("capsule", "portafilter", "fully automatic") * rounds):
        content = document(preparation)
        content["relations"][1] = relation(CUP, MACHINE, "position", "under", (9, 40))
        content["attributes"][2]["image_ranges"] = [span(10, 30)]
        content["activities"] = [
            {"image_range": span(10 * at, 10 * at + 10), "activity_class_id": f"a-{name}", "display_name": name}
            for at, name in enumerate(ACTIVITIES)
        ]
        write_release(root, f"v{index}", content)


SPOKEN = {
    "qwen-good": ("qwen-good", "long"),
    "gpt-bad": ("gpt-bad", "short"),
    "ra": ("student", "long"),
    "rb": ("student", "short"),
}
"""Folders of runs for judges: the model, and the first word of its answers, by which a judge of the tests grades."""


def build_tasks(release: Path, out: Path, **settings: object) -> None:
    build(release, out, **{"configs": list(TASKS), "sampling": SAMPLING, "cache": False, **settings})


def run_models(data: Path, out: Path) -> None:
    """`out/<model>/<task>`: three runs of every task by models of three skills, and by the real `chance` and `oracle`.

    And one run of a few questions of temporal VQA in each of `SPOKEN`.
    """
    known = _all_examples(data)
    with pytest.MonkeyPatch.context() as patch:
        opened = lru_cache(open_examples)  # each of the six sets is opened once for all runs
        patch.setattr(opening, "open_examples", opened)
        patch.setattr(data_location, "open_examples", opened)
        for name in ("chance", "oracle"):
            runner.run(data, out / name, task=TASKS, repetitions=3, model=name)
        for name, skill in SKILLS.items():
            model = ScriptedModel(name, _answers(known, skill))
            patch.setattr(runner, "load_model", lambda *args, model=model, **kwargs: model)
            runner.run(data, out / name, task=TASKS, repetitions=3, model=name)
        for folder, (name, word) in SPOKEN.items():
            model = ScriptedModel(name, lambda request, seed, word=word: f"Answer: {word} {request}")
            patch.setattr(runner, "load_model", lambda *args, model=model, **kwargs: model)
            runner.run(data, out / folder, task=("temporal_vqa",), repetitions=1, limit=12, model=name)


_Known = dict[str, tuple[Task, Example]]


def _all_examples(data: Path) -> _Known:
    tasks = [get_task("barista", name) for name in TASKS]
    return {e.example_id: (task, e) for task in tasks for e in open_examples(data, "barista", task.name).examples}


def _answers(known: _Known, skill: float) -> Callable[[str, int], str]:
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
