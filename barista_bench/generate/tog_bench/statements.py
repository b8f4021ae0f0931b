"""The statements of ToG-Bench's tasks, about the only object that fits, objects that hands use, and trackable objects.

Frames are counted from 0. Spans are [start, end).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import ClassVar

import numpy as np

from barista_bench.benchmarks.tog_bench.t_stvg import RATE
from barista_bench.generate.descriptions import GRIP
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import NamedObject
from barista_bench.generate.statements import RECORD_HANDS, TELL_APART, Statement, Truth, Unique
from barista_bench.generate.visibility import cached_by_scene
from barista_bench.scene_graph import Layer

HELD = "held"
"""The kind of all objects that hands hold and that can be moved, whatever they are."""


class Fillable(Statement, frozen=True):
    """Only one object in the video is of these kinds (names or categories). False: several objects are."""

    unmet: ClassVar[str] = "several things in the video could serve"

    kinds: tuple[str, ...]

    def recorded_truth(self, scene: Scene) -> Truth:
        return all(map(scene.coverage.covers_category, self.kinds)) and len(_things_in_view(scene, self.kinds)) == 1


class NoneInView(Statement, frozen=True):
    """No object of these kinds is annotated in the video. False: at least one is annotated."""

    unmet: ClassVar[str] = "something in the video leads to another answer"

    kinds: tuple[str, ...]

    def recorded_truth(self, scene: Scene) -> Truth:
        return all(map(scene.coverage.covers_category, self.kinds)) and not _things_in_view(scene, self.kinds)


class Unmistakable(Statement, frozen=True):
    """An object's name or description fits no other object at any of the `named_frames`."""

    unmet: ClassVar[str] = "its name could mean another thing in the video"
    deciding_work: ClassVar[str] = TELL_APART

    object: str
    description: str = ""

    def recorded_truth(self, scene: Scene) -> Truth:
        return Unique(self.object, named_frames(scene), self.description).truth(scene)


class Handled(Statement, frozen=True):
    """A hand is at some time on an object, or on a part of it, for longer than the domain's `margin`.

    Contacts of hands must be completely annotated.
    """

    true_needs: ClassVar[tuple[Layer, ...]] = ("relations",)
    unmet: ClassVar[str] = "no hand touches it, and its name could mean a thing that is not annotated"
    deciding_work: ClassVar[str] = RECORD_HANDS

    object: str

    def recorded_truth(self, scene: Scene) -> Truth:
        touched = (self.object, *(part for part, wholes in scene.wholes.items() if self.object in wholes))
        contacts = (contact for use in scene.uses if use.thing.id in touched for contact in use.contacts)
        return any(end - start > scene.margin for _, start, end in contacts) or None


class NotParts(Statement, frozen=True):
    """None of the objects is a part of another one."""

    unmet: ClassVar[str] = "one is a part of the other"

    objects: tuple[str, ...]

    def recorded_truth(self, scene: Scene) -> Truth:
        is_known = len(self.objects) < 2 or scene.coverage.covers_layer("relations")
        return is_known and not any(scene.is_part_of_other(*pair) for pair in combinations(self.objects, 2))


class Trackable(Statement, frozen=True):
    """An object is visible at some time, and clearly visible on a shown frame of each of its stretches of time."""

    unmet: ClassVar[str] = "it is not clearly visible on the frames shown"

    object: str

    def recorded_truth(self, scene: Scene) -> Truth:
        seen_frames = [frame for frame in shown_frames(scene) if scene.is_visible(self.object, frame)]
        category = scene.things[self.object].category
        spans = visible_spans(scene, self.object) if scene.coverage.covers_category(category) else []
        return bool(spans) and all(any(start <= frame < end for frame in seen_frames) for start, end in spans)


class Fills(Statement, frozen=True):
    """An object is one of the kinds that can fill a slot."""

    object: str
    kinds: tuple[str, ...]

    def recorded_truth(self, scene: Scene) -> Truth:
        return is_of_kind(scene, scene.things[self.object], self.kinds)


