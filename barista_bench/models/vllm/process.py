"""An engine's process: prompts to it, answers from it, and its last words.

A prompt's images travel in the pipe, as bytes behind its line: nothing is left behind when a process is killed, and the
pipe's own back pressure bounds what is on its way. `worker.py` describes the messages.
"""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import msgspec
from PIL import Image

from barista_bench.errors import ModelError

WORKER = Path(__file__).with_name("worker.py")
_MAX_LINE = 64 * 2**20  # bytes of an answer; one token with 100 alternatives takes 3 KB
_MAX_CAUSE = 600  # characters of an engine's last words
_LOG_TAIL = 64 * 2**10  # bytes
_ERROR = re.compile(r"^[\w.]*(?:Error|Exception|Exit|Interrupt)\b.*", re.MULTILINE)


class Sample(msgspec.Struct):
    """One sample as the engine made it.

    Args:
        ended: the engine's word for why (`stop`, `length`, ...).
        logprobs: for each token its own log-probability, ids of the likeliest ones, and theirs.
    """

    tokens: list[int]
    ended: str | None
    met_stop_text: bool = False
    logprobs: list[tuple[float, list[int], list[float]]] | None = None


class Message(msgspec.Struct):
    """What an engine says; a message without anything is a sign of life."""

    ready: dict[str, str] | None = None
    id: int | None = None
    error: str | None = None
    prompt_tokens: int = 0
    samples: list[Sample] = []


@dataclass(slots=True, eq=False)
class Call:
    """A prompt with its images, on its way to an engine or there."""

    number: int
    head: Mapping[str, object]
    images: Sequence[Image.Image]
    suspected: bool = False
    """An engine died while it had this call among others: it is asked alone."""
    began: float = 0.0

    def written(self) -> Iterator[bytes]:
        """What is sent, piece by piece."""
        sizes = [image.size for image in self.images]
        yield msgspec.json.encode({"id": self.number, "sizes": sizes, **self.head}) + b"\n"
        for image in self.images:
            yield image.convert("RGB").tobytes()


@dataclass(frozen=True, slots=True)
class Launch:
    """How an engine is started: its command, its environment, and the arguments of its `LLM`."""

    command: Sequence[str | Path]
    environment: Mapping[str, str]
    arguments: Mapping[str, object]


class EngineProcess:
    """One life of an engine. A thread writes to it and another reads from it, so that neither pipe can block the other.

    Args:
        events: where this process and its messages are put; None for its end.

    Raises:
        ModelError: the interpreter cannot be started.
    """

    def __init__(self, launch: Launch, events: queue.SimpleQueue[tuple[EngineProcess, Message | None]]) -> None:
        self.ready: dict[str, str] | None = None
        self.last_sign = time.monotonic()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  (closed in `end`, or with this object)
        self._outgoing: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        try:
            self._process = subprocess.Popen(
                launch.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=dict(launch.environment),
                start_new_session=True,  # so that it is killed with all processes that it starts
            )
        except OSError as error:
            remedy = "name the interpreter of an environment that has vllm"
            raise ModelError(f"engine_python {launch.command[0]}: {error.strerror}. Remedy: {remedy}") from error
        self._finalizer = weakref.finalize(self, _kill, self._process)
        pipes = cast("tuple[BinaryIO, BinaryIO]", (self._process.stdin, self._process.stdout))
        first = msgspec.json.encode({"arguments": launch.arguments}) + b"\n"
        threading.Thread(target=_write, args=(pipes[0], first, self._outgoing), daemon=True).start()
        threading.Thread(target=_read, args=(pipes[1], weakref.ref(self), events), daemon=True).start()

    def send(self, call: Call) -> None:
        self._outgoing.put(call)

    def kill(self) -> None:
        self._outgoing.put(None)
        self._finalizer()

    def end(self, fault: str) -> str:
        """Kill it, and say what it died of; `fault` where it was alive."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1)  # its end of the pipe closes a moment before it
        status = self._process.poll()
        self.kill()
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - _LOG_TAIL))
        words = self._log.read().decode("utf-8", "replace")
        self._log.close()
        return _cause(status, fault, words)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):  # it has ended, and so has all that it started
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _cause(status: int | None, fault: str, words: str) -> str:
    """The exit status of a process in words, and the last error that it printed."""
    errors = list(_ERROR.finditer(words))
    said = " ".join((words[errors[-1].start() :] if errors else words[-_MAX_CAUSE:]).split())[:_MAX_CAUSE]
    if status is None:
        ended = fault
    elif status < 0:
        memory = ", perhaps by the kernel for lack of memory" if status == -signal.SIGKILL else ""
        ended = f"it was killed by signal {-status}{memory}"
    else:
        ended = f"it ended with status {status}"
    return f"{ended}: {said}" if said else ended


def _write(pipe: BinaryIO, first: bytes, outgoing: queue.SimpleQueue[Call | None]) -> None:
    with suppress(OSError), pipe:  # of a process that has ended, which its reader notices
        pipe.write(first)
        pipe.flush()
        while (call := outgoing.get()) is not None:
            for piece in call.written():
                pipe.write(piece)
            pipe.flush()


def _read(
    pipe: BinaryIO,
    process: weakref.ref[EngineProcess],
    events: queue.SimpleQueue[tuple[EngineProcess, Message | None]],
) -> None:
    """Put messages into the queue. A line that is none ends the reading: which answer it spoilt cannot be known."""
    with pipe:
        while True:
            line = pipe.readline(_MAX_LINE)
            try:
                message = msgspec.json.decode(line, type=Message) if line.endswith(b"\n") else None
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                message = None
            engine = process()
            if engine is not None:
                events.put((engine, message))
            if message is None or engine is None:
                return
            del engine
