"""Annotations of any tool as flat rows: objects on frames, attributes, relations, activities and steps of videos.

A reader of a tool makes rows of its export; `row_graph.py` makes graphs of rows. What cannot be a row is lost: it is
counted by its reason, and named by its place.
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
from barista_bench.files.reading import as_utf8, confined, read_bounded
from barista_bench.files.text_out import without_numbers
from barista_bench.media.video.frame_folder import SUFFIXES, frame_files
from barista_bench.media.video.index import VIDEO_SUFFIXES
from barista_bench.media.video.readers import video_facts
from barista_bench.other_graphs.source import ImportTally
from barista_bench.scene_graph.non_finite import replace_non_finite
from barista_bench.scene_graph.release import MALFORMED, tidy_name
from barista_bench.scene_graph.shapes import Rle

MAX_BYTES = 2**30
"""Most bytes of one file of annotations."""
_MOST_NAMED = 1000
"""Lost records of a video that its notes name."""
OBJECTS = "objects"
T = TypeVar("T")

Moment: TypeAlias = int | float | str
"""A frame, counted from 0; seconds from the start; or the name of a picture."""
Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, width and height in pixels."""
Shape: TypeAlias = Callable[[int, int], Rle | Box | str]
"""Draws on a frame of (height, width): a mask, a box, or what is wrong."""


class Span(NamedTuple):
    """When something is so. Seconds never include the end."""

    start: Moment
    end: Moment
    includes_end: bool = True


class ObjectRow(NamedTuple):
    """An object at a moment; `size` is the (width, height) that it was drawn on, where that is known."""

    place: str
    key: str
    category: str
    moment: Moment
    shape: Shape
    size: tuple[int, int] | None = None


class AttributeRow(NamedTuple):
    """Without a span, it holds where the object is annotated. Without a type, the domain file's for that value."""

    place: str
    object: str
    value: str
    type: str | None = None
    span: Span | None = None


