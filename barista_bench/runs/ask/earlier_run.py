"""Read the answers of an earlier run that a task's option names, as a second stage needs them.

Only the first repetition counts, since a question is the same in all repetitions.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping

from barista_bench.core.task import Example
from barista_bench.errors import ConfigError, DataError
from barista_bench.runs.described import SHORT
from barista_bench.runs.run_folder import OpenedTask
from barista_bench.runs.score.samples import ReadRun, ScoredSample, read_samples

log = logging.getLogger(__name__)


def read_earlier_run(opened: OpenedTask, shots: int | None = None) -> None:
    """Set `Task.run_answers` if an option names a run, and replace the option's value by the run's model and hash.

    Raises:
        ConfigError: `shots` are set, for whose questions the run has no answers.
        DataError: the folder is not a run, or it has none of these questions.
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
        _check_found(f"{task.benchmark}/{task.name}", folder, names)
        answers = _answered_choices(run, others)
        task.run_answers = {own: answers[other] for own, other in names.items() if other is not None and answers[other]}
        model = run.description.name or run.description.identity.model.name
        task.chosen[name] = f"{model} {answers_hash(run.description.identity.model.name, run.samples)[:SHORT]}"


def _check_found(task: str, folder: str, names: Mapping[str, str | None]) -> None:
    unknown = [own for own, other in names.items() if other is None]
    if len(unknown) == len(names):
        raise DataError(
            f"{folder}: has none of the {len(names)} questions of {task}, such as {unknown[0]!r:.200}. "
            "Fix: name a run of the same questions with options, built from the same release"
        )
    if unknown:
        what = f"{len(unknown)} of the {len(names)} questions of {task}, such as {unknown[0]!r:.200}"
        log.warning("%s: does not have %s. They are not asked and count as unanswered", folder, what)


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
