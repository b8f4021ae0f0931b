"""Where third-party media come from, and how they are cut. Nothing is fetched or run here: the recipe is data.

The format of the benchmark's own manifest is not public. Ours is a `.json` list or `.jsonl` file whose name says
`manifest`, one record a medium:

    media_id   as in the annotations
    dataset    whose video it is, e.g. "Ego4D"
    uid, url   of the source video; one of them
    start, end seconds or MM:SS.ss of the part used; absent for the whole video
    fps        frames a second of the cut video (the public sample has 4)
    width, height  of the cut video in pixels
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from barista_bench.benchmarks.clock_times import read_seconds
from barista_bench.benchmarks.egocot.records import read_records
from barista_bench.benchmarks.parsing import is_text
from barista_bench.files.paths import valid_video_id
from barista_bench.scene_graph.problems import ProblemLog

_ADDRESS = re.compile(r"https://[^\s\x00-\x20<>\"'\\]{1,2000}")
_MAX_TEXT = 500


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One medium. Times in seconds, sizes in pixels; None where the manifest does not say."""

    media_id: str
    dataset: str
    uid: str | None = None
    url: str | None = None
    start: float | None = None
    end: float | None = None
    fps: float | None = None
    width: int | None = None
    height: int | None = None

    @property
    def fetch(self) -> str:
        """What to get, in words."""
        name = self.uid or self.url or self.media_id
        where = f" ({self.url})" if self.url and self.uid else ""
        return f"{name} of {self.dataset}{where}, under the terms of {self.dataset}"

    @property
    def recipe(self) -> tuple[str, ...]:
        """The ffmpeg command that cuts it, as an argument list; SOURCE.mp4 stands for the video that was got."""
        from_start = [] if self.start is None else ["-ss", f"{self.start:g}"]
        until = [] if self.end is None else ["-to", f"{self.end:g}"]
        filters = [] if self.fps is None else [f"fps={self.fps:g}"]
        if self.width is not None and self.height is not None:
            filters.append(f"scale={self.width}:{self.height}")
        shown = ["-vf", ",".join(filters)] if filters else []
        return ("ffmpeg", *from_start, *until, "-i", "SOURCE.mp4", *shown, "-an", f"media/{self.media_id}.mp4")

    @property
    def shown_recipe(self) -> str:
        """As one writes it in a shell."""
        return shlex.join(self.recipe)


def read_manifest(path: Path, log: ProblemLog) -> dict[str, ManifestEntry]:
    """The entries of a manifest by media id; bad ones are logged and left out."""
    entries: dict[str, ManifestEntry] = {}
    for key, record in read_records(path, log):
        entry = _entry(record)
        if isinstance(entry, str):
            log.error(key, f"{entry}; the entry is left out", "docs/egocot.md shows the format")
        elif entry.media_id in entries:
            log.error(key, f"media_id {entry.media_id!r} stands twice; the first counts", "keep one")
        else:
            entries[entry.media_id] = entry
    return entries


def _entry(record: object) -> ManifestEntry | str:
    """The entry, or why it is none."""
    if not isinstance(record, dict):
        return f"is a {type(record).__name__}"
    texts = {name: record.get(name) for name in ("media_id", "dataset", "uid", "url")}
    for name, value in texts.items():
        if value is not None and not (is_text(value) and value.strip() and len(value) <= _MAX_TEXT * 4):
            return f"{name} is no text"
    media_id, dataset, uid, url = (None if value is None else str(value).strip() for value in texts.values())
    if media_id is None or not valid_video_id(f"{media_id}.mp4"):
        return "media_id is no name of a file"
    if dataset is None or len(dataset) > _MAX_TEXT or uid is url is None:
        return "dataset, or both uid and url, are missing"
    if url is not None and not _ADDRESS.fullmatch(url):
        return "url is no https address"
    start, end, fps = (
        None if record.get(name) is None else read_seconds(record[name]) for name in ("start", "end", "fps")
    )
    for name, number in (("start", start), ("end", end), ("fps", fps)):
        if number is None and record.get(name) is not None:
            return f"{name} is no number"
    if (start is not None and end is not None and end <= start) or (fps is not None and not 0 < fps <= 1000):
        return "end is not after start, or fps is out of range"
    sizes = [record.get("width"), record.get("height")]
    if not all(size is None or (type(size) is int and 1 <= size <= 16384) for size in sizes):
        return "width or height is no number of pixels"
    return ManifestEntry(media_id, dataset, uid, url, start, end, fps, *sizes)
