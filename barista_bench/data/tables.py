"""Make tables of a scene graph for analysis or training: one Arrow table per video and config."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from barista_bench.scene_graph import Rle, SceneGraph, VideoGraph

if TYPE_CHECKING:
    import pyarrow as pa
    from datasets import Features

Columns = dict[str, list[Any]]
_ATTRIBUTES = {
    "frame_index": "frame",
    "object_id": "object.id",
    "category": "object.category",
    "attribute_type": "type",
    "source_id": "source.id",
    "source_category": "source.category",
    "target_id": "target.id",
    "target_category": "target.category",
    "relation_type": "type",
}
"""Columns that have another name in the graph's records."""
_TYPES = {
    "frame_index": "int32", "instances": "int32", "width": "int32", "height": "int32", "fps": "float64",
    "row": "int64", "start": "int64", "end": "int64",
}  # fmt: skip
"""Types of all columns that are not text."""
_SEGMENT = ("class_id", "name", "start", "end", "row")
GRAPH_TABLES: dict[str, tuple[str, ...]] = {
    "graph_frames": ("frame_index", "instances", "preparation", "device", "width", "height", "fps"),
    "graph_instances": ("frame_index", "object_id", "category", "bbox", "segmentation", "row"),
    "graph_attributes": ("object_id", "category", "attribute_type", "value", "start", "end", "row"),
    "graph_relations": (
        "source_id", "source_category", "target_id", "target_category", "relation_type", "value", "start", "end", "row",
    ),
    "graph_activities": _SEGMENT,
    "graph_steps": _SEGMENT,
}  # fmt: skip
"""The columns of each config after `video_id`. Ranges are [start, end) in frames, and boxes are [x, y, width, height]
in pixels. `row` is the record's index in the annotation file."""


def table_features(config: str) -> Features:
    from datasets import Features, List, Value

    special = {
        "bbox": List(Value("float64"), length=4),
        "segmentation": {"size": List(Value("int32"), length=2), "counts": Value("string")},
    }
    columns = ("video_id", *GRAPH_TABLES[config])
    return Features({name: special.get(name) or Value(_TYPES.get(name, "string")) for name in columns})


def video_table(config: str, scene_graph: SceneGraph, video_id: str) -> pa.Table:
    """Return one video's rows of a graph config. `video_id` is the first column."""
    import pyarrow as pa

    graph = scene_graph[video_id]
    columns = _frames(graph) if config == "graph_frames" else _records(config, graph)
    length = len(next(iter(columns.values())))
    return pa.table({"video_id": [video_id] * length, **columns}, schema=table_features(config).arrow_schema)


def _frames(graph: VideoGraph) -> Columns:
    count = graph.frame_count
    return {
        "frame_index": list(range(count)),
        "instances": np.bincount(graph.instances_table.frame, minlength=count).tolist(),
        "preparation": [graph.preparation] * count,
        "device": [graph.video.recording_device_type] * count,
        "width": [graph.video.width] * count,
        "height": [graph.video.height] * count,
        "fps": [graph.video.fps] * count,
    }


def _records(config: str, graph: VideoGraph) -> Columns:
    records: Sequence[Any] = getattr(graph, config.removeprefix("graph_"))()
    return {
        name: _segmentations(graph, (record.row for record in records))
        if name == "segmentation"
        else list(map(attrgetter(_ATTRIBUTES.get(name, name)), records))
        for name in GRAPH_TABLES[config]
    }


def _segmentations(graph: VideoGraph, rows: Iterable[int]) -> list[dict[str, Any] | None]:
    """Return mask encodings as in the file. Polygons and damaged masks become null; `validate` lists them."""
    annotations = zip(graph.records.rows_of("annotations"), graph.records.release.annotations, strict=True)
    masks = {row: annotation.segmentation for row, annotation in annotations}
    encodings: list[dict[str, Any] | None] = []
    for row in rows:
        raw = masks[row]
        try:
            rle = msgspec.json.decode(raw, type=Rle) if isinstance(raw, msgspec.Raw) else None
        except msgspec.MsgspecError:
            rle = None
        encodings.append({"size": list(rle.size), "counts": rle.counts} if rle else None)
    return encodings
