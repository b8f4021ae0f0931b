"""The server of a study: each participant's questions, and nothing else that this machine holds.

It has no route to a project, a release, a run or a file. Beyond this machine it answers by TLS alone, by the one name
that the links have. Whoever asks is bounded three times: requests of a participant, requests of strangers at an
address, and connections that are open at once, of an address and of all.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import resource
import socket
import ssl
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from anyio import CapacityLimiter, Lock, fail_after, to_thread
from filelock import FileLock, Timeout
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from barista_bench.errors import BaristaError, ConfigError, DataError
from barista_bench.files.text_out import one_line, system_problem
from barista_bench.reporting.html import page_style
from barista_bench.studio.pages import STATIC
from barista_bench.studio.participants import ParticipantSessions, RefusedAnswer, SentAnswer
from barista_bench.studio.study import Address
from barista_bench.studio.web import HANDLERS, HOST, UVICORN, Guard, body_of, bound_socket, json_response
from barista_bench.studio.workspace import Json, sent_as

log = logging.getLogger(__name__)

MAX_ANSWER = 2**20
"""Bytes of an answer: masks drawn by hand are a few KB."""
ANSWER_WAIT = 30
"""Seconds that an answer may take to arrive."""
REQUEST_WAIT = 10
"""Seconds after which a connection that asks nothing, or not to the end, is closed; twice as many after a request."""
PARTICIPANT_LIMIT, ADDRESS_LIMIT = (2.0, 120), (20.0, 1200)
"""Requests a second in the long run, and at once: of a participant, and of all strangers at an address."""
MOST_CONNECTIONS, MOST_OF_ADDRESS = 1024, 768
"""Connections that are open at once. A browser opens six, and a class that shares an address opens a link at once."""
_FILES, _OWN_FILES = 4096, 128
"""Files that may be open: a burst of connections is accepted before it is counted. Of these, those that are not
connections: datasets, answers that are being written."""
_MOST_REMEMBERED = 10_000
_THREADS = 8
_IPV6_NETWORK = 64
"""Bits of an IPv6 address that its owner does not choose."""
_SECURITY_SECONDS = 30 * 24 * 3600
_TROUBLE = "This cannot be done now. Please try again later, or tell whoever sent you the link."
_WELCOME = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={home}">'
    '<link rel="icon" href="{home}static/icon.svg"><title>Study</title>'
    '<p><a href="{home}">Go on to the study</a></p></html>'
)
"""A page, and no redirect: the browser then sends the cookie also where the link was opened from another site."""


class RateLimit:
    """Token buckets: each key may do `burst` at once, and `rate` a second in the long run."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst = rate, burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def count_use(self, key: str, now: float) -> float:
        """Count one use; seconds until the next is free, 0 where this one is."""
        allowance, last_use = self._buckets.pop(key, (float(self._burst), now))
        allowance = min(self._burst, allowance + (now - last_use) * self._rate)
        is_free = allowance >= 1
        self._buckets[key] = (allowance - is_free, now)
        while len(self._buckets) > _MOST_REMEMBERED:
            self._buckets.popitem(last=False)
        return 0.0 if is_free else (1 - allowance) / self._rate


