"""A local stand-in for the Hugging Face Hub: the endpoints that huggingface_hub calls to read data sets.

    with HubStandIn() as hub:
        sha = hub.commit("org/name", {"v1/video.mp4": b"..."})
        snapshot_download("org/name", repo_type="dataset", revision=sha, endpoint=hub.endpoint)

It answers the info of a data set, the tree of a commit, and files with ETag, commit and byte ranges.
`requests` records what was asked. Faults can be set per path: `drop_after`, `fail_with`, `stall_after`.
To serve more of the API, add a `_serve_...` method to the handler and a line to `_ROUTES`.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple, Self
from urllib.parse import unquote, urlsplit


class Request(NamedTuple):
    method: str
    path: str
    range: str | None


ANNOTATION = b'{"video_metadata": []}'
VIDEO = b"not really a video " * 1000


def video_bytes(name: str) -> bytes:
    """What stands for the video of that name."""
    return name.encode() + VIDEO


def release_files(names: Iterable[str] = ("v1", "v2", "v3"), prefix: str = "") -> dict[str, bytes]:
    """The files of a repository that holds these videos below `prefix`, and a README."""
    files = {"README.md": b"# card"}
    for name in names:
        files[f"{prefix}{name}/coco_annotation.json"] = ANNOTATION + name.encode()
        files[f"{prefix}{name}/video.mp4"] = video_bytes(name)
    return files


class Server:
    """A server of this machine, for as long as a `with` lasts. Its handlers find it as `hub`."""

    handler: type[Handler]

    def __enter__(self) -> Self:
        bound = type("Bound", (self.handler,), {"hub": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), bound)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """Answers every method by `serve`, as JSON or as an error that the Hub's client knows."""

    protocol_version = "HTTP/1.1"

    def serve(self) -> None:
        raise NotImplementedError

    def do_GET(self) -> None:
        self.serve()

    def do_HEAD(self) -> None:
        self.serve()

    def do_POST(self) -> None:
        self.serve()

    def log_message(self, format: str, *args: object) -> None:
        """Silent: the tests read `requests`."""

    def json(self, content: object, status: int = 200) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def error(self, status: int, code: str, message: str | None = None) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", message or code)
        self.send_header("Content-Length", "0")
        self.end_headers()


class _Handler(Handler):
    hub: HubStandIn

    def serve(self) -> None:
        path = urlsplit(self.path).path
        self.hub.requests.append(Request(self.command, unquote(path), self.headers.get("Range")))
        for pattern, method in self._ROUTES:
            match = re.fullmatch(pattern, path)
            if match is None:
                continue
            repo_id, *rest = (None if part is None else unquote(part) for part in match.groups())
            if repo_id in self.hub.gated:
                return self.error(403, "GatedRepo")
            if repo_id not in self.hub.repos:
                return self.error(404, "RepoNotFound")
            revision = rest[0] or "main"
            sha = self.hub.resolved(repo_id, revision)
            if sha is None:
                return self.error(404, "RevisionNotFound")
            return method(self, repo_id, sha, *rest[1:])
        return self.error(404, "RouteNotFound")

    def _serve_info(self, repo_id: str, sha: str) -> None:
        siblings = [{"rfilename": path} for path in self.hub.repos[repo_id][sha]]
        self.json({"_id": "0", "id": repo_id, "sha": sha, "private": False, "tags": [], "siblings": siblings})

    def _serve_tree(self, repo_id: str, sha: str) -> None:
        files = self.hub.repos[repo_id][sha]
        entries = [
            {"type": "file", "path": path, "size": len(body), "oid": _etag(body)} for path, body in files.items()
        ]
        folders = {path[:i] for path in files for i, letter in enumerate(path) if letter == "/"}
        entries += [{"type": "directory", "path": path, "oid": _etag(path.encode())} for path in folders]
        self.json(entries)

    def _serve_file(self, repo_id: str, sha: str, path: str) -> None:
        body = self.hub.repos[repo_id][sha].get(path)
        if body is None:
            return self.error(404, "EntryNotFound")
        if self.command == "GET" and path in self.hub.fail_with:
            return self.error(self.hub.fail_with[path], "ServerError")
        start = self._range_start()
        part = body[start:]
        self.send_response(206 if start else 200)
        self.send_header("ETag", f'"{_etag(body)}"')
        self.send_header("X-Repo-Commit", sha)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(part)))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.end_headers()
        return None if self.command == "HEAD" else self._send(path, part)

    def _range_start(self) -> int:
        match = re.fullmatch(r"bytes=(\d+)-\d*", self.headers.get("Range") or "")
        return int(match[1]) if match else 0

    def _send(self, path: str, part: bytes) -> None:
        if path in self.hub.drop_after:
            self.wfile.write(part[: self.hub.drop_after.pop(path)])
            self.close_connection = True
            return
        if path in self.hub.stall_after:
            self.wfile.write(part[: self.hub.stall_after[path]])
            self.wfile.flush()
            self.hub.resume.wait(60)
            self.close_connection = True
            return
        self.wfile.write(part)

    _ROUTES = (
        (r"/api/datasets/([^/]+/[^/]+)/tree/([^/]+)/?", _serve_tree),
        (r"/api/datasets/([^/]+/[^/]+)(?:/revision/([^/]+))?", _serve_info),
        (r"/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", _serve_file),
    )


@dataclass
class HubStandIn(Server):
    """The server's content and faults. One data set is `{commit: {path: bytes}}`."""

    repos: dict[str, dict[str, dict[str, bytes]]] = field(default_factory=dict)
    refs: dict[tuple[str, str], str] = field(default_factory=dict)
    gated: set[str] = field(default_factory=set)
    requests: list[Request] = field(default_factory=list)
    drop_after: dict[str, int] = field(default_factory=dict)
    """path -> bytes after which the connection breaks, once."""
    stall_after: dict[str, int] = field(default_factory=dict)
    """path -> bytes after which the server says nothing more, until `resume` is set."""
    fail_with: dict[str, int] = field(default_factory=dict)
    """path -> HTTP status of every download of it."""
    resume: threading.Event = field(default_factory=threading.Event)

    handler = _Handler

    def __exit__(self, *args: object) -> None:
        self.resume.set()
        super().__exit__(*args)

    def commit(self, repo_id: str, files: dict[str, bytes], ref: str = "main") -> str:
        """Make `files` the whole content of a new commit that `ref` points to; returns its 40 digits."""
        digest = hashlib.sha1(repo_id.encode())
        for path in sorted(files):
            digest.update(path.encode() + b"\0" + files[path])
        sha = digest.hexdigest()
        self.repos.setdefault(repo_id, {})[sha] = dict(files)
        self.refs[repo_id, ref] = sha
        return sha

    def resolved(self, repo_id: str, revision: str) -> str | None:
        if revision in self.repos.get(repo_id, {}):
            return revision
        return self.refs.get((repo_id, revision))

    def downloads(self) -> list[str]:
        """The paths of the files that were downloaded, in order, repeated ones included."""
        pattern = re.compile(r"/datasets/[^/]+/[^/]+/resolve/[^/]+/(.+)")
        matches = [pattern.fullmatch(request.path) for request in self.requests if request.method == "GET"]
        return [match[1] for match in matches if match]


def _etag(body: bytes) -> str:
    return hashlib.sha1(body).hexdigest()
