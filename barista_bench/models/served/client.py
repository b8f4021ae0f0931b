"""Makes the calls of one stream in a separate thread, with a gate and retries, and returns one answer per request.

After an HTTP 429:

1. `_send` gets the error from `status_error` (`errors.py`). If the body says that the account has no money, it is a
   `ModelError`, which ends the run: all answers so far are logged. Otherwise it is a `TransientError`, whose `wait` is
   the pause of `retry-after-ms` or `Retry-After`. Without them, if the headers say that no requests or tokens are left,
   it is the time of `x-ratelimit-reset-...` (`allowance_pause`). A body that names a content policy is a refusal, with
   any status (`DeclinedError`). It counts as an answer.
2. `_attempt` halves the limit of parallel calls, at most once for the calls that were under way (`AdaptiveLimit` of
   `state.py`). It grows again with later answers. With a `wait`, no call of this model starts for that
   time, at most 120 seconds.
3. `_backoff` makes this call wait for a random time of up to 1, 2, 4, ... 30 seconds. Without a `wait`, all other calls
   also wait for this time.
4. `_call` tries again, up to `max_attempts` times (6 by default) in all. Then `_failed_entry` makes a `Failure`: the
   sample is logged as `infra_error`, does not count, and is asked again at the next start. If many requests in a row
   fail at every attempt, `ServerState.count_failure` ends the run.

The headers of an answer may also say that no requests or tokens are left. Then all calls wait before a 429 comes.

This module imports openai, anyio and tenacity, so import it only when a model is asked.
"""

from __future__ import annotations

import logging
import queue
import random
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache

import anyio
import anyio.from_thread
import anyio.to_thread
import httpx2
import openai
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt

from barista_bench.errors import ModelError
from barista_bench.files.text_out import is_local
from barista_bench.models.base import AnsweredRequest, Completion, Failure, GenerationConfig, Request, repeat_answer
from barista_bench.models.served.errors import (
    CallError,
    DeclinedError,
    Endpoint,
    RejectedError,
    TransientError,
    allowance_pause,
    status_error,
)
from barista_bench.models.served.replies import ReadingRules, Reply, read_reply
from barista_bench.models.served.requests import Body, fields_per_call, request_body
from barista_bench.models.served.settings import ServedSettings
from barista_bench.models.served.state import Gate, ServerState

log = logging.getLogger(__name__)

