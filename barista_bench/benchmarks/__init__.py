"""Benchmarks: one folder each, one class a task. `get_task` finds a task by benchmark and name."""

from __future__ import annotations

import difflib
from collections import UserDict
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import msgspec

from barista_bench.core.benchmark import Benchmark
from barista_bench.core.options import parse_pairs
from barista_bench.core.prompt import PromptTexts, load_prompts, named_domain, packaged_prompts, released_clone
from barista_bench.core.task import ProtocolName, ProtocolRule, Task
from barista_bench.errors import ConfigError
from barista_bench.files.bounded import load_yaml


class BenchmarkRegistry(UserDict[str, Any]):
    """Benchmarks by name; each is imported when it is asked for, from the folder of that name."""

    def __getitem__(self, name: str) -> Benchmark:
        if self.data[name] is None:
            self.data[name] = import_module(f"{__name__}.{name}").BENCHMARK
        return self.data[name]


BENCHMARKS = BenchmarkRegistry(dict.fromkeys(("barista", "vista", "handyvqa", "tog_bench", "egocot")))


def get_benchmark(name: str) -> Benchmark:
    """The benchmark called `name`.

    Raises:
        ConfigError: there is none.
    """
    if name not in BENCHMARKS:
        raise ConfigError(f"no benchmark {name!r}. Remedy: use one of {', '.join(BENCHMARKS)}")
    return BENCHMARKS[name]


def get_task(
    benchmark: str,
    name: str,
    prompts: PromptTexts | None = None,
    *,
    protocol: ProtocolName = "release",
    options: Mapping[str, object] | None = None,
) -> Task:
    """The task called `name`, by its own name or by its name in frozen files.

    Args:
        benchmark: whose task it is.
        name: e.g. `relations` or `relation_extraction`.
        prompts: replaces our wording.
        protocol: whose rules hold where the release and the paper differ.
        options: values of the task's options; the others keep their defaults.

    Raises:
        ConfigError: there is none, or there is no such protocol or option.
    """
    return task_class(benchmark, name)(prompts, protocol=protocol, options=options)


def read_wording(benchmark: str, task: str, setting: str | Path) -> PromptTexts:
    """The wording of a task that `--prompts` names: a file, a folder, `release:FOLDER`, a clone of its release, or
    `domain:FILE`, ours in the words of a domain file.

    Raises:
        ConfigError: it cannot be read, or the benchmark's release has none.
    """
    domain_file = named_domain(setting)
    if domain_file is not None:
        return packaged_prompts(task_class(benchmark, task).prompt_package, task, domain_file)
    clone = released_clone(setting)
    if clone is None:
        return load_prompts(setting, task)
    reader = get_benchmark(benchmark).released_prompts
    if reader is None:
        raise ConfigError(
            f"no wording can be read from a release of {benchmark}. Remedy: leave --prompts out, or give a file"
        )
    return reader(clone, task)


def task_class(benchmark: str, name: str) -> type[Task]:
    """As `get_task`, without reading any prompts."""
    task = get_benchmark(benchmark).task_called(name)
    if task is not None:
        return task
    known = task_names(benchmark)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}? There are" if near else "use one of"
    raise ConfigError(f"no task {name!r} of {benchmark}. Remedy: {hint} {', '.join(known)}")


def task_options(tasks: Sequence[type[Task]], pairs: Sequence[str]) -> list[dict[str, object]]:
    """The options given to each of some tasks, from `name=value` (for all that have it) and `task.name=value`.

    Raises:
        ConfigError: a pair is none, or none of the tasks has the option.
    """
    given, names = parse_pairs(pairs), [task.name for task in tasks]
    shared = {name: value for name, value in given.items() if name not in names}
    for name in shared:
        if not any(name in task.options for task in tasks):
            known = sorted({option for task in tasks for option in task.options})
            hint = f"use one of {', '.join(known)}, or a task's name before it" if known else "leave it out"
            raise ConfigError(f"no option {name!r} in {', '.join(names)}. Remedy: {hint}")
    chosen = []
    for task in tasks:
        of_task = given.get(task.name, {})
        if not isinstance(of_task, Mapping):
            raise ConfigError(f"option of {task.name} is {of_task!r}. Remedy: write {task.name}.name=value")
        chosen.append({**{name: value for name, value in shared.items() if name in task.options}, **of_task})
    return chosen


def task_names(benchmark: str) -> tuple[str, ...]:
    """The tasks of a benchmark, in the order of its paper.

    Raises:
        ConfigError: there is no such benchmark.
    """
    return get_benchmark(benchmark).task_names


def packaged_data(package: str, name: str) -> object:
    """The content of a YAML file of a package; every scalar is text."""
    data = resources.files(package).joinpath(name).read_bytes()
    return load_yaml(data, name, text_only=True)


@cache
def _all_rules(package: str) -> dict[str, tuple[ProtocolRule, ...]]:
    return msgspec.convert(packaged_data(package, "protocols.yaml"), dict[str, tuple[ProtocolRule, ...]])


def rules_of(package: str, task: str) -> tuple[ProtocolRule, ...]:
    """Where the paper and its released code differ on a task: the package's `protocols.yaml`."""
    return _all_rules(package)[task]
