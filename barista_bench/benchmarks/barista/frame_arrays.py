"""One video as dense arrays, for tasks that look at many of its frames: who is seen where, and what holds when.

Asking `VideoGraph` frame by frame costs about 100 us a frame; here each frame is a column, and all frames are asked at
once. Frames count from 0; pixel boxes are [x0, y0, x1, y1].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from barista_bench.benchmarks.barista.common import frame_metadata
from barista_bench.core.deriving import Sampling
from barista_bench.core.prompt import GRID
from barista_bench.core.task import Fields
from barista_bench.scene_graph import VideoGraph

Bools = NDArray[np.bool_]
Frames = NDArray[np.int64]


class FrameArrays:
    """`position[object, frame]` is the position of that object's box in the instances table, or -1.

    Of an object that is annotated twice on a frame it is the last one, as released. `pixels`, `grid` and `row` say of
    the box at a position: its corners in pixels as annotated, its corners on the grid of 0..`scale`, and its row in the
    file.
    """

    def __init__(self, video: VideoGraph, scale: int = GRID) -> None:
        table = video.instances_table
        self.video = video
        self.position = np.full((len(video.objects), video.frame_count), -1, dtype=np.int32)
        self.position[table.object, table.frame] = np.arange(len(table.frame))
        self.seen: Bools = self.position >= 0
        corners = np.hstack([table.bbox[:, :2], table.bbox[:, :2] + table.bbox[:, 2:]])
        size = np.array([video.video.width, video.video.height] * 2)
        # The array form of boxes.to_grid: rint rounds halves to even, as Python's round does.
        self._grid = np.clip(np.rint(corners / size * scale), 0, scale).astype(np.int64)
        self._pixels = corners
        segments = (*video.activities(), *video.steps())
        boundaries = np.array(sorted({end for part in segments for end in (part.start, part.end)}), dtype=np.int64)
        self._run: list[int] = np.searchsorted(boundaries, np.arange(video.frame_count), side="right").tolist()
        self._metadata: dict[int, Fields] = {}

    def pixels(self, position: int) -> list[float]:
        return self._pixels[position].tolist()

    def grid(self, position: int) -> list[int]:
        return self._grid[position].tolist()

    def row(self, position: int) -> int:
        return int(self.video.instances_table.row[position])

    def positions_at(self, frame: int) -> range:
        """Where the boxes of a frame stand in the instances table, in the order of the file."""
        part = self.video.instances_table.slice(frame)
        return range(part.start, part.stop)

    def relations(self, positions: Sequence[int]) -> Bools:
        """(positions, frames) whether the relation range at each position holds with both its ends boxed."""
        table = self.video.relations_table
        active = self._during(table.start, table.end, positions)
        chosen = np.asarray(positions, dtype=np.intp)
        active &= self.seen[table.source[chosen]]
        active &= self.seen[table.target[chosen]]
        return active

    def attributes(self, positions: Sequence[int]) -> Bools:
        """(positions, frames) whether the attribute range at each position holds, its object seen or not."""
        table = self.video.attributes_table
        return self._during(table.start, table.end, positions)

    def frames(self, sampling: Sampling) -> Frames:
        """Frames in the sampled range, at the sampled step, and inside an activity where the sampling says so.

        Activities without a class do not count, and their ends are excluded.
        """
        chosen = sampling.frame_indices(self.video)
        frames = np.arange(chosen.start, chosen.stop, chosen.step)
        if not sampling.in_activities:
            return frames
        inside = np.zeros(self.video.frame_count, dtype=bool)
        for segment in self.video.activities():
            if segment.class_id is not None:
                inside[max(0, segment.start) : max(0, segment.end)] = True
        return frames[inside[frames]]

    def metadata(self, frame: int) -> Fields:
        """`frame_metadata`, computed once for all frames between two segment ends. Do not change it in place."""
        run = self._run[frame]
        if run not in self._metadata:
            self._metadata[run] = frame_metadata(self.video, frame)
        return self._metadata[run]

    def _during(self, start: NDArray[np.int64], end: NDArray[np.int64], positions: Sequence[int]) -> Bools:
        active = np.zeros((len(positions), self.video.frame_count), dtype=bool)
        for line, position in enumerate(positions):
            active[line, start[position] : end[position]] = True
        return active


def any_row(matrix: Bools) -> Bools:
    """(frames) whether any row of the matrix is true."""
    return np.asarray(matrix.any(axis=0))


def thinned(frames: Frames, fraction: float) -> Frames:
    """The even share of the frames that the release keeps: of a single one, that before the middle.

    >>> thinned(np.arange(10), 0.1).tolist(), thinned(np.arange(10), 0.3).tolist()
    ([4], [0, 4, 9])
    """
    count = max(1, round(len(frames) * fraction))
    if count >= len(frames):
        return frames
    return frames[[(len(frames) - 1) // 2] if count == 1 else even_places(len(frames), count)]


def even_places(length: int, count: int) -> list[int]:
    """The release's even positions: `i * last // (count - 1)`; a single one stands in the middle, the later of two.

    Not `frame_sampling.evenly_spaced`: where there are fewer places than asked for, some come more than once.

    >>> even_places(10, 4), even_places(10, 1)
    ([0, 3, 6, 9], [5])
    """
    if count == 1:
        return [length // 2]
    return [i * (length - 1) // (count - 1) for i in range(count)]
