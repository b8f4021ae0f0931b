"""Masks of named objects over the frames of one video: what annotation and other tools' formats have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from barista_bench.scene_graph.masks import Rle


@dataclass(frozen=True)
class MaskTracks:
    """The masks of one video.

    Args:
        video_id: names the video.
        width, height: of its frames, in pixels.
        categories: category by object id.
        masks: by frame (from 0), then by object id. A frame that stands here is annotated completely: what it does not
            name is absent there.
        frame_count: frames of the video, where it is known.
    """

    video_id: str
    width: int
    height: int
    categories: Mapping[str, str]
    masks: Mapping[int, Mapping[str, Rle]] = field(default_factory=dict)
    frame_count: int | None = None
