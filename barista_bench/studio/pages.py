"""Serves the page and its files; an address changes with the content, so a browser requests each file only once."""

from __future__ import annotations

import hashlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from barista_bench.reporting.html import page_style

STATIC = Path(__file__).parent / "static"
_KEPT = {"Cache-Control": "private, max-age=31536000, immutable"}
_LOADED_OTHERWISE = ("konva.min.js", "paint_worker.js", "study.js")


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
