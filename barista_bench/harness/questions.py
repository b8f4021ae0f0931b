"""Shared code for other harnesses: turns settings into question sets, answers into records, and records into scores.

The code of `run` and `score` makes the prompts, images and scores, and parses the answers; this module only calls it.
"""

from __future__ import annotations

import functools
import json
import logging
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from PIL import Image

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example
from barista_bench.core.prompt import Prompt
from barista_bench.core.prompt_files import domain_file_of
from barista_bench.core.settings import check_settings
from barista_bench.core.status import Status, status_counts
from barista_bench.core.task import Task
from barista_bench.data.dataset import ExampleSet
from barista_bench.errors import ConfigError
from barista_bench.models import Completion
from barista_bench.runs.ask.answers import answer_fields, answer_status
from barista_bench.runs.ask.config import QUESTION_SETTINGS, RunConfig
from barista_bench.runs.ask.opening import open_questions
from barista_bench.runs.log.inputs import digest
from barista_bench.runs.log.sample_log import SampleRecord
from barista_bench.runs.run_folder import OpenedTask
from barista_bench.runs.score.samples import Counted, ScoredSample, counted_samples, read_sample, shared_metrics

log = logging.getLogger(__name__)
_SETTINGS_BY_KEY: dict[str, str] = {}
"""The settings of the sets that this process has opened, by key."""


@dataclass(frozen=True)
class QuestionSet:
    """The examples of one task whose references are known, and the settings in `config` for asking them."""

    task: Task
    examples: ExampleSet
    config: RunConfig

    @cached_property
    def settings(self) -> str:
        """Return the settings, with paths, as JSON for `question_sets` in any process and folder of this machine."""
        return self.config.model_dump_json(include={*QUESTION_SETTINGS}, exclude_unset=True)

    @cached_property
    def key(self) -> str:
        """The key of a question set in this process and in logs: the task and a digest of the settings."""
        return f"{self.task.benchmark}/{self.task.name}@{digest(self.settings)[:12]}"

    @cached_property
    def positions(self) -> dict[str, int]:
        """Return the index in `examples` of each example id, in order."""
        numbered_examples = enumerate(self.examples.examples)
        return {example.example_id: index for index, example in numbered_examples if self.task.has_answer(example)}

    @cached_property
    def video_hashes(self) -> dict[str, str]:
        """Return the SHA-256 of the examples' videos, by id. Raises DataError if a video is missing."""
        return self.examples.video_hashes()

    def example(self, example_id: str) -> Example:
        return self.examples.examples[self.positions[example_id]]

    def images(self, example_id: str, prompt: Prompt) -> tuple[Image.Image, ...]:
        """Return the RGB images that the prompt uses. Raises DataError if an image cannot be decoded."""
        return self.examples[self.positions[example_id]].images(self.task) if prompt.image_count else ()

    def sample(
        self,
        example_id: str,
        answer: Completion,
        box_format: BoxFormat,
        *,
        repetition: int = 0,
        earlier: Sequence[str] = (),
    ) -> ScoredSample:
        """Return an answer in the form that `run` logs and `score` reads, not yet scored.

        The digests of the request are left out.

        Args:
            box_format: how the model writes boxes.
            repetition: the number of the repetition, from 0.
            earlier: the answers to earlier steps, for a task with several steps.
        """
        status, error = answer_status(answer)
        fields = {**answer_fields(answer), "earlier": tuple(earlier) or None}
        return self.read(SampleRecord("", "", example_id, repetition, status, error=error, **fields), box_format)

    def read(self, record: SampleRecord, box_format: BoxFormat) -> ScoredSample:
        """Read the record without scoring it."""
        return read_sample(self.task, box_format, self.example(record.example_id), record)

    def by_repetition(self, samples: Iterable[ScoredSample]) -> Counted:
        """Return samples compared with the reference, by repetition, in the order of `run`."""
        return counted_samples(
            self.task,
            sorted(samples, key=lambda sample: (self.positions[sample.example.example_id], sample.record.repetition)),
        )

    def compute_metrics(self, samples: Sequence[ScoredSample]) -> dict[str, float]:
        """Return the results of these samples: scores, means over repetitions, and the count of each status."""
        details = [group.resampled.statistics.published_metrics() for group in self.by_repetition(samples).values()]
        statuses = status_counts(sample.record.status for sample in samples)
        return {
            **{name: statistics.fmean(values) for name, values in shared_metrics(details).items()},
            "samples": len(samples),
            **{name: count for name, count in statuses.items() if name != Status.INFRA_ERROR},
        }


