"""The studio's web server: serves the package's pages and files, and JSON about the open folders, and controls access.

The server listens only on this machine. The printed address contains a token, which becomes a cookie at the first
visit. Requests without the token are refused. Other servers of the machine do not know the cookie's path
(`web.home_of`). The `Host` header must name this server, since another name that leads here is an attack. Requests from
scripts of other pages are refused because of their `Origin`. The content policy allows the page to load only from this
server.
"""

from __future__ import annotations

import logging
import secrets
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route

from barista_bench.errors import BaristaError, ConfigError
from barista_bench.files.paths import confine
from barista_bench.files.text_out import system_problem
from barista_bench.reporting import PAGE
from barista_bench.studio.commands import CommandRoutes
from barista_bench.studio.drafting import DraftRoutes
from barista_bench.studio.drop_videos import take_video
from barista_bench.studio.exploring import ExploreRoutes, ReportRoutes
from barista_bench.studio.footage import FootageRoutes
from barista_bench.studio.home import HomeRoutes
from barista_bench.studio.jobs import Jobs
from barista_bench.studio.people import AnswerRoutes
from barista_bench.studio.posters import poster
from barista_bench.studio.rating import RatingRoutes
from barista_bench.studio.web import (
    HANDLERS,
    HOST,
    UVICORN,
    WRITTEN,
    OwnGuard,
    body_of,
    bound_socket,
    json_response,
    page_routes,
)
from barista_bench.studio.workspace import ConflictError, Json, Query, Routes, Workspace, whole_number, with_folder

if TYPE_CHECKING:
    from barista_bench.studio.annotating import AnnotationRoutes

log = logging.getLogger(__name__)

MAX_BODY = 64 * 2**20
"""Limit of bytes for a request; the masks of a frame take a few hundred KB."""
_LAST_PORT = 2**16 - 1
_WRITING_THREADS = 8
_POSTER_THREADS = 2


class StudioApp:
    """The routes of a workspace.

    Args:
        command_routes: the routes that run commands, if commands are allowed.
        previous: the routes of the folders that were open until now. A project that stays open keeps its single writer.
    """

    def __init__(
        self, workspace: Workspace, command_routes: CommandRoutes | None = None, previous: StudioApp | None = None
    ) -> None:
        self.workspace, self.footage, self.runs = workspace, FootageRoutes(workspace), ReportRoutes(workspace)
        self._posters = threading.BoundedSemaphore(_POSTER_THREADS)
        self.groups: tuple[Routes, ...] = (self.footage, self.runs, HomeRoutes(workspace))
        self.groups += (
            ExploreRoutes(workspace),
            AnswerRoutes(workspace),
            RatingRoutes(workspace),
            DraftRoutes(workspace),
        )
        self.command_routes = command_routes
        self.annotating: AnnotationRoutes | None = None
        if command_routes is not None:
            self.groups += (command_routes,)
        if workspace.reviews:
            from barista_bench.studio.questions import QuestionRoutes  # this import takes about a second

            self.groups += (QuestionRoutes(workspace),)
        if workspace.project is not None:
            from barista_bench.studio.annotating import AnnotationRoutes as AnnotationRoutes
            from barista_bench.studio.segmenting import SegmentRoutes

            project, annotating = workspace.project, previous.annotating if previous else None
            if annotating is None or annotating.folder.resolve() != project.folder.resolve():
                annotating = AnnotationRoutes(workspace, project)
            self.annotating = annotating
            self.groups += (annotating, SegmentRoutes(project))

    def routes(self) -> list[Route | Mount]:
        reads = [Route(path, _read_endpoint(take)) for group in self.groups for path, take in group.reads.items()]
        threads = CapacityLimiter(_WRITING_THREADS)
        writes = [
            Route(path, _write_endpoint(take, threads), methods=["POST"])
            for group in self.groups
            for path, take in group.writes.items()
        ]
        return [
            *page_routes(),
            Route("/report", self._report),
            Route(f"{WRITTEN}{{path:path}}", self._written_report),
            Route("/media/{kind}/{video}/poster.jpg", self._poster),
            Route("/media/{kind}/{video}/{frame}.jpg", self._send_still),
            Route("/media/{kind}/{video}/{name}.mp4", self._proxy),
            *reads,
            *writes,
            *([Route("/api/upload", self._upload, methods=["POST"])] if self.command_routes else []),
        ]

    def _report(self, request: Request) -> Response:
        page = self.runs.page
        return FileResponse(page) if page else Response("The report is not ready.", 404)

    def _written_report(self, request: Request) -> Response:
        """Return a report in the studio's folder. Raises DataError for a path that leads out of the folder."""
        folder, name = self.workspace.folder, request.path_params["path"]
        page = confine(folder, name) if folder and Path(name).name == PAGE else None
        return FileResponse(page) if page and page.is_file() else Response("There is no such report.", 404)

    async def _upload(self, request: Request) -> Response:
        assert self.command_routes is not None
        root = self.command_routes.folder
        return json_response(await take_video(root, Query(request.query_params), request.stream()))

    def _send_still(self, request: Request) -> Response:
        return self._picture(
            request,
            lambda kind, video: self.footage.read_still(kind, video, whole_number(request.path_params, "frame")),
        )

    def _poster(self, request: Request) -> Response:
        with self._posters:  # meanwhile, the other threads answer requests
            return self._picture(request, lambda kind, video: poster(self.workspace.video_path(kind, video)))

    def _picture(self, request: Request, take: Callable[[str, str], bytes]) -> Response:
        """Return a JPEG of a video, unless the browser has it already and the video is unchanged."""
        kind, video = request.path_params["kind"], request.path_params["video"]
        headers = {"Cache-Control": "no-cache", "ETag": f'"{self.footage.version(kind, video)}"'}
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(take(kind, video), media_type="image/jpeg", headers=headers)

    def _proxy(self, request: Request) -> Response:
        file = self.footage.proxy(**request.path_params)
        return FileResponse(file, media_type="video/mp4") if file else Response("The copy is not ready.", 404)


