"""Read the samples of a run folder.

Each answer is parsed again and compared with the reference. Then scores and intervals are computed.
"""

from __future__ import annotations

import logging
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TypeAlias, cast

import msgspec
import numpy as np

from barista_bench.benchmarks import task_class
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example, Json, ParseError, Prediction, Scored
from barista_bench.core.guarding import guard
from barista_bench.core.intervals import Interval, ResampledRepetition, repetition_intervals
from barista_bench.core.status import Status
from barista_bench.core.task import Task
from barista_bench.data.dataset import ExampleSet
from barista_bench.errors import ConfigError, DataError, TaskError
from barista_bench.files.checkpoints import is_on_this_machine
from barista_bench.runs.data_location import open_run_examples
from barista_bench.runs.log.sample_log import SampleRecord
from barista_bench.runs.log_reader import run_records
from barista_bench.runs.run_folder import CONFIG_FILE, Location, RunDescription, read_run
from barista_bench.runs.score.reading import Reading, split_options
from barista_bench.runs.score.results import ALL_REASONING, MetricValue

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ScoredSample:
    """One sample with its answer parsed again. `prediction` is None if there is no readable answer.

    `scores` are empty if the sample does not count. `counts_unanswered` is `Task.counts_provider_errors`.
    """

    example: Example
    record: SampleRecord
    prediction: Prediction | None
    scores: Mapping[str, float] = field(default_factory=dict)
    counts_unanswered: bool = False

    @property
    def name(self) -> tuple[str, int]:
        """Return the example id and the repetition."""
        return self.example.example_id, self.record.repetition

    @property
    def is_counted(self) -> bool:
        """Return whether scores include the sample: an answer arrived, or a missing answer counts as unreadable."""
        return self.record.is_finished or (self.counts_unanswered and self.record.status is Status.INFRA_ERROR)

    @property
    def oddity(self) -> str | None:
        """Return what is odd about an answer: its `note`, or that it consists only of reasoning."""
        record = self.record
        is_thoughts = record.finish_reason == "stop" and record.reasoning and not (record.text or "").strip()
        return record.note or (ALL_REASONING if is_thoughts else None)

    @property
    def as_scored(self) -> Scored:
        """Return the sample in the form that a task's statistics take."""
        return Scored(self.example, self.prediction)


@dataclass(frozen=True, slots=True)
class ReadRun:
    """The samples of a run folder, parsed but not scored. Samples with hidden references are included."""

    folder: Path
    description: RunDescription
    task: Task
    examples: ExampleSet
    samples: tuple[ScoredSample, ...]
    reading: Reading
    left_out: int
    """Number of finished records in the logs that do not belong to this run."""


TaskOptions: TypeAlias = Mapping[str, object] | None
"""Task options and `READINGS` for reading the answers. None means the options of the run's start."""


def read_samples(
    folder: str | Path, *, data: Location = None, root: Location = None, options: TaskOptions = None
) -> ReadRun:
    """Return the samples of a run folder without writing files. Arguments and errors are the same as for `score`."""
    folder = Path(folder)
    description = read_run(folder)
    reading, task_options = split_options(options or {}, description.identity.model)
    task = run_task(description, task_options)
    examples = open_run_examples(folder, description, data, root)
    with run_records(folder, description) as log_reader:
        if log_reader.left_out:
            log.warning("%s: %d records are not of this run: left out", folder, log_reader.left_out)
        records = [reading.read(record) for record in log_reader]
    by_example = {example.example_id: example for example in examples.examples}
    unknown = next((record.example_id for record in records if record.example_id not in by_example), None)
    if unknown is not None:
        raise DataError(
            f"{folder / CONFIG_FILE}: its {len(by_example)} examples do not hold {unknown!r:.200}, which was asked. "
            "Fix: undo what was changed there (data.limit, identity.split), or start the run with the same command "
            "again"
        )
    if not description.imported:
        # The log of an imported run keeps the original order, since the release's scores depend on it.
        order = {example_id: position for position, example_id in enumerate(by_example)}
        records.sort(key=lambda record: (order[record.example_id], record.repetition))
    samples = []
    for example_id, answers in groupby(records, lambda record: record.example_id):
        readings: dict[str, Prediction | ParseError] = {}  # repetitions often give the same answer
        example = by_example[example_id]
        samples += [read_sample(task, reading.box_format, example, each, readings) for each in answers]
    return ReadRun(folder, description, task, examples, tuple(samples), reading, log_reader.left_out)


