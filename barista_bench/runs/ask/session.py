"""Count the samples that one start of a run asked for, and measure the seconds per stage."""

from __future__ import annotations

from dataclasses import dataclass, field

from barista_bench.runs.log.sample_log import SampleRecord


@dataclass(slots=True, kw_only=True)
class AskCounts:
    """How many samples one start asked for, found in the log, and failed to get.

    `faulty` counts the `asked` samples whose answers made the task's parser raise an error. They are logged and not
    asked again.
    """

    asked: int = 0
    already_done: int = 0
    failed: int = 0
    first_failure: str = ""
    faulty: int = 0
    first_fault: str = ""

    def count(self, record: SampleRecord) -> None:
        if record.is_finished:
            self.asked += 1
        else:
            self.failed += 1
            self.first_failure = self.first_failure or str(record.error)


@dataclass(slots=True, kw_only=True)
class Session(AskCounts):
    """One start of a run: its counts and the seconds per stage.

    `decode` and `prepare` (drawing, encoding) are summed over separate threads. `wait` is the time that generation
    waited for these stages. `generate` is the remaining time of answering. With several tasks in one start, all seconds
    are distributed in proportion to the samples asked. `batch_check` compares a local model's answers to two examples,
    asked in a batch and one by one (`models/local/batch_check.py`). `decision` has a line for each task that stopped
    early.
    """

    seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("load", "decode", "prepare", "wait", "generate", "total"), 0.0)
    )
    batch_check: str | None = None
    decision: str = ""

    def add(self, other: Session) -> None:
        """Add another session's counts to this session."""
        for name in ("asked", "already_done", "failed", "faulty"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.first_failure = self.first_failure or other.first_failure
        self.first_fault = self.first_fault or other.first_fault
        self.decision = "\n".join(filter(None, (self.decision, other.decision)))
        for name, value in other.seconds.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + value
