"""Compute the statistics of a release: all numbers of the paper's sections 3.3 and A.5, in one pass over the videos.

Each frame index of a video counts once, whether it is annotated or not. An instance is one boxed object on one frame.
An attribute counts on each frame on which it holds and its object has a box. A relation counts on each frame on which
it holds and both of its objects have a box. A record that states a frame twice counts once on that frame. Durations are
in seconds: `end - start` divided by the frame rate. As in the release, segments without a class are left out; they are
counted separately.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from barista_bench.scene_graph.scene_graph import SceneGraph
from barista_bench.scene_graph.video_graph import Ranges, Segment, VideoGraph

Counts = dict[str, int]
FrameCounts = NDArray[np.int64]
"""Counts on each frame of a video."""
Histogram = NDArray[np.int64]
"""`histogram[n]` is the number of frames that have n of something."""

PUBLISHED: dict[str, float] = {
    "videos": 185,
    "frames": 469_201,
    "instances": 3_610_000,
    "categories": 46,
    "attribute_rows": 4_330_000,
    "relation_rows": 2_480_000,
    "predicates": 12,
    "activity_segments": 2_424,
    "activity_classes": 108,
    "process_steps": 1_305,
    "step_classes": 13,
    "objects a frame, mean": 7.63,
    "objects a frame, median": 7,
    "objects a frame, most": 24,
    "relations a frame, mean": 5.3,
}
"""The numbers in section 3.3 of arXiv 2605.12074, which gives millions to two decimals."""


@dataclass(frozen=True, slots=True)
class PerFrame:
    """Counts per frame. `histogram[n]` is the number of frames with n counted things."""

    mean: float
    median: float
    most: int
    mean_where_any: float
    histogram: list[int]


@dataclass(frozen=True, slots=True)
class Durations:
    """All durations in seconds, sorted. The statistics of an empty list are 0."""

    mean: float
    median: float
    shortest: float
    longest: float
    values: list[float]


@dataclass(frozen=True, slots=True)
class CategoryCounts:
    """The number of instances, of persistent objects, and of videos with at least one object, for one category."""

    instances: int
    objects: int
    videos: int


@dataclass(frozen=True, slots=True)
class ReleaseStatistics:
    """Counts by layer, then distributions. `..._rows` are frame-rows. Maps are sorted from most to least frequent."""

    videos: int
    unusable_videos: int
    frames: int
    seconds: float
    objects: int
    instances: int
    categories: int
    attribute_ranges: int
    attribute_rows: int
    relation_ranges: int
    relation_rows: int
    predicates: int
    activity_segments: int
    activity_classes: int
    process_steps: int
    step_classes: int
    segments_without_class: int
    objects_per_frame: PerFrame
    relations_per_frame: PerFrame
    category_counts: dict[str, CategoryCounts]
    attribute_counts: dict[str, Counts]
    """Frame-rows by attribute type and value."""
    predicate_counts: dict[str, Counts]
    """Frame-rows by relation type and value."""
    activity_counts: Counts
    """Segments by class name. If classes share a name, the name includes the id."""
    step_counts: Counts
    video_durations: Durations
    activity_durations: Durations
    step_durations: Durations
    preparation_counts: Counts
    """Videos by preparation type."""
    device_counts: Counts
    resolution_counts: Counts


@dataclass(slots=True)
class _SegmentTotals:
    """Sums over activities, or over process steps."""

    counts: Counter[str] = field(default_factory=Counter)
    names: dict[str, str] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    without_class: int = 0

    def add(self, segments: Iterable[Segment], fps: float | None) -> None:
        for segment in segments:
            if segment.class_id is None:
                self.without_class += 1
                continue
            self.names.setdefault(segment.class_id, segment.name)
            self.counts[segment.class_id] += 1
            if fps:
                self.seconds.append((segment.end - segment.start) / fps)

    def by_name(self) -> Counts:
        times = Counter(self.names.values())
        labels = {k: name if times[name] == 1 else f"{name} ({k})" for k, name in self.names.items()}
        return _rank({labels[class_id]: count for class_id, count in self.counts.items()})


@dataclass(slots=True)
class _RowTotals:
    """Sums over attributes, or over relations: ranges, and frame-rows by (type, value)."""

    ranges: int = 0
    rows: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, video: VideoGraph, table: Ranges) -> FrameCounts:
        """Count a video's records, and return how many hold on each frame of the video."""
        self.ranges += len(table.start)
        on_frame = np.zeros(video.frame_count, dtype=np.int64)
        ranges_of: dict[int, list[int]] = defaultdict(list)
        for position, row in enumerate(table.row.tolist()):
            ranges_of[row].append(position)
        for positions in ranges_of.values():
            parts = [video.frames_with_boxes(table, position) for position in positions]
            frames = parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))
            if len(frames):
                on_frame[frames] += 1
                self.rows[table.labels[table.label[positions[0]]]] += len(frames)
        return on_frame

    def by_type(self) -> dict[str, Counts]:
        """Return types sorted by total count, and the values of each type sorted by count."""
        groups: dict[str, Counts] = defaultdict(dict)
        for (kind, value), count in self.rows.items():
            groups[kind][value] = count
        sums = _rank({kind: sum(values.values()) for kind, values in groups.items()})
        return {kind: _rank(groups[kind]) for kind in sums}


