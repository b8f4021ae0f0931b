"""Answers requests through a provider's batch API (`--batch-api`), at half the price and within a day.

The requests are split into files, submitted, polled and collected. Before a file is submitted, its ids are saved as
`PART.json` in the folder of the batches. Each batch has its PART as metadata. So a batch is found again if the process
is killed at any point, and nothing is submitted twice.
"""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Final

import httpx2

from barista_bench.errors import ModelError
from barista_bench.files.reading import read_bounded_json
from barista_bench.files.text_out import is_local
from barista_bench.files.writing import write_whole
from barista_bench.models.base import AnsweredRequest, Completion, Failure, GenerationConfig, Request, repeat_answer
from barista_bench.models.served.client import certificates, longest_backoff
from barista_bench.models.served.errors import CallError, DeclinedError, Endpoint, TransientError, status_error
from barista_bench.models.served.replies import ReadingRules, read_reply
from barista_bench.models.served.requests import fields_per_call, request_body
from barista_bench.models.served.settings import ServedSettings

log = logging.getLogger(__name__)
MOST_BYTES, MOST_LINES = 150_000_000, 50_000
"""Limits of one file; OpenAI takes 200 MB and 50,000 requests."""
MOST_RESULTS = 2**32
"""Limit of bytes for the results of one batch."""
MOST_REPLY = 64 * 2**20
"""Limit of bytes for any other reply."""
POLL = 30.0
"""Seconds between two requests for the state of a batch."""
NAME: Final = "barista_bench"
"""The name of the metadata field that holds the PART of a batch."""
_ENDED: Final = frozenset({"completed", "failed", "expired", "cancelled"})
Entry = Completion | Failure
Json = dict[str, Any]


