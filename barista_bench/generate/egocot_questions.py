"""EgoCoT-Bench's questions about what is seen and what was: everything that its first six subtasks could ask.

Questions are symmetric: the choices of one are right answers of others (the other hand, the other object, the other
moment). Where a choice says two things, all four combinations of two values each stand there, so that none can be told
by what it shares with the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations, permutations, product

import msgspec

from barista_bench.generate.candidates import Choice, QuestionCandidate
from barista_bench.generate.egocot_moments import Moments, sentence, touching
from barista_bench.generate.egocot_statements import Across, AwayFrom, Down, InQuarter, quarter_of
from barista_bench.generate.scene import SIDES, Thing, ValueSpan
from barista_bench.generate.statements import AllOf, Changes, HasValue, Precedes, Touches, Unique
from barista_bench.scene_graph.domain import Side

QUARTERS: tuple[tuple[Down, Across], ...] = tuple(product(("upper", "lower"), ("left", "right")))


def active_object(at: Moments) -> Iterator[QuestionCandidate]:
    """AOG: what a hand is on."""
    for frame in at.shown:
        for use in at.contacts(frame):
            choice = partial(_touched, use.side, frame)
            question = f"At {at.time(frame)}, which object is the {use.side} hand touching?"
            choices = [choice(thing) for thing in _whole(at, [use.thing, *at.visible(at.by_use, frame)])]
            yield at.question("AOG", question, choice(use.thing), choices, [frame], [use.thing])


def _whole(at: Moments, things: Sequence[Thing]) -> list[Thing]:
    """Things of which none is a part of one before it, or has it as a part: these would be no two choices."""
    kept: list[Thing] = []
    for thing in things:
        if not any(at.scene.is_part_of_other(thing.id, other.id) for other in kept):
            kept.append(thing)
    return kept


def _touched(side: Side, frame: int, thing: Thing) -> Choice:
    return Choice(f"The {thing.name}.", Touches(side, thing.id, frame))


def hand_of_object(at: Moments) -> Iterator[QuestionCandidate]:
    """HOA: which hand is on which of two objects."""
    for frame in at.shown:
        for use in at.contacts(frame):
            for other in at.visible(at.used, frame):
                if other == use.thing or at.scene.is_part_of_other(other.id, use.thing.id):
                    continue
                things = [use.thing, other]
                choices = [_touches(frame, side, thing) for side, thing in product(SIDES, things)]
                question = f"At {at.time(frame)}, which hand is touching which object?"
                yield at.question("HOA", question, _touches(frame, use.side, use.thing), choices, [frame], things)


def _touches(frame: int, side: Side, thing: Thing) -> Choice:
    return Choice(sentence(touching(side, thing)), Touches(side, thing.id, frame))


def state_in_use(at: Moments) -> Iterator[QuestionCandidate]:
    """MSP: the state of something that hands work with, and whether a hand is on it."""
    for frame in at.shown:
        for thing, side in product(at.used, SIDES):
            is_on = Touches(side, thing.id, frame).truth(at.scene) is True
            for now, other in _alternatives(at, thing, frame):
                choice = partial(_state_and_hand, at, side, frame, now)
                question = f"At {at.time(frame)}, in what state is the {thing.name}, and where is the {side} hand?"
                choices = [choice(value, touches) for value in (now.value, other) for touches in (True, False)]
                yield at.question("MSP", question, choice(now.value, is_on), choices, [frame], [thing])


def _alternatives(at: Moments, thing: Thing, frame: int) -> Iterator[tuple[ValueSpan, str]]:
    """(a thing's value at a frame, another one that it has at another time)."""
    spans = [span for span in at.scene.values if span.thing == thing]
    for now in spans:
        if now.start <= frame < now.end:
            others = dict.fromkeys(s.value for s in spans if s.type == now.type and s.value != now.value)
            yield from ((now, value) for value in others)


def _state_and_hand(at: Moments, side: Side, frame: int, now: ValueSpan, value: str, touches: bool) -> Choice:
    hand = (Touches if touches else AwayFrom)(side, now.thing.id, frame)
    where = "touching" if touches else "away from"
    text = f"It is {at.words.state(value)}, and the {side} hand is {where} it."
    return Choice(text, AllOf((HasValue(now.thing.id, now.type, value, frame), hand)))


def when_it_changed(at: Moments) -> Iterator[QuestionCandidate]:
    """SR: until when something was in its former state."""
    for before, after in at.scene.changes:
        first, last = at.words.state(before.value), at.words.state(after.value)
        question = f"Looking back, when did the {before.thing.name} go from {first} to {last}?"
        for row, number in at.intervals(after.start):
            choices = [_changes(at, before, after, *interval) for interval in row]
            asked = "SR", question, choices[number], choices, row[number], [before.thing]
            yield at.question(*asked, answer=f"interval {number}", event=f"{after.thing.id} from {after.start}")


def _changes(at: Moments, before: ValueSpan, after: ValueSpan, start: int, end: int) -> Choice:
    changes = Changes(before.thing.id, before.type, before.value, after.value, start, end + 1)
    return Choice(at.between(start, end), changes)


def place_before(at: Moments) -> Iterator[QuestionCandidate]:
    """LVR: in which part of the frame something was that hands work with."""
    for thing in at.used:
        for frame in at.shown:
            if quarter := quarter_of(at.scene, thing.id, frame):
                question = f"Looking back at {at.time(frame)}, in which part of the frame was the {thing.name}?"
                right = in_quarter(thing, frame, quarter)
                yield at.question("LVR", question, right, quarters(thing, frame), [frame], [thing])


def quarters(thing: Thing, frame: int) -> list[Choice]:
    """Where a thing can be: four choices."""
    return [in_quarter(thing, frame, quarter) for quarter in QUARTERS]


def in_quarter(thing: Thing, frame: int, quarter: tuple[Down, Across]) -> Choice:
    return Choice(f"In the {' '.join(quarter)}.", InQuarter(thing.id, *quarter, frame))


def order_of_contacts(at: Moments) -> Iterator[QuestionCandidate]:
    """HOTR: in which order hands first got to three things; of two pairs of them, each may come either way round."""
    for uses in combinations(at.first_uses, 3):
        frames = [at.first_uses[use] for use in uses]
        things = [use.thing for use in uses]
        pairs = combinations(things, 2)
        if frames != sorted(set(frames)) or any(at.scene.is_part_of_other(a.id, b.id) for a, b in pairs):
            continue
        for first, shared, last in permutations(things):
            if first.id < last.id:  # or else it is the same question
                names = sorted(f"the {thing.name}" for thing in things)
                question = f"In which order did the hands first touch {names[0]}, {names[1]} and {names[2]}?"
                ways = product(((first, shared), (shared, first)), ((shared, last), (last, shared)))
                choices = [_in_order(frames[-1], *way) for way in ways]
                right = next(choice for choice in choices if choice.statement.truth(at.scene) is not False)
                candidate = at.question("HOTR", question, right, choices, frames, answer=f"way {choices.index(right)}")
                named = tuple(Unique(thing.id, (frame,)) for thing, frame in zip(things, frames, strict=True))
                ids = tuple(thing.id for thing in things)
                yield msgspec.structs.replace(candidate, given=named, objects=ids, event=" ".join(ids))


def _in_order(until: int, one: tuple[Thing, Thing], other: tuple[Thing, Thing]) -> Choice:
    texts = (f"the {earlier.name} before the {later.name}" for earlier, later in (one, other))
    orders = (Precedes((earlier.id, later.id), until) for earlier, later in (one, other))
    return Choice(sentence(", and ".join(texts)), AllOf(tuple(orders)))


QUESTIONS: Mapping[str, Callable[[Moments], Iterator[QuestionCandidate]]] = {
    "AOG": active_object,
    "HOA": hand_of_object,
    "MSP": state_in_use,
    "SR": when_it_changed,
    "LVR": place_before,
    "HOTR": order_of_contacts,
}
"""By subtask."""