@dataclass(slots=True)
class _CategoryTotals:
    """Sums by category over the objects that have at least one box."""

    instances: Counter[str] = field(default_factory=Counter)
    objects: Counter[str] = field(default_factory=Counter)
    videos: Counter[str] = field(default_factory=Counter)

    def add(self, video: VideoGraph) -> FrameCounts:
        """Count a video's objects, and return how many have a box on each frame of the video."""
        table = video.instances_table
        boxes_of = np.bincount(table.object, minlength=len(video.objects)).tolist()
        boxed = [(item.category, boxes) for item, boxes in zip(video.objects, boxes_of, strict=True) if boxes]
        for category, boxes in boxed:
            self.instances[category] += boxes
            self.objects[category] += 1
        self.videos.update({category for category, _ in boxed})
        return np.bincount(table.frame, minlength=video.frame_count)

    def by_name(self) -> dict[str, CategoryCounts]:
        return {
            name: CategoryCounts(count, self.objects[name], self.videos[name])
            for name, count in _rank(self.instances).items()
        }


def statistics(graph: SceneGraph, *, progress: bool = False) -> ReleaseStatistics:
    """Compute the statistics of all usable videos under a root."""
    preparations, devices, resolutions = Counter[str](), Counter[str](), Counter[str]()
    categories, attributes, relations = _CategoryTotals(), _RowTotals(), _RowTotals()
    activities, steps = _SegmentTotals(), _SegmentTotals()
    objects_on_frame, relations_on_frame = np.zeros((2, 0), dtype=np.int64)
    usable, seconds = 0, list[float]()
    for video in graph.videos(progress=progress):
        facts = video.video
        usable += 1
        preparations[video.preparation] += 1
        devices[facts.recording_device_type or "unknown"] += 1
        resolutions[f"{facts.width}x{facts.height}"] += 1
        if facts.fps:
            seconds.append(video.frame_count / facts.fps)
        objects_on_frame = _with_frames(objects_on_frame, categories.add(video))
        attributes.add(video, video.attributes_table)
        relations_on_frame = _with_frames(relations_on_frame, relations.add(video, video.relations_table))
        activities.add(video.activities(), facts.fps)
        steps.add(video.steps(), facts.fps)
    return ReleaseStatistics(
        videos=usable,
        unusable_videos=len(graph) - usable,
        frames=int(objects_on_frame.sum()),
        seconds=sum(seconds),
        objects=categories.objects.total(),
        instances=categories.instances.total(),
        categories=len(categories.instances),
        attribute_ranges=attributes.ranges,
        attribute_rows=attributes.rows.total(),
        relation_ranges=relations.ranges,
        relation_rows=relations.rows.total(),
        predicates=len({value for _, value in relations.rows}),
        activity_segments=activities.counts.total(),
        activity_classes=len(activities.counts),
        process_steps=steps.counts.total(),
        step_classes=len(steps.counts),
        segments_without_class=activities.without_class + steps.without_class,
        objects_per_frame=_per_frame(objects_on_frame),
        relations_per_frame=_per_frame(relations_on_frame),
        category_counts=categories.by_name(),
        attribute_counts=attributes.by_type(),
        predicate_counts=relations.by_type(),
        activity_counts=activities.by_name(),
        step_counts=steps.by_name(),
        video_durations=_durations(seconds),
        activity_durations=_durations(activities.seconds),
        step_durations=_durations(steps.seconds),
        preparation_counts=_rank(preparations),
        device_counts=_rank(devices),
        resolution_counts=_rank(resolutions),
    )


def _with_frames(histogram: Histogram, counts: FrameCounts) -> Histogram:
    added = np.bincount(counts, minlength=len(histogram))
    added[: len(histogram)] += histogram
    return added


def _per_frame(histogram: Histogram) -> PerFrame:
    frames = int(histogram.sum())
    if not frames:
        return PerFrame(0.0, 0.0, 0, 0.0, [])
    total, with_any = int(np.arange(len(histogram)) @ histogram), frames - int(histogram[0])
    middle = np.searchsorted(np.cumsum(histogram), [(frames - 1) // 2, frames // 2], side="right")
    return PerFrame(
        mean=total / frames,
        median=float(middle.mean()),
        most=len(histogram) - 1,
        mean_where_any=total / with_any if with_any else 0.0,
        histogram=histogram.tolist(),
    )


def _durations(seconds: Sequence[float]) -> Durations:
    values = sorted(round(value, 4) for value in seconds)
    if not values:
        return Durations(0.0, 0.0, 0.0, 0.0, [])
    return Durations(float(np.mean(values)), float(np.median(values)), values[0], values[-1], values)


def _rank(counts: Mapping[str, int]) -> Counts:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
