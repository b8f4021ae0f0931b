"""What a release holds: every figure of the paper's sections 3.3 and A.5, from one pass over the videos.

Conventions: frames count once for every index of a video, annotated or not; an instance is one boxed object on one
frame; an attribute counts on each frame on which it holds and its object has a box, a relation on each frame on which
both its ends have one; a record that states a frame twice counts there once. Durations are in seconds, `end - start`
over the frame rate. Segments without a class are left out, as the release does, and counted apart.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from barista_bench.errors import ConfigError
from barista_bench.files.owned_folders import STATISTICS, replacing_folder
from barista_bench.scene_graph.scene_graph import SceneGraph
from barista_bench.scene_graph.video_graph import Ranges, Segment, VideoGraph

Counts = dict[str, int]

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
"""Section 3.3 of arXiv 2605.12074; millions are given there to two decimals."""


@dataclass(frozen=True, slots=True)
class PerFrame:
    """How many there are on a frame. `histogram[n]` is the number of frames with n of them."""

    mean: float
    median: float
    most: int
    mean_where_any: float
    histogram: list[int]


@dataclass(frozen=True, slots=True)
class Durations:
    """Seconds; all values, sorted. The figures of an empty list are 0."""

    mean: float
    median: float
    shortest: float
    longest: float
    values: list[float]


@dataclass(frozen=True, slots=True)
class CategoryCounts:
    """Of one category: instances, persistent objects, and videos with any."""

    instances: int
    objects: int
    videos: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts by layer, then distributions. `..._rows` are frame-rows; maps run from the most frequent to the least."""

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
    """Attribute type to value to frame-rows."""
    predicate_counts: dict[str, Counts]
    """Relation type to value to frame-rows."""
    activity_counts: Counts
    """Class name to segments; classes that share a name show their id too."""
    step_counts: Counts
    video_durations: Durations
    activity_durations: Durations
    step_durations: Durations
    preparation_counts: Counts
    """Preparation type to videos."""
    device_counts: Counts
    resolution_counts: Counts


@dataclass(slots=True)
class _Segments:
    """One layer of segments, summed up."""

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
        named = {k: name if times[name] == 1 else f"{name} ({k})" for k, name in self.names.items()}
        return _ranked({named[class_id]: count for class_id, count in self.counts.items()})


@dataclass(slots=True)
class _Totals:
    """Everything that is summed over the videos."""

    videos: int = 0
    frames: int = 0
    objects: int = 0
    ranges: Counter[str] = field(default_factory=Counter)
    objects_per_frame: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    relations_per_frame: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    category_instances: Counter[str] = field(default_factory=Counter)
    category_objects: Counter[str] = field(default_factory=Counter)
    category_videos: Counter[str] = field(default_factory=Counter)
    attributes: Counter[tuple[str, str]] = field(default_factory=Counter)
    relations: Counter[tuple[str, str]] = field(default_factory=Counter)
    activities: _Segments = field(default_factory=_Segments)
    steps: _Segments = field(default_factory=_Segments)
    seconds: list[float] = field(default_factory=list)
    preparations: Counter[str] = field(default_factory=Counter)
    devices: Counter[str] = field(default_factory=Counter)
    resolutions: Counter[str] = field(default_factory=Counter)


def statistics(graph: SceneGraph, *, progress: bool = False) -> Statistics:
    """Sum up all usable videos under a root."""
    totals = _Totals()
    for video in graph.videos(progress=progress):
        _add_video(totals, video)
        _add_instances(totals, video)
        _add_attributes(totals, video)
        _add_relations(totals, video)
    categories = {
        name: CategoryCounts(
            totals.category_instances[name], totals.category_objects[name], totals.category_videos[name]
        )
        for name in _ranked(totals.category_instances)
    }
    return Statistics(
        videos=totals.videos,
        unusable_videos=len(graph) - totals.videos,
        frames=totals.frames,
        seconds=sum(totals.seconds),
        objects=totals.objects,
        instances=sum(totals.category_instances.values()),
        categories=len(categories),
        attribute_ranges=totals.ranges["attributes"],
        attribute_rows=sum(totals.attributes.values()),
        relation_ranges=totals.ranges["relations"],
        relation_rows=sum(totals.relations.values()),
        predicates=len({value for _, value in totals.relations}),
        activity_segments=sum(totals.activities.counts.values()),
        activity_classes=len(totals.activities.counts),
        process_steps=sum(totals.steps.counts.values()),
        step_classes=len(totals.steps.counts),
        segments_without_class=totals.activities.without_class + totals.steps.without_class,
        objects_per_frame=_per_frame(totals.objects_per_frame),
        relations_per_frame=_per_frame(totals.relations_per_frame),
        category_counts=categories,
        attribute_counts=_by_type(totals.attributes),
        predicate_counts=_by_type(totals.relations),
        activity_counts=totals.activities.by_name(),
        step_counts=totals.steps.by_name(),
        video_durations=_durations(totals.seconds),
        activity_durations=_durations(totals.activities.seconds),
        step_durations=_durations(totals.steps.seconds),
        preparation_counts=_ranked(totals.preparations),
        device_counts=_ranked(totals.devices),
        resolution_counts=_ranked(totals.resolutions),
    )


