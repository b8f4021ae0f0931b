"""A video's graph in the release format."""

from __future__ import annotations

import numpy as np
import pycocotools.mask as coco_mask
from numpy.typing import NDArray

from barista_bench.mini.kitchen import FPS, Video
from barista_bench.mini.props import HANDS
from barista_bench.mini.seeds import stable_id
from barista_bench.mini.stage import HUMAN_ACTIONS, BeatRange
from barista_bench.scene_graph.release import (
    ReleaseAnnotation,
    ReleaseAttribute,
    ReleaseCategory,
    ReleaseFile,
    ReleaseRange,
    ReleaseRelation,
    ReleaseSegment,
    ReleaseVideo,
    rle_segmentation,
)


def object_id(video: Video, key: str) -> str:
    return stable_id(f"object:{video.plan.seed}:{video.plan.video_id}:{key}")


def category_of(video: Video, key: str) -> str:
    return HANDS[key] if key in HANDS else video.line.props[key].category


class FrameAnnotator:
    """Boxes and masks of one video's frames, from their object maps."""

    def __init__(self, video: Video) -> None:
        self._ids = [object_id(video, key) for key in video.keys]
        self._size = (video.plan.height, video.plan.width)
        # One buffer for all frames: asking for this much memory anew costs more than filling it.
        self._masks = np.empty((*self._size, len(self._ids)), np.uint8, order="F")

    def __call__(self, frame: int, owners: NDArray[np.uint8]) -> list[ReleaseAnnotation]:
        """One annotation for every object that has a pixel in the object map, in the order of its numbers."""
        numbers = (np.flatnonzero(np.bincount(owners.ravel(order="K"))[1:]) + 1).tolist()
        if not numbers:
            return []
        masks = self._masks[:, :, : len(numbers)]
        for layer, number in enumerate(numbers):
            np.equal(owners, number, out=masks[:, :, layer].view(np.bool_))
        codes = coco_mask.encode(masks)
        return [
            ReleaseAnnotation(
                frame, self._ids[number - 1], tuple(box), rle_segmentation(self._size, code["counts"].decode())
            )
            for number, box, code in zip(numbers, coco_mask.toBbox(codes).tolist(), codes, strict=True)
        ]


def outline(video: Video) -> ReleaseFile:
    """The graph without boxes and masks: no frame has to be drawn for it."""
    ids = {key: object_id(video, key) for key in video.keys}
    categories = {key: category_of(video, key) for key in video.keys}
    plan = video.plan
    return ReleaseFile(
        video_metadata=[
            ReleaseVideo(
                plan.width, plan.height, video.frame_count, float(FPS), video.frame_count * 1000 / FPS, *plan.device
            )
        ],
        categories=[ReleaseCategory(_category_id(name), name) for name in sorted(set(categories.values()))],
        object_id_to_category_id={ids[key]: _category_id(name) for key, name in categories.items()},
        annotations=[],
        attributes=_attributes(video, ids),
        relations=_relations(video, ids),
        activities=_segments(video, "activity", video.line.activities),
        process_steps=_segments(video, "step", video.line.steps),
    )


def _category_id(name: str) -> str:
    return stable_id(f"category:{name}")


def _attributes(video: Video, ids: dict[str, str]) -> list[ReleaseAttribute]:
    always = [ReleaseRange(0, video.frame_count)]
    attributes = []
    for key in video.keys:
        attributes.append(ReleaseAttribute(ids[key], "color", video.colours[key], always))
        kind = video.line.props[key].type if key in video.line.props else ""
        if kind:
            attributes.append(ReleaseAttribute(ids[key], "type", kind, always))
    for (key, value), beats in video.line.states.items():
        if ranges := _ranges(video, beats):
            attributes.append(ReleaseAttribute(ids[key], "state", value, ranges))
    return attributes


def _relations(video: Video, ids: dict[str, str]) -> list[ReleaseRelation]:
    hands = {name: key for key, name in HANDS.items()}
    relations = []
    for (source, value, target), beats in video.line.relations.items():
        if ranges := _ranges(video, beats):
            kind = "human_actions" if value in HUMAN_ACTIONS else "position"
            relations.append(ReleaseRelation(ids[hands.get(source, source)], ids[target], kind, value, ranges))
    return relations


def _ranges(video: Video, beats: list[BeatRange]) -> list[ReleaseRange]:
    """Frames of the beats: sorted, without empty ranges, those that touch or overlap joined."""
    joined: list[BeatRange] = []
    for start, end in sorted(video.frames_of(b) for b in beats):
        if start >= end:
            continue
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return [ReleaseRange(start, end) for start, end in joined]


def _segments(video: Video, kind: str, parts: list[tuple[BeatRange, str]]) -> list[ReleaseSegment]:
    segments = []
    for beats, name in parts:
        start, end = video.frames_of(beats)
        if start < end:
            segments.append(ReleaseSegment(ReleaseRange(start, end), stable_id(f"{kind}:{name}"), name))
    return segments
