"""Read the answers of an earlier run that a task's option names, as a second stage needs them.

Only the first repetition counts, since a question is the same in all repetitions.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace

from barista_bench.core.example import Example
from barista_bench.data.chosen import with_ids
from barista_bench.errors import ConfigError, DataError
from barista_bench.runs.described import SHORT
from barista_bench.runs.run_folder import ChosenPart, OpenedTask
from barista_bench.runs.score.samples import ReadRun, ScoredSample, read_samples

log = logging.getLogger(__name__)


def read_earlier_run(opened: OpenedTask, shots: int | None = None) -> OpenedTask:
    """Set `Task.run_answers` if an option names a run, and replace the option's value by the run's model and hash.

    Returns the task with the examples to which the run has an answer. If it has none for some, they are a part of the
    set, as in `selection`.

    Raises:
        ConfigError: `shots` are set, for whose questions the run has no answers.
        DataError: the folder is not a run, or it has no answer to any of these questions.
    """
    task = opened.task
    for name, option in task.options.items():
        if not option.names_run or task.chosen[name] is None:
            continue
        if shots is not None:
            raise ConfigError(f"option {name} has no answers for worked examples. Fix: leave shots or the option out")
        folder = str(task.chosen[name])
        run = read_samples(folder)
        others = {example.example_id: example for example in run.examples.examples}
        names = {example.example_id: task.counterpart(example, others) for example in opened.examples.examples}
        answers = _answered_choices(run, others)
        task.run_answers = {own: answers[other] for own, other in names.items() if other is not None and answers[other]}
        model = run.description.name or run.description.identity.model.name
        task.chosen[name] = f"{model} {answers_hash(run.description.identity.model.name, run.samples)[:SHORT]}"
        opened = _answered_part(opened, folder, model)
    return opened


def _answered_part(opened: OpenedTask, folder: str, model: str) -> OpenedTask:
    ids = [name for each in opened.examples.examples if (name := each.example_id) in opened.task.run_answers]
    count, title = len(opened.examples), f"{opened.task.benchmark}/{opened.task.name}"
    if not ids:
        raise DataError(
            f"{folder}: answers none of the {count} questions of {title}. "
            "Fix: name a run of the same questions with options, built from the same release"
        )
    if len(ids) == count:
        return opened
    log.warning("%s: answers %d of the %d questions of %s. Only these are asked", folder, len(ids), count, title)
    earlier = opened.part or ChosenPart(words="", of=count, ids=ids)
    words = "; ".join(filter(None, (earlier.words, f"answered by {model} before"[:200])))
    part = ChosenPart(words=words, of=earlier.of, ids=ids)
    return replace(opened, examples=with_ids(opened.examples, ids), part=part)


def _answered_choices(run: ReadRun, examples: Mapping[str, Example]) -> dict[str, list[str]]:
    """Return the texts of the choices that the first repetition names, by example id; empty without an answer."""
    answers: dict[str, list[str]] = {name: [] for name in examples}
    for sample in run.samples:
        if sample.record.repetition == 0 and sample.prediction is not None:
            labels = set(run.task.answered_choices(sample.prediction))
            choices = run.task.choices(sample.example)
            answers[sample.example.example_id] = [text for label, text in choices.items() if label in labels]
    return answers


def answers_hash(model: str, samples: Iterable[ScoredSample]) -> str:
    """Return the SHA-256 of a model's answers, in hex."""
    answers = sorted((*sample.name, sample.record.text) for sample in samples)
    return hashlib.sha256(json.dumps([model, *answers]).encode()).hexdigest()
