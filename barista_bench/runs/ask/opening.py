"""The tasks of a run, of one benchmark or all that are here, each with wording, options and examples."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from barista_bench.aids.texts import AidBook
from barista_bench.benchmarks import (
    BENCHMARKS,
    get_benchmark,
    get_task,
    read_wording,
    task_class,
    task_names,
    task_options,
)
from barista_bench.benchmarks.kinds.box_answers import BOX_PLACES, own_box_places
from barista_bench.core.prompt import FROZEN_QUESTION, IMAGE_PLACES, IMAGE_TEXT, PromptTexts
from barista_bench.core.task import Task
from barista_bench.data.dataset import ExampleSet, config_names, open_examples
from barista_bench.data.manifest import DEFAULT_BENCHMARK, MANIFEST, read_manifest
from barista_bench.errors import ConfigError, DataError
from barista_bench.runs.ask.catalog import check_fit, check_schemas
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.run_folder import CONFIG_FILE

ALL = "all"
"""All tasks that a dataset has; all benchmarks that a folder has."""
_PLACEHOLDER = re.compile(r"\{([a-z][a-z_0-9]*)\}")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenedTask:
    """One task of a run before anything is asked. `data` is where its examples come from.

    `only` are the ids of the examples to ask; None for all. `aids` are its aids, where they are made already.
    """

    task: Task
    examples: ExampleSet
    folder: Path
    data: str
    only: frozenset[str] | None = None
    aids: AidBook | None = None


class _TaskChoice(NamedTuple):
    """A task to open."""

    benchmark: str
    task: str
    data: str
    folder: Path
    split: str


def open_tasks(config: RunConfig) -> list[OpenedTask]:
    """The tasks of a run with their examples.

    With `benchmark=all`, `data` is a folder of built datasets, the run folders are `<out>/<benchmark>/<task>`, and
    `split=all` is the first of each benchmark's leaderboards.

    Raises:
        ConfigError, DataError: a task is unknown or cannot be asked of the model, its examples cannot be opened, or two
            share an example id.
    """
    candidates, fitting_tasks, refusal = open_questions(config), [], None
    takes_all = ALL in (config.benchmark, *config.task)
    for candidate in candidates:
        try:
            check_fit(config.model, candidate.task, candidate.examples)
            check_schemas(config, candidate.task, candidate.examples)
        except ConfigError as error:  # of all tasks, not every one has every baseline, or texts to score
            if not takes_all:
                raise
            log.warning("left out: %s", error)
            refusal = error
        else:
            fitting_tasks.append(candidate)
    if refusal is not None and not fitting_tasks:
        raise refusal
    return fitting_tasks


def open_questions(config: RunConfig) -> list[OpenedTask]:
    """The same as `open_tasks`, whichever model is asked."""
    choices = list(_choices_of_all_benchmarks(config) if config.benchmark == ALL else _choices_of_one_benchmark(config))
    options_of_each = task_options([task_class(choice.benchmark, choice.task) for choice in choices], config.options)
    opened_tasks = []
    for choice, options in zip(choices, options_of_each, strict=True):
        benchmark, name = choice.benchmark, choice.task
        task = get_task(benchmark, name, _wording(config, choice), options=options)
        examples = open_examples(choice.data, benchmark, name, split=choice.split, root=config.root, limit=config.limit)
        task.refuse_others(examples.examples)
        opened_tasks.append(OpenedTask(task, examples, choice.folder, choice.data))
    task_by_example: dict[str, str] = {}
    for opened_task in opened_tasks:
        name = f"{opened_task.task.benchmark}/{opened_task.task.name}"
        for example in opened_task.examples.examples:
            if (first := task_by_example.setdefault(example.example_id, name)) != name:
                raise ConfigError(
                    f"example {example.example_id!r} stands in {first} and {name}. Remedy: run these tasks one by one"
                )
    return opened_tasks


def _wording(config: RunConfig, choice: _TaskChoice) -> PromptTexts | None:
    """The wording in place of our own; None for ours.

    Prompts that lack a text are refused before anything is asked: a later question's would cost the answers before it.
    A place that nothing fills would cost the whole run. One that is left out can be meant: a warning names it.
    """
    if config.prompts is None:
        return None
    prompts = read_wording(choice.benchmark, choice.task, config.prompts)
    released = get_benchmark(choice.benchmark).released_texts
    if released and prompts.wording == released.wording:
        return prompts
    packaged = get_task(choice.benchmark, choice.task).prompts
    subject = f"the prompts of {choice.benchmark}/{choice.task}"
    packaged_places, places = _placeholders(packaged), _placeholders(prompts)
    if packaged_places & BOX_PLACES and (own_places := own_box_places(prompts)):
        packaged_places = packaged_places - (BOX_PLACES - places) | own_places
    if packaged_places & IMAGE_PLACES:
        packaged_places |= IMAGE_PLACES
    if unknown := sorted(places - packaged_places):
        raise ConfigError(
            f"{subject} have a place {{{unknown[0]}}}, which nothing fills. "
            f"Remedy: use only {', '.join(f'{{{name}}}' for name in sorted(packaged_places)) or 'texts without places'}"
        )
    for name in sorted(packaged_places - places - IMAGE_PLACES):
        log.warning("%s have no place {%s}: the model does not see it", subject, name)
    if missing_texts := sorted(set(packaged.extra) - set(prompts.extra) - {IMAGE_TEXT, FROZEN_QUESTION}):
        raise ConfigError(f"{subject} have no text extra.{missing_texts[0]}, which this task asks. Remedy: write one")
    return prompts


def _placeholders(prompts: PromptTexts) -> set[str]:
    """The `{name}` places of all texts but the one before an image, which `PromptTexts.prompt` fills itself."""
    texts = [prompts.system, prompts.user, *(text for name, text in prompts.extra.items() if name != IMAGE_TEXT)]
    return {name for text in texts for name in _PLACEHOLDER.findall(text)}


def benchmarks_in(folder: str | Path) -> dict[str, Path]:
    """Benchmark name to its built dataset, of those that lie directly in a folder.

    Raises:
        DataError: there is none, or two are of one benchmark.
    """
    datasets: dict[str, Path] = {}
    for path in (Path(folder) / name for name in _dataset_names(str(folder))):
        name = str(read_manifest(path).get("benchmark", DEFAULT_BENCHMARK))
        if name not in BENCHMARKS:
            log.warning("left out: %s: is of %r, which this version does not know", path, name)
            continue
        if name in datasets:
            raise DataError(
                f"{folder}: {datasets[name].name} and {path.name} are both of {name}. Remedy: keep one of them here"
            )
        datasets[name] = path
    if not datasets:
        raise DataError(f"{folder}: no built dataset in it. Remedy: name the folder in which `build` wrote datasets")
    return {name: datasets[name] for name in BENCHMARKS if name in datasets}


def _dataset_names(folder: str) -> list[str]:
    """The built datasets that lie directly in a folder; hidden ones are what a killed build leaves."""
    return [path.parent.name for path in sorted(Path(folder).glob(f"[!.]*/{MANIFEST}"))]


def _choices_of_all_benchmarks(config: RunConfig) -> Iterator[_TaskChoice]:
    if config.task != (ALL,):
        raise ConfigError("all benchmarks have all of their tasks run. Remedy: leave task out, or name one benchmark")
    if config.root is not None:
        raise ConfigError("root is the folder of one dataset's videos. Remedy: leave it out, or name one benchmark")
    for name, path in benchmarks_in(config.data).items():
        # All of a benchmark that can be scored: some hide the answers of a split.
        split = BENCHMARKS[name].leaderboards[0] if config.split == ALL else config.split
        for task in _present_tasks(name, str(path)):
            yield _TaskChoice(name, task, str(path), config.out / name / task, split)


def _choices_of_one_benchmark(config: RunConfig) -> Iterator[_TaskChoice]:
    benchmark = config.benchmark
    if len(datasets := _dataset_names(config.data)) > 1:
        what = f"{len(datasets)} datasets are here ({', '.join(datasets)})"
        remedy = f"name one, such as {Path(config.data) / datasets[0]}, or give --benchmark all"
        raise ConfigError(f"{config.data}: {what}. Remedy: {remedy}")
    if "benchmark" not in config.model_fields_set and (Path(config.data) / MANIFEST).is_file():
        benchmark = str(read_manifest(config.data).get("benchmark", benchmark))
        if benchmark not in BENCHMARKS:
            remedy = "Remedy: update the package"
            raise DataError(f"{config.data}: is of {benchmark!r}, which this version does not know. {remedy}")
    known_names = task_names(benchmark)
    names = tuple(name.removeprefix(f"{benchmark}/") for name in config.task)
    if names == (ALL,):
        names = _present_tasks(benchmark, config.data)
    elif ALL in names and ALL not in known_names:
        raise ConfigError("task names all and more. Remedy: give one or the other")
    if len(set(names)) < len(names):
        raise ConfigError(f"task names one twice: {', '.join(names)}. Remedy: name each once")
    is_run = (config.out / CONFIG_FILE).is_file()
    if is_run and len(names) > 1:
        raise ConfigError(f"{config.out}: is the run folder of one task. Remedy: name that task, or use another --out")
    for name in names:
        yield _TaskChoice(benchmark, name, config.data, config.out if is_run else config.out / name, config.split)


def _present_tasks(benchmark: str, data: str) -> tuple[str, ...]:
    """The tasks that a dataset has; only `all` where there is a task of that name, which holds the others."""
    known_names, present_names = task_names(benchmark), config_names(data)
    if ALL in known_names and ALL in present_names:
        return (ALL,)
    tasks = tuple(name for name in known_names if name in present_names)
    if not tasks:
        raise DataError(f"{data}: none of {', '.join(known_names)} is here. Remedy: name what `build` wrote")
    return tasks