def run_task(description: RunDescription, options: Mapping[str, object]) -> Task:
    """Return the task as the run asked it, with `options` for reading and scoring.

    Raises:
        ConfigError: an option is unknown or belongs to the run, or the task now has another version.
    """
    identity = description.identity
    task_type = task_class(identity.benchmark, identity.task)
    if identity.task_version != task_type.version:
        raise ConfigError(
            f"{identity.benchmark}/{identity.task} was asked as version {identity.task_version}, but is now "
            f"{task_type.version}: its rules have changed. "
            "Fix: start a new run, or score it with the package that ran it"
        )
    added = {name: option.default for name, option in task_type.options.items() if option.is_added}
    asked_by = (
        added | identity.options | ({"protocol": description.protocol} if "protocol" in task_type.options else {})
    )
    for name, value in options.items():
        if name in asked_by and asked_by[name] != value:
            raise ConfigError(
                f"option {name} changes the questions: this run used {asked_by[name]!r}. Fix: start a new run"
            )
    chosen = {**description.options, **asked_by, **options}
    refuse_unfetched(task_type, chosen, known=options)
    task = task_type(description.wording, options=chosen)
    task.run_answers = description.run_answers
    return task


def refuse_unfetched(task: type[Task], chosen: Mapping[str, object], *, known: Collection[str] = ()) -> None:
    """Refuse options of a run folder that would start a download from the Hub, since the folder may come from a
    stranger.

    Defaults, folders and entries in the Hub client's cache are accepted.

    Args:
        known: names of options that the user set.

    Raises:
        ConfigError: there is such an option. The message names it.
    """
    for name in chosen.keys() & task.options.keys() - set(known):
        option, value = task.options[name], str(chosen[name])
        if option.fetched_with is None or value == option.default:
            continue
        other, reading_value = option.fetched_with
        if chosen.get(other, task.options[other].default) == reading_value and not is_on_this_machine(value):
            others = " or ".join(f"{other}={each}" for each in task.options[other].choices if each != reading_value)
            raise ConfigError(
                f"option {name}: {value!r:.200} is not on this machine, and what only a run folder names is not "
                f"fetched. Fix: say --option {name}={value:.200} if you trust it, or --option {others}"
            )


def read_sample(
    task: Task,
    box_format: BoxFormat,
    example: Example,
    record: SampleRecord,
    readings: dict[str, Prediction | ParseError] | None = None,
) -> ScoredSample:
    """Parse a logged answer again, without scoring it.

    As in the release, a truncated answer counts if it can be read. If the task's parser raises an error, the status is
    `Status.TASK_ERROR`, and the sample does not count against the model.

    Args:
        readings: maps the text of each answer to the example to its parsed form. This answer is added.
    """
    reading, readings = None, {} if readings is None else readings
    if record.text is not None and record.status is not Status.REFUSED:
        try:
            if record.text not in readings:
                with guard(task, "parse", example):
                    readings[record.text] = task.parse(record.text, example.inputs, box_format)
            reading = readings[record.text]
        except TaskError as error:
            return as_faulty(ScoredSample(example, record, None, counts_unanswered=task.counts_provider_errors), error)
    prediction = reading if isinstance(reading, Prediction) else None
    was_faulty = record.status is Status.TASK_ERROR and record.text is not None  # in logs of other harnesses
    if was_faulty or record.status in (Status.OK, Status.PARSE_ERROR):  # by current rules, not the logged status
        reason = reading.reason if isinstance(reading, ParseError) else None
        if record.status is Status.PARSE_ERROR and prediction is None:
            reason = record.error or reason
        status = Status.PARSE_ERROR if prediction is None else Status.OK
        if (status, reason) != (record.status, record.error):
            record = msgspec.structs.replace(record, status=status, error=reason)
    return ScoredSample(example, record, prediction, counts_unanswered=task.counts_provider_errors)


def as_faulty(sample: ScoredSample, error: TaskError) -> ScoredSample:
    """Mark a sample as one that the task cannot read or score. Such a sample does not count."""
    record = msgspec.structs.replace(sample.record, status=Status.TASK_ERROR, error=str(error))
    return replace(sample, record=record, prediction=None, scores={})


def mark_faulty(task: Task, samples: Iterable[ScoredSample]) -> tuple[ScoredSample, ...]:
    """Return all samples. If the task's statistics fail on a sample, the sample becomes faulty (`as_faulty`)."""

    def mark(sample: ScoredSample) -> ScoredSample:
        try:
            if sample.is_counted:
                with guard(task, "statistics", sample.example):
                    ResampledRepetition.of(task, [sample.as_scored], sample.example).statistics.scores()
        except TaskError as error:
            return as_faulty(sample, error)
        return sample

    return tuple(map(mark, samples))


