"""What models return: answers as they come, checked; what became of each sample; answers on the way to the last one.

Tasks that ask in several steps (`Task.follow_up`) have the answers on the way logged apart from the samples, in
`steps.jsonl` (or `steps-<rank>.jsonl`), so that a run that was broken off between two steps goes on at the second, and
nothing that reads samples has to tell them apart.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import msgspec

from barista_bench.core.prompt import BoxFormat
from barista_bench.core.task import Json, ParseError, Status, Task
from barista_bench.models import Answered, Completion, Failure, GenerationConfig, Model, Request, StreamingModel
from barista_bench.runs.ask.config import Shard
from barista_bench.runs.log.asked import digest
from barista_bench.runs.log.sample_log import SampleLog, SampleRecord, read_records, record_digest, sample_digest


def answers_of(model: Model, requests: Iterable[Request], config: GenerationConfig) -> Iterator[Answered]:
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


def checked_completion(returned: object, example_id: str) -> Completion | Failure:
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


@dataclass(slots=True)
class StepLog:
    """The steps of a run folder: those of earlier starts, by `sample_digest`, and a log for those of this one."""

    log: SampleLog
    known: Mapping[bytes, SampleRecord]

    def before(self, key: str, fingerprint: str, example_id: str, run: int) -> tuple[SampleRecord, ...]:
        """The steps that a sample has behind it."""
        steps: tuple[SampleRecord, ...] = ()
        while True:
            record = self.known.get(sample_digest(step_key(key, steps), fingerprint, example_id, run))
            if record is None or record.text is None:
                return steps
            steps += (record,)

    def append(self, record: SampleRecord, before: Sequence[SampleRecord]) -> None:
        """Log `record`, which has the key of its sample, as the step after those `before`."""
        self.log.append(msgspec.structs.replace(record, key=step_key(record.key, before)))


def steps_file(folder: Path, shard: Shard) -> Path:
    """The log of steps of one process."""
    return folder / ("steps.jsonl" if shard.alone else f"steps-{shard.rank}.jsonl")


def read_steps(folder: Path) -> dict[bytes, SampleRecord]:
    """Steps of all processes, by `sample_digest`. Of two records of one step the first counts."""
    steps: dict[bytes, SampleRecord] = {}
    for path in sorted(folder.glob("steps*.jsonl")):
        for record in read_records(path):
            steps.setdefault(record_digest(record), record)
    return steps


def step_key(key: str, before: Sequence[SampleRecord]) -> str:
    """Identity of a step of the sample `key`: it answers a question that was made of the answers before it."""
    return digest(key, "step", [step.text for step in before])


def total(counts: Iterable[int | None]) -> int | None:
    """Their sum; None where one of them is not known."""
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)
