"""EgoCoT-Bench's questions: everything that its twelve subtasks could ask, about what is seen and what was, and then
about what comes next, what causes what, and what follows from several moments.

Questions are symmetric: the choices of one are right answers of others (the other hand, the other object, the other
moment). Where a choice says two things, all four combinations of two values each stand there, so that none can be told
by what it shares with the others.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, combinations, pairwise, permutations, product

import msgspec

from barista_bench.core.example import content_seed
from barista_bench.generate.candidates import Choice, QuestionCandidate
from barista_bench.generate.egocot_moments import Moment, Moments, sentence, touching
from barista_bench.generate.egocot_statements import (
    Across,
    AwayFrom,
    BringsAbout,
    Down,
    InQuarter,
    InStep,
    NextAction,
    NextState,
    causes_of,
    quarter_of,
)
from barista_bench.generate.spans import SIDES, HandUse, NamedObject, ValueSpan, noun_of, verb_of
from barista_bench.generate.statements import (
    AllOf,
    Changes,
    HasValue,
    OnlyDuring,
    Precedes,
    Seen,
    Statement,
    Touches,
    Unique,
)
from barista_bench.scene_graph.domain import Side
from barista_bench.scene_graph.graph_words import third_person

QUARTERS: tuple[tuple[Down, Across], ...] = tuple(product(("upper", "lower"), ("left", "right")))


def active_object(at: Moments) -> Iterator[QuestionCandidate]:
    """AOG: what a hand is on."""
    for when in at.moments():
        for use in at.contacts(*when.frames):
            things = _whole_things(at, at.unnamed_things(when, [use.thing, *at.visible(at.by_use, *when.frames)]))
            if use.thing not in things:
                continue
            right = Choice(f"The {use.thing.name}.", when.always(partial(Touches, use.side, use.thing.id)))
            choices = [Choice(f"The {t.name}.", when.ever(partial(Touches, use.side, t.id))) for t in things]
            slots = {**when.slots, "side": use.side}
            arguments = f"AOG{when.wording}", slots, right, choices, when.frames, [use.thing]
            yield at.question(*arguments, given=when.given)


def _whole_things(at: Moments, things: Sequence[NamedObject]) -> list[NamedObject]:
    """Things of which none is a part of one before it, or has it as a part: these would be no two choices."""
    kept: list[NamedObject] = []
    for thing in things:
        if not any(at.scene.is_part_of_other(thing.id, other.id) for other in kept):
            kept.append(thing)
    return kept


def hand_of_object(at: Moments) -> Iterator[QuestionCandidate]:
    """HOA: which hand is on which of two objects."""
    for when in at.moments():
        for use in at.contacts(*when.frames):
            for other in at.unnamed_things(when, at.visible(at.used_things, *when.frames)):
                things = [use.thing, other]
                is_named = use.thing not in at.unnamed_things(when, [use.thing])
                if is_named or other == use.thing or at.scene.is_part_of_other(other.id, use.thing.id):
                    continue
                right = _touches(when.always, use.side, use.thing)
                choices = [_touches(when.ever, side, thing) for side, thing in product(SIDES, things)]
                arguments = f"HOA{when.wording}", when.slots, right, choices, when.frames, things
                yield at.question(*arguments, given=when.given)


def _touches(over: Callable[[Callable[[int], Statement]], Statement], side: Side, thing: NamedObject) -> Choice:
    return Choice(sentence(touching(side, thing)), over(partial(Touches, side, thing.id)))


def state_in_use(at: Moments) -> Iterator[QuestionCandidate]:
    """MSP: the state of something that hands work with, and whether a hand is on it."""
    for frame in at.shown:
        for thing, side in product(at.used_things, SIDES):
            is_on = Touches(side, thing.id, frame).truth(at.scene) is True
            for now, other in _alternatives(at, thing, frame):
                choice = partial(_state_and_hand, at, side, frame, now)
                slots = {"time": at.time(frame), "thing": thing.name, "side": side}
                choices = [choice(value, touches) for value in (now.value, other) for touches in (True, False)]
                yield at.question("MSP", slots, choice(now.value, is_on), choices, [frame], [thing])


def _alternatives(at: Moments, thing: NamedObject, frame: int) -> Iterator[tuple[ValueSpan, str]]:
    """(a thing's value at a frame, another one that it has at another time)."""
    spans = [span for span in at.scene.values if span.thing == thing]
    for now in spans:
        if now.start <= frame < now.end:
            others = dict.fromkeys(s.value for s in spans if s.type == now.type and s.value != now.value)
            yield from ((now, value) for value in others)


def _state_and_hand(at: Moments, side: Side, frame: int, now: ValueSpan, value: str, touches: bool) -> Choice:
    hand = (Touches if touches else AwayFrom)(side, now.thing.id, frame)
    is_touched = f"and the {side} hand is {'' if touches else 'not '}touching it"
    text = f"The {now.thing.name} is {at.words.state(value)}, {is_touched}."
    return Choice(text, AllOf((HasValue(now.thing.id, now.type, value, frame), hand)))


def when_it_changed(at: Moments) -> Iterator[QuestionCandidate]:
    """SR: until when something was in its former state."""
    for before, after in at.scene.changes:
        first, last = at.words.state(before.value), at.words.state(after.value)
        slots = {"thing": before.thing.name, "before": first, "after": last}
        for row, number in at.intervals(after.start):
            change = before.thing.id, before.type, before.value, after.value
            choices = [Choice(at.interval_text(start, end), Changes(*change, start, end + 1)) for start, end in row]
            arguments = "SR", slots, choices[number], choices, row[number], [before.thing]
            yield at.question(*arguments, answer=f"interval {number}", event=f"{after.thing.id} from {after.start}")


def place_before(at: Moments) -> Iterator[QuestionCandidate]:
    """LVR: in which part of the frame something was that hands work with."""
    for thing in at.used_things:
        for frame in at.shown:
            if quarter := quarter_of(at.scene, thing.id, frame):
                slots = {"time": at.time(frame), "thing": thing.name}
                right = in_quarter(thing, frame, quarter)
                choices = [in_quarter(thing, frame, other) for other in QUARTERS]
                yield at.question("LVR", slots, right, choices, [frame], [thing])


def in_quarter(thing: NamedObject, frame: int, quarter: tuple[Down, Across]) -> Choice:
    return Choice(f"In the {' '.join(quarter)}.", InQuarter(thing.id, *quarter, frame))


def order_of_contacts(at: Moments) -> Iterator[QuestionCandidate]:
    """HOTR: in which order hands first got to three things."""
    for uses in combinations(at.first_uses, 3):
        frames = [at.first_uses[use] for use in uses]
        things = [use.thing for use in uses]
        pairs = combinations(things, 2)
        if frames != sorted(set(frames)) or any(at.scene.is_part_of_other(a.id, b.id) for a, b in pairs):
            continue
        named = sorted(things, key=lambda thing: thing.name)
        orders = [_in_order(frames[-1], order) for order in permutations(named)]
        right = _in_order(frames[-1], things)
        # Which orders stand beside the right one says nothing of it: each three others are as likely.
        random.Random(content_seed("orders", at.scene.video_id, right.text)).shuffle(orders)  # noqa: S311
        names = [f"the {thing.name}" for thing in named]
        slots, ids = {"names": f"{names[0]}, {names[1]} and {names[2]}"}, tuple(thing.id for thing in things)
        answer = " ".join(str(named.index(thing)) for thing in things)
        candidate = at.question("HOTR", slots, right, orders, frames, answer=answer)
        unique = tuple(Unique(thing.id, (frame,)) for thing, frame in zip(things, frames, strict=True))
        yield msgspec.structs.replace(candidate, given=unique, objects=ids, event=" ".join(sorted(ids)))


def _in_order(until: int, things: Sequence[NamedObject]) -> Choice:
    names = ", then ".join(f"the {thing.name}" for thing in things)
    return Choice(sentence(names), Precedes(tuple(thing.id for thing in things), until))


def next_state(at: Moments) -> Iterator[QuestionCandidate]:
    """NSA: what changes its state next, and to what."""
    recorded = [span for change in at.scene.changes for span in change]
    states: list[ValueSpan] = []
    for span in [*recorded, *chain.from_iterable(map(at.possible_values, recorded))]:
        same = (state for state in states if (state.thing, state.type) == (span.thing, span.type))
        if not any(at.scene.domain.relation_of(span.type, span.value, state.value) == "synonym" for state in same):
            states.append(span)
    since = 0
    for _, after in at.scene.changes:
        moments = at.moments_around(after.start)
        for frame in at.shown:
            if moments is None or not since <= frame <= moments[0]:
                continue
            things = at.visible(at.by_use, frame, moments[1])
            right, *choices = (
                Choice(
                    f"The {span.thing.name} is {at.words.state(span.value)}.",
                    NextState(span.thing.id, span.type, span.value, frame, moments[1]),
                )
                for span in (after, *(span for span in states if span.thing in things))
            )
            arguments = "NSA", {"time": at.time(frame)}, right, choices, [frame, moments[1]], [after.thing]
            yield at.question(*arguments, event=f"{after.thing.id} from {after.start}")
        since = after.start


def next_action(at: Moments) -> Iterator[QuestionCandidate]:
    """NAA: what is done next, and is going on at the next moment shown."""
    actions = at.scene.actions
    for frame, until in pairwise(at.shown):
        following = next((action for action in actions if action.start > frame), None)
        if following is None or following.start > until:
            continue
        noun, start = following.noun, following.start
        nearest = sorted(actions, key=lambda action: (action.noun != noun, abs(action.start - start)))
        hands = [Seen(hand, until) for use in at.contacts(until)[:1] if (hand := at.scene.hand_id(use.side))]
        event = f"{following.name} from {following.start}"
        for since in _starting_moments(at, frame):
            right, *choices = (
                Choice(sentence(at.phrase(name)), NextAction(name, since.frames[0], until))
                for name in (following.name, *(action.name for action in nearest))
            )
            arguments = f"NAA{since.wording}", since.slots, right, choices, [frame, until]
            yield at.question(*arguments, event=event, given=(*hands, *since.given))


def _starting_moments(at: Moments, frame: int) -> Iterator[Moment]:
    """A moment by the clock, and by the last action that begins before it, where it is the only one of its kind."""
    yield Moment((frame,), "", {"time": at.time(frame)})
    before = [action for action in at.scene.actions if action.start <= frame]
    if before and frame < before[-1].end:
        only = OnlyDuring(*before[-1])
        if only.truth(at.scene):
            yield Moment((before[-1].start,), " order", {"do": at.phrase(before[-1].name)}, (only,))


def cause_of_change(at: Moments) -> Iterator[QuestionCandidate]:
    """LCOI: which action brought which change about between two moments. All choices are true of some time."""
    outcomes = [
        (action.name, before, after)
        for before, after in at.scene.changes
        for action in causes_of(at.scene, after.start, at.words.causes.get(after.value, ()))
    ]
    for name, before, after in outcomes:
        moments = at.moments_around(after.start)
        if moments is None:
            continue
        choice = partial(_brings_about, at, *moments)
        choices = [choice(*other) for other in outcomes if at.scene.unique(other[2].thing, moments)]
        slots = {"start": at.time(moments[0]), "end": at.time(moments[1])}
        event = f"{after.thing.id} from {after.start}"
        yield at.question("LCOI", slots, choice(name, before, after), choices, moments, [after.thing], event=event)


def _brings_about(at: Moments, start: int, end: int, name: str, before: ValueSpan, after: ValueSpan) -> Choice:
    verbs = at.words.causes.get(after.value, ())
    values = before.type, before.value, after.value
    first, last = at.words.state(before.value), at.words.state(after.value)
    # To open what is open then says one thing twice.
    is_named = at.scene.domain.same_noun(noun_of(name), after.thing.noun)
    is_told = is_named and any(word.startswith(verb_of(name)) for word in last.split())
    change = f"and the {after.thing.name} goes from {first} to {last}"
    text = f"The person {third_person(at.phrase(name))}, {f'which was {first} until then' if is_told else change}."
    return Choice(text, BringsAbout(name, after.thing.id, *values, start, end + 1, verbs))


def progress(at: Moments) -> Iterator[QuestionCandidate]:
    """PR: which step is under way, and when the work passed from one to the next."""
    names = dict.fromkeys(step.name for step in at.scene.steps)
    for frame in at.shown:
        for name in dict.fromkeys(step.name for step in at.scene.steps if step.start <= frame < step.end):
            right, *choices = (Choice(sentence(at.phrase(n)), InStep(n, frame)) for n in (name, *names))
            yield at.question("PR step", {"time": at.time(frame)}, right, choices, [frame])
    for first, second in pairwise(at.scene.steps):
        slots = {"first": at.phrase(first.name), "second": at.phrase(second.name)}
        for row, number in at.intervals(second.start):
            choices = [
                Choice(at.interval_text(start, end), AllOf((InStep(first.name, start), InStep(second.name, end))))
                for start, end in row
            ]
            arguments = "PR passage", slots, choices[number], choices, row[number]
            yield at.question(*arguments, answer=f"interval {number}", event=f"step from {second.start}")


def hands_over_time(at: Moments) -> Iterator[QuestionCandidate]:
    """HGC: what a hand is on at one moment, and what at a later one. Of two things, each may be at either."""
    for (start, before), (end, after) in combinations(((f, use) for f in at.shown for use in at.contacts(f)), 2):
        if start == end:
            continue
        is_same = before.thing == after.thing
        for other in at.visible(at.used_things, start, end) if is_same else [after.thing]:
            things = [before.thing, other]
            if other == before.thing or at.scene.is_part_of_other(other.id, before.thing.id):
                continue
            choice = partial(_touch_in_turn, (start, before), (end, after))
            choices = [choice(*pair) for pair in product(things, repeat=2)]
            slots = {"first": at.time(start), "second": at.time(end), "side": before.side}
            wording = "HGC one" if before.side == after.side else "HGC two"
            slots |= {} if before.side == after.side else {"other": after.side}
            right, answer = choice(before.thing, after.thing), "the same" if is_same else "another"
            yield at.question(wording, slots, right, choices, [start, end], things, answer=answer)


def _touch_in_turn(
    first: tuple[int, HandUse], second: tuple[int, HandUse], before: NamedObject, after: NamedObject
) -> Choice:
    touches = tuple(Touches(use.side, thing.id, frame) for (frame, use), thing in ((first, before), (second, after)))
    text = f"the {before.name} both times" if before == after else f"first the {before.name}, then the {after.name}"
    return Choice(sentence(text), AllOf(touches))


def tracked_object(at: Moments) -> Iterator[QuestionCandidate]:
    """GOT: where the thing is at one moment that a hand works with at another, whatever it looks like."""
    for role_frame in at.shown:
        for use in at.contacts(role_frame):
            in_hand = [other for other in at.contacts(role_frame) if other.side == use.side]
            for frame in at.shown:
                quarter = quarter_of(at.scene, use.thing.id, frame)
                if frame != role_frame and quarter is not None and len(in_hand) == 1:
                    slots = {"side": use.side, "role": at.time(role_frame), "time": at.time(frame)}
                    right, *choices = (in_quarter(use.thing, frame, other) for other in (quarter, *QUARTERS))
                    given = [Touches(use.side, use.thing.id, role_frame)]
                    yield at.question("GOT", slots, right, choices, [role_frame, frame], [use.thing], given=given)


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
"""The questions of each subtask."""
