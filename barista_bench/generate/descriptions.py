"""Describe an object whose name is ambiguous by its action, its place, its side of the picture or its order.

A description is used only if the graph shows that it fits no other object on all frames. Frames are counted from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import Literal, NamedTuple, TypeAlias

from barista_bench.generate.nearby import (
    is_known_to_touch,
    is_located,
    is_seen_apart,
    lasting_spans,
    place_words,
    uses_near,
)
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import SIDES, NamedObject
from barista_bench.generate.visibility import cached_by_scene
from barista_bench.scene_graph.domain import Side
from barista_bench.scene_graph.graph_words import past_participle, spoken_form

Basis: TypeAlias = Literal["name", "action", "hand", "place", "side", "touch order", "appearance"]
"""The property that distinguishes an object from other objects of the same name."""
TOUCHES: frozenset[Basis] = frozenset({"action", "hand", "touch order"})
"""Properties that reveal that a hand touches the object now or later."""
WHOLE_VIDEO: frozenset[Basis] = frozenset({"touch order", "appearance"})
"""Properties that require watching the complete video."""
BESIDE = 0.1
"""Minimum distance between the centres of two objects for one to be on the left, as a fraction of the frame's width."""
APPEARANCE = 8
"""Minimum delay with which an object comes into view later than another, as a fraction of the video."""
ORDINALS = ("first", "second", "third")
BY_TOUCH = "that the person touches"
GRIP, TOUCH = "hold", "touch"
"""Verbs of contacts that do not describe an action."""


class Description(NamedTuple):
    """Words for an object that follow "the", and the property by which they identify the object."""

    text: str
    basis: Basis


def name_object(
    scene: Scene, thing: NamedObject, frames: Collection[int], barred: Collection[Basis] = ()
) -> NamedObject:
    """Return an object with a name that is unambiguous on all of the frames.

    If the object's own name is ambiguous on some frames, the first unambiguous description is used. Without such a
    description, the ambiguous name stays.

    Args:
        barred: properties that must not identify the object, such as the property that the question asks about.
    """
    if scene.is_unique(thing, frames):
        return thing
    fitting = unique_descriptions(scene, thing.id, tuple(frames))
    text = next((row.text for row in fitting if row.basis not in barred), "")
    return thing._replace(name=text, plain_name=thing.name) if text else thing


def is_told_apart(scene: Scene, thing: NamedObject, frames: Collection[int]) -> bool:
    """Return whether the name or description of an object fits no other object on any of the frames."""
    if not thing.description:
        return scene.is_unique(thing, frames)
    return any(row.text == thing.name for row in unique_descriptions(scene, thing.id, tuple(frames)))


@cached_by_scene
def unique_descriptions(scene: Scene, object_id: str, frames: tuple[int, ...]) -> tuple[Description, ...]:
    """Return descriptions of an object that fit no other object on any frame, the most natural first.

    The plain name is not among them. If unannotated objects of the category may be in view, there are no descriptions.
    """
    thing = scene.things[object_id]
    if not frames or not all(scene.coverage.covers_category(thing.category, frame, frame + 1) for frame in frames):
        return ()
    namesakes = scene.namesakes(object_id)
    case = _Case(
        scene, thing, {frame: [other for other in namesakes if other in scene.boxes(frame)] for frame in frames}
    )
    kinds = (_by_action, _by_hand, _by_place, _by_side, _by_touch, _by_appearance)
    return tuple(dict.fromkeys(row for describe in kinds for row in describe(case)))


class _Case(NamedTuple):
    """An object, and for each frame the other visible objects that the object's name could mean."""

    scene: Scene
    thing: NamedObject
    in_view: dict[int, list[str]]

    @property
    def others(self) -> list[str]:
        """Return all other objects that are in view on some of the frames."""
        return list(dict.fromkeys(other for others in self.in_view.values() for other in others))

    def only_this(self, fits: Callable[[str, int], bool | None]) -> bool:
        """Return whether `fits` is true for the object on all frames, and false for all others of the same name."""
        return all(
            fits(self.thing.id, frame) is True and all(fits(other, frame) is False for other in others)
            for frame, others in self.in_view.items()
        )


def _by_action(case: _Case) -> Iterator[Description]:
    """Describe by action: "the lemon being cut".

    It is the only object of an activity, or the only object with a contact other than a grip.
    """
    scene, thing = case.scene, case.thing
    verbs = scene.domain.families.get("egocot", {}).get("verbs", {})
    contacts = {words.do for words in scene.domain.contacts.values()}
    frames = list(case.in_view)
    for action in scene.actions:
        is_under_way = action.start + scene.margin <= min(frames) and max(frames) < action.end - scene.margin
        is_of_thing = action.noun and scene.domain.same_noun(action.noun, thing.noun)
        if is_under_way and action.verb not in contacts and is_of_thing:
            # Any object that is touched during the activity could be the activity's object.
            touched = {use.thing.id for use in uses_near(scene, action.start, action.end)}
            is_known = scene.coverage.covers_layer("relations", action.start, action.end)
            if is_known and thing.id in touched and not touched & set(case.others):
                phrase = verbs.get(action.verb, spoken_form(action.verb))
                yield Description(f"{thing.name} being {past_participle(phrase)}", "action")
    for value, words in scene.domain.contacts.items():
        is_telling = words.do not in (GRIP, TOUCH)
        if is_telling and any(case.only_this(partial(_is_done_to, scene, side, value)) for side in SIDES):
            yield Description(f"{thing.name} being {past_participle(words.do)}", "action")