class Batches:
    """The batches of one run; the files in `folder` record them."""

    def __init__(
        self,
        endpoint: Endpoint,
        settings: ServedSettings,
        config: GenerationConfig,
        folder: Path,
        client: httpx2.Client,
    ) -> None:
        self._endpoint, self._settings, self._config = endpoint, settings, config
        self._folder, self._client = folder, client
        self._rules = ReadingRules(settings.tags, settings.prompt_opens_thinking, config.stop)
        self._lines: dict[str, tuple[int, int]] = {}  # position of each id's line in the spool file
        self._entries: dict[str, Entry] = {}

    def answers(self, requests: Iterable[Request], spool: BinaryIO) -> Iterator[tuple[int, AnsweredRequest]]:
        """Yield the answers to all requests, with the requests' numbers; `spool` is a file for the calls' lines."""
        waiting = {number: self._spooled(request, spool) for number, request in enumerate(requests)}
        self._folder.mkdir(parents=True, exist_ok=True)
        batches, attempts, own = self._found(), Counter[str](), set[str]()
        while True:
            for number, (request, ids) in list(waiting.items()):
                if all(name in self._entries for name in ids):
                    del waiting[number]
                    entries = [self._entries[name] for name in ids]
                    entries = (
                        entries if len(ids) == len(request.seeds) else repeat_answer(entries[0], len(request.seeds))
                    )
                    yield number, AnsweredRequest(request, entries, 0.0)
            if not waiting:
                return
            wanted = [name for _, ids in waiting.values() for name in ids if name not in self._entries]
            under_way = {name for ids in batches.values() for name in ids}
            for part in self._parts(sorted(set(wanted) - under_way)):
                name = self._submit(part, spool)
                own.add(name)
                batches[name] = frozenset(part)
            for name in list(batches):
                batch = self._call("GET", f"/batches/{name}")
                if str(batch.get("status")) in _ENDED:
                    awaited = batches.pop(name).intersection(wanted)
                    attempts.update(awaited if name in own else ())
                    self._collect(batch, awaited, attempts)
                    break
            else:
                time.sleep(POLL)

    def _spooled(self, request: Request, spool: BinaryIO) -> tuple[Request, list[str]]:
        """Write the lines of a request, one per seed; return the request without its pictures, and the lines' ids."""
        request.check_images()
        body, ids = request_body(request, self._config, self._endpoint.model, self._settings), []
        for seed in request.seeds if self._config.temperature > 0 else request.seeds[:1]:
            of_call = {**body, **fields_per_call((seed,), self._settings)}
            identity = json.dumps([request.request_id, request.prompt.as_text(), self._endpoint.model, seed])
            ids.append(hashlib.sha256(identity.encode(errors="replace")).hexdigest()[:40])
            line = {"custom_id": ids[-1], "method": "POST", "url": "/v1/chat/completions", "body": of_call}
            start = spool.tell()
            spool.write(json.dumps(line).encode() + b"\n")
            self._lines[ids[-1]] = start, spool.tell() - start
        return replace(request, images=(), files=()), ids

    def _found(self) -> dict[str, frozenset[str]]:
        """Return the batches of earlier starts that the server knows, and the lines that are wanted from each batch."""
        parts = {path.stem for path in self._folder.glob("*.json")}
        found = {}
        for batch in self._listed() if parts else ():
            part = (batch.get("metadata") or {}).get(NAME)
            if part in parts:
                ids = read_bounded_json(self._folder / f"{part}.json", 2**26, what="no list", remedy="remove it")
                found[str(batch["id"])] = self._lines.keys() & set(map(str, ids if isinstance(ids, list) else ()))
        return {name: frozenset(ids) for name, ids in found.items() if ids}

    def _listed(self) -> Iterator[Json]:
        after = ""
        while True:
            page = self._call("GET", f"/batches?limit=100{after}")
            batches = page.get("data")
            yield from (batch for batch in batches if isinstance(batch, dict)) if isinstance(batches, list) else ()
            if not page.get("has_more") or not batches:
                return
            after = f"&after={batches[-1]['id']}"

    def _parts(self, ids: list[str]) -> Iterator[list[str]]:
        """Split the ids into parts whose lines fit into one file."""
        part: list[str] = []
        size = 0
        for name in ids:
            length = self._lines[name][1]
            if part and (size + length > MOST_BYTES or len(part) == MOST_LINES):
                yield part
                part, size = [], 0
            part.append(name)
            size += length
        if part:
            yield part

    def _submit(self, ids: list[str], spool: BinaryIO) -> str:
        """Submit a file, and return the id of its batch. If the call fails but the batch exists, use that batch."""
        part = hashlib.sha256(f"{time.time_ns()} {ids}".encode()).hexdigest()[:40]
        write_whole(self._folder / f"{part}.json", json.dumps(ids))
        lines = []
        for name in ids:
            spool.seek(self._lines[name][0])
            lines.append(spool.read(self._lines[name][1]))
        file = (f"{part}.jsonl", b"".join(lines))
        sent = self._call("POST", "/files", data={"purpose": "batch"}, files={"file": file})
        order = {
            "input_file_id": sent.get("id"),
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "metadata": {NAME: part},
        }
        for attempt in range(1, self._settings.max_attempts + 1):
            try:
                return str(self._send("POST", "/batches", json=order)["id"])
            except TransientError as error:  # the server may have created the batch despite the error
                log.info("attempt %d to submit a batch failed: %s", attempt, error)
                self._pause(error, attempt)
                for batch in self._listed():
                    if (batch.get("metadata") or {}).get(NAME) == part:
                        return str(batch["id"])
        raise ModelError(f"{self._endpoint}: no batch could be submitted. Fix: start the same command again later")

    def _collect(self, batch: Json, ids: frozenset[str], attempts: Counter[str]) -> None:
        """Read the results of a batch that has ended. Failed lines are asked again, up to `max_attempts` times."""
        problems = dict.fromkeys(ids, f"the batch ended as {str(batch.get('status'))[:40]} without this answer")
        for key in ("output_file_id", "error_file_id"):
            file = batch.get(key)
            for line in self._content(str(file)) if file else ():
                name = line.get("custom_id")
                if name in ids and name not in self._entries:
                    entry = self._read(line)
                    if isinstance(entry, TransientError):
                        problems[name] = str(entry)
                    else:
                        self._entries[name] = entry
        for name in ids - self._entries.keys():
            if attempts[name] >= self._settings.max_attempts:
                self._entries[name] = Failure(f"{problems[name]} (the last of {attempts[name]} attempts)")

    def _read(self, line: Json) -> Entry | TransientError:
        response = line.get("response")
        response = response if isinstance(response, dict) else {}
        status, body = response.get("status_code"), json.dumps(response.get("body")).encode()
        try:
            if status != 200:
                raise status_error(int(status or 500), {}, body, self._endpoint, answered=True)
            choice = read_reply(body, self._rules, self._endpoint, 1, answered=True).choices[0]
        except TransientError as error:
            return error
        except DeclinedError:
            return Completion("", finish_reason="refusal")
        except CallError as error:
            return Failure(str(error))
        return choice

    def _content(self, file: str) -> Iterator[Json]:
        """Yield the lines of a results file; lines that are not a JSON object are left out."""
        with tempfile.TemporaryFile() as spool, self._client.stream("GET", f"/files/{file}/content") as response:
            if response.status_code != 200:
                raise ModelError(
                    f"{self._endpoint}: results {file:.80} answered {response.status_code}. Fix: try later"
                )
            for chunk in response.iter_bytes():
                spool.write(chunk)
                if spool.tell() > MOST_RESULTS:
                    raise ModelError(f"{self._endpoint}: results {file:.80} are too large. Fix: ask the provider")
            spool.seek(0)
            for line in spool:
                try:
                    content = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(content, dict):
                    yield content

    def _call(self, method: str, path: str, **content: Any) -> Json:  # noqa: ANN401  (what httpx takes)
        """Make a call that may be repeated. Raises ModelError if the server refuses the last attempt."""
        for attempt in range(1, self._settings.max_attempts + 1):
            try:
                return self._send(method, path, **content)
            except TransientError as error:
                problem = error
                self._pause(error, attempt)
        raise ModelError(f"{problem}. Fix: start the same command again later; no batch is lost")

    def _pause(self, error: TransientError, attempt: int) -> None:
        """Wait before the next attempt, if there is one: as long as the server asks, or longer at later attempts."""
        if POLL and attempt < self._settings.max_attempts:
            time.sleep(max(error.wait or 0.0, longest_backoff(attempt)))

    def _send(self, method: str, path: str, **content: Any) -> Json:  # noqa: ANN401  (what httpx takes)
        body = bytearray()
        try:
            with self._client.stream(method, path, **content) as response:
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > MOST_REPLY:
                        remedy = "Fix: ask the provider"
                        raise ModelError(f"{self._endpoint}: the reply to {method} {path} is too large. {remedy}")
        except httpx2.HTTPError as error:
            raise TransientError(f"{self._endpoint}: {type(error).__name__}", congestion="connection") from None
        if response.status_code >= 300:
            refusal = status_error(response.status_code, response.headers, bytes(body), self._endpoint)
            if isinstance(refusal, TransientError | ModelError):
                raise refusal
            raise ModelError(f"{refusal}: {method} {path}. Fix: leave batch_api out if the server has no /v1/batches")
        try:
            reply = json.loads(body)
        except (ValueError, RecursionError):
            reply = None
        if not isinstance(reply, dict):
            raise TransientError(f"{self._endpoint}: {method} {path} gave no JSON object", congestion=None)
        return reply


def batch_answers(
    endpoint: Endpoint, settings: ServedSettings, config: GenerationConfig, folder: Path, requests: Iterable[Request]
) -> Iterator[tuple[int, AnsweredRequest]]:
    """Answer requests in batches; all requests are taken before the first answer."""
    with (
        httpx2.Client(
            base_url=endpoint.url,
            headers={"Authorization": f"Bearer {endpoint.key or 'none'}", "Accept-Encoding": "identity"},
            timeout=settings.timeout,
            follow_redirects=False,
            trust_env=not is_local(endpoint.url),
            verify=certificates(),
        ) as client,
        tempfile.TemporaryFile() as spool,
    ):
        yield from Batches(endpoint, settings, config, folder, client).answers(requests, spool)
