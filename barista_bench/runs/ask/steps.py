"""Answers on the way to the last one, of tasks that ask in several steps (`Task.follow_up`).

They are logged apart from the samples, in `steps.jsonl` (or `steps-<rank>.jsonl`), so that a run that was broken off
between two steps goes on at the second, and so that nothing that reads samples has to tell them apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from barista_bench.core.task import Status
from barista_bench.models import Completion
from barista_bench.runs.ask.shards import Shard
from barista_bench.runs.log.keys import digest
from barista_bench.runs.log.record import SampleRecord, record_digest, sample_digest
from barista_bench.runs.log.sample_log import SampleLog, read_records


@dataclass(frozen=True, slots=True)
class Step:
    """One answer on the way. `cut` says that it reached the token limit."""

    text: str
    cut: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float = 0.0


@dataclass(slots=True)
class StepLog:
    """The steps of a run folder: those of earlier starts, by `sample_digest`, and a log for those of this one."""

    log: SampleLog
    known: Mapping[bytes, SampleRecord] = field(default_factory=dict)

    def before(self, key: str, fingerprint: str, example_id: str, run: int) -> tuple[Step, ...]:
        """The steps that a sample has behind it."""
        steps: list[Step] = []
        while True:
            digest_of_next = sample_digest(step_key(key, steps), fingerprint, example_id, run)
            record = self.known.get(digest_of_next)
            if record is None or record.text is None:
                return tuple(steps)
            cut = record.status is Status.TRUNCATED
            steps.append(Step(record.text, cut, record.input_tokens, record.output_tokens, record.seconds))

    def append(self, record: SampleRecord, before: Sequence[Step]) -> None:
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


def step_key(key: str, before: Sequence[Step]) -> str:
    """Identity of a step of the sample `key`: it answers a question that was made of the answers before it."""
    return digest(key, "step", [step.text for step in before])


def totals(steps: tuple[Step, ...], completion: Completion) -> tuple[int | None, int | None]:
    """Input and output tokens of all steps and of the last answer; None where one of them is not known."""
    inputs = [*(step.input_tokens for step in steps), completion.input_tokens]
    outputs = [*(step.output_tokens for step in steps), completion.output_tokens]
    return _sum(inputs), _sum(outputs)


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
