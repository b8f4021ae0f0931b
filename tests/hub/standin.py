"""A local stand-in for the endpoints of the Hub that uploads need: info, paths, files, branches, preupload, commits and
pull requests, of models, data sets and Spaces. huggingface_hub really talks to it.

    with UploadStandIn() as hub:
        hub.make("org/model", "model", {"README.md": b"..."})
        Pusher(TOKEN, Destination(), endpoint=hub.endpoint).push(...)
        hub.files("org/model", "refs/pr/1")

`rights` says what a token may do; without one that may write, commits are refused as the Hub refuses them.
"""

import base64
import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from tests.hub_standin import Handler, Server

TOKEN = "hf_" + "PlantedTokenOfTheTests0123456789abc"


class Request(NamedTuple):
    method: str
    path: str
    query: dict[str, list[str]]
    authorization: str | None


@dataclass
class Repo:
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    pulls: list[str] = field(default_factory=list)
    """Titles; number n is at n - 1 and its files are `refs/pr/n`."""
    is_private: bool = False

    def add(self, ref: str, files: dict[str, bytes]) -> str:
        sha = hashlib.sha1(repr((ref, len(self.commits), sorted(files.items()))).encode()).hexdigest()
        self.commits[sha] = dict(files)
        self.refs[ref] = sha
        return sha

    def sha(self, revision: str) -> str | None:
        return revision if revision in self.commits else self.refs.get(revision)


class _Handler(Handler):
    hub: "UploadStandIn"

    def serve(self) -> None:
        parts = urlsplit(self.path)
        self.query = parse_qs(parts.query)
        authorization = self.headers.get("Authorization")
        self.hub.requests.append(Request(self.command, unquote(parts.path), self.query, authorization))
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if parts.path == "/api/validate-yaml":
            return self.json({"errors": [], "warnings": []})
        if parts.path == "/api/repos/create":
            return self._create()
        for pattern, method in self._ROUTES:
            match = re.fullmatch(pattern, parts.path)
            if match is None:
                continue
            kind, repo_id, *rest = (None if part is None else unquote(part) for part in match.groups())
            repo = self.hub.repos.get(((kind or "models").strip("/")[:-1], repo_id or ""))
            if repo is None or self.hub.rights == "none":
                return self._refuse(404, "RepoNotFound")
            return method(self, repo, repo_id, *rest)
        return self._refuse(404, "RouteNotFound")

    def _create(self) -> None:
        asked = json.loads(self.body)
        repo_id, kind = f"{asked['organization']}/{asked['name']}", asked.get("type", "model")
        if not self._may_write():
            return self._refuse(403, "Forbidden")
        is_new = (kind, repo_id) not in self.hub.repos
        if is_new:
            self.hub.make(repo_id, kind, {".gitattributes": b""}).is_private = asked["visibility"] == "private"
        return self.json({"url": f"{self.hub.endpoint}/{kind}s/{repo_id}"}, 200 if is_new else 409)

    def _info(self, repo: Repo, repo_id: str, revision: str | None) -> None:
        sha = repo.sha(revision or "main")
        if sha is None:
            return self._refuse(404, "RevisionNotFound")
        siblings = [{"rfilename": path} for path in repo.commits[sha]]
        state = {"private": repo.is_private, "tags": [], "siblings": siblings}
        return self.json({"_id": "0", "id": repo_id, "sha": sha, **state})

    def _paths(self, repo: Repo, repo_id: str, revision: str) -> None:
        sha = repo.sha(revision)
        if sha is None:
            return self._refuse(404, "RevisionNotFound")
        asked = parse_qs(self.body.decode()).get("paths") or json.loads(self.body)["paths"]
        files = repo.commits[sha]
        return self.json([_entry(path, files[path]) for path in asked if path in files])

    def _tree(self, repo: Repo, repo_id: str, revision: str) -> None:
        sha = repo.sha(revision)
        if sha is None:
            return self._refuse(404, "RevisionNotFound")
        return self.json([_entry(path, body) for path, body in repo.commits[sha].items()])

    def _file(self, repo: Repo, repo_id: str, revision: str, path: str) -> None:
        sha = repo.sha(revision)
        body = repo.commits.get(sha or "", {}).get(path)
        if body is None:
            return self._refuse(404, "EntryNotFound")
        self.send_response(200)
        self.send_header("ETag", f'"{_git_hash(body)}"')
        self.send_header("X-Repo-Commit", str(sha))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)
        return None

    def _discussions(self, repo: Repo, repo_id: str) -> None:
        listed = [
            {
                "title": title,
                "num": number,
                "author": {"name": "someone"},
                "createdAt": "2026-11-21T10:00:00.000Z",
                "status": "open",
                "repo": {"name": repo_id, "type": "model"},
                "isPullRequest": True,
            }
            for number, title in enumerate(repo.pulls, start=1)
        ]
        self.json({"discussions": listed, "count": len(listed), "start": 0})

    def _branch(self, repo: Repo, repo_id: str, branch: str) -> None:
        if not self._may_write():
            return self._refuse(403, "Forbidden")
        if branch in repo.refs:
            return self._refuse(409, "Conflict")
        repo.refs[branch] = repo.refs["main"]
        return self.json({})

    def _preupload(self, repo: Repo, repo_id: str, revision: str) -> None:
        sha = repo.sha(revision)
        if sha is None:
            return self._refuse(404, "RevisionNotFound")
        committed = repo.commits[sha]
        files = []
        for entry in json.loads(self.body)["files"]:
            known = committed.get(entry["path"])
            oid = None if known is None else _git_hash(known)
            files.append({"path": entry["path"], "uploadMode": "regular", "shouldIgnore": False, "oid": oid})
        return self.json({"files": files})

    def _commit(self, repo: Repo, repo_id: str, revision: str) -> None:
        if self.hub.before_commit:
            self.hub.before_commit.pop()()
        if self.hub.fail:
            return self._refuse(self.hub.fail, "Failed")
        if not self._may_write():
            return self._refuse(403, "Forbidden")
        sha = repo.sha(revision)
        if sha is None:
            return self._refuse(404, "RevisionNotFound")
        lines = [json.loads(line) for line in self.body.splitlines()]
        header = lines[0]["value"]
        if header.get("parentCommit") not in (None, sha):
            return self._refuse(412, "PreconditionFailed")
        files = dict(repo.commits[sha])
        for line in lines[1:]:
            if line["key"] == "deletedFile":
                del files[line["value"]["path"]]
                continue
            files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            self.hub.committed.append(line["value"]["path"])
        reply = {}
        if self.query.get("create_pr") == ["1"]:
            repo.pulls.append(header["summary"])
            number = len(repo.pulls)
            made = repo.add(f"refs/pr/{number}", files)
            reply = {"pullRequestUrl": f"{self.hub.endpoint}/{repo_id}/discussions/{number}"}
        else:
            made = repo.add(revision, files)
        return self.json({"commitUrl": f"{self.hub.endpoint}/{repo_id}/commit/{made}", "commitOid": made, **reply})

    def _may_write(self) -> bool:
        return self.hub.rights == "write" and self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def _refuse(self, status: int, code: str) -> None:
        self.error(status, code, f"{code} for {self.headers.get('Authorization')}" if self.hub.careless else code)

    _ROUTES = (
        (r"/api/(models|datasets|spaces)/([^/]+/[^/]+)/paths-info/([^/]+)", _paths),
        (r"/api/(models|datasets|spaces)/([^/]+/[^/]+)/tree/([^/]+)/?", _tree),
        (r"/api/(models|datasets|spaces)/([^/]+/[^/]+)/discussions", _discussions),
        (r"/api/(models|datasets|spaces)/([^/]+/[^/]+)/branch/([^/]+)", _branch),
        (r"/api/(models|datasets|spaces)/([^/]+/[^/]+)/preupload/([^/]+)", _preupload),
        (r"/api/(models|datasets|spaces)/([^/]+/[^/]+)/commit/([^/]+)", _commit),
        (r"/api/(models|datasets|spaces)/([^/]+/[^/]+)(?:/revision/([^/]+))?", _info),
        (r"/(datasets/|spaces/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)", _file),
    )


