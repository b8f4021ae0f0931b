"""Open a release in a folder, or on the Hugging Face Hub at a fixed commit.

From the Hub, annotation files are downloaded first, and each video on request. Subfolders and archives are placed in
one folder per commit, `<cache>/barista_bench/<org>--<name>/<sha>/release/<video_id>/`, by hard links to the files of
the Hub's cache (copies if the file system has no hard links).
"""

from __future__ import annotations

import filecmp
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from glob import escape
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import huggingface_hub
from huggingface_hub import constants as hub_constants, errors as hub_errors
from tqdm.auto import tqdm

from barista_bench.data.archives import archive_stem, is_archive, unpack_release
from barista_bench.errors import ConfigError, SourceError
from barista_bench.files.paths import valid_video_id
from barista_bench.files.text_out import first_line
from barista_bench.files.writing import place_file, write_whole
from barista_bench.scene_graph.release import ANNOTATION_FILE, VIDEO_FILE

log = logging.getLogger(__name__)

_SHA = re.compile(r"[0-9a-f]{40}")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)


@dataclass(frozen=True)
class Source:
    """A release that can be read. `identity` has its `kind`, `id`, `sha` and `requested_revision`."""

    root: Path
    identity: dict[str, str | None]

    def fetch_videos(self, video_ids: Iterable[str], *, quiet: bool = False) -> None:
        """Download the videos' files under `root`, if the release is on the Hub. With `quiet`, no progress bar is
        shown.
        """


def _hint(root: Path) -> str:
    """Return a hint for a folder that is not a release. Often the release is one level up or down."""
    if (root / ANNOTATION_FILE).is_file():
        return f": this is the folder of one video. Fix: give the folder above it, {root.parent}"
    annotation = next(root.glob(f"*/*/{ANNOTATION_FILE}"), None)
    if annotation is not None:
        return f": the release seems to lie one level below. Fix: give {annotation.parent.parent}"
    archive = next((path for path in sorted(root.iterdir()) if is_archive(path.name)), None)
    if archive is not None:
        return f", but archives such as {archive.name}. Fix: unpack them first"
    return ". Fix: give the folder that holds one folder per video"


class _SilentBar(tqdm):  # type: ignore[type-arg]
    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - the arguments of tqdm
        super().__init__(*args, **(kwargs | {"disable": True}))


@contextmanager
def _explaining_errors(action: str, repo_id: str) -> Iterator[None]:
    """Convert the Hub client's errors to SourceErrors with a remedy."""
    try:
        yield
    # HTTPError is the base class in the HTTP library (httpx or httpx2) that the client uses.
    except (hub_errors.HTTPError, OSError, ValueError) as error:  # type: ignore[attr-defined]
        problem, remedy = _explanation(error, action, repo_id)
        raise SourceError(f"{repo_id}: {problem}. Fix: {remedy}") from error


def _explanation(error: Exception, action: str, repo_id: str) -> tuple[str, str]:
    """Return the fault and the remedy."""
    if isinstance(error, hub_errors.GatedRepoError):
        page = f"https://huggingface.co/datasets/{repo_id}"
        remedy = f"accept its terms at {page}, then log in with `hf auth login`"
        return f"access to the data set is restricted ({action})", remedy
    if isinstance(error, hub_errors.RepositoryNotFoundError):
        absent = f"no such data set is on the Hub, or it is private, and there is no folder {Path(repo_id).absolute()}"
        return absent, "check the name, or log in with `hf auth login`"
    if isinstance(error, hub_errors.RevisionNotFoundError):
        return f"{action}: no such revision", "give a commit, branch or tag"
    line = first_line(error)  # the client appends links and server output
    if isinstance(error, hub_errors.OfflineModeIsEnabled | hub_errors.LocalEntryNotFoundError):
        remedy = "go online once, or pin a revision that is in the cache"
        return f"{action} needs the Hub: out of reach, or off (HF_HUB_OFFLINE): {line}", remedy
    return f"{action} failed ({type(error).__name__}: {line})", "run it again: complete files stay"


