"""Read and write COCO video (YouTube-VIS, Yang et al. 2019). Each track is an annotation with a mask or null per frame.

All videos are in one JSON file. We add three fields that other readers ignore. A video has its `name` and its
`annotated` frames (default: all frames with a mask). A track has its `object_id`.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated

import msgspec
import numpy as np
from pycocotools import mask as coco_mask

from barista_bench.errors import DataError
from barista_bench.files.reading import as_utf8, read_bounded
from barista_bench.files.text_out import without_numbers
from barista_bench.files.writing import write_whole
from barista_bench.scene_graph.masks import MaskTracks, Rle, mask_boxes, parse_segmentations
from barista_bench.scene_graph.release import (
    MALFORMED,
    MAX_FRAMES,
    FrameNumber,
    PixelCount,
    replace_non_finite,
    tidy_name,
)

FILE = "annotations.json"
_MAX_BYTES = 2**31
_DIGITS = 9
"""Maximum digits of a frame number in a picture's name."""
_REMEDY = "write it as YouTube-VIS does, masks of the frames' size"


_Id = int | str


class _Video(msgspec.Struct):
    id: _Id
    width: PixelCount
    height: PixelCount
    length: Annotated[int, msgspec.Meta(ge=1, le=MAX_FRAMES)]
    file_names: list[str] = []
    name: str | None = None
    annotated: list[FrameNumber] | None = None

    @property
    def video_id(self) -> str:
        """Return the video's name, or the folder of its frames, or its number."""
        folder = str(PurePosixPath(self.file_names[0]).parent) if self.file_names else "."
        return self.name or (folder if folder != "." else str(self.id))

    @property
    def frames(self) -> Sequence[int]:
        """Return the frame of each segmentation.

        If the pictures cover only some frames, their names give the frames.
        """
        stems = [PurePosixPath(name).stem for name in self.file_names]
        numbers = [int(stem) for stem in stems if stem.isascii() and stem.isdecimal() and len(stem) < _DIGITS]
        are_sampled = len(numbers) == self.length and numbers[-1] - numbers[0] >= self.length
        return numbers if are_sampled and numbers == sorted(set(numbers)) else range(self.length)


class _Category(msgspec.Struct):
    id: _Id
    name: str


class _Track(msgspec.Struct):
    id: _Id
    video_id: _Id
    category_id: _Id
    segmentations: list[msgspec.Raw]
    object_id: str | None = None


class _VideoOfRecord(msgspec.Struct):
    video_id: _Id


class _CocoVideo(msgspec.Struct):
    videos: list[msgspec.Raw]
    categories: list[_Category]
    annotations: list[msgspec.Raw]


def read(path: Path) -> Iterator[MaskTracks | DataError]:
    """Yield the videos of a file. Unusable videos and tracks without a video are yielded as a DataError.

    Raises:
        DataError: the file does not have this format.
    """
    file = path / FILE if path.is_dir() else path
    try:
        data = replace_non_finite(as_utf8(read_bounded(file, _MAX_BYTES, remedy=_REMEDY), str(file)))
        content = msgspec.json.decode(data, type=_CocoVideo)
    except MALFORMED as error:
        raise DataError(f"{file}: {error}. Fix: {_REMEDY}") from error
    names = {category.id: tidy_name(category.name) for category in content.categories}
    raws: dict[_Id | None, list[msgspec.Raw]] = defaultdict(list)
    for raw in content.annotations:
        raws[_video_of(raw)].append(raw)
    for index, raw in enumerate(content.videos):
        try:
            video = msgspec.json.decode(raw, type=_Video)
        except MALFORMED as error:
            raws.pop(_id_of(raw), None)
            yield DataError(f"{file}: videos[{index}]: {error}. Fix: {_REMEDY}")
            continue
        yield _tracks(video, raws.pop(video.id, []), names)
    if count := sum(map(len, raws.values())):
        yield DataError(f"{file}: {count} annotations are of no video of the file. Fix: correct their video_id")


def _video_of(raw: msgspec.Raw) -> _Id | None:
    try:
        return msgspec.json.decode(raw, type=_VideoOfRecord).video_id
    except MALFORMED:
        return None


def _id_of(raw: msgspec.Raw) -> _Id | None:
    try:
        return msgspec.json.decode(raw, type=_Category).id
    except MALFORMED:
        return None


def _tracks(video: _Video, raws: Sequence[msgspec.Raw], names: Mapping[_Id, str]) -> MaskTracks:
    """Read one video. Unreadable tracks and masks are counted, and frames that may lack them are marked incomplete."""
    frames = video.frames
    categories: dict[str, str] = {}
    masks: dict[int, dict[str, Rle]] = {frame: {} for frame in video.annotated or []}
    left_out: Counter[str] = Counter()
    incomplete: set[int] = set()
    for raw in raws:
        try:
            track = msgspec.json.decode(raw, type=_Track)
        except MALFORMED as error:
            left_out[f"tracks: {str(error).partition(' - at ')[0]}"] += 1
            incomplete.update(frames)
            continue
        name, problem = track.object_id or str(track.id), _track_problem(track, video, names)
        if problem or name in categories:
            left_out[f"tracks: {problem or 'their id is there twice'}"] += 1
            incomplete.update(frames)
            continue
        categories[name] = names[track.category_id]
        present = [
            (frame, piece) for frame, piece in zip(frames, track.segmentations, strict=True) if bytes(piece) != b"null"
        ]
        parsed = parse_segmentations([piece for _, piece in present], video.height, video.width)
        for (frame, _), rle in zip(present, parsed, strict=True):
            if isinstance(rle, str):
                left_out[f"masks: {without_numbers(rle)}"] += 1
                incomplete.add(frame)
            masks.setdefault(frame, {}).update({} if isinstance(rle, str) else {name: rle})
    # If every frame has a segmentation, their number is the number of frames. Otherwise the number of frames is
    # unknown.
    count = video.length if isinstance(frames, range) else None
    masks = dict(sorted(masks.items()))
    return MaskTracks(
        video.video_id, video.width, video.height, categories, masks, count, frozenset(incomplete), dict(left_out)
    )


def _track_problem(track: _Track, video: _Video, names: Mapping[_Id, str]) -> str | None:
    if track.category_id not in names:
        return "their category is not in the file"
    if len(track.segmentations) != video.length:
        return "they have not one segmentation a frame"
    return None


def write(tracks: Iterable[MaskTracks], folder: Path) -> list[str]:
    """Write one file with all videos."""
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
    """Return the box and area of each frame's mask, or null for a frame without a mask."""
    counts = [rle.counts for rle in rles if rle]
    boxes = iter(mask_boxes(counts, height, width).tolist())
    codes = [{"size": [height, width], "counts": text.encode("ascii")} for text in counts]
    areas = iter(np.asarray(coco_mask.area(codes)).tolist() if codes else [])
    return {
        "bboxes": [next(boxes) if rle else None for rle in rles],
        "areas": [next(areas) if rle else None for rle in rles],
    }
