"""Ask a model for all samples that the logs lack, and log one record per sample.

All tasks share one stream of requests.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import NoReturn

import msgspec
from PIL import Image
from tqdm import tqdm

from barista_bench.core.example import Example
from barista_bench.core.frame_times import FrameTimes
from barista_bench.core.guarding import guard
from barista_bench.core.prompt import Prompt
from barista_bench.core.status import Status
from barista_bench.core.task import Task
from barista_bench.data.dataset import ExampleSet
from barista_bench.data.loaded_example import Pictures
from barista_bench.data.shared_frames import FrameStore, StageClock
from barista_bench.errors import BaristaError, DataError, TaskError
from barista_bench.models import Completion, Failure, Model, Request, StreamingModel
from barista_bench.models.base import sees_videos
from barista_bench.runs.ask.answers import Spending, answer_each, answer_fields, answer_status, with_steps
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.pictures import AHEAD_BYTES, PictureError, decoded_size, pictures_for
from barista_bench.runs.ask.prefetch import decode_ahead
from barista_bench.runs.ask.shard import Shard
from barista_bench.runs.decide.stopping import Stopping
from barista_bench.runs.log.inputs import AskedInput, asks_in_steps, sample_keys, sample_seed
from barista_bench.runs.log.sample_log import SampleLog, SampleRecord, logged_logprobs, sample_digest
from barista_bench.runs.log.sessions import Session
from barista_bench.runs.log_reader import StepLog, finished_samples


@dataclass(slots=True)
class TaskRun:
    """One task of a start: its examples and their prompts, its log, and its counts so far.

    `steps` is the log of intermediate answers, or None if the task asks in one step. `only` holds the ids of the
    examples to ask, or None for all. `change` is applied to every request, for example to add an aid.
    """

    task: Task
    examples: ExampleSet
    inputs: Sequence[AskedInput]
    folder: Path
    log: SampleLog
    rank: int | None = None
    session: Session = field(default_factory=Session)
    steps: StepLog | None = None
    only: frozenset[str] | None = None
    change: Callable[[Request], Request] | None = None


_NO_QUESTION = Prompt("", ())
"""Stands for the prompt of an example that cannot be asked."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """An example and the repetitions that still need an answer. `prompt` follows the answers in `steps`."""

    run: TaskRun
    index: int
    example: Example
    asked_input: AskedInput
    keys: dict[int, str]
    prompt: Prompt
    steps: tuple[SampleRecord, ...] = ()


_Ready = tuple[_Pending, Pictures | PictureError]
_Settled = tuple[_Pending, SampleRecord | TaskError]
"""A sample that is not asked: all its answers are logged, or the task cannot make its question."""


class Asker:
    """Asks about this process's share of the videos, for one start of a run.

    Args:
        decodes: whether requests hold images. False if the model reads the frames on another machine.
        spending: the spending so far and its limits.
    """

    def __init__(
        self, model: Model, config: RunConfig, shard: Shard, *, decodes: bool = True, spending: Spending | None = None
    ) -> None:
        self.model, self.config, self.shard = model, config, shard
        self.spending = spending
        self.clock = StageClock()
        self.store = FrameStore(max_bytes=config.frame_cache_mib * 2**20, clock=self.clock)
        self._decodes, self._timed = decodes, sees_videos(model.identity)
        self._next_questions: list[_Pending] = []

    def ask(self, task_runs: Sequence[TaskRun], stopping: Stopping | None = None) -> None:
        """Ask for all samples that the logs lack, and append each answer as soon as it arrives.

        Args:
            stopping: asks block by block until every task is decided. None asks all samples without a stop.

        Raises:
            BudgetError: the remaining requests do not fit the spending limits.
        """
        pending, settled = self._all_pending(task_runs)
        samples = sum(len(entry.keys) for entry in pending)
        for sample in settled:
            self._log_settled(*sample)
        is_shown = self.config.progress and self.shard.rank == 0
        started = time.perf_counter()
        with self.store, tqdm(total=samples, desc="asking", unit="sample", disable=not is_shown) as bar:
            for part in [pending] if stopping is None else _blocks(task_runs, pending, stopping):
                while part:
                    # Requests are identified by their example, so each example has at most one pending request.
                    first: dict[str, _Pending] = {}
                    later = [entry for entry in part if first.setdefault(entry.example.example_id, entry) is not entry]
                    self._ask_round(list(first.values()), bar)
                    part = later + self._next_questions
                    self._next_questions = []
        self.clock.add("generate", max(0.0, time.perf_counter() - started - self.clock.seconds["wait"]))

    def _ask_round(self, pending: list[_Pending], bar: tqdm[NoReturn]) -> None:
        def place(entry: _Pending) -> tuple[str, int, int]:
            return entry.example.video_id, min(f.frame_index for f in entry.example.frames), entry.index

        # Sort by video and frame over all tasks, so that each frame is decoded once for all tasks.
        pending.sort(key=place)
        self.store.plan(frame for entry in pending if entry.prompt.image_count for frame in entry.example.frames)
        # Always close the iterator, so that no thread keeps working after an error of the model.
        with closing(self._ready(pending)) as ready:
            requests = self._timed_waits(self._requests(ready))
            for entry, completions, seconds in answer_each(self.model, requests, self.config.generation, self.spending):
                samples = zip(entry.keys.items(), completions, strict=True)
                done = sum(
                    self._log_answer(replace(entry, keys={repetition: key}), completion, seconds)
                    for (repetition, key), completion in samples
                )
                if self.spending:
                    samples_left = (bar.total or 0) - bar.n - done
                    bar.set_postfix_str(self.spending.outlook(samples_left), refresh=False)
                bar.update(done)

    def requests(self, task_runs: Sequence[TaskRun], *, decode: bool) -> Iterator[Request]:
        """Yield the requests that `ask` would send. Examples with unreadable media are skipped.

        If `decode` is False, a single pixel stands for each image.
        """
        pending, _ = self._all_pending(task_runs)
        if not decode:
            pixel = Image.new("RGB", (1, 1))
            yield from (self._request(entry, Pictures((pixel,) * entry.prompt.image_count)) for entry in pending)
            return
        with closing(self._ready(pending)) as ready:
            for entry, pictures in ready:
                if isinstance(pictures, Pictures):
                    yield self._request(entry, pictures)

    def _all_pending(self, task_runs: Sequence[TaskRun]) -> tuple[list[_Pending], list[_Settled]]:
        examples = [example for run in task_runs for example in run.examples.examples]
        videos = self.shard.videos(example.video_id for example in examples)
        pending: list[_Pending] = []
        settled: list[_Settled] = []
        for run in task_runs:
            for entry in self._open_examples(run, videos):
                if isinstance(entry.asked_input.question, TaskError):
                    settled.append((entry, entry.asked_input.question))
                elif run.steps is None:
                    pending.append(entry)
                else:
                    self._resume(entry, run.steps, pending, settled)
        return pending, settled

    def _open_examples(self, run: TaskRun, videos: frozenset[str]) -> Iterator[_Pending]:
        """Yield this process's examples without a complete answer in the log, each with its first question."""
        key_of = sample_keys(asdict(self.model.identity), asdict(self.config.generation))
        # Find the records that answer this run's requests. `run_records` defines the rule.
        finished = finished_samples(run.folder)
        for position, (example, asked_input) in enumerate(zip(run.examples.examples, run.inputs, strict=True)):
            if example.video_id not in videos or not (run.only is None or example.example_id in run.only):
                continue
            example_id, fingerprint = example.example_id, asked_input.fingerprint
            keys = {index: key_of(example_id, fingerprint, index) for index in range(self.config.repetitions)}
            open_keys = {
                repetition: key
                for repetition, key in keys.items()
                if sample_digest(key, fingerprint, example_id, repetition) not in finished
            }
            run.session.already_done += len(keys) - len(open_keys)
            if open_keys:
                question = asked_input.question if isinstance(asked_input.question, Prompt) else _NO_QUESTION
                yield _Pending(run, position, example, asked_input, open_keys, question)

    def _resume(self, entry: _Pending, log: StepLog, pending: list[_Pending], settled: list[_Settled]) -> None:
        """Continue each repetition of an example at its next unanswered step."""
        unbegun: dict[int, str] = {}
        for repetition, key in entry.keys.items():
            steps = log.logged_steps(key, entry.asked_input.fingerprint, entry.example.example_id, repetition)
            if not steps:
                unbegun[repetition] = key
                continue
            following = self._next_step(replace(entry, keys={repetition: key}), steps)
            if isinstance(following, _Pending):
                pending.append(following)
            else:
                settled.append(following)
        if unbegun:
            pending.append(replace(entry, keys=unbegun))

    def _next_step(self, entry: _Pending, steps: tuple[SampleRecord, ...]) -> _Pending | _Settled:
        """Return the question after these logged answers, or the last answer if no question follows."""
        task, example = entry.run.task, entry.example
        try:
            with guard(task, "follow_up", example):
                prompt = task.follow_up(example, tuple(step.text or "" for step in steps), self.model.box_format)
        except TaskError as error:
            return replace(entry, steps=steps), error
        if prompt is None:
            return replace(entry, steps=steps[:-1]), steps[-1]
        return replace(entry, steps=steps, prompt=prompt)

    def _ready(self, pending: Sequence[_Pending]) -> Generator[_Ready, None, None]:
        ahead = self.model.window if isinstance(self.model, StreamingModel) else 2 * self.model.batch_size
        return decode_ahead(
            pending,
            self._pictures,
            workers=self.config.workers,
            max_items=ahead,
            max_bytes=AHEAD_BYTES,
            size_of=decoded_size,
            group_of=lambda entry: entry.example.video_id,
        )

    def _requests(self, ready: Iterable[_Ready]) -> Iterator[tuple[_Pending, Request]]:
        for entry, pictures in ready:
            try:
                request = self._request(entry, pictures) if isinstance(pictures, Pictures) else pictures
            except (TaskError, DataError) as error:
                request = error
            if isinstance(request, Request):
                yield entry, request
            else:
                self._fail(entry, request)

    def _pictures(self, entry: _Pending) -> Pictures | PictureError:
        if not self._decodes or not entry.prompt.image_count:
            return Pictures(())
        try:
            loaded = entry.run.examples[entry.index]
            return pictures_for(self.model, loaded, entry.run.task, self.store, self.clock)
        except (DataError, TaskError) as error:
            return error

    def _request(self, entry: _Pending, pictures: Pictures) -> Request:
        task, example, step = entry.run.task, entry.example, len(entry.steps)
        with guard(task, "request_inputs", example):
            inputs = task.request_inputs(example)
        with guard(task, "answer_schema", example):
            schema = None if asks_in_steps(task) and not step else task.answer_schema(example)
        with guard(task, "choices", example):
            choices = task.choices(example)
        request = Request(
            request_id=example.example_id,
            prompt=entry.prompt,
            images=pictures.images,
            files=pictures.files,
            seeds=tuple(sample_seed(task, example.example_id, repetition, step) for repetition in entry.keys),
            inputs=inputs,
            schema=schema,
            choices=choices,
            times=self._times(entry) if self._timed and entry.prompt.image_count else None,
        )
        return entry.run.change(request) if entry.run.change else request

    def _times(self, entry: _Pending) -> FrameTimes | None:
        try:
            return entry.run.examples.frame_times(entry.index, entry.run.task)
        except DataError:  # unreadable media; decoding reports the error
            return None

    def _timed_waits(self, requests: Iterator[tuple[_Pending, Request]]) -> Iterator[tuple[_Pending, Request]]:
        """Count the time during which the model waits for the next request."""
        while True:
            with self.clock("wait"):
                request = next(requests, None)
            if request is None:
                return
            yield request

    def _log_answer(self, entry: _Pending, completion: Completion | Failure, seconds: float) -> bool:
        """Log one answer before the task sees it, and return whether the sample is complete.

        If it is incomplete, its next question is queued.
        """
        ((repetition, key),) = entry.keys.items()
        record, log = _record(entry, repetition, key, completion, seconds), entry.run.steps
        if log is None or not record.is_finished or record.status is Status.REFUSED:
            self._log(entry, record)
            return True
        log.append(record, entry.steps)
        following = self._next_step(entry, (*entry.steps, record))
        if isinstance(following, _Pending):
            self._next_questions.append(following)
            return False
        self._log_settled(*following)
        return True

    def _log_settled(self, entry: _Pending, outcome: SampleRecord | TaskError) -> None:
        if isinstance(outcome, TaskError):
            self._fail(entry, outcome)
        else:
            self._log(entry, outcome)

    def _fail(self, entry: _Pending, error: BaristaError) -> None:
        for repetition, key in entry.keys.items():
            self._log(entry, _record(entry, repetition, key, Failure.of(error), 0.0))

    def _log(self, entry: _Pending, last: SampleRecord) -> None:
        """Log a sample with its last answer, then check that the task can read this answer."""
        (key,) = (key for repetition, key in entry.keys.items() if repetition == last.repetition)
        record = with_steps(entry.steps, msgspec.structs.replace(last, key=key))
        session = entry.run.session
        entry.run.log.append(record)
        session.count(record)
        if record.text is None or record.status is Status.REFUSED:
            return
        try:
            with guard(entry.run.task, "parse", entry.example):
                entry.run.task.parse(record.text, entry.example.inputs, self.model.box_format)
        except TaskError as error:
            session.faulty += 1
            session.first_fault = session.first_fault or str(error)

    def distribute_seconds(self, task_runs: Sequence[TaskRun]) -> None:
        """Distribute the measured seconds over the tasks, in proportion to the samples asked."""
        counts = [run.session.asked + run.session.failed for run in task_runs]
        for run, count in zip(task_runs, counts, strict=True):
            fraction = count / sum(counts) if sum(counts) else 1 / len(task_runs)
            run.session.seconds.update({stage: value * fraction for stage, value in self.clock.seconds.items()})


