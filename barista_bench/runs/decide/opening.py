"""Check that the tasks of a run can be decided early, and read the complete run to compare with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Scored
from barista_bench.core.guarding import guard
from barista_bench.core.option_order import CIRCULAR, NAME as ORDER
from barista_bench.core.statistics import Floats, MicroF1, SampleStatistics, SumStatistics
from barista_bench.core.task import Task
from barista_bench.data.dataset import ExampleSet
from barista_bench.errors import ConfigError, DataError, TaskError
from barista_bench.runs.decide.contest import Contest, Goal, Rival
from barista_bench.runs.decide.order import AskingOrder
from barista_bench.runs.decide.stopping import WatchedContest
from barista_bench.runs.log_reader import run_records
from barista_bench.runs.run_folder import CONFIG_FILE, OpenedTask, RunDescription, other_options, read_run
from barista_bench.runs.score.labels import own_name
from barista_bench.runs.score.samples import ScoredSample, mark_faulty, read_sample
from barista_bench.runs.score.scoring import ScoredRun, read_scored
from barista_bench.runs.score.stopping import StoppedRun, write_decision

_TIE = 1e-9


def open_contest(
    opened: OpenedTask, goal: Goal, against: Path | None, *, repetitions: int, max_new_tokens: int, root: Path | None
) -> Contest:
    """Return the contest of one task before anything is asked.

    Raises:
        ConfigError: the metric cannot be decided early.
        DataError: references are hidden, or the run to compare with is incomplete or asked other questions.
    """
    task, examples = opened.task, opened.examples
    refuse_undecidable(task, goal, repetitions)
    if not all(task.has_answer(example) for example in examples.examples):
        raise DataError(f"{opened.data}: some answers are hidden. Fix: name a --split whose answers are known")
    least, most, condition = answer_bounds(task, examples, max_new_tokens)
    rival = None
    if against is not None:
        run = read_rival(rival_folder(against, task), task, examples, opened.data, root)
        rival = Rival(short_label(run), run.results.metrics[task.primary].mean, rival_offsets(run))
    order = AskingOrder.of(examples.content_hash, unit_names(task, examples, goal))
    return Contest(
        goal, order, least, most, metric=task.primary, rival=rival, repetitions=repetitions, condition=condition
    )


def refuse_undecidable(task: Task, goal: Goal, repetitions: int) -> None:
    """Raise ConfigError if the task's primary metric cannot be decided early."""
    name = f"{task.benchmark}/{task.name}: {task.primary}"
    if str(task.chosen.get(ORDER, "")).startswith(CIRCULAR):
        raise ConfigError(
            f"{name} of circular choices counts whole questions, and cannot be decided early. "
            "Fix: leave until out, or order=circular"
        )
    if task.decided_by is None:
        raise ConfigError(
            f"{name} is declared neither as a mean of sample scores nor as a micro F1, so it cannot be decided early. "
            "Fix: leave until out, or name other tasks"
        )
    if isinstance(task.decided_by, MicroF1) and repetitions > 1:
        raise ConfigError(f"{name} of {repetitions} repetitions cannot be decided early. Fix: say --repetitions 1")
    if isinstance(task.decided_by, MicroF1) and goal.kind == "decided-over-videos":
        raise ConfigError(f"{name} is no mean over videos. Fix: say --until decided")


def unit_names(task: Task, examples: ExampleSet, goal: Goal) -> list[str]:
    """Return the name of each example's unit (E,).

    A unit is the example itself, its video, or a group of examples that the task scores together.
    """
    if goal.kind == "decided-over-videos":
        return [example.video_id for example in examples.examples]
    if task.scores_whole_units:
        return [task.resampling_unit(example) for example in examples.examples]
    return [example.example_id for example in examples.examples]


def answer_bounds(task: Task, examples: ExampleSet, max_new_tokens: int) -> tuple[Floats, Floats, str]:
    """Return part and whole of the worst and of the best possible answers (E, 2), and their assumption in words."""
    count = len(examples)
    if not isinstance(task.decided_by, MicroF1):
        return np.column_stack([np.zeros(count), np.ones(count)]), np.ones((count, 2)), ""
    with guard(task, "statistics", f"{count} examples"):
        statistics = task.statistics([Scored(example, None) for example in examples.examples])
    assert isinstance(statistics, SumStatistics)
    true_entries = statistics.column(task.decided_by.reference)
    entries = max_new_tokens // task.decided_by.entry_tokens
    least = np.column_stack([np.zeros(count), true_entries + entries])
    return least, np.column_stack([2 * true_entries] * 2), f"if no answer lists more than {entries} entries"


def score_terms(task: Task, statistics: SampleStatistics) -> Floats:
    """Return part and whole of each sample (S, 2). Their sums give the primary metric."""
    if isinstance(task.decided_by, MicroF1):
        assert isinstance(statistics, SumStatistics)
        matched, predicted, reference, _ = task.decided_by
        wholes = statistics.column(predicted) + statistics.column(reference)
        return np.column_stack([2 * statistics.column(matched), wholes])
    scores = statistics.scores()[task.sample_score]
    return np.column_stack([scores, np.ones(len(scores))])


