"""Statements about a scene, and whether they are true, false, or undecidable from the graph.

A question is decidable if its right answer is a true statement and each wrong answer is a false statement. A missing
record is not evidence of absence. A statement is false only if a record excludes it, and each class documents such
records. Statements are plain records themselves, so that a written item contains its proof.

Frames are counted from 0. Spans are [start, end).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import ClassVar, TypeAlias

import msgspec

from barista_bench.generate.descriptions import is_told_apart
from barista_bench.generate.nearby import (
    contacts_at,
    excludes_action,
    is_going_on,
    is_known_to_touch,
    is_located,
    is_seen_apart,
    lasting_spans,
    moments_of,
    spans_under_way,
    uses_near,
)
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import ActionSpan, ValueSpan, find_overlapping
from barista_bench.scene_graph import Layer
from barista_bench.scene_graph.domain import Side, is_excluded

Truth: TypeAlias = "bool | None"

TELL_APART = "tell {name} from others of its name, by the hand or place that it is in, color or type"
RECORD_HAND = "record any touch of the {side} hand that is missing"
RECORD_HANDS = "record any touch of the hands that is missing"
SAY_STATE = "say in what state {name} is"
MASK_MORE = "draw masks of {count} of the things in view"
RECORD_STATES = "record {count} of the states"
RECORD_ACTIVITIES = "record {count} of the activities"
RECORD_STEPS = "record {count} of the process steps"
"""Annotations that decide a statement, or give more false ones. {name}, {side} and {count} stand for words."""


class Statement(msgspec.Struct, frozen=True, tag=True, tag_field="says"):
    """A claim about a scene. In JSON, `says` is the name of its class.

    `unmet` explains to people why a question cannot rely on the statement if it does not hold. `steps` is the number of
    things that must be seen and combined to decide the statement; for `AllOf` it is the sum over the parts.
    `is_of_touch` means that the statement is only about touches by hands, which can be decided even for stuff in
    several places. `true_needs` and `false_needs` name sections of the graph. These must be complete for a proof that
    the statement is true, or false, because the proof depends on missing records. `is_in_words` means that the domain's
    words decide the statement once an activity is recorded. `deciding_work` is the annotation that decides it, in words
    with {name} or {side}. `further_work` is the annotation that gives more false statements of this kind, with {count}.
    """

    unmet: ClassVar[str] = "an assumption of the question is not proved"
    steps: ClassVar[int] = 1
    is_of_touch: ClassVar[bool] = False
    true_needs: ClassVar[tuple[Layer, ...]] = ()
    false_needs: ClassVar[tuple[Layer, ...]] = ()
    is_in_words: ClassVar[bool] = False
    deciding_work: ClassVar[str] = ""
    further_work: ClassVar[str] = ""

    @property
    def implications(self) -> tuple[Statement, ...]:
        """Return what follows from the statement, as statements about single moments where possible."""
        return (self,)

    def truth(self, scene: Scene) -> Truth:
        """Return True if the graph proves the statement, False if the graph excludes it, else None.

        Incomplete graphs are allowed. The result is cached for the lifetime of the scene, since candidates repeat
        statements.
        """
        if self not in scene.memo:
            truth = self.recorded_truth(scene)
            if truth is not None and scene.coverage.is_partial:
                is_proved = all(map(scene.coverage.covers_layer, self.true_needs if truth else self.false_needs))
                truth = truth if is_proved else None
            scene.memo[self] = truth
        known: Truth = scene.memo[self]
        return known

    def recorded_truth(self, scene: Scene) -> Truth:
        """Return the `truth` under the assumption that the sections that it needs are complete."""
        raise NotImplementedError


def all_of(truths: Iterable[Truth]) -> Truth:
    """Return False if any value is False, else None if any is None, else True.

    >>> all_of([True, None]), all_of([None, False]), all_of([True])
    (None, False, True)
    """
    distinct = set(truths)
    return False if False in distinct else None if None in distinct else True


class Seen(Statement, frozen=True):
    """An object is clearly visible. False: it is not annotated within the domain's `gap` of the frame."""

    unmet: ClassVar[str] = "its object is not clearly visible"

    object: str
    frame: int

    def recorded_truth(self, scene: Scene) -> Truth:
        return scene.is_visible(self.object, self.frame)


class Unique(Statement, frozen=True):
    """An object's name or description fits no other object on any of the frames.

    False: it fits another object, or the graph does not show that it fits no other.
    """

    unmet: ClassVar[str] = "its name fits another thing in the picture too"
    deciding_work: ClassVar[str] = TELL_APART

    object: str
    frames: tuple[int, ...]
    description: str = ""

    def recorded_truth(self, scene: Scene) -> Truth:
        thing = scene.things[self.object]
        called = thing._replace(name=self.description, plain_name=thing.name) if self.description else thing
        return is_told_apart(scene, called, self.frames)


class _Parts(Statement, frozen=True):
    parts: tuple[Statement, ...]

    @property
    def is_of_touch(self) -> bool:  # type: ignore[override]
        return all(part.is_of_touch for part in self.parts)


