"""HanDyVQA's clips of a scene, and the statements of its choices that `statements.py` lacks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import ClassVar, NamedTuple

from barista_bench.benchmarks.handyvqa.choice_tasks import OptionsTask
from barista_bench.benchmarks.handyvqa.release import HALF_WINDOW_S
from barista_bench.generate import nearby, statements
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import SIDES, HandUse, find_overlapping, noun_of
from barista_bench.media.frame_choice import evenly_spaced
from barista_bench.scene_graph import Layer, Rle
from barista_bench.scene_graph.domain import Side, is_excluded

SHOWN = OptionsTask.sampling.frames or 16
"""Number of frames of a clip that the tasks show."""
_CLOSE_S = 1e-6
"""Tolerance of frame times in seconds, as in `media.frame_choice`."""


class ClipWindow(NamedTuple):
    """Frames [start, stop) around `centre`, and those frames that are shown, in order."""

    centre: int
    start: int
    stop: int
    shown: tuple[int, ...]


def clip_around(scene: Scene, centre: int) -> ClipWindow:
    """Return the clip of all frames of the video within 2.5 s of a frame."""
    half = (HALF_WINDOW_S + _CLOSE_S) * scene.fps
    start = max(0, math.ceil(centre - half))
    stop = min(scene.frame_count, math.floor(centre + half) + 1)
    return ClipWindow(centre, start, stop, tuple(start + index for index in evenly_spaced(stop - start, SHOWN)))


def clip_halfway(scene: Scene, frame: int) -> tuple[ClipWindow, int] | None:
    """Return a clip whose middle shown frame is a given frame or its neighbour, and this shown frame.

    Return None near the video's ends, where the clip is cut and no clip has the frame in its middle.
    """
    step = math.ceil(2 * HALF_WINDOW_S * scene.fps / (SHOWN - 1))
    clips = [clip_around(scene, c) for c in range(max(0, frame - step), min(scene.frame_count, frame + step + 1))]
    rows = [(abs(index - frame), abs(clip.centre - frame), index, clip) for clip in clips for index in clip.shown]
    rows = [row for row in rows if row[0] <= step // 2 and _is_in_middle(row[2], row[3])]
    return (min(rows)[3], min(rows)[2]) if rows else None


def _is_in_middle(frame: int, clip: ClipWindow) -> bool:
    """Return whether no other shown frame is clearly nearer to the middle of the clip. The video's ends cut clips."""
    return abs(2 * frame - clip.start - clip.stop + 1) <= math.ceil((clip.stop - clip.start) / (SHOWN - 1))


HandAction = tuple[str, str]
"""The action of a hand: (contact, object id)."""


class ClearlyNamed(statements.Unique, frozen=True):
    """An object's name identifies it on each of the frames."""

    unmet: ClassVar[str] = "a name could mean several things in view"


class HandAtWork(statements.Statement, frozen=True):
    """On at least two of the frames, a hand is clearly visible, and so is an object that the action's noun can name."""

    unmet: ClassVar[str] = "no hand at work is clearly visible"
    is_in_words: ClassVar[bool] = True

    action: str
    frames: tuple[int, ...]

    def recorded_truth(self, scene: Scene) -> statements.Truth:
        noun = noun_of(self.action)
        thing_ids = [thing.id for thing in scene.things.values() if scene.domain.same_noun(noun, thing.noun)]
        with_hand = [frame for frame in self.frames if any(scene.is_hand_visible(side, frame) for side in SIDES)]
        clear_frames = [frame for frame in with_hand if any(scene.is_visible(item, frame) for item in thing_ids)]
        return True if len(clear_frames) >= 2 else None