def question_sets(settings: Mapping[str, object]) -> list[QuestionSet]:
    """Open the tasks named by `QUESTION_SETTINGS`. Tasks without text answers are left out with a warning.

    Raises:
        ConfigError: a setting is invalid, no task is left, or a task has only hidden references.
        DataError: the data cannot be opened.
    """
    if unknown := settings.keys() - QUESTION_SETTINGS:
        raise ConfigError(f"no setting {min(unknown)!r} here. Fix: use some of {', '.join(sorted(QUESTION_SETTINGS))}")
    # The harness has its own model and log, so neither of these two settings is used.
    config = check_settings(RunConfig, {**settings, "model": "oracle", "out": "."})
    sets = []
    for opened_task in open_questions(config):
        task = opened_task.task
        if named := [name for name, option in task.options.items() if option.names_run and task.chosen[name]]:
            raise ConfigError(f"option {named[0]} reads another run, which only `run` does. Fix: leave it out")
        if task.answered_by_text:
            sets.append(QuestionSet(task, opened_task.examples, _config_of_task(config, opened_task)))
        else:
            log.warning("left out: %s/%s: models that write text cannot answer", task.benchmark, task.name)
    if not sets:
        raise ConfigError(f"{config.data}: models that write text can answer no task here. Fix: name another task")
    for questions in sets:
        if not questions.positions:
            raise ConfigError(
                f"{questions.config.data}: all answers of {questions.task.name} are hidden (split {config.split}). "
                "Fix: name a split whose answers are known"
            )
        _SETTINGS_BY_KEY[questions.key] = questions.settings
    return sets


def _config_of_task(config: RunConfig, opened_task: OpenedTask) -> RunConfig:
    """Return the settings of one task, with its data and options; they are valid in any working folder."""
    task, data_path = opened_task.task, Path(opened_task.data)
    settings: dict[str, object] = {
        "data": str(data_path.resolve()) if data_path.exists() else opened_task.data,
        "benchmark": task.benchmark,
        "task": (task.name,),
        "split": opened_task.examples.split,
        "option": tuple(
            f"{name}={json.dumps(value)}" for name, value in task.chosen.items() if value != task.options[name].default
        ),
    }
    if config.root:
        settings["root"] = config.root.resolve()
    if config.prompts:
        domain_file = domain_file_of(config.prompts)
        settings["prompts"] = Path(f"domain:{domain_file.resolve()}") if domain_file else config.prompts.resolve()
    return config.model_copy(update=settings)


def question_set(key: str) -> QuestionSet:
    """Return one task by its `QuestionSet.key`. It is opened only once, because harnesses request it for every sample.

    Raises:
        ConfigError: `question_sets` has not opened this task in this process.
    """
    if key not in _SETTINGS_BY_KEY:
        raise ConfigError(
            f"{key}: this process has not opened these questions, and logs do not say where their data are. "
            "Fix: call barista_bench.harness.questions.question_sets first, with the settings that the task was "
            "asked with (docs/harnesses.md), or run the task again"
        )
    return _open_set(_SETTINGS_BY_KEY[key])


@functools.lru_cache(maxsize=64)
def _open_set(settings: str) -> QuestionSet:
    (questions,) = question_sets(json.loads(settings))
    return questions