class AllOf(_Parts, frozen=True):
    """Several statements are all true. False: at least one of them is false."""

    @property
    def implications(self) -> tuple[Statement, ...]:
        return tuple(each for part in self.parts for each in part.implications)

    def recorded_truth(self, scene: Scene) -> Truth:
        return all_of(part.truth(scene) for part in self.parts)


class AnyOf(_Parts, frozen=True):
    """At least one of several statements is true. False: all of them are false."""

    def recorded_truth(self, scene: Scene) -> Truth:
        denied = all_of(None if (truth := part.truth(scene)) is None else not truth for part in self.parts)
        return None if denied is None else not denied


class OnlyDuring(Statement, frozen=True):
    """An activity is in progress in [start, end), and no other activity of the video could have its name."""

    true_needs: ClassVar[tuple[Layer, ...]] = ("activities",)
    unmet: ClassVar[str] = "another activity could be meant"

    action: str
    start: int
    end: int

    def recorded_truth(self, scene: Scene) -> Truth:
        action, domain = ActionSpan(self.action, self.start, self.end), scene.domain
        alike = [a for a in scene.actions if domain.same_verb(action.verb, a.verb)]
        return [a for a in alike if domain.same_noun(action.noun, a.noun)] == [action] or None


class Touches(Statement, frozen=True):
    """A hand is on an object, and has the `contact` if it is given.

    True: the contact is recorded, and the two are clearly visible and not apart. False: hand and object are clearly
    visible and apart from each other, and there is no contact around the frame. Also false: the hand has a contact that
    excludes `contact`.
    """

    is_of_touch: ClassVar[bool] = True

    unmet: ClassVar[str] = "the hand is not clearly visible on it"
    deciding_work: ClassVar[str] = RECORD_HAND
    further_work: ClassVar[str] = MASK_MORE

    side: Side
    object: str
    frame: int
    contact: str | None = None

    def recorded_truth(self, scene: Scene) -> Truth:
        uses = uses_near(scene, self.frame, self.frame + 1, side=self.side, object_id=self.object)
        if not uses:
            hand = scene.hand_id(self.side)
            if hand is None or not scene.is_visible(hand, self.frame) or not scene.is_visible(self.object, self.frame):
                return None
            is_known = is_known_to_touch(scene, self.side, self.frame)
            return False if is_known and scene.are_apart(hand, self.object, self.frame) else None
        values = contacts_at(scene, self.side, self.object, self.frame)
        are_seen = scene.is_hand_visible(self.side, self.frame) and scene.is_visible(self.object, self.frame)
        if not values or not are_seen or not lasting_spans(scene, uses, self.frame):
            return None
        if is_seen_apart(scene, self.side, self.object, self.frame):
            return None
        if self.contact is None or self.contact in values:
            return True
        return False if is_excluded(scene.domain.contacts, self.contact, values) else None


class TouchedDuring(Statement, frozen=True):
    """A hand is on an object at some time in [start, end), for at least the domain's `margin`.

    False: the span has no contact. At each of its moments (four a second or more), the object is clearly visible, and
    every hand in the picture is apart from it.
    """

    is_of_touch: ClassVar[bool] = True
    false_needs: ClassVar[tuple[Layer, ...]] = ("relations",)
    deciding_work: ClassVar[str] = RECORD_HANDS

    object: str
    start: int
    end: int

    def recorded_truth(self, scene: Scene) -> Truth:
        if uses := uses_near(scene, self.start, self.end, object_id=self.object):
            rows = [row for use in uses for row in use.contacts]
            return any(min(row[2], self.end) - max(row[1], self.start) > scene.margin for row in rows) or None
        is_free = all(self._is_free(scene, frame) for frame in moments_of(scene, self.start, self.end))
        return False if is_free else None

    def _is_free(self, scene: Scene, frame: int) -> bool:
        is_seen = scene.is_visible(self.object, frame) is True
        return is_seen and all(scene.are_apart(hand, self.object, frame) for hand in scene.hands_at(frame))


class HasValue(Statement, frozen=True):
    """An attribute has a value.

    False: it has another value that excludes this value, and no activity implies this value. For example, during "Empty
    container", a container that is already empty may look like a container that is being emptied. Near a gradual change
    the statement is undecided, since the moment when a tray became empty cannot be determined.
    So is a value between two gradual values, during the first: if a mug is empty and then full, and no activity fills
    it, the graph does not say from when on it is being filled. While something else is going on, such as a machine that
    extracts, it does not say either whether the mug is still empty.
    """

    deciding_work: ClassVar[str] = SAY_STATE
    further_work: ClassVar[str] = RECORD_STATES

    object: str
    type: str
    value: str
    frame: int

    def recorded_truth(self, scene: Scene) -> Truth:
        if not scene.is_settled(self.object, self.type, self.frame):
            return None
        spans = lasting_spans(scene, scene.values_of(self.object, self.type), self.frame)
        relations = [scene.domain.relation_of(self.type, span.value, self.value) for span in spans]
        near = self.frame - scene.margin, self.frame + scene.margin + 1
        is_unclear = any(first in spans and self._leaves_out_value(scene, first, last) for first, last in scene.changes)
        if any(span.value == self.value for span in spans) or "synonym" in relations:
            others = (span.value for span in find_overlapping(scene.values, *near) if span.thing.id != self.object)
            return None if is_unclear and any(value in scene.domain.ongoing for value in others) else True
        if is_going_on(scene, self.value, self.object, *near):
            return None
        if is_unclear and self.value not in scene.domain.gradual.get(self.type, ()):
            return None
        return False if "exclusive" in relations else None

    def _leaves_out_value(self, scene: Scene, first: ValueSpan, last: ValueSpan) -> bool:
        """Return whether an object passes from a gradual value to another, and nothing says what is between them."""
        gradual, relation_of = scene.domain.gradual.get(self.type, ()), scene.domain.relation_of
        if first.value not in gradual or last.value not in gradual:
            return False
        values = (v for v in scene.domain.ongoing if relation_of(self.type, v, first.value) == "exclusive")
        return not any(is_going_on(scene, value, self.object, first.start, last.start + 1) for value in values)


