"""What the mini release's questions need to know of a scene graph: contacts, states and places, in seconds."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from barista_bench.benchmarks.egocot.evidence_sentences import region_words
from barista_bench.benchmarks.egocot.items import Corners, clock
from barista_bench.core.task import Json, content_seed
from barista_bench.scene_graph import Relation, SceneObject, Segment, VideoGraph
from barista_bench.scene_graph.video_graph import NAMELESS, UNNAMED

FPS = 30.0


class HandUse(NamedTuple):
    """One hand acting on one object, on frames [start, end)."""

    hand: SceneObject
    action: str
    object: SceneObject
    start: int
    end: int

    @property
    def middle(self) -> int:
        return (self.start + self.end - 1) // 2


class StateChange(NamedTuple):
    """An object's state before a frame, and from it on; `start` is where the state before begins, `end` where the
    state after ends."""

    object: SceneObject
    before: str
    after: str
    start: int
    frame: int
    end: int


@dataclass(frozen=True)
class GraphScene:
    """One video's graph, asked in the terms of the benchmark."""

    video: VideoGraph

    @property
    def fps(self) -> float:
        return self.video.video.fps or FPS

    def time(self, frame: int) -> float:
        return round(frame / self.fps, 2)

    def clock(self, frame: int) -> str:
        return clock(frame / self.fps)

    def rng(self, *about: str | int) -> random.Random:
        """Seeded by what it is used for."""
        return random.Random(content_seed("egocot mini", self.video.video_id, *about))  # noqa: S311

    @cached_property
    def contacts(self) -> list[HandUse]:
        """By time."""
        uses = [
            HandUse(row.source, row.value, row.target, row.start, row.end)
            for row in self.video.relations()
            if row.type == "human_actions" and row.source.category in ("left hand", "right hand")
        ]
        return sorted(uses, key=lambda c: (c.start, c.end, c.hand.category, c.object.id))

    @cached_property
    def changes(self) -> list[StateChange]:
        """Of states that follow each other without a gap, by time."""
        ranges = sorted(
            (row for row in self.video.attributes() if row.type == "state"), key=lambda row: (row.object.id, row.start)
        )
        changes = [
            StateChange(a.object, a.value, b.value, a.start, b.start, b.end)
            for a, b in itertools.pairwise(ranges)
            if a.object == b.object and a.end == b.start and a.value != b.value
        ]
        return sorted(changes, key=lambda change: (change.frame, change.object.id))

    @cached_property
    def states(self) -> list[str]:
        return sorted({row.value for row in self.video.attributes() if row.type == "state"})

    def categories(self, frame: int | None = None) -> list[str]:
        """Names of what is visible, hands apart; at one frame or in the whole video."""
        seen = {item.category for item in self.video.objects_at(frame)}
        return sorted(seen - NAMELESS)

    def alone(self, item: SceneObject, frame: int) -> bool:
        """Whether no other object of its category is visible, so that its name says which one is meant."""
        same = [other for other in self.video.objects_at(frame) if other.category == item.category]
        return same == [item] and item.category != UNNAMED

    def touched(self, frame: int) -> list[HandUse]:
        return [contact for contact in self.contacts if contact.start <= frame < contact.end]

    def box(self, item: SceneObject, frame: int) -> Corners | None:
        """Corners in pixels; None where it is not visible."""
        box = self.video.boxes(frame).get(item.id)
        return (box[0], box[1], box[0] + box[2], box[1] + box[3]) if box else None

    def place(self, item: SceneObject, frame: int) -> str | None:
        """The part of the frame that it is in, in words; None where it is not visible."""
        box, size = self.box(item, frame), self.video.video
        if box is None:
            return None
        return region_words((box[0] / size.width, box[1] / size.height, box[2] / size.width, box[3] / size.height))

    def activities(self) -> list[Segment]:
        return sorted(self.video.activities(), key=lambda segment: (segment.start, segment.end))

    def steps(self) -> list[Segment]:
        return sorted(self.video.steps(), key=lambda segment: (segment.start, segment.end))

    def evidence(
        self, targets: Sequence[SceneObject], frames: Sequence[int], also: Sequence[int] = ()
    ) -> dict[str, Json]:
        """Evidence as the benchmark writes it: boxes of the targets at `frames`, which are in focus, and at `also`,
        and the relations between targets and hands, or among targets, at `frames`."""
        ids = {item: number for number, item in enumerate(self.video.objects, start=1)}
        boxes = [row for frame in sorted({*frames, *also}) for row in self._boxes(targets, ids, frame)]
        in_focus = [row for frame in frames for row in self._boxes(targets, ids, frame)]
        return {
            "target_objects": [{"distinct_id": ids[item], "label": item.category} for item in targets],
            "timestamps": [self.clock(frame) for frame in sorted({*frames, *also})],
            "bboxes": boxes,
            "relations": list(self._relations(targets, frames)),
            "focus_times": [self.clock(frame) for frame in frames],
            "focused_bboxes": in_focus,
        }

    def _boxes(
        self, targets: Sequence[SceneObject], ids: dict[SceneObject, int], frame: int
    ) -> Iterator[dict[str, Json]]:
        for item in targets:
            box = self.box(item, frame)
            if box is not None:
                yield {"distinct_id": ids[item], "time": self.clock(frame), "bbox": [round(side, 1) for side in box]}

    def _relations(self, targets: Sequence[SceneObject], frames: Sequence[int]) -> Iterator[dict[str, Json]]:
        wanted = set(targets)
        rows: dict[tuple[str, str, str, int, int], Relation] = {}
        for frame in frames:
            for relation in self.video.relations(frame):
                pair = {relation.source, relation.target}
                hand = relation.source.category in ("left hand", "right hand") and relation.target in wanted
                named = UNNAMED not in (relation.source.category, relation.target.category)
                if named and (hand or pair <= wanted):
                    key = (relation.source.id, relation.value, relation.target.id, relation.start, relation.end)
                    rows[key] = relation
        for relation in rows.values():
            yield {
                "subject_name": relation.source.category,
                "predicate": relation.value,
                "object_name": relation.target.category,
                "time": [self.clock(relation.start), self.clock(relation.end - 1)],
            }
