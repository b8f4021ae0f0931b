"""The clients that the studio answers, and the information that it gives about itself."""

import errno
import hashlib
import json
import os
import re
import socket
import threading
import urllib.request
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from starlette.types import Message, Receive, Scope, Send

from barista_bench.errors import ConfigError
from barista_bench.studio import server
from barista_bench.studio.server import studio_server
from barista_bench.studio.web import STATIC, OwnGuard
from barista_bench.studio.workspace import Json, Routes, Workspace, open_workspace
from tests.studio.serving import Visitor, studio_at, visiting


@pytest.fixture
def visitor(small_release: Path, out: Path) -> Iterator[Visitor]:
    with visiting(small_release, out=out) as visitor:
        yield visitor


def test_the_token_of_the_address_becomes_a_cookie_that_scripts_cannot_read(visitor: Visitor) -> None:
    token = visitor.cookie.partition("=")[2]
    status, _, headers = visitor.answer(f"/?token={token}", Cookie="")
    assert (status, headers["location"]) == (303, visitor.home)
    assert {"HttpOnly", "SameSite=strict", f"Path={visitor.home}"} <= set(headers["set-cookie"].split("; "))
    assert visitor.answer("/")[0] == 200


def test_the_cookie_goes_to_no_other_server_of_this_machine(visitor: Visitor) -> None:
    """Browsers send cookies to every port of a host, but only below their path, which tells nothing of the token."""
    jar = CookieJar()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    with opener.open(f"{visitor.base}/?token={visitor.token}") as page:
        assert page.url == visitor.base + visitor.home
    assert visitor.token not in visitor.home
    for path in ("/", "/any/", "/static/x.js", "/api/studio"):
        request = urllib.request.Request(f"http://127.0.0.1:1{path}")
        jar.add_cookie_header(request)
        assert not request.has_header("Cookie"), path
    request = urllib.request.Request(f"{visitor.base}{visitor.home}api/studio")
    jar.add_cookie_header(request)
    assert request.get_header("Cookie") == visitor.cookie


def test_nothing_lies_outside_of_the_cookies_path(visitor: Visitor) -> None:
    visitor.home = "/"
    for path in ("/", "/api/studio", "/report", "//"):
        assert visitor.answer(path)[0] == 403


def test_nothing_is_answered_without_the_token(visitor: Visitor) -> None:
    for path in ("/", "/api/studio", "/static/any/main.js", "/report", "/media/graph/v0/0.jpg", "/nowhere"):
        assert visitor.answer(path, Cookie="")[0] == visitor.answer(path, b"{}", Cookie="")[0] == 403
        assert visitor.answer(path, Cookie=visitor.cookie[:-1])[0] == 403
        assert visitor.answer(path + "?token=wrong", Cookie="")[0] == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "localhost:1"])
def test_a_foreign_host_name_that_leads_here_is_refused(visitor: Visitor, host: str) -> None:
    assert visitor.answer("/api/studio", Host=host)[0] == 403


def test_another_pages_requests_are_refused_even_with_the_cookie(visitor: Visitor) -> None:
    assert visitor.answer("/api/studio", Origin="http://evil.example")[0] == 403
    assert visitor.answer("/api/studio", Origin="null")[0] == 403
    assert visitor.answer("/api/studio", Sec_Fetch_Site="cross-site")[0] == 403
    assert visitor.answer("/api/studio", Sec_Fetch_Site="same-site")[0] == 403
    assert visitor.answer("/api/studio", Sec_Fetch_Site="same-origin")[0] == 200
    assert visitor.answer("/api/studio", Sec_Fetch_Site="none")[0] == 200
    assert visitor.answer("/api/studio", b"{}", Origin="")[0] == 403


def test_every_answer_forbids_foreign_scripts_and_frames(visitor: Visitor) -> None:
    for path in ("/", "/api/studio", "/static/any/main.js", "/media/graph/v0/0.jpg"):
        _, _, headers = visitor.answer(path)
        policy = headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"


NOTHING = (
    *("/media/graph/..%2F..%2Fetc/0.jpg", "/media/graph/%2Fetc%2Fpasswd/proxy.mp4", "/media/else/v0/0.jpg"),
    *("/static/any/..%2F__init__.py", "/static/any/a%00b", "/api/search?video=v0&text=", "/api/frame?video=v0"),
    *(f"/api/frame?video=v0&frame={frame}" for frame in ("99999", "-1", "1e3")),
    *("/api/frame?video=../v0&frame=0", "/media/graph/v0/99999.jpg", f"/media/graph/v0/{'9' * 5000}.jpg"),
)


