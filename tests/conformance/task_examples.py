"""A handful of examples of every task, made from the small mini kitchen."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

from barista_bench.benchmarks import BENCHMARKS
from barista_bench.core.deriving import GraphTask, ReleaseTask
from barista_bench.core.example import Example
from barista_bench.core.task import Task
from barista_bench.testing.laws import choices_of_rules
from tests.graph_examples import graph_examples, opened

TASKS: tuple[type[Task], ...] = tuple(task for name in BENCHMARKS for task in BENCHMARKS[name].tasks)
MOST = 6
"""Examples of a task and protocol."""
SMALL: Mapping[str, Mapping[str, object]] = {
    "grounding": {"min_area": 20.0, "fraction": 0.2},
    "hand_object": {"fraction": 0.2},
    "referring": {"frame_step": 10},
    "relations": {"frame_step": 20},
    "temporal_vqa": {"spacing": 8},
    "mask_tracking": {"frames": 3, "per_frame": 2},
}
"""Sampling that suits videos of seven seconds."""


def options_of(task: type[Task]) -> dict[str, object]:
    """Names are compared without a model, which tests do not have."""
    return {"matcher": "exact"} if "matcher" in task.options else {}


class Releases:
    """The sources of each benchmark's examples."""

    def __init__(self, source_of: Callable[[str], Path]) -> None:
        self._source_of = source_of
        self._made: dict[type[Task], list[Example]] = {}

    def root(self, task: type[Task]) -> Path:
        return self._source_of(task.benchmark)

    def examples(self, kind: type[Task]) -> list[Example]:
        """Examples of a task, from both protocols where they freeze different ones; made once."""
        if kind not in self._made:
            first, *others = (kind(options=rules) for rules in choices_of_rules(kind))
            tasks = [first, *(task for task in others if task.example_options)]
            self._made[kind] = [example for task in tasks for example in self._examples(task)]
        return self._made[kind]

    def _examples(self, task: Task) -> list[Example]:
        sampling = task.sampling.with_overrides({"limit": MOST, **SMALL.get(task.name, {})})
        if isinstance(task, GraphTask):
            items = graph_examples(task, opened(self.root(type(task))), sampling)
        else:
            assert isinstance(task, ReleaseTask)
            open_release = BENCHMARKS[task.benchmark].open_release
            assert open_release is not None
            items = task.examples(open_release(self.root(type(task)), None), sampling)
        return sampling.sample([task.stamp(item) for item in items if isinstance(item, Example)])

    def sha256(self, task: type[Task]) -> str:
        """The SHA-256 of the annotations, which are the files that are text."""
        digest = hashlib.sha256()
        for path in sorted(self.root(task).rglob("*")):
            if path.suffix in (".json", ".jsonl", ".csv", ".txt"):
                digest.update(f"{path.relative_to(self.root(task)).as_posix()}\n".encode() + path.read_bytes())
        return digest.hexdigest()
