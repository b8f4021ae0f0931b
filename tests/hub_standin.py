"""A local stand-in for the Hugging Face Hub: the endpoints that huggingface_hub calls to read repositories.

    with HubStandIn() as hub:
        sha = hub.commit("org/name", {"v1/video.mp4": b"..."})
        snapshot_download("org/name", repo_type="dataset", revision=sha, endpoint=hub.endpoint)

It answers the info of a repository, the tree of a commit, and files with ETag, commit and byte ranges. `requests`
records the calls. Faults can be set per path: `drop_after`, `fail_with`, `stall_after`. To serve more of the API, add a
method to the handler and a line to `ROUTES`: `tests/hub/standin.py` takes uploads.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, NamedTuple, Self
from urllib.parse import parse_qs, unquote, urlsplit


class Request(NamedTuple):
    method: str
    path: str
    query: dict[str, list[str]]
    range: str | None
    authorization: str | None


ANNOTATION = b'{"video_metadata": []}'
VIDEO = b"not really a video " * 1000


def video_bytes(name: str) -> bytes:
    """Stand-in content for the video of that name."""
    return name.encode() + VIDEO


def release_files(names: Iterable[str] = ("v1", "v2", "v3"), prefix: str = "") -> dict[str, bytes]:
    """The files of a repository that holds these videos below `prefix`, and a README."""
    files = {"README.md": b"# card"}
    for name in names:
        files[f"{prefix}{name}/coco_annotation.json"] = ANNOTATION + name.encode()
        files[f"{prefix}{name}/video.mp4"] = video_bytes(name)
    return files


@dataclass
class Repo:
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    pulls: list[str] = field(default_factory=list)
    """Titles; number n is at n - 1 and its files are `refs/pr/n`."""
    is_private: bool = False

    def add(self, ref: str, files: dict[str, bytes]) -> str:
        """Make `files` the whole content of a new commit that `ref` points to; returns its 40 digits."""
        sha = hashlib.sha1(repr((ref, len(self.commits), sorted(files.items()))).encode()).hexdigest()
        self.commits[sha] = dict(files)
        self.refs[ref] = sha
        return sha

    def sha(self, revision: str) -> str | None:
        return revision if revision in self.commits else self.refs.get(revision)


def git_hash(body: bytes) -> str:
    """The hash of a file as git computes it; from its definition, not from the client's function."""
    return hashlib.sha1(b"blob " + str(len(body)).encode() + b"\0" + body).hexdigest()


def entry(path: str, body: bytes) -> dict[str, object]:
    return {"type": "file", "path": path, "size": len(body), "oid": git_hash(body)}


