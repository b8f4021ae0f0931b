"""Upload a submission or a folder to the Hub.

A submission goes to a pull request or a branch, and to main only on request. A folder gets its own repository. Files
are never sent twice. All uploads use `huggingface_hub`. Each commit names its parent commit. So a concurrent change of
a card is not overwritten: the Hub refuses the commit, and the next try merges again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import escape
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal, TypeAlias

from huggingface_hub import CommitOperationAdd, HfApi, errors, get_token
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils.sha import git_hash

from barista_bench.errors import BaristaError, ConfigError
from barista_bench.files.text_out import check_address, check_variable_name, refuse_key_in_clear
from barista_bench.hub.checks import MAX_FILE, RepoId
from barista_bench.hub.files import README, ExistingFiles, eval_results_path, refuse_secrets
from barista_bench.hub.publishing import Publication
from barista_bench.version import __version__

MAIN: Final = "main"
TITLE: Final = "Add results of barista_bench"
MAX_OPEN: Final = 50
"""Maximum number of open pull requests that are searched for the same files."""
RepoType: TypeAlias = Literal["model", "dataset", "space"]


class PushError(BaristaError):
    """The Hub cannot be reached or refuses the upload."""


@dataclass(frozen=True, slots=True)
class Destination:
    """The target of commits: a new pull request (the default) or a branch.

    Raises:
        ConfigError: the branch is main, and `to_main` is not set.
    """

    branch: str | None = None
    to_main: bool = False

    def __post_init__(self) -> None:
        if self.branch is not None and self.to_main:
            raise ConfigError("both a branch and main are named. Fix: give one of --branch and --to-main")
        if self.branch is not None and self.branch.removeprefix("refs/heads/") in ("", MAIN):
            raise ConfigError(f"{self.branch!r} is not to be written to. Fix: use a pull request, or --to-main")

    @property
    def revision(self) -> str:
        """Return the revision to read and to extend."""
        return self.branch or MAIN

    @property
    def opens_pull_request(self) -> bool:
        return self.branch is None and not self.to_main


@dataclass(frozen=True, slots=True)
class Push:
    """The outcome for one repository. `changed` holds the committed files. It is empty if nothing had changed."""

    repo_id: str
    repo_type: RepoType
    url: str
    changed: tuple[str, ...]


def find_token(variable: str | None = None) -> str:
    """Return the access token from the environment variable `variable`, from HF_TOKEN, or from the hub client's login.

    Raises:
        ConfigError: there is no token, or `variable` is not a variable's name. The message does not repeat the invalid
            name.
    """
    if variable is not None:
        check_variable_name("token_env", variable)
    token = os.environ.get(variable, "").strip() if variable else get_token()
    if not token:
        where = f"the environment variable {variable}" if variable else "HF_TOKEN or the hub client's login"
        raise ConfigError(f"no access token in {where}. Fix: set it, or run `hf auth login`")
    return token


class Pusher:
    """Uploads with one token. The token never appears in messages and is sent only to `endpoint`.

    Args:
        token: access token with the right to write or to open pull requests.
        endpoint: address of the Hub; None for `HF_ENDPOINT` or huggingface.co.

    Raises:
        ConfigError: the endpoint contains a password, or uses plain http to another machine.
    """

    def __init__(self, token: str, destination: Destination, *, endpoint: str | None = None) -> None:
        self._token = token
        self._api = HfApi(endpoint=endpoint, token=token, library_name="barista_bench")
        check_address("the Hub's endpoint", self._api.endpoint)
        refuse_key_in_clear("the Hub's endpoint", self._api.endpoint)
        self.destination = destination

    def __repr__(self) -> str:
        return f"Pusher({self.destination})"

    def existing_files(self, model_repo: str, benchmark: str) -> ExistingFiles:
        """Return the card and results of the model repository at the destination.

        Creates the branch if needed. Raises PushError.
        """
        return self._existing_files(model_repo, benchmark)[0]

    def push_model(self, model_repo: str, benchmark: str, make: Callable[[ExistingFiles], Mapping[str, bytes]]) -> Push:
        """Merge with the repository's files, and upload. `make` computes the new files from the existing files.

        Raises:
            PushError: the same as for `push`.
            DataError: the existing files cannot be merged.
        """
        existing, commit = self._existing_files(model_repo, benchmark)
        return self._commit(model_repo, "model", make(existing), commit)

    def _existing_files(self, model_repo: str, benchmark: str) -> tuple[ExistingFiles, str]:
        self._prepare(model_repo, "model")
        commit = self._head(model_repo, "model")
        path = eval_results_path(benchmark)
        contents = self._read_files(model_repo, commit, (README, path))
        return ExistingFiles(contents.get(README, b""), contents.get(path)), commit

    def push(self, repo_id: RepoId, repo_type: RepoType, files: Mapping[str, bytes]) -> Push:
        """Upload files that do not need merging.

        Raises:
            PushError: the repository is missing, the token may not write to it, or the Hub cannot be reached.
            DataError: a file holds an access token.
        """
        self._prepare(repo_id, repo_type)
        return self._commit(repo_id, repo_type, files, self._head(repo_id, repo_type))

    def publish(self, publication: Publication, *, public: bool = False) -> str:
        """Create the repository, and upload a folder to its main branch. An interrupted upload is resumed.

        The Hub checks the card before it accepts a file. Files that are already in the repository are not sent again.

        Returns:
            The repository's page.

        Raises:
            ConfigError: the repository exists and is public although `public` is False, or private although `public` is
                True.
            DataError: a text holds an access token.
            PushError: the Hub refuses the card, the token may not write there, or the Hub cannot be reached.
        """
        publication.refuse_secrets(self._token)
        repo_id, repo_type = publication.repo_id, publication.repo_type
        with self._explaining_errors(repo_id, "making the repository"):
            private, sdk = not public, publication.space_sdk
            url = self._api.create_repo(repo_id, repo_type=repo_type, exist_ok=True, private=private, space_sdk=sdk)
            is_private = self._api.repo_info(repo_id, repo_type=repo_type).private
        if public == is_private:
            state, remedy = ("private", "leave --public out") if is_private else ("public", "say --public")
            raise ConfigError(f"{repo_id}: is {state} already. Fix: {remedy}, or name another repository")
        with self._explaining_errors(repo_id, "uploading"):
            commit_message = f"Publish with barista_bench {__version__}"
            for name, path in publication.files.items():
                if path != publication.folder / name:
                    self._api.upload_file(
                        path_or_fileobj=path,
                        path_in_repo=name,
                        repo_id=repo_id,
                        repo_type=repo_type,
                        commit_message=commit_message,
                    )
            try:
                self._api.upload_folder(
                    repo_id=repo_id,
                    repo_type=repo_type,
                    folder_path=publication.folder,
                    allow_patterns=[escape(name) for name in publication.files],
                    delete_patterns=list(publication.outdated) or None,
                    commit_message=commit_message,
                )
            except RuntimeError as error:  # raised by hf_xet, which sends large files
                raise OSError(str(error)) from None
        return str(url)

    def _prepare(self, repo_id: str, repo_type: RepoType) -> None:
        """Create the branch, unless the Hub creates it (such as `refs/pr/7`)."""
        branch = self.destination.branch
        if branch is None or branch.startswith("refs/pr/"):
            return
        with self._explaining_errors(repo_id, f"making the branch {branch}"):
            self._api.create_branch(repo_id, branch=branch, repo_type=repo_type, exist_ok=True)

    def _head(self, repo_id: str, repo_type: RepoType) -> str:
        """Return the current commit of the destination."""
        revision = self.destination.revision
        with self._explaining_errors(repo_id, f"looking at {revision}"):
            commit = self._api.repo_info(repo_id, repo_type=repo_type, revision=revision).sha
        if commit is None:
            raise PushError(f"{repo_id}: the Hub names no commit of {revision}. Fix: try again")
        return commit

    def _read_files(self, repo_id: str, commit: str, paths: Sequence[str]) -> dict[str, bytes]:
        """Read small files at these paths from a model repository. Missing files are left out."""
        with self._explaining_errors(repo_id, "reading its card"), TemporaryDirectory() as folder:
            remote_files = list(self._files(repo_id, "model", paths, commit))
            for file in remote_files:
                if file.size > MAX_FILE:
                    raise PushError(f"{repo_id}: {file.path} has {file.size} bytes. Fix: check that file")
            contents = {}
            for file in remote_files:
                copy = self._api.hf_hub_download(repo_id, file.path, revision=commit, local_dir=folder)
                contents[file.path] = Path(copy).read_bytes()
        return contents

    def _commit(self, repo_id: str, repo_type: RepoType, files: Mapping[str, bytes], commit: str) -> Push:
        refuse_secrets(files, repo_id, self._token)
        with self._explaining_errors(repo_id, "comparing files"):
            changed = self._changed_files(repo_id, repo_type, files, commit)
            if not changed:
                page = self._page(repo_id, repo_type, f"tree/{self.destination.revision}")
                return Push(repo_id, repo_type, page, ())
            request_url = self._open_request(repo_id, repo_type, files) if self.destination.opens_pull_request else None
        if request_url is not None:
            return Push(repo_id, repo_type, request_url, ())
        operations = [CommitOperationAdd(name, data) for name, data in files.items() if name in changed]
        with self._explaining_errors(repo_id, "uploading"):
            commit_info = self._api.create_commit(
                repo_id,
                operations,
                commit_message=TITLE,
                commit_description="Written and checked by `barista-bench publish submission`.",
                repo_type=repo_type,
                revision=self.destination.revision,
                create_pr=self.destination.opens_pull_request,
                parent_commit=commit,
            )
        return Push(repo_id, repo_type, commit_info.pr_url or commit_info.commit_url, tuple(sorted(changed)))

    def _changed_files(self, repo_id: str, repo_type: RepoType, files: Mapping[str, bytes], revision: str) -> set[str]:
        """Return the files that the revision lacks or holds with other content."""
        remote = {file.path: file for file in self._files(repo_id, repo_type, list(files), revision)}
        return {name for name, data in files.items() if name not in remote or not _has_content(remote[name], data)}

    def _open_request(self, repo_id: str, repo_type: RepoType, files: Mapping[str, bytes]) -> str | None:
        """Return the page of an open pull request that already contains these files, or None."""
        requests = self._api.get_repo_discussions(
            repo_id, repo_type=repo_type, discussion_type="pull_request", discussion_status="open"
        )
        for request in islice(requests, MAX_OPEN):
            if request.title == TITLE and not self._changed_files(repo_id, repo_type, files, f"refs/pr/{request.num}"):
                return self._page(repo_id, repo_type, f"discussions/{request.num}")
        return None

    def _files(self, repo_id: str, repo_type: RepoType, paths: Sequence[str], revision: str) -> Iterator[RepoFile]:
        for start in range(0, len(paths), 500):
            part = list(paths[start : start + 500])
            for file in self._api.get_paths_info(repo_id, part, repo_type=repo_type, revision=revision):
                if isinstance(file, RepoFile):
                    yield file

    def _page(self, repo_id: str, repo_type: RepoType, place: str) -> str:
        return "/".join((self._api.endpoint, *((f"{repo_type}s",) if repo_type != "model" else ()), repo_id, place))

    @contextmanager
    def _explaining_errors(self, repo_id: str, doing: str) -> Iterator[None]:
        """Convert the client's errors to `PushError`.

        The cause is dropped, since it refers to a request with the token in its headers.
        """
        try:
            yield
            return
        except (errors.HTTPError, errors.OfflineModeIsEnabled, OSError, ValueError) as error:  # type: ignore[attr-defined]
            trouble, remedy = _explanation(error)
            line = " ".join(str(error).replace(self._token, "[token]").split())[:300]
        detail = f" ({line})" if line else ""
        raise PushError(f"{repo_id}: {doing}: {trouble}{detail}. Fix: {remedy}") from None


def _explanation(error: Exception) -> tuple[str, str]:
    """Return the fault and its remedy."""
    match error:
        case errors.RepositoryNotFoundError():
            return "no such repository, or the token may not see it", "make it first, or use a token with access"
        case errors.RevisionNotFoundError():
            return "no such revision", "give another --branch"
        case errors.HfHubHTTPError():
            return "the Hub refuses", _REMEDIES.get(error.response.status_code, "try again later")
        case errors.HTTPError() | errors.OfflineModeIsEnabled() | OSError():  # type: ignore[attr-defined]
            return "the Hub is out of reach", "check the network, and try again"
        case _:
            return "the Hub client refuses", "correct the named field"


_REMEDIES: Final = {
    401: "log in, or use another token",
    403: "use a token that may write there, or may open pull requests",
    409: "try again: somebody changed the repository meanwhile",
    412: "try again: somebody changed the repository meanwhile",
}


def _has_content(remote_file: RepoFile, content: bytes) -> bool:
    """Return whether a file on the Hub has this content, according to the Hub's hashes."""
    if remote_file.size != len(content):
        return False
    if remote_file.lfs is None:
        return remote_file.blob_id == git_hash(content)
    return remote_file.lfs.sha256 == hashlib.sha256(content).hexdigest()
