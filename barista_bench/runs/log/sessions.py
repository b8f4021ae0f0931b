"""The starts of a run: what each asked for and how long it took. A run folder has a line per start."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec

from barista_bench.runs.log.sample_log import SampleRecord

log = logging.getLogger(__name__)


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

    def append_to(self, path: Path) -> None:
        """Append the session as a line. The line is new even if the last line was truncated."""
        line = json.dumps({**asdict(self), "ended": datetime.now(UTC).isoformat(timespec="seconds")})
        with path.open("a", encoding="utf-8") as file:
            file.write(("" if file.tell() == 0 else "\n") + line)


class _SessionLine(msgspec.Struct):
    seconds: dict[str, Annotated[float, msgspec.Meta(ge=0, le=1e9)]]
    ended: Annotated[str, msgspec.Meta(pattern=r"^(\d{4}-\d\d-\d\dT[0-9:+]{1,20})?$")] = ""


def session_seconds(folder: Path) -> list[dict[str, float]]:
    """Return the seconds per stage for every start of a run. A damaged line is skipped with a warning."""
    return [session.seconds for session in _sessions(folder)]


def session_dates(folder: Path) -> list[str]:
    """Return the days on which starts of a run ended, in order, as YYYY-MM-DD in UTC.

    Starts without a date are left out.
    """
    return sorted({session.ended[:10] for session in _sessions(folder) if session.ended})


def _sessions(folder: Path) -> list[_SessionLine]:
    sessions = []
    for path in sorted(folder.glob("sessions*.jsonl")):
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            try:
                sessions.append(msgspec.json.decode(line, type=_SessionLine))
            except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
                log.warning("%s: line %d is not a session: its seconds are missing", path, number)
    return sessions
