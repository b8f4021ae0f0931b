"""HanDyVQA's questions about the state and the place of one object, and what all questions about clips share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import Any

import msgspec
from msgspec import field

from barista_bench.benchmarks.handyvqa.release import HALF_WINDOW_S
from barista_bench.generate.candidates import FACTS, Choice, QuestionCandidate
from barista_bench.generate.descriptions import TOUCHES, WHOLE_VIDEO, Basis, is_told_apart, name_object
from barista_bench.generate.handyvqa.statements import (
    ClearlyNamed,
    ClipWindow,
    HandIsOn,
    Placed,
    StateSequence,
    clip_around,
    recorded_sequence,
    uses_in_claim,
)
from barista_bench.generate.nearby import place_words
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import SIDES, HandUse, NamedObject, PlaceSpan, find_overlapping
from barista_bench.generate.statements import Seen, Statement
from barista_bench.generate.wordings import plain_text
from barista_bench.scene_graph.domain import AttributeWords, DomainRecord

Candidates = Iterator[QuestionCandidate]
LONGEST_SEQUENCE = 3
"""Maximum number of consecutive values in an answer."""


IN_TOUCH: tuple[Basis, ...] = (*sorted(TOUCHES), *sorted(WHOLE_VIDEO))
"""Properties that must not identify objects if the question is about touches."""


class HandyvqaWords(DomainRecord, frozen=True):
    """The family's words in a domain file.

    Args:
        doing: maps verbs of activities to their participles, if these are not regular.
        grip: the contact that means that a hand holds an object.
        where: spatial predicates that tell the place of the first of two objects.
        state: type of the attribute that questions are about.
        states: maps a value, or category and value, to its words after "first", if the value itself does not fit there.
    """

    doing: dict[str, str] = field(default_factory=dict)
    grip: str = ""
    where: tuple[str, ...] = ()
    state: str = ""
    states: dict[str, str] = field(default_factory=dict)


class ClipNames:
    """Names of a scene's objects in clips.

    The methods take an object's id, a clip, and the properties that must not identify objects (`barred`). `moment` is
    the frame that the question is explicitly about, if there is one. A description must be unique only on that frame,
    but a name must be unique in the complete clip.
    """

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def name(
        self, object_id: str, clip: ClipWindow, barred: Sequence[Basis] = IN_TOUCH, moment: int | None = None
    ) -> str:
        return self._name_for_clip(object_id, clip, barred, moment)[0].name

    def is_clear(
        self, object_id: str, clip: ClipWindow, barred: Sequence[Basis] = IN_TOUCH, moment: int | None = None
    ) -> bool:
        """Return whether the name of an object fits no other object."""
        return is_told_apart(self.scene, *self._name_for_clip(object_id, clip, barred, moment))

    def conditions(
        self, ids: Iterable[str], clip: ClipWindow, barred: Sequence[Basis] = IN_TOUCH, moment: int | None = None
    ) -> tuple[Statement, ...]:
        """Return statements that the names of the objects fit no other objects."""
        rows = [(object_id, *self._name_for_clip(object_id, clip, barred, moment)) for object_id in ids]
        return tuple(ClearlyNamed(object_id, frames, called.description) for object_id, called, frames in rows)

    def _name_for_clip(
        self, object_id: str, clip: ClipWindow, barred: Sequence[Basis], moment: int | None
    ) -> tuple[NamedObject, tuple[int, ...]]:
        """Return an object with its name, and the frames on which the name must be unique."""
        thing = self.scene.things[object_id]
        is_clear = moment is None or self.scene.is_unique(thing, clip.shown)
        frames = clip.shown if is_clear or moment is None else (moment,)
        called = name_object(self.scene, thing, frames, barred)
        return called, frames if called.description else clip.shown


class ObjectQuestions:
    """The questions about one object of a scene. Each subtask has a method."""

    def __init__(self, scene: Scene, words: HandyvqaWords) -> None:
        self.scene = scene
        self.words = words
        self.names = ClipNames(scene)

    def states(self) -> Candidates:
        """Yield questions about the sequence of an attribute's values, in clips around and halfway between changes.

        The object changes or is touched in the clip.
        """
        scene, kind = self.scene, self.words.state
        spans = [span for span in scene.values if span.type == kind]
        for thing in dict.fromkeys(span.thing for span in spans):
            spans_of_thing = [span for span in spans if span.thing.id == thing.id]
            usual_values = {span.value for span in spans if span.thing.category == thing.category}
            moments = {frame for span in spans_of_thing for frame in (span.start, (span.start + span.end) // 2)}
            for clip in dict.fromkeys(clip_around(scene, frame) for frame in sorted(moments - {0})):
                changes = [span.start for span in spans_of_thing if clip.start < span.start < clip.stop]
                uses = find_overlapping(scene.uses, clip.start, clip.stop)
                if not changes and not any(thing.id in (u.thing.id, *scene.wholes.get(u.thing.id, ())) for u in uses):
                    continue
                recorded = recorded_sequence(scene, thing.id, kind, clip.start, clip.stop, clip.shown)
                sequence = recorded if recorded and len(recorded) <= LONGEST_SEQUENCE else (spans_of_thing[0].value,)
                sequences = dict.fromkeys(
                    (sequence, *_other_sequences(scene.domain.attributes[kind], sequence[0], usual_values))
                )
                right, *distractors = (self._sequence_choice(thing, values, clip) for values in sequences)
                barred: Sequence[Basis] = (*WHOLE_VIDEO, "action")
                given = self.names.conditions((thing.id,), clip, barred)
                slots = {"name": self.names.name(thing.id, clip, barred)}
                candidate = self._candidate("state", clip, right, distractors, given, (thing.id,), slots=slots)
                events = [f"{thing.id} from {frame}" for frame in changes] or [f"{thing.id} {sequence}"]
                yield msgspec.structs.replace(candidate, event=FACTS.join(events))

    def _sequence_choice(self, thing: NamedObject, values: tuple[str, ...], clip: ClipWindow) -> Choice:
        category = thing.category.lower()
        words = [self.words.states.get(f"{category} {value}", self.words.states.get(value, value)) for value in values]
        steps = [f"{word} again" if word in words[:index] else word for index, word in enumerate(words)]
        text = f"{words[0].capitalize()} throughout." if len(words) == 1 else f"First {', then '.join(steps)}."
        return Choice(text, StateSequence(thing.id, self.words.state, values, clip.start, clip.stop, clip.shown))

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
                distractors = _one_per_place(scene, [choice for choice in choices if choice is not right], right)
                given = (*self.names.conditions((thing.id,), clip, barred, frame), Seen(thing.id, frame))
                arguments = clip, right, distractors, given, (thing.id,)
                name = self.names.name(thing.id, clip, barred, frame)
                candidate = self._candidate(f"location {end}", *arguments, slots={"name": name})
                place = right.statement  # a cup on a saucer is a saucer under a cup
                event = " ".join(sorted((thing.id, place.other))) if isinstance(place, Placed) else candidate.event
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
        """Return a candidate. `wording` is the subtask, then a space and the key of its wording.

        All questions whose answers name touches have one topic, and each touch is asked about once.
        """
        key = f"handyvqa/{wording}"
        answers = (right,) if isinstance(right, Choice) else right
        uses = [use for choice in answers for use in uses_in_claim(self.scene, choice.statement)]
        return QuestionCandidate(
            subtask=wording.partition(" ")[0],
            video_id=self.scene.video_id,
            question=plain_text(key, slots or {}),
            wording=key,
            slots=dict(slots or {}),
            right=answers,
            distractors=tuple(distractors),
            given=given,
            span=(clip.start, clip.stop),
            frames=(clip.centre,),
            objects=objects,
            extra=extra or {},
            event=FACTS.join(f"{use.side} {use.thing.id} {use.start}" for use in uses),
            topic="touch" if uses else "",
        )


def _one_per_place(scene: Scene, distractors: Sequence[Choice], right: Choice) -> list[Choice]:
    """Return distractors without several places at one object, which would be wrong together.

    Excluded places come before undecided ones. The object of the right place may have several.
    """
    kept: dict[object, Choice] = {}
    for choice in sorted(distractors, key=lambda each: each.statement.truth(scene) is not False):
        other = getattr(choice.statement, "other", choice.text)
        kept.setdefault(choice.text if other == getattr(right.statement, "other", None) else other, choice)
    return [choice for choice in distractors if choice in kept.values()]


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
