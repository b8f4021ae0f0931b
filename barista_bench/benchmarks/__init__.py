"""Benchmarks: one folder each, one file a task. `get_task` finds a task by benchmark and name."""

from __future__ import annotations

from collections.abc import Callable

from barista_bench.benchmarks.barista import TASKS as BARISTA_TASKS
from barista_bench.benchmarks.barista.released_tasks import import_example as import_barista
from barista_bench.benchmarks.released import ReleasedExample, ReleaseRoot
from barista_bench.errors import ConfigError
from barista_bench.prompt_sets import PromptTexts
from barista_bench.task import Example, ProtocolName, Task

BENCHMARKS: dict[str, tuple[type[Task], ...]] = {"barista": BARISTA_TASKS}
IMPORTERS: dict[str, Callable[[type[Task], ReleasedExample, ReleaseRoot], Example]] = {"barista": import_barista}
"""What reads the frozen examples that a benchmark's own release writes."""


def get_task(
    benchmark: str, name: str, prompts: PromptTexts | None = None, *, protocol: ProtocolName = "release"
) -> Task:
    """The task called `name`, by its own name or by its name in frozen files.

    Args:
        benchmark: whose task it is.
        name: e.g. `relations` or `relation_extraction`.
        prompts: replaces our wording.
        protocol: whose rules hold where the release and the paper differ.

    Raises:
        ConfigError: there is none, or there is no such protocol.
    """
    return task_class(benchmark, name)(prompts, protocol=protocol)


def task_class(benchmark: str, name: str) -> type[Task]:
    """As `get_task`, without reading any prompts."""
    tasks = BENCHMARKS.get(benchmark, ())
    for task in tasks:
        if name in (task.name, task.upstream_name):
            return task
    known = [f"{b}/{t.name}" for b, ts in BENCHMARKS.items() for t in ts]
    raise ConfigError(f"no task {benchmark}/{name}. Remedy: use one of {', '.join(known)}")


def task_names(benchmark: str) -> tuple[str, ...]:
    """The tasks of a benchmark, in the order of its paper.

    Raises:
        ConfigError: there is no such benchmark.
    """
    if benchmark not in BENCHMARKS:
        raise ConfigError(f"no benchmark {benchmark!r}. Remedy: use one of {', '.join(BENCHMARKS)}")
    return tuple(task.name for task in BENCHMARKS[benchmark])
