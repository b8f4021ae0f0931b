"""HanDyVQA's questions about one scene: all possible questions with all possible answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

import msgspec

from barista_bench.benchmarks.handyvqa.release import HALF_WINDOW_S
from barista_bench.generate.candidates import FACTS, Choice, QuestionCandidate
from barista_bench.generate.handyvqa.object_questions import Candidates, ObjectQuestions
from barista_bench.generate.handyvqa.statements import (
    ClipWindow,
    HandAction,
    HandAtWork,
    HandIsOn,
    HandsDo,
    Masked,
    NothingElseTouched,
    TouchedInClip,
    clip_halfway,
)
from barista_bench.generate.spans import HandUse, find_overlapping, noun_of, verb_of
from barista_bench.generate.statements import Does, Statement
from barista_bench.generate.wordings import plain_text
from barista_bench.media.frame_choice import evenly_spaced
from barista_bench.scene_graph.domain import Side
from barista_bench.scene_graph.graph_words import action_phrase, participle, spoken_form, verb_and_noun

OTHER_ACTIONS = 8
"""Number of contacts at other times that serve as wrong answers about one moment."""
MASKED = 3
"""Number of frames with masks in a clip whose question is answered by masks."""


class Questions(ObjectQuestions):
    """The questions about one scene. Each subtask has a method."""

    # Action

    def actions(self) -> Candidates:
        """Yield questions about the action at one moment, by the graph's activities. Other times give distractors."""
        scene = self.scene
        texts: dict[str, str] = {}
        actions = [action for action in scene.actions if action.name]
        for action in actions:
            verb, noun = verb_and_noun(scene.action_in_words(action.name))
            doing = self.words.doing.get(verb) or participle(spoken_form(verb))
            texts[action.name] = f"The person is {action_phrase(doing, noun)}."
        for action in actions:
            if halfway := clip_halfway(scene, (action.start + action.end) // 2):
                clip, frame = halfway
                names = [action.name]
                for name in texts:
                    is_wrong = Does(name, frame).truth(scene) is False
                    if is_wrong and not any(self._is_like(name, other) for other in names[1:]):
                        names.append(name)
                right, *distractors = (Choice(texts[name], Does(name, frame)) for name in names)
                during = tuple(index for index in clip.shown if action.start <= index < action.end)
                yield self._candidate("action", clip, right, distractors, (HandAtWork(action.name, during),))

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
            # Two clips that show the same touch begin, or the same touches throughout, ask for the same fact.
            begun = [use for use in uses if clip.start <= use.start]
            event = FACTS.join(f"{use.thing.id} {use.start}" for use in begun or uses)
            for candidate in (
                self._candidate("objects", *arguments),
                self._mask_candidate("rvos_objects", *arguments, uses),
            ):
                yield msgspec.structs.replace(candidate, event=event)

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
        return msgspec.structs.replace(asked, chosen_as=(with_options, plain_question), topic="")

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