class RelationRow(NamedTuple):
    """Without a span, it holds where both objects are annotated. Without a type, the domain file's."""

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
        path: of the video file, or of the folder of its pictures, below the source.
        only: the one picture of the folder that is meant, where each is a video of its own.
        annotated: moments that are annotated, whether or not anything is on them.
        incomplete: moments of which a record was lost; None among them is any moment.
        lossy: sections of which a record was lost, but for objects.
        named: the lost records, each with its reason.
    """

    path: str
    only: str | None = None
    objects: list[ObjectRow] = field(default_factory=list)
    attributes: list[AttributeRow] = field(default_factory=list)
    relations: list[RelationRow] = field(default_factory=list)
    segments: list[SegmentRow] = field(default_factory=list)
    annotated: list[Moment] = field(default_factory=list)
    incomplete: set[Moment | None] = field(default_factory=set)
    lossy: set[str] = field(default_factory=set)
    tally: ImportTally = field(default_factory=ImportTally)
    named: list[str] = field(default_factory=list)

    def lose(self, place: str, reason: str, *, moment: Moment | None = None, section: str = OBJECTS) -> None:
        """Count a record of a section that cannot be taken; the moment is that of an object."""
        self.tally.lost[f"{_file_of(place)}: {without_numbers(reason)}"] += 1
        if len(self.named) < _MOST_NAMED:
            self.named.append(f"{place}: {reason}")
        if section == OBJECTS:
            self.incomplete.add(moment)
        else:
            self.lossy.add(section)


Holder: TypeAlias = tuple[VideoRows | None, Moment | None]


class Rows:
    """The rows of all videos of a source, by video id, as its files are read."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.videos: dict[str, VideoRows] = {}
        self.vocabulary: set[str] = set()
        """Categories that the source has, used or not."""
        self.tally = ImportTally()
        """Of what belongs to no video."""
        self.lossy: set[str] = set()
        """Sections of which a record was lost that may be of any video."""
        self.sha256 = hashlib.sha256()
        """Of all files that were read."""
        self._media, self._folders = _media_below(source)
        self._one_video: dict[str, bool] = {}

    def read(self, path: Path) -> bytes:
        """A file's bytes, without a byte order mark. Raises DataError where it is missing, too large or compressed."""
        data = as_utf8(read_bounded(path, MAX_BYTES, remedy="export it again"), str(path))
        self.sha256.update(data)
        return data

    def content(self, path: Path, kind: type[T]) -> T | None:
        """A JSON file; None where it is lost, since it is damaged, or left out, since it is another kind of file."""
        data = replace_non_finite(self.read(path))
        try:
            return msgspec.json.decode(data, type=kind)
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
        """The files below the source that a pattern fits. Raises DataError where there is none."""
        found = {path for pattern in patterns for path in self.source.glob(pattern) if path.is_file()}
        if not found:
            raise DataError(f"{self.source}: no file {' or '.join(patterns)}. Remedy: name the folder of the export")
        return [path_below(self.source, self.place(path)) for path in sorted(found)]

    def place(self, path: Path) -> str:
        """A file's path below the source, by which its records are named."""
        return path.relative_to(self.source if path.is_relative_to(self.source) else self.source.resolve()).as_posix()

    def records(
        self,
        items: Iterable[msgspec.Raw],
        kind: type[T],
        place: str,
        holder: Callable[[msgspec.Raw], Holder] | None = None,
    ) -> Iterator[tuple[str, T]]:
        """The records of a list, each with its place; a wrong one is lost.

        Args:
            holder: video and moment of a wrong record, as far as they can be told.
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
        """Count a record of no video that is there; or of a section of any video, where it cannot be read."""
        label = f"{_file_of(place)}: {without_numbers(reason)}"
        first = next((other for other in self.tally.lost if other.startswith(f"{label} (first: ")), None)
        self.tally.lost[first or f"{label} (first: {place})"] += 1
        if section:
            self.lossy.add(section)

    def find(self, reference: str) -> str | None:
        """The path, below the source, of the only video, picture or folder of pictures that a reference can be of.

        A relative path is that of the end of a path, or a video's name without its suffix. Of an address or an
        absolute path, whose beginning is of another machine, as much as fits counts.
        """
        is_relative = not (reference.startswith("/") or ":" in reference)
        parts = [part for part in reference.replace("\\", "/").split("/") if part not in ("", ".")]
        paths = self._media.get(parts[-1], []) if parts else []
        shared = {path: _shared_end(path, parts) for path in paths}
        most = len(parts) if is_relative else max(shared.values(), default=0)
        best = [path for path, count in shared.items() if count == most]
        return best[0] if len(best) == 1 else None

    def add_object(self, video: VideoRows, row: ObjectRow) -> None:
        """Add an object's row; the source has its category."""
        video.objects.append(row)
        self.vocabulary |= {tidy_name(row.category)} - {""}

    def video(self, path: str, video_id: str | None = None) -> VideoRows:
        """The rows of the video file, or of the folder of pictures, at a path below the source."""
        return self.videos.setdefault(video_id or self._id_of(path), VideoRows(path))

    def _id_of(self, path: str) -> str:
        """The name of a video, without its suffix, or of a folder; the whole path where others have that name too."""
        whole = path if path in self._folders else os.path.splitext(path)[0]
        name = PurePosixPath(whole).name or self.source.resolve().name
        return name if len(self._media.get(name, ())) == 1 else whole.replace("/", "_")

    def is_video(self, path: str) -> bool:
        """Whether a path below the source is a video, or a folder of pictures, and not one picture."""
        return path in self._folders or os.path.splitext(path)[1].lower() in VIDEO_SUFFIXES

    def picture(self, path: str) -> tuple[VideoRows, str]:
        """The rows of the video that a picture is a frame of, and the moment that it is.

        The pictures of a folder are the frames of one video. Where they cannot be, since they are of several sizes,
        each is a video of one frame.
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
    """A path below the source; "." is the source."""
    return source if path == "." else confined(source, path)


def picture_path(folder: Path, name: str) -> Path | None:
    """The picture of a name in a folder; its suffix may be another one, or missing."""
    paths = {path.name: path for path in frame_files(folder)}
    return paths.get(name) or {path.stem: path for path in paths.values()}.get(os.path.splitext(name)[0])


def reason_of(error: Exception) -> str:
    """What an error of decoding says, without the place."""
    return str(error).partition(" - at `$")[0]


def _file_of(place: str) -> str:
    """The file that a place begins with: `a.csv: line 3`, `a.json: annotations[3]`."""
    return place.partition(": ")[0]


def _shared_end(path: str, parts: list[str]) -> int:
    """How many of the last parts of a path are those of a reference, the first of which was looked up."""
    count = 1
    for own, other in zip(reversed(PurePosixPath(path).parts[:-1]), reversed(parts[:-1]), strict=False):
        if own != other:
            break
        count += 1
    return count


def _media_below(source: Path) -> tuple[dict[str, list[str]], set[str]]:
    """Paths of videos, pictures and folders of pictures by their names, videos also by their stems; the folders."""
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