class Changes(Statement, frozen=True):
    """In [start, end) an attribute changes from `before` to `after`. Equal values mean that it does not change.

    False: the value at either end of the span is excluded, or the value changes although it should stay.
    """

    steps: ClassVar[int] = 2
    true_needs: ClassVar[tuple[Layer, ...]] = ("attributes",)
    deciding_work: ClassVar[str] = SAY_STATE

    object: str
    type: str
    before: str
    after: str
    start: int
    end: int

    @property
    def implications(self) -> tuple[Statement, ...]:
        first = HasValue(self.object, self.type, self.before, self.start)
        return first, HasValue(self.object, self.type, self.after, self.end - 1)

    def recorded_truth(self, scene: Scene) -> Truth:
        first, last = (statement.truth(scene) for statement in self.implications)
        if first is not True or last is not True:
            return all_of([first, last])
        inside = [c for c in scene.changes if c[1].thing.id == self.object and self.start < c[1].start < self.end]
        count = sum(change[1].type == self.type for change in inside)
        return count == (self.before != self.after) or None


class Located(Statement, frozen=True):
    """An object is in a spatial relation to another object.

    False: it has another relation to the same object that excludes this relation. Also false: the two objects are
    clearly visible and apart, and no recorded relation joins them.
    """

    deciding_work: ClassVar[str] = "say where {name} is"

    object: str
    predicate: str
    other: str
    frame: int

    def recorded_truth(self, scene: Scene) -> Truth:
        return is_located(scene, self.object, self.predicate, self.other, self.frame)


class Does(Statement, frozen=True):
    """An action is in progress at a frame, according to the graph's activities.

    False: the action is not in progress within the domain's `gap` of the frame, and all activities at the frame have
    other objects, or verbs that exclude its verb.
    """

    false_needs: ClassVar[tuple[Layer, ...]] = ("activities",)
    is_in_words: ClassVar[bool] = True
    further_work: ClassVar[str] = RECORD_ACTIVITIES

    action: str
    frame: int

    def recorded_truth(self, scene: Scene) -> Truth:
        current = spans_under_way(scene, scene.actions, self.frame)
        if any(action.name == self.action for action in current):
            return True
        gap = scene.frames_in(scene.domain.lengths.gap)
        near = [a for a in scene.actions if a.start - gap <= self.frame < a.end + gap]
        return False if current and all(excludes_action(scene, self.action, a.name, self.frame) for a in near) else None


class DoesNext(Statement, frozen=True):
    """An action is the first of the actions that begin after a frame. False: the first is clearly another action."""

    true_needs: ClassVar[tuple[Layer, ...]] = ("activities",)
    false_needs: ClassVar[tuple[Layer, ...]] = ("activities",)
    is_in_words: ClassVar[bool] = True

    action: str
    frame: int

    def recorded_truth(self, scene: Scene) -> Truth:
        later = [action for action in scene.actions if action.start > self.frame]
        if not later:
            return None
        first = [action for action in later if action.start <= later[0].start + scene.margin]
        if len(first) == 1 and first[0].name == self.action:
            return True
        is_other = all(
            excludes_action(scene, self.action, action.name, action.start + scene.margin) for action in first
        )
        return False if is_other else None


class Precedes(Statement, frozen=True):
    """Hands first touch these objects in this order.

    False: two of them are clearly first touched in the opposite order.
    """

    is_of_touch: ClassVar[bool] = True
    steps: ClassVar[int] = 2
    true_needs: ClassVar[tuple[Layer, ...]] = ("relations",)
    false_needs: ClassVar[tuple[Layer, ...]] = ("relations",)

    objects: tuple[str, ...]
    frame: int

    def recorded_truth(self, scene: Scene) -> Truth:
        first = {use.thing.id: use for use in reversed(scene.uses)}
        uses = [first[item] for item in self.objects if item in first and first[item].start <= self.frame]
        if len(uses) < len(self.objects) or not all(use.begins or use.start == 0 for use in uses):
            return None
        gaps = [later.start - earlier.start for earlier, later in pairwise(uses)]
        if all(gap > scene.margin for gap in gaps):
            return True
        return False if any(gap < -scene.margin for gap in gaps) else None
