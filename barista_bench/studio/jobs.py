"""Runs commands that the page starts, as child processes, and keeps their state and the end of their output.

Each command has a separate process group. When the studio ends, the group is first asked to end, then killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from barista_bench.errors import DataError
from barista_bench.files.text_out import make_printable
from barista_bench.studio.workspace import Json

PROGRAM = (sys.executable, "-m", "barista_bench.cli")
MOST_RUNNING = 4
MOST_KEPT = 50
"""Maximum number of jobs in the table; the oldest finished job is removed first."""
MOST_OUTPUT = 64 * 2**10
"""Bytes that are kept from the end of a job's output."""
GRACE = 5.0
"""Seconds between asking a process to end and killing it."""
_READ = 2**14


@dataclass
class StudioJob:
    """A started command. The path `makes` can be opened when the command is finished."""

    number: int
    title: str
    line: str
    makes: str
    process: subprocess.Popen[bytes]
    begun: float
    state: Literal["running", "done", "failed", "cancelled"] = "running"
    ended: float | None = None
    is_cancelled: bool = False
    _output: bytearray = field(default_factory=bytearray)
    reader: threading.Thread | None = None

    def read(self) -> None:
        """Read the process's output until it ends."""
        assert self.process.stdout is not None
        with self.process.stdout as pipe:
            while part := os.read(pipe.fileno(), _READ):
                self._output += part
                del self._output[:-MOST_OUTPUT]
        code = self.process.wait()
        self.ended = time.monotonic()
        self.state = "done" if code == 0 else "cancelled" if self.is_cancelled else "failed"

    def row(self) -> Json:
        """Return the job as a row of the table."""
        lines = bytes(self._output).decode(errors="replace").split("\n")
        # Keeps only the last state of a progress bar, which overwrites itself.
        text = "\n".join(line.rstrip("\r").rsplit("\r")[-1] for line in lines)
        return {
            "number": self.number,
            "title": self.title,
            "line": self.line,
            "state": self.state,
            "seconds": round((self.ended or time.monotonic()) - self.begun, 1),
            "code": self.process.returncode,
            "output": make_printable(text, keep="\n\t"),
            "makes": self.makes if self.state == "done" else "",
        }


class Jobs:
    """The table of jobs. Methods may be called from several threads.

    Args:
        folder: the folder where jobs run.
        program: the program that receives the arguments.
    """

    def __init__(self, folder: Path, program: Sequence[str] = PROGRAM) -> None:
        self._folder, self._program = folder, program
        self._jobs: list[StudioJob] = []
        self._lock = threading.Lock()
        self._last = 0
        self._has_ended = False

    def start(self, title: str, line: str, arguments: Sequence[str], makes: str) -> StudioJob:
        """Start the program with these arguments. Raises DataError if too many jobs are running."""
        with self._lock:
            if self._has_ended or sum(job.state == "running" for job in self._jobs) >= MOST_RUNNING:
                remedy = "wait until one is done, or cancel one"
                raise DataError(f"{MOST_RUNNING} commands are running already. Fix: {remedy}")
            process = subprocess.Popen(
                [*self._program, *arguments],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=os.environ | {"PYTHONUNBUFFERED": "1", "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "100"},
                start_new_session=True,
            )
            self._last += 1
            job = StudioJob(self._last, title, line, makes, process, time.monotonic())
            job.reader = threading.Thread(target=job.read, daemon=True)
            job.reader.start()
            self._jobs.append(job)
            ended = [old for old in self._jobs if old.state != "running"]
            for old in ended[: max(0, len(self._jobs) - MOST_KEPT)]:
                self._jobs.remove(old)
            return job

    def cancel(self, number: int) -> None:
        """Ask a job's processes to end, and kill processes that do not end. Raises DataError for an unknown job."""
        with self._lock:
            job = next((job for job in self._jobs if job.number == number), None)
        if job is None:
            raise DataError(f"no job {number}. Fix: load the page again")
        _ask_to_end(job)
        threading.Thread(target=_kill_after, args=(job, GRACE), daemon=True).start()

    def rows(self) -> list[Json]:
        """Return the jobs as rows of the table, the latest job first."""
        with self._lock:
            return [job.row() for job in reversed(self._jobs)]

    def end(self) -> None:
        """End all jobs, and start no further jobs."""
        with self._lock:
            self._has_ended = True
            running = [job for job in self._jobs if job.state == "running"]
        for job in running:
            _ask_to_end(job)
        until = time.monotonic() + GRACE
        for job in running:
            _kill_after(job, max(0.0, until - time.monotonic()))


def _ask_to_end(job: StudioJob) -> None:
    if job.process.poll() is None:
        job.is_cancelled = True
        _signal(job, signal.SIGTERM)


def _kill_after(job: StudioJob, seconds: float) -> None:
    """Kill the remaining processes of the group: a child process may still run when the command itself has ended."""
    assert job.reader is not None
    job.reader.join(seconds)
    if job.reader.is_alive():  # true if any process still writes to its pipe
        _signal(job, signal.SIGKILL)
        job.reader.join(GRACE)


def _signal(job: StudioJob, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(job.process.pid, number)
