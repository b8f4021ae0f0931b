"""Read the session files of a run folder: one line per start of the run."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import msgspec

log = logging.getLogger(__name__)


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
