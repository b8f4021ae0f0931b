"""Runs vLLM in a separate process: sends prompts, receives answers, and restarts the process when it dies.

Images are sent through the pipe, as bytes after the line of their prompt. So a killed process leaves no files behind,
and the pipe's back pressure limits the data in transit. `worker.py` describes the messages.
"""

from __future__ import annotations

import logging
import os
import queue
import re
import signal
import subprocess
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias, cast

import msgspec
from PIL import Image

from barista_bench.errors import ModelError
from barista_bench.files.text_out import one_line

log = logging.getLogger(__name__)

WORKER = Path(__file__).with_name("worker.py")
MAX_DEATHS = 3
"""Maximum number of deaths in a row after which vLLM is restarted. One more death without an answer ends the run."""

_MAX_LINE = 64 * 2**20  # limit of bytes of an answer; a token with 100 alternatives takes 3 KB
_LOG_TAIL = 64 * 2**10  # bytes
_MAX_ERROR = 400  # characters
_LAST_BREATH = 15.0  # seconds that the process has to end after the pipe is closed
_ERROR = re.compile(r"\b[\w.]*(?:Error|Exception)\b: .*")
_ENDED = "it closed its output"


class EngineOutput(msgspec.Struct):
    """One sample from the engine.

    Args:
        ended: vLLM's word for why the sample ended (`stop`, `length`, ...).
        cached: number of prompt tokens found in the prefix cache; None if not reported.
        logprobs: for each token its log-probability, ids of the likeliest tokens, and their log-probabilities.
    """

    tokens: list[int]
    ended: str | None
    cached: int | None = None
    met_stop_text: bool = False
    logprobs: list[tuple[float, list[int], list[float]]] | None = None


class Message(msgspec.Struct):
    """A message from an engine; an empty message is a sign of life."""

    ready: dict[str, str] | None = None
    id: int | None = None
    error: str | None = None
    prompt_tokens: int = 0
    samples: list[EngineOutput] = []


_MessageOrFault: TypeAlias = Message | str  # a text describes a fault of the process


@dataclass(slots=True, eq=False)
class Call:
    """A prompt with its images (RGB, decoded) that is sent to an engine, or is being answered there.

    Args:
        head: the fields of its line, except `id` and `sizes`.
        opens_thinking: the prompt ends within a thought.
        suspected: an engine died while it had this call, so the call is repeated alone.
        began: when the call was sent, in seconds of the monotonic clock.
    """

    number: int
    head: Mapping[str, object]
    images: Sequence[Image.Image]
    opens_thinking: bool = False
    suspected: bool = False
    began: float = 0.0


class Outcome(NamedTuple):
    """The outcome of a call: samples or an error, and the seconds since the call was sent."""

    call: Call
    message: Message
    seconds: float


