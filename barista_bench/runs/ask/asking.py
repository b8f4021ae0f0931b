"""Asks a model what the logs do not answer yet: any number of tasks, one stream of requests, one record a sample."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from PIL import Image
from tqdm import tqdm

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.frame_times import FrameTimes
from barista_bench.core.prompt import Prompt
from barista_bench.core.task import Example, Json, ParseError, Status, Task
from barista_bench.data.dataset import ExampleSet, LoadedExample, Pictures
from barista_bench.data.shared_frames import FrameStore, StageClock, size_of_images
from barista_bench.errors import DataError, ModelError
from barista_bench.models import Answered, Completion, Failure, GenerationConfig, Model, Request, StreamingModel
from barista_bench.models.base import sends_files
from barista_bench.models.videos import sees_videos
from barista_bench.runs.ask.config import RunConfig, Shard
from barista_bench.runs.ask.prefetch import decode_ahead
from barista_bench.runs.log.asked import AskedInput, asks_on, sample_keys, sample_seed
from barista_bench.runs.log.log_reader import StepLog, finished_samples
from barista_bench.runs.log.sample_log import SampleLog, SampleRecord, logged_logprobs, sample_digest

AHEAD_BYTES = 1024 * 2**20
"""Bytes of images that wait for the model at the most."""


@dataclass(slots=True, kw_only=True)
class AskCounts:
    """How many samples one start asked for, found in the log, and failed to get."""

    asked: int = 0
    already_done: int = 0
    failed: int = 0
    first_failure: str = ""

    def count(self, record: SampleRecord) -> None:
        """Count a new record."""
        if record.finished:
            self.asked += 1
        else:
            self.failed += 1
            self.first_failure = self.first_failure or str(record.error)


@dataclass(slots=True, kw_only=True)
class Session(AskCounts):
    """One start of a run: what it did, and where its seconds went.

    `decode` and `prepare` (drawing, encoding) are summed over threads of their own; `wait` is the time that
    generation stood still for them, `generate` the rest of the time that answers took. With several tasks in one
    start, the seconds of all of it are dealt out by samples asked. `batch_check` is what a local model asked in batches
    gave for two examples together and alone (`models/local/batch_check.py`).
    """

    seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("load", "decode", "prepare", "wait", "generate", "total"), 0.0)
    )
    batch_check: str | None = None

    def add(self, other: Session) -> None:
        """Count another session to this one."""
        self.asked += other.asked
        self.already_done += other.already_done
        self.failed += other.failed
        self.first_failure = self.first_failure or other.first_failure
        for name, value in other.seconds.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + value


@dataclass(slots=True)
class TaskRun:
    """One task of a start: its examples, what they ask, where its answers go, and what was done so far.

    `steps` takes the answers on the way of a task that asks in several steps; None for others.
    """

    task: Task
    examples: ExampleSet
    inputs: Sequence[AskedInput]
    folder: Path
    log: SampleLog
    rank: int | None = None
    session: Session = field(default_factory=Session)
    steps: StepLog | None = None


@dataclass(frozen=True, slots=True)
class _Pending:
    """An example, by its place in the set, with the runs that still want an answer. Holds no media.

    `prompt` asks the first question, or a later one after the answers of `steps`.
    """

    run: TaskRun
    index: int
    example: Example
    asked: AskedInput
    keys: dict[int, str]
    prompt: Prompt
    steps: tuple[SampleRecord, ...] = ()


AskedT = TypeVar("AskedT")
_Ready = tuple[_Pending, Pictures | DataError]


class Asker:
    """Everything that one start needs to ask, in this process's share of the videos.

    Args:
        decodes: whether requests hold images; not for a model that looks at the frames elsewhere.
    """

    def __init__(self, model: Model, config: RunConfig, shard: Shard, *, decodes: bool = True) -> None:
        self.model, self.settings, self.config, self.shard = model, config, config.generation, shard
        self.clock = StageClock()
        self.store = FrameStore(max_bytes=config.frame_cache_mib * 2**20, clock=self.clock)
        self._decodes, self._timed = decodes, sees_videos(model.identity)
        self._next_questions: list[_Pending] = []

    def ask(self, task_runs: Sequence[TaskRun]) -> None:
        """Ask for everything that the logs do not hold yet; each answer is appended as soon as it is there."""
        pending = self._all_pending(task_runs)
        samples = sum(len(waiting.keys) for waiting in pending)
        is_shown = self.settings.progress and self.shard.rank == 0
        begun = time.perf_counter()
        with self.store, tqdm(total=samples, desc="asking", unit="sample", disable=not is_shown) as bar:
            while pending:
                in_this_round, later = _each_example_once(pending)
                self._ask_round(in_this_round, bar)
                pending = later + self._next_questions
                self._next_questions = []
        self.clock.add("generate", max(0.0, time.perf_counter() - begun - self.clock.seconds["wait"]))

    def _ask_round(self, pending: list[_Pending], bar: tqdm[NoReturn]) -> None:
        # By video and frame over all tasks, so that each frame is decoded once for all that want it.
        pending.sort(key=_in_video_order)
        self.store.plan(frame for waiting in pending if waiting.prompt.image_count for frame in waiting.example.frames)
        # Closed whatever happens: a model's error must not leave threads at work behind it.
        with closing(self._ready(pending)) as ready:
            for answer in each_answered(self.model, self._waited_for(self._requests(ready)), self.config):
                bar.update(self._log_answers(*answer))

    def requests(self, task_runs: Sequence[TaskRun], *, decode: bool) -> Iterator[Request]:
        """The requests that `ask` would make; examples whose media cannot be read are passed over.

        Without `decode` each image is one pixel.
        """
        pending = self._all_pending(task_runs)
        if not decode:
            pixel = Image.new("RGB", (1, 1))
            yield from (self._request(waiting, Pictures((pixel,) * waiting.prompt.image_count)) for waiting in pending)
            return
        with closing(self._ready(pending)) as ready:
            for waiting, pictures in ready:
                if not isinstance(pictures, DataError):
                    yield self._request(waiting, pictures)

    def _all_pending(self, task_runs: Sequence[TaskRun]) -> list[_Pending]:
        examples = [example for run in task_runs for example in run.examples.examples]
        videos = self.shard.videos(example.video_id for example in examples)
        return [waiting for run in task_runs for waiting in self._pending(run, videos)]

    def _pending(self, run: TaskRun, videos: frozenset[str]) -> list[_Pending]:
        key_of = sample_keys(asdict(self.model.identity), asdict(self.config))
        # The rule of `run_records`, from its other side: what this run would ask, looked up in what is there.
        finished = finished_samples(run.folder)
        pending = []
        for position, (example, asked) in enumerate(zip(run.examples.examples, run.inputs, strict=True)):
            if example.video_id not in videos:
                continue
            keys = {index: key_of(example.example_id, asked.fingerprint, index) for index in range(self.settings.runs)}
            open_keys = {
                run_index: key
                for run_index, key in keys.items()
                if sample_digest(key, asked.fingerprint, example.example_id, run_index) not in finished
            }
            run.session.already_done += len(keys) - len(open_keys)
            if open_keys:
                waiting = _Pending(run, position, example, asked, open_keys, asked.question)
                pending += [waiting] if run.steps is None else self._resumed(waiting, run.steps)
        return pending

    def _resumed(self, waiting: _Pending, log: StepLog) -> list[_Pending]:
        """What a task of several steps still has to ask of one example: each run goes on where it was."""
        unbegun: dict[int, str] = {}
        begun = []
        for run_index, key in waiting.keys.items():
            steps = log.before(key, waiting.asked.fingerprint, waiting.example.example_id, run_index)
            prompt = self._follow_up(waiting, steps) if steps else None
            if prompt is None:
                unbegun[run_index] = key
            else:
                begun.append(replace(waiting, keys={run_index: key}, steps=steps, prompt=prompt))
        return [replace(waiting, keys=unbegun), *begun] if unbegun else begun

    def _follow_up(self, waiting: _Pending, steps: tuple[SampleRecord, ...]) -> Prompt | None:
        return waiting.run.task.follow_up(waiting.example, _texts(steps), self.model.box_format)

    def _ready(self, pending: Sequence[_Pending]) -> Generator[_Ready, None, None]:
        ahead = self.model.window if isinstance(self.model, StreamingModel) else 2 * self.model.batch_size
        return decode_ahead(
            pending,
            self._pictures,
            workers=self.settings.workers,
            max_items=ahead,
            max_bytes=AHEAD_BYTES,
            size_of=decoded_size,
            group_of=lambda waiting: waiting.example.video_id,
        )

    def _requests(self, ready: Iterable[_Ready]) -> Iterator[tuple[_Pending, Request]]:
        for waiting, pictures in ready:
            if isinstance(pictures, DataError):
                self._log_answers(waiting, [Failure(str(pictures))] * len(waiting.keys), 0.0)
            else:
                yield waiting, self._request(waiting, pictures)

    def _pictures(self, waiting: _Pending) -> Pictures | DataError:
        if not self._decodes or not waiting.prompt.image_count:
            return Pictures(())
        try:
            loaded = waiting.run.examples[waiting.index]
            return pictures_for(self.model, loaded, waiting.run.task, self.store, self.clock)
        except DataError as error:
            return error

    def _request(self, waiting: _Pending, pictures: Pictures) -> Request:
        task, example, step = waiting.run.task, waiting.example, len(waiting.steps)
        return Request(
            request_id=example.example_id,
            prompt=waiting.prompt,
            images=pictures.images,
            files=pictures.files,
            seeds=tuple(sample_seed(task, example.example_id, run_index, step) for run_index in waiting.keys),
            inputs=task.request_inputs(example),
            schema=None if asks_on(task) and not step else task.answer_schema(example),
            choices=task.choices(example),
            times=self._times(waiting) if self._timed and waiting.prompt.image_count else None,
        )

    def _times(self, waiting: _Pending) -> FrameTimes | None:
        try:
            return waiting.run.examples.frame_times(waiting.index, waiting.run.task)
        except DataError:  # of media that cannot be read, which who decodes them says
            return None

    def _waited_for(self, requests: Iterator[tuple[_Pending, Request]]) -> Iterator[tuple[_Pending, Request]]:
        """Counts the time in which the model stands still for the next request."""
        while True:
            with self.clock("wait"):
                request = next(requests, None)
            if request is None:
                return
            yield request

    def _log_answers(self, waiting: _Pending, completions: Sequence[Completion | Failure], seconds: float) -> int:
        """Log the answers to an example. Returns how many samples are done with them."""
        done = 0
        for (run_index, key), completion in zip(waiting.keys.items(), completions, strict=True):
            if not self._asks_on(waiting, run_index, key, completion, seconds):
                self._log(waiting, run_index, key, completion, seconds)
                done += 1
        return done

    def _asks_on(
        self, waiting: _Pending, run_index: int, key: str, completion: Completion | Failure, seconds: float
    ) -> bool:
        """Whether the task asks on after this answer; then it is logged as a step, and the next question waits."""
        log = waiting.run.steps
        if log is None or isinstance(completion, Failure) or completion.finish_reason == "refusal":
            return False
        status = Status.TRUNCATED if completion.finish_reason == "length" else Status.OK
        step = _record(replace(waiting, steps=()), run_index, key, completion, seconds, status)
        steps = (*waiting.steps, step)
        prompt = self._follow_up(waiting, steps)
        if prompt is None:
            return False
        log.append(step, waiting.steps)
        self._next_questions.append(replace(waiting, keys={run_index: key}, steps=steps, prompt=prompt))
        return True

    def _log(
        self, waiting: _Pending, run_index: int, key: str, completion: Completion | Failure, seconds: float
    ) -> None:
        if isinstance(completion, Completion) and any(step.status is Status.TRUNCATED for step in waiting.steps):
            completion = replace(completion, finish_reason="length")
        status, error = sample_status(waiting.run.task, waiting.example.inputs, completion, self.model.box_format)
        record = _record(waiting, run_index, key, completion, seconds, status, error)
        waiting.run.log.append(record)
        waiting.run.session.count(record)

    def deal_out_seconds(self, task_runs: Sequence[TaskRun]) -> None:
        """Share the clock's seconds among the tasks, by samples asked."""
        asked = {id(run): run.session.asked + run.session.failed for run in task_runs}
        total = sum(asked.values())
        for run in task_runs:
            share = asked[id(run)] / total if total else 1 / len(task_runs)
            for stage, seconds in self.clock.seconds.items():
                run.session.seconds[stage] = seconds * share