def _add_video(totals: _Totals, video: VideoGraph) -> None:
    totals.videos += 1
    totals.frames += video.frame_count
    totals.preparations[video.preparation] += 1
    totals.devices[video.video.recording_device_type or "unknown"] += 1
    totals.resolutions[f"{video.video.width}x{video.video.height}"] += 1
    if video.video.fps:
        totals.seconds.append(video.frame_count / video.video.fps)
    totals.activities.add(video.activities(), video.video.fps)
    totals.steps.add(video.steps(), video.video.fps)


def _add_instances(totals: _Totals, video: VideoGraph) -> None:
    table = video.instances_table
    on_frame = np.bincount(table.frame, minlength=video.frame_count)
    totals.objects_per_frame = _sum(totals.objects_per_frame, np.bincount(on_frame))
    of_object = np.bincount(table.object, minlength=len(video.objects)).tolist()
    seen = [(item.category, count) for item, count in zip(video.objects, of_object, strict=True) if count]
    totals.objects += len(seen)
    for category, count in seen:
        totals.category_instances[category] += count
        totals.category_objects[category] += 1
    totals.category_videos.update({category for category, _ in seen})


def _add_attributes(totals: _Totals, video: VideoGraph) -> None:
    table = video.attributes_table
    totals.ranges["attributes"] += len(table.start)
    for positions in _records(table):
        frames = video.frames_of(int(table.source[positions[0]]))
        cuts = [np.searchsorted(frames, [table.start[i], table.end[i]]) for i in positions]
        rows = (
            int(cuts[0][1] - cuts[0][0]) if len(cuts) == 1 else len({k for low, high in cuts for k in range(low, high)})
        )
        if rows:
            totals.attributes[table.labels[table.label[positions[0]]]] += rows


def _add_relations(totals: _Totals, video: VideoGraph) -> None:
    table = video.relations_table
    totals.ranges["relations"] += len(table.start)
    on_frame = np.zeros(video.frame_count, dtype=np.int64)
    for positions in _records(table):
        parts = [video.relation_frames(position) for position in positions]
        frames = parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))
        on_frame[frames] += 1
        if len(frames):
            totals.relations[table.labels[table.label[positions[0]]]] += len(frames)
    totals.relations_per_frame = _sum(totals.relations_per_frame, np.bincount(on_frame))


def _records(table: Ranges) -> list[list[int]]:
    """The places of the ranges of each record."""
    of_row: dict[int, list[int]] = defaultdict(list)
    for position, row in enumerate(table.row.tolist()):
        of_row[row].append(position)
    return list(of_row.values())


def _sum(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """Histograms of any two lengths added."""
    total = np.zeros(max(len(one), len(other)), dtype=np.int64)
    total[: len(one)] += one
    total[: len(other)] += other
    return total


def _per_frame(histogram: NDArray[np.int64]) -> PerFrame:
    numbers = np.arange(len(histogram))
    frames, total = int(histogram.sum()), int((numbers * histogram).sum())
    if not frames:
        return PerFrame(0.0, 0.0, 0, 0.0, [])
    below = np.cumsum(histogram)
    middle = np.searchsorted(below, [(frames - 1) // 2 + 1, frames // 2 + 1])
    with_any = frames - int(histogram[0])
    return PerFrame(
        mean=total / frames,
        median=float(middle.mean()),
        most=int(np.flatnonzero(histogram)[-1]),
        mean_where_any=total / with_any if with_any else 0.0,
        histogram=histogram[: int(np.flatnonzero(histogram)[-1]) + 1].tolist(),
    )


def _durations(seconds: Sequence[float]) -> Durations:
    values = sorted(round(value, 4) for value in seconds)
    if not values:
        return Durations(0.0, 0.0, 0.0, 0.0, [])
    return Durations(float(np.mean(values)), float(np.median(values)), values[0], values[-1], values)


def _ranked(counts: Mapping[str, int]) -> Counts:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _by_type(counts: Mapping[tuple[str, str], int]) -> dict[str, Counts]:
    """Types by their sums, values by their counts."""
    groups: dict[str, Counts] = defaultdict(dict)
    for (kind, value), count in counts.items():
        groups[kind][value] = count
    sums = _ranked({kind: sum(values.values()) for kind, values in groups.items()})
    return {kind: _ranked(groups[kind]) for kind in sums}


def write_statistics(stats: Statistics, out: str | Path, *, plots: bool = True) -> list[Path]:
    """Write `statistics.json`, `statistics.md` and, with `plots`, PNG files into the folder `out`; returns the files.

    Raises:
        ConfigError: plots are wanted and matplotlib is absent (the other two files are written all the same), or `out`
            is no folder that may be replaced: see `replacing_folder`.
    """
    from barista_bench.scene_graph.statistics_plots import write_plots
    from barista_bench.scene_graph.statistics_tables import as_markdown

    absent = None
    with replacing_folder(Path(out), STATISTICS) as folder:
        paths = [folder / "statistics.json", folder / "statistics.md"]
        paths[0].write_text(json.dumps(asdict(stats), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        paths[1].write_text(as_markdown(stats), encoding="utf-8")
        try:
            paths += write_plots(stats, folder) if plots else []
        except ConfigError as error:
            absent = error
    if absent:
        raise absent
    return [Path(out) / path.name for path in paths]