@dataclass(frozen=True)
class CountedSamples:
    """The counted samples of one repetition. Each is compared with the reference only once."""

    samples: tuple[ScoredSample, ...]
    resampled: ResampledRepetition

    def subset(self, samples: Iterable[ScoredSample]) -> ResampledRepetition:
        """Return the samples of this repetition that occur in `samples`, in the order of this repetition."""
        places = {self._places.get(sample.name) for sample in samples}
        positions = sorted(place for place in places if place is not None)
        return self.resampled if len(positions) == len(self.samples) else self.resampled.subset(positions)

    @cached_property
    def _places(self) -> dict[tuple[str, int], int]:
        return {sample.name: place for place, sample in enumerate(self.samples)}


Counted = Mapping[int, CountedSamples]
"""Maps each repetition to its counted samples, in order."""


def counted_samples(task: Task, samples: Iterable[ScoredSample]) -> dict[int, CountedSamples]:
    """Score all samples that count. Only this function compares answers with the reference.

    Raises:
        TaskError: the task cannot compute their statistics.
    """
    counted = {}
    for repetition, group in by_repetition(samples).items():
        subject = f"{len(group)} samples of repetition {repetition}"
        with guard(task, "statistics", subject):
            resampled = ResampledRepetition.of(task, [sample.as_scored for sample in group], subject)
            columns = resampled.statistics.scores()
        rows = [*zip(*(values.tolist() for values in columns.values()), strict=True)]
        scores = {row: dict(zip(columns, row, strict=True)) for row in dict.fromkeys(rows)}  # few rows differ
        with_scores = (replace(sample, scores=scores[row]) for sample, row in zip(group, rows, strict=True))
        counted[repetition] = CountedSamples(tuple(with_scores), resampled)
    return counted


def by_repetition(samples: Iterable[ScoredSample]) -> dict[int, list[ScoredSample]]:
    """Group the samples that count by repetition."""
    samples_of: dict[int, list[ScoredSample]] = {}
    for sample in samples:
        if sample.is_counted:
            samples_of.setdefault(sample.record.repetition, []).append(sample)
    return dict(sorted(samples_of.items()))


def group_metric(
    task: Task, counted: Counted, group: Iterable[ScoredSample], *, intervals: bool = True
) -> MetricValue | None:
    """Return the primary score of a group of samples over repetitions, with an interval over resampling units.

    Args:
        counted: all samples of the run that count.
        intervals: whether to compute the interval.

    Returns:
        The score. None if no sample of the group counts, or if a repetition lacks the score.
    """
    name = task.primary
    group_of: dict[int, list[ScoredSample]] = defaultdict(list)
    for sample in group:
        group_of[sample.record.repetition].append(sample)
    repetitions = (counted[number].subset(group_of[number]) for number in counted if group_of[number])
    parts = [part for part in repetitions if part.units]
    values = [float(part.statistics.compute_metrics(np.ones((1, part.statistics.size)))[name][0]) for part in parts]
    if not values or np.isnan(values).any():
        return None
    return metric_value(values, repetition_intervals(parts).get(name) if intervals else None)


def metric_value(values: Sequence[float], interval: Interval | None = None, *, is_even: bool = True) -> MetricValue:
    """Return the mean and sample standard deviation over repetitions.

    There is no deviation if repetitions cover different examples.
    """
    return MetricValue(
        mean=statistics.fmean(values),
        std=statistics.stdev(values) if len(values) > 1 and is_even else None,
        repetitions=list(values),
        low=interval.low if interval else None,
        high=interval.high if interval else None,
    )


def run_metrics(counted: Counted, details: Sequence[Mapping[str, Json]]) -> dict[str, MetricValue]:
    """Return the mean of each number over repetitions, with an interval if there are at least two resampling units.

    `details` holds the `published_metrics` of each repetition. Numbers that a repetition lacks are left out.
    """
    # A spread over repetitions describes the model only if all repetitions answered the same examples.
    example_sets = {frozenset(sample.example.example_id for sample in group.samples) for group in counted.values()}
    intervals = repetition_intervals([group.resampled for group in counted.values()])
    return {
        name: metric_value(values, intervals.get(name), is_even=len(example_sets) <= 1)
        for name, values in shared_metrics(details).items()
    }


def shared_metrics(details: Sequence[Mapping[str, Json]]) -> dict[str, list[float]]:
    """Return the values of every number that all repetitions have, in order."""
    return {
        name: [cast("float", detail[name]) for detail in details]
        for name, value in details[0].items()
        if isinstance(value, float) and all(name in detail for detail in details)
    }
