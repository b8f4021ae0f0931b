"""The scene graph as tables for people who analyse or train: one Arrow table a video and config."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from barista_bench.scene_graph import Rle, Segment, VideoGraph

if TYPE_CHECKING:
    import pyarrow as pa
    from datasets import Features

Columns = dict[str, list[Any]]


def _frames(graph: VideoGraph) -> Columns:
    counts = np.bincount(graph.instances_table.frame, minlength=graph.frame_count)
    count = graph.frame_count
    return {
        "frame_index": list(range(count)),
        "instances": counts.tolist(),
        "preparation": [graph.preparation] * count,
        "device": [graph.video.recording_device_type] * count,
        "width": [graph.video.width] * count,
        "height": [graph.video.height] * count,
        "fps": [graph.video.fps] * count,
    }


def _instances(graph: VideoGraph) -> Columns:
    masks = {graph.read.row("annotations", i): a.segmentation for i, a in enumerate(graph.read.release.annotations)}
    instances = graph.instances()
    return {
        "frame_index": [i.frame for i in instances],
        "object_id": [i.object.id for i in instances],
        "category": [i.object.category for i in instances],
        "bbox": [list(i.bbox) for i in instances],
        "segmentation": [_rle_or_none(masks[i.row]) for i in instances],
        "row": [i.row for i in instances],
    }


def _rle_or_none(raw: object) -> dict[str, Any] | None:
    """The encoding as it stands in the file; polygons and damaged masks are null here and listed by `validate`."""
    if not isinstance(raw, msgspec.Raw):
        return None
    try:
        rle = msgspec.json.decode(raw, type=Rle)
    except msgspec.MsgspecError:
        return None
    return {"size": list(rle.size), "counts": rle.counts}


def _attributes(graph: VideoGraph) -> Columns:
    rows = graph.attributes()
    return {
        "object_id": [a.object.id for a in rows],
        "category": [a.object.category for a in rows],
        "attribute_type": [a.type for a in rows],
        "value": [a.value for a in rows],
        "start": [a.start for a in rows],
        "end": [a.end for a in rows],
        "row": [a.row for a in rows],
    }


def _relations(graph: VideoGraph) -> Columns:
    rows = graph.relations()
    return {
        "source_id": [r.source.id for r in rows],
        "source_category": [r.source.category for r in rows],
        "target_id": [r.target.id for r in rows],
        "target_category": [r.target.category for r in rows],
        "relation_type": [r.type for r in rows],
        "value": [r.value for r in rows],
        "start": [r.start for r in rows],
        "end": [r.end for r in rows],
        "row": [r.row for r in rows],
    }


def _segments(segments: list[Segment]) -> Columns:
    return {
        "class_id": [s.class_id for s in segments],
        "name": [s.name for s in segments],
        "start": [s.start for s in segments],
        "end": [s.end for s in segments],
        "row": [s.row for s in segments],
    }


GRAPH_TABLES: dict[str, Callable[[VideoGraph], Columns]] = {
    "graph_frames": _frames,
    "graph_instances": _instances,
    "graph_attributes": _attributes,
    "graph_relations": _relations,
    "graph_activities": lambda graph: _segments(graph.activities()),
    "graph_steps": lambda graph: _segments(graph.steps()),
}
"""Config name to the columns of one video. Ranges are [start, end) in frames; boxes [x, y, width, height] in pixels."""

_COLUMN_TYPES = {
    "frame_index": "int32", "instances": "int32", "width": "int32", "height": "int32", "fps": "float64",
    "row": "int64", "start": "int64", "end": "int64",
}  # fmt: skip

_COLUMN_NAMES = {
    "graph_frames": ("frame_index", "instances", "preparation", "device", "width", "height", "fps"),
    "graph_instances": ("frame_index", "object_id", "category", "bbox", "segmentation", "row"),
    "graph_attributes": ("object_id", "category", "attribute_type", "value", "start", "end", "row"),
    "graph_relations": (
        "source_id", "source_category", "target_id", "target_category", "relation_type", "value", "start", "end", "row",
    ),
    "graph_activities": ("class_id", "name", "start", "end", "row"),
    "graph_steps": ("class_id", "name", "start", "end", "row"),
}  # fmt: skip


def table_features(config: str) -> Features:
    from datasets import Features, List, Value

    special = {
        "bbox": List(Value("float64"), length=4),
        "segmentation": {"size": List(Value("int32"), length=2), "counts": Value("string")},
    }
    columns = ("video_id", *_COLUMN_NAMES[config])
    return Features({name: special.get(name) or Value(_COLUMN_TYPES.get(name, "string")) for name in columns})


def video_table(config: str, graph: VideoGraph) -> pa.Table:
    """One video's rows of a graph config, with its `video_id` as first column."""
    import pyarrow as pa

    columns = GRAPH_TABLES[config](graph)
    length = len(next(iter(columns.values())))
    return pa.table({"video_id": [graph.video_id] * length, **columns}, schema=table_features(config).arrow_schema)
