"""Exports a project as a release of scene graphs with statistics of the annotation, or as masks for other tools.

Only accepted annotations are written. Layers come from `accepted_layers.json`; terms that the vocabulary lacks are left
out. Videos are copied packet by packet, without sound and without metadata such as place, time and device.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from barista_bench.annotate.agreement import AnnotatorAgreement, agreement
from barista_bench.annotate.project import VideoFiles, open_project
from barista_bench.annotate.records import Layers, ProjectRecord, Range, TrackLine, write_record
from barista_bench.annotate.vocabulary import within_vocabulary
from barista_bench.cluster import map_in_processes
from barista_bench.errors import DataError
from barista_bench.files.owned_folders import replacing_folder
from barista_bench.files.writing import write_whole
from barista_bench.media.video.remuxing import remux
from barista_bench.scene_graph.masks import MaskTracks, Rle, mask_boxes
from barista_bench.scene_graph.release import (
    ANNOTATION_FILE,
    VIDEO_FILE,
    ReleaseAnnotation,
    ReleaseAttribute,
    ReleaseCategory,
    ReleaseFile,
    ReleaseRange,
    ReleaseRelation,
    ReleaseSegment,
    ReleaseVideo,
    class_id,
    encode,
    rle_segmentation,
)

STATISTICS_FILE = "annotation.json"
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "annotate.barista-bench")
_REMEDY = "run `barista-bench annotate run` until it is done"


class VideoStatistics(ProjectRecord, frozen=True, kw_only=True):
    """Counts of a video's annotations, and of the work for them.

    `people` is the number of masks that each person accepted. `models` has the names of the models that made the
    tracks. `left_out` has the terms of layers that the vocabulary lacks.
    """

    frames: int
    objects: int
    masks: int
    keyframes: int
    corrections: int
    edits: int
    seconds: float
    people: dict[str, int]
    attributes: int
    relations: int
    activities: int
    process_steps: int
    left_out: list[str]
    agreement: AnnotatorAgreement | None = None


class Statistics(ProjectRecord, frozen=True, kw_only=True):
    """The content of annotation.json: statistics by video, and the videos that were left out, with the reason."""

    videos: dict[str, VideoStatistics]
    left_out: dict[str, str]


def export_project(folder: Path, out: Path, *, second: Path | None = None, num_proc: int = 1) -> Statistics:
    """Write all finished videos of a project in the layout of a release, and write `annotation.json` beside them.

    Args:
        folder: the folder of the project.
        out: a new or empty folder.
        second: a project of the same videos by another annotator, to measure the agreement.
        num_proc: the number of processes.

    Raises:
        ConfigError: `out` is not empty.
        DataError: no video is finished.
    """
    project = open_project(folder)
    video_ids = sorted(project.file.videos)
    with replacing_folder(out) as target:
        outcomes = list(map_in_processes(partial(_export_video, folder, target, second), video_ids, num_proc))
        videos = {v: o for v, o in zip(video_ids, outcomes, strict=True) if isinstance(o, VideoStatistics)}
        left_out = {v: o for v, o in zip(video_ids, outcomes, strict=True) if isinstance(o, str)}
        if not videos:
            raise DataError(f"{folder}: nothing to export: {next(iter(left_out.values()))}")
        statistics = Statistics(videos=videos, left_out={**project.file.lost, **left_out})
        write_record(target / STATISTICS_FILE, statistics)
    return statistics


def _export_video(folder: Path, target: Path, second: Path | None, video_id: str) -> VideoStatistics | str:
    project = open_project(folder)
    try:
        video = project.video(video_id)
        layers, unknown = within_vocabulary(video.accepted_layers(), project.vocabulary())
        release, owners = _release(video, layers)
        second_video = open_project(second).video(video_id) if second else None
        (target / video_id).mkdir()
        with video.open():  # checks that the file is still the annotated file
            remux(video.path, target / video_id / VIDEO_FILE)
        write_whole(target / video_id / ANNOTATION_FILE, encode(release))
        return VideoStatistics(
            frames=video.source.frames,
            objects=len(release.object_id_to_category_id),
            masks=len(release.annotations),
            keyframes=len(video.accepted().keyframes),
            corrections=video.accepted().corrections,
            edits=len(video.edits()),
            seconds=video.accepted().seconds,
            people=dict(sorted(owners.items())),
            attributes=len(layers.attributes),
            relations=len(layers.relations),
            activities=len(layers.activities),
            process_steps=len(layers.process_steps),
            left_out=list(map(str, unknown)),
            agreement=agreement(video, second_video) if second_video else None,
        )
    except DataError as error:
        return str(error)


def _release(video: VideoFiles, layers: Layers) -> tuple[ReleaseFile, Counter[str]]:
    source, identities = video.source, video.identities()
    ids = {name: _release_id(source.sha256, name) for name in sorted(identities.categories)}
    annotations: list[ReleaseAnnotation] = []
    drawn: set[str] = set()
    count = 0
    for line in video.tracks():
        drawn |= line.masks.keys()
        annotations += _annotations(line, ids, source.height, source.width)
        count += 1
    if count != source.frames:
        raise DataError(f"{video.video_id}: tracks hold {count} of {source.frames} frames. Fix: {_REMEDY}")
    named = {name for entry in layers.claims for name in entry.objects}
    categories = {name: identities.categories[name] for name in sorted(drawn | named) if name in identities.categories}
    release = ReleaseFile(
        video_metadata=[ReleaseVideo(source.width, source.height, source.frames, source.fps or None)],
        categories=[ReleaseCategory(class_id("category", name), name) for name in sorted(set(categories.values()))],
        object_id_to_category_id={ids[name]: class_id("category", category) for name, category in categories.items()},
        annotations=annotations,
        attributes=[
            ReleaseAttribute(ids[entry.object], entry.type, entry.value, _ranges(entry.ranges))
            for entry in layers.attributes
        ],
        relations=[
            ReleaseRelation(ids[entry.source], ids[entry.target], entry.type, entry.value, _ranges(entry.ranges))
            for entry in layers.relations
        ],
        activities=[
            ReleaseSegment(ReleaseRange(*entry.range), class_id("activity", entry.name), entry.name)
            for entry in layers.activities
        ],
        process_steps=[
            ReleaseSegment(ReleaseRange(*entry.range), class_id("step", entry.name), entry.name)
            for entry in layers.process_steps
        ],
    )
    people = Counter(mask.by for keyframe in video.accepted().keyframes for mask in keyframe.masks.values())
    return release, people


def _release_id(video_sha256: str, name: str) -> str:
    """Return the id of an object in the release. An id that is a UUID, as in an imported release, stays unchanged."""
    try:
        return str(uuid.UUID(name))
    except ValueError:
        return str(uuid.uuid5(_NAMESPACE, f"{video_sha256}/{name}"))


def _ranges(ranges: list[Range]) -> list[ReleaseRange]:
    return [ReleaseRange(*span) for span in sorted(ranges)]


def _annotations(line: TrackLine, ids: dict[str, str], height: int, width: int) -> Iterator[ReleaseAnnotation]:
    names = sorted(line.masks)
    boxes = mask_boxes([line.masks[name].counts for name in names], height, width).tolist()
    for name, box in zip(names, boxes, strict=True):
        segmentation = rle_segmentation((height, width), line.masks[name].counts)
        yield ReleaseAnnotation(line.frame, ids[name], tuple(box), segmentation)


def as_mask_tracks(video: VideoFiles) -> MaskTracks:
    """Return the tracks of a video in the form for other tools. Raises DataError if the video has no tracks yet."""
    source, identities = video.source, video.identities()
    size = (source.height, source.width)
    masks = {line.frame: {name: Rle(mask.counts, size) for name, mask in line.masks.items()} for line in video.tracks()}
    names = sorted({name for frame_masks in masks.values() for name in frame_masks})
    categories = {name: identities.categories[name] for name in names}
    return MaskTracks(video.video_id, source.width, source.height, categories, masks, source.frames)
