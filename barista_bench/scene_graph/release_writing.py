"""Write a graph to disk in the release format."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import msgspec

from barista_bench.errors import DataError
from barista_bench.files.paths import confine, valid_video_id
from barista_bench.files.writing import atomic_write
from barista_bench.scene_graph.non_finite import restore_non_finite
from barista_bench.scene_graph.release import ANNOTATION_FILE, VIDEO_FILE, encode
from barista_bench.scene_graph.video_graph import VideoGraph

_RECORD_KEY = re.compile(r"(\w+)\[(\d+)\]")


def release_bytes(graph: VideoGraph) -> bytes:
    """Return the graph's valid records, in the file's order, as the bytes of a `coco_annotation.json`."""
    data = encode(graph.records.release)
    if graph.records.extras:
        document = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        data = msgspec.json.encode(_with_extras(document, graph))
    return restore_non_finite(data)


def write_release(graph: VideoGraph, root: str | Path, *, video: str | Path | None = None) -> Path:
    """Write `<root>/<video_id>/coco_annotation.json`. If `video` is given, copy it beside this file.

    Raises:
        DataError: the folder already exists, or the video id would leave the root.
    """
    if not valid_video_id(graph.video_id):
        raise DataError(f"{graph.video_id!r} is not a usable video id. Fix: rename the video")
    folder = confine(Path(root), graph.video_id)
    if folder.exists():
        raise DataError(f"{folder}: exists already. Fix: write to another root, or remove it first")
    folder.mkdir(parents=True)
    with atomic_write(folder / ANNOTATION_FILE) as partial:
        partial.write_bytes(release_bytes(graph))
        if video is not None:
            shutil.copyfile(video, folder / VIDEO_FILE)
    return folder


def _with_extras(document: dict[str, msgspec.Raw], graph: VideoGraph) -> dict[str, object]:
    by_section: dict[str, dict[int, dict[str, msgspec.Raw]]] = {}
    for key, fields in graph.records.extras.items():
        match = _RECORD_KEY.fullmatch(key)
        if match:
            by_section.setdefault(match[1], {})[int(match[2])] = fields
    merged: dict[str, object] = {**document, **graph.records.extras.get("", {})}
    for section, fields_of_row in by_section.items():
        records = msgspec.json.decode(document[section], type=list[dict[str, msgspec.Raw]])
        merged[section] = [
            {**record, **fields_of_row.get(row, {})}
            for row, record in zip(graph.records.rows_of(section), records, strict=True)
        ]
    return merged