def network_of(host: str) -> str:
    """Whose address it is: all that one owner of IPv6 addresses can choose from are one."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.version == 4:
        return str(address)
    return str(address.ipv4_mapped or ipaddress.ip_network((address, _IPV6_NETWORK), strict=False))


class ParticipantGuard(Guard):
    """Lets in who has a token of the study, from its own page or by the link."""

    stranger_text = "This link is not valid here, or has been replaced. Please ask whoever sent it for a new one."

    def __init__(self, app: ASGIApp, *, sessions: ParticipantSessions) -> None:
        self._sessions, self._is_shared = sessions, sessions.study.shared
        port = Address.read(sessions.study.address).port
        cookie = "__Host-study" if self._is_shared else f"study-{port}"
        super().__init__(app, origins=[sessions.study.origin], cookie=cookie)
        self._participant_limit, self._address_limit = RateLimit(*PARTICIPANT_LIMIT), RateLimit(*ADDRESS_LIMIT)

    def visitor(self, token: str) -> str | None:
        return self._sessions.name_of(token)

    def welcome(self, token: str) -> Response:
        home = self.home(token)
        page = HTMLResponse(_WELCOME.format(home=home))
        page.set_cookie(self._cookie, token, path=home, secure=self._is_shared, httponly=True, samesite="strict")
        return page

    def home(self, token: str) -> str:
        """Beyond this machine there is TLS, and a cookie of this host's name alone has no path."""
        return "/" if self._is_shared else super().home(token)

    def may_come_from_elsewhere(self, request: Request) -> bool:
        """A link may be in a letter or on a page; nothing but a window that goes there may follow it."""
        headers = request.headers
        goes_there = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        return request.method == "GET" and request.url.path == "/" and goes_there

    def excess_response(self, request: Request, visitor: str | None) -> Response | None:
        now = time.monotonic()
        if visitor is not None:
            seconds = self._participant_limit.count_use(visitor, now)
        else:
            seconds = self._address_limit.count_use(network_of(request.client.host if request.client else ""), now)
        if not seconds:
            return None
        return Response("Too many requests. Please wait a moment.", 429, {"Retry-After": str(int(seconds) + 1)})

    def add_headers(self, headers: MutableHeaders) -> None:
        if self._is_shared:
            headers["Strict-Transport-Security"] = f"max-age={_SECURITY_SECONDS}"


class BoundedConnection(H11Protocol):
    """A connection that is closed where nothing is asked by it; an address may have so many at once."""

    open: Counter[str]
    most: int

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        peer = transport.get_extra_info("peername")
        self._network = network_of(peer[0]) if peer else ""
        self.open[self._network] += 1
        super().connection_made(transport)
        self._last_cycle: RequestResponseCycle | None = None
        self._deadline = self.loop.call_later(REQUEST_WAIT, self._end_silent)
        if self.open[self._network] > MOST_OF_ADDRESS or self.open.total() > self.most:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()
        self.open[self._network] -= 1
        if not self.open[self._network]:
            del self.open[self._network]
        super().connection_lost(exc)

    def _end_silent(self) -> None:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request is whole
        if cycle is self._last_cycle and (cycle is None or cycle.response_complete):
            self.transport.close()
        else:
            self._last_cycle = cycle
            self._deadline = self.loop.call_later(REQUEST_WAIT, self._end_silent)


def _most_connections() -> int:
    """`MOST_CONNECTIONS`, or fewer where this process may not open as many files; it is allowed 1024 or 256 at first.

    Without a file that is left to open no answer can be written.
    """
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = _FILES if most == resource.RLIM_INFINITY else min(_FILES, most)
    if allowed != resource.RLIM_INFINITY and allowed < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
    return min(MOST_CONNECTIONS, files - _OWN_FILES)


