"""project.json: the settings of a project, which people may edit, and its videos."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from barista_bench.annotate.records import ProjectRecord

Size: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Seconds: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]


class VideoSource(ProjectRecord, frozen=True, kw_only=True):
    """`file` is relative to the project's folder of videos; sizes in pixels, as displayed; a single frame has 0 fps."""

    file: str
    sha256: str
    width: Size
    height: Size
    frames: Size
    fps: Annotated[float, msgspec.Meta(ge=0)]


class SegmentSettings(ProjectRecord, frozen=True, kw_only=True):
    """How stretches of contact come from confidences; durations in seconds.

    Args:
        threshold: contact is a filtered confidence of at least this.
        median_s: width of the median filter, made odd: `2 * floor(frames / 2) + 1`; 0 for none.
        shortest_s: shorter stretches are no interaction.
        gap_s: stretches no farther apart than this are one.
    """

    threshold: float = 0.5
    median_s: Seconds = 0.3
    shortest_s: Seconds = 0.3
    gap_s: Seconds = 0.5


class ProjectSettings(ProjectRecord, frozen=True, kw_only=True):
    """The settings that people may change in project.json; `run` then makes anew what depends on it.

    Args:
        propagator: `flow`, `flow:colour`, `copy_nearest`, `linear_box`, `sam:CHECKPOINT`, or another package's.
        segments: from contact signal to segments.
        detector: an open-vocabulary detector of transformers, or `sam3:CHECKPOINT`, which bootstraps the contact signal
            and looks for words; null for none.
        segmenter: what makes masks of prompts, in the studio and as proposals, and on keyframes in the boxes of the
            detector: `grabcut` (needs no weights), `sam:CHECKPOINT` (SAM 2 or 3), or another package's; null for none.
        link_threshold: agreement of masks (0..1) from which objects of adjacent segments are one.
    """

    propagator: str = "flow"
    segments: SegmentSettings = SegmentSettings()
    detector: str | None = None
    segmenter: str | None = "grabcut"
    link_threshold: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.5


class ProjectFile(ProjectRecord, frozen=True, kw_only=True):
    """project.json. `lost`: files that could not be read as a video, by name, with the reason."""

    version: Literal[1] = 1
    made_with: str
    folder: str
    settings: ProjectSettings
    videos: dict[str, VideoSource]
    lost: dict[str, str]
