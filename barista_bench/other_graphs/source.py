"""Defines the interface for readers of other datasets: they return graphs one by one, pictures, and counts.

To import another dataset, write a module with an `OpenedSource` and a `GraphSource`. Register the latter as an entry
point of the group `barista_bench.graph_sources` (`setup.cfg`): `kettles = kettle_bench:SOURCE`. Then
`import-graph FOLDER --from kettles` calls `open` with the folder and the domain file, and `read` for each video. It
writes the files, skips videos that it has, reports the counts, and goes on to the next video after a `DataError`.

    >>> from barista_bench.scene_graph.domain import load_domain
    >>> class Kettles(OpenedSource):
    ...     video_ids = ("v1",)  # usually the content of the folder; read files by `files.reading.read_bounded`
    ...     def __init__(self, folder, domain):
    ...         self.folder, self.words = folder, relation_words(domain)
    ...     def digest(self, video_id):
    ...         return "0" * 64  # SHA-256 of the video's annotations: a later call refuses changed ones
    ...     def read(self, video_id):
    ...         writer = GraphWriter("kettles", video_id, (640, 480), ImportTally())
    ...         hand, cup = writer.add_object("1", "right hand"), writer.add_object("2", "cup")
    ...         writer.add_box(0, hand, (10, 10, 50, 50))  # or `add_masks`
    ...         writer.add_box(0, cup, (40, 10, 50, 50))
    ...         writer.add_relation(hand, cup, self.words["holding"], start=0, end=1)
    ...         writer.complete["cup"] = [0]  # frames on which all cups are annotated; else absence proves nothing
    ...         release = writer.release(frame_count=30, fps=5.0, annotated=[0])
    ...         return ImportedVideo(release, self.folder / "v1.mp4", writer.tally)
    >>> terms = Terms(title="Kettles", licence="mit", licence_note="", citation="", homepage="")
    >>> SOURCE = GraphSource("kettles", terms, Kettles)
    >>> graph = SOURCE.open(Path("kettles"), load_domain(None)).read("v1").release
    >>> [(item.relation_type, item.value) for item in graph.relations]
    [('human_actions', 'holds')]

`pvsg.py` is a complete reader.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np

from barista_bench.core.plugins import load_plugin
from barista_bench.errors import ConfigError
from barista_bench.scene_graph.coverage import frame_ranges
from barista_bench.scene_graph.domain import Domain
from barista_bench.scene_graph.masks import Rle, mask_boxes
from barista_bench.scene_graph.release import (
    Layer,
    ReleaseAnnotation,
    ReleaseAttribute,
    ReleaseCategory,
    ReleaseCoverage,
    ReleaseFile,
    ReleaseRange,
    ReleaseRelation,
    ReleaseSegment,
    ReleaseVideo,
    Terms,
    class_id,
    rle_segmentation,
)

OTHER_RELATION = "relation"
"""Relation type for a predicate that is not in the domain file."""
_SAME_PLACE = {"in": "inside", "on top of": "on", "below": "under", "beneath": "under", "attached with": "attached to"}
"""Predicates that have the same meaning as a predicate in domain files."""
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "other-graphs.barista-bench")
Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class ImportTally(msgspec.Struct):
    """Counts of an import: records that were used, guessed, have no place in a graph, or were lost.

    Lost records are missing, damaged or wrong.
    """

    taken: Counter[str] = msgspec.field(default_factory=Counter)
    guessed: Counter[str] = msgspec.field(default_factory=Counter)
    left_out: Counter[str] = msgspec.field(default_factory=Counter)
    lost: Counter[str] = msgspec.field(default_factory=Counter)

    def update(self, other: ImportTally) -> None:
        for name in self.__struct_fields__:
            getattr(self, name).update(getattr(other, name))


@dataclass
class ImportedVideo:
    """A video as a graph.

    Args:
        pictures: a video file, or the pictures of its frames in order.
        notes: texts of the source that have no place in the graph, as JSON values.
    """

    release: ReleaseFile
    pictures: Path | Sequence[Path]
    tally: ImportTally
    notes: Mapping[str, Any] = field(default_factory=dict)


class OpenedSource(ABC):
    """A dataset on disk, opened for reading. `video_ids` are sorted."""

    video_ids: Sequence[str]
    terms: Terms | None = None
    """Terms of this copy of the dataset, if they differ from the terms of the reader."""

    @property
    def tally(self) -> ImportTally:
        """Counts of records that belong to no single video of the dataset."""
        return ImportTally()

    @abstractmethod
    def digest(self, video_id: str) -> str:
        """Return the SHA-256 of a video's annotations."""

    @abstractmethod
    def read(self, video_id: str) -> ImportedVideo:
        """Return the graph of a video.

        Raises DataError if the video cannot be used; the message names the file, the field and the remedy.
        """