def _each_example_once(pending: Sequence[_Pending]) -> tuple[list[_Pending], list[_Pending]]:
    """The first of each example, and the rest: a request is known by its example, so that one is asked at a time."""
    first: dict[str, _Pending] = {}
    later = [waiting for waiting in pending if first.setdefault(waiting.example.example_id, waiting) is not waiting]
    return list(first.values()), later


def _in_video_order(waiting: _Pending) -> tuple[str, int, int]:
    example = waiting.example
    return example.video_id, min(frame.frame_index for frame in example.frames), waiting.index


def _texts(steps: Iterable[SampleRecord]) -> tuple[str, ...]:
    return tuple(step.text or "" for step in steps)


def pictures_for(
    model: Model, loaded: LoadedExample, task: Task, store: FrameStore, clock: StageClock | None = None
) -> Pictures:
    """The pictures of an example as a model wants them: decoded, or as files. Raises DataError."""
    if sends_files(model):
        return loaded.pictures(task, store, clock or StageClock())
    return Pictures(loaded.images(task, store, clock))


def decoded_size(pictures: Pictures | DataError) -> int:
    """Bytes that a request's pictures take in memory; none where they could not be decoded."""
    if isinstance(pictures, DataError):
        return 0
    files = pictures.files or (None,) * len(pictures.images)
    return sum(
        size_of_images([image]) if file is None else len(file)
        for image, file in zip(pictures.images, files, strict=True)
    )


