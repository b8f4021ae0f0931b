"""Define and find benchmarks. Each benchmark has one folder, and each task one class; `get_task` finds a task."""

from __future__ import annotations

import logging
from collections import UserDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from barista_bench.core.example import Example, Fields, Json, Scored
from barista_bench.core.options import Sampling, quote_value
from barista_bench.core.plugins import load_plugin, plugin_entries
from barista_bench.core.prompt import PromptTexts, hash_name
from barista_bench.core.prompt_files import PromptSet, domain_file_of, load_prompts, packaged_prompts, read_prompt_set
from barista_bench.core.task import Task
from barista_bench.errors import ConfigError, nearest_of
from barista_bench.files.reading import json_value
from barista_bench.scene_graph import Problem

if TYPE_CHECKING:
    from barista_bench.core.deriving import Release
    from barista_bench.core.frozen_lines import FrozenLine, ReleaseRoot
    from barista_bench.core.model_samples import ModelSamples
    from barista_bench.tables import Table


MAX_NAMED = 3
"""Maximum number of texts that a warning about differences from the release names."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """One answer that another harness recorded. If `text` is None, `error` gives the reason.

    A sample that lacks text through no fault of the model is an infrastructure error and is never scored.
    """

    example_id: str
    repetition: int
    text: str | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedAnswers:
    """Answers in another harness's format, with the examples that they answer. Frames are only named and need not
    exist.

    Args:
        model: the model's name, if the files contain it.
        task: the task of all examples.
        answers: answers of any number of repetitions. Each repetition answers an example at most once.
        problems: faults of records. An error lost a record; a warning did not.
    """

    model: str
    task: type[Task]
    examples: tuple[Example, ...]
    answers: tuple[RecordedAnswer, ...]
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class FrozenFormat:
    """The format in which a benchmark's release freezes examples, one line each.

    Args:
        read: converts a line to an example.
        write: converts an example to a line. The second argument is a sentence that the release freezes with some
            tasks.
        parameters: returns the release's parameters of a set, by task name. Raises ConfigError if the release lacks a
            parameter of the sampling.
        identity: returns the fields in which two examples of the same question agree; None for all fields.
    """

    read: Callable[[type[Task], FrozenLine, ReleaseRoot], Example]
    write: Callable[[Example, str | None], Fields]
    parameters: Callable[[str, Sampling], Fields]
    identity: Callable[[Example], Json]


@dataclass(frozen=True, slots=True)
class ReleasedTexts:
    """Known facts about the prompt texts of a benchmark's release. The texts are not part of this package.

    Args:
        differences: returns the texts, by field, that are missing from a prompt file or differ from the release's.
        wording: the name of the texts in results if no text differs.
    """

    differences: Callable[[PromptSet], Sequence[str]]
    wording: str


def on_demand(name: str) -> Callable[..., Any]:
    """Return a function that imports and calls `package.module:function`. Most commands need few modules."""
    module, _, function = name.partition(":")

    def call(*args: object, **settings: object) -> Any:  # noqa: ANN401  # the return type of any function
        return getattr(import_module(module), function)(*args, **settings)

    return call


class TasksOnDemand(Sequence[type[Task]]):
    """Tasks in the order of the paper. Each task is imported on access.

    Args:
        modules: maps a task's name to `package.module:Class`.
    """

    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = modules
        self.names = tuple(modules)

    def load(self, name: str) -> type[Task]:
        module, _, task = self._modules[name].partition(":")
        return getattr(import_module(module), task)

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401  # one task, or several tasks of a slice
        names = self.names[index]
        return self.load(names) if isinstance(names, str) else tuple(map(self.load, names))

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark: its tasks, and facts for commands and pages.

    Args:
        name: name of the folder, also used in `load_dataset(name, task)`.
        title: name for people.
        description: one line about the questions.
        tasks: tasks in the order of the paper.
        licence: licence of the data by the Hub's name; "other" if the data state no licence.
        homepage: URL.
        citation: BibTeX.
        video_file: maps a video's id to the path below the media's root.
        splits: splits of the published sets, in order.
        leaderboards: the splits with a separate leaderboard on the Hub.
        open_release: reads annotations at the first path, with media below the second path. If the second path is None,
            the media are below the first. `open_release` is None for benchmarks that are derived from a scene graph.
        frozen_format: how the benchmark's release freezes examples; None if the release freezes no examples.
        released_texts: detects the release's texts in a prompt file; None if these texts are unknown.
        vocabulary: object categories with descriptions, for judges.
        formats: readers of the recorded outputs of other harnesses, by name.
        paper_tables: makes the counterparts of the paper's tables and figures.
        extra_table_tasks: tasks of other benchmarks, as (benchmark, name). `paper_tables` also receives runs of these
            tasks.
        set_tables: makes the counterparts of the paper's tables and figures that describe a set, from the set's
            examples by task. The result is empty if no table applies to the given tasks.
        compares_sets: True if these tables compare runs over different example sets, such as sets with other frame
            counts, and runs with different options. Otherwise each set and each choice of options has separate tables.
        submission: writes the file for the benchmark's leaderboard from one run's samples, and returns the file's path.
            Raises DataError for unsuitable samples.
    """

    name: str
    title: str
    description: str
    tasks: Sequence[type[Task]]
    licence: str
    homepage: str
    citation: str
    video_file: Callable[[str], str]
    splits: tuple[str, ...] = ("test",)
    leaderboards: tuple[str, ...] = ("all",)
    open_release: Callable[[Path, Path | None], Release] | None = None
    frozen_format: FrozenFormat | None = None
    released_texts: ReleasedTexts | None = None
    vocabulary: Callable[[], Mapping[str, str]] | None = None
    formats: Mapping[str, Callable[[Path], Sequence[RecordedAnswers]]] = field(default_factory=dict)
    paper_tables: Callable[[Sequence[ModelSamples]], Sequence[Table]] | None = None
    extra_table_tasks: tuple[tuple[str, str], ...] = ()
    set_tables: Callable[[Mapping[str, Sequence[Example]]], Sequence[Table]] | None = None
    compares_sets: bool = False
    submission: Callable[[Sequence[Scored], Path], Path] | None = None

    def published_split(self, split: str) -> str:
        """Return a split in the notation of `datasets`. Our split `all` is the union of the published splits."""
        return "+".join(self.splits) if split == "all" else split

    @property
    def task_names(self) -> tuple[str, ...]:
        return self.tasks.names if isinstance(self.tasks, TasksOnDemand) else tuple(task.name for task in self.tasks)

    def find_task(self, name: str) -> type[Task] | None:
        """Return the task with this name, or with this name in frozen files; None if there is no such task."""
        if isinstance(self.tasks, TasksOnDemand) and name in self.tasks.names:
            return self.tasks.load(name)
        return next((task for task in self.tasks if name in (task.name, task.upstream_name)), None)


