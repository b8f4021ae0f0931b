"""One question of each subtask from a scene graph, in our own words; None where the graph has nothing to ask about."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from barista_bench.benchmarks.egocot.mini_scene import GraphScene, HandUse, StateChange
from barista_bench.scene_graph import SceneObject, Segment

CHOICES = 4


class Draft(NamedTuple):
    """A question before its choices get letters.

    Args:
        wrong: three other choices.
        targets: what it is about.
        frames: when; in focus.
    """

    question: str
    right: str
    wrong: tuple[str, ...]
    targets: tuple[SceneObject, ...]
    frames: tuple[int, ...]


def active_object(scene: GraphScene) -> Draft | None:
    """AOG: what a hand is on."""
    for contact in _single(scene):
        others = _others(scene, contact.middle, {c.object.category for c in scene.touched(contact.middle)})
        if len(others) >= CHOICES - 1:
            side = contact.hand.category
            question = f"At {scene.clock(contact.middle)}, which object is the {side} touching?"
            return _draft(scene, "AOG", question, contact.object.category, others, (contact.object,), contact.middle)
    return None


def hand_of_object(scene: GraphScene) -> Draft | None:
    """HOA: which hand is on an object."""
    for contact in reversed(_single(scene)):
        question = f"At {scene.clock(contact.middle)}, which hand is touching the {contact.object.category}?"
        wrong = [hand for hand in ("left hand", "right hand") if hand != contact.hand.category]
        wrong += ["both hands", "neither of the hands"]
        targets = (contact.object, contact.hand)
        return Draft(question, contact.hand.category, tuple(wrong), targets, (contact.middle,))
    return None


def state_now(scene: GraphScene) -> Draft | None:
    """MSP: the state of an object right after it has changed."""
    for change in reversed(scene.changes):
        frame = min(change.end - 1, change.frame + 2)
        if draft := _state(scene, "MSP", change, change.after, frame, "is"):
            return draft
    return None


def state_before(scene: GraphScene) -> Draft | None:
    """SR: the state of an object before it changed."""
    for change in scene.changes:
        if draft := _state(scene, "SR", change, change.before, max(change.start, change.frame - 15), "was"):
            return draft
    return None


def place_before(scene: GraphScene) -> Draft | None:
    """LVR: where an object was."""
    for contact in scene.contacts:
        frame = max(0, contact.start - 10)
        place = scene.place(contact.object, frame)
        if place is None or not scene.alone(contact.object, frame):
            continue
        places = [f"in the {name} of the frame" for name in _PLACES if not _alike(name, place)]
        name = contact.object.category
        question = f"Looking back at {scene.clock(frame)}: was the {name} in view, and if so, where?"
        right = f"in the {place} of the frame"
        return _draft(scene, "LVR", question, right, [*places, "out of view"], (contact.object,), frame)
    return None


def order_of_contacts(scene: GraphScene) -> Draft | None:
    """HOTR: in what order things were taken hold of."""
    firsts: dict[str, HandUse] = {}
    for contact in scene.contacts:
        if contact.object.category in scene.categories():
            firsts.setdefault(contact.object.category, contact)
    chosen: list[HandUse] = []
    for contact in firsts.values():
        if not chosen or contact.start > chosen[-1].start:
            chosen.append(contact)
        if len(chosen) == 3:
            break
    if len(chosen) < 3:
        return None
    names = [contact.object.category for contact in chosen]
    orders = [", then the ".join(order) for order in itertools.permutations(names)][1:]
    until = scene.clock(chosen[-1].end)
    question = f"Up to {until}, in which order did the hands first get to the {', the '.join(sorted(names))}?"
    frames = tuple(contact.middle for contact in chosen)
    wrong = scene.rng("HOTR").sample(orders, CHOICES - 1)
    objects = tuple(contact.object for contact in chosen)
    return Draft(
        question, f"the {', then the '.join(names)}", tuple(f"the {order}" for order in wrong), objects, frames
    )


def next_state(scene: GraphScene) -> Draft | None:
    """NSA: what state an object is in next."""
    for change in scene.changes[1:] + scene.changes[:1]:
        if draft := _state(scene, "NSA", change, change.after, max(change.start, change.frame - 5), "is next"):
            return draft
    return None


def next_action(scene: GraphScene) -> Draft | None:
    """NAA: what is done next."""
    activities = scene.activities()
    names = sorted({segment.name for segment in activities})
    for now, following in itertools.pairwise(activities):
        if following.start < now.end or len(names) < CHOICES + 1:
            continue
        others = [name for name in names if name not in (now.name, following.name)]
        question = f"At {scene.clock(now.end - 1)} this is coming to an end: {now.name}. What will be done next?"
        near = _akin(following.name, others)
        return _draft(scene, "NAA", question, following.name, others, _acted_on(scene, now), now.end - 1, near)
    return None


def cause_of_change(scene: GraphScene) -> Draft | None:
    """LCOI: what brought a change about."""
    activities = scene.activities()
    for change in scene.changes:
        causes = [activity for activity in activities if activity.start <= change.frame < activity.end]
        others = sorted({activity.name for activity in activities if activity not in causes})
        if len(causes) == 1 and len(others) >= CHOICES - 1 and scene.alone(change.object, change.frame):
            name = change.object.category
            turn = f"the {name} turns from {change.before} to {change.after}"
            question = f"At {scene.clock(change.frame)} {turn}. Through which action?"
            near = _akin(causes[0].name, others)
            return _draft(scene, "LCOI", question, causes[0].name, others, (change.object,), change.frame, near)
    return None


def progress(scene: GraphScene) -> Draft | None:
    """PR: which step is done already."""
    steps = scene.steps()
    for index in range(len(steps) - CHOICES + 1):
        done, later = steps[index], [step.name for step in steps[index + 1 :]]
        names = sorted(set(later) - {step.name for step in steps[: index + 1]})
        frame = min(done.end, scene.video.frame_count - 1)
        if len(names) >= CHOICES - 1:
            question = f"Which of these steps has been finished by {scene.clock(frame)}?"
            return _draft(scene, "PR", question, done.name, names, _acted_on(scene, done), frame)
    return None


def both_hands(scene: GraphScene) -> Draft | None:
    """HGC: what each hand does at one moment."""
    for contact in scene.contacts:
        for frame in range(contact.start, contact.end):
            touched = scene.touched(frame)
            by_hand = {side: [c for c in touched if c.hand.category == side] for side in ("left hand", "right hand")}
            left, right = by_hand["left hand"], by_hand["right hand"]
            if len(left) != 1 or len(right) != 1 or left[0].object.category == right[0].object.category:
                continue
            pair = left[0].object, right[0].object
            others = _others(scene, frame, {c.object.category for c in touched})
            if len(others) < 2 or not all(scene.alone(item, frame) for item in pair):
                break
            left_name, right_name = (item.category for item in pair)
            sentences = [
                (left_name, right_name),
                (right_name, left_name),
                (left_name, others[0]),
                (others[1], right_name),
            ]
            made = [f"The left hand is on the {a}, the right hand on the {b}." for a, b in sentences]
            question = f"Reason from both hands: which of these is true at {scene.clock(frame)}?"
            return Draft(question, made[0], tuple(made[1:]), pair, (frame,))
    return None


def purposeful_object(scene: GraphScene) -> Draft | None:
    """GOT: where the thing is that serves a purpose, whatever it looks like."""
    for relation in scene.video.relations():
        if relation.value != "inside" or relation.source.category != "coffee":
            continue
        vessel = relation.target
        last = min(relation.end, scene.video.frame_count) - 1
        place = scene.place(vessel, last)
        if place is None:
            continue
        places = [f"in the {name} of the frame" for name in _PLACES if not _alike(name, place)]
        question = f"Follow the object that the coffee ends up in. Where is it at {scene.clock(last)}?"
        return _draft(scene, "GOT", question, f"in the {place} of the frame", places, (vessel,), last)
    return None


QUESTIONS: Mapping[str, Callable[[GraphScene], Draft | None]] = {
    "AOG": active_object,
    "HOA": hand_of_object,
    "MSP": state_now,
    "SR": state_before,
    "LVR": place_before,
    "HOTR": order_of_contacts,
    "NSA": next_state,
    "NAA": next_action,
    "LCOI": cause_of_change,
    "PR": progress,
    "HGC": both_hands,
    "GOT": purposeful_object,
}
"""By subtask."""

_PLACES = (
    "upper left",
    "upper center",
    "upper right",
    "middle left",
    "middle",
    "middle right",
    "lower left",
    "lower center",
    "lower right",
)


def _alike(first: str, second: str) -> bool:
    """Whether two places touch: a wrong choice is clearly elsewhere."""
    (x, y), (a, b) = (divmod(_PLACES.index(place), 3) for place in (first, second))
    return abs(x - a) + abs(y - b) <= 1


def _single(scene: GraphScene) -> list[HandUse]:
    """Contacts at whose middle the hand is on nothing else, and nothing else of the object's name is about."""
    single = []
    for contact in scene.contacts:
        then = scene.touched(contact.middle)
        others = [c for c in then if c != contact and (c.hand == contact.hand or c.object == contact.object)]
        if not others and scene.alone(contact.object, contact.middle):
            single.append(contact)
    return single