def _record(
    waiting: _Pending,
    run_index: int,
    key: str,
    completion: Completion | Failure,
    seconds: float,
    status: Status,
    error: str | None = None,
) -> SampleRecord:
    fields = answer_fields(completion)
    if isinstance(completion, Completion):
        parts: tuple[SampleRecord | Completion, ...] = (*waiting.steps, completion)
        fields["input_tokens"] = total(part.input_tokens for part in parts)
        fields["output_tokens"] = total(part.output_tokens for part in parts)
        fields["logprobs"] = logged_logprobs(completion.logprobs)
    return SampleRecord(
        key=key,
        fingerprint=waiting.asked.fingerprint,
        example_id=waiting.example.example_id,
        run=run_index,
        status=status,
        error=error,
        seconds=seconds + sum(step.seconds for step in waiting.steps),
        prompt=waiting.asked.prompt,
        media=waiting.asked.media,
        rank=waiting.run.rank,
        earlier=_texts(waiting.steps) or None,
        **fields,
    )


def total(counts: Iterable[int | None]) -> int | None:
    """Their sum; None where one of them is not known."""
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)


def answer_fields(completion: Completion | Failure) -> dict[str, Any]:
    """What a record takes from a completion as it is; of a failure there is no text."""
    names = ("text", "reasoning", "finish_reason", "input_tokens", "output_tokens", "batch_size")
    return {"text": None} if isinstance(completion, Failure) else {name: getattr(completion, name) for name in names}


