"""A local stand-in for an OpenAI-compatible server, with faults.

    with ServedStandIn() as server:
        model = ServedModel.load("m", base_url=server.url, api_key_env=None)

It answers chat completions with texts that depend on the messages, and at a temperature also on seed and choice:
`expected_text` says which. `faults` decides for each call what goes wrong with it; `random_faults` makes a decision
that depends on the request and the number of its attempt, and so not on the order of calls. `capacity` answers 429 to
what exceeds it. What was asked is in `calls`, how many were served at once in `most_at_once`.
"""

from __future__ import annotations

import hashlib
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True)
class Fault:
    """What goes wrong. `kind` is one of: status, hang, drop, truncate, raw, reply, slow.

    status answers with `status`, `headers` and `body`; raw with 200 and `body`; reply with the good answer changed by
    `change`; hang says nothing until the server stops; drop closes without a word, truncate in the middle of the
    answer; slow sends it in pieces over `seconds`.
    """

    kind: str
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b'{"error": {"message": "made to fail"}}'
    change: Callable[[Body], None] = lambda reply: None
    seconds: float = 0.0


@dataclass(frozen=True)
class Call:
    """One request as the server saw it, header names in lower case; `attempt` counts calls of the same body from 1."""

    path: str
    headers: Mapping[str, str]
    body: Body
    digest: str
    attempt: int
    at: float


def prompt_digest(body: Body) -> str:
    return hashlib.sha256(json.dumps(body["messages"], sort_keys=True).encode()).hexdigest()[:16]


def expected_text(body: Body, choice: int = 0) -> str:
    """The answer of a clean server: JSON with the prompt's digest and, when sampling, the seed of the choice."""
    seed = body.get("seed", 0) + choice if body.get("temperature", 1) > 0 else None
    return json.dumps({"prompt": prompt_digest(body), "seed": seed})


def good_reply(body: Body, choices: int | None = None) -> Body:
    texts = [expected_text(body, n) for n in range(choices or body.get("n", 1))]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": f"{body['model']}-2026",
        "choices": [
            {"index": n, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            for n, text in enumerate(texts)
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 7 * len(texts), "total_tokens": 100 + 7 * len(texts)},
    }


def change_message(**values: object) -> Callable[[Body], None]:
    """A change for `Fault("reply", change=...)`: sets fields of every choice (`finish_reason`) or of its message."""

    def change(reply: Body) -> None:
        for choice in reply["choices"]:
            for name, value in values.items():
                (choice if name in ("finish_reason", "logprobs") else choice["message"])[name] = value

    return change


FAULTS: tuple[Fault, ...] = (
    Fault("status", 429, {"retry-after-ms": "30"}),
    Fault("status", 429, {"Retry-After": "0"}),
    Fault("status", 429),
    Fault("status", 500),
    Fault("status", 503, body=b"<html>upstream"),
    Fault("hang"),
    Fault("drop"),
    Fault("truncate"),
    Fault("raw", body=b'{"choices": [{"mess'),
    Fault("raw", body=b"[[[["),
    Fault("raw", body=b'{"choices": []}'),
    Fault("raw", body=b'{"error": {"message": "overloaded", "code": 503}}'),
    Fault("reply", change=change_message(content=None)),
    Fault("reply", change=change_message(content={"not": "text"})),
    Fault("reply", change=change_message(finish_reason="abort")),
    Fault("slow", seconds=0.1),
)


def random_faults(
    seed: int, fraction: float, faults: Sequence[Fault] = FAULTS, most: int = 3
) -> Callable[[Call], Fault | None]:
    """Each of the first `most` attempts of a body fails with this probability."""

    def decide(call: Call) -> Fault | None:
        rng = random.Random(f"{seed}/{call.digest}/{call.attempt}")
        return rng.choice(faults) if call.attempt <= most and rng.random() < fraction else None

    return decide


class ServedStandIn:
    """The server; see the module."""

    def __init__(
        self,
        faults: Callable[[Call], Fault | None] = lambda call: None,
        *,
        capacity: int | None = None,
        seconds: float = 0.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.faults, self.capacity, self.seconds, self.headers = faults, capacity, seconds, dict(headers or {})
        self.calls: list[Call] = []
        self.most_at_once = self._at_once = 0
        self.given_up = 0
        """Calls whose client had gone when the answer was ready."""
        self.stopping = threading.Event()
        self._attempts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __enter__(self) -> ServedStandIn:
        server_class = type("Server", (ThreadingHTTPServer,), {"request_queue_size": 256, "daemon_threads": True})
        self._server = server_class(("127.0.0.1", 0), type("Handler", (_Handler,), {"standin": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def note(self, path: str, headers: Mapping[str, str], body: Body) -> Call:
        text = json.dumps(body, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()
        with self._lock:
            self._attempts[digest] += 1
            call = Call(path, headers, body, digest, self._attempts[digest], time.monotonic())
            self.calls.append(call)
        return call

    def enter(self) -> bool:
        """Whether there is room for one more."""
        with self._lock:
            if self.capacity is not None and self._at_once >= self.capacity:
                return False
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            return True

    def leave(self) -> None:
        with self._lock:
            self._at_once -= 1


class _Handler(BaseHTTPRequestHandler):
    standin: ServedStandIn
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else every answer takes 40 ms

    def log_message(self, format: str, *args: object) -> None:
        """Tests read `calls`."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        call = self.standin.note(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
        if not self.standin.enter():
            return self._send(429, b'{"error": {"message": "too many at once"}}', {})
        try:
            self._serve(call)
        except (BrokenPipeError, ConnectionResetError):
            self.standin.given_up += 1
            self.close_connection = True
        finally:
            self.standin.leave()

    def _serve(self, call: Call) -> None:
        time.sleep(self.standin.seconds)
        fault = self.standin.faults(call) or Fault("reply")
        if fault.kind == "status":
            return self._send(fault.status, fault.body, fault.headers)
        if fault.kind in ("hang", "drop"):
            if fault.kind == "hang":
                self.standin.stopping.wait(30)
            self.close_connection = True
            return None
        reply = good_reply(call.body)
        fault.change(reply)
        content = fault.body if fault.kind == "raw" else json.dumps(reply).encode()
        pieces = 20 if fault.kind == "slow" else 1
        return self._send(200, content, self.standin.headers, fault.kind == "truncate", pieces, fault.seconds)

    def _send(
        self,
        status: int,
        content: bytes,
        headers: Mapping[str, str],
        truncate: bool = False,
        pieces: int = 1,
        seconds: float = 0.0,
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if truncate:
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
            return
        size = -(-len(content) // pieces) or 1
        for start in range(0, len(content), size):
            self.wfile.write(content[start : start + size])
            self.wfile.flush()
            time.sleep(seconds / pieces)