_MAX_REPLY = 64 * 2**20  # bytes
_FIRST_BACKOFF, _LONGEST_BACKOFF = 1.0, 30.0  # seconds
_PATH = "/chat/completions"
_NO_KEY = "none"  # servers without keys accept any key, but the client accepts no empty key
_HEADERS = frozenset(
    {"accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "host", "user-agent"}
)

Entry = Completion | Failure
AnswerFuture = Future[AnsweredRequest]


def longest_backoff(attempt: int) -> float:
    """Return the longest wait in seconds after an attempt, counted from 1; the wait doubles, up to 30 seconds.

    >>> [longest_backoff(attempt) for attempt in (1, 2, 3, 5, 6, 9)]
    [1.0, 2.0, 4.0, 16.0, 30.0, 30.0]
    """
    return min(_LONGEST_BACKOFF, _FIRST_BACKOFF * 2 ** (attempt - 1))


class Calls:
    """The running requests of a stream (see `open_calls`).

    One thread calls `start` and `next_result`; the event loop calls all other methods.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        settings: ServedSettings,
        config: GenerationConfig,
        state: ServerState,
        portal: anyio.from_thread.BlockingPortal,
    ) -> None:
        self._settings, self._config, self._state, self._portal = settings, config, state, portal
        self._endpoint = endpoint
        self._rules = ReadingRules(settings.tags, settings.prompt_opens_thinking, config.stop)
        self._done_futures: queue.SimpleQueue[tuple[int, AnswerFuture]] = queue.SimpleQueue()
        self._futures: dict[int, AnswerFuture] = {}
        self._fatal_error: BaseException | None = None
        self._stop_error: ModelError | None = None  # the event loop knows this error before the other thread does

    def start(self, number: int, request: Request) -> None:
        """Start a request; `number` is returned with its answer."""
        future = self._portal.start_task_soon(self._answer, request)
        self._futures[number] = future
        future.add_done_callback(lambda done: None if done.cancelled() else self._done_futures.put((number, done)))

    def next_result(self, *, wait: bool) -> tuple[int, AnsweredRequest] | None:
        """Return the next answer; None if there is no answer yet and `wait` is false.

        Raises:
            ModelError: the server refuses every request. Earlier answers are returned before this error.
        """
        with suppress(queue.Empty):
            while True:
                number, future = self._done_futures.get(block=wait and self._fatal_error is None)
                del self._futures[number]
                error = future.exception()
                if error is None:
                    return number, future.result()
                self._fatal_error = self._fatal_error or error
        if self._fatal_error is not None:
            raise self._fatal_error
        return None

    async def open(self) -> None:
        """Create the gate and the client, which belong to the event loop."""
        self._gate = Gate(self._state.limit)
        self._client = openai.AsyncOpenAI(
            api_key=self._endpoint.key or _NO_KEY,
            base_url=self._endpoint.url,
            timeout=self._settings.timeout,
            max_retries=0,
            default_headers={
                "Accept-Encoding": "identity",
                # Otherwise, the client could take another key from an environment variable.
                "Authorization": f"Bearer {self._endpoint.key or _NO_KEY}",
            },
            http_client=openai.DefaultAsyncHttpxClient(
                limits=httpx2.Limits(max_connections=self._settings.max_concurrency),
                verify=certificates(),
                # Images and key are sent only to the named server. Redirects are not followed. Calls to this machine
                # use no proxy from the environment, which could read the key from plain http.
                follow_redirects=False,
                trust_env=not is_local(self._endpoint.url),
                event_hooks={
                    "request": [] if self._settings.is_default_host else [_remove_variables],
                    "response": [_limit_reply],
                },
            ),
        )

    async def close(self) -> None:
        await self._client.close()

    def cancel(self) -> None:
        """Cancel running requests: their connections are closed, so that the server can stop too."""
        for future in list(self._futures.values()):
            future.cancel()

    async def _answer(self, request: Request) -> AnsweredRequest:
        """Return one entry for each seed. Greedy answers are requested once; the copies count no tokens."""
        seeds = request.seeds if self._config.temperature > 0 else request.seeds[:1]
        try:
            body = await anyio.to_thread.run_sync(
                request_body, request, self._config, self._endpoint.model, self._settings
            )
        except (OSError, ValueError) as error:  # Pillow's message for an image that it cannot write
            failure = Failure(f"request {request.request_id}: its prompt cannot be prepared: {error}")
            return AnsweredRequest(request, [failure] * len(request.seeds), 0.0)
        query = _Query(request, body)
        # If the server takes `n`, all seeds share one call; the remaining seeds then get a call each.
        entries = await self._ask_together(query, seeds) if len(seeds) > 1 and self._state.takes_n else []
        for seed in seeds[len(entries) :]:
            entries.append(await self._ask_alone(query, seed))
        if entries and len(entries) < len(request.seeds):
            entries = repeat_answer(entries[0], len(request.seeds))
        return AnsweredRequest(request, entries, query.seconds)

    async def _ask_together(self, query: _Query, seeds: Sequence[int]) -> list[Entry]:
        """Return the entries of one call.

        There are fewer entries than seeds if the remaining seeds need separate calls.
        """
        try:
            reply = await self._call(query, seeds)
        except CallError as error:
            may_be_n = len(seeds) > self._state.proven_n
            if may_be_n and isinstance(error, RejectedError) and error.status in (400, 422):
                entry = await self._ask_alone(query, seeds[0])
                if not isinstance(entry, Failure):  # else the server refuses the request itself, not `n`
                    self._state.give_up_n(f"it answers {error.status} to n = {len(seeds)}", self._endpoint)
                    return [entry]
            return [self._failed_entry(error)] * len(seeds)
        if len(reply.choices) == len(seeds):
            self._state.proven_n = max(self._state.proven_n, len(seeds))
        elif not reply.is_refusal:  # a server returns one refusal for any number of choices
            self._state.give_up_n(f"it gave {len(reply.choices)} of {len(seeds)} choices", self._endpoint)
        return [
            choice if isinstance(choice, Completion) else await self._ask_alone(query, seed)
            for choice, seed in zip(reply.choices, seeds, strict=False)
        ]

    async def _ask_alone(self, query: _Query, seed: int) -> Entry:
        try:
            choice = (await self._call(query, (seed,))).choices[0]
        except CallError as error:
            return self._failed_entry(error)
        assert isinstance(choice, Completion)  # `_attempt` tries again if no choice can be read
        return choice

    def _failed_entry(self, error: CallError) -> Entry:
        """Return the entry that replaces the answer of a call whose last attempt failed."""
        if isinstance(error, DeclinedError):
            return Completion("", finish_reason="refusal")
        if isinstance(error, TransientError):
            self._state.count_failure(error, self._endpoint)
            return Failure(f"{error} (the last of {self._settings.max_attempts} attempts)")
        return Failure(str(error))

    async def _call(self, query: _Query, seeds: Sequence[int]) -> Reply:
        """Make one call with its retries.

        Raises:
            TransientError: the last attempt failed.
            RejectedError, DeclinedError, ModelError: raised at once, without further attempts.
        """
        # The seed is made from content: calls do not wait at the same moments, and a repeated run waits equally long.
        rng = random.Random(f"{query.request.request_id}/{seeds[0]}")  # noqa: S311
        async for attempt in AsyncRetrying(
            retry=retry_if_exception_type(TransientError),
            stop=stop_after_attempt(self._settings.max_attempts),
            wait=lambda state: self._backoff(state, rng),
            sleep=anyio.sleep,
            reraise=True,
        ):
            with attempt:
                return await self._attempt(query, seeds)
        raise AssertionError("tenacity ends with a result or an error")

    def _backoff(self, state: RetryCallState, rng: random.Random) -> float:
        """Return the seconds to wait before the next attempt, with full jitter."""
        seconds = rng.uniform(0.0, longest_backoff(state.attempt_number))
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, TransientError):
            log.info("attempt %d failed: %s", state.attempt_number, error)
            if error.congestion == "429" and error.wait is None:
                self._gate.limit.pause(seconds)
        return seconds

    async def _attempt(self, query: _Query, seeds: Sequence[int]) -> Reply:
        async with self._gate.slot() as started:
            if self._stop_error is not None:
                raise self._stop_error
            # Another call may have learned meanwhile that `n` is not supported.
            seeds = seeds if self._state.takes_n else seeds[:1]
            outcome = await self._send({**query.body, **fields_per_call(seeds, self._settings)}, len(seeds))
            limit = self._gate.limit
            if isinstance(outcome, TransientError):
                if outcome.congestion is not None:
                    limit.record_congestion(started, outcome.congestion)
                if outcome.wait is not None:
                    limit.pause(outcome.wait)
            elif isinstance(outcome, ModelError):
                self._stop_error = outcome
            elif isinstance(outcome, Reply):
                query.seconds += limit.now() - started
                limit.record_success(started, self._gate.in_flight)
        if isinstance(outcome, Reply):
            return outcome
        raise outcome  # raised here, where no context can contain the key

    async def _send(self, body: Body, choices: int) -> Reply | Exception:
        """Make one HTTP call. Errors are returned, not raised, and contain only text; see `served.errors`."""
        try:
            # The client's own timeout covers only the time between two packets.
            with anyio.fail_after(self._settings.timeout):
                response = await self._client.post(_PATH, cast_to=httpx2.Response, body=body)
        except (TimeoutError, openai.APITimeoutError):
            problem = f"no answer within {self._settings.timeout:g} s. Fix: raise timeout if answers are long"
            return TransientError(f"{self._endpoint}: {problem}", congestion="timeout")
        except openai.APIStatusError as error:
            headers, content = error.response.headers, error.response.content
            answered = self._state.answered
            return status_error(error.status_code, headers, content, self._endpoint, answered=answered, sent=body)
        except (openai.APIConnectionError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            cause = error.__cause__ or error
            quoted = self._endpoint.quote(f"{type(cause).__name__}: {cause}")
            return TransientError(f"{self._endpoint}: the connection failed: {quoted}", congestion="connection")
        except UnicodeEncodeError as error:  # half a surrogate pair, which a JSON file can contain
            return RejectedError(f"the prompt cannot be written as UTF-8: {error.reason}", 400)
        return self._read(response, choices, held_to_schema="response_format" in body)

    def _read(self, response: httpx2.Response, choices: int, *, held_to_schema: bool) -> Reply | Exception:
        try:
            reply = read_reply(response.content, self._rules, self._endpoint, choices, answered=self._state.answered)
        except (TransientError, RejectedError, DeclinedError, ModelError) as error:
            return error.with_traceback(None)
        self._state.count_reply(reply, self._endpoint)
        if held_to_schema:
            self._state.check_json(reply, self._endpoint)
        tokens = (reply.input_tokens or 0) + (reply.output_tokens or 0)
        if (pause := allowance_pause(response.headers, tokens)) is not None:
            self._gate.limit.pause(pause)
        if all(isinstance(choice, TransientError) for choice in reply.choices):
            return next(choice for choice in reply.choices if isinstance(choice, TransientError))
        return reply


@dataclass(slots=True)
class _Query:
    """A request, the body of its calls, and the seconds that its answered calls took."""

    request: Request
    body: Body
    seconds: float = 0.0


@contextmanager
def open_calls(
    endpoint: Endpoint, settings: ServedSettings, config: GenerationConfig, state: ServerState
) -> Iterator[Calls]:
    """Run an event loop in a separate thread during a stream. Calls that still run at the end are cancelled."""
    with anyio.from_thread.start_blocking_portal() as portal:
        calls = Calls(endpoint, settings, config, state, portal)
        portal.call(calls.open)
        try:
            yield calls
        finally:
            calls.cancel()
            portal.call(calls.close)


@cache
def certificates() -> ssl.SSLContext:
    """Return httpx's certificates from a cache: loading takes 0.1 seconds, and judges send few requests at a time."""
    return httpx2.create_ssl_context()


async def _remove_variables(request: httpx2.Request) -> None:
    """Remove headers that the openai client adds from its variables (organisation, project, `OPENAI_CUSTOM_HEADERS`).

    These headers are meant for OpenAI, and may contain credentials.
    """
    for name in [name for name in request.headers if name not in _HEADERS and not name.startswith("x-stainless-")]:
        del request.headers[name]


async def _limit_reply(response: httpx2.Response) -> None:
    """Refuse replies that are too large, and compressed replies, since their size is unknown."""
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise httpx2.ReadError("the answer is compressed, which was not asked for", request=response.request)
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    response.stream = _BoundedStream(stream, response.request)


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, request: httpx2.Request) -> None:
        self._stream, self._request = stream, request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        bytes_left = _MAX_REPLY
        async for chunk in self._stream:
            bytes_left -= len(chunk)
            if bytes_left < 0:
                raise httpx2.ReadError(f"the answer is larger than {_MAX_REPLY} bytes", request=self._request)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
