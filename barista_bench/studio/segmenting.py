"""Computes masks and outlines while a person draws, with the project's segmenter. Nothing is saved."""

from __future__ import annotations

import functools
import threading
from typing import Annotated

import cv2
import msgspec
import numpy as np
from numpy.typing import NDArray

from barista_bench.annotate.project import Project, VideoFiles, open_project
from barista_bench.annotate.records import Frame, Name, PromptPoint
from barista_bench.annotate.stages import segmenter_of
from barista_bench.errors import DataError
from barista_bench.media.video import read_frames
from barista_bench.media.video.opening import Stamp, stamp_of
from barista_bench.scene_graph.masks import encode_mask
from barista_bench.studio.workspace import Json, Routes, sent_as

_LEAST_MARGIN = 24  # pixels around two corners in which the path between them may run
_LONGEST = 512  # pixels: if corners are farther apart, the path is straight, since finding a path would take seconds
Corner = tuple[float, float]
Points = Annotated[list[PromptPoint], msgspec.Meta(max_length=4000)]


class MaskQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A box (left, top, right, bottom), points, or a box with points, in pixels of the frame."""

    video: Name
    frame: Frame
    box: tuple[float, float, float, float] | None = None
    points: Points = []


class EdgeQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two corners of a polygon."""

    video: Name
    frame: Frame
    points: Annotated[list[PromptPoint], msgspec.Meta(min_length=2, max_length=2)]


class SegmentRoutes(Routes):
    """Requests for masks and outlines. Recently used pictures are cached, so that only the segmenter takes time."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._one_at_a_time = threading.Lock()
        self._picture = functools.lru_cache(maxsize=4)(_picture)
        self.writes = {"/api/project/segment": self._segment, "/api/project/edge": self._edge}

    def _segment(self, body: bytes) -> Json:
        question = sent_as(MaskQuestion, body)
        video = open_project(self._project.folder).video(question.video)
        name = video.project.settings.segmenter
        if name is None:
            raise DataError(
                'the project has no segmenter for prompts. Fix: write "segmenter": "grabcut" in project.json'
            )
        corners = [PromptPoint(x=x, y=y) for x, y in (question.box[:2], question.box[2:])] if question.box else []
        _check_points(video, question.frame, [*corners, *question.points])
        if question.box is not None and not (question.box[0] < question.box[2] and question.box[1] < question.box[3]):
            raise DataError(f"{question.video}: the box is empty. Fix: give left, top, right, bottom")
        with self._one_at_a_time:
            picture = self._picture(stamp_of(video.path), question.frame)
            ((mask, score),) = segmenter_of(name).segment(picture, [(question.box, question.points)])
        return {"mask": encode_mask(mask), "score": round(score, 4)}

    def _edge(self, body: bytes) -> Json:
        question = sent_as(EdgeQuestion, body)
        video = open_project(self._project.folder).video(question.video)
        _check_points(video, question.frame, question.points)
        with self._one_at_a_time:
            picture = self._picture(stamp_of(video.path), question.frame)
            start, end = ((point.x, point.y) for point in question.points)
            return {"points": edge_between(picture, start, end)}


def _picture(stamp: Stamp, frame: int) -> NDArray[np.uint8]:
    (picture,) = read_frames(stamp.path, [frame])
    return picture


def _check_points(video: VideoFiles, frame: int, points: list[PromptPoint]) -> None:
    source = video.source
    is_within = all(0 <= point.x <= source.width and 0 <= point.y <= source.height for point in points)
    if frame >= source.frames or not is_within:
        size = f"{source.frames} frames of {source.width}x{source.height} px"
        what = f"frame {frame}: what is asked lies outside of {size}"
        raise DataError(f"{video.video_id}: {what}. Fix: load the page again")


def edge_between(picture: NDArray[np.uint8], start: Corner, end: Corner) -> list[tuple[int, int]]:
    """Return the pixels (x, y) from one corner of a polygon to another, along the strongest visible edges.

    Both corners are included. The method is intelligent scissors (Mortensen, Barrett, SIGGRAPH 1995). `picture` is RGB
    of shape (height, width, 3).
    """
    height, width = picture.shape[:2]
    (x0, y0), (x1, y1) = ((min(max(int(x), 0), width - 1), min(max(int(y), 0), height - 1)) for x, y in (start, end))
    if max(abs(x0 - x1), abs(y0 - y1)) > _LONGEST or (x0, y0) == (x1, y1):
        return [(x0, y0), (x1, y1)]
    left, top = max(min(x0, x1) - _LEAST_MARGIN, 0), max(min(y0, y1) - _LEAST_MARGIN, 0)
    crop = picture[top : max(y0, y1) + _LEAST_MARGIN, left : max(x0, x1) + _LEAST_MARGIN]
    scissors = cv2.segmentation.IntelligentScissorsMB()
    scissors.setEdgeFeatureCannyParameters(32, 100)
    scissors.setGradientMagnitudeMaxLimit(200)
    scissors.applyImage(np.ascontiguousarray(crop))
    scissors.buildMap((x0 - left, y0 - top))
    way = scissors.getContour((x1 - left, y1 - top)).reshape(-1, 2)
    return [(int(x) + left, int(y) + top) for x, y in way]
