"""The studio's server in a thread of the test, and requests to it as its page sends them."""

import functools
import json
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from barista_bench.cli.commands import app
from barista_bench.studio.server import studio_server
from barista_bench.studio.web import home_of
from barista_bench.studio.workspace import Workspace, open_workspace
from tests.releases import document, write_release
from tests.video_samples import render

program = functools.cache(lambda: typer.main.get_command(app))
"""All commands, made of their functions once: as much work as the rest of a studio's start."""


@contextmanager
def studio_at(workspace: Workspace) -> Iterator[str]:
    """The address with the token, as the command prints it."""
    with studio_server(workspace, program=program()) as server:
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        yield server.address
        server.stop()
        thread.join(10)


@contextmanager
def visiting(
    *paths: Path, out: Path, person: str = "anna", compared: Sequence[Path] = (), folder: Path | None = None
) -> Iterator["Visitor"]:
    """A user before a studio of these folders and files."""
    with studio_at(open_workspace(paths, person=person, out=out, compared=compared, folder=folder)) as address:
        yield Visitor(address)


def until(holds: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it does not come to hold"
        time.sleep(0.02)


class Visitor:
    """A client of a server: `answer(path)` is (status, body); headers can be an attacker's."""

    def __init__(self, address: str, tls: ssl.SSLContext | None = None) -> None:
        self.base, _, self.token = address.partition("/?token=")
        self.host, self._tls = self.base.partition("://")[2], tls
        self.cookie = f"studio-{self.host.rpartition(':')[2]}={self.token}"
        self.home = home_of(self.token)

    def answer(self, path: str, body: object = None, **headers: str) -> tuple[int, bytes, dict[str, str]]:
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        usual = {"Cookie": self.cookie} | ({} if data is None else {"Origin": self.base})
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {name: value for name, value in {**usual, **given}.items() if value}
        below = "" if path.startswith("/?") else self.home.rstrip("/")
        request = urllib.request.Request(self.base + below + path, data, sent)
        opener = urllib.request.build_opener(_NoRedirect, urllib.request.HTTPSHandler(context=self._tls))
        try:
            with opener.open(request, timeout=120) as response:
                return response.status, response.read(), dict(response.headers)
        except urllib.error.HTTPError as error:
            return error.code, error.read(), dict(error.headers)

    def json(self, path: str, body: object = None) -> Any:
        status, content, _ = self.answer(path, body)
        assert status == 200, content
        return json.loads(content)

    def refusal(self, path: str, body: object = None, *, status: int = 400) -> str:
        """The error of a request that is refused."""
        got, content, _ = self.answer(path, body)
        assert got == status, content
        return str(json.loads(content)["error"])

    def with_copies(self, video: str) -> dict[str, Any]:
        """The facts of a release's video once its copies are made."""
        for _ in range(2400):
            state: dict[str, Any] = self.json(f"/api/footage?kind=graph&video={video}")
            if state["copy"]["state"] == "done":
                return state
            assert state["copy"]["state"] != "failed", state["copy"]
            time.sleep(0.05)
        raise AssertionError(state)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: object) -> None:
        return None


def painted_release(root: Path, frames: int, **settings: Any) -> Path:
    """A release of one video, `clip`, whose frames show their own numbers; `settings` are arguments of `render`."""
    content = document()
    content["video_metadata"][0]["frame_count"] = frames
    render(write_release(root, "clip", content, video=False) / "clip" / "video.mp4", frames, **settings)
    return root