class _Routes:
    """What a participant may ask for. One person's requests wait for each other, and take no thread meanwhile."""

    def __init__(self, sessions: ParticipantSessions) -> None:
        self._sessions = sessions
        self._turns: dict[str, Lock] = {}
        self._threads: CapacityLimiter | None = None

    def routes(self) -> list[Route | Mount]:
        return [
            Route("/", lambda request: FileResponse(STATIC / "study.html")),
            Route("/report.css", lambda request: Response(page_style(), media_type="text/css")),
            Route("/api/study", self._state),
            Route("/api/study/answer", self._answer, methods=["POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]

    async def _state(self, request: Request) -> Response:
        return await self._in_turn(request.scope["visitor"], None)

    async def _answer(self, request: Request) -> Response:
        try:
            with fail_after(ANSWER_WAIT):
                body = await body_of(request, MAX_ANSWER)
        except TimeoutError:
            return json_response({"error": "the answer took too long to arrive"}, 408)
        if body is None:
            return json_response({"error": f"more than {MAX_ANSWER // 2**20} MiB were sent"}, 413)
        try:
            sent = sent_as(SentAnswer, body)
        except DataError as error:  # of the body alone
            raise RefusedAnswer(str(error)) from error
        return await self._in_turn(request.scope["visitor"], sent)

    async def _in_turn(self, name: str, sent: SentAnswer | None) -> Response:
        def reply() -> Json:
            session = self._sessions.session_of(name)
            return session.state() if sent is None else session.answer(sent)

        self._threads = self._threads or CapacityLimiter(_THREADS)
        async with self._turns.setdefault(name, Lock()):
            return json_response(await to_thread.run_sync(reply, limiter=self._threads))


def _refusal(request: Request, error: Exception) -> Response:
    return json_response({"error": str(error)}, 400)


def _failure(request: Request, error: Exception) -> Response:
    """The log says why; it may name files, which are none of a participant's business."""
    problem = system_problem(error) if isinstance(error, OSError) else str(error)  # which may quote what was sent
    log.error("%s: %s", request.scope["visitor"], one_line(problem))
    return json_response({"error": _TROUBLE}, 500)


_HANDLERS = {**HANDLERS, RefusedAnswer: _refusal, BaristaError: _failure, OSError: _failure}


@contextmanager
def study_server(folder: Path, tls_cert: Path | None = None, tls_key: Path | None = None) -> Iterator[SharedServer]:
    """The server of a study at the address that its links have, which answers once `run` is called.

    Args:
        tls_cert, tls_key: PEM files of the certificate and its key, of a study that is shared beyond this machine.

    Raises:
        ConfigError: it is served already, its address cannot be had, or there is no certificate of it.
        DataError: the study or its datasets cannot be read.
    """
    sessions = ParticipantSessions(folder)
    study = sessions.study
    if study.shared and not (tls_cert and tls_key):
        remedy = "give --tls-cert and --tls-key"
        raise ConfigError(f"{folder}: its links lead to {study.origin}, which is beyond this machine. Remedy: {remedy}")
    if not study.shared and (tls_cert or tls_key):
        remedy = "leave --tls-cert and --tls-key out, or invite with --share-on"
        raise ConfigError(f"{folder}: its links lead to {study.origin}, on this machine alone. Remedy: {remedy}")
    address = Address.read(study.address)
    lock = FileLock(folder / ".served.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise ConfigError(f"{folder}: is served already. Remedy: end the other server") from error
    try:
        with bound_socket(
            address.name if study.shared else HOST, address.port, "end what uses it, or invite again at another address"
        ) as listener:
            yield SharedServer(sessions, listener, tls_cert, tls_key)
    finally:
        lock.release()


class SharedServer:
    """A study's server."""

    def __init__(
        self, sessions: ParticipantSessions, listener: socket.socket, certificate: Path | None, key: Path | None
    ) -> None:
        guard = Middleware(ParticipantGuard, sessions=sessions)
        app = Starlette(routes=_Routes(sessions).routes(), middleware=[guard], exception_handlers=_HANDLERS)
        self.study, self._listener = sessions.study, listener
        protocol = type("Connection", (BoundedConnection,), {"open": Counter[str](), "most": _most_connections()})
        config = uvicorn.Config(app, http=protocol, ws="none", ssl_certfile=certificate, ssl_keyfile=key, **UVICORN)
        try:
            config.load()
        except (ssl.SSLError, OSError) as error:
            problem = getattr(error, "strerror", None) or str(error)
            remedy = "give PEM files of a certificate and its key"
            raise ConfigError(f"{certificate}, {key}: cannot be used ({problem}). Remedy: {remedy}") from error
        self._server = uvicorn.Server(config)

    def run(self) -> None:
        """Answer until `stop`, or until the process is told to end."""
        self._server.run(sockets=[self._listener])

    def stop(self) -> None:
        self._server.should_exit = True
