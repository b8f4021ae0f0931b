"""The server of a study, which gives participants their questions and no other data of this machine.

The server has no route to a project, a release, a run or a file, and listens on a port of this machine. A reverse proxy
in front of it adds TLS and limits the rate of requests. The server then answers only requests that name the proxy's
host.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from anyio import fail_after, to_thread
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from barista_bench.errors import BaristaError, DataError
from barista_bench.files.text_out import one_line, system_problem
from barista_bench.reporting.html import page_style
from barista_bench.studio.participants import ParticipantSessions, RefusedAnswer, SentAnswer
from barista_bench.studio.web import HANDLERS, STATIC, UVICORN, Guard, body_of, bound_socket, json_response
from barista_bench.studio.workspace import sent_as

log = logging.getLogger(__name__)

MAX_ANSWER = 2**20
"""Limit of bytes for an answer; masks drawn by hand take a few KB."""
ANSWER_WAIT = 30
"""Seconds within which an answer must arrive."""
_FAILURE_TEXT = "This cannot be done now. Please try again later, or tell whoever sent you the link."
_JOIN_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={home}">'
    '<link rel="icon" href="{home}static/icon.svg"><title>Study</title>'
    '<p><a href="{home}">Go on to the study</a></p></html>'
)
"""A page instead of a redirect: then the browser also sends the cookie if the link was opened from another site."""


class ParticipantGuard(Guard):
    """Admits requests that have a token of the study, from the participant's page or through the link."""

    stranger_text = "This link is not valid here, or has been replaced. Please ask whoever sent it for a new one."

    def __init__(self, app: ASGIApp, *, sessions: ParticipantSessions) -> None:
        study = sessions.study
        self._sessions, self._is_public = sessions, bool(study.public_url)
        cookie = "__Host-study" if self._is_public else f"study-{study.port}"
        super().__init__(app, origins=[study.origin], cookie=cookie)

    def visitor(self, token: str) -> str | None:
        return self._sessions.name_of(token)

    def welcome(self, token: str) -> Response:
        home = self.home(token)
        page = HTMLResponse(_JOIN_PAGE.format(home=home))
        page.set_cookie(self._cookie, token, path=home, secure=self._is_public, httponly=True, samesite="strict")
        return page

    def home(self, token: str) -> str:
        """Return the path of the pages: a cookie with the prefix `__Host-` belongs to this host, and has no path."""
        return "/" if self._is_public else super().home(token)

    def may_come_from_elsewhere(self, request: Request) -> bool:
        """Return True if a link in a letter or on a page may lead here; only navigation of a window may."""
        headers = request.headers
        goes_there = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        return request.method == "GET" and request.url.path == "/" and goes_there


class _Routes:
    def __init__(self, sessions: ParticipantSessions) -> None:
        self._sessions = sessions

    def routes(self) -> list[Route | Mount]:
        return [
            Route("/", lambda request: FileResponse(STATIC / "study.html")),
            Route("/report.css", lambda request: Response(page_style(), media_type="text/css")),
            Route("/api/study", self._state),
            Route("/api/study/answer", self._answer, methods=["POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]

    def _state(self, request: Request) -> Response:
        return json_response(self._sessions.session_of(request.scope["visitor"]).state())

    async def _answer(self, request: Request) -> Response:
        try:
            with fail_after(ANSWER_WAIT):
                body = await body_of(request, MAX_ANSWER)
        except TimeoutError:
            return json_response({"error": "the answer took too long to arrive"}, 408)
        if body is None:
            return json_response({"error": f"more than {MAX_ANSWER // 2**20} MiB were sent"}, 413)
        return await to_thread.run_sync(self._kept_answer, request.scope["visitor"], body)

    def _kept_answer(self, name: str, body: bytes) -> Response:
        try:
            sent = sent_as(SentAnswer, body)
        except DataError as error:  # reading the body raises only this error
            raise RefusedAnswer(str(error)) from error
        return json_response(self._sessions.session_of(name).answer(sent))


def _refusal(request: Request, error: Exception) -> Response:
    return json_response({"error": str(error)}, 400)


def _failure(request: Request, error: Exception) -> Response:
    """Log the reason of an error. The participant does not see it, since it may name files."""
    problem = system_problem(error) if isinstance(error, OSError) else str(error)  # this text may quote the sent data
    log.error("%s: %s", request.scope["visitor"], one_line(problem))
    return json_response({"error": _FAILURE_TEXT}, 500)


_HANDLERS = {**HANDLERS, RefusedAnswer: _refusal, BaristaError: _failure, OSError: _failure}


@contextmanager
def study_server(folder: Path) -> Iterator[StudyServer]:
    """Yield the server of a study, bound to the study's port of this machine; it answers once `run` is called.

    Raises:
        ConfigError: the port is taken, by the same study or by another program.
        DataError: the study or its datasets cannot be read.
    """
    sessions = ParticipantSessions(folder)
    remedy = "end what uses it, or invite again with another --port and --out"
    with bound_socket(sessions.study.port, remedy) as listener:
        yield StudyServer(sessions, listener)


class StudyServer:
    """A study's server."""

    def __init__(self, sessions: ParticipantSessions, listener: socket.socket) -> None:
        guard = Middleware(ParticipantGuard, sessions=sessions)
        app = Starlette(routes=_Routes(sessions).routes(), middleware=[guard], exception_handlers=_HANDLERS)
        self.study, self._listener = sessions.study, listener
        self._server = uvicorn.Server(uvicorn.Config(app, ws="none", **UVICORN))

    def run(self) -> None:
        """Answer requests until `stop` is called or the process is told to end."""
        self._server.run(sockets=[self._listener])

    def stop(self) -> None:
        self._server.should_exit = True
