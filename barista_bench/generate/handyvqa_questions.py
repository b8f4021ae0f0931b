"""HanDyVQA's questions about one scene: all possible questions with all possible answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import Any

import msgspec
from msgspec import field

from barista_bench.benchmarks.handyvqa.release import HALF_WINDOW_S
from barista_bench.generate.candidates import FACTS, Choice, QuestionCandidate
from barista_bench.generate.descriptions import TOUCHES, WHOLE_VIDEO, Basis
from barista_bench.generate.handyvqa_names import ClipNames
from barista_bench.generate.handyvqa_statements import (
    ClipWindow,
    HandAction,
    HandAtWork,
    HandIsOn,
    HandsDo,
    InWords,
    Masked,
    NothingElseTouched,
    Placed,
    StateSequence,
    TouchedInClip,
    clip_around,
    clip_halfway,
    recorded_sequence,
)
from barista_bench.generate.nearby import place_words
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import SIDES, HandUse, NamedObject, PlaceSpan, find_overlapping, noun_of, verb_of
from barista_bench.generate.statements import Does, Seen, Statement
from barista_bench.generate.wordings import plain_text
from barista_bench.media.frame_choice import evenly_spaced
from barista_bench.scene_graph.domain import AttributeWords, DomainRecord, Side
from barista_bench.scene_graph.graph_words import verb_and_noun

Candidates = Iterator[QuestionCandidate]
OTHER_ACTIONS = 8
"""Number of contacts at other times that serve as wrong answers about one moment."""
LONGEST_SEQUENCE = 3
"""Maximum number of consecutive values in an answer."""
MASKED = 3
"""Number of frames with masks in a clip whose question is answered by masks."""


class HandyvqaWords(DomainRecord, frozen=True):
    """The family's words in a domain file.

    Args:
        doing: maps verbs of activities (press) to their participles (pressing).
        grip: the contact that means that a hand holds an object.
        where: spatial predicates that tell the place of the first of two objects.
        state: type of the attribute that questions are about.
        states: maps a value, or category and value, to its words after "first", if the value itself does not fit there.
    """

    doing: dict[str, str]
    grip: str
    where: tuple[str, ...]
    state: str
    states: dict[str, str] = field(default_factory=dict)


class Questions:
    """The questions about one scene. Each subtask has a method."""

    def __init__(self, scene: Scene, words: HandyvqaWords) -> None:
        self.scene = scene
        self.words = words
        self.names = ClipNames(scene)

    # Action

    def actions(self) -> Candidates:
        """Yield questions about the action at one moment, by the graph's activities. Other times give distractors."""
        scene = self.scene
        texts: dict[str, str] = {}
        for action in scene.actions:
            verb, noun = verb_and_noun(scene.action_in_words(action.name))
            doing = self.words.doing.get(verb, "")
            texts[action.name] = f"The person is {doing} the {noun}." if doing else ""
        for action in scene.actions:
            if halfway := clip_halfway(scene, (action.start + action.end) // 2):
                clip, frame = halfway
                names = [action.name]
                for name in texts if texts[action.name] else ():
                    is_wrong = texts[name] and Does(name, frame).truth(scene) is False
                    if is_wrong and not any(self._is_like(name, other) for other in names[1:]):
                        names.append(name)
                right, *distractors = (Choice(texts[name], Does(name, frame)) for name in names)
                during = tuple(index for index in clip.shown if action.start <= index < action.end)
                conditions = (InWords(action.name, bool(texts[action.name])), HandAtWork(action.name, during))
                yield self._candidate("action", clip, right, distractors, conditions)

    def _is_like(self, first: str, second: str) -> bool:
        """Return whether two actions could be one, such as lifting and raising a cup. Both would be wrong together."""
        domain = self.scene.domain
        same_verb = domain.same_verb(verb_of(first), verb_of(second))
        return same_verb and domain.same_noun(noun_of(first), noun_of(second))

    # Process

    def processes(self) -> Candidates:
        """Yield questions about the action of each hand at one moment.

        Distractors exchange the hands, or have actions of other times.
        """
        scene = self.scene
        for clip, frame in self._clips_halfway(scene.uses):
            hand_actions = self._hand_action("left", frame), self._hand_action("right", frame)
            actions = [action for action in hand_actions if action is not None]
            pool = [*dict.fromkeys((*actions, *self._other_actions(clip, frame))), None]
            pairs = [hand_actions[::-1], *product([*actions, None], pool), *product(pool, [*actions, None])]
            other_pairs = dict.fromkeys(pair for pair in (*pairs, *product(pool, pool)) if self._is_sayable(*pair))
            other_pairs.pop(hand_actions, None)
            right = self._hands_choice(*hand_actions, clip, frame)
            distractors = [self._hands_choice(*pair, clip, frame) for pair in other_pairs]
            ids = tuple(dict.fromkeys(item for _, item in actions))
            yield self._candidate(
                "process", clip, right, distractors, self.names.conditions(ids, clip, moment=frame), ids
            )

    def _other_actions(self, clip: ClipWindow, frame: int) -> list[HandAction]:
        """Return actions of hands at other times, the nearest first.

        The names of the actions' objects must be unique in the clip.
        """
        rows = [
            (abs(start + end - 2 * frame), (value, use.thing.id))
            for use in self.scene.uses
            for value, start, end in use.contacts
            if value in self.scene.domain.contacts and self.names.is_clear(use.thing.id, clip, moment=frame)
        ]
        return list(dict.fromkeys(action for _, action in sorted(rows)))[:OTHER_ACTIONS]

    def _clips_halfway(self, uses: Iterable[HandUse]) -> list[tuple[ClipWindow, int]]:
        """Return clips with a contact at their midpoint.

        The midpoints are the middle of each contact, and every half clip within a contact. No two clips are next to
        each other.
        """
        step = self.scene.frames_in(HALF_WINDOW_S)
        moments: set[int] = set()
        for _, start, end in (contact for use in uses for contact in use.contacts):
            middle, reach = (start + end) // 2, (end - start - 1) // 2 // step * step
            moments.update(range(middle - reach, middle + reach + 1, step))
        spaced_frames: list[int] = []
        for frame in sorted(moments):
            if not spaced_frames or frame - spaced_frames[-1] >= self.scene.frames_in(self.scene.domain.lengths.gap):
                spaced_frames.append(frame)
        return list(dict.fromkeys(filter(None, (clip_halfway(self.scene, frame) for frame in spaced_frames))))

    def _hand_action(self, side: Side, frame: int) -> HandAction | None:
        """Return the action of a hand at a frame.

        If there are several contacts, a contact with a part comes first, then the contact that ends soonest. A mere
        touch, which excludes no other contact, comes last: the towel in the hand before the wand that it wipes.
        """
        contacts, wholes = self.scene.domain.contacts, self.scene.wholes
        contact_order = list(contacts)
        rows = [
            (
                not contacts[value].excludes,
                not wholes.get(use.thing.id),
                end - start,
                -contact_order.index(value),
                value,
                use.thing.id,
            )
            for use in find_overlapping(self.scene.uses, frame, frame + 1)
            for value, start, end in use.contacts
            if use.side == side and start <= frame < end and value in contact_order
        ]
        return min(rows)[4:] if rows else None

    def _is_sayable(self, left: HandAction | None, right: HandAction | None) -> bool:
        """Return whether a wrong answer can make this claim about two hands.

        It can say that only one hand is free, or that both hands do the same to one object. It can also say that they
        act on two different objects, if neither is a part of the other.
        """
        if left is None or right is None:
            return left is not right
        return left == right or (left[1] != right[1] and not self.scene.is_part_of_other(left[1], right[1]))

    def _hands_choice(self, left: HandAction | None, right: HandAction | None, clip: ClipWindow, frame: int) -> Choice:
        contacts = self.scene.domain.contacts
        words = [
            f"{contacts[row[0]].doing} the {self.names.name(row[1], clip, moment=frame)}" if row else "free"
            for row in (left, right)
        ]
        text = f"The left hand is {words[0]}, and the right hand is {words[1]}."
        text = f"Both hands are {words[0]}." if left is not None and left == right else text
        return Choice(text, HandsDo(left, right, frame, clip.shown))

    # Parts

    def parts(self) -> Candidates:
        """Yield questions about the part that a hand is on at one moment. Distractors are other visible parts."""
        scene = self.scene
        wholes = {whole for owners in scene.owners.values() for whole in owners}
        parts = [part for part in scene.owners if part in scene.things and part not in wholes]
        for use in scene.uses:
            for clip, frame in self._clips_halfway([use]) if use.thing.id in parts else ():
                others = [part for part in parts if part != use.thing.id and self.names.is_clear(part, clip)]
                right, *distractors = (
                    self._part_choice(part, use.side, clip, frame) for part in (use.thing.id, *others)
                )
                slots, given = {"side": use.side}, self.names.conditions((use.thing.id,), clip)
                arguments = clip, right, distractors, given, (use.thing.id,)
                yield self._candidate("parts", *arguments, slots=slots)
                yield self._mask_candidate("rvos_parts", *arguments, [use], slots=slots)

    def _part_choice(self, part: str, side: Side, clip: ClipWindow, frame: int) -> Choice:
        name = self.names.name(part, clip)
        owners = [thing.name for thing in self.scene.things.values() if thing.id in self.scene.owners[part]]
        says_whole = " " in name or not owners  # "rinse button" names its owner, "knob" does not
        text = f"The {name}." if says_whole else f"The {name} of the {owners[0]}."
        return Choice(text, HandIsOn(side, part, None, frame, clip.shown))

    # Objects

    def objects(self) -> Candidates:
        """Yield questions about the objects that hands touch in a clip. Other visible objects are distractors.

        A whole and its part count as one object.
        """
        scene = self.scene
        for clip, _ in self._clips_halfway(scene.uses):
            uses = find_overlapping(scene.uses, clip.start, clip.stop)
            touched = dict.fromkeys(use.thing.id for use in uses)
            answers = [item for item in touched if not any(whole in touched for whole in scene.wholes.get(item, ()))]
            touched_with = {other for item in touched for other in self._touched_with(item, clip)}
            countable = [item for item, thing in scene.things.items() if not scene.domain.is_divisible(thing.noun)]
            other_ids = [item for item in countable if item not in touched_with and self.names.is_clear(item, clip)]
            right = tuple(self._object_choice(item, clip) for item in answers)
            nothing_else = NothingElseTouched(tuple(answers), clip.start, clip.stop, clip.shown)
            distractors = [self._object_choice(item, clip) for item in other_ids]
            arguments = (
                clip,
                right,
                distractors,
                (*self.names.conditions(answers, clip), nothing_else),
                tuple(answers),
            )
            yield self._candidate("objects", *arguments)
            yield self._mask_candidate("rvos_objects", *arguments, uses)

    def _object_choice(self, item: str, clip: ClipWindow) -> Choice:
        return Choice(self.names.name(item, clip), TouchedInClip(item, clip.start, clip.stop, clip.shown))

    def _touched_with(self, item: str, clip: ClipWindow) -> Iterator[str]:
        """Yield an object, its parts and wholes, and the objects in, on or at it in a clip.

        A touch of any of these may be described as a touch of another.
        """
        yield item
        yield from (other for other in self.scene.things if self.scene.is_part_of_other(item, other))
        for span in find_overlapping(self.scene.places, clip.start, clip.stop):
            if item in (span.thing.id, span.other.id):
                yield from (span.thing.id, span.other.id)

    def _mask_candidate(
        self,
        subtask: str,
        clip: ClipWindow,
        right: Choice | tuple[Choice, ...],
        distractors: Iterable[Choice],
        given: tuple[Statement, ...],
        items: tuple[str, ...],
        uses: Sequence[HandUse],
        slots: Mapping[str, str] | None = None,
    ) -> QuestionCandidate:
        """Return a question that masks of the objects `items` answer, in the order of `right`, each with its parts."""
        wholes = self.scene.wholes
        masked_ids = [[item, *(part for part in wholes if item in wholes[part])] for item in items]
        frames = self._masked_frames(clip, items, uses)
        readable = Masked(tuple(object_id for ids in masked_ids for object_id in ids), frames)
        extra = {"annotated": list(frames), "masked": masked_ids}
        asked = self._candidate(subtask, clip, right, distractors, (*given, readable), items, slots=slots, extra=extra)
        with_options = subtask.removeprefix("rvos_")
        plain_question = plain_text(f"handyvqa/{with_options}", slots or {})
        return msgspec.structs.replace(asked, chosen_as=(with_options, plain_question))

    def _masked_frames(self, clip: ClipWindow, items: Sequence[str], uses: Sequence[HandUse]) -> tuple[int, ...]:
        """Return frames with a mask of the answer, evenly spaced and in order.

        On each frame, every object of the answer is clearly visible or outside the picture. If there are enough frames
        on which some object is touched, only these are used.
        """
        visibility = {frame: [self.scene.is_visible(item, frame) for item in items] for frame in clip.shown}
        clear_frames = [frame for frame in clip.shown if None not in visibility[frame] and any(visibility[frame])]
        touched_frames = [frame for frame in clear_frames if any(use.start <= frame < use.end for use in uses)]
        pool = touched_frames if len(touched_frames) >= MASKED else clear_frames
        return tuple(pool[index] for index in evenly_spaced(len(pool), MASKED)) if pool else ()

    # State

    def states(self) -> Candidates:
        """Yield questions about the sequence of an attribute's values, in clips around and halfway between changes."""
        scene, kind = self.scene, self.words.state
        words = scene.domain.attributes[kind]
        spans = [span for span in scene.values if span.type == kind]
        for thing in dict.fromkeys(span.thing for span in spans):
            spans_of_thing = [span for span in spans if span.thing.id == thing.id]
            usual_values = {span.value for span in spans if span.thing.category == thing.category}
            moments = {frame for span in spans_of_thing for frame in (span.start, (span.start + span.end) // 2)}
            for clip in dict.fromkeys(clip_around(scene, frame) for frame in sorted(moments - {0})):
                recorded = recorded_sequence(scene, thing.id, kind, clip.start, clip.stop, clip.shown)
                sequence = recorded if recorded and len(recorded) <= LONGEST_SEQUENCE else (spans_of_thing[0].value,)
                sequences = dict.fromkeys((sequence, *_other_sequences(words, sequence[0], usual_values)))
                right, *distractors = (self._sequence_choice(thing, values, clip) for values in sequences)
                barred: Sequence[Basis] = (*WHOLE_VIDEO, "action")
                given = self.names.conditions((thing.id,), clip, barred)
                slots = {"name": self.names.name(thing.id, clip, barred)}
                candidate = self._candidate("state", clip, right, distractors, given, (thing.id,), slots=slots)
                changes = [span.start for span in spans_of_thing if clip.start < span.start < clip.stop]
                events = [f"{thing.id} from {frame}" for frame in changes] or [f"{thing.id} {sequence}"]
                yield msgspec.structs.replace(candidate, event=FACTS.join(events))

    def _sequence_choice(self, thing: NamedObject, values: tuple[str, ...], clip: ClipWindow) -> Choice:
        category = thing.category.lower()
        words = [self.words.states.get(f"{category} {value}", self.words.states.get(value, value)) for value in values]
        steps = [f"{word} again" if word in words[:index] else word for index, word in enumerate(words)]
        text = f"{words[0].capitalize()} throughout." if len(words) == 1 else f"First {', then '.join(steps)}."
        return Choice(text, StateSequence(thing.id, self.words.state, values, clip.start, clip.stop, clip.shown))

    # Location

    def locations(self) -> Candidates:
        """Yield questions about the place of an object at both ends of a clip.

        The object is touched or moves in the clip.
        """
        scene = self.scene
        used_things = {use.thing for use in scene.uses}
        for centre, thing in self._moves():
            clip = clip_around(scene, centre)
            barred: Sequence[Basis] = (*WHOLE_VIDEO, *TOUCHES, "place")
            places = [placing for placing in self._places(thing) if self.names.is_clear(placing[1], clip, barred)]
            for end, frame in (("start", clip.shown[0]), ("end", clip.shown[-1])) if places else ():
                named_places = [(predicate, other, self.names.name(other, clip, barred)) for predicate, other in places]
                choices = [
                    Choice(
                        f"{place_words(scene, predicate, other).capitalize()} the {name}.",
                        Placed(thing.id, predicate, other, frame),
                    )
                    for predicate, other, name in named_places
                ]
                hands = [
                    Choice(f"In the {side} hand.", HandIsOn(side, thing.id, self.words.grip, frame, clip.shown))
                    for side in SIDES
                    if thing in used_things
                ]
                in_both = all(choice.statement.truth(scene) for choice in hands)  # neither reveals the place
                choices += [] if in_both else hands
                right = next((choice for choice in choices if choice.statement.truth(scene)), choices[-1])
                distractors = [choice for choice in choices if choice is not right]
                given = (*self.names.conditions((thing.id,), clip, barred, frame), Seen(thing.id, frame))
                arguments = clip, right, distractors, given, (thing.id,)
                name = self.names.name(thing.id, clip, barred, frame)
                candidate = self._candidate(f"location {end}", *arguments, slots={"name": name})
                place = right.statement  # a cup on a saucer is a saucer under a cup
                event = " ".join(sorted((thing.id, place.other))) if isinstance(place, Placed) else ""
                yield msgspec.structs.replace(candidate, event=event)

    def _moves(self) -> list[tuple[int, NamedObject]]:
        """Return the centres of clips that show how an object is touched or moves.

        A touch or a short stay at a place is at the middle or at an end of the clip. A change of place is at the
        middle.
        """
        scene = self.scene
        half = scene.frames_in(HALF_WINDOW_S)
        passing = [span for span in scene.places if span.end - span.start <= 2 * half]
        spans: list[HandUse | PlaceSpan] = [*scene.uses, *passing]
        middles = {((span.start + span.end) // 2, span.thing) for span in spans}
        edges = {(f, span.thing) for span in scene.places for f in (span.start, span.end)}
        rows = middles | edges | {(frame + index, thing) for frame, thing in middles for index in (-half, half)}
        return sorted(row for row in rows if 0 < row[0] < scene.frame_count and row[1].id not in scene.wholes)

    def _places(self, thing: NamedObject) -> list[tuple[str, str]]:
        """Return (predicate, id of the other object) for all places of an object in the video.

        Then follow the places of objects of its category, and of objects that its name could also mean (sugar for
        milk, but no substance for its carton). Places relative to a part of the object are left out, and so are places
        under something in a hand.
        """
        spans = [
            span for span in self.scene.places if span.predicate in self.words.where and not self._is_pressed(span)
        ]
        alike = [span for span in spans if span.thing.category == thing.category]
        domain = self.scene.domain
        others = [
            span
            for span in spans
            if domain.same_noun(span.thing.category, thing.category)
            and domain.is_divisible(span.thing.noun) == domain.is_divisible(thing.noun)
        ]
        ordered = [*(span for span in spans if span.thing.id == thing.id), *alike, *others]
        pairs = dict.fromkeys((span.predicate, span.other.id) for span in ordered)
        return [pair for pair in pairs if pair[1] != thing.id and not self.scene.is_part_of_other(thing.id, pair[1])]

    def _is_pressed(self, span: PlaceSpan) -> bool:
        """Return whether a hand is on the thing that an object is under.

        For example, the portafilter is not said to be under the tamper.
        """
        is_used = any(use.thing == span.other for use in find_overlapping(self.scene.uses, span.start, span.end))
        return is_used and bool(self.scene.domain.places[span.predicate].enclosed)

    # Shared parts

    def _candidate(
        self,
        wording: str,
        clip: ClipWindow,
        right: Choice | tuple[Choice, ...],
        distractors: Iterable[Choice],
        given: tuple[Statement, ...] = (),
        objects: tuple[str, ...] = (),
        *,
        slots: Mapping[str, str] | None = None,
        extra: dict[str, Any] | None = None,
    ) -> QuestionCandidate:
        """Return a candidate. `wording` is the subtask, then a space and the key of its wording."""
        key = f"handyvqa/{wording}"
        return QuestionCandidate(
            subtask=wording.partition(" ")[0],
            video_id=self.scene.video_id,
            question=plain_text(key, slots or {}),
            wording=key,
            slots=dict(slots or {}),
            right=(right,) if isinstance(right, Choice) else right,
            distractors=tuple(distractors),
            given=given,
            span=(clip.start, clip.stop),
            frames=(clip.centre,),
            objects=objects,
            extra=extra or {},
        )


def _other_sequences(words: AttributeWords, first: str, usual_values: Iterable[str]) -> list[tuple[str, ...]]:
    """Return sequences of values of the dimension of `first`. Each value differs from the value before it.

    They use the usual values, or all values of the dimension if only one value is usual.
    """
    for dimension in words.groups:
        if not any(first in group for group in dimension):
            continue
        values = [value for group in dimension for value in group if value in usual_values]
        values = values if len(values) > 1 else [first, *(group[0] for group in dimension if first not in group)]
        rows = [row for count in range(1, LONGEST_SEQUENCE + 1) for row in product(values, repeat=count)]
        return [row for row in rows if all(before != after for before, after in pairwise(row))]
    return []