@dataclass(frozen=True)
class HubSource(Source):
    """A data set on the Hub at one commit. `fetch_videos` downloads videos."""

    repo_id: str
    sha: str
    hub_cache: Path
    endpoint: str | None

    @property
    def label(self) -> str:
        return f"{self.repo_id}@{self.sha[:10]}"

    @cached_property
    def files(self) -> list[str]:
        """Return all file paths of the commit, sorted. A commit never changes, so the paths are requested once and
        cached.
        """
        path = self.root.parent / "files.json"
        if path.is_file():
            return [str(name) for name in json.loads(path.read_text(encoding="utf-8"))]
        with _explaining_errors(f"listing the files of {self.sha}", self.repo_id):
            api = huggingface_hub.HfApi(endpoint=self.endpoint)
            names = sorted(api.list_repo_files(self.repo_id, repo_type="dataset", revision=self.sha))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(names))
        return names

    @property
    def archives(self) -> list[str]:
        return [name for name in self.files if is_archive(name)]

    def fetch(self, patterns: list[str], content: str, quiet: bool = False) -> Path:
        """Download the matching files, and return the folder that contains these files under their paths."""
        with _explaining_errors(f"downloading {content}", self.repo_id):
            return Path(
                huggingface_hub.snapshot_download(
                    self.repo_id,
                    repo_type="dataset",
                    revision=self.sha,
                    cache_dir=self.hub_cache,
                    allow_patterns=patterns,
                    endpoint=self.endpoint,
                    tqdm_class=_SilentBar if quiet else None,
                )
            )

    def missing_videos(self, video_ids: Iterable[str]) -> tuple[str, ...]:
        """Return the sorted ids of the videos whose files are not under `root`."""
        return tuple(name for name in sorted(set(video_ids)) if not (self.root / name / VIDEO_FILE).is_file())

    def fetch_videos(self, video_ids: Iterable[str], *, quiet: bool = False) -> None:
        """Download the missing videos, and warn of videos that the release annotates but does not contain.

        Raises SourceError for an unknown id or a failed download. A second call resumes the download.
        """
        requested = sorted(set(video_ids))
        annotated = sorted(path.parent.name for path in self.root.glob(f"*/{ANNOTATION_FILE}"))
        unknown = [name for name in requested if name not in annotated]
        if unknown:
            raise SourceError(f"{self.label}: has no video {_brief(unknown)}. Fix: choose among {_brief(annotated)}")
        paths = self.paths_by_video(VIDEO_FILE)
        names = [name for name in self.missing_videos(requested) if name in paths]
        if names:
            snapshot = self.fetch([escape(paths[name]) for name in names], f"the videos {_brief(names)}", quiet)
            for name in names:
                _place(snapshot / paths[name], self.root / name / VIDEO_FILE, paths[name])
        missing = self.missing_videos(requested)
        # An archive named after a missing video probably contains it, so that mostly no other archive is needed.
        for archive in sorted(self.archives, key=lambda name: archive_stem(name) not in missing):
            if self.missing_videos(requested):
                self.place_archive(archive, quiet=quiet)
        absent = self.missing_videos(requested)
        if absent:
            reason = "neither as a file nor in an archive; their examples are lost"
            log.warning("%s: holds no %s of %s, %s", self.label, VIDEO_FILE, _brief(absent), reason)

    def place_annotations(self, paths: Mapping[str, str]) -> None:
        """Download the annotation files, whose paths are given by video id, and place them under `root`."""
        targets = {video_id: self.root / video_id / ANNOTATION_FILE for video_id in paths}
        if all(target.is_file() for target in targets.values()):
            return
        snapshot = self.fetch([f"*/{ANNOTATION_FILE}"], "the annotation files")
        for video_id, path in paths.items():
            _place(snapshot / path, targets[video_id], path)

    def place_archive(self, name: str, quiet: bool = False) -> None:
        """Download and unpack one archive, and place its release files under `root`."""
        folder = self.root.parent / "archives" / quote(name, safe="")
        if not folder.is_dir():
            snapshot = self.fetch([escape(name)], f"the archive {name}", quiet)
            unpack_release(snapshot / name, folder, name=f"{self.label}/{name}")
        for path in sorted(folder.glob("*/*")):
            _place(path, self.root / path.parent.name / path.name, name)

    def paths_by_video(self, file_name: str) -> dict[str, str]:
        """Return {video id: path} for the files called `file_name`. Each file is in a folder named after its video."""
        paths: dict[str, str] = {}
        for path in self.files:
            parts = PurePosixPath(path).parts
            if len(parts) < 2 or parts[-1] != file_name:
                continue
            name = parts[-2]
            if not valid_video_id(name):
                raise SourceError(
                    f"{self.label}: {path!r}: {name!r} is not a name for a folder. Fix: use another revision"
                )
            if name in paths:
                raise SourceError(
                    f"{self.label}: the video {name!r} is there twice, as {paths[name]} and {path}. "
                    "Fix: download the data set yourself and give the folder that is meant"
                )
            paths[name] = path
        return paths


def open_source(
    source: str | Path, *, revision: str | None = None, cache_dir: str | Path | None = None, endpoint: str | None = None
) -> Source:
    """Open a local release folder, or the Hub data set `org/name` at `revision` (a commit, branch or tag).

    A string that names an existing folder stands for that folder. Give a `Path` to exclude the Hub. Without a revision,
    the newest commit is used, and a warning explains how to pin it.

    Args:
        cache_dir: folder for the Hub's files (in `hub`) and the releases (in `barista_bench`); by default
            huggingface_hub's cache.
        endpoint: address of a Hub other than huggingface.co.

    Raises:
        SourceError: there is no release, or the release cannot be fetched.
        ConfigError: a local folder has no revisions.
    """
    is_hub_id = isinstance(source, str) and _HUB_ID.fullmatch(source) is not None
    folder = Path(source).expanduser()
    if is_hub_id and (revision is not None or not folder.exists()):
        return _open_hub(str(source), revision, cache_dir, endpoint)
    if revision is not None:
        raise ConfigError(
            f"{source}: a revision ({revision}) belongs to a Hub data set, and this is a local folder. "
            "Fix: leave the revision out, or give the data set as org/name"
        )
    if not folder.is_dir():
        state = "is not a folder" if folder.exists() else "does not exist"
        raise SourceError(f"{folder}: {state}. Fix: give the release's folder, or a Hub data set as org/name")
    root = folder.resolve()
    if not any(path.is_file() for path in root.glob(f"*/{ANNOTATION_FILE}")):
        raise SourceError(f"{folder}: holds no <video_id>/{ANNOTATION_FILE}{_hint(root)}")
    return Source(root, {"kind": "local", "id": str(root), "sha": None, "requested_revision": None})


