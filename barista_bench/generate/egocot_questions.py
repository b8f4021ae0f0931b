"""Everything that EgoCoT-Bench's twelve subtasks could ask about a scene, at the moments that its task shows.

Questions are symmetric: the choices of one are right answers of others (the other hand, the other object, the change
before), and where a choice says two things, all four combinations of two values each stand there, so that no choice can
be told by what it shares with the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, pairwise

import msgspec

from barista_bench.benchmarks.egocot.cot import Cot
from barista_bench.benchmarks.egocot.items import clock
from barista_bench.errors import ConfigError
from barista_bench.generate.candidates import Candidate, Choice
from barista_bench.generate.egocot_statements import (
    Across,
    BringsAbout,
    Down,
    InQuarter,
    InStep,
    NextAction,
    NextState,
    causes_of,
    quarter_of,
)
from barista_bench.generate.scene import HandUse, Scene, Thing, ValueSpan
from barista_bench.generate.statements import SIDES, AllOf, Changes, HasValue, Precedes, Seen, Statement, Touches, Unique
from barista_bench.media.frame_choice import evenly_spaced
from barista_bench.scene_graph.domain import Domain, DomainRecord, Side

WRONG = 3
"""Wrong choices of a question."""
ORDERED = 4
"""Things whose order is asked about."""
QUARTERS: tuple[tuple[Down, Across], ...] = (
    ("upper", "left"),
    ("upper", "right"),
    ("lower", "left"),
    ("lower", "right"),
)


class EgoCoTWords(DomainRecord, frozen=True):
    """The family's section of a domain file.

    Args:
        states: a value, as it stands after `is`; by default the value itself.
        causes: a value, and verbs of actions that bring it about.
    """

    states: dict[str, str] = {}
    causes: dict[str, tuple[str, ...]] = {}

    def state(self, value: str) -> str:
        return self.states.get(value, value)


def words_of(domain: Domain) -> EgoCoTWords:
    """Raises ConfigError where the section says something that the family does not know."""
    try:
        return msgspec.convert(domain.families.get("egocot", {}), EgoCoTWords)
    except msgspec.ValidationError as error:
        remedy = "compare with the domain.yaml of the package"
        raise ConfigError(f"domain file: families.egocot: {error}. Remedy: {remedy}") from error


class Moments:
    """A scene at the frames that the benchmark's task shows of a video."""

    def __init__(self, scene: Scene, words: EgoCoTWords) -> None:
        self.scene = scene
        self.words = words
        self.shown = evenly_spaced(scene.frame_count, Cot.sampling.frames)

    def time(self, frame: int) -> str:
        return clock(frame / self.scene.fps)

    @cached_property
    def used(self) -> list[Thing]:
        """What hands are ever on, each once, by time: what a person looks for."""
        return list({use.thing.id: use.thing for use in self.scene.uses}.values())

    @cached_property
    def in_reach(self) -> list[Thing]:
        """What hands are ever on, and then all else."""
        return [*self.used, *(thing for thing in self.scene.things.values() if thing not in self.used)]

    def visible(self, things: Sequence[Thing], frames: Sequence[int]) -> list[Thing]:
        """Those that are well to be seen on all frames, by a name that fits nothing else there."""
        return [
            thing
            for thing in things
            if all(self.scene.visible(thing.id, frame) for frame in frames) and self.scene.unique(thing, frames)
        ]

    def contacts(self, frame: int) -> list[HandUse]:
        """What hands are on at a frame."""
        return [use for use in self.scene.uses if any(start <= frame < end for _, start, end in use.contacts)]

    def around(self, change: tuple[ValueSpan, ValueSpan]) -> tuple[int, int] | None:
        """The last moment shown before a change, and the first from it on; None where it comes first or last."""
        at = change[1].start
        return next(((a, b) for a, b in pairwise(self.shown) if a < at <= b), None)

    def between(self, start: int, end: int) -> str:
        return f"Between {self.time(start)} and {self.time(end)}."

    def question(
        self,
        subtask: str,
        question: str,
        right: Choice,
        wrong: Sequence[Choice],
        frames: Sequence[int],
        things: Sequence[Thing],
        *,
        answer: str = "",
        given: Sequence[Statement] = (),
    ) -> Candidate:
        """A candidate about things that must be well to be seen, by names of their own, on all of the frames."""
        asked = tuple(dict.fromkeys(frames))
        seen = (Seen(thing.id, frame) for thing in things for frame in asked)
        return Candidate(
            subtask=subtask,
            video_id=self.scene.video_id,
            question=question,
            right=(right,),
            wrong=tuple(wrong),
            given=(*seen, *(Unique(thing.id, asked) for thing in things), *given),
            span=(0, self.scene.frame_count),
            frames=asked,
            objects=tuple(thing.id for thing in things),
            answer=answer,
        )


