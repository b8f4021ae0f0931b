"""One kitchen asked in five benchmarks: datasets, and runs of models that err where a test says."""

import json
import random
from collections.abc import Callable, Set
from pathlib import Path

import pytest

from barista_bench.benchmarks import get_task
from barista_bench.core.boxes import DEFAULT_BOX_FORMAT
from barista_bench.core.example import Example, content_seed, evidence_objects
from barista_bench.core.task import Task
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.generate.generator import generate
from barista_bench.mini import write_kitchen
from barista_bench.models.base import ScriptedModel
from barista_bench.runs.ask import runner
from barista_bench.runs.score.scoring import ScoredRun, score

TASKS = {
    "barista": ("grounding", "hand_object", "relations", "activity"),
    "handyvqa": ("parts", "objects"),
    "tog_bench": ("t_stvg",),
    "egocot": ("cot",),
    "vista": ("real_world",),
}
SAMPLING = {
    "grounding": {"fraction": 1.0, "frame_step": 10, "min_area": 20.0},
    "hand_object": {"fraction": 0.3},
    "relations": {"frame_step": 20},
    "activity": {"frames": 4},
}
OPTIONS = {"tog_bench": {"matcher": "exact"}, "vista": {"conversation": "single"}}
SPLIT = {"egocot": {"split": "dev"}}


def write_data(out: Path) -> None:
    """`kitchen`, and a dataset of each benchmark in `data/<name>`."""
    write_kitchen(out / "kitchen", videos=6, width=128, height=72, seconds=(6.0, 8.0), num_proc=1)
    siblings = [name for name in TASKS if name != "barista"]
    generate(out / "kitchen", out / "made", siblings, per_subtask=6)
    for name, tasks in TASKS.items():
        source = out / "kitchen" if name == "barista" else out / "made" / name
        settings = {"sampling": SAMPLING} if name == "barista" else {}
        configs = [*tasks, *(("graph_frames", "graph_instances") if name == "barista" else ())]
        build(source, out / "data" / name, benchmark=name, configs=configs, cache=False, **settings)


def run_model(folder: Path, out: Path, name: str, blind_to: Set[str] | None = None) -> list[ScoredRun]:
    """Runs of a model over all tasks: a model of the package, or one that is wrong only about some objects."""
    runs = []
    with pytest.MonkeyPatch.context() as patch:
        for benchmark, tasks in TASKS.items():
            data, options = folder / "data" / benchmark, OPTIONS.get(benchmark, {})
            known = {
                example.example_id: (task, example)
                for task in (get_task(benchmark, each, options=options) for each in tasks)
                for example in open_examples(data, benchmark, task.name).examples
            }
            if blind_to is not None:
                model = ScriptedModel(name, _answers(known, blind_to))
                patch.setattr(runner, "load_model", lambda *args, model=model, **kwargs: model)
            option_texts = [f"{key}={value}" for key, value in options.items()]
            where = out / name / benchmark
            runner.run(
                data,
                where,
                benchmark=benchmark,
                task=tasks,
                repetitions=1,
                model=name,
                option=option_texts,
                **SPLIT.get(benchmark, {}),
            )
            runs += [score(where / task) for task in tasks]
    return runs


def _answers(known: dict[str, tuple[Task, Example]], blind_to: Set[str]) -> Callable[[str, int], str]:
    def answer(request: str, seed: int) -> str:
        task, example = known[request]
        right = task.reference_answer(example, DEFAULT_BOX_FORMAT)
        if not blind_to & set(evidence_objects(example)):
            return right
        if task.name == "relations":
            marks = {item["mark"] for item in example.inputs["objects"] if item["object_id"] in blind_to}
            return json.dumps([r for r in json.loads(right) if not marks & {r["source_id"], r["target_id"]}])
        return _wrong_answer(task, example)

    return answer


def _wrong_answer(task: Task, example: Example) -> str:
    """The first of many random answers that fails."""
    rng = random.Random(content_seed(example.example_id))
    for _ in range(100):
        text = task.random_answer(example, rng, DEFAULT_BOX_FORMAT)
        prediction = task.parse(text, example.inputs, DEFAULT_BOX_FORMAT)
        if task.failures(example, prediction if hasattr(prediction, "value") else None):
            return text
    raise AssertionError(f"{example.example_id}: no random answer is wrong")
