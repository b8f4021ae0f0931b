"""Reads COCO files of videos (YouTube-VIS) as rows."""

from __future__ import annotations

from collections.abc import Callable

from barista_bench.errors import DataError
from barista_bench.interchange.mask_formats import read_mask_tracks
from barista_bench.other_graphs.coco import PATTERNS
from barista_bench.other_graphs.rows import OBJECTS, Moment, ObjectRow, Rows
from barista_bench.scene_graph.shapes import Rle


def add_rows(rows: Rows, export: str | None) -> None:
    """Add the tracks of all video files."""
    for path in rows.files(*([export] if export else PATTERNS)):
        rows.read(path)
        place = rows.place(path)
        for video_id, tracks in enumerate(read_mask_tracks(path, "coco_video")):
            if isinstance(tracks, DataError):
                rows.lose(f"{place}: videos[{video_id}]", str(tracks), OBJECTS)
                continue
            found = rows.find(tracks.video_id)
            if found is None:
                rows.lose(f"{place}: {tracks.video_id}", "not exactly one video below the source is named so")
                continue
            video = rows.video(found)
            for reason, count in tracks.left_out.items():
                for _ in range(count):
                    video.lose(f"{place}: {tracks.video_id}", reason, moment=0)
            video.incomplete |= tracks.incomplete
            video.annotated += list[Moment](tracks.masks)
            rows.vocabulary |= set(tracks.categories.values())
            size = tracks.width, tracks.height
            for frame, masks in tracks.masks.items():
                for key, mask in masks.items():
                    where = f"{place}: {tracks.video_id} track {key} frame {frame}"
                    rows.add_object(video, ObjectRow(where, key, tracks.categories[key], frame, _same(mask), size))


def _same(mask: Rle) -> Callable[[int, int], Rle | str]:
    return lambda height, width: mask
