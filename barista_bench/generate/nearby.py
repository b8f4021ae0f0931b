"""Find records near a frame: uses by hands, places, activities, and the activities that exclude each other.

Frames are counted from 0; spans are [start, end).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from barista_bench.generate.scene import Scene, cached_by_scene
from barista_bench.generate.spans import HandUse, PlaceSpan, SpanT, find_overlapping, noun_of, verb_of
from barista_bench.scene_graph.domain import Side, is_excluded


def uses_near(
    scene: Scene, start: int, end: int, *, side: Side | None = None, object_id: str | None = None
) -> list[HandUse]:
    """Return uses by hands in [start, end) or within the domain's `margin` of it, by time.

    If given, only uses of one hand, or of one object.
    """
    near = find_overlapping(scene.uses, start - scene.margin, end + scene.margin)
    return [use for use in near if side in (None, use.side) and object_id in (None, use.thing.id)]


def is_seen_apart(scene: Scene, side: Side, object_id: str, frame: int) -> bool:
    """Whether a hand and an object are clearly apart in the picture, independent of recorded contacts."""
    hand = scene.hand_id(side)
    return hand is not None and scene.are_apart(hand, object_id, frame)


def is_known_to_touch(scene: Scene, side: Side, frame: int) -> bool:
    """Whether all contacts of a hand around a frame are recorded, as far as that part is annotated."""
    annotated = scene.coverage.annotated_frames(frame - scene.margin, frame + scene.margin + 1).tolist()
    return all(scene.coverage.covers_hand(scene.hand_id(side), moment, moment + 1) for moment in {frame, *annotated})


def lasting_spans(scene: Scene, spans: Iterable[SpanT], frame: int) -> list[SpanT]:
    """Return spans that hold on a frame and the domain's `margin` around it, as far as the video is annotated there."""
    near: list[int] = scene.coverage.annotated_frames(frame - scene.margin, frame + scene.margin + 1).tolist()
    low, high = min(near, default=frame), max(near, default=frame)
    return [span for span in spans if span.start <= low and high < span.end]


def places_near(scene: Scene, first: str, second: str, frame: int) -> list[PlaceSpan]:
    """Return places recorded between two objects, in either order, within the domain's `margin` of a frame."""
    near = find_overlapping(scene.places, frame - scene.margin, frame + scene.margin + 1)
    return [span for span in near if {span.thing.id, span.other.id} == {first, second}]


def is_enclosed(scene: Scene, object_id: str, other: str, frame: int) -> bool:
    """Whether the box of an object is inside the box of another on a frame, up to a fifth of its area."""
    boxes = scene.boxes(frame)
    if object_id not in boxes or other not in boxes:
        return False
    (x, y, w, h), (a, b, c, d) = boxes[object_id], boxes[other]
    shared = max(0.0, min(x + w, a + c) - max(x, a)) * max(0.0, min(y + h, b + d) - max(y, b))
    return shared >= 0.8 * w * h


@cached_by_scene
def place_words(scene: Scene, predicate: str, other: str) -> str:
    """Return the words for a place at an object: "at" the machine, if what is under it is inside its outline."""
    words = scene.domain.places[predicate]
    spans = [span for span in scene.places if (span.predicate, span.other.id) == (predicate, other)]
    are_inside = [is_enclosed(scene, span.thing.id, other, (span.start + span.end) // 2) for span in spans]
    return words.enclosed if words.enclosed and any(are_inside) else words.words


def is_located(scene: Scene, object_id: str, predicate: str, other: str, frame: int) -> bool | None:
    """Whether an object is in a spatial relation to another, as in the statement `Located`."""
    near_places = places_near(scene, object_id, other, frame)
    places = lasting_spans(scene, near_places, frame)
    if any((s.thing.id, s.predicate) == (object_id, predicate) for s in places):
        return True
    if is_excluded(scene.domain.places, predicate, {s.predicate for s in places if s.thing.id == object_id}):
        # A mug under a machine's spout is on its drip tray.
        return None if is_enclosed(scene, object_id, other, frame) else False
    are_seen = all(scene.is_visible(item, frame) for item in (object_id, other))
    is_joined = bool(near_places) or scene.is_part_of_other(object_id, other)
    is_free = are_seen and not is_joined and scene.coverage.covers_layer("relations", frame, frame + 1)
    return False if is_free and scene.are_apart(object_id, other, frame) else None


def is_going_on(scene: Scene, value: str, object_id: str, start: int, end: int) -> bool:
    """Whether an activity or step in [start, end) does to an object what its value implies, judged by the verb.

    Also true if activities may be unrecorded.
    """
    noun, verbs = scene.things[object_id].noun, scene.domain.ongoing.get(value, ())
    if verbs and not scene.coverage.covers_layer("activities", start, end):
        return True
    rows = find_overlapping((*scene.actions, *scene.steps), start, end)
    return any(row.verb in verbs and scene.domain.same_noun(row.noun, noun) for row in rows)


def moments_of(scene: Scene, start: int, end: int) -> Sequence[int]:
    """Return frames of [start, end), four a second; a video's frames are the same for every span.

    Of a span too short for that, return the frame halfway.
    """
    step, first, stop = scene.frames_in(0.25), max(0, start), min(end, scene.frame_count)
    return range(-(-first // step) * step, stop, step) or [(first + stop) // 2][: stop - first]


def excludes_action(scene: Scene, action: str, recorded: str, frame: int) -> bool:
    """Whether an activity recorded at a frame excludes that another, `action`, also describes the frame.

    It does if their verbs exclude each other, or if one verb has two objects that do not belong to each other (a carton
    is opened by its lid). It does not if the verb is a contact (`hold`) that a hand has at the frame with an object
    that the noun could name: both activities are then in progress.
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
    """Whether an object that a noun could name is a part of, or belongs to, an object that `owner` could name."""
    nouns = {item: thing.noun for item, thing in scene.things.items()}
    return any(
        scene.domain.same_noun(noun, nouns[item]) and any(scene.domain.same_noun(owner, nouns[o]) for o in owners)
        for item, owners in ((item, scene.owners.get(item, frozenset()) & nouns.keys()) for item in nouns)
    )