def _blocks(task_runs: Sequence[TaskRun], pending: Sequence[_Pending], stopping: Stopping) -> Iterator[list[_Pending]]:
    """Yield, block by block, the pending examples of all undecided tasks. `stopping` watches the same tasks."""
    places = {id(run): place for place, run in enumerate(task_runs)}
    by_block: dict[tuple[int, int], list[_Pending]] = defaultdict(list)
    for entry in pending:
        place = places[id(entry.run)]
        by_block[place, stopping.watched[place].contest.order.block_of[entry.index]].append(entry)
    for block, open_places in stopping.open_blocks():
        yield [entry for place in sorted(open_places) for entry in by_block[place, block]]


def _record(
    entry: _Pending, repetition: int, key: str, completion: Completion | Failure, seconds: float
) -> SampleRecord:
    """Return the record of one answer without its earlier steps."""
    status, error = answer_status(completion)
    logprobs = completion.logprobs if isinstance(completion, Completion) else None
    return SampleRecord(
        key=key,
        fingerprint=entry.asked_input.fingerprint,
        example_id=entry.example.example_id,
        repetition=repetition,
        status=status,
        error=error,
        seconds=seconds,
        prompt=entry.asked_input.prompt,
        media=entry.asked_input.media,
        rank=entry.run.rank,
        logprobs=logged_logprobs(logprobs),
        **answer_fields(completion),
    )
