"""Hold the scene graph of one video as tables of arrays, and answer queries on these tables.

Frames count from 0. Boxes are `[x, y, width, height]` in pixels of the displayed frame. A span is one frame index, a
pair `(start, stop)` with stop excluded, or None for the whole video. Ranges are half-open `[start, end)`. Every record
keeps `row`, its index in the file, so that results can be traced to the annotation.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from barista_bench.errors import DataError
from barista_bench.scene_graph.coverage import Coverage
from barista_bench.scene_graph.domain import load_domain
from barista_bench.scene_graph.masks import Rle, decode_mask, parse_segmentations
from barista_bench.scene_graph.reading import Problem, ReleaseRecords
from barista_bench.scene_graph.release import (
    ANNOTATION_FILE,
    Layer,
    ReleaseAnnotation,
    ReleaseAttribute,
    ReleaseRelation,
    ReleaseSegment,
    ReleaseVideo,
)

Span = int | tuple[int, int] | None
Box = tuple[float, float, float, float]
HANDS = {"left hand": "left", "right hand": "right"}
HAND_RELATION = "human_actions"
UNNAMED = "unknown"
"""The category of objects without a name."""
WINDOW = 2
"""Number of frames before and after a keyframe that count as the keyframe's window."""


class SceneObject(NamedTuple):
    """One persistent object. It keeps the same id through occlusion and re-entry."""

    id: str
    category: str


class Instance(NamedTuple):
    """One object on one frame. `bbox` is (x, y, width, height) in pixels."""

    frame: int
    object: SceneObject
    bbox: Box
    row: int


class Attribute(NamedTuple):
    object: SceneObject
    type: str
    value: str
    start: int
    end: int
    row: int


class Relation(NamedTuple):
    """`source` relates to `target` by (`type`, `value`) on frames [start, end)."""

    source: SceneObject
    target: SceneObject
    type: str
    value: str
    start: int
    end: int
    row: int


class Contact(NamedTuple):
    """A hand that acts on an object. `side` is left or right."""

    side: str
    hand: SceneObject
    object: SceneObject
    value: str
    row: int


class Segment(NamedTuple):
    """An activity or a process step on frames [start, end)."""

    start: int
    end: int
    class_id: str | None
    name: str
    row: int


@dataclass(frozen=True, slots=True)
class Instances:
    """Boxed objects sorted by frame, then by index in the file. `object` is an index of `VideoGraph.objects`.

    If a file annotates an object twice on a frame, a query of the object's box by id returns the last box.
    """

    frame: NDArray[np.int32]
    object: NDArray[np.int32]
    bbox: NDArray[np.float64]
    row: NDArray[np.int64]

    def slice(self, span: Span) -> slice:
        if span is None:
            return slice(0, len(self.frame))
        start, stop = bounds(span)
        low, high = np.searchsorted(self.frame, [start, stop])
        return slice(int(low), int(high))


@dataclass(frozen=True, slots=True)
class Ranges:
    """The frame ranges of attributes or relations, one per row. For an attribute, `target` is -1."""

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    label: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    row: NDArray[np.int64]
    labels: tuple[tuple[str, str], ...]
    """(type, value) pairs; `label` is an index of this tuple."""

    def entry(self, position: int) -> tuple[str, str, int, int, int]:
        """Return (type, value, start, end, row) of one range."""
        kind, value = self.labels[self.label[position]]
        return kind, value, int(self.start[position]), int(self.end[position]), int(self.row[position])

    def positions_in(self, span: Span) -> NDArray[np.int64]:
        """Return the positions of the ranges with at least one frame in the span."""
        if span is None:
            return np.arange(len(self.start))
        start, stop = bounds(span)
        return np.flatnonzero((self.start < stop) & (self.end > start))


def bounds(span: int | tuple[int, int]) -> tuple[int, int]:
    return (span, span + 1) if isinstance(span, int) else span


