"""Open the tasks of a run, each with its wording, options and examples.

A run covers one benchmark or all benchmarks in a folder.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from barista_bench.benchmarks import BENCHMARKS, Benchmark, TaskSpec, find_task, get_benchmark, task_options
from barista_bench.benchmarks.kinds.box_answers import BOX_PLACES, own_box_places
from barista_bench.core.prompt import FROZEN_QUESTION, IMAGE_PLACES, IMAGE_TEXT, PromptTexts
from barista_bench.core.task import Task
from barista_bench.data.cached_build import dataset_of
from barista_bench.data.chosen import reorder_choices
from barista_bench.data.dataset import config_names, open_examples
from barista_bench.data.manifest import DEFAULT_BENCHMARK, MANIFEST, read_manifest
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.checkpoints import is_on_this_machine
from barista_bench.runs.ask.catalog import check_fit, check_schemas, kind_of
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.earlier_run import read_earlier_run
from barista_bench.runs.ask.selection import chosen_tasks, is_chosen
from barista_bench.runs.run_folder import CONFIG_FILE, OpenedTask

ALL = "all"
"""Selects all tasks of a dataset, or all benchmarks in a folder."""
_PLACEHOLDER = re.compile(r"\{([a-z][a-z_0-9]*)\}")
log = logging.getLogger(__name__)


class PlannedTask(NamedTuple):
    """A task to open: the location of its data, and its run folder."""

    spec: TaskSpec
    data: str
    folder: Path
    split: str


def with_built_release(config: RunConfig, tell: Callable[[str], None] = log.info) -> RunConfig:
    """Return the settings with the dataset that `dataset_of` builds, if `data` is a release."""
    data = dataset_of(
        config.data,
        config.benchmark,
        protocol=config.protocol,
        num_proc=config.workers,
        progress=config.progress,
        tell=tell,
    )
    return config.model_copy(update={"data": data})


def open_tasks(config: RunConfig) -> list[OpenedTask]:
    """Return the tasks of a run with their examples.

    With `benchmark=all`, `data` is a folder of built datasets, the run folders are `<out>/<benchmark>/<task>`, and
    `split=all` selects the first split of each benchmark's leaderboards.

    Raises:
        ConfigError, DataError: a task is unknown, the model cannot answer it, its examples cannot be opened, or two
            tasks share an example id.
    """
    candidates, fitting_tasks, refusal = open_questions(config), [], None
    takes_all = ALL in (config.benchmark, *config.task)
    for candidate in candidates:
        try:
            check_fit(config.model, candidate.task, candidate.examples)
            check_schemas(config, candidate.task, candidate.examples)
        except ConfigError as error:  # with --task all, a task may lack this baseline or have no texts to score
            if not takes_all:
                raise
            log.warning("left out: %s", error)
            refusal = error
        else:
            fitting_tasks.append(candidate)
    if refusal is not None and not fitting_tasks:
        raise refusal
    return [read_earlier_run(opened, config.shots) for opened in fitting_tasks]


def _warn_of_absent_checkpoints(task: Task) -> None:
    """Warn, before a model is asked, if scoring needs a checkpoint that is not on this machine."""
    for name, option in task.options.items():
        if option.fetched_with is None or is_on_this_machine(value := str(task.chosen[name])):
            continue
        other, reading_value = option.fetched_with
        if task.chosen[other] == reading_value:
            others = " or ".join(f"{other}={each}" for each in task.options[other].choices if each != reading_value)
            log.warning(
                "%s: `score` needs the %s %s, which is not on this machine; it is fetched from the Hub then. Fix, "
                "if the Hub cannot be reached: say --option %s",
                *(task.name, name, value, others),
            )


def open_questions(config: RunConfig) -> list[OpenedTask]:
    """Return the tasks like `open_tasks`, without a check that the model can answer them."""
    limit = None if is_chosen(config) else config.limit
    kind = kind_of(config.model)
    planned_tasks = list(_plan_all_benchmarks(config) if config.benchmark == ALL else _plan_one_benchmark(config))
    options_of_each = task_options([planned.spec.kind for planned in planned_tasks], config.options)
    opened_tasks = []
    for (spec, data, folder, split), options in zip(planned_tasks, options_of_each, strict=True):
        defaults = spec.kind.encoder_options if kind and kind.scores_choices else {}
        task = spec.kind(_read_wording(config, spec), options={**defaults, **options})
        examples = open_examples(data, spec.benchmark.name, spec.name, split=split, root=config.root, limit=limit)
        task.refuse_others(examples.examples)
        _warn_of_absent_checkpoints(task)
        opened_tasks.append(OpenedTask(task, examples, folder, data))
    task_by_example: dict[str, str] = {}
    for opened_task in opened_tasks:
        name = f"{opened_task.task.benchmark}/{opened_task.task.name}"
        for example in opened_task.examples.examples:
            if (first := task_by_example.setdefault(example.example_id, name)) != name:
                raise ConfigError(
                    f"example {example.example_id!r} is in both {first} and {name}. Fix: run these tasks one by one"
                )
    opened_tasks = chosen_tasks(config, opened_tasks) if is_chosen(config) else opened_tasks
    return [replace(one, examples=reorder_choices(one.examples, one.task, one.task.chosen)) for one in opened_tasks]


def _read_wording(config: RunConfig, spec: TaskSpec) -> PromptTexts | None:
    """Return the user's wording, or None to use the packaged wording.

    Prompts with a missing text or an unknown placeholder are refused before anything is asked, since the run's answers
    would be wasted. An omitted placeholder may be intended, so it only causes a warning.
    """
    if config.prompts is None:
        return None
    prompts, released = spec.read_wording(config.prompts), spec.benchmark.released_texts
    if released and prompts.wording == released.wording:
        return prompts
    packaged = spec.kind().prompts
    subject = f"the prompts of {spec.benchmark.name}/{spec.name}"
    packaged_places, places = _placeholders(packaged), _placeholders(prompts)
    if packaged_places & BOX_PLACES and (own_places := own_box_places(prompts)):
        packaged_places = packaged_places - (BOX_PLACES - places) | own_places
    if packaged_places & IMAGE_PLACES:
        packaged_places |= IMAGE_PLACES
    if unknown := sorted(places - packaged_places):
        raise ConfigError(
            f"{subject} have a place {{{unknown[0]}}}, which no value fills. "
            f"Fix: use only {', '.join(f'{{{name}}}' for name in sorted(packaged_places)) or 'texts without places'}"
        )
    for name in sorted(packaged_places - places - IMAGE_PLACES):
        log.warning("%s have no place {%s}: the model does not see it", subject, name)
    if missing_texts := sorted(set(packaged.extra) - set(prompts.extra) - {IMAGE_TEXT, FROZEN_QUESTION}):
        raise ConfigError(f"{subject} have no text extra.{missing_texts[0]}, which this task asks. Fix: write one")
    return prompts


def _placeholders(prompts: PromptTexts) -> set[str]:
    """Return the `{name}` placeholders of all texts except the text before an image.

    `PromptTexts.prompt` fills the text before an image itself.
    """
    texts = [prompts.system, prompts.user, *(text for name, text in prompts.extra.items() if name != IMAGE_TEXT)]
    return {name for text in texts for name in _PLACEHOLDER.findall(text)}


def benchmarks_in(folder: str | Path) -> dict[str, Path]:
    """Map each benchmark's name to its built dataset. Only datasets directly in the folder count.

    Raises:
        DataError: there is no dataset, or there are two datasets of one benchmark.
    """
    datasets: dict[str, Path] = {}
    for path in (Path(folder) / name for name in _dataset_names(str(folder))):
        name = str(read_manifest(path).get("benchmark", DEFAULT_BENCHMARK))
        if name not in BENCHMARKS:
            log.warning("left out: %s: is of %r, which this version does not know", path, name)
            continue
        if name in datasets:
            raise DataError(
                f"{folder}: {datasets[name].name} and {path.name} are both of {name}. Fix: keep one of them here"
            )
        datasets[name] = path
    if not datasets:
        raise DataError(f"{folder}: no built dataset in it. Fix: name the folder where `build` wrote datasets")
    return {name: datasets[name] for name in BENCHMARKS if name in datasets}


def _dataset_names(folder: str) -> list[str]:
    """Return the built datasets directly in a folder. Hidden folders, left by an interrupted build, are skipped."""
    return [path.parent.name for path in sorted(Path(folder).glob(f"[!.]*/{MANIFEST}"))]


def _plan_all_benchmarks(config: RunConfig) -> Iterator[PlannedTask]:
    if config.task != (ALL,):
        raise ConfigError("all benchmarks have all of their tasks run. Fix: leave task out, or name one benchmark")
    if config.root is not None:
        raise ConfigError("root is the folder of one dataset's videos. Fix: leave it out, or name one benchmark")
    for name, path in benchmarks_in(config.data).items():
        # All splits that can be scored. Some benchmarks hide the answers of a split.
        benchmark = BENCHMARKS[name]
        split = benchmark.leaderboards[0] if config.split == ALL else config.split
        for task in _present_tasks(benchmark, str(path)):
            yield PlannedTask(find_task(benchmark, task), str(path), config.out / name / task, split)


def _plan_one_benchmark(config: RunConfig) -> Iterator[PlannedTask]:
    benchmark_name = config.benchmark
    if len(datasets := _dataset_names(config.data)) > 1:
        what = f"{len(datasets)} datasets are here ({', '.join(datasets)})"
        remedy = f"name one, such as {Path(config.data) / datasets[0]}, or give --benchmark all"
        raise ConfigError(f"{config.data}: {what}. Fix: {remedy}")
    if "benchmark" not in config.model_fields_set and (Path(config.data) / MANIFEST).is_file():
        benchmark_name = str(read_manifest(config.data).get("benchmark", benchmark_name))
        if benchmark_name not in BENCHMARKS:
            remedy = "Fix: update the package"
            raise DataError(f"{config.data}: is of {benchmark_name!r}, which this version does not know. {remedy}")
    benchmark = get_benchmark(benchmark_name)
    names = tuple(name.removeprefix(f"{benchmark.name}/") for name in config.task)
    if names == (ALL,):
        names = _present_tasks(benchmark, config.data)
    elif ALL in names and ALL not in benchmark.task_names:
        raise ConfigError("task names all and more. Fix: give one or the other")
    if len(set(names)) < len(names):
        raise ConfigError(f"task names one twice: {', '.join(names)}. Fix: name each once")
    is_run = (config.out / CONFIG_FILE).is_file()
    if is_run and len(names) > 1:
        raise ConfigError(f"{config.out}: is the run folder of one task. Fix: name that task, or use another --out")
    for name in names:
        folder = config.out if is_run else config.out / name
        yield PlannedTask(find_task(benchmark, name), config.data, folder, config.split)


def _present_tasks(benchmark: Benchmark, data: str) -> tuple[str, ...]:
    """Return the tasks of a dataset.

    If there is a task named `all`, return only that task, since it contains the others.
    """
    known_names, present_names = benchmark.task_names, config_names(data)
    if ALL in known_names and ALL in present_names:
        return (ALL,)
    tasks = tuple(name for name in known_names if name in present_names)
    if not tasks:
        raise DataError(f"{data}: none of {', '.join(known_names)} is here. Fix: name what `build` wrote")
    return tasks