class TouchedInClip(statements.Statement, frozen=True):
    """A hand is on an object in [start, end).

    True: one of the frames `shown` has a recorded contact with a clearly visible hand, and two of them show the object
    clearly.

    False: no contact is recorded in the span or near it. The object is clearly visible at half of the span's moments
    (four a second) or more. On every frame with the object in the picture, all visible hands are apart from it.
    """

    is_of_touch: ClassVar[bool] = True
    false_needs: ClassVar[tuple[Layer, ...]] = ("relations",)
    deciding_work: ClassVar[str] = statements.RECORD_HANDS
    further_work: ClassVar[str] = statements.MASK_MORE

    object: str
    start: int
    end: int
    shown: tuple[int, ...]

    def recorded_truth(self, scene: Scene) -> statements.Truth:
        if uses := nearby.uses_near(scene, self.start, self.end, object_id=self.object):
            is_clear = sum(scene.is_visible(self.object, frame) is True for frame in self.shown) >= 2
            return True if is_clear and any(_is_on(scene, use, frame) for use in uses for frame in self.shown) else None
        if not all(self._is_free(scene, frame) for frame in range(self.start, self.end)):
            return None
        moments = nearby.moments_of(scene, self.start, self.end)
        seen = [frame for frame in moments if scene.is_visible(self.object, frame)]
        return False if 2 * len(seen) >= len(moments) else None

    def _is_free(self, scene: Scene, frame: int) -> bool:
        visible = scene.is_visible(self.object, frame)
        if visible is False:
            return True
        # If an object is hardly visible, a hand may be on a part of it that is outside the picture.
        hands = scene.hands_at(frame)
        is_whole = visible is True or len(hands) == len(SIDES)
        return is_whole and all(scene.are_apart(hand, self.object, frame) for hand in hands)


class NothingElseTouched(statements.Statement, frozen=True):
    """In [start, end), no hand is recorded on any object except these objects, their wholes and their parts.

    Also, no other object seems to be touched. An object seems to be touched if a hand is in front of it or at it on
    half of the frames `shown` or more. Objects that are recorded as in, on or at one of these objects are exempt.
    """

    true_needs: ClassVar[tuple[Layer, ...]] = ("relations",)
    unmet: ClassVar[str] = "hands touch something else near the clip, or seem to"
    objects: tuple[str, ...]
    start: int
    end: int
    shown: tuple[int, ...]

    def recorded_truth(self, scene: Scene) -> statements.Truth:
        touched = {use.thing.id for use in nearby.uses_near(scene, self.start, self.end)}
        touched |= {item for item, start, end in scene.hand_relations if start < self.end and end > self.start}
        related = {item for item in scene.things if any(scene.is_part_of_other(item, other) for other in self.objects)}
        others = [item for item in scene.things if item not in related | {*self.objects}]
        pairs = [{span.thing.id, span.other.id} for span in find_overlapping(scene.places, self.start, self.end)]
        joined = {item for pair in pairs if pair & set(self.objects) for item in pair}
        return not any(item in touched or (item not in joined and self._seems_touched(scene, item)) for item in others)

    def _seems_touched(self, scene: Scene, item: str) -> bool:
        frames = [frame for frame in self.shown if scene.is_annotated(item, frame)]
        near = [
            frame for frame in frames if not all(scene.are_apart(hand, item, frame) for hand in scene.hands_at(frame))
        ]
        return 2 * len(near) >= len(self.shown)


class Masked(statements.Statement, frozen=True):
    """There are at least two frames, and the annotations of the objects on the frames have readable masks."""

    unmet: ClassVar[str] = "too few frames show all of the answer clearly, with masks"
    objects: tuple[str, ...]
    frames: tuple[int, ...]

    def recorded_truth(self, scene: Scene) -> statements.Truth:
        annotated = (item for frame in self.frames for item in scene.video.instances(frame))
        rles = scene.video.rles([item for item in annotated if item.object.id in self.objects])
        return len(self.frames) >= 2 and all(isinstance(rle, Rle) for rle in rles)