def _by_hand(case: _Case) -> Iterator[Description]:
    for value, words in case.scene.domain.contacts.items():
        for side in SIDES if words.do == GRIP else ():
            if case.only_this(partial(_is_done_to, case.scene, side, value)):
                yield Description(f"{case.thing.name} in the {side} hand", "hand")


def _is_done_to(scene: Scene, side: Side, contact: str, item: str, frame: int) -> bool | None:
    """Return whether a hand visibly has this contact with an object.

    The result is False if no contact of the two is recorded and the record of contacts is complete.
    """
    uses = uses_near(scene, frame, frame + 1, side=side, object_id=item)
    if not uses:
        return False if is_known_to_touch(scene, side, frame) else None
    contacts = {value for use in uses for value, start, end in use.contacts if start <= frame < end}
    is_seen = scene.is_hand_visible(side, frame) and scene.is_visible(item, frame)
    is_plain = is_seen and lasting_spans(scene, uses, frame) and not is_seen_apart(scene, side, item, frame)
    return True if contact in contacts and is_plain else None


def _by_place(case: _Case) -> Iterator[Description]:
    """Describe by place: "the mug on the drip tray"."""
    scene, thing = case.scene, case.thing
    for predicate, other in dict.fromkeys((span.predicate, span.other) for span in scene.places if span.thing == thing):
        words = scene.domain.places.get(predicate)
        # "The tray holding the mug" sounds as if a hand held the mug.
        is_place = words is not None and not words.is_part and not words.words.endswith("ing")
        if words is None or not is_place or other.id in case.others or not scene.is_unique(other, case.in_view):
            continue
        if case.only_this(partial(_is_at, scene, predicate, other.id)):
            yield Description(f"{thing.name} {place_words(scene, predicate, other.id)} the {other.name}", "place")


def _is_at(scene: Scene, predicate: str, other: str, item: str, frame: int) -> bool | None:
    return is_located(scene, item, predicate, other, frame)


def _by_side(case: _Case) -> Iterator[Description]:
    """Describe by side: "the lemon on the left".

    The same few objects must be in view on all frames, in the same order from left to right.
    """
    orders = {_from_left(case.scene, [case.thing.id, *others], frame) for frame, others in case.in_view.items()}
    order = orders.pop()
    if orders or order is None or len(order) > len(ORDINALS):
        return
    frame, count, name = order.index(case.thing.id), len(order), case.thing.name
    if count == len(SIDES):
        yield Description(f"{name} on the {SIDES[frame]}", "side")
    elif count > 2:
        yield Description(f"{('leftmost', 'middle', 'rightmost')[frame]} {name}", "side")


def _from_left(scene: Scene, items: Sequence[str], frame: int) -> tuple[str, ...] | None:
    """Sort objects by the centres of their boxes, from left to right.

    Return None if an object is not clearly visible, or if two centres are too close.
    """
    if not all(scene.is_visible(item, frame) for item in items):
        return None
    boxes = scene.boxes(frame)
    middles = sorted((boxes[item][0] + boxes[item][2] / 2, item) for item in items)
    if any(b - a < BESIDE * scene.video.video.width for (a, _), (b, _) in pairwise(middles)):
        return None
    return tuple(item for _, item in middles)


def _by_touch(case: _Case) -> Iterator[Description]:
    """Describe by order of touch: "the lemon that the person touches first". All touches of the video count."""
    scene, ids = case.scene, {case.thing.id, *case.scene.namesakes(case.thing.id)}
    first_uses = {use.thing.id: use for use in reversed(scene.uses) if use.thing.id in ids}
    uses = sorted(first_uses.values(), key=attrgetter("start"))
    order = [use.thing.id for use in uses]
    is_clear = all(use.begins or use.start == 0 for use in uses)
    is_clear = is_clear and all(after.start - before.start > 2 * scene.margin for before, after in pairwise(uses))
    is_known = scene.coverage.covers_layer("relations") and len(order) <= len(ORDINALS)
    if is_clear and is_known and case.thing.id in order:
        which = f" {ORDINALS[order.index(case.thing.id)]}" if len(order) > 1 else ""
        yield Description(f"{case.thing.name} {BY_TOUCH}{which}", "touch order")


def _by_appearance(case: _Case) -> Iterator[Description]:
    """Describe, of two objects, by order of appearance: "the lemon that comes into view later"."""
    scene, namesakes = case.scene, case.scene.namesakes(case.thing.id)
    if len(namesakes) != 1 or not scene.coverage.covers_category(case.thing.category):
        return
    this, other = (scene.frames_of(item).min(initial=scene.frame_count) for item in (case.thing.id, *namesakes))
    if abs(this - other) * APPEARANCE >= scene.frame_count:
        when = "that comes into view later" if this > other else "that comes into view first"
        when = "that is in view from the start" if this == 0 else when
        yield Description(f"{case.thing.name} {when}", "appearance")