@dataclass(frozen=True)
class GraphSource:
    """A reader, registered in `barista_bench.graph_sources`: a dataset's terms, and functions that open its folder.

    The functions receive the domain file with the vocabulary of the predicates. `open_mapped` also receives the value
    of `--map`.
    """

    name: str
    terms: Terms
    open: Callable[[Path, Domain], OpenedSource]
    open_mapped: Callable[[Path, Domain, str], OpenedSource] | None = None


def graph_source(name: str) -> GraphSource:
    """Return the reader with this name. Raises ConfigError if there is no such reader."""
    source = load_plugin("graph_sources", name)
    if not isinstance(source, GraphSource):
        raise ConfigError(f"graph_sources: {name!r} is {type(source).__name__}. Fix: register a GraphSource")
    return source


def relation_words(domain: Domain) -> dict[str, tuple[str, str]]:
    """Map each form of each predicate in a domain file to the (type, value) of a relation."""
    words: dict[str, tuple[str, str]] = {}
    for value, place in domain.places.items():
        words |= dict.fromkeys((place.words, value), (domain.place_type, value))
    words |= {word: words[same] for word, same in _SAME_PLACE.items() if same in words}
    for value, verb in domain.contacts.items():  # "holding" is a contact, even though a jar may be "holding" sugar
        words |= dict.fromkeys((verb.do, verb.does, verb.doing, value), (domain.contact_type, value))
    return words


