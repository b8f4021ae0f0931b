"""Plays a script once and records a `Timeline` of the resulting motion, relations and states.

Time is in beats, 8 per tick of the script, so that a script can be stretched to any number of frames. All ranges are
half-open, [start, end).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from barista_bench.mini.drawing import turn
from barista_bench.mini.script import AIR, HAND_CATEGORIES, Act, Fill, Prop, PropChange, PropPlace, places_of, props_of

BEATS = 8
_LEAD, _TAIL = 14, 20  # ticks
BeatRange = tuple[int, int]
Offset = tuple[int, int]
"""(x, y) in kitchen units."""

HUMAN_ACTIONS = ("pulls", "pushes", "presses", "holds", "touches", "turns")


@dataclass(frozen=True)
class Leg:
    """A motion: an object moves to `at` during [start, end), and then stays there.

    `lift` bends the path upwards, and `sway` makes it swing.
    """

    start: int
    end: int
    at: PropPlace
    lift: int = 0
    sway: Offset = (0, 0)
    carried: bool = False


@dataclass(frozen=True)
class HandContact:
    """A hand at `thing` during [start, end).

    `offset` is the place of a right hand; `pose` is the pose in which it is drawn.
    """

    start: int
    end: int
    thing: str
    offset: Offset
    pose: int


@dataclass(frozen=True)
class Flow:
    """A flow: `content` falls from the spout (an object and an offset) into its new place during [start, end)."""

    start: int
    end: int
    content: str
    spout: tuple[str, int, int]
    full: int


@dataclass
class Timeline:
    """The events, with times in beats.

    The keys of `props` and `legs` are the keys of objects. The keys of hands are "left" and "right".
    """

    props: dict[str, Prop]
    length: int = 0
    legs: dict[str, list[Leg]] = field(default_factory=dict)
    contacts: dict[str, list[HandContact]] = field(default_factory=lambda: {hand: [] for hand in HAND_CATEGORIES})
    flows: list[Flow] = field(default_factory=list)
    relations: dict[tuple[str, str, str], list[BeatRange]] = field(default_factory=dict)
    states: dict[tuple[str, str], list[BeatRange]] = field(default_factory=dict)
    activities: list[tuple[BeatRange, str]] = field(default_factory=list)
    steps: list[tuple[BeatRange, str]] = field(default_factory=list)
    focus: list[tuple[int, str]] = field(default_factory=list)


class Stage:
    """Plays acts one after the other, and moves the objects of one preparation."""

    def __init__(self, preparation: str, homes: dict[str, PropPlace]) -> None:
        """`homes` replaces the places where the objects are at the start."""
        props = props_of(preparation)
        props |= {key: msgspec.structs.replace(props[key], home=home) for key, home in homes.items()}
        self.timeline = Timeline(props)
        self._places = places_of(preparation)
        self._in_hand: dict[str, tuple[str, int, int]] = {}
        """The thing in each hand, the time from which it is held, and how far outside of its usual grip."""
        self._since: dict[tuple[str, str, str], int] = {}
        self._changes: dict[str, list[tuple[int, str]]] = {}
        self._now = 0
        for key, prop in props.items():
            self.timeline.legs[key] = [Leg(0, 0, prop.home)]
            self._begin_relations(key, prop.home, 0)
            if prop.state:
                self._changes[key] = [(0, prop.state)]

    def play(self, blocks: list[tuple[str, list[Act]]]) -> Timeline:
        """Play the complete script, with idle moments before and after it, and return the timeline."""
        self._now = _LEAD * BEATS
        for step, acts in blocks:
            start = self._now
            for act in acts:
                self._play(act)
            steps = self.timeline.steps
            if steps and steps[-1][1] == step:
                start = steps.pop()[0][0]
            steps.append(((start, self._now), step))
        self._finish(self._now + _TAIL * BEATS)
        return self.timeline

    def _play(self, act: Act) -> None:
        start = self._now - act.early * BEATS
        end = start + act.ticks * BEATS
        self._now = max(self._now, end)
        if act.name:
            self.timeline.activities.append(((start, end), act.name))
            self.timeline.focus.append((start, act.thing))
            if act.to and act.kind != "pour":
                target = self._place(act, act.to).parent or act.thing
                self.timeline.focus.append((start + (end - start) // 3, target))
        players = {
            "grasp": self._grasp, "place": self._put, "carry": self._carry, "slide": self._slide,
            "press": self._press, "pour": self._pour, "work": self._work,
        }  # fmt: skip
        if act.kind != "pause":
            players[act.kind](act, start, end)
        if act.helps:
            other = "left" if act.hand == "right" else "right"
            self._touch(other, act.helps, _beat_after(start, end, 20), _beat_after(start, end, 85), ("holds",), 1)
        for change in act.changes:
            self._change(change, start, end)
        for fill in act.fills:
            self._fill(fill, start, end)

    # -- the kinds of acts

    def _grasp(self, act: Act, start: int, end: int) -> None:
        contact = _beat_after(start, end, 45)
        for hand in _hands(act):
            self._in_hand[hand] = act.thing, contact, _grip_gap(act)
            if act.value:
                self._add_relation(HAND_CATEGORIES[hand], act.value, act.thing, contact, end)
        x, y, angle = self._resting_point(act.thing)
        self._move(act.thing, contact, end, PropPlace("", x, y - 30, AIR, (), angle))

    def _put(self, act: Act, start: int, end: int) -> None:
        release = _beat_after(start, end, 85)
        self._move(act.thing, start, release, self._place(act, act.to), lift=14)
        for hand in _hands(act):
            self._let_go(hand, release)
            if act.value:
                self._add_relation(HAND_CATEGORIES[hand], act.value, act.thing, _beat_after(start, end, 35), release)

    def _carry(self, act: Act, start: int, end: int) -> None:
        contact, release = _beat_after(start, end, 30), _beat_after(start, end, 88)
        self._move(act.thing, contact, release, self._place(act, act.to), lift=30)
        values = ("holds", act.value) if act.value else ("holds",)
        for hand in _hands(act):
            self._touch(hand, act.thing, contact, release, values, 1, _grip_gap(act))

    def _slide(self, act: Act, start: int, end: int) -> None:
        contact, release = _beat_after(start, end, 40), _beat_after(start, end, 90)
        self._move(act.thing, contact + 2 * BEATS, release, self._place(act, act.to), carried=False)
        self._touch(act.hand, act.thing, contact, release, (act.value,), 1)

    def _press(self, act: Act, start: int, end: int) -> None:
        pose = 1 if act.value == "holds" else 2
        self._touch(act.hand, act.thing, _beat_after(start, end, 40), _beat_after(start, end, 78), (act.value,), pose)

    def _pour(self, act: Act, start: int, end: int) -> None:
        prop, vessel = self.timeline.props[act.thing], self.timeline.props[act.to]
        x, y, _ = self._resting_point(act.to)
        spout_x, spout_y = turn(*prop.spout, prop.tilt)
        x, y = x + vessel.mouth[0] - spout_x, y + vessel.mouth[1] - 26 - spout_y
        upright, tilted = PropPlace("", x, y, AIR), PropPlace("", x, y, AIR, (), prop.tilt)
        marks = [_beat_after(start, end, p) for p in (0, 34, 46, 82, 96)]
        self._move(act.thing, marks[0], marks[1], upright, lift=20)
        self._move(act.thing, marks[1], marks[2], tilted)
        self._move(act.thing, marks[3], marks[4], upright)
        if act.content:
            to = {"machine": "hopper", "cup_a": "top_up", "frother": "in_frother", "pitcher": "in_pitcher"}[act.to]
            spout = (act.thing, *prop.spout)
            lasts = (marks[3] - marks[2]) // BEATS
            full = 5 if act.to == "cup_a" else 8  # milk leaves a rim of coffee in a cup
            self._fill(Fill(act.content, to, act.to, spout, 46, lasts, full), start, end)

    def _work(self, act: Act, start: int, end: int) -> None:
        reach, leave = _beat_after(start, end, 28), _beat_after(start, end, 84)
        x, y, _ = self._resting_point(act.thing)
        goal = self._place(act, act.to)
        self._move(act.thing, start, reach, goal, lift=16, sway=act.sway)
        self._move(act.thing, leave, end, PropPlace("", x, y, AIR), lift=10)
        if act.value:
            for hand in _hands(act):
                target = goal.parent if act.value == "touches" else act.thing
                self._add_relation(HAND_CATEGORIES[hand], act.value, target, reach, leave)

    # -- parts of acts

    def _place(self, act: Act, name: str) -> PropPlace:
        return self.timeline.props[act.thing].home if name == "home" else self._places[name]

    def _resting_point(self, key: str) -> tuple[int, int, int]:
        """Return the point where the object rests after its last leg so far, and the object's angle."""
        place = self.timeline.legs[key][-1].at
        if not place.parent:
            return place.x, place.y, place.angle
        x, y, _ = self._resting_point(place.parent)
        return x + place.x, y + place.y, place.angle

    def _move(
        self,
        key: str,
        start: int,
        end: int,
        place: PropPlace,
        lift: int = 0,
        sway: Offset = (0, 0),
        carried: bool = True,
    ) -> None:
        """Move an object: old relations of its position end when it leaves, and new relations begin when it arrives."""
        for triple in _triples(key, self.timeline.legs[key][-1].at):
            self._add_relation(*triple, self._since.pop(triple), start)
        self.timeline.legs[key].append(Leg(start, end, place, lift, sway, carried))
        self._begin_relations(key, place, end)

    def _begin_relations(self, key: str, place: PropPlace, beat: int) -> None:
        for triple in _triples(key, place):
            self._since[triple] = beat

    def _add_relation(self, source: str, value: str, target: str, start: int, end: int) -> None:
        if start < end:
            self.timeline.relations.setdefault((source, value, target), []).append((start, end))

    def _touch(
        self, hand: str, thing: str, start: int, end: int, values: tuple[str, ...], pose: int, gap: int = 0
    ) -> None:
        prop = self.timeline.props[thing]
        part = "" if hand == prop.body_hand else prop.grip_part
        x, y = self.timeline.props[part or thing].grip
        self.timeline.contacts[hand].append(HandContact(start, end, part or thing, (x + gap, y), pose))
        for value in values:
            self._add_relation(HAND_CATEGORIES[hand], value, thing, start, end)
        if part:
            self._add_relation(HAND_CATEGORIES[hand], "holds", part, start, end)

    def _let_go(self, hand: str, beat: int) -> None:
        thing, since, gap = self._in_hand.pop(hand)
        self._touch(hand, thing, since, beat, ("holds",), 1, gap)

    def _change(self, change: PropChange, start: int, end: int) -> None:
        beat = _beat_after(start, end, change.after)
        changes = self._changes.setdefault(change.thing, [])
        reverted = [(beat + change.lasts * BEATS, changes[-1][1] if changes else "")] if change.lasts else []
        changes += [(beat, change.value), *reverted]

    def _fill(self, fill: Fill, start: int, end: int) -> None:
        beat = _beat_after(start, end, fill.after)
        self._move(fill.content, beat, beat, self._places[fill.to])
        if not fill.lasts:
            return
        until = beat + fill.lasts * BEATS
        self.timeline.flows.append(Flow(beat, until, fill.content, fill.spout, fill.full))
        changes = self._changes.get(fill.vessel, [])
        if changes and changes[-1][1] == "empty":
            changes.append((until, "full"))

    def _finish(self, end: int) -> None:
        self.timeline.length = end
        for hand in sorted(self._in_hand):
            self._let_go(hand, end)
        for triple, start in self._since.items():
            self._add_relation(*triple, start, end)
        for key, changes in self._changes.items():
            changes.sort(key=lambda change: change[0])
            for (beat, value), (until, _) in zip(changes, [*changes[1:], (end, "")], strict=True):
                if value and beat < min(until, end):
                    self.timeline.states.setdefault((key, value), []).append((beat, min(until, end)))


def _triples(key: str, place: PropPlace) -> list[tuple[str, str, str]]:
    triples = []
    for relation in place.relations:
        value, _, other = relation.partition(":")
        other = other or place.parent
        is_reversed = value == "contains" or value.startswith("~")
        triples.append((other, value.lstrip("~"), key) if is_reversed else (key, value, other))
    return triples


def _hands(act: Act) -> tuple[str, ...]:
    return ("right", "left") if act.hand == "both" else (act.hand,)


def _grip_gap(act: Act) -> int:
    """Return how far two hands on one thing stay outside of their usual grips, so that the thing stays visible."""
    return 12 if act.hand == "both" else 0


def _beat_after(start: int, end: int, percent: int) -> int:
    return start + (end - start) * percent // 100