def commit_of_release(name: str) -> str | None:
    """Return the newest commit of a release on the Hub.

    The result is None if `name` is a path or no Hub id, or if the Hub cannot be reached. It is also None if the data
    set contains no scene graphs, since this package cannot build such a data set.
    """
    if _HUB_ID.fullmatch(name) is None or Path(name).expanduser().exists():
        return None
    try:
        info = huggingface_hub.HfApi().dataset_info(name)
    except (hub_errors.HTTPError, OSError, ValueError):  # type: ignore[attr-defined]
        return None
    files = [sibling.rfilename for sibling in info.siblings or ()]
    has_graphs = any(PurePosixPath(file).name == ANNOTATION_FILE for file in files)
    is_packed = any(map(is_archive, files)) and not any(file.endswith(".parquet") for file in files)
    return info.sha if has_graphs or is_packed else None


def _open_hub(repo_id: str, revision: str | None, cache_dir: str | Path | None, endpoint: str | None) -> HubSource:
    hub_cache = Path(cache_dir, "hub") if cache_dir is not None else Path(hub_constants.HF_HUB_CACHE)
    hub_cache = hub_cache.expanduser().absolute()
    releases = hub_cache.parent / "barista_bench" / repo_id.replace("/", "--")
    sha = revision if revision and _SHA.fullmatch(revision) else _commit(repo_id, revision, endpoint, releases)
    identity = {"kind": "hub", "id": repo_id, "sha": sha, "requested_revision": revision}
    source = HubSource(releases / sha / "release", identity, repo_id, sha, hub_cache, endpoint)
    annotations, archives = source.paths_by_video(ANNOTATION_FILE), source.archives
    if annotations:
        source.place_annotations(annotations)
        return source
    if not archives:
        raise SourceError(
            f"{source.label}: holds neither <video_id>/{ANNOTATION_FILE} nor an archive (.zip, .tar, .tar.gz, "
            f".tgz); its files are {_brief(source.files) or 'none'}. Fix: check the data set's name and revision"
        )
    log.info("%s: the videos are in %d archives, which are downloaded completely", source.label, len(archives))
    for archive in archives:
        source.place_archive(archive)
    if not any(source.root.glob(f"*/{ANNOTATION_FILE}")):
        raise SourceError(
            f"{source.label}: no archive holds <video_id>/{ANNOTATION_FILE}: {_brief(archives)}. "
            "Fix: check the data set's name and revision"
        )
    return source


def _commit(repo_id: str, revision: str | None, endpoint: str | None, releases: Path) -> str:
    """Return the current commit of a branch, a tag or (for None) the default branch."""
    cached_shas = sorted(path.name for path in releases.glob("*") if _SHA.fullmatch(path.name))
    cached_note = f" (in the cache: {', '.join(cached_shas)})" if cached_shas else ""
    with _explaining_errors(f"resolving the revision {revision or 'main'}{cached_note}", repo_id):
        sha = huggingface_hub.HfApi(endpoint=endpoint).dataset_info(repo_id, revision=revision).sha
    if sha is None or not _SHA.fullmatch(sha):
        raise SourceError(
            f"{repo_id}: the Hub names no commit for {revision or 'main'}. Fix: give a commit's 40 digits"
        )
    why = "no revision is given" if revision is None else f"the revision {revision} may move"
    log.warning("%s: %s, using the commit %s; add --revision %s to pin it", repo_id, why, sha, sha)
    return sha


def _place(origin: Path, target: Path, name: str) -> None:
    """Give a file a second name below the release's folder. Raises SourceError if another file has that name."""
    if not origin.is_file():
        raise SourceError(f"{name}: {origin} is missing in the cache. Fix: delete the cache's folder and run it again")
    target.parent.mkdir(parents=True, exist_ok=True)
    origin = origin.resolve()
    try:
        place_file(origin, target)
    except FileExistsError:
        if target.samefile(origin) or filecmp.cmp(origin, target, shallow=False):
            return
        raise SourceError(
            f"{name}: {target.parent.name}/{target.name} is already there with another content: the data set "
            "holds it twice. Fix: download it yourself and give the folder that is meant"
        ) from None


def _brief(names: Sequence[str]) -> str:
    """Return the first few names for a message."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