class VideoGraph:
    """The graph of one video. `SceneGraph` makes graphs, which are immutable.

    `records` has the file's valid records, including masks.
    """

    def __init__(self, video_id: str, records: ReleaseRecords, problems: Sequence[Problem] = ()) -> None:
        release = records.release
        self.video_id = video_id
        self.video: ReleaseVideo = release.video_metadata[0]
        self.problems = tuple(problems)
        self.records = records
        self.coverage = Coverage(release.coverage, self.video.frame_count)
        names = {category.id: category.name for category in release.categories}
        self.objects = tuple(SceneObject(o, names[c]) for o, c in release.object_id_to_category_id.items())
        self._index = {item.id: index for index, item in enumerate(self.objects)}
        self.instances_table = self._instances()
        self.attributes_table = self._ranges("attributes", release.attributes)
        self.relations_table = self._ranges("relations", release.relations)
        self._activities = self._segments("activities", release.activities)
        self._steps = self._segments("process_steps", release.process_steps)
        self._frames_of: dict[int, NDArray[np.int32]] = {}

    def __repr__(self) -> str:
        return f"VideoGraph({self.video_id!r}, {self.frame_count} frames, {len(self.objects)} objects)"

    @property
    def frame_count(self) -> int:
        return self.video.frame_count

    @property
    def preparation(self) -> str:
        """Return the `type` of the coffee machine that is seen first, or `unknown` without one. This is the release's
        rule.
        """
        category, attribute = load_domain().stratum
        machines = [i for i, item in enumerate(self.objects) if item.category == category and len(self.frames_of(i))]
        table = self.attributes_table
        for index in sorted(machines, key=lambda i: int(self.frames_of(i)[0])):
            labels = (table.labels[label] for label in table.label[table.source == index].tolist())
            if (value := next((value for kind, value in labels if kind == attribute), None)) is not None:
                return value
        return "unknown"

    def frames_of(self, index: int) -> NDArray[np.int32]:
        """Return the sorted frames on which the object at `index` of `objects` has a box."""
        if index not in self._frames_of:
            table = self.instances_table
            self._frames_of[index] = np.unique(table.frame[table.object == index])
        return self._frames_of[index]

    def objects_at(self, span: Span = None) -> list[SceneObject]:
        """Return the objects with a box in the span, in the order of the file's object table."""
        table = self.instances_table
        return [self.objects[i] for i in np.unique(table.object[table.slice(span)]).tolist()]

    def instances(self, span: Span = None) -> list[Instance]:
        """Return the boxed objects in the span, sorted by frame, then in the order of the file."""
        return self._instances_in(self.instances_table.slice(span))

    def instance(self, position: int) -> Instance:
        """Return the boxed object at a row of the instances table."""
        return self._instances_in(slice(position, position + 1))[0]

    def _instances_in(self, part: slice) -> list[Instance]:
        table = self.instances_table
        columns = (column[part].tolist() for column in (table.frame, table.object, table.bbox, table.row))
        return [
            Instance(frame, self.objects[index], tuple(box), row)
            for frame, index, box, row in zip(*columns, strict=True)
        ]

    def stated_box(self, position: int) -> Sequence[int | float]:
        """Return the box at a row of the instances table as in the file. Integers stay integers."""
        return self._annotation(int(self.instances_table.row[position])).bbox or ()

    def boxes(self, frame: int) -> dict[str, Box]:
        """Return the boxes (x, y, width, height) of one frame in pixels, by object id."""
        return {instance.object.id: instance.bbox for instance in self.instances(frame)}

    def rle(self, instance: Instance) -> Rle:
        """Return the instance's mask as a checked encoding.

        Raises:
            DataError: the annotation has no mask, or the mask does not have the frame's size.
        """
        (rle,) = self.rles([instance])
        if isinstance(rle, DataError):
            raise rle
        return rle

    def rles(self, instances: Sequence[Instance]) -> list[Rle | DataError]:
        """Return the result or the error of `rle` for each instance.

        Checking many masks at once is far faster than checking them one by one.
        """
        raws = [self._annotation(instance.row).segmentation for instance in instances]
        raw_masks = [raw for raw in raws if isinstance(raw, msgspec.Raw)]
        parsed = iter(parse_segmentations(raw_masks, self.video.height, self.video.width))
        rles: list[Rle | DataError] = []
        for instance, raw in zip(instances, raws, strict=True):
            key = f"{self.video_id}/{ANNOTATION_FILE}: annotations[{instance.row}].segmentation"
            if not isinstance(raw, msgspec.Raw):
                rles.append(DataError(f"{key}: missing. Fix: add the mask, or leave this frame out"))
            elif isinstance(rle := next(parsed), Rle):
                rles.append(rle)
            else:
                rles.append(DataError(f"{key}: {rle}. Fix: write a COCO mask of the frame's size"))
        return rles

    def mask(self, instance: Instance) -> NDArray[np.bool_]:
        """Return the instance's mask as (height, width) booleans. Raises DataError as `rle` does."""
        return decode_mask(self.rle(instance))

    def attributes(self, span: Span = None) -> list[Attribute]:
        """Return the attribute ranges with a frame in the span, in the order of the file.

        Objects need not be visible in the span.
        """
        table = self.attributes_table
        return [Attribute(self.objects[table.source[i]], *table.entry(i)) for i in table.positions_in(span).tolist()]

    def relations(self, span: Span = None) -> list[Relation]:
        """Return, in the file's order, the relation ranges with a frame in the span on which both objects have a box.

        On one frame, a record counts once, even if two of its ranges overlap.
        """
        table = self.relations_table
        positions = [i for i in table.positions_in(span).tolist() if len(self.relation_frames(i, span))]
        if isinstance(span, int):
            positions = list({int(table.row[i]): i for i in reversed(positions)}.values())[::-1]
        return [
            Relation(self.objects[table.source[i]], self.objects[table.target[i]], *table.entry(i)) for i in positions
        ]

    def relation_frames(self, position: int, span: Span = None) -> NDArray[np.int32]:
        """Return the frames of the span on which the relation range at `position` holds and both objects have a box."""
        return self.frames_with_boxes(self.relations_table, position, span)

    def frames_with_boxes(self, table: Ranges, position: int, span: Span = None) -> NDArray[np.int32]:
        """Return the frames of the span on which the range at `position` holds and its object or objects have a box."""
        start, stop = bounds(span) if span is not None else (0, self.frame_count)
        low, high = max(start, int(table.start[position])), min(stop, int(table.end[position]))
        source, target = int(table.source[position]), int(table.target[position])
        frames = self._frames_of_within(source, low, high)
        if target < 0:
            return frames
        return np.intersect1d(frames, self._frames_of_within(target, low, high), assume_unique=True)

    def _frames_of_within(self, index: int, low: int, high: int) -> NDArray[np.int32]:
        frames = self.frames_of(index)
        return frames[slice(*np.searchsorted(frames, [low, high]))]

    def relation_labels(self) -> tuple[tuple[str, str], ...]:
        """Return the (type, value) pairs of relations that hold on some frame, in the order of the file."""
        table, codes = self.relations_table, list[int]()
        for position, label in enumerate(table.label.tolist()):
            if label not in codes and len(self.relation_frames(position)):
                codes.append(label)
        return tuple(table.labels[label] for label in codes)

    def hand_contacts(self, span: Span = None) -> list[Contact]:
        """Return relations of type human_actions from an object of category left hand or right hand."""
        return [
            Contact(HANDS[item.source.category.lower()], item.source, item.target, item.value, item.row)
            for item in self.relations(span)
            if item.type == HAND_RELATION and item.source.category.lower() in HANDS
        ]

    def activities(self, span: Span = None, *, inclusive: bool = False) -> list[Segment]:
        """Return activity segments with a frame in the span.

        With `inclusive`, frame `end` also counts, as in some rules of the release.
        """
        return _overlapping(self._activities, span, inclusive)

    def steps(self, span: Span = None, *, inclusive: bool = False) -> list[Segment]:
        """Return process steps with a frame in the span, as `activities` does for activities."""
        return _overlapping(self._steps, span, inclusive)

    @property
    def empty_layers(self) -> frozenset[Layer]:
        """Return the sections without any record."""
        counts: dict[Layer, int] = {
            "attributes": len(self.attributes_table.start),
            "relations": len(self.relations_table.start),
            "activities": len(self._activities),
            "process_steps": len(self._steps),
        }
        return frozenset(layer for layer, count in counts.items() if not count)

    def _instances(self) -> Instances:
        columns = self.records.annotation_columns()
        boxed = np.flatnonzero(columns.boxed)
        order = boxed[np.argsort(columns.frame[boxed], kind="stable")]
        return Instances(
            frame=columns.frame[order].astype(np.int32),
            object=columns.object[order],
            bbox=columns.bbox[order],
            row=self.records.annotation_rows()[order],
        )

    def _annotation(self, row: int) -> ReleaseAnnotation:
        rows = self.records.rows.get("annotations")
        return self.records.release.annotations[row if rows is None else bisect_left(rows, row)]

    def _ranges(self, section: str, records: Sequence[ReleaseAttribute | ReleaseRelation]) -> Ranges:
        labels: dict[tuple[str, str], int] = {}
        rows = []
        for row, record in zip(self.records.rows_of(section), records, strict=True):
            if isinstance(record, ReleaseRelation):
                source, target = self._index[record.source_object_id], self._index[record.target_object_id]
                label = (record.relation_type, record.value)
            else:
                source, target = self._index[record.object_id], -1
                label = (record.attribute_type, record.value)
            code = labels.setdefault(label, len(labels))
            rows += [
                (source, target, code, span.image_id_start, span.image_id_end, row) for span in record.image_ranges
            ]
        table = np.array(rows, dtype=np.int64).reshape(-1, 6)
        sources, targets, codes = (table[:, column].astype(np.int32) for column in range(3))
        return Ranges(sources, targets, codes, table[:, 3], table[:, 4], table[:, 5], tuple(labels))

    def _segments(self, section: str, records: Sequence[ReleaseSegment]) -> list[Segment]:
        spans = [(record.image_range.image_id_start, record.image_range.image_id_end) for record in records]
        return [
            Segment(*span, record.activity_class_id, record.display_name, row)
            for row, span, record in zip(self.records.rows_of(section), spans, records, strict=True)
        ]


def _overlapping(segments: list[Segment], span: Span, inclusive: bool) -> list[Segment]:
    if span is None:
        return list(segments)
    start, stop = bounds(span)
    return [s for s in segments if s.start < stop and s.end + inclusive > start]
