"""Read the scene graphs of a built dataset from its graph tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from barista_bench.errors import DataError
from barista_bench.scene_graph.coverage import frame_ranges

Box = tuple[float, float, float, float]
"""Corners (x0, y0, x1, y1) in pixels."""
Span = tuple[int, int]
"""A span of frames [start, end)."""
_COLUMNS = {
    "graph_frames": ("video_id", "frame_index", "width", "height", "fps"),
    "graph_instances": ("video_id", "frame_index", "object_id", "category", "bbox"),
    "graph_attributes": ("video_id", "object_id", "category", "attribute_type", "value", "start", "end"),
    "graph_relations": (
        *("video_id", "source_id", "source_category", "target_id", "target_category"),
        *("relation_type", "value", "start", "end"),
    ),
    "graph_activities": ("video_id", "name", "start", "end"),
}  # fmt: skip


class BoxRow(NamedTuple):
    object_id: str
    category: str
    box: Box


class StateRow(NamedTuple):
    object_id: str
    category: str
    kind: str
    value: str
    span: Span


class RelationRow(NamedTuple):
    source_id: str
    source: str
    target_id: str
    target: str
    kind: str
    value: str
    span: Span


class ActivityRow(NamedTuple):
    name: str
    span: Span


_LISTS = {
    "graph_attributes": ("states", StateRow),
    "graph_relations": ("relations", RelationRow),
    "graph_activities": ("activities", ActivityRow),
}
"""Maps each of these tables to a list of `GraphRows` and the type of its rows."""


@dataclass
class GraphRows:
    """The graph of one video. Frames are numbered from 0, and `size` is (width, height) in pixels."""

    frame_count: int
    size: tuple[int, int]
    fps: float
    boxes: dict[int, list[BoxRow]] = field(default_factory=dict)
    states: list[StateRow] = field(default_factory=list)
    relations: list[RelationRow] = field(default_factory=list)
    activities: list[ActivityRow] = field(default_factory=list)

    @cached_property
    def frames_of(self) -> dict[str, list[int]]:
        """Map each object id to the sorted frames with a box of the object."""
        frames: dict[str, list[int]] = defaultdict(list)
        for frame in sorted(self.boxes):
            for object_id in {row.object_id for row in self.boxes[frame]}:
                frames[object_id].append(frame)
        return frames

    def seen(self, span: Span, *object_ids: str) -> list[Span]:
        """Return the parts of a span in which all these objects have a box."""
        frames = [f for f in self.frames_of.get(object_ids[0], []) if span[0] <= f < span[1]]
        for other in object_ids[1:]:
            known = set(self.frames_of.get(other, []))
            frames = [frame for frame in frames if frame in known]
        return frame_ranges(np.array(frames, dtype=np.int64))


def read_graph_rows(data: str | Path, video_ids: Collection[str]) -> dict[str, GraphRows]:
    """Map video ids to graphs.

    Raises:
        DataError: a graph table is missing or unreadable, or lacks a video. The message names the table or the video.
    """
    tables = {config: _read(Path(data), config, video_ids) for config in _COLUMNS}
    frame_counts = Counter(row["video_id"] for row in tables["graph_frames"])
    videos = {
        row["video_id"]: GraphRows(frame_counts[row["video_id"]], (row["width"], row["height"]), row["fps"] or 0.0)
        for row in tables["graph_frames"]
        if row["frame_index"] == 0
    }
    if missing := sorted(set(video_ids) - set(videos)):
        raise DataError(f"{data}: graph_frames: has no video {missing[0]!r}. Fix: build the dataset again")
    for row in tables["graph_instances"]:
        x, y, width, height = row["bbox"]
        box = BoxRow(row["object_id"], row["category"], (x, y, x + width, y + height))
        videos[row["video_id"]].boxes.setdefault(row["frame_index"], []).append(box)
    for config, (name, row_type) in _LISTS.items():
        for row in tables[config]:
            video_id, *values, start, end = (row[column] for column in _COLUMNS[config])
            getattr(videos[video_id], name).append(row_type(*values, (start, end)))
    return videos


def _read(data: Path, config: str, video_ids: Collection[str]) -> list[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = sorted((data / config).glob("*.parquet"))
    if not files:
        raise DataError(
            f"{data}: has no table {config}, which aids need. Fix: name a folder that `build` wrote without --configs "
            "(with --configs it writes no graph tables)"
        )
    try:
        chosen = [("video_id", "in", sorted(video_ids))]
        return [
            row
            for file in files
            for row in pq.read_table(file, columns=list(_COLUMNS[config]), filters=chosen).to_pylist()
        ]
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{data}/{config}: cannot be read ({error}). Fix: build the dataset again") from error
