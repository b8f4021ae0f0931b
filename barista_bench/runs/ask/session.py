"""One start of a run: how many samples it asked for, and where its seconds went."""

from __future__ import annotations

from dataclasses import dataclass, field

from barista_bench.runs.log.sample_log import SampleRecord


@dataclass(slots=True, kw_only=True)
class AskCounts:
    """Numbers of samples that one start asked for, found in the log, and failed to get.

    Of those `asked`, `faulty` are answers at which the task's parser raised: logged, and not asked again.
    """

    asked: int = 0
    already_done: int = 0
    failed: int = 0
    first_failure: str = ""
    faulty: int = 0
    first_fault: str = ""

    def count(self, record: SampleRecord) -> None:
        """Count a new record."""
        if record.is_finished:
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
        for name in ("asked", "already_done", "failed", "faulty"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.first_failure = self.first_failure or other.first_failure
        self.first_fault = self.first_fault or other.first_fault
        for name, value in other.seconds.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + value
