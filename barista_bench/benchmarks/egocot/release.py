"""The benchmark's annotation files, read and checked (schema of the project page; its container format is not public).

A release is one `.json` or `.jsonl` file, or a folder of them. A JSON file holds one record, a list of records, or an
object with one list of records. Files whose name says `manifest` or `submission` are none. The split is what a record
or the file's name says (`dev`, `test`), else `dev` where answers are given and `test` where they are not.

Third-party media are neither fetched nor cut here: the recipe is data. The format of the benchmark's own manifest is
not public. Ours is a `.json` list or `.jsonl` file whose name says `manifest`, one `ManifestEntry` a medium;
docs/egocot.md shows one.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from barista_bench.benchmarks.clock_times import read_seconds
from barista_bench.benchmarks.egocot.items import CotItem, Split
from barista_bench.benchmarks.egocot.records import RecordReader, media_file, read_records
from barista_bench.errors import DataError
from barista_bench.files.reading import confined, first_complaint, valid_video_id
from barista_bench.files.text_out import printable
from barista_bench.scene_graph import Problem, ProblemLog


def _seconds(value: object) -> float:
    seconds = read_seconds(value)
    if seconds is None:
        raise ValueError("is no number and no MM:SS.ss")
    return seconds


Text: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]
Address: TypeAlias = Annotated[
    str, StringConstraints(strip_whitespace=True, pattern=r"^https://[^\s\x00-\x20<>\"'\\]{1,2000}$")
]
Seconds: TypeAlias = Annotated[float, BeforeValidator(_seconds)]
Pixels: TypeAlias = Annotated[int, Field(strict=True, ge=1, le=16384)]


class ManifestEntry(BaseModel):
    """One medium. Times in seconds, sizes in pixels; None where the manifest does not say.

    Args:
        media_id: as in the annotations.
        dataset: whose video it is, e.g. `Ego4D`.
        uid, url: of the source video; one of them is needed.
        start, end: the part used, in the file also as MM:SS.ss.
        fps, width, height: of the cut video.
    """

    model_config = ConfigDict(frozen=True)

    media_id: Text
    dataset: Text
    uid: Text | None = None
    url: Address | None = None
    start: Seconds | None = None
    end: Seconds | None = None
    fps: Annotated[Seconds, Field(gt=0, le=1000)] | None = None
    width: Pixels | None = None
    height: Pixels | None = None

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        if not valid_video_id(f"{self.media_id}.mp4"):
            raise ValueError("media_id is no name of a file")
        if self.uid is None and self.url is None:
            raise ValueError("both uid and url are missing")
        if self.start is not None and self.end is not None and self.end <= self.start:
            raise ValueError("end is not after start")
        return self

    @property
    def fetch(self) -> str:
        """The videos to get, in words."""
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
        try:
            entry = ManifestEntry.model_validate(record)
        except ValidationError as error:
            what = printable(f"{first_complaint(error)}; the entry is left out")
            log.error(key, what, "docs/egocot.md shows the format")
            continue
        if entry.media_id in entries:
            log.error(key, f"media_id {entry.media_id!r} stands twice; the first counts", "keep one")
        else:
            entries[entry.media_id] = entry
    return entries


MAX_FILES = 1000
_SUFFIXES = (".json", ".jsonl")
_OTHER = re.compile(r"manifest|submission|schema", re.IGNORECASE)
_SPLIT = re.compile(r"(?:^|[\W_])(dev|test)(?:[\W_]|$)", re.IGNORECASE)


class EgocotRelease:
    """The items of a release.

    Args:
        root: the annotations, a file or a folder.
        videos: folder that holds `media/<media_id>.mp4`; the annotations' own folder where it is None.

    Attributes:
        items: by qid, in order of media and qid.
        manifest: where third-party media come from, by media id, if a manifest lies beside the annotations.
        problems: all that is wrong; a bad record costs itself.

    Raises:
        DataError: there is no such folder, no annotation file in it, or no item in these.
    """

    def __init__(self, root: Path, videos: Path | None = None) -> None:
        self.root = root
        self.videos = videos if videos is not None else (root.parent if root.is_file() else root)
        items: dict[str, CotItem] = {}
        problems: list[Problem] = []
        for path in annotation_files(root):
            log = ProblemLog(_name(path, root))
            for where, item in _items(path, log):
                if item.qid in items:
                    log.error(where, f"qid {item.qid} stands twice; the first counts", "give every question its own")
                else:
                    items[item.qid] = item
            problems += log.kept
        if not items:
            first = f" (first problem: {problems[0]})" if problems else ""
            raise DataError(
                printable(f"{root}: holds no EgoCoT-Bench question{first}. Remedy: give the annotation files")
            )
        self.items = dict(sorted(items.items(), key=lambda pair: (pair[1].media_id, pair[0])))
        self.manifest: dict[str, ManifestEntry] = {}
        for path in _files(root):
            if "manifest" in path.name.casefold():
                log = ProblemLog(_name(path, root))
                self.manifest.update(read_manifest(path, log))
                problems += log.kept
        self.problems: Sequence[Problem] = tuple(problems)

    def __repr__(self) -> str:
        return f"EgocotRelease({str(self.root)!r}, {len(self.items)} questions)"

    def video_path(self, video_id: str) -> Path:
        """Where a video lies or would lie. Raises DataError for one that would lie outside of `videos`."""
        return confined(self.videos, media_file(video_id))

    def missing(self, video_id: str) -> str:
        """The remedy for a video that is not there, in words."""
        entry = self.manifest.get(video_id)
        whose = (
            f"it is from {entry.dataset}: get it under that data set's own terms and run {entry.shown_recipe}"
            if entry
            else "EgoCoT-Bench passes on its self-recorded videos alone; the others are Ego4D's, EPIC-KITCHENS', "
            "Charades-Ego's, MECCANO's and HD-EPIC's: get them under the terms of those, and cut them as the "
            "benchmark's reconstruction manifest says"
        )
        return printable(f"{media_file(video_id)} is absent below {self.videos}; {whose}")


open_release = EgocotRelease


def annotation_files(root: Path) -> list[Path]:
    """The annotation files of a release, by name.

    Raises:
        DataError: there are none, or too many.
    """
    files = [path for path in _files(root) if not _OTHER.search(path.name)]
    if not files:
        raise DataError(f"{root}: no .json or .jsonl file. Remedy: give EgoCoT-Bench's annotations, a file or a folder")
    return files


def _files(root: Path) -> list[Path]:
    if root.is_file():
        return [root]
    if not root.is_dir():
        raise DataError(f"{root}: no such file or folder. Remedy: give EgoCoT-Bench's annotations")
    # One level of folders, since the public layout is not known; media and hidden folders hold no annotations.
    folders = [
        root,
        *(sub for sub in sorted(root.iterdir()) if sub.is_dir() and not sub.name.startswith((".", "media"))),
    ]
    files = [path for folder in folders for path in sorted(folder.iterdir()) if path.suffix.lower() in _SUFFIXES]
    if len(files) > MAX_FILES:
        raise DataError(f"{root}: more than {MAX_FILES} annotation files. Remedy: give EgoCoT-Bench's own folder")
    return [path for path in files if path.is_file()]


def _name(path: Path, root: Path) -> str:
    return path.name if root.is_file() else path.relative_to(root).as_posix()


def _items(path: Path, log: ProblemLog) -> Iterator[tuple[str, CotItem]]:
    named = _SPLIT.search(path.stem)
    split: Split | None = None
    if named:
        split = "test" if named[1].casefold() == "test" else "dev"
    reader = RecordReader(log, split)
    for key, record in read_records(path, log):
        item = reader.read(record, key)
        if item is not None:
            yield key, item
    reader.report_unknown()
