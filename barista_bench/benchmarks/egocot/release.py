"""Reads and checks the benchmark's annotation files.

The project page gives the schema, but the container format is not public.

A release is one `.json` or `.jsonl` file, or a folder of them. A JSON file holds one record, a list of records, or an
object with one list of records. Two kinds of records are supported: samples as the project page shows them, and the
page's quiz items. Files with `manifest` or `submission` in their name are skipped. A record or the file's name gives
the split (`dev`, `test`). Otherwise, questions with answers are in `dev`, and questions without answers are in `test`.

Third-party media are neither downloaded nor cut here; the recipe for cutting is only stored. The benchmark's manifest
format is not public. This package's manifest is a `.json` list or `.jsonl` file with `manifest` in its name, one
`ManifestEntry` per medium; docs/egocot.md shows one.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from barista_bench.benchmarks.egocot.items import CotItem
from barista_bench.benchmarks.egocot.records import (
    RecordReader,
    checked_media_id,
    checked_seconds,
    media_file,
    strip_texts,
)
from barista_bench.benchmarks.graph_evidence import read_graph_evidence
from barista_bench.benchmarks.release_records import (
    AnnotationRelease,
    PlacedRecord,
    annotation_files,
    convert_record,
    elements,
    keep_first,
    media_folder,
    no_records_error,
    read_each,
    read_values,
)
from barista_bench.errors import RecordError
from barista_bench.files.paths import confine
from barista_bench.files.text_out import make_printable
from barista_bench.scene_graph import ProblemLog

_PASSED_OVER = re.compile(r"^\.|^media.*/|submission|schema", re.IGNORECASE)
_SPLIT = re.compile(r"(?:^|[\W_])(dev|test)(?:[\W_]|$)", re.IGNORECASE)

Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=2000)]
Pixels: TypeAlias = Annotated[int, Meta(ge=1, le=16384)]


class ManifestEntry(msgspec.Struct, frozen=True):
    """One medium of the manifest. Times are in seconds, sizes in pixels. Values that the manifest lacks are None.

    Args:
        media_id: id of the medium in the annotations.
        dataset: source dataset, e.g. `Ego4D`.
        uid, url: id and address of the source video; at least one is required.
        start, end: the part of the source video that is used. The file may also give the times as MM:SS.ss.
        fps, width, height: frame rate and size of the cut video.
    """

    media_id: Name
    dataset: Name
    uid: Name | None = None
    url: Annotated[str, Meta(pattern=r"\Ahttps://[^\s\x00-\x20<>\"'\\]{1,2000}\Z")] | None = None
    start: float | None = None
    end: float | None = None
    fps: Annotated[float, Meta(gt=0, le=1000)] | None = None
    width: Pixels | None = None
    height: Pixels | None = None

    @property
    def recipe(self) -> tuple[str, ...]:
        """Return the ffmpeg command that cuts the video, as an argument list. SOURCE.mp4 is the downloaded video."""
        from_start = [] if self.start is None else ["-ss", f"{self.start:g}"]
        until = [] if self.end is None else ["-to", f"{self.end:g}"]
        filters = [] if self.fps is None else [f"fps={self.fps:g}"]
        if self.width is not None and self.height is not None:
            filters.append(f"scale={self.width}:{self.height}")
        filter_args = ["-vf", ",".join(filters)] if filters else []
        return ("ffmpeg", *from_start, *until, "-i", "SOURCE.mp4", *filter_args, "-an", media_file(self.media_id))


def _manifest_entry(placed: PlacedRecord) -> ManifestEntry:
    """Return the entry of one record. Raises RecordError."""
    content = strip_texts(placed.value)
    if isinstance(content, dict):
        times = {name: content[name] for name in ("start", "end", "fps") if content.get(name) is not None}
        content = {**content, **{name: checked_seconds(time, name) for name, time in times.items()}}
    entry = convert_record(content, ManifestEntry, "docs/egocot.md shows the format")
    checked_media_id(entry.media_id, "media_id")
    if entry.uid is None and entry.url is None:
        raise RecordError("", "both uid and url are missing", "give uid or url")
    if entry.start is not None and entry.end is not None and entry.end <= entry.start:
        raise RecordError("end", "end is not after start", "correct them")
    return entry


@dataclass(slots=True)
class EgocotRelease(AnnotationRelease):
    """The items of a release.

    Args:
        items: items by qid, in order of media and qid.
        manifest: sources of third-party media by media id; empty without a manifest beside the annotations.
    """

    items: Mapping[str, CotItem]
    manifest: Mapping[str, ManifestEntry]

    def video_path(self, video_id: str) -> Path:
        return confine(self.videos, media_file(video_id))

    def absence_text(self, video_id: str) -> str:
        """Return, in words, what to do about a missing video."""
        entry = self.manifest.get(video_id)
        source = (
            f"it is from {entry.dataset}: get it under that data set's own terms and run {shlex.join(entry.recipe)}"
            if entry
            else "EgoCoT-Bench passes on its self-recorded videos alone; the others are Ego4D's, EPIC-KITCHENS', "
            "Charades-Ego's, MECCANO's and HD-EPIC's: get them under the terms of those, and cut them as the "
            "benchmark's reconstruction manifest says"
        )
        return make_printable(f"{media_file(video_id)} is absent below {self.videos}; {source}")


def open_release(root: Path, videos: Path | None = None) -> EgocotRelease:
    """Read the annotations from a file or from a folder of files.

    Videos are `media/<media_id>.mp4` below `videos`, or beside the annotations. Raises DataError if the folder is
    missing, if it has no annotation file, or if its files have no item.
    """
    # One level of folders is searched, since the public layout is not known. Media and hidden folders have no
    # annotations.
    files = annotation_files(root, "EgoCoT-Bench", lambda path: not _PASSED_OVER.search(path.as_posix()), ("*", "*/*"))
    logs = {path: ProblemLog(path.name if root.is_file() else path.relative_to(root).as_posix()) for path in files}
    items: dict[str, CotItem] = {}
    manifest: dict[str, ManifestEntry] = {}
    for path, log in logs.items():
        if "manifest" in path.name.casefold():
            for placed, entry in read_each(_records(path, log), _manifest_entry, log, "the entry is left out"):
                keep_first(manifest, entry.media_id, entry, log, f"{placed.key}.media_id")
            continue
        match = _SPLIT.search(path.stem)
        reader = RecordReader(log, None if match is None else "test" if match[1].casefold() == "test" else "dev")
        for placed, item in read_each(_records(path, log), reader.read, log, "the question is left out"):
            keep_first(items, item.qid, item, log, f"{placed.key}.qid")
        for name, count in sorted(reader.unknown.items()):
            log.warning(name, f"stands in {count} records and is ignored", "remove it, or report it to us")
    problems = [problem for log in logs.values() for problem in log]
    if not items:
        raise no_records_error(root, "EgoCoT-Bench question", problems)
    ordered_items = dict(sorted(items.items(), key=lambda pair: (pair[1].media_id, pair[0])))
    rows = read_graph_evidence(root, problems)
    return EgocotRelease(root, media_folder(root, videos), tuple(problems), ordered_items, manifest, graph_rows=rows)


def _records(path: Path, log: ProblemLog) -> Iterator[PlacedRecord]:
    """Yield the records of a file.

    A JSON object that is not a record yields the records of its only list. Any other object is one record.
    """
    for placed in read_values(path, log):
        value = placed.value
        lists = []
        if not placed.key and isinstance(value, dict) and "question" not in value:
            lists = [(name, inner) for name, inner in value.items() if isinstance(inner, list)]
        if len(lists) == 1:
            yield from elements(lists[0][1], log, make_printable(lists[0][0][:100]))
        elif not placed.key and isinstance(value, list):
            yield from elements(value, log)
        else:
            yield placed._replace(key=placed.key or "record")
