"""The statements of EgoCoT-Bench's questions: quarters of the frame, next events, steps, causes.

Frames are counted from 0. Spans are [start, end).
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from barista_bench.generate.nearby import excludes_action, spans_under_way
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import ActionSpan, find_overlapping, noun_of, verb_of
from barista_bench.generate.statements import (
    RECORD_ACTIVITIES,
    RECORD_HAND,
    RECORD_STATES,
    RECORD_STEPS,
    SAY_STATE,
    Changes,
    Does,
    DoesNext,
    HasValue,
    Seen,
    Statement,
    Touches,
    Truth,
)
from barista_bench.generate.visibility import cached_by_scene
from barista_bench.scene_graph import Layer
from barista_bench.scene_graph.domain import Side

Place: TypeAlias = Literal[
    "upper left", "upper right", "lower left", "lower right",
    "upper center", "middle left", "middle right", "lower center",
]  # fmt: skip
PLACES: tuple[tuple[Place, ...], ...] = (
    ("upper left", "upper right", "lower left", "lower right"),
    ("upper center", "middle left", "middle right", "lower center"),
)
"""The quarters of the frame, and the middle parts of its edges."""
Direction: TypeAlias = Literal[
    "higher up and further left", "higher up and further right", "lower down and further left",
    "lower down and further right", "higher up", "further left", "further right", "lower down",
]  # fmt: skip
DIRECTIONS: tuple[tuple[Direction, ...], ...] = (
    ("higher up and further left", "higher up and further right", "lower down and further left",
     "lower down and further right"),
    ("higher up", "further left", "further right", "lower down"),
)  # fmt: skip
"""The diagonal directions in the picture, and the directions along its edges."""
SLANT = 0.15
"""A direction is along an edge if the way across is at most this fraction of the way along."""
OFF_CENTRE = 0.12
"""A centre is on one side if it is at least this fraction of the frame's width or height from the frame's middle."""
EDGE = 0.3
"""A centre near a middle line is at an edge if it is at least this fraction from the frame's middle."""
CUT = 0.01
"""An object that the frame's edge cuts has a place only if its box covers at least this fraction of the frame."""


class InPart(Statement, frozen=True):
    """The centre of an object's box is in a part of the frame, clear of the dividing lines.

    False: the centre is clearly in another part of the same row of `PLACES`.
    """

    object: str
    part: Place
    frame: int

    @property
    def implications(self) -> tuple[Statement, ...]:
        return self, Seen(self.object, self.frame)

    def recorded_truth(self, scene: Scene) -> Truth:
        part = part_of_frame(scene, self.object, self.frame)
        is_decided = any(part in row and self.part in row for row in PLACES)
        return part == self.part if is_decided else None


class LiesTowards(Statement, frozen=True):
    """An object at `frame` lies in a direction from another object at `since`, or from its own place at `since`.

    False: it clearly lies in another direction of the same row of `DIRECTIONS`.
    """

    steps: ClassVar[int] = 2  # two places are compared

    object: str
    frame: int
    direction: Direction
    other: str
    since: int

    @property
    def implications(self) -> tuple[Statement, ...]:
        """Two places at one moment give a direction. All three claim that the objects are visible, so one is asked."""
        visible = (Seen(self.object, self.frame), Seen(self.other, self.since)) if self.frame == self.since else ()
        return self, *visible

    def recorded_truth(self, scene: Scene) -> Truth:
        direction = direction_between(scene, self.object, self.frame, self.other, self.since)
        is_decided = any(direction in row and self.direction in row for row in DIRECTIONS)
        return direction == self.direction if is_decided else None


class AwayFrom(Statement, frozen=True):
    """A hand is clearly not on an object, because the record excludes a touch. False: the hand touches the object."""

    is_of_touch: ClassVar[bool] = True
    deciding_work: ClassVar[str] = RECORD_HAND

    side: Side
    object: str
    frame: int

    def recorded_truth(self, scene: Scene) -> Truth:
        touches = Touches(self.side, self.object, self.frame).truth(scene)
        return None if touches is None else not touches


