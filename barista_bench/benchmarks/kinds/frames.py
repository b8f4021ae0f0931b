"""Support questions about single frames of a graph: sampling, keys for analysis, and the graph as arrays."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from barista_bench.core.boxes import GRID
from barista_bench.core.example import Fields, Int64, Metadata
from barista_bench.core.options import Count, Sampling
from barista_bench.scene_graph import VideoGraph
from barista_bench.scene_graph.video_graph import Ranges

Bools = NDArray[np.bool_]
Ints = NDArray[np.integer[Any]]
Frames = NDArray[np.int64]
_PART_CELLS = 2**22


@dataclass(frozen=True, slots=True)
class FrameSampling(Sampling):
    """The sampling of tasks about single frames.

    Args:
        frame_step: frames are candidates if their index is divisible by this number.
    """

    frame_step: Count = 1

    def frame_indices(self, video: VideoGraph) -> range:
        """Return the candidate frames of a video: frames in `frame_range` whose index is divisible by `frame_step`."""
        start, stop = self.frame_range or (0, video.frame_count)
        first = -(-start // self.frame_step) * self.frame_step
        return range(first, min(stop, video.frame_count), self.frame_step)


class FrameMetadata(Metadata):
    """The keys that analysis groups by. The builder, which sees all videos, fills in `split`."""

    preparation: str
    split: str
    activities: list[str]
    steps: list[str]
    device: str
    frame_count: Int64
    fps: float


def frame_metadata(graph: VideoGraph, frame: int) -> Fields:
    """Return the metadata of an example at one frame."""
    return FrameMetadata(
        preparation=graph.preparation,
        split="",
        activities=[segment.name for segment in graph.activities(frame)],
        steps=[segment.name for segment in graph.steps(frame)],
        device=graph.video.recording_device_type or "unknown",
        frame_count=graph.frame_count,
        fps=graph.video.fps or 0.0,
    ).write()


class FrameArrays:
    """The boxes of a graph, and the frames on which ranges hold, as arrays. Frames without a box take no memory.

    For each box, at its position in the instances table, `pixels` has the corners in pixels as annotated. `grid` has
    the corners on the grid of 0..`scale`, and `row` has the box's row in the file.
    """

    def __init__(self, video: VideoGraph, scale: int = GRID) -> None:
        table = video.instances_table
        self.video = video
        self._boxed_frames = np.unique(table.frame)
        # The last column stands for all frames without a box.
        self._is_boxed: Bools = np.zeros((len(video.objects), len(self._boxed_frames) + 1), dtype=bool)
        self._is_boxed[table.object, np.searchsorted(self._boxed_frames, table.frame)] = True
        corners = np.hstack([table.bbox[:, :2], table.bbox[:, :2] + table.bbox[:, 2:]])
        size = np.array([video.video.width, video.video.height] * 2)
        # The array form of boxes.to_grid: rint rounds halves to even, as Python's round does.
        self._grid = np.clip(np.rint(corners / size * scale), 0, scale).astype(np.int64)
        self._pixels = corners
        segments = (*video.activities(), *video.steps())
        self._boundaries = sorted({end for part in segments for end in (part.start, part.end)})
        self._metadata: dict[int, Fields] = {}

    def position(self, item: int, frame: int) -> int:
        """Return the position of an object's box on a frame, or -1.

        Of several boxes, the last counts, as in the release. `item` is the object's index.
        """
        places = self.positions_at(frame)
        found = np.flatnonzero(self.video.instances_table.object[places.start : places.stop] == item)
        return places[int(found[-1])] if len(found) else -1

    def pixels(self, position: int) -> list[float]:
        return self._pixels[position].tolist()

    def grid(self, position: int) -> list[int]:
        return self._grid[position].tolist()

    def row(self, position: int) -> int:
        return int(self.video.instances_table.row[position])

    def positions_at(self, frame: int) -> range:
        """Return the positions of a frame's boxes in the instances table, in the order of the file."""
        part = self.video.instances_table.slice(frame)
        return range(part.start, part.stop)

    def is_boxed(self, items: Ints, frames: Ints) -> Bools:
        """Return (items, frames): whether each object, given by its index, has a box on each frame."""
        columns = np.searchsorted(self._boxed_frames, frames)
        columns[np.append(self._boxed_frames, -1)[columns] != frames] = -1
        return self._is_boxed[np.ix_(items, columns)]

    def active_relations(self, positions: Sequence[int], frames: Ints) -> Bools:
        """Return (positions, frames): whether each relation range holds on each frame, with boxes for both of its
        objects.
        """
        table, rows = self.video.relations_table, np.asarray(positions, dtype=np.intp)
        active = _find_covered(table, rows, frames)
        active &= self.is_boxed(table.source[rows], frames)
        active &= self.is_boxed(table.target[rows], frames)
        return active

    def active_attributes(self, positions: Sequence[int], frames: Ints) -> Bools:
        """Return (positions, frames): whether each attribute range holds on each frame, with a box for its object."""
        table, rows = self.video.attributes_table, np.asarray(positions, dtype=np.intp)
        active = _find_covered(table, rows, frames)
        active &= self.is_boxed(table.source[rows], frames)
        return active

    def with_boxes(self, frames: Frames) -> Frames:
        """Return the given frames on which at least one object has a box."""
        return frames[np.isin(frames, self._boxed_frames)]

    def find_related(self, positions: Sequence[int], frames: Frames) -> Frames:
        """Return the given frames on which one of these relation ranges holds, with boxes for both of its objects."""
        parts = in_parts(self.with_boxes(frames), len(positions))
        return np.concatenate(
            [np.arange(0), *(part[self.active_relations(positions, part).any(axis=0)] for part in parts)]
        )

    def frames(self, sampling: FrameSampling, *, in_activities: bool = False) -> Frames:
        """Return the frames in the sampled range at the sampled step; with `in_activities`, only frames inside an
        activity.

        Activities without a class do not count. The end of an activity is excluded.
        """
        sampled = sampling.frame_indices(self.video)
        frames = np.arange(sampled.start, sampled.stop, sampled.step)
        if not in_activities:
            return frames
        inside = np.zeros(self.video.frame_count, dtype=bool)
        for segment in self.video.activities():
            if segment.class_id is not None:
                inside[max(0, segment.start) : max(0, segment.end)] = True
        return frames[inside[frames]]

    def metadata(self, frame: int) -> Fields:
        """Return `frame_metadata`, computed once for all frames between two segment ends. Do not change it in place."""
        run = bisect_right(self._boundaries, frame)
        if run not in self._metadata:
            self._metadata[run] = frame_metadata(self.video, frame)
        return self._metadata[run]


def in_parts(frames: Frames, rows: int) -> Iterator[Frames]:
    """Yield the frames in parts, such that a table of `rows` rows for one part takes a few megabytes."""
    length = max(1, _PART_CELLS // max(1, rows))
    return (frames[start : start + length] for start in range(0, len(frames), length))


def _find_covered(table: Ranges, rows: NDArray[np.intp], frames: Ints) -> Bools:
    return (table.start[rows, None] <= frames) & (frames < table.end[rows, None])
