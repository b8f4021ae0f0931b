"""Read frozen lines of all benchmarks. The release beside a file supplies data that the lines leave out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from barista_bench.core.example import FrameRef
from barista_bench.errors import DataError
from barista_bench.files.paths import confine, valid_video_id
from barista_bench.media.video import open_reader
from barista_bench.scene_graph import SceneGraph, VideoGraph
from barista_bench.scene_graph.release import ANNOTATION_FILE, VIDEO_FILE

MAX_FRAMES = 1024
"""Maximum number of frames of one example."""

RecordT = TypeVar("RecordT")
FrameIndex = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
NonEmptyText = Annotated[str, msgspec.Meta(min_length=1)]


class FrozenFrame(msgspec.Struct):
    """One frame of a line.

    `mp4_path` is never read: paths are made from the video's id and the data root.
    """

    video_id: str
    frame_index: FrameIndex


class FrozenLine(msgspec.Struct):
    """One line of a frozen file; the task defines `metadata` and `task_data`."""

    example_id: NonEmptyText
    task_name: str
    frames: Annotated[list[FrozenFrame], msgspec.Meta(min_length=1, max_length=MAX_FRAMES)]
    task_data: dict[str, Any]
    metadata: dict[str, Any] = {}
    label: str = ""

    @property
    def video_id(self) -> str:
        return self.frames[0].video_id

    @property
    def frame_refs(self) -> tuple[FrameRef, ...]:
        return tuple(FrameRef(frame.video_id, frame.frame_index) for frame in self.frames)


def frozen_line_of(record: object, *, nested: bool = False) -> FrozenLine:
    """Return the parts of a line that all tasks share.

    Args:
        nested: whether video ids may be relative paths, as in other benchmarks.

    Raises:
        DataError: a field is missing or cannot be used.
    """
    line = convert_record(record, FrozenLine, "")
    if any(frame.video_id != line.video_id for frame in line.frames):
        raise DataError("frames are of more than one video. Fix: freeze again")
    if not all(map(valid_video_id, line.video_id.split("/") if nested else [line.video_id])):
        wanted = "a relative path" if nested else "the name of one folder"
        raise DataError(f"frames: video_id {line.video_id!r:.80} is not {wanted}. Fix: name the video's folder")
    return line


def convert_record(value: object, kind: type[RecordT], where: str) -> RecordT:
    """Return a JSON value as a typed record; unknown keys are ignored.

    Args:
        where: text that error messages put before the path within the value.

    Raises:
        DataError: the value does not fit; the error names the path.
    """
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        complaint, _, path = str(error).partition(" - at `$")
        raise DataError(f"{where}{path.rstrip('`')}: {complaint}. Fix: correct it".lstrip(".: ")) from error


@dataclass(frozen=True)
class ReleaseRoot:
    """The release beside a frozen file, used only for data that the file leaves out.

    `path` is None if there is no release.
    """

    path: Path | None = None
    _sizes: dict[str, tuple[int, int]] = field(default_factory=dict)

    @cached_property
    def _graph(self) -> SceneGraph:
        if self.path is None:
            raise DataError("the release is needed. Fix: give the folder of its videos and annotations with --root")
        return SceneGraph(self.path)

    def video(self, video_id: str, need: str) -> VideoGraph:
        """Return the annotations of a video.

        Raises DataError if the video has no annotations. The error names `need`, the data that the file lacks.
        """
        with _lookup_of(need):
            return self._graph[video_id]

    @cached_property
    def relation_labels(self) -> tuple[tuple[str, str], ...]:
        """Return (relation type, value) pairs over all videos. The release is read once.

        Raises DataError without a release.
        """
        with _lookup_of("vocabulary"):
            return self._graph.relation_labels()

    def frame_size(self, video_id: str) -> tuple[int, int]:
        """Return (width, height) in pixels from the annotations, or from the video if the annotations lack them.

        Raises DataError if neither can be read.
        """
        if video_id not in self._sizes:
            self._sizes[video_id] = self._frame_size(video_id)
        return self._sizes[video_id]

    def _frame_size(self, video_id: str) -> tuple[int, int]:
        if self.path is None:
            raise DataError("the file holds no frame size. Fix: say with --root where its videos lie")
        if confine(self.path, video_id, ANNOTATION_FILE).is_file():
            video = self._graph[video_id].video
            return video.width, video.height
        path = confine(self.path, video_id, VIDEO_FILE)
        if not path.is_file():
            raise DataError(f"the file holds no frame size, and {path} is missing. Fix: fetch the video")
        with open_reader(path) as reader:
            return reader.size


@contextmanager
def _lookup_of(need: str) -> Iterator[None]:
    try:
        yield
    except DataError as error:
        problem = str(error).partition(" Fix:")[0].rstrip(".")
        raise DataError(
            f"the file holds no {need}, and the annotations cannot be read: {problem}. "
            "Fix: say with --root where the whole release lies"
        ) from error
