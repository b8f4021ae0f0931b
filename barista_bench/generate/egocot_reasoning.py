"""EgoCoT-Bench's questions about what comes next, what causes what, and what follows from several moments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain, combinations, pairwise, product

from barista_bench.generate.candidates import Choice, QuestionCandidate
from barista_bench.generate.egocot_moments import Moments, sentence, touching
from barista_bench.generate.egocot_questions import in_quarter, quarters
from barista_bench.generate.egocot_statements import BringsAbout, InStep, NextAction, NextState, causes_of, quarter_of
from barista_bench.generate.naming import third_person
from barista_bench.generate.scene import HandUse, Thing, ValueSpan
from barista_bench.generate.statements import AllOf, Seen, Touches


def next_state(at: Moments) -> Iterator[QuestionCandidate]:
    """NSA: what changes its state next, and to what."""
    states = _states(at)
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


def _states(at: Moments) -> list[ValueSpan]:
    """What things that change are at some time, and then what else they can be."""
    recorded = [span for change in at.scene.changes for span in change]
    states: list[ValueSpan] = []
    for span in [*recorded, *chain.from_iterable(map(at.possible, recorded))]:
        same = (state for state in states if (state.thing, state.type) == (span.thing, span.type))
        if not any(at.scene.domain.relation_of(span.type, span.value, state.value) == "synonym" for state in same):
            states.append(span)
    return states


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
            choices = [_passes(at, first.name, second.name, *interval) for interval in row]
            asked = "PR", question, choices[number], choices, row[number]
            yield at.question(*asked, answer=f"interval {number}", event=f"step from {second.start}")


def _under_way(at: Moments, name: str, frame: int) -> Choice:
    return Choice(sentence(at.said(name)), InStep(name, frame))


def _passes(at: Moments, first: str, second: str, start: int, end: int) -> Choice:
    return Choice(at.between(start, end), AllOf((InStep(first, start), InStep(second, end))))


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


def _touch_in_turn(first: tuple[int, HandUse], second: tuple[int, HandUse], one: Thing, other: Thing) -> Choice:
    rows = [(use.side, thing, frame) for (frame, use), thing in ((first, one), (second, other))]
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


REASONING: Mapping[str, Callable[[Moments], Iterator[QuestionCandidate]]] = {
    "NSA": next_state,
    "NAA": next_action,
    "LCOI": cause_of_change,
    "PR": progress,
    "HGC": hands_over_time,
    "GOT": tracked_object,
}
"""By subtask."""