class Handler(BaseHTTPRequestHandler):
    """Answers as JSON, or with an error that the Hub's client knows."""

    protocol_version = "HTTP/1.1"
    hub: HubStandIn

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self.query, self.body = parse_qs(parts.query), self.rfile.read(int(self.headers.get("Content-Length") or 0))
        told = (self.headers.get(name) for name in ("Range", "Authorization"))
        self.hub.requests.append(Request(self.command, unquote(parts.path), self.query, *told))
        for pattern, answer in self.ROUTES:
            if match := re.fullmatch(pattern, parts.path):
                return self.serve(answer, *(part and unquote(part) for part in match.groups()))
        return self.error(404, "RouteNotFound")

    do_HEAD = do_POST = do_GET

    def serve(self, answer: Callable[..., None], kind: str | None, repo_id: str, *rest: str | None) -> None:
        """Answer about a repository and, where the route names no other part of it, about one of its commits."""
        repo = self.hub.repos.get(((kind or "models").strip("/")[:-1], repo_id))
        if repo_id in self.hub.gated:
            return self.error(403, "GatedRepo")
        if repo is None or self.hub.rights == "none":
            return self.error(404, "RepoNotFound")
        if answer in self.WITHOUT_REVISION:
            return answer(self, repo, repo_id, *rest)
        revision = rest[0] or "main"
        sha = repo.sha(revision)
        if sha is None:
            return self.error(404, "RevisionNotFound")
        self.repo_id, self.revision = repo_id, revision
        return answer(self, repo, sha, *rest[1:])

    def log_message(self, format: str, *args: object) -> None:
        """Silent: the tests read `requests`."""

    def json(self, content: object, status: int = 200) -> None:
        body = json.dumps(content).encode()
        self.send(status, {"Content-Type": "application/json", "Content-Length": len(body)})
        if self.command != "HEAD":
            self.wfile.write(body)

    def error(self, status: int, code: str) -> None:
        message = f"{code} for {self.headers.get('Authorization')}" if self.hub.careless else code
        self.send(status, {"X-Error-Code": code, "X-Error-Message": message, "Content-Length": 0})

    def send(self, status: int, headers: dict[str, object]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()

    def info(self, repo: Repo, sha: str) -> None:
        siblings = [{"rfilename": path} for path in repo.commits[sha]]
        state = {"private": repo.is_private, "tags": [], "siblings": siblings}
        self.json({"_id": "0", "id": self.repo_id, "sha": sha, **state})

    def tree(self, repo: Repo, sha: str) -> None:
        files = repo.commits[sha]
        folders = {path[:i] for path in files for i, letter in enumerate(path) if letter == "/"}
        entries = [{"type": "directory", "path": path, "oid": git_hash(path.encode())} for path in folders]
        self.json([*(entry(path, body) for path, body in files.items()), *entries])

    def file(self, repo: Repo, sha: str, path: str) -> None:
        body = repo.commits[sha].get(path)
        if body is None:
            return self.error(404, "EntryNotFound")
        if self.command == "GET" and path in self.hub.fail_with:
            return self.error(self.hub.fail_with[path], "ServerError")
        match = re.fullmatch(r"bytes=(\d+)-\d*", self.headers.get("Range") or "")
        start = int(match[1]) if match else 0
        headers: dict[str, object] = {"ETag": f'"{git_hash(body)}"', "X-Repo-Commit": sha, "Accept-Ranges": "bytes"}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        self.send(206 if start else 200, {**headers, "Content-Length": len(body) - start})
        return None if self.command == "HEAD" else self.send_body(path, body[start:])

    def send_body(self, path: str, body: bytes) -> None:
        if path in self.hub.drop_after:
            self.wfile.write(body[: self.hub.drop_after.pop(path)])
            self.close_connection = True
        elif path in self.hub.stall_after:
            self.wfile.write(body[: self.hub.stall_after[path]])
            self.wfile.flush()
            self.hub.resume.wait(60)
            self.close_connection = True
        else:
            self.wfile.write(body)

    ROUTES: ClassVar[tuple[tuple[str, Callable[..., None]], ...]] = (
        (r"/api/(models|datasets|spaces)/([^/]+/[^/]+)/tree/([^/]+)/?", tree),
        (r"/api/(models|datasets|spaces)/([^/]+/[^/]+)(?:/revision/([^/]+))?", info),
        (r"/(datasets/|spaces/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)", file),
    )
    WITHOUT_REVISION: ClassVar[tuple[Callable[..., None], ...]] = ()


@dataclass
class HubStandIn:
    """A server of this machine, for as long as a `with` lasts, with its content and faults; `hub` to its handlers."""

    repos: dict[tuple[str, str], Repo] = field(default_factory=dict)
    """Repositories by type and id."""
    gated: set[str] = field(default_factory=set)
    rights: str = "write"
    """write, read, or none: of the one token that it knows."""
    careless: bool = False
    """Errors repeat the headers that were sent."""
    requests: list[Request] = field(default_factory=list)
    drop_after: dict[str, int] = field(default_factory=dict)
    """path -> bytes after which the connection breaks, once."""
    stall_after: dict[str, int] = field(default_factory=dict)
    """path -> bytes after which the server says nothing more, until `resume` is set."""
    fail_with: dict[str, int] = field(default_factory=dict)
    """path -> HTTP status of every download of it."""
    resume: threading.Event = field(default_factory=threading.Event)

    handler: ClassVar[type[Handler]] = Handler

    def __enter__(self) -> Self:
        bound: Any = type("Bound", (self.handler,), {"hub": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), bound)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        self.resume.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def make(self, repo_id: str, repo_type: str, files: dict[str, bytes], ref: str = "main") -> Repo:
        repo = self.repos.setdefault((repo_type, repo_id), Repo())
        repo.add(ref, files)
        return repo

    def commit(self, repo_id: str, files: dict[str, bytes], ref: str = "main") -> str:
        """Make `files` the whole content of a new commit of a data set; returns its 40 digits."""
        return self.make(repo_id, "dataset", files, ref).refs[ref]

    def downloads(self) -> list[str]:
        """The paths of the files that were downloaded, in order, repeated ones included."""
        pattern = re.compile(r"/datasets/[^/]+/[^/]+/resolve/[^/]+/(.+)")
        matches = [pattern.fullmatch(request.path) for request in self.requests if request.method == "GET"]
        return [match[1] for match in matches if match]
