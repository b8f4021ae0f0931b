"""Score a run from its sample log and write `results.json`. No model is asked, so scoring again is free.

A run may be scored with several sets of options. Each set has its own files in the run folder:

results.json, scores.jsonl                      with the options that the run was started with
results.<digest>.json, scores.<digest>.jsonl    with other options (`score --option`); the file names them
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from barista_bench.core.guarding import guard, note_fault
from barista_bench.core.status import Status, status_counts
from barista_bench.core.task import Task
from barista_bench.data.dataset import ExampleSet
from barista_bench.errors import BaristaError, DataError, TaskError
from barista_bench.files.writing import atomic_write
from barista_bench.runs.described import ModelInfo, Prices
from barista_bench.runs.log.sessions import session_seconds
from barista_bench.runs.run_folder import CONFIG_FILE, Location, OpenedTask, other_options
from barista_bench.runs.score.box_fit import box_fit
from barista_bench.runs.score.costs import costs_of, token_sums
from barista_bench.runs.score.letters import Letters
from barista_bench.runs.score.result_files import claim_result_files, log_options, stored_options
from barista_bench.runs.score.results import (
    BoxFit,
    Breakdown,
    DatasetInfo,
    MetricValue,
    PartInfo,
    PromptsInfo,
    Results,
    SampleCoverage,
    Timing,
    summary_line,
    write_results,
)
from barista_bench.runs.score.samples import (
    Counted,
    ReadRun,
    ScoredSample,
    TaskOptions,
    as_faulty,
    counted_samples,
    group_metric,
    mark_faulty,
    read_samples,
    run_metrics,
)
from barista_bench.runs.score.stopping import StoppedRun, read_decision
from barista_bench.version import __version__

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JudgedScores:
    """The scores of one judge. They replace the task's own scores when models are ranked.

    Args:
        name: name of the score: the only criterion, or the mean over several criteria.
        metric: mean of the score over repetitions, or None without verdicts.
        scores: scores from 0 to 1, by example id and repetition. Samples without a verdict are absent.
    """

    judge: str
    name: str
    metric: MetricValue | None
    scores: Mapping[tuple[str, int], float]


@dataclass(frozen=True, slots=True, repr=False)
class ScoredRun:
    """All that a report needs from one run folder.

    `name` is the value of `run --name`; empty if not given. `judged` is set if a judge ranks the run.
    """

    folder: Path
    task: Task
    examples: ExampleSet
    samples: tuple[ScoredSample, ...]
    results: Results
    counted: Counted
    name: str = ""
    judged: JudgedScores | None = None

    @property
    def score_note(self) -> str:
        """Return the origin of the score of a text task: the judge, or `(floor)` without one. Empty for other tasks."""
        if self.judged is not None:
            return f"{self.judged.name} by {self.judged.judge}"
        return f"{self.task.floor} (floor)" if self.task.floor else ""

    @property
    def ranking_metric(self) -> MetricValue | None:
        return self.results.primary_metric if self.judged is None else self.judged.metric

    def score_of(self, sample: ScoredSample) -> float | None:
        """Return a sample's score from 0 to 1, or None. If a judge ranks the run, this is the judge's score."""
        if not sample.is_counted:
            return None
        if self.judged is not None:
            return self.judged.scores.get(sample.name)
        score = sample.scores.get(self.task.sample_score)
        return score if score is not None and math.isfinite(score) else None

    def __repr__(self) -> str:
        return f"<ScoredRun {self.folder}: {summary_line(self.results)}>"


def score(
    folder: str | Path, *, data: Location = None, root: Location = None, options: TaskOptions = None
) -> ScoredRun:
    """Score a run folder. Write `results.json`, and `scores.jsonl` with the scores of every sample.

    If the options differ from the options of the run's start, scores go to separate files (`result_files.py`).

    Args:
        folder: a run folder made by `run`.
        data: current location of the dataset, if it has moved (`runs/data_location.py`).
        root: current location of the videos of a linked set, if they have moved.
        options: task options that replace the options of the run. Only options that do not change the questions are
            allowed.

    Raises:
        ConfigError: an option is unknown, or changes the questions.
        DataError: the folder is not a run, the dataset is not the dataset of the run, no sample is finished, or the
            task's primary metric is not defined for the finished samples.
    """
    run = _scored_run(folder, data, root, options)
    results_file, scores_file = claim_result_files(run.folder, run.results)
    with atomic_write(scores_file) as partial, partial.open("w", encoding="utf-8") as file:
        file.writelines(score_lines(run.samples))
    write_results(run.results, results_file)
    return run


def read_scored(
    folder: str | Path, *, data: Location = None, root: Location = None, options: TaskOptions = None
) -> ScoredRun:
    """Score a run without writing files. Log the options, unless they are the defaults and no other scores exist.

    If `options` is None, use the options of the scores saved in the folder (`stored_options`).
    """
    run = _scored_run(folder, data, root, stored_options(Path(folder)) if options is None else options)
    log_options(run.folder, run.results)
    return run


def _scored_run(folder: str | Path, data: Location, root: Location, options: TaskOptions) -> ScoredRun:
    run = read_samples(folder, data=data, root=root, options=options)
    answer_states: dict[str, bool | TaskError] = {}
    for example in run.examples.examples:
        try:
            with guard(run.task, "has_answer", example):
                answer_states[example.example_id] = run.task.has_answer(example)
        except TaskError as error:
            answer_states[example.example_id] = error
    known_count = len(answer_states) - list(answer_states.values()).count(False)
    # If all answers are hidden, the task's own error explains the cause and the remedy.
    samples = tuple(
        as_faulty(sample, answer_state) if isinstance(answer_state, TaskError) else sample
        for sample in run.samples
        if (answer_state := answer_states[sample.example.example_id]) or not known_count
    )
    if 0 < known_count < len(run.examples):
        log.warning("%s: %d answers are hidden: not scored", folder, len(run.examples) - known_count)
    try:
        counted = counted_samples(run.task, samples)
    except TaskError:  # a sample that the task cannot score does not affect other samples
        samples = mark_faulty(run.task, samples)
        counted = counted_samples(run.task, samples)
    faults = [s.record.error for s in samples if s.record.status is Status.TASK_ERROR and s.record.error]
    for fault in faults:
        note_fault(run.task, fault)
    if not any(s.record.is_finished for s in samples):
        if faults:
            raise TaskError(faults[0])
        others = f"; {run.left_out} are not of the run that {CONFIG_FILE} describes" if run.left_out else ""
        remedy = "start the run with the same command again, which keeps its answers"
        raise DataError(f"{folder}: no finished sample to score{others}. Fix: {remedy}")
    with_scores = {sample.name: sample for group in counted.values() for sample in group.samples}
    samples = tuple(with_scores.get(sample.name, sample) for sample in samples)
    results = _results(run, samples, counted, known_count)
    if results.coverage.missing and (decision := read_decision(run.folder)) is not None:
        results = _stopped_results(run, results, decision)
    elif results.primary not in results.metrics:
        raise DataError(
            f"{folder}: {results.primary} is not defined for these {results.coverage.scored} samples: too few can be "
            "compared. Fix: run more examples (without a limit, or with a larger one)"
        )
    return ScoredRun(run.folder, run.task, run.examples, samples, results, counted, run.description.name)


def split_stopped(runs: Iterable[ScoredRun]) -> tuple[list[ScoredRun], list[ScoredRun]]:
    """Return the runs with a score, and the runs that stopped early and have no score."""
    complete, stopped = list[ScoredRun](), list[ScoredRun]()
    for run in runs:
        (complete if run.results.stopped is None else stopped).append(run)
    return complete, stopped


def score_tasks(
    opened_tasks: Iterable[OpenedTask], root: Location = None
) -> tuple[list[ScoredRun], dict[str, BaristaError]]:
    """Return the scored tasks of a run, and the errors of tasks that cannot be scored.

    A failure does not affect other tasks.
    """
    runs, unscored = [], {}
    for opened_task in opened_tasks:
        try:
            runs.append(score(opened_task.folder, data=opened_task.data, root=root))
        except BaristaError as error:
            unscored[f"{opened_task.task.benchmark}/{opened_task.task.name}"] = error
    return runs, unscored


def _results(run: ReadRun, samples: Sequence[ScoredSample], counted: Counted, known_count: int) -> Results:
    """Compute the results from all samples with a known reference. `known_count` is the number of their examples."""
    description, task, identity = run.description, run.task, run.description.identity
    scored, options, part = [s for s in samples if s.is_counted], other_options(task), description.data.part
    with guard(task, "statistics", f"{len(scored)} samples"):
        details = [group.resampled.statistics.published_metrics() for group in counted.values()]
    return Results(
        barista_bench=__version__,
        protocol=description.protocol,
        options=dict(options),
        changed_options={name: value for name, value in options.items() if value != task.options[name].default},
        reading=dict(run.reading.changes),
        model=run.reading.info(ModelInfo(**identity.model.model_dump())),
        dataset=DatasetInfo(
            benchmark=task.benchmark,
            task=task.name,
            task_version=task.version,
            config=task.name,
            split=identity.split,
            limit=description.data.limit,
            examples=known_count,
            content_hash=run.examples.content_hash,
            part=None if part is None else PartInfo(words=part.words, asked=len(part.ids), of=part.of),
        ),
        generation=identity.generation,
        repetitions=description.repetitions,
        trained_on=_count_trained_on(run),
        coverage=SampleCoverage(
            expected=known_count * description.repetitions,
            scored=sum(s.record.is_finished for s in samples),
            answered=sum(s.prediction is not None for s in scored),
            statuses=status_counts(s.record.status for s in samples),
            dropped=sum(s.prediction.dropped for s in scored if s.prediction is not None),
        ),
        notes=dict(Counter(note for s in samples if s.record.is_finished and (note := s.oddity)).most_common()),
        box_fit=_box_fit(run, scored),
        letters=_letters(task, scored),
        prompts=PromptsInfo(version=task.prompts.version, sha256=task.prompts.sha256, wording=task.prompts.wording),
        primary=task.primary,
        metrics=run_metrics(counted, details),
        breakdowns={key: _breakdown(task, scored, counted, key) for key in task.breakdown_keys},
        details=cast("Any", details),
        versions=description.versions,
        timing=_timing(run.folder, samples, description.prices),
    )


def _stopped_results(run: ReadRun, results: Results, decision: StoppedRun) -> Results:
    """Return results with the decision instead of scores.

    Scores would be biased: the run stopped when they looked clear.

    Raises DataError if the answers are read by other rules than for the decision.
    """
    if results.reading or results.options != {**results.options, **run.description.all_options}:
        raise DataError(
            f"{run.folder}: stopped early, and was decided by the run's own options and reading. Fix: score it without "
            "--option, --box-format and --think-tags, or start the run again without --until"
        )
    return results.model_copy(update={"stopped": decision, "metrics": {}, "breakdowns": {}, "details": []})


def _count_trained_on(run: ReadRun) -> int:
    """Count the run's videos on which the model was trained, by content. The list in `run.json` is ignored."""
    training = set(run.description.training_videos)
    return len(training.intersection(run.examples.video_hashes().values())) if training else 0


