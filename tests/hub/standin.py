"""The stand-in for the Hub with the endpoints that uploads need: paths, branches, preupload, commits and pull requests,
of models, data sets and Spaces. huggingface_hub really talks to it.

    with UploadStandIn() as hub:
        hub.make("org/model", "model", {"README.md": b"..."})
        Pusher(TOKEN, Destination(), endpoint=hub.endpoint).push(...)
        hub.files("org/model", "refs/pr/1")

`rights` lists a token's rights; without a right to write, commits are refused as the Hub refuses them.
"""

import base64
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from tests.hub_standin import Handler, HubStandIn, Repo, Request, entry, git_hash

TOKEN = "hf_" + "PlantedTokenOfTheTests0123456789abc"


class _Handler(Handler):
    hub: "UploadStandIn"

    def validate(self) -> None:
        self.json({"errors": [], "warnings": []})

    def create(self) -> None:
        asked = json.loads(self.body)
        repo_id, kind = f"{asked['organization']}/{asked['name']}", asked.get("type", "model")
        if not self._may_write():
            return self.error(403, "Forbidden")
        is_new = (kind, repo_id) not in self.hub.repos
        if is_new:
            self.hub.make(repo_id, kind, {".gitattributes": b""}).is_private = asked["visibility"] == "private"
        return self.json({"url": f"{self.hub.endpoint}/{kind}s/{repo_id}"}, 200 if is_new else 409)

    def serve(self, answer: Any, *parts: Any) -> None:
        if parts:
            super().serve(answer, *parts)
        else:  # no repository is named
            answer(self)

    def paths(self, repo: Repo, sha: str) -> None:
        asked = parse_qs(self.body.decode()).get("paths") or json.loads(self.body)["paths"]
        files = repo.commits[sha]
        self.json([entry(path, files[path]) for path in asked if path in files])

    def discussions(self, repo: Repo, repo_id: str) -> None:
        about = {
            "author": {"name": "someone"},
            "createdAt": "2026-11-21T10:00:00.000Z",
            "status": "open",
            "repo": {"name": repo_id, "type": "model"},
            "isPullRequest": True,
        }
        listed = [{"title": title, "num": number, **about} for number, title in enumerate(repo.pulls, start=1)]
        self.json({"discussions": listed, "count": len(listed), "start": 0})

    def branch(self, repo: Repo, repo_id: str, branch: str) -> None:
        if not self._may_write():
            return self.error(403, "Forbidden")
        if branch in repo.refs:
            return self.error(409, "Conflict")
        repo.refs[branch] = repo.refs["main"]
        return self.json({})

    def preupload(self, repo: Repo, sha: str) -> None:
        committed, files = repo.commits[sha], []
        for name in (file["path"] for file in json.loads(self.body)["files"]):
            oid = git_hash(committed[name]) if name in committed else None
            files.append({"path": name, "uploadMode": "regular", "shouldIgnore": False, "oid": oid})
        self.json({"files": files})

    def commit(self, repo: Repo, sha: str) -> None:
        if self.hub.before_commit:
            self.hub.before_commit.pop()()
            sha = repo.refs[self.revision]
        if self.hub.fail:
            return self.error(self.hub.fail, "Failed")
        if not self._may_write():
            return self.error(403, "Forbidden")
        header, *lines = (json.loads(line) for line in self.body.splitlines())
        if header["value"].get("parentCommit") not in (None, sha):
            return self.error(412, "PreconditionFailed")
        files = dict(repo.commits[sha])
        for line in lines:
            path = line["value"]["path"]
            if line["key"] == "deletedFile":
                del files[path]
            else:
                files[path] = base64.b64decode(line["value"]["content"])
                self.hub.committed.append(path)
        reply, ref = {}, self.revision
        if self.query.get("create_pr") == ["1"]:
            repo.pulls.append(header["value"]["summary"])
            ref = f"refs/pr/{len(repo.pulls)}"
            reply = {"pullRequestUrl": f"{self.hub.endpoint}/{self.repo_id}/discussions/{len(repo.pulls)}"}
        made = repo.add(ref, files)
        return self.json({"commitUrl": f"{self.hub.endpoint}/{self.repo_id}/commit/{made}", "commitOid": made, **reply})

    def _may_write(self) -> bool:
        return self.hub.rights == "write" and self.headers.get("Authorization") == f"Bearer {TOKEN}"

    ROUTES = (
        ("/api/validate-yaml", validate),
        ("/api/repos/create", create),
        (r"/api/(models|datasets|spaces)/([^/]+/[^/]+)/paths-info/([^/]+)", paths),
        (r"/api/(models|datasets|spaces)/([^/]+/[^/]+)/discussions", discussions),
        (r"/api/(models|datasets|spaces)/([^/]+/[^/]+)/branch/([^/]+)", branch),
        (r"/api/(models|datasets|spaces)/([^/]+/[^/]+)/preupload/([^/]+)", preupload),
        (r"/api/(models|datasets|spaces)/([^/]+/[^/]+)/commit/([^/]+)", commit),
        *Handler.ROUTES,
    )
    WITHOUT_REVISION = (discussions, branch)


@dataclass
class UploadStandIn(HubStandIn):
    fail: int | None = None
    """HTTP status of every commit."""
    committed: list[str] = field(default_factory=list)
    """The files that commits brought, one after another."""
    before_commit: list[Any] = field(default_factory=list)
    """One is called before each commit is looked at, the last first."""

    handler = _Handler

    def files(self, repo_id: str, revision: str = "main", repo_type: str = "model") -> dict[str, bytes]:
        repo = self.repos[repo_type, repo_id]
        sha = repo.sha(revision)
        assert sha, f"no {revision}"
        return repo.commits[sha]

    def commits_asked(self) -> list[Request]:
        return [request for request in self.requests if "/commit/" in request.path]
