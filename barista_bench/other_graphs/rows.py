"""Represents annotations of any tool as flat rows: objects on frames, attributes, relations, activities and steps.

The reader of a tool turns the tool's export into rows, and `row_graph.py` turns rows into graphs. Records that fit no
row are lost: they are counted by reason, and named by their place in the export.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeAlias, TypeVar

import msgspec

from barista_bench.errors import DataError, VideoError
from barista_bench.files.paths import confine
from barista_bench.files.reading import as_utf8, read_bounded
from barista_bench.files.text_out import without_numbers
from barista_bench.media.video.frame_folder import SUFFIXES
from barista_bench.media.video.opening import VIDEO_SUFFIXES
from barista_bench.media.video.readers import video_facts
from barista_bench.other_graphs.source import ImportTally
from barista_bench.scene_graph.release import MALFORMED, replace_non_finite, tidy_name
from barista_bench.scene_graph.shapes import Rle

MAX_BYTES = 2**30
"""Limit of bytes for one file of annotations."""
_MOST_NAMED = 1000
"""Limit of lost records listed in a video's notes."""
OBJECTS = "objects"
T = TypeVar("T")

Moment: TypeAlias = int | float | str
"""The number of a frame, from 0; seconds from the start; or the name of a picture."""
XywhBox: TypeAlias = tuple[float, float, float, float]
"""Left, top, width and height in pixels."""
Shape: TypeAlias = Callable[[int, int], Rle | XywhBox | str]
"""Draws a shape on a frame of (height, width): returns a mask or a box, or the reason for a failure."""


class Span(NamedTuple):
    """A span of time. A span in seconds does not include its end."""

    start: Moment
    end: Moment
    includes_end: bool = True


class ObjectRow(NamedTuple):
    """An object at a moment; `size` is the (width, height) of the picture on which it was drawn, if known."""

    place: str
    key: str
    category: str
    moment: Moment
    shape: Shape
    size: tuple[int, int] | None = None


class AttributeRow(NamedTuple):
    """An attribute of an object.

    Without a span, the attribute holds on all frames on which the object is annotated. Without a type, the domain
    file's type for the value is used.
    """

    place: str
    object: str
    value: str
    type: str | None = None
    span: Span | None = None


class PredicateRow(NamedTuple):
    """A relation between two objects.

    Without a span, the relation holds on all frames on which both objects are annotated. Without a type, the domain
    file's type for the predicate is used.
    """

    place: str
    subject: str
    predicate: str
    object: str
    type: str | None = None
    span: Span | None = None


class SegmentRow(NamedTuple):
    """An activity or a process step; the layer is `activities` or `process_steps`."""

    place: str
    layer: str
    name: str
    span: Span


@dataclass
class VideoRows:
    """The rows of one video.

    Args:
        path: path, below the source, of the video file or of the folder with its pictures.
        only: the picture of the folder to use, if each picture is a separate video.
        annotated: the annotated moments, including moments without objects.
        incomplete: moments with lost records. None stands for a lost record whose moment is unknown.
        lossy: sections with lost records, except objects.
        named: the lost records, each with its reason.
    """

    path: str
    only: str | None = None
    objects: list[ObjectRow] = field(default_factory=list)
    attributes: list[AttributeRow] = field(default_factory=list)
    relations: list[PredicateRow] = field(default_factory=list)
    segments: list[SegmentRow] = field(default_factory=list)
    annotated: list[Moment] = field(default_factory=list)
    incomplete: set[Moment | None] = field(default_factory=set)
    lossy: set[str] = field(default_factory=set)
    tally: ImportTally = field(default_factory=ImportTally)
    named: list[str] = field(default_factory=list)

    def lose(self, place: str, reason: str, *, moment: Moment | None = None, section: str = OBJECTS) -> None:
        """Count a record of a section as lost; `moment` is given for objects."""
        self.tally.lost[f"{_file_of(place)}: {without_numbers(reason)}"] += 1
        if len(self.named) < _MOST_NAMED:
            self.named.append(f"{place}: {reason}")
        if section == OBJECTS:
            self.incomplete.add(moment)
        else:
            self.lossy.add(section)