def _box_fit(run: ReadRun, samples: Sequence[ScoredSample]) -> BoxFit | None:
    try:
        return box_fit(run.task, run.reading.box_format, samples)
    except TaskError:  # affects only display; the code that draws these samples reports the fault
        return None


def _breakdown(task: Task, samples: Sequence[ScoredSample], counted: Counted, key: str) -> dict[str, Breakdown]:
    """Return the primary score by value of a metadata key.

    Values for which a repetition lacks the score are left out.
    """
    groups: dict[str, list[ScoredSample]] = defaultdict(list)
    for sample in samples:
        groups[str(sample.example.metadata.get(key))].append(sample)
    return {
        value: Breakdown(examples=len({sample.example.example_id for sample in groups[value]}), metric=primary)
        for value in sorted(groups)
        if (primary := group_metric(task, counted, groups[value])) is not None
    }


def _letters(task: Task, samples: Iterable[ScoredSample]) -> Letters | None:
    """Count letters over readable answers with one choice to questions with one right choice.

    Return None without such answers, or if the task does not define the choices of an answer.
    """
    answered, right = Counter[str](), Counter[str]()
    for sample in samples:
        prediction, example = sample.prediction, sample.example
        try:
            with guard(task, "choices", example):
                choices = task.choices(example)
                is_lettered = prediction and choices and all(re.fullmatch("[A-Z]", label) for label in choices)
                of_answer = task.answered_choices(prediction) if prediction and is_lettered else ()
                of_reference = task.correct_choices(example) if is_lettered else ()
        except TaskError:  # the task's statistics report the fault
            return None
        if len(of_answer) == len(of_reference) == 1 and of_answer[0] in choices:
            answered[of_answer[0]] += 1
            right[of_reference[0]] += 1
    return Letters(answered=dict(sorted(answered.items())), right=dict(sorted(right.items()))) if answered else None