class _Process:
    """One process of an engine. One thread writes and another thread reads, so that neither pipe blocks the other.

    Raises:
        ModelError: the interpreter cannot be started.
    """

    def __init__(
        self, command: Sequence[str | Path], environment: Mapping[str, str], arguments: Mapping[str, object]
    ) -> None:
        self.messages: queue.SimpleQueue[_MessageOrFault] = queue.SimpleQueue()
        self.calls: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self.is_ready = False
        self.last_sign = time.monotonic()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  (closed in `end`, or with this object)
        pipe = subprocess.PIPE
        try:
            # The process gets its own session, so that all its children are killed with it.
            self._process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=self._log, env=environment, start_new_session=True
            )
        except OSError as error:
            remedy = "name the interpreter of an environment that has vllm"
            raise ModelError(f"engine_python {command[0]}: {error.strerror}. Fix: {remedy}") from error
        self.kill = weakref.finalize(self, _kill, self._process, self.calls)
        stdin, stdout = cast("tuple[BinaryIO, BinaryIO]", (self._process.stdin, self._process.stdout))
        threading.Thread(target=_write, args=(stdin, arguments, self.calls), daemon=True).start()
        threading.Thread(target=_read, args=(stdout, self.messages), daemon=True).start()

    def end(self, fault: str) -> str:
        """Kill the process, and return the cause of its end, or `fault` if the process was still alive."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_LAST_BREATH if fault == _ENDED else 0)
        status = self._process.poll()
        self.kill()
        if status is not None:
            fault = f"it was killed by signal {-status}" if status < 0 else f"it ended with status {status}"
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - _LOG_TAIL))
        last_words = _last_words(self._log.read().decode("utf-8", "replace"))
        self._log.close()
        return f"{fault}: {last_words}" if last_words else fault


def _kill(process: subprocess.Popen[bytes], calls: queue.SimpleQueue[Call | None]) -> None:
    calls.put(None)
    with suppress(ProcessLookupError):  # the process and its children have ended already
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_words(log_text: str) -> str:
    """Return the last error in the log, with the error before it, a possible cause; without errors, the last line."""
    errors = list(_ERROR.finditer(log_text))
    if not errors:
        return one_line(log_text.strip().rpartition("\n")[2])[:_MAX_ERROR]
    last = errors[-1]
    cause = next((error[0] for error in reversed(errors) if error[0] != last[0]), None)
    text = one_line(log_text[last.start() :])[:_MAX_ERROR]
    return f"{text} (before it: {one_line(cause)[:_MAX_ERROR]})" if cause else text


def _write(pipe: BinaryIO, arguments: Mapping[str, object], calls: queue.SimpleQueue[Call | None]) -> None:
    with suppress(OSError), pipe:  # if the process has ended, the reader notices
        pipe.write(msgspec.json.encode({"arguments": arguments}) + b"\n")
        pipe.flush()
        while (call := calls.get()) is not None:
            sizes = [image.size for image in call.images]
            pipe.write(msgspec.json.encode({"id": call.number, "sizes": sizes, **call.head}) + b"\n")
            for image in call.images:
                pipe.write(image.tobytes())
            pipe.flush()


def _read(pipe: BinaryIO, messages: queue.SimpleQueue[_MessageOrFault]) -> None:
    """Put messages into the queue. Reading ends at an invalid line, since the damaged answer cannot be identified."""
    message: _MessageOrFault = ""
    with pipe:
        while not isinstance(message, str) or not message:
            line = pipe.readline(_MAX_LINE)
            try:
                message = msgspec.json.decode(line, type=Message) if line else _ENDED
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                message = "it wrote an invalid message"
            messages.put(message)


class VllmEngine:
    """An engine that restarts when it dies, and then repeats its open calls. For one thread.

    It is unknown which call killed the engine. So the open calls are repeated one by one. A call that kills the engine
    again is not repeated.

    Args:
        name: the model's name, for error messages.
        command: the command that starts the engine, with `environment`.
        arguments: the arguments of vLLM's `LLM`.
        capacity: limit of calls in the engine.
        timeout: seconds without a sign of life, at the start or during calls, after which the engine counts as dead.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        environment: Mapping[str, str],
        arguments: Mapping[str, object],
        *,
        capacity: int,
        timeout: float,
    ) -> None:
        self._name, self._capacity, self._timeout = name, capacity, timeout
        self._launch = command, environment, arguments
        self._process: _Process | None = None
        self._calls: dict[int, Call] = {}
        self._suspects: deque[Call] = deque()
        self._deaths = 0

    def start(self) -> dict[str, str]:
        """Start the engine, and wait until it is ready. Returns the engine's description of itself.

        Raises:
            ModelError: the engine cannot start; the message has the cause.
        """
        process = self._process = _Process(*self._launch)
        message = self._next_message(process, wait=True)
        if isinstance(message, Message) and message.ready is not None:
            process.is_ready = True
            return message.ready
        self._process, cause = None, process.end(str(message))
        remedy = "read its message; --engine-python sets the interpreter, --engine-args vLLM's arguments"
        raise ModelError(f"model {self._name}: vLLM cannot start, {cause}. Fix: {remedy}")

    def close(self) -> None:
        """Kill the engine, even while it works; the next call restarts it."""
        if self._process:
            self._process.kill()
        self._process = None
        self._calls.clear()
        self._suspects.clear()

    @property
    def has_room(self) -> bool:
        is_free = not self._suspects and not any(call.suspected for call in self._calls.values())
        return is_free and len(self._calls) < self._capacity

    def submit(self, call: Call) -> None:
        """Send a call. Use this only if there is room."""
        self._process = self._process or _Process(*self._launch)
        call.began = time.monotonic()
        if not self._calls:
            self._process.last_sign = call.began
        self._calls[call.number] = call
        self._process.calls.put(call)

    def next_result(self, *, wait: bool) -> Outcome | None:
        """Return the next outcome; None if no call is open, or if `wait` is false and no outcome is ready.

        Raises:
            ModelError: the engine dies repeatedly.
        """
        while self._calls and self._process and (message := self._next_message(self._process, wait=wait)) is not None:
            if isinstance(message, Message) and message.id in self._calls:
                self._deaths = 0
                outcome: Outcome | None = self._outcome(message.id, message)
            elif isinstance(message, Message) and message.id is None:
                self._process.is_ready = self._process.is_ready or message.ready is not None
                outcome = None
            else:
                fault = message if isinstance(message, str) else "it answered an unknown prompt"
                outcome = self._handle_death(self._process, fault)
            if not self._calls and self._suspects:
                self.submit(self._suspects.popleft())
            if outcome is not None:
                return outcome
        return None

    def _outcome(self, number: int, message: Message) -> Outcome:
        call = self._calls.pop(number)
        return Outcome(call, message, time.monotonic() - call.began)

    def _next_message(self, process: _Process, *, wait: bool) -> _MessageOrFault | None:
        patience = process.last_sign + self._timeout - time.monotonic()
        try:
            message = process.messages.get(block=wait, timeout=max(0.0, patience))
        except queue.Empty:
            return f"it gave no sign of life for {self._timeout:g} s" if wait else None
        process.last_sign = time.monotonic()
        return message

    def _handle_death(self, process: _Process, fault: str) -> Outcome | None:
        """Queue the calls of a dead process again; if a call running alone caused its second death, fail that call."""
        cause, self._process = process.end(fault), None
        self._deaths += 1
        death = f"model {self._name}: vLLM died, {cause}"
        if self._deaths > MAX_DEATHS:
            remedy = "fix the cause, then resume the run"
            raise ModelError(f"{death}; that is {self._deaths} times in a row. Fix: {remedy}")
        log.warning("%s. It is restarted, and %d prompts are repeated", death, len(self._calls))
        calls = list(self._calls.values())
        if process.is_ready and len(calls) == 1 and calls[0].suspected:
            return self._outcome(calls[0].number, Message(error=f"vLLM died of it, {cause}"))
        self._calls.clear()
        for call in calls:
            call.suspected = True
        self._suspects.extendleft(reversed(calls))
        return None
