"""Statements that ViSTa's descriptions make about clips of one video, and conditions for joining two clips."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import ClassVar, TypeVar

from barista_bench.generate.nearby import excludes_action, is_located, moments_of
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import NamedObject, find_overlapping, verb_of
from barista_bench.generate.statements import Statement, Truth
from barista_bench.generate.visibility import cached_by_scene
from barista_bench.scene_graph import Layer

ClipT = TypeVar("ClipT")
HANDS_SEEN = 0.5
"""Minimum share of a clip's moments, four a second, with a clearly visible hand."""


class Depicts(Statement, frozen=True):
    """The clips `spans` of a video show these actions in this order, one action per clip.

    False: the graph's records in the clips cannot be interpreted as these actions in this order, even if one recorded
    activity could stand for several actions. Activities that a value implies (a pitcher is "pouring") count as
    recorded.
    """

    false_needs: ClassVar[tuple[Layer, ...]] = ("activities",)
    is_in_words: ClassVar[bool] = True

    actions: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]

    def recorded_truth(self, scene: Scene) -> Truth:
        if len(self.actions) == len(self.spans) and all(
            any(action.name == name and action.start <= start and end <= action.end for action in scene.actions)
            for name, (start, end) in zip(self.actions, self.spans, strict=True)
        ):
            return True
        if not all(find_overlapping(scene.actions, *span) for span in self.spans):
            return None
        return (
            None
            if is_fitting(self.actions, self.spans, lambda name, span: possible_activities(scene, name, *span))
            else False
        )


def is_fitting(actions: Sequence[str], clips: Sequence[ClipT], can_be: Callable[[str, ClipT], Sequence[bool]]) -> bool:
    """Return whether clips can be interpreted as actions in their order. One recorded activity may be several actions.

    Args:
        can_be: returns, for each activity of a clip by time, whether it can be interpreted as an action.
    """
    fitted_count = 0
    for clip in clips:
        for frame in range(len(can_be(actions[0], clip))):
            while fitted_count < len(actions) and can_be(actions[fitted_count], clip)[frame]:
                fitted_count += 1
    return fitted_count == len(actions)