Holder: TypeAlias = tuple[VideoRows | None, Moment | None]


class Rows:
    """The rows of all videos of a source, by video id; they are added while the source's files are read."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.videos: dict[str, VideoRows] = {}
        self.vocabulary: set[str] = set()
        """All categories of the source, used or unused."""
        self.tally = ImportTally()
        """Counts of records that belong to no video."""
        self.lossy: set[str] = set()
        """Sections with a lost record that may belong to any of the videos."""
        self.sha256 = hashlib.sha256()
        """Hash of all files that were read."""
        self._media, self._folders = _media_below(source)
        self._one_video: dict[str, bool] = {}

    def read(self, path: Path) -> bytes:
        """Return a file's bytes without byte order mark.

        Raises DataError if the file is missing, too large or compressed.
        """
        data = as_utf8(read_bounded(path, MAX_BYTES, remedy="export it again"), str(path))
        self.sha256.update(data)
        return data

    def content(self, path: Path, kind: type[T]) -> T | None:
        """Read a JSON file; None for a damaged file (counted as lost) or another kind of file (skipped)."""
        try:
            data = replace_non_finite(self.read(path))
            return msgspec.json.decode(data, type=kind)
        except DataError as error:  # the file has another encoding, or is too large
            self.lose(f"{self.place(path)}: file", str(error).partition(": ")[2])
            return None
        except MALFORMED as error:
            reason = str(error)
        try:
            has_none = not set(getattr(kind, "__struct_fields__", ())) & msgspec.json.decode(data, type=dict).keys()
        except MALFORMED:
            has_none = False
        if has_none:
            self.tally.left_out[f"files of another layout: {self.place(path)}"] += 1
        else:
            self.lose(f"{self.place(path)}: file", reason)
        return None

    def files(self, *patterns: str) -> list[Path]:
        """Return the files below the source that match one of the patterns. Raises DataError if no file matches."""
        found = {path for pattern in patterns for path in self.source.glob(pattern) if path.is_file()}
        if not found:
            raise DataError(f"{self.source}: no file {' or '.join(patterns)}. Fix: name the folder of the export")
        return [path_below(self.source, self.place(path)) for path in sorted(found)]

    def place(self, path: Path) -> str:
        """Return a file's path below the source; messages use it to name the file's records."""
        return path.relative_to(self.source if path.is_relative_to(self.source) else self.source.resolve()).as_posix()

    def records(
        self,
        items: Iterable[msgspec.Raw],
        kind: type[T],
        place: str,
        holder: Callable[[msgspec.Raw], Holder] | None = None,
    ) -> Iterator[tuple[str, T]]:
        """Yield the records of a list, each with its place; invalid records count as lost.

        Args:
            holder: returns the video and the moment of an invalid record, as far as these can be determined.
        """
        for number, raw in enumerate(items):
            try:
                yield f"{place}[{number}]", msgspec.json.decode(raw, type=kind)
            except MALFORMED as error:
                video, moment = holder(raw) if holder else (None, None)
                if video is None:
                    self.lose(f"{place}[{number}]", reason_of(error), OBJECTS)
                else:
                    video.lose(f"{place}[{number}]", reason_of(error), moment=moment)

    def lose(self, place: str, reason: str, section: str | None = None) -> None:
        """Count a lost record that belongs to no existing video, or an unreadable section that may affect any video."""
        label = f"{_file_of(place)}: {without_numbers(reason)}"
        first = next((other for other in self.tally.lost if other.startswith(f"{label} (first: ")), None)
        self.tally.lost[first or f"{label} (first: {place})"] += 1
        if section:
            self.lossy.add(section)

    def find(self, reference: str) -> str | None:
        """Return the path, below the source, of the only video, picture or folder of pictures that matches a reference.

        A relative reference is the end of a path, or the name of a video without suffix. Addresses and absolute paths
        begin with parts from another machine, so as many of their last parts as possible are compared.
        """
        is_relative = not (reference.startswith("/") or ":" in reference)
        parts = [part for part in reference.replace("\\", "/").split("/") if part not in ("", ".")]
        paths = self._media.get(parts[-1], []) if parts else []
        shared = {path: _shared_end(path, parts) for path in paths}
        most = len(parts) if is_relative else max(shared.values(), default=0)
        best = [path for path, count in shared.items() if count == most]
        return best[0] if len(best) == 1 else None

    def add_object(self, video: VideoRows, row: ObjectRow) -> None:
        """Add an object's row to a video, and the object's category to the categories of the source."""
        video.objects.append(row)
        self.vocabulary |= {tidy_name(row.category)} - {""}

    def video(self, path: str, video_id: str | None = None) -> VideoRows:
        """Return the rows of a video file or a folder of pictures at a path below the source."""
        return self.videos.setdefault(video_id or self._id_of(path), VideoRows(path))

    def _id_of(self, path: str) -> str:
        """Return the name of a folder, or of a video without suffix; if others share the name, the complete path."""
        whole = path if path in self._folders else os.path.splitext(path)[0]
        name = PurePosixPath(whole).name or self.source.resolve().name
        return name if len(self._media.get(name, ())) == 1 else whole.replace("/", "_")

    def is_video(self, path: str) -> bool:
        """Return True if a path below the source is a video or a folder of pictures, and False for a single picture."""
        return path in self._folders or os.path.splitext(path)[1].lower() in VIDEO_SUFFIXES

    def picture(self, path: str) -> tuple[VideoRows, str]:
        """Return the rows of the video to which a picture belongs, and the picture's moment.

        The pictures of a folder are the frames of one video. If the sizes of the pictures differ, each picture is a
        video with one frame.
        """
        folder, name = os.path.split(path)
        folder = folder or "."
        if folder not in self._one_video:
            try:
                video_facts(path_below(self.source, folder))
                self._one_video[folder] = True
            except VideoError:
                self._one_video[folder] = False
        if self._one_video[folder]:
            return self.video(folder), name
        video = self.videos.setdefault(os.path.splitext(path)[0].replace("/", "_"), VideoRows(folder, name))
        video.tally.guessed["pictures of several sizes in one folder: each is a video of one frame"] = 1
        return video, name


def path_below(source: Path, path: str) -> Path:
    """Return a path below the source; "." is the source."""
    return source if path == "." else confine(source, path)


def reason_of(error: Exception) -> str:
    """Return the message of a decoding error, without the place of the error."""
    return str(error).partition(" - at `$")[0]


def _file_of(place: str) -> str:
    """Return the file at the beginning of a place such as `a.csv: line 3` or `a.json: annotations[3]`."""
    return place.partition(": ")[0]


def _shared_end(path: str, parts: list[str]) -> int:
    """Return how many parts at the end of a path equal the parts of a reference; the last part was compared before."""
    count = 1
    for own, other in zip(reversed(PurePosixPath(path).parts[:-1]), reversed(parts[:-1]), strict=False):
        if own != other:
            break
        count += 1
    return count


def _media_below(source: Path) -> tuple[dict[str, list[str]], set[str]]:
    """Return the videos, pictures and folders of pictures by name (videos also by stem), and the set of folders."""
    by_name: dict[str, list[str]] = {}
    folders: set[str] = set()
    for root, subfolders, files in os.walk(source):
        subfolders.sort()
        folder = PurePosixPath(Path(root).relative_to(source).as_posix())
        for name in sorted(files):
            stem, suffix = os.path.splitext(name)
            if suffix.lower() in SUFFIXES:
                folders.add(str(folder))
            elif suffix.lower() in VIDEO_SUFFIXES:
                by_name.setdefault(stem, []).append(str(folder / name))
            else:
                continue
            by_name.setdefault(name, []).append(str(folder / name))
    for path in sorted(folders):
        by_name.setdefault(PurePosixPath(path).name or source.resolve().name, []).append(path)
    return by_name, folders