def _read_endpoint(take: Callable[[Mapping[str, str]], Json]) -> Callable[[Request], Response]:
    """Return an endpoint without side effects; Starlette runs it in a thread."""
    return lambda request: json_response(take(Query(request.query_params)))


def _write_endpoint(take: Callable[[bytes], Json], pool: CapacityLimiter) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint with side effects. It has its own threads, since it may wait for stages."""

    async def endpoint(request: Request) -> Response:
        body = await body_of(request, MAX_BODY)
        if body is None:
            return json_response({"error": f"more than {MAX_BODY // 2**20} MiB were sent"}, 413)
        return json_response(await to_thread.run_sync(take, body, limiter=pool))

    return endpoint


def _refusal(request: Request, error: Exception) -> Response:
    """Return to the page the text of an error that this package raised on purpose."""
    write_status = 409 if isinstance(error, ConflictError) else 400
    return json_response({"error": str(error)}, 404 if request.method == "GET" else write_status)


def _failure(request: Request, error: Exception) -> Response:
    problem = system_problem(error) if isinstance(error, OSError) else str(error)
    log.warning("%s", problem)
    return json_response({"error": problem}, 500)


@contextmanager
def studio_server(workspace: Workspace, port: int = 0, program: object = None) -> Iterator[Server]:
    """Yield a server bound to a port of this machine; it answers once `run` is called, and its jobs end with the block.

    Args:
        port: the port; 0 takes a free port.
        program: the command line, which the page may run in the workspace's folder, if the workspace has a folder.

    Raises:
        ConfigError: the port is taken or invalid.
    """
    if not 0 <= port <= _LAST_PORT:
        raise ConfigError(f"--port {port}: is not a port. Fix: give 0 to {_LAST_PORT}, or leave --port out")
    with bound_socket(port, "leave --port out") as listener:
        server = Server(workspace, listener, program)
        try:
            yield server
        finally:
            server.jobs.end()


class Server:
    """A running studio. `address` contains the token, so only the person who started the studio should see it."""

    def __init__(self, workspace: Workspace, listener: socket.socket, program: object = None) -> None:
        folder = workspace.folder
        self.jobs = Jobs(folder or Path())
        may_run = program is not None and folder is not None
        command_routes = CommandRoutes(program, folder, self.jobs, self._open) if may_run and folder else None
        self._workspace, self._studio = workspace, StudioApp(workspace, command_routes)
        self._opening = threading.Lock()
        port, token = listener.getsockname()[1], secrets.token_urlsafe(24)
        guard = Middleware(OwnGuard, token=token, port=port)
        handlers = {**HANDLERS, BaristaError: _refusal, OSError: _failure}
        app = self._app = Starlette(routes=self._studio.routes(), middleware=[guard], exception_handlers=handlers)
        self.address = f"http://{HOST}:{port}/?token={token}"
        self._server, self._listener = uvicorn.Server(uvicorn.Config(app, **UVICORN)), listener

    def _open(self, path: Path) -> None:
        with self._opening:
            self._workspace = with_folder(self._workspace, path)
            self._studio = StudioApp(self._workspace, self._studio.command_routes, self._studio)
            self._app.router.routes = [*self._studio.routes()]

    def run(self) -> None:
        """Answer requests until `stop` is called or the process is told to end."""
        self._server.run(sockets=[self._listener])

    def stop(self) -> None:
        self._server.should_exit = True
