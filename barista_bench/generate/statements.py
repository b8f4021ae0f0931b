"""Statements about a scene, and whether they hold: yes, no, or not to be known from the graph.

A question is decidable where its right answer is a statement that holds and each wrong one a statement that does not.
That a graph records nothing is no proof: what does not hold is excluded by something that is recorded. Each statement
says by what. All are plain records, so that a written item carries its proof along.

Frames count from 0; spans are [start, end).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import ClassVar, TypeAlias

import msgspec

from barista_bench.generate.scene import Scene, cached_by_scene
from barista_bench.generate.spans import ActionSpan, HandUse, PlaceSpan, SpanT, noun_of, overlapping, verb_of
from barista_bench.scene_graph import Layer
from barista_bench.scene_graph.domain import Side, is_excluded

Truth: TypeAlias = "bool | None"


class Statement(msgspec.Struct, frozen=True, tag=True, tag_field="says"):
    """One thing that can be said. In JSON, `says` is the name of its class.

    `unmet` says to people why nothing can be asked that takes the statement for granted where it does not hold.
    `steps` are the things that must be seen and put together to tell it, of `AllOf` those of its parts.
    `true_needs` and `false_needs` are sections of the graph that must leave nothing out for it to be true, or false:
    the proof rests on what they do not say.
    """

    unmet: ClassVar[str] = "what the question takes for granted is not proved"
    steps: ClassVar[int] = 1
    true_needs: ClassVar[tuple[Layer, ...]] = ()
    false_needs: ClassVar[tuple[Layer, ...]] = ()

    def truth(self, scene: Scene) -> Truth:
        """True where the graph proves it, False where it excludes it, None otherwise; of an incomplete graph too.

        Kept as long as the scene: candidates say the same things again, and so does what they wait for."""
        if self not in scene.memo:
            truth = self.recorded_truth(scene)
            if truth is not None and scene.coverage.is_partial:
                is_proved = all(map(scene.coverage.covers_layer, self.true_needs if truth else self.false_needs))
                truth = truth if is_proved else None
            scene.memo[self] = truth
        known: Truth = scene.memo[self]
        return known

    def recorded_truth(self, scene: Scene) -> Truth:
        """The `truth` if the sections that it needs leave nothing out."""
        raise NotImplementedError


def all_of(truths: Iterable[Truth]) -> Truth:
    """False if any is, else None if any is.

    >>> all_of([True, None]), all_of([None, False]), all_of([True])
    (None, False, True)
    """
    distinct = set(truths)
    return False if False in distinct else None if None in distinct else True


class Seen(Statement, frozen=True):
    """An object is well to be seen. False: not annotated within the domain's `gap` of the frame."""

    unmet: ClassVar[str] = "what it is about is not well to be seen"

    object: str
    frame: int

    def recorded_truth(self, scene: Scene) -> Truth:
        return scene.is_visible(self.object, self.frame)


class Unique(Statement, frozen=True):
    """A thing's name fits nothing else on any of the frames. False: it does."""

    unmet: ClassVar[str] = "its name fits another thing in the picture too"

    object: str
    frames: tuple[int, ...]

    def recorded_truth(self, scene: Scene) -> Truth:
        return scene.is_unique(scene.things[self.object], self.frames)


class AllOf(Statement, frozen=True):
    """Several statements at once. False: one of them is."""

    parts: tuple[Statement, ...]

    def recorded_truth(self, scene: Scene) -> Truth:
        return all_of(part.truth(scene) for part in self.parts)


class AnyOf(Statement, frozen=True):
    """At least one of several statements. False: all of them are."""

    parts: tuple[Statement, ...]

    def recorded_truth(self, scene: Scene) -> Truth:
        denied = all_of(None if (truth := part.truth(scene)) is None else not truth for part in self.parts)
        return None if denied is None else not denied


class OnlyDuring(Statement, frozen=True):
    """An activity goes on in [start, end), and nothing else in the video could be called so."""

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
    """A hand is on an object, and does `contact` to it where that is given: recorded, and not seen to be apart from it.

    False: hand and object are well to be seen, apart from each other, and there is no contact around the frame; or the
    hand does what excludes `contact`.
    """

    unmet: ClassVar[str] = "the hand is not plain to be seen on it"

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
        values = {value for use in uses for value, start, end in use.contacts if start <= self.frame < end}
        are_seen = scene.is_hand_visible(self.side, self.frame) and scene.is_visible(self.object, self.frame)
        if not values or not are_seen or not lasting_spans(scene, uses, self.frame):
            return None
        if is_seen_apart(scene, self.side, self.object, self.frame):
            return None
        if self.contact is None or self.contact in values:
            return True
        return False if is_excluded(scene.domain.contacts, self.contact, values) else None


