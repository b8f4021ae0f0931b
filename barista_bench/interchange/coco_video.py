"""COCO video (YouTube-VIS, Yang et al. 2019): one JSON file, one annotation a track with a mask or null a frame.

Beside the format's own fields a video has its `name` and the frames that are `annotated` (where that is missing: those
with any mask), a track its `object_id`; other readers pass over these.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated

import msgspec
import numpy as np
from pycocotools import mask as coco_mask

from barista_bench.errors import DataError
from barista_bench.files.reading import read_bounded
from barista_bench.files.writing import write_whole
from barista_bench.scene_graph.masks import MaskTracks, Rle, mask_boxes, parse_segmentations
from barista_bench.scene_graph.release import MALFORMED, MAX_FRAMES, PixelCount

FILE = "annotations.json"
_MAX_BYTES = 2**31
_REMEDY = "write it as YouTube-VIS does, masks of the frames' size"


class _UncompressedRle(msgspec.Struct):
    counts: list[Annotated[int, msgspec.Meta(ge=0, le=2**28)]]
    size: tuple[int, int]


class _Video(msgspec.Struct):
    id: int
    width: PixelCount
    height: PixelCount
    length: Annotated[int, msgspec.Meta(ge=1, le=MAX_FRAMES)]
    file_names: list[str] = []
    name: str | None = None
    annotated: list[int] | None = None

    @property
    def video_id(self) -> str:
        """The video's name, else the folder of its frames, else its number."""
        folder = str(PurePosixPath(self.file_names[0]).parent) if self.file_names else "."
        return self.name or (folder if folder != "." else str(self.id))


class _Category(msgspec.Struct):
    id: int
    name: str


class _Track(msgspec.Struct):
    id: int
    video_id: int
    category_id: int
    segmentations: list[msgspec.Raw]
    object_id: str | None = None


class _CocoVideo(msgspec.Struct):
    videos: list[_Video]
    categories: list[_Category]
    annotations: list[_Track]


def read(path: Path) -> Iterator[MaskTracks]:
    """The videos of a file. Raises DataError, naming the track and the frame."""
    file = path / FILE if path.is_dir() else path
    try:
        content = msgspec.json.decode(read_bounded(file, _MAX_BYTES, remedy=_REMEDY), type=_CocoVideo)
    except MALFORMED as error:
        raise DataError(f"{file}: {error}. Remedy: {_REMEDY}") from error
    names = {category.id: category.name for category in content.categories}
    for video in content.videos:
        categories: dict[str, str] = {}
        masks: dict[int, dict[str, Rle]] = {frame: {} for frame in video.annotated or []}
        for track in content.annotations:
            if track.video_id != video.id:
                continue
            key = f"{file}: annotation {track.id}"
            name = track.object_id or str(track.id)
            if track.category_id not in names or name in categories or len(track.segmentations) != video.length:
                what = f"needs a category of the file, an id of its own and {video.length} segmentations"
                raise DataError(f"{key}: {what}. Remedy: {_REMEDY}")
            categories[name] = names[track.category_id]
            for frame, rle in _masks(track, video, key):
                masks.setdefault(frame, {})[name] = rle
        yield MaskTracks(
            video.video_id, video.width, video.height, categories, dict(sorted(masks.items())), video.length
        )


def _masks(track: _Track, video: _Video, key: str) -> Iterator[tuple[int, Rle]]:
    present = [(frame, raw) for frame, raw in enumerate(track.segmentations) if bytes(raw) != b"null"]
    raws = [_compress_runs(raw, video) for _, raw in present]
    for (frame, _), rle in zip(present, parse_segmentations(raws, video.height, video.width), strict=True):
        if isinstance(rle, str):
            raise DataError(f"{key}: segmentations[{frame}]: {rle}. Remedy: {_REMEDY}")
        yield frame, rle


def _compress_runs(raw: msgspec.Raw, video: _Video) -> bytes:
    """YouTube-VIS writes runs as numbers; what fits is compressed, all else is left for the check to refuse."""
    try:
        rle = msgspec.json.decode(raw, type=_UncompressedRle)
    except MALFORMED:
        return bytes(raw)
    if rle.size != (video.height, video.width) or sum(rle.counts) != video.height * video.width:
        return bytes(raw)
    packed = coco_mask.frPyObjects({"size": list(rle.size), "counts": rle.counts}, *rle.size)
    return msgspec.json.encode({"size": list(rle.size), "counts": packed["counts"].decode("ascii")})


def write(tracks: Iterable[MaskTracks], folder: Path) -> list[str]:
    """One file of all videos."""
    videos: list[dict[str, object]] = []
    annotations: list[dict[str, object]] = []
    lines: list[str] = []
    categories: dict[str, int] = {}
    for number, video in enumerate(tracks, start=1):
        length = video.frame_count or max(video.masks, default=0) + 1
        size = {"width": video.width, "height": video.height}
        videos.append(
            {
                "id": number,
                "name": video.video_id,
                **size,
                "length": length,
                "file_names": [f"{video.video_id}/{frame:06d}.jpg" for frame in range(length)],
                "annotated": sorted(video.masks),
            }
        )
        for name in sorted(video.categories):
            category = categories.setdefault(video.categories[name], len(categories) + 1)
            rles = [video.masks.get(frame, {}).get(name) for frame in range(length)]
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "video_id": number,
                    "category_id": category,
                    "object_id": name,
                    "iscrowd": 0,
                    **size,
                    "segmentations": [msgspec.to_builtins(rle) for rle in rles],
                    **_shapes(rles, video.height, video.width),
                }
            )
        lines.append(f"{video.video_id}: {len(video.masks)} frames, {len(video.categories)} tracks")
    content = {
        "videos": videos,
        "categories": [{"id": number, "name": name} for name, number in categories.items()],
        "annotations": annotations,
    }
    write_whole(folder / FILE, json.dumps(content))
    return lines


def _shapes(rles: list[Rle | None], height: int, width: int) -> dict[str, list[object]]:
    """Box and area of each frame, null where there is no mask."""
    counts = [rle.counts for rle in rles if rle]
    boxes = iter(mask_boxes(counts, height, width).tolist())
    codes = [{"size": [height, width], "counts": text.encode("ascii")} for text in counts]
    areas = iter(np.asarray(coco_mask.area(codes)).tolist() if codes else [])
    return {
        "bboxes": [next(boxes) if rle else None for rle in rles],
        "areas": [next(areas) if rle else None for rle in rles],
    }