def active_object(at: Moments) -> Iterator[Candidate]:
    """AOG: what a hand is on."""
    for frame in at.shown:
        for use in at.contacts(frame):
            question = f"At {at.time(frame)}, which object is the {use.side} hand touching?"
            others = [thing for thing in at.visible(at.in_reach, [frame]) if thing != use.thing]

            def choice(thing: Thing, side: Side = use.side, frame: int = frame) -> Choice:
                return Choice(f"The {thing.name}.", Touches(side, thing.id, frame))

            yield at.question("AOG", question, choice(use.thing), list(map(choice, others)), [frame], [use.thing])


def hand_of_object(at: Moments) -> Iterator[Candidate]:
    """HOA: which hand is on which of two objects."""
    for frame in at.shown:
        for use in at.contacts(frame):
            for other in at.visible(at.used, [frame]):
                if other == use.thing or at.scene.is_part_of_other(other.id, use.thing.id):
                    continue

                def choice(side: Side, thing: Thing, frame: int = frame) -> Choice:
                    return Choice(f"{_touching(side, thing)}.".capitalize(), Touches(side, thing.id, frame))

                question = f"At {at.time(frame)}, which hand is touching which object?"
                right = choice(use.side, use.thing)
                wrong = [choice(side, thing) for side in SIDES for thing in (use.thing, other)]
                yield at.question("HOA", question, right, _but(wrong, right), [frame], [use.thing, other])


def state_in_use(at: Moments) -> Iterator[Candidate]:
    """MSP: the state of what a hand is on, and which hand that is."""
    for frame in at.shown:
        for use in at.contacts(frame):
            for now, other in _alternatives(at, use.thing, frame):

                def choice(value: str, side: Side, now: ValueSpan = now, frame: int = frame) -> Choice:
                    text = f"It is {at.words.state(value)}, and the {side} hand is touching it."
                    has = HasValue(now.thing.id, now.type, value, frame)
                    return Choice(text, AllOf((has, Touches(side, now.thing.id, frame))))

                question = f"What is the state of the {use.thing.name} at {at.time(frame)}, and which hand is on it?"
                right = choice(now.value, use.side)
                wrong = [choice(value, side) for value in (now.value, other) for side in SIDES]
                yield at.question("MSP", question, right, _but(wrong, right), [frame], [use.thing])


def _alternatives(at: Moments, thing: Thing, frame: int) -> Iterator[tuple[ValueSpan, str]]:
    """(a thing's value at a frame, another one that it has at another time)."""
    spans = [span for span in at.scene.values if span.thing == thing]
    for now in spans:
        if now.start <= frame < now.end:
            others = dict.fromkeys(s.value for s in spans if s.type == now.type and s.value != now.value)
            yield from ((now, value) for value in others)


def when_it_changed(at: Moments) -> Iterator[Candidate]:
    """SR: until when something was in its former state."""
    for before, after in at.scene.changes:
        for intervals, right in _intervals(at, after.start):

            def choice(frames: tuple[int, int], before: ValueSpan = before, after: ValueSpan = after) -> Choice:
                start, end = frames
                changes = Changes(before.thing.id, before.type, before.value, after.value, start, end + 1)
                return Choice(at.between(start, end), changes)

            first, last = (at.words.state(span.value) for span in (before, after))
            question = f"Looking back, when did the {before.thing.name} go from {first} to {last}?"
            choices = [choice(frames) for frames in intervals]
            frames = intervals[right]
            wrong = _but(choices, choices[right])
            yield at.question("SR", question, choices[right], wrong, frames, [before.thing], answer=f"interval {right}")


def _intervals(at: Moments, frame: int) -> Iterator[tuple[list[tuple[int, int]], int]]:
    """Four neighbouring intervals of moments, and which of them a frame (start, end] is in."""
    pairs = list(pairwise(at.shown))
    for first in range(len(pairs) - WRONG):
        four = pairs[first : first + WRONG + 1]
        for number, (start, end) in enumerate(four):
            if start < frame <= end:
                yield four, number


def place_before(at: Moments) -> Iterator[Candidate]:
    """LVR: in which part of the frame something was that hands move."""
    for thing in at.used:
        for frame in at.shown:
            question = f"Looking back at {at.time(frame)}, in which part of the frame was the {thing.name}?"
            if quarter := quarter_of(at.scene, thing.id, frame):
                right, wrong = _quarters(thing, frame, quarter)
                yield at.question("LVR", question, right, wrong, [frame], [thing])


def _quarters(thing: Thing, frame: int, quarter: tuple[Down, Across]) -> tuple[Choice, list[Choice]]:
    choices = {(d, a): Choice(f"In the {d} {a}.", InQuarter(thing.id, d, a, frame)) for d, a in QUARTERS}
    return choices[quarter], [choice for where, choice in choices.items() if where != quarter]