class TouchedDuring(Statement, frozen=True):
    """Some hand is on an object at some time in [start, end), for at least the domain's `margin`.

    False: the object is well to be seen at four moments a second or more of the span, there is no contact in it, and at
    each of these moments every hand in the picture is apart from it.
    """

    false_needs: ClassVar[tuple[Layer, ...]] = ("relations",)

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
    """An attribute has a value. False: it has one then that excludes it, and nobody does what goes on with the value:
    while an "Empty container" is recorded, a container that is empty may be taken for one that is being emptied.
    Neither near a change by degrees: when a tray has become empty nobody can tell."""

    object: str
    type: str
    value: str
    frame: int

    def recorded_truth(self, scene: Scene) -> Truth:
        if not scene.is_settled(self.object, self.type, self.frame):
            return None
        spans = lasting_spans(scene, scene.values_of(self.object, self.type), self.frame)
        relations = [scene.domain.relation_of(self.type, span.value, self.value) for span in spans]
        if any(span.value == self.value for span in spans) or "synonym" in relations:
            return True
        if goes_on(scene, self.value, self.object, self.frame - scene.margin, self.frame + scene.margin + 1):
            return None
        return False if "exclusive" in relations else None


class Changes(Statement, frozen=True):
    """In [start, end) an attribute goes from `before` to `after`; `before` throughout where both are the same.

    False: the value at either end of the span is excluded, or it changes where it is said to stay.
    """

    steps: ClassVar[int] = 2
    true_needs: ClassVar[tuple[Layer, ...]] = ("attributes",)

    object: str
    type: str
    before: str
    after: str
    start: int
    end: int

    def recorded_truth(self, scene: Scene) -> Truth:
        first = HasValue(self.object, self.type, self.before, self.start).truth(scene)
        last = HasValue(self.object, self.type, self.after, self.end - 1).truth(scene)
        if first is not True or last is not True:
            return all_of([first, last])
        inside = [c for c in scene.changes if c[1].thing.id == self.object and self.start < c[1].start < self.end]
        count = sum(change[1].type == self.type for change in inside)
        return count == (self.before != self.after) or None


class Located(Statement, frozen=True):
    """An object stands in a spatial relation to another.

    False: it stands then in one to the same other that excludes it; or the two, both well to be seen, are apart, and
    nothing that is recorded joins them.
    """

    object: str
    predicate: str
    other: str
    frame: int

    def recorded_truth(self, scene: Scene) -> Truth:
        near_places = places_near(scene, self.object, self.other, self.frame)
        places = lasting_spans(scene, near_places, self.frame)
        if any((s.thing.id, s.predicate) == (self.object, self.predicate) for s in places):
            return True
        if is_excluded(scene.domain.places, self.predicate, {s.predicate for s in places if s.thing.id == self.object}):
            return False
        are_seen = all(scene.is_visible(item, self.frame) for item in (self.object, self.other))
        is_joined = bool(near_places) or scene.is_part_of_other(self.object, self.other)
        is_free = are_seen and not is_joined and scene.coverage.covers_layer("relations", self.frame, self.frame + 1)
        return False if is_free and scene.are_apart(self.object, self.other, self.frame) else None


class Does(Statement, frozen=True):
    """An action goes on at a frame, by the graph's activities.

    False: the activities there are others, all of whose verbs exclude its verb, or that are about other things, and it
    does not go on within the domain's `gap` of the frame either.
    """

    false_needs: ClassVar[tuple[Layer, ...]] = ("activities",)

    action: str
    frame: int

    def recorded_truth(self, scene: Scene) -> Truth:
        current = [a for a in scene.actions if a.start + scene.margin <= self.frame < a.end - scene.margin]
        if any(action.name == self.action for action in current):
            return True
        gap = scene.frames_in(scene.domain.lengths.gap)
        near = [a for a in scene.actions if a.start - gap <= self.frame < a.end + gap]
        return False if current and all(excludes_action(scene, self.action, a.name, self.frame) for a in near) else None


class DoesNext(Statement, frozen=True):
    """Of the actions that begin after a frame an action is the first. False: the first is clearly another one."""

    true_needs: ClassVar[tuple[Layer, ...]] = ("activities",)
    false_needs: ClassVar[tuple[Layer, ...]] = ("activities",)

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
    """Hands first get to these objects in this order. False: two of them are clearly got to the other way round."""

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


