"""The moments of a video that EgoCoT-Bench's task shows, and shared parts of its questions: names, times, candidates.

Frames are counted from 0. Spans are [start, end).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

import msgspec

from barista_bench.benchmarks.egocot.cot import Cot
from barista_bench.benchmarks.egocot.items import clock_text
from barista_bench.generate.candidates import Choice, QuestionCandidate
from barista_bench.generate.descriptions import Basis, is_told_apart, name_object
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import HandUse, NamedObject, ValueSpan
from barista_bench.generate.statements import AllOf, AnyOf, OnlyDuring, Seen, Statement, Touches, Unique
from barista_bench.generate.wordings import Slots, plain_text
from barista_bench.media.frame_choice import evenly_spaced
from barista_bench.scene_graph.domain import DomainRecord, Side
from barista_bench.scene_graph.graph_words import action_phrase, participle, spoken_form, verb_and_noun

DISTRACTORS = 3
"""Number of distractors of a question."""
TOPICS = {
    "AOG": "touch",
    "HGC": "touch",
    "LVR": "place",
    "GOT": "place",
    "GOT state": "state",
    "SR": "state",
    "NSA": "state",
    "LCOI": "state",
}
"""Topics of subtasks that ask about the same facts, by subtask or wording."""


class EgocotWords(DomainRecord, frozen=True):
    """The family's section of a domain file.

    Args:
        states: maps a value, or category and value (`steam wand open`), to the words after `is`; by default the value.
        causes: maps a value to the verbs of actions that cause it.
        verbs: maps the verb of an activity to its common form, with {} for the object unless it comes last.
    """

    states: dict[str, str] = msgspec.field(default_factory=dict)
    causes: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    verbs: dict[str, str] = msgspec.field(default_factory=dict)

    def state(self, value: str, category: str) -> str:
        return self.states.get(f"{category.lower()} {value}", self.states.get(value, value))

    def phrase(self, name: str) -> str:
        """Return the name of an action or a step, with articles.

        >>> words = EgocotWords(verbs={"prepare": "get {} ready"})
        >>> words.phrase("Pick cup"), words.phrase("Pick up cap"), words.phrase("Add ingredient to bowl")
        ('pick up the cup', 'pick up the cap', 'add the ingredient to the bowl')
        >>> words.phrase("Prepare cup")
        'get the cup ready'
        """
        verb, noun = verb_and_noun(name)
        return action_phrase(self.form(verb), noun)

    def form(self, verb: str) -> str:
        """Return the common form of a verb, with {} for the object unless it comes last."""
        return self.verbs.get(verb, spoken_form(verb))


class Moment(NamedTuple):
    """The moment that a question is about: the frames on which the answer must hold, and words for the time.

    Args:
        wording: text that follows the subtask's key in `wordings.yaml`.
        given: conditions under which `slots` mean exactly these frames.
        noun: a name in `slots` that would reveal an object of that name.
    """

    frames: tuple[int, ...]
    wording: str
    slots: Slots
    given: tuple[Statement, ...] = ()
    noun: str = ""

    def on_all(self, statement_at: Callable[[int], Statement]) -> Statement:
        """Return the statement that something holds on all of the frames."""
        return AllOf(tuple(map(statement_at, self.frames))) if len(self.frames) > 1 else statement_at(self.frames[0])

    def on_any(self, statement_at: Callable[[int], Statement]) -> Statement:
        """Return the statement that something holds on at least one of the frames.

        A distractor is excluded if this statement is false.
        """
        return AnyOf(tuple(map(statement_at, self.frames))) if len(self.frames) > 1 else statement_at(self.frames[0])


class ShownScene:
    """A scene as the benchmark's task shows it.

    `frames` are spread evenly over the video. `actions` and `steps` are those with a name.
    """

    def __init__(self, scene: Scene, words: EgocotWords) -> None:
        self.scene = scene
        self.words = words
        self.participles: Mapping[str, str] = scene.domain.families.get("handyvqa", {}).get("doing", {})
        self.actions = [action for action in scene.actions if action.name]
        self.steps = [step for step in scene.steps if step.name]
        self.frames = evenly_spaced(scene.frame_count, Cot.sampling.frames)

    def time(self, frame: int) -> str:
        return clock_text(frame / self.scene.fps)

    def phrase(self, action: str) -> str:
        """Return the name of an action or a step, with articles."""
        return self.words.phrase(self.scene.action_in_words(action))

    def participle_phrase(self, action: str) -> str:
        """Return an action in progress, such as "pouring the milk"."""
        verb, noun = verb_and_noun(self.scene.action_in_words(action))
        return action_phrase(self.participles.get(verb) or participle(self.words.form(verb)), noun)

    def moments(self) -> Iterator[Moment]:
        """Yield each shown moment with its time, and each action that occurs only once, with its shown frames."""
        yield from (Moment((frame,), "", {"time": self.time(frame)}) for frame in self.frames)
        for action in self.actions:
            frames = tuple(frame for frame in self.frames if action.start <= frame < action.end)
            only = OnlyDuring(action.name, action.start, action.end)
            if frames and only.truth(self.scene):
                yield Moment(frames, " while", {"doing": self.participle_phrase(action.name)}, (only,), action.noun)

    def unnamed_things(self, moment: Moment, things: Sequence[NamedObject]) -> list[NamedObject]:
        """Return the objects that the question does not name."""
        return [t for t in things if not moment.noun or not self.scene.domain.same_noun(moment.noun, t.noun)]

    def interval_text(self, start: int, end: int) -> str:
        return f"Between {self.time(start)} and {self.time(end)}."

    @cached_property
    def used_things(self) -> list[NamedObject]:
        """Return the objects that hands touch at any time, each once, by time."""
        return list({use.thing.id: use.thing for use in self.scene.uses}.values())

    @cached_property
    def by_use(self) -> list[NamedObject]:
        """Return the objects that hands touch at any time, then all other objects."""
        return [*self.used_things, *(thing for thing in self.scene.things.values() if thing not in self.used_things)]

    def possible_values(self, span: ValueSpan) -> list[ValueSpan]:
        """Return other values that a span could have, according to the domain.

        Each group of synonyms gives one value. If the domain lists values for the category, other values are left out.
        Values that only objects of other categories have in the video are left out too: no mill rinses.
        """
        dimensions = self.scene.domain.attributes[span.type].groups
        dimension = next((groups for groups in dimensions if any(span.value in group for group in groups)), ())
        listed = self.scene.domain.families.get("vista", {}).get("states", {}).get(span.thing.category.lower())
        by_value: dict[str, set[str]] = defaultdict(set)
        for other in self.scene.values:
            by_value[other.value].add(other.thing.category)
        others = [group[0] for group in dimension if span.value not in group and (not listed or {*group} & {*listed})]
        return [span._replace(value=v) for v in others if not by_value[v] or span.thing.category in by_value[v]]

    def visible_things(
        self, things: Sequence[NamedObject], *frames: int, barred: Collection[Basis] = (), with_stuff: bool = False
    ) -> list[NamedObject]:
        """Return objects that are clearly visible on all frames, under names that fit no other object there.

        Args:
            barred: properties that must not identify the objects.
            with_stuff: whether to include divisible objects, of which only touches can be asked.
        """
        return [
            called
            for thing in things
            if (with_stuff or not self.scene.domain.is_divisible(thing.noun))
            and all(self.scene.is_visible(thing.id, frame) for frame in frames)
            and is_told_apart(self.scene, called := name_object(self.scene, thing, frames, barred), frames)
        ]

    def uses_at(self, *frames: int) -> list[HandUse]:
        """Return the uses with a recorded contact at each of the frames."""
        return [
            use
            for use in self.scene.uses
            if all(any(start <= frame < end for _, start, end in use.contacts) for frame in frames)
        ]

    def touch_key(self, side: Side, thing: NamedObject, frame: int) -> str:
        """Return a key of a hand's touch. A touch of an object by one of its parts is a touch of the part."""
        touched = (use.thing.id for use in self.uses_at(frame) if use.side == side)
        return f"{side} {min((i for i in touched if thing.id in self.scene.wholes.get(i, ())), default=thing.id)}"

    @cached_property
    def first_uses(self) -> dict[HandUse, int]:
        """Map the first use of each object to the first shown moment that shows it clearly, in order of time."""
        first_uses_ = {use.thing: use for use in reversed(self.scene.uses)}.values()
        first_seen: dict[HandUse, int] = {}
        for use in sorted(first_uses_, key=attrgetter("start", "thing.id")):
            frames = (frame for frame in self.frames if use.start <= frame < use.end)
            plainly_seen = (frame for frame in frames if Touches(use.side, use.thing.id, frame).truth(self.scene))
            if (frame := next(plainly_seen, None)) is not None:
                first_seen[use] = frame
        return first_seen

    def moments_around(self, frame: int) -> tuple[int, int] | None:
        """Return the last shown moment before a frame, and the first at or after it; None without an earlier moment."""
        return next(((start, end) for start, end in pairwise(self.frames) if start < frame <= end), None)

    def intervals(self, frame: int) -> Iterator[tuple[list[tuple[int, int]], int]]:
        """Yield all rows of four neighbouring intervals between moments, with the index of the frame's interval.

        The frame must be in the middle half of its interval, since viewers may see a beginning a little sooner or
        later. Intervals between every second moment are used if the frame is too near a moment.
        """
        for step in (1, 2):
            rows = [self.frames[first::step][: DISTRACTORS + 2] for first in range(len(self.frames))]
            found = [
                (list(pairwise(row)), number)
                for row in rows
                for number, (start, end) in enumerate(pairwise(row))
                if len(row) == DISTRACTORS + 2 and abs(2 * frame - start - end) <= (end - start) / 2
            ]
            if found:
                yield from found
                return

    def candidate(
        self,
        wording: str,
        slots: Slots,
        right: Choice,
        choices: Sequence[Choice],
        frames: Sequence[int],
        things: Sequence[NamedObject] = (),
        *,
        answer: str = "",
        event: str = "",
        given: Sequence[Statement] = (),
        is_named: bool = True,
    ) -> QuestionCandidate:
        """Return a candidate. Its objects must be clearly visible and have unique names on all of the frames.

        Args:
            wording: subtask, then a space and the key of its wording, which is filled with `slots`.
            choices: may contain the right choice.
            event: as in `QuestionCandidate`.
            is_named: whether the texts name the objects.
        """
        distinct_frames = tuple(dict.fromkeys(frames))
        seen_things = (Seen(thing.id, frame) for thing in things for frame in distinct_frames)
        names = (Unique(thing.id, distinct_frames, thing.description) for thing in things if is_named)
        if not event and any(thing.description for thing in things):  # the same fact under any names of the objects
            event = " ".join([right.text, *(thing.id for thing in things)])
            for thing in things:
                event = event.replace(thing.name, thing.plain_name or thing.name)
        subtask = wording.partition(" ")[0]
        return QuestionCandidate(
            subtask=subtask,
            video_id=self.scene.video_id,
            question=plain_text(f"egocot/{wording}", slots),
            wording=f"egocot/{wording}",
            slots=dict(slots),
            right=(right,),
            distractors=tuple(choice for choice in choices if choice.text != right.text),
            given=(*seen_things, *names, *given),
            span=(0, self.scene.frame_count),
            frames=distinct_frames,
            objects=tuple(thing.id for thing in things),
            answer=answer,
            event=event,
            topic=TOPICS.get(wording, TOPICS.get(subtask, "")),
        )


def touch_text(side: Side, thing: NamedObject) -> str:
    return f"the {side} hand is touching the {thing.name}"


def sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
