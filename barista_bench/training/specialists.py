"""Boxes and masks of the training videos for models that are no language models: COCO instances, and DAVIS."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from PIL import Image
from pycocotools import mask as coco_mask

from barista_bench.data.dataset import recorded_root
from barista_bench.data.rows import file_sha256
from barista_bench.data.shared_frames import JPEG_QUALITY
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.reading import confined
from barista_bench.files.writing import write_whole
from barista_bench.interchange import davis
from barista_bench.media.video import open_reader
from barista_bench.scene_graph import Instance, SceneGraph, VideoGraph
from barista_bench.scene_graph.masks import MaskTracks, Rle

INSTANCES = "annotations.json"
_Masks = dict[int, dict[str, tuple[Instance, Rle | None]]]
"""By frame and object id; of an object that is annotated twice on a frame, the last one counts, as everywhere."""


def write_specialist_set(
    data: Path, videos: Mapping[str, str], folder: Path, form: str, root: str | Path | None
) -> tuple[int, tuple[str, ...]]:
    """Write the annotated frames of videos (id to SHA-256) as JPEG, and every box and mask on them.

    Args:
        form: `coco` or `davis`, which has no boxes and one object a pixel.
        root: the release; None for the one that a linked set records.

    Returns:
        How many objects on frames there are, and what was lost, a line each.

    Raises:
        ConfigError: the release is not known, or has no graph of one of the videos.
        DataError: a video is another one than the dataset was made from, or cannot be read.
    """
    release = root or recorded_root(data)
    if release is None:
        raise ConfigError(f"{data}: does not say where its release lies. Remedy: say so with --root")
    graph = SceneGraph(release)
    for video_id, sha256 in videos.items():
        if video_id not in graph:
            raise ConfigError(
                f"{release}: has no video {video_id!r}. Remedy: name the release that {data} was built of"
            )
        if file_sha256(graph.video_path(video_id)) != sha256:
            raise DataError(f"{release}: {video_id} is another video than in {data}. Remedy: fetch the one built from")
    of_videos, notes = {}, []
    for video in graph.videos(sorted(videos)):
        of_videos[video.video_id], lost = _masks(video)
        notes += [f"{video.video_id}: {lost} objects on frames have no readable mask"] if lost else []
    pictures = confined(folder, "images" if form == "coco" else "JPEGImages")
    digits = 6 if form == "coco" else 5
    for video_id, masks in of_videos.items():
        _write_frames(graph.video_path(video_id), sorted(masks), confined(pictures, video_id), digits)
    if form == "coco":
        write_whole(folder / INSTANCES, json.dumps(_instances(graph, of_videos)))
    else:
        (folder / "Annotations").mkdir()
        notes += davis.write((_tracks(graph[name], masks) for name, masks in of_videos.items()), folder / "Annotations")
    return sum(len(objects) for masks in of_videos.values() for objects in masks.values()), tuple(notes)


def _masks(video: VideoGraph) -> tuple[_Masks, int]:
    """Every object by frame, and how many have no readable mask."""
    instances = video.instances()
    masks: _Masks = {}
    for instance, rle in zip(instances, video.rles(instances), strict=True):
        kept = None if isinstance(rle, DataError) else rle
        masks.setdefault(instance.frame, {})[instance.object.id] = instance, kept
    return masks, sum(rle is None for objects in masks.values() for _, rle in objects.values())


def _write_frames(video: Path, frames: list[int], folder: Path, digits: int) -> None:
    folder.mkdir(parents=True)
    with open_reader(video) as reader:
        for frame, pixels in zip(frames, reader.read(frames), strict=True):
            Image.fromarray(pixels).save(folder / f"{frame:0{digits}d}.jpg", quality=JPEG_QUALITY)


def _tracks(video: VideoGraph, masks: _Masks) -> MaskTracks:
    at = {
        frame: {name: rle for name, (_, rle) in objects.items() if rle is not None}
        for frame, objects in sorted(masks.items())
    }
    seen = {name for objects in at.values() for name in objects}
    categories = {item.id: item.category for item in video.objects if item.id in seen}
    size = video.video
    return MaskTracks(video.video_id, size.width, size.height, categories, at, size.frame_count)


def _instances(graph: SceneGraph, of_videos: Mapping[str, _Masks]) -> dict[str, Any]:
    """COCO's `instances`, boxes `[x, y, width, height]` in pixels; one without a mask has an empty polygon list."""
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    categories: dict[str, int] = {}
    for video_id, masks in of_videos.items():
        size = graph[video_id].video
        for frame, objects in sorted(masks.items()):
            name = f"{video_id}/{frame:06d}.jpg"
            images.append({"id": len(images) + 1, "file_name": name, "width": size.width, "height": size.height})
            for instance, rle in objects.values():
                code = None if rle is None else msgspec.to_builtins(rle)
                area = instance.bbox[2] * instance.bbox[3] if code is None else int(coco_mask.area(_packed(code)))
                category = categories.setdefault(instance.object.category, len(categories) + 1)
                annotations.append(
                    {
                        "id": len(annotations) + 1,
                        "image_id": len(images),
                        "category_id": category,
                        "bbox": list(instance.bbox),
                        "area": area,
                        "iscrowd": 0,
                        "segmentation": code or [],
                        "object_id": instance.object.id,
                    }
                )
    named = [{"id": number, "name": name} for name, number in categories.items()]
    return {"images": images, "annotations": annotations, "categories": named}


def _packed(code: dict[str, Any]) -> dict[str, Any]:
    return {"size": code["size"], "counts": code["counts"].encode("ascii")}