class InStep(Statement, frozen=True):
    """A process step is in progress at a frame, and no other step is.

    False: another step is in progress, its verb cannot mean the same (transfer, empty), and this step occurs at other
    times.
    """

    true_needs: ClassVar[tuple[Layer, ...]] = ("process_steps",)
    false_needs: ClassVar[tuple[Layer, ...]] = ("process_steps",)
    deciding_work: ClassVar[str] = "say which step of the work is under way"
    further_work: ClassVar[str] = RECORD_STEPS

    step: str
    frame: int

    def recorded_truth(self, scene: Scene) -> Truth:
        current_steps = {step.name for step in spans_under_way(scene, scene.steps, self.frame)}
        if len(current_steps) != 1:
            return None
        if self.step in current_steps:
            return True
        spans = [step for step in scene.steps if step.name == self.step]
        if not spans or any(s.start - scene.margin <= self.frame < s.end + scene.margin for s in spans):
            return None
        return None if any(scene.domain.same_verb(spans[0].verb, verb_of(name)) for name in current_steps) else False


class NextAction(Statement, frozen=True):
    """This action is the first of the actions that begin after `frame`, and it is in progress at `until`.

    False: neither holds, and the action is not a usual part of handling the object in any activity (`grasp the cup`).
    """

    true_needs: ClassVar[tuple[Layer, ...]] = ("activities",)
    false_needs: ClassVar[tuple[Layer, ...]] = ("activities",)

    steps: ClassVar[int] = 2
    is_in_words: ClassVar[bool] = True
    further_work: ClassVar[str] = RECORD_ACTIVITIES
    action: str
    frame: int
    until: int

    def recorded_truth(self, scene: Scene) -> Truth:
        is_next = DoesNext(self.action, self.frame).truth(scene)
        if is_next is not Does(self.action, self.until).truth(scene):
            return None
        return None if is_next is False and self._is_handling(scene) else is_next

    def _is_handling(self, scene: Scene) -> bool:
        verb, noun = verb_of(self.action), noun_of(self.action)
        near = find_overlapping(scene.actions, self.frame, self.until + 1)
        is_contact = any(scene.domain.same_verb(verb, contact) for contact in scene.contact_verbs)
        return is_contact and any(scene.domain.same_noun(noun, action.noun) for action in near)


class NextState(Statement, frozen=True):
    """An attribute has a value at `until` that it does not have at `frame`.

    False: a value that excludes this value holds at both frames, and this value did not begin between them or within
    the `margin` after `until`.
    """

    false_needs: ClassVar[tuple[Layer, ...]] = ("attributes",)

    steps: ClassVar[int] = 2
    deciding_work: ClassVar[str] = SAY_STATE
    further_work: ClassVar[str] = RECORD_STATES
    object: str
    type: str
    value: str
    frame: int
    until: int

    @property
    def implications(self) -> tuple[Statement, ...]:
        return (HasValue(self.object, self.type, self.value, self.until),)

    def recorded_truth(self, scene: Scene) -> Truth:
        before = HasValue(self.object, self.type, self.value, self.frame).truth(scene)
        after = HasValue(self.object, self.type, self.value, self.until).truth(scene)
        if before is not False:
            return None
        attribute_value = self.object, self.type, self.value
        starts = [span.start for _, span in scene.changes if (span.thing.id, span.type, span.value) == attribute_value]
        comes_between = any(self.frame < start <= self.until + scene.margin for start in starts)
        return None if after is False and comes_between else after


class BringsAbout(Statement, frozen=True):
    """In [start, end) an action changes a value.

    No other action in progress has a verb that can cause the value (`verbs`). False: the change does not happen, or
    another action clearly causes it.
    """

    true_needs: ClassVar[tuple[Layer, ...]] = ("activities", "attributes")
    false_needs: ClassVar[tuple[Layer, ...]] = ("activities", "attributes")

    steps: ClassVar[int] = 3
    is_in_words: ClassVar[bool] = True
    action: str
    object: str
    type: str
    before: str
    after: str
    start: int
    end: int
    verbs: tuple[str, ...]

    @property
    def change(self) -> Changes:
        return Changes(self.object, self.type, self.before, self.after, self.start, self.end)

    @property
    def implications(self) -> tuple[Statement, ...]:
        return self, *self.change.implications, NextAction(self.action, self.start, self.end - 1)

    def recorded_truth(self, scene: Scene) -> Truth:
        changes = self.change.truth(scene)
        if changes is not True:
            return changes
        frame = next(
            span.start
            for _, span in scene.changes
            if (span.thing.id, span.type) == (self.object, self.type) and self.start < span.start < self.end
        )
        causes = {action.name for action in causes_of(scene, frame, self.verbs)}
        if causes == {self.action}:
            return True
        return False if causes and all(excludes_action(scene, self.action, cause, frame) for cause in causes) else None