def uses_near(
    scene: Scene, start: int, end: int, *, side: Side | None = None, object_id: str | None = None
) -> list[HandUse]:
    """Uses by hands in [start, end) or within the domain's `margin` of it, by time; of one hand, to one object, where
    these are given."""
    near = overlapping(scene.uses, start - scene.margin, end + scene.margin)
    return [use for use in near if side in (None, use.side) and object_id in (None, use.thing.id)]


def is_seen_apart(scene: Scene, side: Side, object_id: str, frame: int) -> bool:
    """Whether a hand and an object are clearly apart in the picture, whatever is recorded of them."""
    hand = scene.hand_id(side)
    return hand is not None and scene.are_apart(hand, object_id, frame)


def is_known_to_touch(scene: Scene, side: Side, frame: int) -> bool:
    """Whether all that a hand touches around a frame is recorded, as far as anything is annotated there."""
    annotated = scene.coverage.annotated_frames(frame - scene.margin, frame + scene.margin + 1).tolist()
    return all(scene.coverage.covers_hand(scene.hand_id(side), at, at + 1) for at in {frame, *annotated})


def lasting_spans(scene: Scene, spans: Iterable[SpanT], frame: int) -> list[SpanT]:
    """Spans that hold on a frame and the domain's `margin` around it, as far as the video is annotated there."""
    near: list[int] = scene.coverage.annotated_frames(frame - scene.margin, frame + scene.margin + 1).tolist()
    low, high = min(near, default=frame), max(near, default=frame)
    return [span for span in spans if span.start <= low and high < span.end]


def places_near(scene: Scene, first: str, second: str, frame: int) -> list[PlaceSpan]:
    """Places recorded between two objects, either way round, at a frame or within the domain's `margin` of it."""
    near = overlapping(scene.places, frame - scene.margin, frame + scene.margin + 1)
    return [span for span in near if {span.thing.id, span.other.id} == {first, second}]


def goes_on(scene: Scene, value: str, object_id: str, start: int, end: int) -> bool:
    """Whether an activity or step in [start, end) does to a thing what goes on while it has a value, told by its verb.

    True too where activities may be unrecorded.
    """
    noun, verbs = scene.things[object_id].noun, scene.domain.ongoing.get(value, ())
    if verbs and not scene.coverage.covers_layer("activities", start, end):
        return True
    rows = overlapping((*scene.actions, *scene.steps), start, end)
    return any(row.verb in verbs and scene.domain.same_noun(row.noun, noun) for row in rows)


def moments_of(scene: Scene, start: int, end: int) -> Sequence[int]:
    """Frames of [start, end), four a second; the same ones of a video whichever span they are in. Of a span too short
    for that, the one halfway."""
    step, first, stop = scene.frames_in(0.25), max(0, start), min(end, scene.frame_count)
    return range(-(-first // step) * step, stop, step) or [(first + stop) // 2][: stop - first]


def excludes_action(scene: Scene, action: str, recorded: str, frame: int) -> bool:
    """Whether an activity that is recorded at a frame excludes that another, `action`, describes what goes on there.

    It does where their verbs do, or where one verb is said of two things, neither of which is the other's (a carton is
    opened by its lid); not where the verb is a contact (`hold`) that some hand has then with something that the noun
    could name: both go on.
    """
    verbs, nouns = (verb_of(action), verb_of(recorded)), (noun_of(action), noun_of(recorded))
    is_contact = verbs[0] in {words.do for words in scene.domain.contacts.values()}
    touched = [use.thing.noun for use in uses_near(scene, frame, frame + 1)] if is_contact else []
    if any(scene.domain.same_noun(nouns[0], noun) for noun in touched):
        return False
    if verbs[0] == verbs[1]:
        return not (scene.domain.same_noun(*nouns) or _belongs(scene, *nouns) or _belongs(scene, *reversed(nouns)))
    return not scene.domain.same_verb(*verbs)


@cached_by_scene
def _belongs(scene: Scene, noun: str, owner: str) -> bool:
    """Whether something that a noun could name is a part of, or belongs to, something that another could."""
    nouns = {item: thing.noun for item, thing in scene.things.items()}
    return any(
        scene.domain.same_noun(noun, nouns[item]) and any(scene.domain.same_noun(owner, nouns[o]) for o in owners)
        for item, owners in ((item, scene.owners.get(item, frozenset()) & nouns.keys()) for item in nouns)
    )