@cached_by_scene
def possible_activities(scene: Scene, action: str, start: int, end: int) -> tuple[bool, ...]:
    """Return, for each activity recorded in a clip, whether it could be an action.

    If a value in the clip implies the action, every recorded activity could be the action.
    """
    values = {span.value for span in find_overlapping(scene.values, start, end)}
    is_ongoing = any(verb_of(action) in scene.domain.ongoing.get(value, ()) for value in values)
    return tuple(
        is_ongoing
        or not excludes_action(scene, action, other.name, (max(start, other.start) + min(end, other.end)) // 2)
        for other in find_overlapping(scene.actions, start, end)
    )


class HandsAtWork(Statement, frozen=True):
    """A hand is visible for most of a clip, and at one of the clip's moments it is on a clearly visible object."""

    unmet: ClassVar[str] = "no hand at work is clearly visible"

    start: int
    end: int

    def recorded_truth(self, scene: Scene) -> Truth:
        moments = list(moments_of(scene, self.start, self.end))
        is_hand_seen = [any(scene.is_hand_visible(side, frame) for side in scene.hands) for frame in moments]
        is_used = any(
            use.start <= frame < use.end and scene.is_visible(use.thing.id, frame)
            for use in scene.uses
            for frame in moments
        )
        return bool(moments) and is_used and sum(is_hand_seen) >= HANDS_SEEN * len(moments)


class Continues(Statement, frozen=True):
    """The second of two joined clips starts with its objects as the first clip left them.

    The objects used in the second clip, and objects in hands, have the same state, place and holder. Objects that these
    are in, on or at have the same state, and so do the parts of all these objects. Clips that follow each other in the
    video always continue.

    `last` is the last frame of the first clip, and `first` is the first frame of the second clip. An object without
    recorded state and place must not have been touched between the two frames.
    """

    true_needs: ClassVar[tuple[Layer, ...]] = ("activities", "attributes", "relations")
    unmet: ClassVar[str] = "the end of one clip does not fit the start of the next"

    last: int
    first: int
    end: int

    def recorded_truth(self, scene: Scene) -> Truth:
        if follow_each_other(scene, self.last, self.first):
            return True
        if _holdings(scene, self.last) != _holdings(scene, self.first):
            return False
        used = used_things(scene, self.first, self.end)
        supports = {span.other for span in scene.places if span.thing in used and span.start <= self.first < span.end}
        wholes = {thing.id for thing in used | supports}
        parts = {thing for thing in scene.things.values() if scene.wholes.get(thing.id, frozenset()) & wholes}
        between = used_things(scene, *sorted((self.last, self.first)))
        for thing in used:
            before, after = (
                _states(scene, thing, frame) | _places(scene, thing, frame) for frame in (self.last, self.first)
            )
            # Without records, it is unknown in which state a hand left the object.
            if before != after or (not before and thing in between):
                return False
        return all(_states(scene, thing, self.last) == _states(scene, thing, self.first) for thing in supports | parts)


class AsLeft(Statement, frozen=True):
    """Objects that a later clip uses have the same state, place and holder on both sides of a joint.

    The frames are as in `Continues`.
    """

    true_needs: ClassVar[tuple[Layer, ...]] = ("activities", "attributes", "relations")
    unmet: ClassVar[str] = "something that a later clip needs changes between two clips"

    objects: tuple[str, ...]
    last: int
    first: int

    def recorded_truth(self, scene: Scene) -> Truth:
        return follow_each_other(scene, self.last, self.first) or all(
            _is_unchanged(scene, item, self.last, self.first) for item in self.objects
        )


class NothingInside(Statement, frozen=True):
    """At no time in [start, end) is any object inside this object, according to the relation `predicate`."""

    true_needs: ClassVar[tuple[Layer, ...]] = ("relations",)
    unmet: ClassVar[str] = "something is inside it"

    object: str
    predicate: str
    start: int
    end: int

    def recorded_truth(self, scene: Scene) -> Truth:
        return not any(
            (span.predicate, span.other.id) == (self.predicate, self.object)
            for span in find_overlapping(scene.places, self.start, self.end)
        )


class Unjoined(Statement, frozen=True):
    """An object is not in a spatial relation to another object. False: it is, as in `Located`."""

    object: str
    predicate: str
    other: str
    frame: int

    def recorded_truth(self, scene: Scene) -> Truth:
        is_joined = is_located(scene, self.object, self.predicate, self.other, self.frame)
        return None if is_joined is None else not is_joined


class LeftmostAtEnd(Statement, frozen=True):
    """Of alike objects, the one that is leftmost on the first frame of a clip is leftmost on its last frame too.

    With `stays=False`, another object is leftmost on the last frame. The boxes of both frames decide. An object is
    leftmost if its box ends left of the middle of every other box. All of the objects must be annotated at every moment
    of the clip, and no other object of their kind.
    """

    steps: ClassVar[int] = 2

    objects: tuple[str, ...]
    kind: str
    start: int
    end: int
    stays: bool

    def recorded_truth(self, scene: Scene) -> Truth:
        category = scene.things[self.objects[0]].category
        if not scene.coverage.covers_category(category, self.start, self.end):
            return None
        alike, last = _of_kind(scene, self.kind), self.end - 1
        for frame in (self.start, *moments_of(scene, self.start, self.end), last):
            if {item for item in alike if scene.is_annotated(item, frame)} != set(self.objects):
                return None
        first_item, last_item = (leftmost(scene, self.objects, frame) for frame in (self.start, last))
        return None if first_item is None or last_item is None else (first_item == last_item) == self.stays


def leftmost(scene: Scene, objects: Sequence[str], frame: int) -> str | None:
    """Return the object whose box ends left of the middle of all other boxes on a frame; None if no box does."""
    boxes = scene.boxes(frame)
    first, *others = sorted(objects, key=lambda item: boxes[item][0] + boxes[item][2])
    end = boxes[first][0] + boxes[first][2]
    return first if all(end <= boxes[item][0] + boxes[item][2] / 2 for item in others) else None


class AloneInView(Statement, frozen=True):
    """No other object of these categories or names is in the picture at any moment of a clip."""

    unmet: ClassVar[str] = "another thing of its kind is in the picture"

    object: str
    kind: str
    start: int
    end: int

    def recorded_truth(self, scene: Scene) -> Truth:
        others = _of_kind(scene, self.kind)
        frames = moments_of(scene, self.start, self.end)
        is_known = scene.coverage.covers_category(scene.things[self.object].category, self.start, self.end)
        return is_known and not any(
            scene.is_annotated(other, frame) for other in others if other != self.object for frame in frames
        )


def _of_kind(scene: Scene, kind: str) -> list[str]:
    """Return the ids of the objects that a category or name could mean."""
    return [
        thing.id
        for thing in scene.things.values()
        if kind in (thing.name, thing.category.lower()) or f" {thing.noun}".endswith(f" {kind}")
    ]


def _holdings(scene: Scene, frame: int) -> frozenset[tuple[str, str]]:
    return frozenset((use.side, use.thing.id) for use in scene.uses if use.start <= frame < use.end)


def follow_each_other(scene: Scene, last: int, first: int) -> bool:
    """Return whether a frame follows another within the domain's `gap`, with no activity between the two."""
    is_next = 0 < first - last <= scene.frames_in(scene.domain.lengths.gap)
    return is_next and not find_overlapping(scene.actions, last + 1, first)


def used_things(scene: Scene, start: int, end: int) -> set[NamedObject]:
    """Return the objects that hands use at some time in [start, end)."""
    return {use.thing for use in find_overlapping(scene.uses, start, end)}


@cached_by_scene
def _is_unchanged(scene: Scene, object_id: str, last: int, first: int) -> bool:
    """Return whether the recorded state, place and holder of an object are the same on two frames."""
    thing = scene.things[object_id]
    before, after = (
        (
            _states(scene, thing, frame),
            _places(scene, thing, frame),
            {s for s, o in _holdings(scene, frame) if o == object_id},
        )
        for frame in (last, first)
    )
    return before == after


def _states(scene: Scene, thing: NamedObject, frame: int) -> frozenset[tuple[str, ...]]:
    """Return the values of an object's attributes on a frame. Attributes that never change are left out."""
    return frozenset(
        (span.type, span.value)
        for span in scene.values
        if span.thing == thing and span.start <= frame < span.end and _ever_changes(scene, thing, span.type)
    )


def _places(scene: Scene, thing: NamedObject, frame: int) -> frozenset[tuple[str, ...]]:
    """Return an object's relations of place on a frame, in either direction, without permanent relations."""
    return frozenset(
        (span.thing.id, span.predicate, span.other.id)
        for span in scene.places
        if thing in (span.thing, span.other)
        and span.start <= frame < span.end
        and (span.start > 0 or span.end < scene.frame_count)
    )


def _ever_changes(scene: Scene, thing: NamedObject, attribute_type: str) -> bool:
    spans = [span for span in scene.values if span.thing == thing and span.type == attribute_type]
    return any(first.value != second.value for first, second in pairwise(spans))
