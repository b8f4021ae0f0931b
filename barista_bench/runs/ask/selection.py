"""Choose the examples of a run by video, id or metadata, or choose the examples that another run failed to answer.

The chosen part of the set has its own content hash. So its scores are never ranked together with scores on the whole
set. Two runs on the same part can be compared.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from barista_bench.core.example import Example
from barista_bench.core.option_order import ROTATION_OF
from barista_bench.core.status import Status
from barista_bench.data.chosen import with_ids
from barista_bench.errors import ConfigError, nearest_of
from barista_bench.files.reading import read_bounded
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.run_folder import CONFIG_FILE, ChosenPart, OpenedTask
from barista_bench.runs.score.samples import read_samples

MAX_FILE = 2**26
"""Maximum bytes of a file of example ids."""
log = logging.getLogger(__name__)
_Rule = Callable[[Example], bool]


def is_chosen(config: RunConfig) -> bool:
    """Return whether a run asks only a part of the examples."""
    return bool(config.videos or config.where or config.example_ids or config.failed_in)


def chosen_tasks(config: RunConfig, opened_tasks: Sequence[OpenedTask]) -> list[OpenedTask]:
    """Return the tasks with only the chosen examples. Tasks without a chosen example are left out.

    Raises:
        ConfigError: a video, an id or a metadata key is unknown, or no example is chosen.
        DataError: the other run cannot be read.
    """
    rules = [*_videos(config, opened_tasks), *_ids(config, opened_tasks), *_where(config, opened_tasks)]
    parts = []
    for opened in opened_tasks:
        failed = _failed(config.failed_in, opened) if config.failed_in is not None else None
        ids = [
            example.example_id
            for example in opened.examples.examples
            if all(rule(example) for rule in rules) and (failed is None or example.example_id in failed)
        ][: config.limit]
        if not ids:
            log.warning("left out: %s/%s: no example is chosen", opened.task.benchmark, opened.task.name)
            continue
        if len(ids) < len(opened.examples):
            part = ChosenPart(words=_in_words(config), of=len(opened.examples), ids=ids)
            opened = replace(opened, examples=with_ids(opened.examples, ids), part=part)
        parts.append(opened)
    if not parts:
        raise ConfigError(f"no example is chosen, because none fits: {_in_words(config)}. Fix: choose others")
    return parts


def _in_words(config: RunConfig) -> str:
    parts = [
        f"videos {', '.join(config.videos)}" if config.videos else "",
        f"ids in {config.example_ids.name}" if config.example_ids else "",
        *config.where,
        f"failed in {config.failed_in.name}" if config.failed_in else "",
        f"the first {config.limit}" if config.limit else "",
    ]
    text = "; ".join(filter(None, parts)).replace("\n", " ")
    return text if len(text) <= 200 else f"{text[:197]}..."


def _videos(config: RunConfig, opened_tasks: Sequence[OpenedTask]) -> list[_Rule]:
    if not config.videos:
        return []
    wanted = frozenset(config.videos)
    known = sorted({example.video_id for opened in opened_tasks for example in opened.examples.examples})
    for name in sorted(wanted.difference(known)):
        raise ConfigError(f"videos: no example of {name!r:.200}. Fix: {nearest_of(name, known)}")
    return [lambda example: example.video_id in wanted]


def _ids(config: RunConfig, opened_tasks: Sequence[OpenedTask]) -> list[_Rule]:
    path = config.example_ids
    if path is None:
        return []
    remedy = "write one example id a line"
    content = read_bounded(path, MAX_FILE, remedy=remedy, error=ConfigError)
    wanted = {line.strip() for line in content.decode("utf-8-sig", errors="replace").splitlines()} - {""}
    known = {example.example_id for opened in opened_tasks for example in opened.examples.examples}
    if unknown := sorted(wanted - known):
        raise ConfigError(
            f"{path}: {len(unknown)} of {len(wanted)} ids are no examples here, first {unknown[0]!r:.200}. "
            f"Fix: {remedy}, of the tasks of this run"
        )
    return [lambda example: example.example_id in wanted]


def _where(config: RunConfig, opened_tasks: Sequence[OpenedTask]) -> list[_Rule]:
    rules: list[_Rule] = []
    for text in config.where:
        key, equals, value = (part.strip() for part in text.partition("="))
        known = sorted({key for opened in opened_tasks for each in opened.examples.examples for key in each.metadata})
        if not equals or key not in known:
            raise ConfigError(
                f"where: {text!r:.200} is not KEY=VALUE with a key of the metadata. Fix: {nearest_of(key, known)}"
            )
        rules.append(lambda example, key=key, value=value: _same(example.metadata.get(key), value))  # type: ignore[misc]
    return rules


def _same(value: object, text: str) -> bool:
    if isinstance(value, list):
        return any(_same(each, text) for each in value)
    return str(value).casefold() == text.casefold()


def _failed(folder: Path, opened: OpenedTask) -> frozenset[str]:
    """Return the ids of examples for which at least one repetition of the other run has no readable answer."""
    task = opened.task
    places = [folder, folder / task.name, folder / task.benchmark / task.name]
    run_folder = next((place for place in places if (place / CONFIG_FILE).is_file()), None)
    if run_folder is None:
        raise ConfigError(f"failed_in: no run of {task.name} in {folder}. Fix: name a run folder, or its parent")
    run = read_samples(run_folder, data=opened.data)
    if (run.task.benchmark, run.task.name) != (task.benchmark, task.name):
        raise ConfigError(f"failed_in: {run_folder} is of {run.task.name}, not {task.name}. Fix: name that task")
    repetitions = range(run.description.repetitions)
    answered = {sample.name for sample in run.samples if sample.record.status is Status.OK}
    return frozenset(
        str(example.metadata.get(ROTATION_OF, example.example_id))
        for example in run.examples.examples
        if any((example.example_id, number) not in answered for number in repetitions)
    )