def _others(scene: GraphScene, frame: int, without: set[str]) -> list[str]:
    """Names of other things, those in view first."""
    there = [name for name in scene.categories(frame) if name not in without]
    return there + [name for name in scene.categories() if name not in without and name not in there]


def _state(scene: GraphScene, code: str, change: StateChange, right: str, frame: int, verb: str) -> Draft | None:
    if not scene.alone(change.object, frame) or scene.box(change.object, frame) is None:
        return None
    others = [state for state in scene.states if state != right]
    others += [state for state in ("broken", "upside down", "folded") if state not in others]
    name = change.object.category
    asked = {
        "is": f"What state is the {name} in at {scene.clock(frame)}?",
        "was": f"What state was the {name} in at {scene.clock(frame)}, before it changed?",
        "is next": f"After {scene.clock(frame)}, what state will the {name} be in next?",
    }
    # With the state that it turns from or to among the choices, the object's name alone does not tell the answer.
    near = [state for state in (change.before, change.after) if state != right]
    return _draft(scene, code, asked[verb], right, others, (change.object,), frame, near)


def _akin(right: str, others: Sequence[str]) -> list[str]:
    """Some that share a word with the right choice, so that the question's words alone do not tell it."""
    words = set(right.split())
    return [name for name in others if words & set(name.split())][: CHOICES // 2]


def _acted_on(scene: GraphScene, segment: Segment) -> tuple[SceneObject, ...]:
    """What hands were on in a segment, the last one alone: it is what the question is about."""
    inside = [c.object for c in scene.contacts if c.start < segment.end and c.end > segment.start]
    return tuple(inside[-1:])


def _draft(
    scene: GraphScene,
    code: str,
    question: str,
    right: str,
    others: Sequence[str],
    targets: tuple[SceneObject, ...],
    frame: int,
    near: Sequence[str] = (),
) -> Draft | None:
    """A question; of the wrong choices, those that are `near` are taken first, and the others are drawn."""
    first = [text for text in dict.fromkeys(near) if text != right][: CHOICES - 1]
    distinct = [text for text in dict.fromkeys(others) if text != right and text not in first]
    if len(first) + len(distinct) < CHOICES - 1:
        return None
    wrong = scene.rng(code, frame).sample(distinct, CHOICES - 1 - len(first))
    return Draft(question, right, (*first, *wrong), targets, (frame,))