def causes_of(scene: Scene, frame: int, verbs: tuple[str, ...]) -> list[ActionSpan]:
    """Return the possible causes of a change: actions with one of the verbs, in progress within the `margin`.

    A hand must be on an object during the action.
    """
    near = find_overlapping(scene.actions, frame - scene.margin, frame + scene.margin + 1)
    return [a for a in near if a.verb in verbs and find_overlapping(scene.uses, a.start, a.end)]


@cached_by_scene
def part_of_frame(scene: Scene, object_id: str, frame: int) -> Place | None:
    """Return the quarter of the frame that contains a box's centre, or its edge if the centre is near a middle line.

    Return None near the middle of the frame, without a box, or if only a small part of the object is inside the frame.
    """
    centre = _centre(scene, object_id, frame)
    if centre is None:
        return None
    right, down = centre
    if min(abs(right), abs(down)) >= OFF_CENTRE:
        return PLACES[0][2 * (down > 0) + (right > 0)]
    if max(abs(right), abs(down)) < EDGE:
        return None
    if abs(down) > abs(right):
        return "lower center" if down > 0 else "upper center"
    return "middle right" if right > 0 else "middle left"


@cached_by_scene
def direction_between(scene: Scene, object_id: str, frame: int, other: str, since: int) -> Direction | None:
    """Return the direction of the centre of an object's box at `frame` from the centre of another box at `since`.

    Return None without boxes, if the direction is unclear, or if the boxes of two objects overlap. A direction along an
    edge is unclear if an object is only partly inside the frame.
    """
    here, there = _centre(scene, object_id, frame), _centre(scene, other, since)
    if here is None or there is None or (object_id != other and _overlap(scene, object_id, other, frame)):
        return None
    right, down = here[0] - there[0], here[1] - there[1]
    is_across, is_along = abs(right) >= OFF_CENTRE, abs(down) >= OFF_CENTRE
    if is_across and is_along:
        return DIRECTIONS[0][2 * (down > 0) + (right > 0)]
    if _is_cut(scene, object_id, frame) or _is_cut(scene, other, since):
        return None
    across, along = abs(right) * scene.video.video.width, abs(down) * scene.video.video.height
    if is_across and along <= SLANT * across:
        return "further right" if right > 0 else "further left"
    if is_along and across <= SLANT * along:
        return "lower down" if down > 0 else "higher up"
    return None


def _overlap(scene: Scene, first: str, second: str, frame: int) -> bool:
    (x, y, width, height), (a, b, c, d) = (scene.boxes(frame)[item] for item in (first, second))
    return x < a + c and a < x + width and y < b + d and b < y + height


def _is_cut(scene: Scene, object_id: str, frame: int) -> bool:
    """Return whether an object's box reaches the edge of the frame."""
    x, y, width, height = scene.boxes(frame)[object_id]
    return min(x, y) < 1 or x + width > scene.video.video.width - 1 or y + height > scene.video.video.height - 1


def _centre(scene: Scene, object_id: str, frame: int) -> tuple[float, float] | None:
    """Return how far the centre of a box is from the middle of the frame to the right and down, in fractions.

    Return None without a box, or if only a small part of the object is inside the frame.
    """
    box = scene.boxes(frame).get(object_id)
    if box is None:
        return None
    x, y, width, height = box
    frame_width, frame_height = scene.video.video.width, scene.video.video.height
    if _is_cut(scene, object_id, frame) and width * height < CUT * frame_width * frame_height:
        return None
    return (x + width / 2) / frame_width - 0.5, (y + height / 2) / frame_height - 0.5