def rival_folder(against: Path, task: Task) -> Path:
    """Return the run folder of a task: `against` itself, or the folder TASK or BENCHMARK/TASK in it."""
    places = (against, against / task.name, against / task.benchmark / task.name)
    for place in places:
        if (place / CONFIG_FILE).is_file() and read_run(place).identity.task == task.name:
            return place
    raise DataError(f"{against}: no run of {task.benchmark}/{task.name} here. Fix: name a complete run of this task")


def read_rival(folder: Path, task: Task, examples: ExampleSet, data: str | None, root: Path | None) -> ScoredRun:
    """Read the complete run to compare with, by the rules of `task`.

    Raises:
        DataError: the run is incomplete, asked other questions, or is read by other rules.
    """
    identity = read_run(folder).identity
    facts = (identity.task_version, identity.content_hash, task.protocol)
    if facts != (task.version, examples.content_hash, read_run(folder).protocol):
        raise DataError(
            f"{folder}: is of other questions or rules than this run. "
            "Fix: compare with a run of the same dataset, split, limit, version and protocol"
        )
    run = read_scored(folder, data=data, root=root, options=other_options(task))
    if not run.results.coverage.is_complete:
        raise DataError(f"{folder}: {run.results.coverage.missing} samples are missing. Fix: finish this run first")
    return run


def rival_offsets(run: ScoredRun) -> Floats:
    """Return the terms of a complete run at its own scores (E,), averaged over repetitions. They add up to 0.

    Raises:
        ConfigError: the sums of the terms do not give the primary metric, so the task's `decided_by` is wrong.
    """
    position = {example.example_id: index for index, example in enumerate(run.examples.examples)}
    offsets = np.zeros(len(position))
    for number, (repetition, group) in enumerate(run.counted.items()):
        terms = score_terms(run.task, group.resampled.statistics)
        part, whole = terms.sum(axis=0)
        score = run.results.metrics[run.task.primary].repetitions[number]
        if abs(part - score * whole) > _TIE * max(1.0, whole):
            raise ConfigError(
                f"{run.folder}: {run.task.primary} of repetition {repetition} is not what `decided_by` of "
                f"{run.task.name} declares. Fix: leave until out"
            )
        index = [position[sample.example.example_id] for sample in group.samples]
        offsets[index] += (terms[:, 0] - score * terms[:, 1]) / len(run.counted)
    return offsets


def short_label(run: ScoredRun) -> str:
    """Return the short model name that decisions show."""
    return own_name(run.name, run.results.model)


class WatchedRun(WatchedContest):
    """The contest of one task, and its run folder."""

    def __init__(
        self, contest: Contest, folder: Path, task: Task, examples: ExampleSet, only_runs: int, box_format: BoxFormat
    ) -> None:
        super().__init__(contest, [example.video_id for example in examples.examples])
        self._folder, self._task, self._box_format = folder, task, box_format
        self._by_id = {example.example_id: (index, example) for index, example in enumerate(examples.examples)}
        self._description: RunDescription = read_run(folder)
        self._repetitions = only_runs
        self._asked: set[tuple[str, int]] = set()
        self._taken: set[tuple[str, int]] = set()
        self._label = own_name(self._description.name, self._description.identity.model)

    def read(self) -> None:
        samples = []
        with run_records(self._folder, self._description) as records:
            for record in records:
                name = record.example_id, record.repetition
                self._asked.add(name)
                if record.is_finished and name not in self._taken:
                    self._taken.add(name)
                    example = self._by_id[record.example_id][1]
                    samples.append(read_sample(self._task, self._box_format, example, record))
        for sample, (part, whole) in sample_terms(self._task, samples).items():
            self.contest.add(self._by_id[sample[0]][0], part, whole)
        for example_id, (index, _) in self._by_id.items():
            self.is_asked[index] = all(
                (example_id, repetition) in self._asked for repetition in range(self._repetitions)
            )

    def write(self, decision: StoppedRun) -> str:
        write_decision(self._folder, decision)
        return decision.sentence(self._label)


def sample_terms(task: Task, samples: Iterable[ScoredSample]) -> Mapping[tuple[str, int], Sequence[float]]:
    """Map (example id, repetition) to part and whole. Samples that the task cannot read or score are left out."""
    samples = [sample for sample in samples if sample.is_counted]
    try:
        terms = _terms(task, samples)
    except TaskError:
        samples = [sample for sample in mark_faulty(task, samples) if sample.is_counted]
        terms = _terms(task, samples)
    return {sample.name: term for sample, term in zip(samples, terms.tolist(), strict=True)}


def _terms(task: Task, samples: Sequence[ScoredSample]) -> Floats:
    if not samples:
        return np.zeros((0, 2))
    with guard(task, "statistics", f"{len(samples)} samples"):
        return score_terms(task, task.statistics([sample.as_scored for sample in samples]))
