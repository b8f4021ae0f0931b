"""Engines beside each other: who gets which prompt, and what happens to prompts whose engine dies."""

from __future__ import annotations

import logging
import queue
import time
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from barista_bench.errors import ModelError
from barista_bench.models.vllm.process import Call, EngineProcess, Launch, Message

log = logging.getLogger(__name__)

MAX_DEATHS = 3
"""Deaths of one engine in a row, without an answer between them, that cost a restart each; one more ends the run."""


class Outcome(NamedTuple):
    """What became of a call: samples or an error, and the seconds since it was sent."""

    call: Call
    message: Message
    seconds: float


class _Engine:
    """An engine over all of its lives."""

    def __init__(self, launch: Launch, events: queue.SimpleQueue[tuple[EngineProcess, Message | None]]) -> None:
        self._launch, self._events = launch, events
        self.process: EngineProcess | None = None
        self.in_flight: dict[int, Call] = {}
        self.suspects: deque[Call] = deque()  # which of them killed it is not known: they are asked one by one
        self.deaths = 0

    @property
    def load(self) -> int:
        return len(self.in_flight)

    @property
    def takes_calls(self) -> bool:
        return not self.suspects and not any(call.suspected for call in self.in_flight.values())

    @property
    def silent_since(self) -> float | None:
        """When it showed life; None where it has nothing to do."""
        is_idle = self.process is None or (self.process.ready is not None and not self.in_flight)
        return None if is_idle or self.process is None else self.process.last_sign

    def start(self) -> None:
        self.process = self.process or EngineProcess(self._launch, self._events)

    def send(self, call: Call) -> None:
        self.start()
        assert self.process is not None
        if not self.in_flight:
            self.process.last_sign = time.monotonic()
        call.began = time.monotonic()
        self.in_flight[call.number] = call
        self.process.send(call)

    def send_suspect(self) -> None:
        if self.suspects and not self.in_flight:
            self.send(self.suspects.popleft())


class _Event(NamedTuple):
    """What an engine says; where that is None, it is dead, or has the `fault` that it shall die of."""

    engine: _Engine
    process: EngineProcess
    message: Message | None
    fault: str


class EnginePool:
    """Engines that are started together; a dead one is started again. For one thread.

    Args:
        name: of the model, for messages.
        capacity: calls at each engine at the most.
        timeout: seconds without a sign of life, while it starts or has calls, after which an engine counts as dead.
    """

    def __init__(self, name: str, launches: Sequence[Launch], *, capacity: int, timeout: float) -> None:
        self._name, self._capacity, self._timeout = name, capacity, timeout
        self._events: queue.SimpleQueue[tuple[EngineProcess, Message | None]] = queue.SimpleQueue()
        self._engines = [_Engine(launch, self._events) for launch in launches]

    def start(self) -> dict[str, str]:
        """Start all engines, and wait until they are ready. Returns what the last one says of itself.

        Raises:
            ModelError: one cannot start; says what it died of.
        """
        for engine in self._engines:
            engine.start()
        ready: dict[str, str] = {}
        while any(engine.silent_since is not None for engine in self._engines):
            event = self._event(wait=True)
            assert event is not None
            if event.message is None:
                cause = event.process.end(event.fault)
                self.close()
                remedy = "see what it says; --engine-python names the interpreter, --engine-args what vLLM is given"
                raise ModelError(f"model {self._name}: vLLM cannot start, {cause}. Remedy: {remedy}")
            event.process.ready = ready = event.message.ready or {}
        return ready

    def close(self) -> None:
        """End all processes, whatever they are at; the next call starts them again."""
        for engine in self._engines:
            if engine.process:
                engine.process.kill()
            engine.process = None
            engine.in_flight.clear()
            engine.suspects.clear()

    @property
    def has_room(self) -> bool:
        return any(engine.takes_calls and engine.load < self._capacity for engine in self._engines)

    def submit(self, call: Call) -> None:
        """Give a call to the engine with the fewest; only where there is room."""
        min((engine for engine in self._engines if engine.takes_calls), key=lambda engine: engine.load).send(call)

    def finished(self, *, wait: bool) -> Outcome | None:
        """The next outcome; None where there is none yet and nobody waits.

        Raises:
            ModelError: an engine dies again and again.
        """
        while (event := self._event(wait=wait)) is not None:
            engine, message = event.engine, event.message
            call = None if message is None or message.id is None else engine.in_flight.pop(message.id, None)
            if message is None or (message.id is not None and call is None):
                outcome = self._died(event)
                if outcome is not None:
                    return outcome
            elif call is not None:
                engine.deaths = 0
                engine.send_suspect()
                return Outcome(call, message, time.monotonic() - call.began)
            elif message.ready is not None:
                event.process.ready = message.ready
        return None

    def _event(self, *, wait: bool) -> _Event | None:
        """What the next engine says, or that it is dead; None where there is nothing and nobody waits."""
        while True:
            busy = {engine.silent_since: engine for engine in self._engines if engine.silent_since is not None}
            patience = max(0.0, min(busy) + self._timeout - time.monotonic()) if busy else 0.0
            try:
                process, message = self._events.get(block=wait, timeout=patience)
            except queue.Empty:
                if not wait:
                    return None
                hung = busy[min(busy)]
                assert hung.process is not None
                return _Event(hung, hung.process, None, f"it gave no sign of life for {self._timeout:g} s")
            engine = next((engine for engine in self._engines if engine.process is process), None)
            if engine is not None:  # else of a former life
                process.last_sign = time.monotonic()
                return _Event(engine, process, message, "it wrote what is no message")

    def _died(self, event: _Event) -> Outcome | None:
        """Start an engine again, and put its calls back. The outcome of one that it had alone, and must have died of."""
        engine, was_ready, cause = event.engine, event.process.ready is not None, event.process.end(event.fault)
        calls, engine.process = list(engine.in_flight.values()), None
        engine.in_flight.clear()
        engine.deaths += 1
        dead = f"model {self._name}: vLLM died, {cause}"
        if engine.deaths > MAX_DEATHS:
            remedy = "see to it, then start the run again; it goes on where it stopped"
            raise ModelError(f"{dead}, for the {engine.deaths}th time in a row. Remedy: {remedy}")
        log.warning("%s. It is started again, and asked again what it had (%d prompts)", dead, len(calls))
        blamed = calls[0] if was_ready and len(calls) == 1 and calls[0].suspected else None
        for call in calls if blamed is None else ():
            call.suspected = True
            engine.suspects.append(call)
        engine.start()
        engine.send_suspect()
        if blamed is None:
            return None
        return Outcome(blamed, Message(error=f"vLLM died of it, {cause}"), time.monotonic() - blamed.began)