def order_of_contacts(at: Moments) -> Iterator[Candidate]:
    """HOTR: in which order hands first got to four things. The choices are one cycle: each comes first once."""
    firsts: dict[str, HandUse] = {}
    for use in at.scene.uses:
        firsts.setdefault(use.thing.id, use)
    shown = {use: next((frame for frame in at.shown if use in at.contacts(frame)), None) for use in firsts.values()}
    for uses in combinations([use for use, frame in shown.items() if frame is not None], ORDERED):
        frames = [frame for use in uses if (frame := shown[use]) is not None]
        things = [use.thing for use in uses]
        if frames != sorted(set(frames)) or any(at.scene.is_part_of_other(a.id, b.id) for a, b in combinations(things, 2)):
            continue

        def choice(first: int, things: Sequence[Thing] = things, until: int = frames[-1]) -> Choice:
            turned = [*things[first:], *things[:first]]
            text = f"{', then '.join(f'the {thing.name}' for thing in turned)}."
            return Choice(text.capitalize(), Precedes(tuple(thing.id for thing in turned), until))

        names = sorted(f"the {thing.name}" for thing in things)
        question = f"In which order did the hands first touch {', '.join(names[:-1])} and {names[-1]}?"
        given = [Touches(use.side, use.thing.id, frame) for use, frame in zip(uses, frames, strict=True)]
        given += [Unique(thing.id, at.shown) for thing in things]
        right, *wrong = (choice(first) for first in range(ORDERED))
        yield msgspec.structs.replace(
            at.question("HOTR", question, right, wrong, frames, [], given=given),
            objects=tuple(thing.id for thing in things),
        )


def next_state(at: Moments) -> Iterator[Candidate]:
    """NSA: what changes its state next, and to what."""
    changed = {(after.thing, after.type, after.value) for _, after in at.scene.changes}
    for number, (_, after) in enumerate(at.scene.changes):
        moments = at.around(at.scene.changes[number])
        if moments is None:
            continue
        since = max((c[1].start for c in at.scene.changes[:number] if c[1].start < after.start), default=0)
        for frame in (shown for shown in at.shown if since <= shown <= moments[0]):

            def choice(
                thing: Thing, kind: str, value: str, frame: int = frame, until: int = moments[1]
            ) -> Choice:
                text = f"The {thing.name} is {at.words.state(value)}."
                return Choice(text, NextState(thing.id, kind, value, frame, until))

            question = f"After {at.time(frame)}, which of these comes to be the case next?"
            things = set(at.visible(at.in_reach, [frame, moments[1]]))
            others = sorted(((t, k, v) for t, k, v in changed if t in things), key=lambda row: (row[0].id, row[2]))
            right = choice(after.thing, after.type, after.value)
            wrong = _but([choice(*row) for row in others], right)
            yield at.question("NSA", question, right, wrong, [frame, moments[1]], [after.thing])


def next_action(at: Moments) -> Iterator[Candidate]:
    """NAA: what is done next, of which the next moment shown has a picture."""
    actions = at.scene.actions
    for frame, until in pairwise(at.shown):
        following = next((action for action in actions if action.start > frame), None)
        if following is None or not following.start <= until:
            continue
        names = [action.name for action in sorted(actions, key=lambda a: (a.noun != following.noun, abs(a.start - frame)))]
        choices = {name: Choice(_sentence(name), NextAction(name, frame, until)) for name in names}
        right = choices[following.name]
        hands = [Seen(hand, until) for use in at.contacts(until)[:1] if (hand := at.scene.hand_id(use.side))]
        question = f"After {at.time(frame)}, what does the person do next?"
        yield at.question("NAA", question, right, _but(list(choices.values()), right), [frame, until], [], given=hands)


def cause_of_change(at: Moments) -> Iterator[Candidate]:
    """LCOI: which action brought which change about between two moments. All choices are true of some time."""
    rows = []
    for before, after in at.scene.changes:
        verbs = at.words.causes.get(after.value, ())
        for action in causes_of(at.scene, after.start, verbs):
            if row := (action.name, before, after, verbs):
                rows.append(row)
    for name, before, after, verbs in rows:
        moments = at.around((before, after))
        if moments is None:
            continue
        start, end = moments

        def choice(
            name: str, before: ValueSpan, after: ValueSpan, verbs: tuple[str, ...], start: int = start, end: int = end
        ) -> Choice:
            text = f"{_sentence(name)[:-1]}: the {after.thing.name} is {at.words.state(after.value)}."
            values = before.type, before.value, after.value
            return Choice(text, BringsAbout(name, after.thing.id, *values, start, end + 1, verbs))

        question = (
            f"Between {at.time(start)} and {at.time(end)}, which action of the person has brought about which result?"
        )
        right = choice(name, before, after, verbs)
        others = [row for row in rows if at.scene.unique(row[2].thing, at.shown)]
        wrong = _but(list(dict.fromkeys(choice(*row) for row in others)), right)
        yield at.question("LCOI", question, right, wrong, moments, [after.thing])