@dataclass
class UploadStandIn(Server):
    repos: dict[tuple[str, str], Repo] = field(default_factory=dict)
    rights: str = "write"
    """write, read, or none: of the one token that it knows."""
    fail: int | None = None
    """HTTP status of every commit."""
    careless: bool = False
    """Errors repeat the headers that were sent."""
    committed: list[str] = field(default_factory=list)
    """The files that commits brought, one after another."""
    before_commit: list[Any] = field(default_factory=list)
    """One is called before each commit is looked at, the last first."""
    requests: list[Request] = field(default_factory=list)

    handler = _Handler

    def make(self, repo_id: str, repo_type: str, files: dict[str, bytes]) -> Repo:
        repo = self.repos.setdefault((repo_type, repo_id), Repo())
        repo.add("main", files)
        return repo

    def files(self, repo_id: str, revision: str = "main", repo_type: str = "model") -> dict[str, bytes]:
        repo = self.repos[repo_type, repo_id]
        sha = repo.sha(revision)
        assert sha, f"no {revision}"
        return repo.commits[sha]

    def commits_asked(self) -> list[Request]:
        return [request for request in self.requests if "/commit/" in request.path]


def _entry(path: str, body: bytes) -> dict[str, object]:
    return {"type": "file", "path": path, "size": len(body), "oid": _git_hash(body)}


def _git_hash(body: bytes) -> str:
    """Of a file, as git computes it; from its definition, not from the client's function."""
    return hashlib.sha1(b"blob " + str(len(body)).encode() + b"\0" + body).hexdigest()