class HandIsOn(statements.Statement, frozen=True):
    """A hand is on an object at a frame. If `contact` is given, the hand has this contact, as in `Touches`.

    The hand may cover the object at the frame if the object is clearly visible on two or more of the frames `shown`.
    Also false: there is no contact near the frame, the object is clearly visible, and the hand is outside the picture
    or apart from the object.
    """

    is_of_touch: ClassVar[bool] = True
    deciding_work: ClassVar[str] = statements.RECORD_HAND
    further_work: ClassVar[str] = statements.MASK_MORE

    side: Side
    object: str
    contact: str | None
    frame: int
    shown: tuple[int, ...]

    def recorded_truth(self, scene: Scene) -> statements.Truth:
        near_uses = nearby.uses_near(scene, self.frame, self.frame + 1, side=self.side, object_id=self.object)
        uses, hand = nearby.lasting_spans(scene, near_uses, self.frame), scene.hand_id(self.side)
        values = nearby.contacts_at(scene, self.side, self.object, self.frame)
        is_free = not near_uses and nearby.is_known_to_touch(scene, self.side, self.frame)
        if is_free and hand is not None and _is_elsewhere(scene, self.object, hand, self.frame):
            return False
        if not values or not any(_is_on(scene, use, self.frame) for use in uses):
            return statements.Touches(self.side, self.object, self.frame, self.contact).truth(scene)
        if sum(scene.is_visible(self.object, frame) is True for frame in self.shown) < 2:
            return None
        if self.contact is None or self.contact in values:
            return True
        return False if is_excluded(scene.domain.contacts, self.contact, values) else None


class Placed(statements.Located, frozen=True):
    """An object is in a spatial relation to another object, as in `Located`.

    Also false: no recorded relation joins the two objects, the first is clearly visible, and the second is outside the
    picture or apart from the first.
    """

    def recorded_truth(self, scene: Scene) -> statements.Truth:
        located = super().recorded_truth(scene)
        if located is not None or scene.is_part_of_other(self.object, self.other):
            return located
        is_joined = bool(nearby.places_near(scene, self.object, self.other, self.frame))
        is_joined = is_joined or not scene.coverage.covers_layer("relations", self.frame, self.frame + 1)
        return False if not is_joined and _is_elsewhere(scene, self.object, self.other, self.frame) else None


def _is_elsewhere(scene: Scene, item: str, other: str, frame: int) -> bool:
    """Return whether an object is clearly visible, and another object is outside the picture or apart from it."""
    if scene.is_visible(item, frame) is not True:
        return False
    return scene.are_apart(item, other, frame) or scene.is_visible(other, frame) is False


def _is_on(scene: Scene, use: HandUse, frame: int) -> bool:
    """Return whether a contact is recorded at a frame and its hand is clearly visible and not apart from the object."""
    is_recorded = any(start <= frame < end for _, start, end in use.contacts)
    is_seen = scene.is_hand_visible(use.side, frame) is True and scene.is_annotated(use.thing.id, frame)
    return is_recorded and is_seen and not nearby.is_seen_apart(scene, use.side, use.thing.id, frame)


class HandsDo(statements.Statement, frozen=True):
    """The action of each hand at a frame. None stands for a hand that touches no visible object.

    The claim that a hand has no action is true if the hand has no contact near the frame, and is clearly visible and
    apart from all objects: a hand outside the picture may hold something. False: the claim about one of the hands is
    excluded.
    """

    is_of_touch: ClassVar[bool] = True
    deciding_work: ClassVar[str] = statements.RECORD_HANDS
    further_work: ClassVar[str] = statements.MASK_MORE

    left: HandAction | None
    right: HandAction | None
    frame: int
    shown: tuple[int, ...]

    def recorded_truth(self, scene: Scene) -> statements.Truth:
        return statements.all_of([self._holds(scene, "left", self.left), self._holds(scene, "right", self.right)])

    def _holds(self, scene: Scene, side: Side, action: HandAction | None) -> statements.Truth:
        if action is not None:
            return HandIsOn(side, action[1], action[0], self.frame, self.shown).truth(scene)
        if near := nearby.uses_near(scene, self.frame, self.frame + 1, side=side):
            now = [use for use in near if nearby.contacts_at(scene, side, use.thing.id, self.frame)]
            return False if any(_is_on(scene, use, self.frame) for use in now) else None
        hand = scene.hand_id(side)
        if hand is None or not scene.is_visible(hand, self.frame):
            return None
        if not nearby.is_known_to_touch(scene, side, self.frame):
            return None
        others = [item for item in scene.boxes(self.frame) if item in scene.things]
        return True if all(scene.are_apart(hand, item, self.frame) for item in others) else None