def progress(at: Moments) -> Iterator[Candidate]:
    """PR: which step is under way, and when the work passed from one to the next."""
    names = list(dict.fromkeys(step.name for step in at.scene.steps))
    for frame in at.shown:
        choices = {name: Choice(_sentence(name), InStep(name, frame)) for name in names}
        for name in {step.name for step in at.scene.steps if step.start <= frame < step.end}:
            question = f"Which step of the work is under way at {at.time(frame)}?"
            yield at.question("PR", question, choices[name], _but(list(choices.values()), choices[name]), [frame], [])
    for first, second in pairwise(at.scene.steps):
        for intervals, right in _intervals(at, second.start):

            def choice(frames: tuple[int, int], first: str = first.name, second: str = second.name) -> Choice:
                start, end = frames
                return Choice(at.between(start, end), AllOf((InStep(first, start), InStep(second, end))))

            passed = f"from the step “{_said(first.name)}” to the step “{_said(second.name)}”"
            question = f"Between which moments did the work pass {passed}?"
            choices_of_time = [choice(frames) for frames in intervals]
            wrong = _but(choices_of_time, choices_of_time[right])
            answer = f"interval {right}"
            yield at.question("PR", question, choices_of_time[right], wrong, intervals[right], [], answer=answer)


def hands_over_time(at: Moments) -> Iterator[Candidate]:
    """HGC: what a hand is on at one moment, and what at another one. Of two things, each may be at either."""
    moments = [(frame, use) for frame in at.shown for use in at.contacts(frame)]
    for (first, before), (second, after) in combinations(moments, 2):
        if first == second:
            continue
        pairs = [before.thing, after.thing]
        others = [after.thing] if before.thing != after.thing else at.visible(at.used, [first, second])
        for other in others:
            if other == before.thing or at.scene.is_part_of_other(other.id, before.thing.id):
                continue

            def choice(
                one: Thing,
                two: Thing,
                sides: tuple[Side, Side] = (before.side, after.side),
                frames: tuple[int, int] = (first, second),
            ) -> Choice:
                text = f"First {_touching(sides[0], one)}, later {_touching(sides[1], two)}."
                parts = (Touches(sides[0], one.id, frames[0]), Touches(sides[1], two.id, frames[1]))
                return Choice(text, AllOf(parts))

            things = [before.thing, other]
            right = choice(pairs[0], pairs[1])
            wrong = _but([choice(one, two) for one in things for two in things], right)
            question = f"Which of these is true of the hands, first at {at.time(first)} and later at {at.time(second)}?"
            answer = "the same" if pairs[0] == pairs[1] else "another"
            yield at.question("HGC", question, right, wrong, [first, second], things, answer=answer)


def tracked_object(at: Moments) -> Iterator[Candidate]:
    """GOT: where the thing is at one moment that a hand works with at another, whatever it looks like."""
    for role_frame in at.shown:
        for use in at.contacts(role_frame):
            same = [u for u in at.scene.uses if u.side == use.side and u.start <= role_frame < u.end]
            for frame in at.shown:
                quarter = quarter_of(at.scene, use.thing.id, frame)
                if frame == role_frame or quarter is None or len(same) != 1:
                    continue
                role = f"the object that the {use.side} hand is touching at {at.time(role_frame)}"
                question = f"Follow {role}. In which part of the frame is it at {at.time(frame)}?"
                right, wrong = _quarters(use.thing, frame, quarter)
                given = [Touches(use.side, use.thing.id, role_frame)]
                yield at.question("GOT", question, right, wrong, [role_frame, frame], [use.thing], given=given)


QUESTIONS: Mapping[str, Callable[[Moments], Iterator[Candidate]]] = {
    "AOG": active_object,
    "HOA": hand_of_object,
    "MSP": state_in_use,
    "SR": when_it_changed,
    "LVR": place_before,
    "HOTR": order_of_contacts,
    "NSA": next_state,
    "NAA": next_action,
    "LCOI": cause_of_change,
    "PR": progress,
    "HGC": hands_over_time,
    "GOT": tracked_object,
}
"""By subtask."""


def _touching(side: Side, thing: Thing) -> str:
    return f"the {side} hand is touching the {thing.name}"


def _said(name: str) -> str:
    """What an action or a step is called, with an article: `open the drawer`."""
    verb, _, rest = name.lower().partition(" ")
    return f"{verb} the {rest}" if rest else verb


def _sentence(name: str) -> str:
    return f"{_said(name)}.".capitalize()


def _but(choices: Sequence[Choice], right: Choice) -> list[Choice]:
    return [choice for choice in choices if choice.text != right.text]