def _timing(folder: Path, samples: Sequence[ScoredSample], prices: Prices) -> Timing:
    sessions = session_seconds(folder)
    seconds: Counter[str] = Counter()
    for session in sessions:
        seconds.update(session)
    records = [sample.record for sample in samples]
    tokens_in, tokens_out, cached = token_sums(records)
    busy = seconds["wait"] + seconds["generate"]
    return Timing(
        sessions=len(sessions),
        seconds={name: round(value, 3) for name, value in sorted(seconds.items())},
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        samples_per_second=round(len(samples) / busy, 3) if busy > 1e-6 else None,
        output_tokens_per_second=round(tokens_out / busy, 3) if busy > 1e-6 else None,
        cost=prices.cost(tokens_in, tokens_out, cached),
        costs=costs_of(records, prices),
    )


def score_lines(samples: Sequence[ScoredSample]) -> Iterator[str]:
    """Yield the lines of `scores.jsonl`."""
    encode = json.JSONEncoder(sort_keys=True).encode
    for sample in samples:
        line = {
            "example_id": sample.example.example_id,
            "video_id": sample.example.video_id,
            "repetition": sample.record.repetition,
            "status": sample.record.status,
            "scores": sample.scores if sample.is_counted else None,
        }
        yield encode(line) + "\n"