class BenchmarkRegistry(UserDict[str, Any]):
    """Benchmarks by name, as packages register them (`core/plugins.py`). Each benchmark is imported on access."""

    def __getitem__(self, name: str) -> Benchmark:
        if self.data[name] is None:
            benchmark = load_plugin("benchmarks", name)
            if not isinstance(benchmark, Benchmark) or benchmark.name != name:
                raise ConfigError(f"benchmarks: {name!r} is not a Benchmark of that name. Fix: correct its entry point")
            self.data[name] = benchmark
        return self.data[name]


def _in_page_order(names: Collection[str]) -> list[str]:
    """Return this package's benchmarks in the order of the pages, then the benchmarks of other packages."""
    papers = ("barista", "vista", "handyvqa", "tog_bench", "egocot", "extended")
    return [*(name for name in papers if name in names), *(name for name in names if name not in papers)]


BENCHMARKS = BenchmarkRegistry(dict.fromkeys(_in_page_order(plugin_entries("benchmarks"))))


def get_benchmark(name: str) -> Benchmark:
    """Return the benchmark called `name`.

    Raises:
        ConfigError: there is no such benchmark.
    """
    if name not in BENCHMARKS:
        raise ConfigError(f"no benchmark {name!r}. Fix: use --benchmark with one of {', '.join(BENCHMARKS)}")
    return BENCHMARKS[name]


def get_task(
    benchmark: str, name: str, prompts: PromptTexts | None = None, *, options: Mapping[str, object] | None = None
) -> Task:
    """Return the task called `name`, by its name or by its name in frozen files.

    Args:
        benchmark: the benchmark of the task.
        name: e.g. `relations` or `relation_extraction`.
        prompts: the wording to use in place of ours.
        options: values of the task's options. Other options keep their defaults.

    Raises:
        ConfigError: there is no such task, or the task has no such option.
    """
    return task_class(benchmark, name)(prompts, options=options)


class TaskSpec(NamedTuple):
    """A task, looked up once. `name` is the user's name for it: the task's own name, or the name in frozen files."""

    benchmark: Benchmark
    name: str
    kind: type[Task]

    def read_wording(self, setting: str | Path) -> PromptTexts:
        """Return the wording of the task for `--prompts`: a file, a folder, or `domain:FILE`.

        `domain:FILE` gives our wording with the words of a domain file.

        Raises:
            ConfigError: the wording cannot be read, or has no texts for the task.
        """
        domain_file = domain_file_of(setting)
        if domain_file is not None:
            return packaged_prompts(self.kind.prompt_package, self.name, domain_file)
        return read_texts(self.benchmark, self.name, setting)


