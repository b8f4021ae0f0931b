"""EgoCoT-Bench's questions: everything that its twelve subtasks could ask, about what is seen and what was, and then
about what comes next, what causes what, and what follows from several moments.

Questions are symmetric: the choices of one are right answers of others (the other hand, the other object, the other
moment). Where a choice says two things, all four combinations of two values each stand there, so that none can be told
by what it shares with the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, combinations, pairwise, permutations, product

import msgspec

from barista_bench.generate.candidates import Choice, QuestionCandidate
from barista_bench.generate.egocot_statements import (
    Across,
    AwayFrom,
    BringsAbout,
    Down,
    InQuarter,
    InStep,
    Moments,
    NextAction,
    NextState,
    causes_of,
    quarter_of,
    sentence,
    touching,
)
from barista_bench.generate.spans import SIDES, HandUse, NamedObject, ValueSpan, third_person
from barista_bench.generate.statements import AllOf, Changes, HasValue, Precedes, Seen, Touches, Unique
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


def _whole(at: Moments, things: Sequence[NamedObject]) -> list[NamedObject]:
    """Things of which none is a part of one before it, or has it as a part: these would be no two choices."""
    kept: list[NamedObject] = []
    for thing in things:
        if not any(at.scene.is_part_of_other(thing.id, other.id) for other in kept):
            kept.append(thing)
    return kept


def _touched(side: Side, frame: int, thing: NamedObject) -> Choice:
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


def _touches(frame: int, side: Side, thing: NamedObject) -> Choice:
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


def _alternatives(at: Moments, thing: NamedObject, frame: int) -> Iterator[tuple[ValueSpan, str]]:
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


def quarters(thing: NamedObject, frame: int) -> list[Choice]:
    """Where a thing can be: four choices."""
    return [in_quarter(thing, frame, quarter) for quarter in QUARTERS]


def in_quarter(thing: NamedObject, frame: int, quarter: tuple[Down, Across]) -> Choice:
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


def _in_order(until: int, first: tuple[NamedObject, NamedObject], other: tuple[NamedObject, NamedObject]) -> Choice:
    texts = (f"the {earlier.name} before the {later.name}" for earlier, later in (first, other))
    orders = (Precedes((earlier.id, later.id), until) for earlier, later in (first, other))
    return Choice(sentence(", and ".join(texts)), AllOf(tuple(orders)))


def next_state(at: Moments) -> Iterator[QuestionCandidate]:
    """NSA: what changes its state next, and to what."""
    recorded = [span for change in at.scene.changes for span in change]
    states: list[ValueSpan] = []
    for span in [*recorded, *chain.from_iterable(map(at.possible, recorded))]:
        same = (state for state in states if (state.thing, state.type) == (span.thing, span.type))
        if not any(at.scene.domain.relation_of(span.type, span.value, state.value) == "synonym" for state in same):
            states.append(span)
    since = 0
    for _, after in at.scene.changes:
        moments = at.around(after.start)
        for frame in at.shown:
            if moments is None or not since <= frame <= moments[0]:
                continue
            choice = partial(_comes_next, at, frame, moments[1])
            things = at.visible(at.by_use, frame, moments[1])
            choices = [choice(span) for span in states if span.thing in things]
            question = f"After {at.time(frame)}, which of these comes to be the case next?"
            asked = "NSA", question, choice(after), choices, [frame, moments[1]], [after.thing]
            yield at.question(*asked, event=f"{after.thing.id} from {after.start}")
        since = after.start


def _comes_next(at: Moments, frame: int, until: int, span: ValueSpan) -> Choice:
    state = NextState(span.thing.id, span.type, span.value, frame, until)
    return Choice(sentence(at.is_state(span)), state)


def next_action(at: Moments) -> Iterator[QuestionCandidate]:
    """NAA: what is done next, and is going on at the next moment shown."""
    actions = at.scene.actions
    for frame, until in pairwise(at.shown):
        following = next((action for action in actions if action.start > frame), None)
        if following is None or following.start > until:
            continue
        noun, start = following.noun, following.start
        nearest = sorted(actions, key=lambda action: (action.noun != noun, abs(action.start - start)))
        choices = [_done_next(at, action.name, frame, until) for action in nearest]
        hands = [Seen(hand, until) for use in at.contacts(until)[:1] if (hand := at.scene.hand_id(use.side))]
        question = f"After {at.time(frame)}, what does the person do next?"
        right = _done_next(at, following.name, frame, until)
        event = f"{following.name} from {following.start}"
        yield at.question("NAA", question, right, choices, [frame, until], event=event, given=hands)


def _done_next(at: Moments, name: str, frame: int, until: int) -> Choice:
    return Choice(sentence(at.said(name)), NextAction(name, frame, until))


def cause_of_change(at: Moments) -> Iterator[QuestionCandidate]:
    """LCOI: which action brought which change about between two moments. All choices are true of some time."""
    outcomes = [
        (action.name, before, after)
        for before, after in at.scene.changes
        for action in causes_of(at.scene, after.start, at.words.causes.get(after.value, ()))
    ]
    for name, before, after in outcomes:
        moments = at.around(after.start)
        if moments is None:
            continue
        choice = partial(_brings_about, at, *moments)
        choices = [choice(*other) for other in outcomes if at.scene.unique(other[2].thing, moments)]
        question = f"Between {at.time(moments[0])} and {at.time(moments[1])}, which action has which result?"
        event = f"{after.thing.id} from {after.start}"
        yield at.question("LCOI", question, choice(name, before, after), choices, moments, [after.thing], event=event)


def _brings_about(at: Moments, start: int, end: int, name: str, before: ValueSpan, after: ValueSpan) -> Choice:
    verbs = at.words.causes.get(after.value, ())
    values = before.type, before.value, after.value
    text = f"The person {third_person(at.said(name))}, so that {at.is_state(after)}."
    return Choice(text, BringsAbout(name, after.thing.id, *values, start, end + 1, verbs))


def progress(at: Moments) -> Iterator[QuestionCandidate]:
    """PR: which step is under way, and when the work passed from one to the next."""
    names = dict.fromkeys(step.name for step in at.scene.steps)
    for frame in at.shown:
        for name in dict.fromkeys(step.name for step in at.scene.steps if step.start <= frame < step.end):
            choices = [_under_way(at, other, frame) for other in names]
            question = f"Which step of the work is under way at {at.time(frame)}?"
            yield at.question("PR", question, _under_way(at, name, frame), choices, [frame])
    for first, second in pairwise(at.scene.steps):
        steps = [f'the step "{at.said(step.name)}"' for step in (first, second)]
        question = f"When did the work pass from {steps[0]} to {steps[1]}?"
        for row, number in at.intervals(second.start):
            choices = [
                Choice(at.between(start, end), AllOf((InStep(first.name, start), InStep(second.name, end))))
                for start, end in row
            ]
            asked = "PR", question, choices[number], choices, row[number]
            yield at.question(*asked, answer=f"interval {number}", event=f"step from {second.start}")


def _under_way(at: Moments, name: str, frame: int) -> Choice:
    return Choice(sentence(at.said(name)), InStep(name, frame))


def hands_over_time(at: Moments) -> Iterator[QuestionCandidate]:
    """HGC: what a hand is on at one moment, and what at a later one. Of two things, each may be at either."""
    for (start, before), (end, after) in combinations(((f, use) for f in at.shown for use in at.contacts(f)), 2):
        if start == end:
            continue
        is_same = before.thing == after.thing
        for other in at.visible(at.used, start, end) if is_same else [after.thing]:
            things = [before.thing, other]
            if other == before.thing or at.scene.is_part_of_other(other.id, before.thing.id):
                continue
            choice = partial(_touch_in_turn, (start, before), (end, after))
            choices = [choice(*pair) for pair in product(things, repeat=2)]
            question = f"Which of these is true of the hands, first at {at.time(start)} and later at {at.time(end)}?"
            right, answer = choice(before.thing, after.thing), "the same" if is_same else "another"
            yield at.question("HGC", question, right, choices, [start, end], things, answer=answer)


def _touch_in_turn(
    first: tuple[int, HandUse], second: tuple[int, HandUse], before: NamedObject, after: NamedObject
) -> Choice:
    rows = [(use.side, thing, frame) for (frame, use), thing in ((first, before), (second, after))]
    texts = [touching(side, thing) for side, thing, _ in rows]
    touches = tuple(Touches(side, thing.id, frame) for side, thing, frame in rows)
    return Choice(f"First {texts[0]}, later {texts[1]}.", AllOf(touches))


def tracked_object(at: Moments) -> Iterator[QuestionCandidate]:
    """GOT: where the thing is at one moment that a hand works with at another, whatever it looks like."""
    for role_frame in at.shown:
        for use in at.contacts(role_frame):
            in_hand = [other for other in at.contacts(role_frame) if other.side == use.side]
            role = f"the object that the {use.side} hand is touching at {at.time(role_frame)}"
            for frame in at.shown:
                quarter = quarter_of(at.scene, use.thing.id, frame)
                if frame != role_frame and quarter is not None and len(in_hand) == 1:
                    question = f"Take {role}. In which part of the frame does it lie at {at.time(frame)}?"
                    right, choices = in_quarter(use.thing, frame, quarter), quarters(use.thing, frame)
                    given = [Touches(use.side, use.thing.id, role_frame)]
                    yield at.question("GOT", question, right, choices, [role_frame, frame], [use.thing], given=given)


QUESTIONS: Mapping[str, Callable[[Moments], Iterator[QuestionCandidate]]] = {
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