def test_an_unknown_address_gets_a_message_and_does_not_end_the_server(visitor: Visitor) -> None:
    for path in NOTHING:
        status, body, _ = visitor.answer(path)
        assert status in (400, 404), path
        assert b"Traceback" not in body
        assert b"root:" not in body
    assert visitor.json("/api/studio")["person"] == "anna"


def test_the_server_listens_only_on_this_machine(small_release: Path, out: Path) -> None:
    with studio_server(open_workspace([small_release], person="anna", out=out)) as server:
        assert server.address.startswith("http://127.0.0.1:")


def test_a_port_that_is_taken_is_named(small_release: Path, out: Path) -> None:
    workspace = open_workspace([small_release], person="anna", out=out)
    with studio_at(workspace) as address:
        port = int(Visitor(address).host.rpartition(":")[2])
        with pytest.raises(ConfigError, match=f"port {port}"), studio_server(workspace, port):
            pass


@pytest.mark.parametrize("port", [-1, 70_000])
def test_a_number_that_is_no_port_is_refused(out: Path, port: int) -> None:
    with pytest.raises(ConfigError, match=rf"--port {port}: .*Fix"), studio_server(Workspace("anna", out), port):
        pass


def test_only_http_is_let_in(out: Path) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("let in")

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    with start_blocking_portal() as portal:  # in a separate thread: Playwright's loop may run in this one
        portal.call(OwnGuard(app, token="t", port=1), {"type": "websocket"}, receive, send)
    assert [message["type"] for message in sent] == ["websocket.close"]


class Failing(Routes):
    """Fails as the system, or as what parses a body."""

    def __init__(self, workspace: Workspace) -> None:
        self.writes = {"/api/full": self._full, "/api/deep": self._deep}

    def _full(self, body: bytes) -> Json:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "kept.json")

    def _deep(self, body: bytes) -> Json:
        raise RecursionError


def test_an_error_of_the_system_reaches_the_page_in_words(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "RatingRoutes", Failing)
    with studio_at(Workspace("anna", out)) as address:
        full, deep = (Visitor(address).answer(path, {}) for path in ("/api/full", "/api/deep"))
    assert full[0] == 500
    assert json.loads(full[1])["error"].startswith("kept.json: No space left on device. Fix: free some space")
    assert deep[0] == 400
    assert "nested too deeply" in json.loads(deep[1])["error"]


@pytest.mark.full
def test_the_server_ends_though_a_request_is_half_sent(out: Path) -> None:
    with studio_server(Workspace("anna", out)) as served:
        thread = threading.Thread(target=served.run, daemon=True)
        thread.start()
        visitor = Visitor(served.address)
        host, port = visitor.host.split(":")
        with socket.create_connection((host, int(port))) as half:
            lines = ["POST /api/people/next HTTP/1.1", f"Host: {visitor.host}", f"Cookie: {visitor.cookie}"]
            lines += [f"Origin: {visitor.base}", "Content-Length: 1000", "", "abc"]
            half.sendall("\r\n".join(lines).encode())
            assert visitor.json("/api/studio")
            served.stop()
            thread.join(8)
            assert not thread.is_alive()


def test_a_folder_that_holds_nothing_to_open_is_refused_with_the_remedy(tmp_path: Path, out: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing that the studio can open\. Fix"):
        open_workspace([tmp_path], person="anna", out=out)


def test_foreign_files_equal_their_makers_published_ones() -> None:
    package = STATIC.parents[1]
    for name, facts in json.loads((package.parent / "scripts" / "vendor.json").read_text()).items():
        assert hashlib.sha256((package / name).read_bytes()).hexdigest() == facts["sha256"], name


def test_the_icons_that_are_shipped_are_those_that_the_pages_name() -> None:
    templates = STATIC.parents[1] / "reporting" / "templates"
    shipped = set(re.findall(r'^\[data-icon="([\w-]+)"\]', (templates / "icons.css").read_text(), re.MULTILINE))
    pages = (*STATIC.glob("[!k]*.js"), *templates.glob("*.js"), *templates.glob("*.j2"))
    text = "\n".join(path.read_text() for path in pages)
    assert shipped == {name for name in shipped if f'"{name}"' in text}
    assert set(re.findall(r'data-icon(?:": |=)"([\w-]+)"', text)) <= shipped


def test_no_file_of_the_pages_names_another_address() -> None:
    for path in STATIC.iterdir():
        if path.suffix in (".js", ".html", ".css") and not path.name.startswith("konva"):
            addresses = re.findall(r"https?://[\w./-]+", path.read_text())
            assert set(addresses) <= {"http://www.w3.org/2000/svg"}, path.name


def test_a_workspace_without_anything_says_so(out: Path) -> None:
    with studio_at(Workspace("anna", out)) as address:
        assert Visitor(address).json("/api/studio")["graphs"] == []