class BroughtAbout(Statement, frozen=True):
    """Hands bring an object into a state, or into a relation to another object, at a frame.

    A hand uses the object then. A relation must outlast the use: a towel that wipes a wand is not put on the wand.
    """

    unmet: ClassVar[str] = "the graph shows no hand that does it"
    deciding_work: ClassVar[str] = RECORD_HANDS

    object: str
    value: str
    frame: int
    other: str | None = None

    def recorded_truth(self, scene: Scene) -> Truth:
        gap = scene.frames_in(scene.domain.lengths.gap)
        uses = [use for use in scene.uses if use.thing.id == self.object]
        is_used = any(use.start - gap <= self.frame <= use.end + gap for use in uses)
        begun_values = {(s.thing.id, s.value, None) for s in scene.values if s.start == self.frame}
        places = [span for span in scene.places if span.start == self.frame]
        last_use = max((use.end for use in uses if use.start < self.frame + gap), default=0)
        lasting = [span for span in places if last_use < span.end]
        begun_places = {(s.thing.id, s.predicate, s.other.id) for s in lasting}
        return (is_used and (self.object, self.value, self.other) in begun_values | begun_places) or None


def is_of_kind(scene: Scene, thing: NamedObject, kinds: tuple[str, ...]) -> bool:
    """Return whether an object's name or category is among `kinds`. The kind `HELD` is what hands hold."""
    return bool({thing.name, thing.category.lower()} & {*kinds}) or (HELD in kinds and _is_held(scene, thing))


@cached_by_scene
def _is_held(scene: Scene, thing: NamedObject) -> bool:
    """Return whether a hand holds an object at some time, and the object belongs to no other object: it is movable."""
    fixed = {thing.noun, thing.category.lower()} & {*scene.domain.families.get("tog_bench", {}).get("fixed", ())}
    grips = {value for value, words in scene.domain.contacts.items() if words.do == GRIP}
    contacts = (contact for use in scene.uses if use.thing == thing for contact in use.contacts)
    is_gripped = any(value in grips and end - start > scene.margin for value, start, end in contacts)
    is_free = thing.id not in scene.owners and scene.coverage.covers_layer("relations")
    return is_gripped and is_free and not fixed


def shown_frames(scene: Scene) -> list[int]:
    """Return the frames that the benchmark's task shows."""
    step = scene.fps / RATE
    return [round(number * step) for number in range(int((scene.frame_count - 1) / step) + 1)]


@cached_by_scene
def named_frames(scene: Scene) -> tuple[int, ...]:
    """Return the frames on which a name must be unique: every whole second, and every frame that is shown."""
    return tuple(sorted({frame for _, frame in whole_seconds(scene)} | set(shown_frames(scene))))


def whole_seconds(scene: Scene) -> Iterator[tuple[int, int]]:
    """Yield (second, frame) for every whole second."""
    seconds = range(int((scene.frame_count - 1) / scene.fps) + 1)
    return ((second, round(second * scene.fps)) for second in seconds if round(second * scene.fps) < scene.frame_count)


def visible_spans(scene: Scene, object_id: str) -> list[tuple[int, int]]:
    """Return the spans [start, end) that show an object. Each span begins and ends with a frame that shows it clearly.

    As in the benchmark, the precision is one second: shorter gaps and shorter spans are ignored.
    """
    second = scene.frames_in(1.0)
    frames = scene.frames_of(object_id)
    spans = []
    for run in np.split(frames, np.flatnonzero(np.diff(frames) > second) + 1):
        seen_frames = [frame for frame in run.tolist() if scene.is_visible(object_id, frame)]
        if seen_frames and seen_frames[-1] + 1 - seen_frames[0] >= second:
            spans.append((seen_frames[0], seen_frames[-1] + 1))
    return spans


def _things_in_view(scene: Scene, kinds: tuple[str, ...]) -> list[NamedObject]:
    return [
        thing for thing in scene.things.values() if is_of_kind(scene, thing, kinds) and len(scene.frames_of(thing.id))
    ]