def each_answered(
    model: Model, requests: Iterable[tuple[AskedT, Request]], config: GenerationConfig
) -> Iterator[tuple[AskedT, list[Completion | Failure], float]]:
    """What was asked, as it is answered: one entry for each of its seeds, and the seconds of each. What the model does
    not answer comes last, as failures.

    Raises:
        ModelError: the model answers what it was not asked.
    """
    in_flight: dict[str, tuple[AskedT, int]] = {}
    to_send = iter(requests)

    def sent() -> Iterator[Request]:
        for asked, request in to_send:
            in_flight[request.request_id] = asked, len(request.seeds)
            yield request

    for answered in _answers(model, sent(), config):
        name = answered.request.request_id
        if name not in in_flight:
            raise ModelError(
                f"model {model.identity.name}: answered {name!r}, which was not asked or was answered before. "
                "Remedy: correct the model"
            )
        asked, count = in_flight.pop(name)
        returned = [*answered.completions, *[None] * count][:count]
        yield asked, [_checked(completion, name) for completion in returned], answered.seconds / max(1, count)
    unsent = ((asked, len(request.seeds)) for asked, request in to_send)
    for asked, count in (*in_flight.values(), *unsent):
        yield asked, [Failure("the model returned no answer")] * count, 0.0


def _answers(model: Model, requests: Iterable[Request], config: GenerationConfig) -> Iterator[Answered]:
    """Answers as they come: from a stream, or batch by batch."""
    if isinstance(model, StreamingModel):
        yield from model.stream(requests, config)
        return
    source = iter(requests)
    while batch := list(islice(source, model.batch_size)):
        begun = time.perf_counter()
        answers = model.generate(batch, config)
        share = (time.perf_counter() - begun) / len(batch)
        for index, request in enumerate(batch):
            yield Answered(request, list(answers[index]) if index < len(answers) else [], share)


def _checked(returned: object, example_id: str) -> Completion | Failure:
    """What a model returned: a missing or malformed completion is a failure of that sample."""
    if isinstance(returned, Failure) or (isinstance(returned, Completion) and isinstance(returned.text, str)):
        return returned
    return Failure(f"{example_id}: the model returned {type(returned).__name__} for a completion")


def sample_status(
    task: Task, inputs: dict[str, Json], completion: Completion | Failure, boxes: BoxFormat
) -> tuple[Status, str | None]:
    """What became of a sample, and why where it is not ok. A truncated answer stays truncated even if it parses."""
    if isinstance(completion, Failure):
        return Status.INFRA_ERROR, completion.error
    if completion.finish_reason == "refusal":
        return Status.REFUSED, "the model refused"
    if completion.finish_reason == "length":
        return Status.TRUNCATED, "the answer reached max_new_tokens"
    parsed = task.parse(completion.text, inputs, boxes)
    return (Status.PARSE_ERROR, parsed.reason) if isinstance(parsed, ParseError) else (Status.OK, None)