def find_task(benchmark: Benchmark, name: str) -> TaskSpec:
    """Return the task of a benchmark with this name, or with this name in frozen files. Raises ConfigError if there is
    none.
    """
    task = benchmark.find_task(name)
    if task is None:
        raise ConfigError(f"no task {name!r} of {benchmark.name}. Fix: {nearest_of(name, benchmark.task_names)}")
    return TaskSpec(benchmark, name, task)


def read_wording(benchmark: str, task: str, setting: str | Path) -> PromptTexts:
    """Return texts as `TaskSpec.read_wording` does, for the name of a task or of the writer of questions."""
    if domain_file_of(setting) is not None:
        return find_task(get_benchmark(benchmark), task).read_wording(setting)
    return read_texts(get_benchmark(benchmark), task, setting)


def read_texts(benchmark: Benchmark, name: str, setting: str | Path) -> PromptTexts:
    """Return the texts called `name` of a prompt file or folder. Raises ConfigError."""
    prompt_set = read_prompt_set(setting)
    if prompt_set is None:
        return load_prompts(setting, name)
    texts = prompt_set.texts(name)
    return replace(texts, wording=name_wording(benchmark, prompt_set, texts.sha256))


def name_wording(benchmark: Benchmark, prompt_set: PromptSet, sha256: str) -> str:
    """Return the name of texts from a prompt file of several tasks.

    If the file claims the release's name and every known hash matches, the release's name is returned. Otherwise the
    file's name is returned.
    """
    released = benchmark.released_texts
    if released is None or prompt_set.release != benchmark.name:
        return hash_name("file", sha256)
    differences = released.differences(prompt_set)
    if not differences:
        return released.wording
    log.warning(
        "%s: %d texts are not as released, so that the wording is called by its hash: %s",
        prompt_set.path,
        len(differences),
        ", ".join(differences[:MAX_NAMED]) + (", ..." if len(differences) > MAX_NAMED else ""),
    )
    return hash_name("file", sha256)


def task_class(benchmark: str, name: str) -> type[Task]:
    """Return the class of the task that `get_task` finds. No prompts are read."""
    return find_task(get_benchmark(benchmark), name).kind


def parse_pairs(pairs: Sequence[str]) -> dict[str, Any]:
    """Read `name=value` or `task.name=value` pairs. Values are read as JSON if possible, otherwise as text.

    Raises:
        ConfigError: a pair has no name or no `=`, or two pairs contradict each other.

    >>> parse_pairs(["limit=100", "relations.frame_step=50"])
    {'limit': 100, 'relations': {'frame_step': 50}}
    """
    overrides: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ConfigError(f"{quote_value(pair)} is not a setting. Fix: write name=value")
        task, dot, option = name.partition(".")
        settings = overrides.setdefault(task, {}) if dot else overrides
        key, setting = option if dot else name, json_value(value, otherwise=value)
        if not isinstance(settings, dict) or (key in settings and settings[key] != setting):
            raise ConfigError(
                f"{quote_value(pair)} contradicts an earlier setting of {quote_value(task)}. Fix: keep one"
            )
        settings[key] = setting
    return overrides


def task_options(tasks: Sequence[type[Task]], values: Mapping[str, Any]) -> list[dict[str, object]]:
    """Return the values of the options of each task.

    `values` come from `parse_pairs` and apply to all tasks or to one.

    Raises:
        ConfigError: none of the tasks has an option, or the options of one task are not a mapping.
    """
    names = [task.name for task in tasks]
    common = {name: value for name, value in values.items() if name not in names}
    for name in common:
        if not any(name in task.options for task in tasks):
            options = sorted({option for task in tasks for option in task.options})
            hint = f"use one of {', '.join(options)}, or a task's name before it" if options else "leave it out"
            raise ConfigError(f"no option {name!r} in {', '.join(names)}. Fix: {hint}")
    option_sets = []
    for task in tasks:
        task_values = values.get(task.name, {})
        if not isinstance(task_values, Mapping):
            raise ConfigError(f"option of {task.name} is {task_values!r}. Fix: write {task.name}.name=value")
        option_sets.append({**{name: value for name, value in common.items() if name in task.options}, **task_values})
    return option_sets


def task_names(benchmark: str) -> tuple[str, ...]:
    """Return the tasks of a benchmark, in the order of its paper.

    Raises:
        ConfigError: there is no such benchmark.
    """
    return get_benchmark(benchmark).task_names
