"""How well the objects of examples can be seen, by the graph tables of the examples' dataset.

Examples of a benchmark that was generated from a graph have these values in their evidence (`TracedEvidence`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pycocotools import mask as coco

from barista_bench.core.example import Example, Visibility, evidence_objects, graph_span
from barista_bench.data.dataset import ExampleSet
from barista_bench.errors import DataError
from barista_bench.scene_graph.masks import run_problems

_COLUMNS = ["video_id", "frame_index", "object_id", "bbox", "segmentation"]
_SIZES = ["video_id", "width", "height", "fps"]


class _Seen(NamedTuple):
    """Areas of an object on a frame, in pixels. Without a readable mask, the box's area stands for the mask's."""

    box: float
    mask: float


_SeenObjects: TypeAlias = Mapping[tuple[str, str], Mapping[int, _Seen]]
"""By video and object, then by frame."""


class _Size(NamedTuple):
    pixels: int
    fps: float


def graph_visibility(examples: ExampleSet) -> dict[str, Visibility]:
    """Return the visibility of the objects of each example, by id; empty for a dataset without graph tables.

    `seconds` is None for an example that shows a single frame.

    Raises:
        DataError: a graph table cannot be read.
    """
    if examples.place is None or not (examples.place / "graph_instances").is_dir():
        return {}
    object_ids = sorted({item for example in examples.examples for item in evidence_objects(example)})
    seen = _read_seen(examples.place, object_ids)
    video_ids = sorted({example.video_id for example in examples.examples})
    filters = [("video_id", "in", video_ids), ("frame_index", "==", 0)]
    sizes = {
        row["video_id"]: _Size(row["width"] * row["height"], row["fps"] or 0.0)
        for row in _rows(examples.place, "graph_frames", _SIZES, filters)
    }
    return {
        example.example_id: _visibility(example, seen, sizes[example.video_id])
        for example in examples.examples
        if example.video_id in sizes
    }


def _visibility(example: Example, seen: _SeenObjects, size: _Size) -> Visibility:
    keys = [(example.video_id, item) for item in evidence_objects(example)]
    rows = [seen[key] for key in keys if key in seen]
    moments = [frame.frame_index for frame in example.frames]
    _, first, last = graph_span(example)
    boxes = [by_frame[frame].box for by_frame in rows for frame in moments if frame in by_frame]
    medians = [median(each.mask for each in by_frame.values()) for by_frame in rows]
    hidden = [
        max(0.0, 1 - by_frame[frame].mask / usual)
        for by_frame, usual in zip(rows, medians, strict=True)
        for frame in moments
        if frame in by_frame and usual
    ]
    counts = [sum(first <= frame <= last for frame in by_frame) for by_frame in rows]
    return Visibility(
        round(min(boxes) / size.pixels, 6) if boxes else None,
        round(min(counts) / size.fps, 3) if counts and size.fps and first < last else None,
        round(max(hidden), 3) if hidden else None,
    )


def _read_seen(place: Path, object_ids: Sequence[str]) -> _SeenObjects:
    seen: dict[tuple[str, str], dict[int, _Seen]] = defaultdict(dict)
    for row in _rows(place, "graph_instances", _COLUMNS, [("object_id", "in", object_ids)]):
        *_, width, height = row["bbox"]
        mask = row["segmentation"]
        is_readable = mask is not None and run_problems([mask["counts"]], mask["size"][0] * mask["size"][1]) == [None]
        area = float(coco.area(mask)) if is_readable else width * height
        seen[row["video_id"], row["object_id"]][row["frame_index"]] = _Seen(width * height, area)
    return seen


def _rows(place: Path, config: str, columns: list[str], filters: list[tuple[str, str, object]]) -> list[dict[str, Any]]:
    try:
        files = sorted((place / config).glob("*.parquet"))
        return [row for file in files for row in pq.read_table(file, columns=columns, filters=filters).to_pylist()]
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{place}/{config}: cannot be read ({error}). Fix: build the dataset again") from error
