"""Find records near a frame: uses by hands, places, activities, and the activities that exclude each other.

Frames are counted from 0. Spans are [start, end).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import HandUse, PlaceSpan, SpanT, find_overlapping, noun_of, verb_of
from barista_bench.generate.visibility import cached_by_scene
from barista_bench.scene_graph.domain import Side, is_excluded


def uses_near(
    scene: Scene, start: int, end: int, *, side: Side | None = None, object_id: str | None = None
) -> list[HandUse]:
    """Return uses by hands in [start, end), or within the domain's `margin` of this span, by time.

    `side` and `object_id` limit the result to one hand and to one object.
    """
    near = find_overlapping(scene.uses, start - scene.margin, end + scene.margin)
    return [use for use in near if side in (None, use.side) and object_id in (None, use.thing.id)]


def contacts_at(scene: Scene, side: Side, object_id: str, frame: int) -> set[str]:
    """Return the contacts of a hand with an object that are recorded on a frame.

    A contact that is recorded on single frames, or on spans no longer than the gap between them, is also recorded in
    the gap if the gap is short.
    """
    recorded: set[str] = set()
    rows = scene.contacts.get((side, object_id), [])
    for value in {row[0] for row in rows}:
        spans = [(start, end) for name, start, end in rows if name == value]
        before = max((span for span in spans if span[0] <= frame), default=None)
        after = min((span for span in spans if span[0] > frame), default=None)
        if any(start <= frame < end for start, end in spans):
            recorded.add(value)
        elif before and after:
            gap = after[0] - before[1]
            is_sampled = max(end - start for start, end in (before, after)) <= gap
            recorded |= {value} if is_sampled and gap <= scene.frames_in(scene.domain.lengths.gap) else set()
    return recorded


def is_seen_apart(scene: Scene, side: Side, object_id: str, frame: int) -> bool:
    """Return whether a hand and an object are clearly apart in the picture. Recorded contacts do not matter."""
    hand = scene.hand_id(side)
    return hand is not None and scene.are_apart(hand, object_id, frame)


def is_known_to_touch(scene: Scene, side: Side, frame: int) -> bool:
    """Return whether all contacts of a hand around a frame are recorded. Frames without annotation are ignored."""
    annotated = scene.coverage.annotated_frames(frame - scene.margin, frame + scene.margin + 1).tolist()
    return all(scene.coverage.covers_hand(scene.hand_id(side), moment, moment + 1) for moment in {frame, *annotated})


def lasting_spans(scene: Scene, spans: Iterable[SpanT], frame: int) -> list[SpanT]:
    """Return the spans that hold on all annotated frames within the domain's `margin` of a frame."""
    near: list[int] = scene.coverage.annotated_frames(frame - scene.margin, frame + scene.margin + 1).tolist()
    low, high = min(near, default=frame), max(near, default=frame)
    return [span for span in spans if span.start <= low and high < span.end]


def spans_under_way(scene: Scene, spans: Iterable[SpanT], frame: int) -> list[SpanT]:
    """Return the spans that hold from a `margin` before a frame until a `margin` after it, as far as the video goes."""
    first, last = max(0, frame - scene.margin), min(frame + scene.margin, scene.frame_count - 1)
    return [span for span in spans if span.start <= first and last < span.end]


def places_near(scene: Scene, first: str, second: str, frame: int) -> list[PlaceSpan]:
    """Return places recorded between two objects, in either order, within the domain's `margin` of a frame."""
    near = find_overlapping(scene.places, frame - scene.margin, frame + scene.margin + 1)
    return [span for span in near if {span.thing.id, span.other.id} == {first, second}]


def is_enclosed(scene: Scene, object_id: str, other: str, frame: int) -> bool:
    """Return whether at least four fifths of an object's box are inside another object's box on a frame."""
    boxes = scene.boxes(frame)
    if object_id not in boxes or other not in boxes:
        return False
    (x, y, w, h), (a, b, c, d) = boxes[object_id], boxes[other]
    shared = max(0.0, min(x + w, a + c) - max(x, a)) * max(0.0, min(y + h, b + d) - max(y, b))
    return shared >= 0.8 * w * h


