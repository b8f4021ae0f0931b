"""The contract of a reader of another dataset: graphs one by one, where their pictures lie, counts of what it did."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec

from barista_bench.core.plugins import load_plugin
from barista_bench.errors import ConfigError
from barista_bench.scene_graph.domain import Domain
from barista_bench.scene_graph.masks import Rle, mask_boxes
from barista_bench.scene_graph.release import (
    ReleaseAnnotation,
    ReleaseCategory,
    ReleaseCoverage,
    ReleaseFile,
    ReleaseRange,
    ReleaseRelation,
    ReleaseVideo,
    rle_segmentation,
)
from barista_bench.scene_graph.terms import Terms

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "other-graphs.barista-bench")
Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class ImportTally(msgspec.Struct):
    """Counts, by what they are of: what was taken over, what was guessed, what a graph has no place for, and what was
    lost since it is missing, damaged or wrong."""

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
        notes: texts of the source that the graph has no place for; JSON values.
    """

    release: ReleaseFile
    pictures: Path | Sequence[Path]
    tally: ImportTally
    notes: Mapping[str, Any] = field(default_factory=dict)


class OpenedSource(ABC):
    """A dataset on disk, opened for reading. `video_ids` are sorted."""

    video_ids: Sequence[str]

    @abstractmethod
    def digest(self, video_id: str) -> str:
        """SHA-256 of a video's annotations."""

    @abstractmethod
    def read(self, video_id: str) -> ImportedVideo:
        """The graph of a video. Raises DataError where it cannot be used as a whole; names file, field and remedy."""


@dataclass(frozen=True)
class GraphSource:
    """A reader, registered in `barista_bench.graph_sources`: a dataset's terms, and how its folder is opened, given the
    domain file whose words its predicates become."""

    name: str
    terms: Terms
    open: Callable[[Path, Domain], OpenedSource]


def graph_source(name: str) -> GraphSource:
    """The reader of that name. Raises ConfigError where there is none."""
    source = load_plugin("graph_sources", name)
    if not isinstance(source, GraphSource):
        raise ConfigError(f"graph_sources: {name!r} is {type(source).__name__}. Remedy: register a GraphSource")
    return source


class GraphWriter:
    """Collects a video's records, with ids that stay the same from run to run.

    Args:
        dataset: its name, part of every id.
        size: (width, height) of the frames in pixels.
        tally: counts what is taken over.
    """

    def __init__(self, dataset: str, video_id: str, size: tuple[int, int], tally: ImportTally) -> None:
        self.dataset, self.video_id, self.size, self.tally = dataset, video_id, size, tally
        self.objects: dict[str, str] = {}
        """Object id to category."""
        self.relations: dict[tuple[str, str, str, str], list[tuple[int, int]]] = {}
        self.complete: dict[str, list[int]] = {}
        """Category to the frames on which everything of it is annotated."""
        self.idle: dict[str, list[int]] = {}
        """Hand to the frames on which it surely touches nothing."""
        self._annotations: list[ReleaseAnnotation] = []

    def add_object(self, key: str, category: str) -> str:
        """Add an object, by the key that the source has for it; its id."""
        object_id = str(uuid.uuid5(_NAMESPACE, f"{self.dataset}/{self.video_id}/{key}"))
        self.objects[object_id] = category
        return object_id

    def add_masks(self, frame: int, rles: Mapping[str, Rle]) -> set[str]:
        """Add masks of objects, by id, on a frame, but those without a pixel; the ids of those added."""
        width, height = self.size
        boxes = mask_boxes([rle.counts for rle in rles.values()], height, width).tolist()
        added = [
            ReleaseAnnotation(frame, object_id, tuple(box), rle_segmentation(rle.size, rle.counts))
            for (object_id, rle), box in zip(rles.items(), boxes, strict=True)
            if box[2] > 0 and box[3] > 0
        ]
        self._annotations += added
        return {annotation.object_id for annotation in added}

    def add_relation(self, source: str, target: str, words: tuple[str, str], start: int, end: int) -> None:
        """Add that (type, value) holds between two objects on frames [start, end)."""
        self.relations.setdefault((source, target, *words), []).append((start, end))

    def release(self, frame_count: int, fps: float | None, annotated: Iterable[int]) -> ReleaseFile:
        """The annotation file; `annotated` are the frames on which objects are annotated."""
        self.tally.taken.update(
            frames=frame_count, objects=len(self.objects), masks=len(self._annotations), relations=len(self.relations)
        )
        width, height = self.size
        return ReleaseFile(
            video_metadata=[ReleaseVideo(width, height, frame_count, fps)],
            categories=[ReleaseCategory(self._category(name), name) for name in sorted(set(self.objects.values()))],
            object_id_to_category_id={item: self._category(name) for item, name in self.objects.items()},
            annotations=self._annotations,
            relations=[
                ReleaseRelation(*key, [ReleaseRange(*span) for span in sorted(set(spans))])
                for key, spans in self.relations.items()
            ],
            coverage=ReleaseCoverage(
                frames=runs_of(annotated),
                categories={name: runs_of(frames) for name, frames in sorted(self.complete.items())},
                hands={hand: runs_of(frames) for hand, frames in sorted(self.idle.items())},
            ),
        )

    def _category(self, name: str) -> str:
        return str(uuid.uuid5(_NAMESPACE, f"{self.dataset}/category/{name}"))


def runs_of(frames: Iterable[int]) -> list[ReleaseRange]:
    """The ranges that frames make up.

    >>> [(span.image_id_start, span.image_id_end) for span in runs_of([4, 0, 1, 5])]
    [(0, 2), (4, 6)]
    """
    rows = enumerate(sorted(set(frames)))
    runs = [[frame for _, frame in group] for _, group in groupby(rows, key=lambda row: row[1] - row[0])]
    return [ReleaseRange(run[0], run[-1] + 1) for run in runs]
