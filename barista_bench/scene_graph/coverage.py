"""Find the completely annotated spans of a video. Outside these spans, a missing annotation is no evidence of
absence.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from barista_bench.scene_graph.release import Layer, ReleaseCoverage, ReleaseRange

LAYERS: tuple[Layer, ...] = get_args(Layer)
_Spans = list[tuple[int, int]]
"""Sorted spans [start, end) that do not touch each other."""


class Coverage:
    """The `coverage` of an annotation file.

    Without `coverage`, all annotations are complete. Spans [start, end) are cut to the video.
    """

    def __init__(self, record: ReleaseCoverage | None, frame_count: int) -> None:
        self.is_partial = record is not None
        self.frame_count = frame_count
        record = record or ReleaseCoverage([])
        self._frames = merged_spans(record.frames)
        self._layers = {name: merged_spans(ranges) for name, ranges in record.layers.items()}
        self._categories = {name.lower(): merged_spans(ranges) for name, ranges in record.categories.items()}
        self._hands = {object_id: merged_spans(ranges) for object_id, ranges in record.hands.items()}

    def covers_layer(self, layer: Layer, start: int = 0, end: int | None = None) -> bool:
        """Whether a section is complete in a span, by default the whole video."""
        return self._is_covered(self._layers.get(layer), start, end)

    def covers_category(self, name: str, start: int = 0, end: int | None = None) -> bool:
        """Whether every visible object of a category is annotated in a span. Case does not matter."""
        return self._is_covered(self._categories.get(name.lower()), start, end)

    def covers_hand(self, object_id: str | None, start: int, end: int) -> bool:
        """Whether everything that a hand touches in a span is recorded. For None, whether all relations are
        recorded.
        """
        return self.covers_layer("relations", start, end) or self._is_covered(
            self._hands.get(object_id or ""), start, end
        )

    def annotated_frames(self, start: int, end: int) -> NDArray[np.int64]:
        """Return the sorted frames of a span on which objects are annotated at all."""
        low, high = max(0, start), min(end, self.frame_count)
        spans = self._frames if self.is_partial else [(low, high)]
        return np.concatenate([np.arange(0), *(np.arange(max(a, low), min(b, high)) for a, b in spans)])

    def _is_covered(self, spans: _Spans | None, start: int, end: int | None) -> bool:
        if not self.is_partial:
            return True
        low, high = max(0, start), self.frame_count if end is None else min(end, self.frame_count)
        spans = spans or []
        index = bisect_right(spans, (low, 2**31)) - 1
        return index >= 0 and high <= spans[index][1]


def merged_spans(ranges: Iterable[ReleaseRange]) -> _Spans:
    """Return sorted spans [start, end) with the same frames, without empty, touching or overlapping spans."""
    joined: _Spans = []
    for start, end in sorted((span.image_id_start, span.image_id_end) for span in ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        elif start < end:
            joined.append((start, end))
    return joined


def frame_ranges(frames: NDArray[np.integer[Any]]) -> list[tuple[int, int]]:
    """Return half-open ranges of the frames, which must be sorted.

    >>> frame_ranges(np.array([3, 4, 5, 9]))
    [(3, 6), (9, 10)]
    """
    parts = np.split(frames, np.flatnonzero(np.diff(frames) > 1) + 1)
    return [(int(part[0]), int(part[-1]) + 1) for part in parts if len(part)]


def extend_ranges(ranges: list[tuple[int, int]], start: int, end: int, gap: float) -> None:
    """Add a range after all others.

    If at most `gap` frames lie between it and the last range, extend the last range.
    """
    if ranges and start - ranges[-1][1] <= gap:
        ranges[-1] = (ranges[-1][0], end)
    else:
        ranges.append((start, end))
