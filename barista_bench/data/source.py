"""A release as it lies in a folder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from barista_bench.errors import SourceError
from barista_bench.scene_graph.release import ANNOTATION_FILE


@dataclass(frozen=True)
class Source:
    """A release that can be read. `identity` says which one: `kind`, `id`, `sha` and `requested_revision`."""

    root: Path
    identity: dict[str, str | None]

    def fetch_videos(self, video_ids: Iterable[str], *, quiet: bool = False) -> None:
        """Bring the videos' files under `root`, where the release is on the Hub; `quiet` shows no progress bar."""


def open_local(folder: Path) -> Source:
    if not folder.is_dir():
        state = "is not a folder" if folder.exists() else "does not exist"
        raise SourceError(f"{folder}: {state}. Remedy: give the release's folder, or a Hub data set as org/name")
    root = folder.resolve()
    if not any(path.is_file() for path in root.glob(f"*/{ANNOTATION_FILE}")):
        raise SourceError(f"{folder}: holds no <video_id>/{ANNOTATION_FILE}{_hint(root)}")
    identity = {"kind": "local", "id": str(root), "sha": None, "requested_revision": None}
    return Source(root, identity)


def _hint(root: Path) -> str:
    """The end of that message, about a folder that is no release: it is often the right one, one level off."""
    if (root / ANNOTATION_FILE).is_file():
        return f": this is the folder of one video. Remedy: give the folder above it, {root.parent}"
    below = next(root.glob(f"*/*/{ANNOTATION_FILE}"), None)
    if below is not None:
        return f": the release seems to lie one level below. Remedy: give {below.parent.parent}"
    from barista_bench.data.archives import is_archive

    archive = next((path for path in sorted(root.iterdir()) if is_archive(path.name)), None)
    if archive is not None:
        return f", but archives such as {archive.name}. Remedy: unpack them first"
    return ". Remedy: give the folder that holds one folder per video"