@cached_by_scene
def place_words(scene: Scene, predicate: str, other: str) -> str:
    """Return the words for a place at an object.

    For example, a cup is "at" the machine if some object under the machine lies inside the machine's outline.
    """
    words = scene.domain.places[predicate]
    spans = [span for span in scene.places if (span.predicate, span.other.id) == (predicate, other)]
    are_inside = [is_enclosed(scene, span.thing.id, other, (span.start + span.end) // 2) for span in spans]
    return words.enclosed if words.enclosed and any(are_inside) else words.words


def is_located(scene: Scene, object_id: str, predicate: str, other: str, frame: int) -> bool | None:
    """Return whether an object is in a spatial relation to another object, as in the statement `Located`."""
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
    """Return whether an activity or step in [start, end) acts on an object with a verb that the value implies.

    The result is also True if activities may be unrecorded.
    """
    noun, verbs = scene.things[object_id].noun, scene.domain.ongoing.get(value, ())
    if verbs and not scene.coverage.covers_layer("activities", start, end):
        return True
    rows = find_overlapping((*scene.actions, *scene.steps), start, end)
    return any(row.verb in verbs and scene.domain.same_noun(row.noun, noun) for row in rows)


def moments_of(scene: Scene, start: int, end: int) -> Sequence[int]:
    """Return frames of [start, end), four a second. Overlapping spans of a video use the same frames.

    If the span is too short to contain such a frame, return the middle frame.
    """
    step, first, stop = scene.frames_in(0.25), max(0, start), min(end, scene.frame_count)
    return range(-(-first // step) * step, stop, step) or [(first + stop) // 2][: stop - first]


def excludes_action(scene: Scene, action: str, recorded: str, frame: int) -> bool:
    """Return whether an activity recorded at a frame excludes that the activity `action` also describes the frame.

    The result is True if the two verbs exclude each other. It is also True if the verbs are equal but have two objects
    that do not belong together (a carton is opened by its lid). The result is False if the verb of `action` is a
    contact (`hold`) and a hand touches an object that the noun could name, or has a relation with this verb to it that
    the domain does not define (`steadies`). Both activities are then in progress. So they are if such an object has a
    value that lasts as long as the verb's process (`being broken`). An activity without a name excludes nothing.
    """
    if not recorded:
        return False
    verbs, nouns = (verb_of(action), verb_of(recorded)), (noun_of(action), noun_of(recorded))
    touched = [use.thing.noun for use in uses_near(scene, frame, frame + 1)] if is_contact(scene, action) else []
    near = frame - scene.margin, frame + scene.margin + 1
    contacts = scene.nouns_by_contact.get(verbs[0], ())
    touched += [noun for noun, start, end in contacts if start < near[1] and end > near[0]]
    values = find_overlapping(scene.values, *near)
    lasting = [span.thing.noun for span in values if verbs[0] in scene.domain.ongoing.get(span.value, ())]
    if any(scene.domain.same_noun(nouns[0], noun) for noun in (*touched, *lasting)):
        return False
    if verbs[0] == verbs[1]:
        return not (scene.domain.same_noun(*nouns) or _belongs(scene, *nouns) or _belongs(scene, *reversed(nouns)))
    return not scene.domain.same_verb(*verbs)


def is_contact(scene: Scene, action: str) -> bool:
    """Return whether the verb of an action is a contact of a hand, such as "hold" or "press"."""
    return verb_of(action) in {words.do for words in scene.domain.contacts.values()}


@cached_by_scene
def _belongs(scene: Scene, noun: str, owner: str) -> bool:
    nouns = {item: thing.noun for item, thing in scene.things.items()}
    return any(
        scene.domain.same_noun(noun, nouns[item]) and any(scene.domain.same_noun(owner, nouns[o]) for o in owners)
        for item, owners in ((item, scene.owners.get(item, frozenset()) & nouns.keys()) for item in nouns)
    )