class GraphWriter:
    """Collects a video's records, with ids that are the same in every run.

    Args:
        dataset: the name of the dataset, which is a part of every id.
        size: (width, height) of the frames in pixels.
        tally: counts the used records.
    """

    def __init__(self, dataset: str, video_id: str, size: tuple[int, int], tally: ImportTally) -> None:
        self.dataset, self.video_id, self.size, self.tally = dataset, video_id, size, tally
        self.objects: dict[str, str] = {}
        """Maps the id of an object to its category."""
        self.relations: dict[tuple[str, str, str, str], list[tuple[int, int]]] = {}
        self.attributes: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
        self.segments: dict[Layer, list[ReleaseSegment]] = {"activities": [], "process_steps": []}
        self.layers: dict[Layer, list[tuple[int, int]]] = {}
        """Maps a section to the spans [start, end) in which it is complete."""
        self.complete: dict[str, list[int]] = {}
        """Maps a category to the frames on which all of its objects are annotated."""
        self.idle: dict[str, list[int]] = {}
        """Maps a hand to the frames on which the hand certainly touches nothing."""
        self._annotations: list[ReleaseAnnotation] = []

    def add_object(self, key: str, category: str) -> str:
        """Add an object under its key in the source, and return the object's id."""
        object_id = str(uuid.uuid5(_NAMESPACE, f"{self.dataset}/{self.video_id}/{key}"))
        self.objects[object_id] = category
        return object_id

    def add_masks(self, frame: int, rles: Mapping[str, Rle]) -> set[str]:
        """Add masks to a frame by object id, without empty masks; return the ids of the objects that have a mask."""
        width, height = self.size
        boxes = mask_boxes([rle.counts for rle in rles.values()], height, width).tolist()
        added = [
            ReleaseAnnotation(frame, object_id, tuple(box), rle_segmentation(rle.size, rle.counts))
            for (object_id, rle), box in zip(rles.items(), boxes, strict=True)
            if box[2] > 0 and box[3] > 0
        ]
        self._annotations += added
        return {annotation.object_id for annotation in added}

    def add_box(self, frame: int, object_id: str, box: tuple[float, float, float, float]) -> None:
        """Add an object without a mask on a frame, by its box (left, top, width, height) in pixels.

        The rectangle becomes the object's mask, since tasks mark objects by masks.
        """
        x, y, width, height = box
        corners = [[x, y, x + width, y, x + width, y + height, x, y + height]]
        self._annotations.append(ReleaseAnnotation(frame, object_id, box, msgspec.Raw(msgspec.json.encode(corners))))
        self.tally.guessed["masks: the rectangle of a box that has no mask"] += 1

    def add_attribute(self, object_id: str, kind: str, value: str, start: int, end: int) -> None:
        """Add an object's attribute on frames [start, end)."""
        self.attributes.setdefault((object_id, kind, value), []).append((start, end))

    def add_segment(self, layer: Literal["activities", "process_steps"], name: str, start: int, end: int) -> None:
        """Add an activity or a process step on frames [start, end)."""
        kind: Literal["activity", "step"] = "activity" if layer == "activities" else "step"
        self.segments[layer].append(ReleaseSegment(ReleaseRange(start, end), class_id(kind, name), name))

    def add_relation(self, source: str, target: str, words: tuple[str, str], start: int, end: int) -> None:
        """Add a relation (type, value) between two objects on frames [start, end)."""
        self.relations.setdefault((source, target, *words), []).append((start, end))

    def release(self, frame_count: int, fps: float | None, annotated: Iterable[int]) -> ReleaseFile:
        """Return the annotation file; `annotated` are the frames with annotated objects."""
        self.tally.taken.update(
            frames=frame_count, objects=len(self.objects), masks=len(self._annotations), relations=len(self.relations)
        )
        others = {"attributes": len(self.attributes)} | {
            name.replace("_", " "): len(segments) for name, segments in self.segments.items()
        }
        self.tally.taken.update({name: count for name, count in others.items() if count})
        width, height = self.size
        return ReleaseFile(
            video_metadata=[ReleaseVideo(width, height, frame_count, fps)],
            categories=[ReleaseCategory(self._category(name), name) for name in sorted(set(self.objects.values()))],
            object_id_to_category_id={item: self._category(name) for item, name in self.objects.items()},
            annotations=self._annotations,
            attributes=[ReleaseAttribute(*key, _ranges(spans)) for key, spans in self.attributes.items()],
            relations=[ReleaseRelation(*key, _ranges(spans)) for key, spans in self.relations.items()],
            **self.segments,
            coverage=ReleaseCoverage(
                frames=ranges_of(annotated),
                categories={name: ranges_of(frames) for name, frames in sorted(self.complete.items())},
                hands={hand: ranges_of(frames) for hand, frames in sorted(self.idle.items())},
                layers={layer: _ranges(spans) for layer, spans in self.layers.items()},
            ),
        )

    def _category(self, name: str) -> str:
        return str(uuid.uuid5(_NAMESPACE, f"{self.dataset}/category/{name}"))


def _ranges(spans: Iterable[tuple[int, int]]) -> list[ReleaseRange]:
    return [ReleaseRange(*span) for span in sorted(set(spans))]


def ranges_of(frames: Iterable[int]) -> list[ReleaseRange]:
    """Return the ranges of consecutive frames in `frames`.

    >>> [(span.image_id_start, span.image_id_end) for span in ranges_of([4, 0, 1, 5])]
    [(0, 2), (4, 6)]
    """
    return [ReleaseRange(*span) for span in frame_ranges(np.array(sorted(set(frames)), dtype=np.int64))]
