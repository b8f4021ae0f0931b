"""Shared code of the studio's servers: controls access, serves the page and its files, reads bodies, sets up uvicorn.

The address of a file changes with the content, so a browser requests each file only once.
"""

from __future__ import annotations

import hashlib
import hmac
import socket
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from barista_bench.errors import ConfigError
from barista_bench.reporting.html import page_style

STATIC = Path(__file__).parent / "static"
_KEPT = {"Cache-Control": "private, max-age=31536000, immutable"}
_LOADED_OTHERWISE = ("konva.min.js", "paint_worker.js", "study.js")

HOST = "127.0.0.1"
_END_WAIT = 2
"""Seconds that a running request may still take when the server ends."""
UVICORN: dict[str, Any] = {
    "log_level": "warning",
    "access_log": False,  # addresses contain tokens
    "server_header": False,
    "proxy_headers": False,  # otherwise anyone could send a false address
    "lifespan": "off",
    "timeout_graceful_shutdown": _END_WAIT,
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_REPORT_POLICY = "frame-ancestors 'none'"
"""Policy that the server adds for the report, which itself has a policy with the hashes of its script and style."""
WRITTEN = "/written/"
_WRITTEN_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; frame-ancestors 'none'"
)
"""Policy of reports in a folder. Anyone may have written them, so they do not get the studio's origin."""


def home_of(token: str) -> str:
    """Return the path of the pages for a token; it reveals nothing about the token.

    Cookies are shared between ports: a browser sends a cookie with the path `/` to every server of this machine that it
    visits. The owner of such a server could then use the cookie here. No other server has the path returned here.
    """
    return f"/{hashlib.sha256(token.encode()).hexdigest()[:32]}/"


class Guard:
    """Refuses requests that do not come from the server's own page, before anything is read.

    Args:
        origins: the server's own origins, such as `http://localhost:8800`.
        cookie: name of the cookie with the token.
    """

    def __init__(self, app: ASGIApp, *, origins: Collection[str], cookie: str) -> None:
        self.app, self._cookie = app, cookie
        self._origins = {origin.partition("://")[2]: origin for origin in origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await WebSocketClose()(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Content-Security-Policy"] = _policy(scope["path"].removeprefix(scope["root_path"]))
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Referrer-Policy"] = "no-referrer"
                headers["Cross-Origin-Resource-Policy"] = "same-origin"
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await (self._refusal(Request(scope)) or self.app)(scope, receive, send_guarded)

    def home(self, token: str) -> str:
        """Return the parent path of the pages for a token."""
        return home_of(token)

    def visitor(self, token: str) -> str | None:
        """Return the owner of a token; None for an unknown token."""
        raise NotImplementedError

    def welcome(self, token: str) -> Response:
        """Return the response to a first visit with a token."""
        raise NotImplementedError

    def may_come_from_elsewhere(self, request: Request) -> bool:
        """Return True if another page may link to this address."""
        return False

    def _refusal(self, request: Request) -> Response | None:
        """Return a response that replaces the page, for a first visit with the token or without a valid token."""
        headers = request.headers
        expected = self._origins.get(headers.get("host", ""))
        link_token, cookie_token = request.query_params.get("token", ""), _cookie(headers, self._cookie)
        link_visitor, visitor = self.visitor(link_token), self.visitor(cookie_token)
        if expected is None:
            return Response("Another host's name leads here: refused.", 403)
        origin = headers.get("origin")
        site = headers.get("sec-fetch-site", "none")
        is_foreign = origin not in (None, expected) or site not in ("none", "same-origin")
        if is_foreign and not (link_visitor and self.may_come_from_elsewhere(request)):
            return Response("This request comes from another page: refused.", 403)
        if link_visitor:
            return self.welcome(link_token)
        if not visitor or not request.url.path.startswith(self.home(cookie_token)):
            return Response(self.stranger_text, 403)
        if request.method != "GET" and origin is None:
            return Response("No origin: refused.", 403)
        request.scope.update(visitor=visitor, root_path=self.home(cookie_token)[:-1])
        return None

    stranger_text = "Open the address that the command printed: it holds the token."
    """The text of a refusal of requests without a valid token."""


class OwnGuard(Guard):
    """Admits requests that have the server's only token, on this machine."""

    def __init__(self, app: ASGIApp, *, token: str, port: int) -> None:
        origins = [f"http://{name}:{port}" for name in (HOST, "localhost")]
        super().__init__(app, origins=origins, cookie=f"studio-{port}")
        self._token = token

    def visitor(self, token: str) -> str | None:
        return "owner" if hmac.compare_digest(token.encode(), self._token.encode()) else None

    def welcome(self, token: str) -> Response:
        welcome = RedirectResponse(self.home(token), 303)
        welcome.set_cookie(self._cookie, token, path=self.home(token), httponly=True, samesite="strict")
        return welcome


def _policy(path: str) -> str:
    if path.startswith(WRITTEN):
        return _WRITTEN_POLICY
    return _REPORT_POLICY if path == "/report" else _POLICY


def _cookie(headers: Headers, name: str) -> str:
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return morsel.value if morsel else ""


async def body_of(request: Request, most: int) -> bytes | None:
    """Return the body of a request; None if it has more than `most` bytes."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most:
            return None
    return bytes(body)


def json_response(value: object, status: int = 200) -> Response:
    """Return a response with JSON."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def _depth_error(request: Request, error: Exception) -> Response:
    return json_response({"error": "what was sent is nested too deeply. Fix: load the page again"}, 400)


def _broken_off(request: Request, error: Exception) -> Response:
    """Return a response that is never read, because the sender of the body has disconnected."""
    return Response(status_code=400)


HANDLERS: dict[Any, Callable[[Request, Exception], Response]] = {
    RecursionError: _depth_error,  # a parser raises this for a body
    ClientDisconnect: _broken_off,
}
"""Every server's responses to faulty requests."""


@contextmanager
def bound_socket(port: int, remedy: str) -> Iterator[socket.socket]:
    """Yield a socket that listens at a port of this machine; 0 takes a free port.

    Raises ConfigError if the port is taken.
    """
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
            listener.listen(64)
        except OSError as error:
            raise ConfigError(f"port {port} of {HOST} cannot be used ({error.strerror}). Fix: {remedy}") from error
        yield listener


def page_routes() -> list[Route | Mount]:
    """Return the routes of the page, and of its files below `/static/VERSION`; any version is accepted."""
    return [
        Route("/", _page),
        Route(
            "/static/{version}/report.css", lambda request: Response(page_style(), media_type="text/css", headers=_KEPT)
        ),
        Mount("/static/{version}", _KeptFiles(directory=STATIC)),
    ]


class _KeptFiles(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(_KEPT)
        return response


def _page(request: Request) -> Response:
    """Return index.html, which names all modules, so that a browser requests them all at once."""
    folder = f"static/{_files_version()}/"
    names = (path.name for path in sorted(STATIC.glob("*.js")) if path.name not in _LOADED_OTHERWISE)
    modules = "".join(f'<link rel="modulepreload" href="{folder}{name}">\n' for name in names)
    page = (STATIC / "index.html").read_text(encoding="utf-8").replace("static/", folder)
    return HTMLResponse(page.replace("</head>", f"{modules}</head>"))


def _files_version() -> str:
    """Return a stamp that changes with every file, so that edits take effect."""
    facts = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in sorted(STATIC.iterdir())]
    return hashlib.sha256(repr((facts, page_style())).encode()).hexdigest()[:16]
