"""Write training sets for detectors and segmenters: the annotated frames, and every box and mask on them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from PIL import Image
from pycocotools import mask as coco_mask

from barista_bench.data.dataset import recorded_root
from barista_bench.data.stored_images import JPEG_QUALITY
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.paths import confine
from barista_bench.files.writing import write_whole
from barista_bench.interchange import davis
from barista_bench.media.video import open_reader
from barista_bench.media.video.frame_folder import video_sha256
from barista_bench.scene_graph import Instance, SceneGraph, VideoGraph
from barista_bench.scene_graph.masks import MaskTracks, Rle

INSTANCES = "annotations.json"
_Masks = dict[int, dict[str, tuple[Instance, Rle | None]]]
"""Masks by frame and object id. If an object is annotated twice on a frame, the last annotation counts."""


def write_specialist_set(
    data: Path, videos: Mapping[str, str], folder: Path, form: str, root: str | Path | None
) -> tuple[int, tuple[str, ...]]:
    """Write the annotated frames of videos (id to SHA-256) as JPEG, and every box and mask on them.

    Args:
        form: `coco`, or `davis`, which has no boxes and one object per pixel.
        root: folder of the release. None takes the release that a linked set records.

    Returns:
        The number of objects on frames, and one line per kind of loss.

    Raises:
        ConfigError: the release is not known, or has no graph of one of the videos.
        DataError: a video differs from the video in the dataset, or cannot be read.
    """
    release = root or recorded_root(data)
    if release is None:
        raise ConfigError(f"{data}: does not say where its release lies. Fix: say so with --root")
    graph = SceneGraph(release)
    for video_id, sha256 in videos.items():
        if video_id not in graph:
            raise ConfigError(f"{release}: has no video {video_id!r}. Fix: name the release that {data} was built of")
        if video_sha256(graph.video_path(video_id)) != sha256:
            raise DataError(f"{release}: {video_id} is another video than in {data}. Fix: fetch the dataset's video")
    video_masks, notes = {}, []
    for video in graph.videos(sorted(videos)):
        video_masks[video.video_id], lost = _masks(video)
        notes += [f"{video.video_id}: {lost} objects on frames have no readable mask"] if lost else []
    pictures = confine(folder, "images" if form == "coco" else "JPEGImages")
    digits = 6 if form == "coco" else 5
    for video_id, masks in video_masks.items():
        frames, video_folder = sorted(masks), confine(pictures, video_id)
        video_folder.mkdir(parents=True)
        with open_reader(graph.video_path(video_id)) as reader:
            for frame, pixels in zip(frames, reader.read(frames), strict=True):
                Image.fromarray(pixels).save(video_folder / f"{frame:0{digits}d}.jpg", quality=JPEG_QUALITY)
    if form == "coco":
        write_whole(folder / INSTANCES, json.dumps(_instances(graph, video_masks)))
    else:
        (folder / "Annotations").mkdir()
        notes += davis.write(
            (_tracks(graph[name], masks) for name, masks in video_masks.items()), folder / "Annotations"
        )
    return sum(len(objects) for masks in video_masks.values() for objects in masks.values()), tuple(notes)


def _masks(video: VideoGraph) -> tuple[_Masks, int]:
    """Return every object by frame, and the number of objects without a readable mask."""
    instances = video.instances()
    masks: _Masks = {}
    for instance, rle in zip(instances, video.rles(instances), strict=True):
        readable = None if isinstance(rle, DataError) else rle
        masks.setdefault(instance.frame, {})[instance.object.id] = instance, readable
    return masks, sum(rle is None for objects in masks.values() for _, rle in objects.values())


def _tracks(video: VideoGraph, masks: _Masks) -> MaskTracks:
    frame_masks = {
        frame: {name: rle for name, (_, rle) in objects.items() if rle is not None}
        for frame, objects in sorted(masks.items())
    }
    with_masks = {name for objects in frame_masks.values() for name in objects}
    categories = {item.id: item.category for item in video.objects if item.id in with_masks}
    size = video.video
    return MaskTracks(video.video_id, size.width, size.height, categories, frame_masks, size.frame_count)


def _instances(graph: SceneGraph, video_masks: Mapping[str, _Masks]) -> dict[str, Any]:
    """Return COCO's `instances`, with boxes `[x, y, width, height]` in pixels. Without a mask, `segmentation` is []."""
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    categories: dict[str, int] = {}
    for video_id, masks in video_masks.items():
        size = graph[video_id].video
        for frame, objects in sorted(masks.items()):
            name = f"{video_id}/{frame:06d}.jpg"
            images.append({"id": len(images) + 1, "file_name": name, "width": size.width, "height": size.height})
            for instance, rle in objects.values():
                code = None if rle is None else msgspec.to_builtins(rle)
                packed = code and {**code, "counts": code["counts"].encode("ascii")}
                area = int(coco_mask.area(packed)) if packed else instance.bbox[2] * instance.bbox[3]
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
    category_rows = [{"id": number, "name": name} for name, number in categories.items()]
    return {"images": images, "annotations": annotations, "categories": category_rows}