def uses_in_claim(scene: Scene, statement: statements.Statement) -> list[HandUse]:
    """Return the uses by hands that a statement about one moment tells."""
    match statement:
        case HandsDo(left, right, frame, _):
            told = {(side, action[1]) for side, action in zip(SIDES, (left, right), strict=True) if action}
        case HandIsOn(side, object_id, _, frame, _):
            told = {(side, object_id)}
        case statements.Does(action, frame) if nearby.is_contact(scene, action):
            told = {(side, thing.id) for side in SIDES for thing in scene.things_done_to(action)}
        case _:
            return []
    return [use for use in find_overlapping(scene.uses, frame, frame + 1) if (use.side, use.thing.id) in told]


class StateSequence(statements.Statement, frozen=True):
    """The successive values of an attribute in [start, end).

    The values are known if the span has records of one dimension without a gap, and each value is visible on two or
    more of the frames `shown`. False: a claimed value is excluded at the beginning, at the end or throughout, or a
    value that is claimed to stay changes. Undecided: a sequence only omits a value, an activity is just causing the
    last value (`is_going_on`), or a change near the beginning or the end is gradual.
    """

    true_needs: ClassVar[tuple[Layer, ...]] = ("attributes",)
    false_needs: ClassVar[tuple[Layer, ...]] = ("attributes",)
    deciding_work: ClassVar[str] = statements.SAY_STATE
    further_work: ClassVar[str] = statements.RECORD_STATES

    object: str
    type: str
    values: tuple[str, ...]
    start: int
    end: int
    shown: tuple[int, ...]

    def recorded_truth(self, scene: Scene) -> statements.Truth:
        recorded = recorded_sequence(scene, self.object, self.type, self.start, self.end, self.shown)
        if recorded is None:
            return None
        relations = [[scene.domain.relation_of(self.type, a, b) for b in recorded] for a in self.values]
        if len(recorded) == len(self.values) and all(row[index] == "synonym" for index, row in enumerate(relations)):
            return True
        ends = relations[0][0], relations[-1][-1]
        is_never = any(all(relation == "exclusive" for relation in row) for row in relations)
        if nearby.is_going_on(scene, self.values[-1], self.object, self.end - scene.margin, self.end):
            return False if ends[0] == "exclusive" else None
        does_change = len(self.values) == 1 and "exclusive" in relations[0]
        return False if "exclusive" in ends or is_never or does_change else None


def recorded_sequence(
    scene: Scene, object_id: str, kind: str, start: int, end: int, shown: Sequence[int]
) -> tuple[str, ...] | None:
    """Return the successive values of an attribute in [start, end), or None if the graph leaves some of them open."""
    gap = scene.frames_in(scene.domain.lengths.gap)
    spans = sorted(find_overlapping(scene.values_of(object_id, kind), start, end), key=lambda span: span.start)
    dimensions = scene.domain.attributes[kind].groups if kind in scene.domain.attributes else ()
    if not any({span.value for span in spans} <= {*chain.from_iterable(groups)} for groups in dimensions):
        return None
    if not all(scene.is_settled(object_id, kind, frame) for frame in (start, end - 1)):
        return None
    if not spans or spans[0].start - start > gap or end - spans[-1].end > gap:
        return None
    for before, after in pairwise(spans):
        is_change = scene.domain.relation_of(kind, before.value, after.value) != "synonym"
        if not is_change or not -scene.margin <= after.start - before.end <= gap:
            return None
    for span in spans:
        value_frames = {frame for frame in shown if span.start + scene.margin <= frame < span.end - scene.margin}
        value_frames |= {frame for frame in (shown[0], shown[-1]) if span.start <= frame < span.end}
        if sum(scene.is_visible(object_id, frame) is True for frame in value_frames) < 2:
            return None
    return tuple(span.value for span in spans)
