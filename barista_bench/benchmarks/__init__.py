"""Benchmarks: one folder each, one file a task. `get_task` finds a task by benchmark and name."""

from __future__ import annotations

from barista_bench.benchmarks.barista import TASKS as BARISTA_TASKS
from barista_bench.errors import ConfigError
from barista_bench.prompt_sets import PromptTexts
from barista_bench.task import Task

BENCHMARKS: dict[str, tuple[type[Task], ...]] = {"barista": BARISTA_TASKS}


def get_task(benchmark: str, name: str, prompts: PromptTexts | None = None) -> Task:
    """The task called `name`, by its own name or by its name in frozen files; `prompts` replaces our wording.

    Raises:
        ConfigError: there is none.
    """
    tasks = BENCHMARKS.get(benchmark, ())
    for task in tasks:
        if name in (task.name, task.upstream_name):
            return task(prompts)
    known = [f"{b}/{t.name}" for b, ts in BENCHMARKS.items() for t in ts]
    raise ConfigError(f"no task {benchmark}/{name}. Remedy: use one of {', '.join(known)}")
