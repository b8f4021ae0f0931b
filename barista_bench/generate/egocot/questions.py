"""EgoCoT-Bench's questions: all candidates of its twelve subtasks.

First come questions about visible and past events, then about next events, causes, and conclusions from several
moments. Questions are symmetric: the wrong choices of a question are right answers of other questions (the other hand,
object or moment). If a choice makes two claims, the choices are all four combinations of two values each, so shared
words do not reveal the answer.

A further kind of question needs these steps:

1. A function that yields `ShownScene.candidate(...)` for each moment, in this module, in `object_questions.py` (one
   object, its state, a moment) or in `place_questions.py`. Add it to its subtask in `QUESTIONS`.
2. Its wording in `generate/wordings.yaml`, with the key `SUBTASK words`, the first argument of `candidate`. It needs 12
   forms or more.
3. If other subtasks ask for the same facts, its topic in `TOPICS` of `moments.py`.
4. Only if no statement makes its claim: a `Statement` in `statements.py` beside this module, its facts in
   `EvidenceMaker.facts` of `family.py`, and its proof from the annotation file in `tests/generate/raw_proof.py`.
5. Its row in the table of subtasks of docs/egocot.md.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, combinations, pairwise, permutations, product

import msgspec

from barista_bench.core.example import content_seed
from barista_bench.generate.candidates import FACTS, Choice, QuestionCandidate
from barista_bench.generate.descriptions import TOUCHES, is_told_apart, name_object
from barista_bench.generate.egocot import object_questions, place_questions
from barista_bench.generate.egocot.moments import DISTRACTORS, Moment, ShownScene, sentence, touch_text
from barista_bench.generate.egocot.statements import AwayFrom, BringsAbout, InStep, NextAction, NextState, causes_of
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


def active_object(clip: ShownScene) -> Iterator[QuestionCandidate]:
    """AOG: the object that a hand is on."""
    for moment in clip.moments():
        for use in clip.uses_at(*moment.frames):
            others = clip.visible_things(clip.by_use, *moment.frames, barred=TOUCHES, with_stuff=True)
            thing = name_object(clip.scene, use.thing, moment.frames, TOUCHES)
            things = _whole_things(clip, clip.unnamed_things(moment, [thing, *others]))
            if thing not in things:
                continue
            right = Choice(f"The {thing.name}.", moment.on_all(partial(Touches, use.side, use.thing.id)))
            choices = [Choice(f"The {t.name}.", moment.on_any(partial(Touches, use.side, t.id))) for t in things]
            # With more objects, "None of these" would stand out.
            choices += [_none_choice(moment, use.side, things)] if len(things) <= DISTRACTORS else []
            slots = {**moment.slots, "side": use.side}
            arguments = f"AOG{moment.wording}", slots, right, choices, moment.frames, [thing]
            event = clip.touch_key(use.side, thing, moment.frames[0])
            yield clip.candidate(*arguments, given=moment.given, event=event)
        visible = clip.visible_things(clip.by_use, *moment.frames, barred=TOUCHES, with_stuff=True)
        things = _whole_things(clip, clip.unnamed_things(moment, visible))
        for side in SIDES if len(things) == DISTRACTORS else ():
            choices = [Choice(f"The {t.name}.", moment.on_any(partial(Touches, side, t.id))) for t in things]
            slots, right = {**moment.slots, "side": side}, _none_choice(moment, side, things)
            wording = f"AOG{moment.wording}"
            yield clip.candidate(
                wording, slots, right, choices, moment.frames, given=moment.given, event=f"{side} {right.text}"
            )


def _none_choice(moment: Moment, side: Side, things: Sequence[NamedObject]) -> Choice:
    """Return the choice that a hand touches none of the objects."""
    away = (AwayFrom(side, thing.id, frame) for thing, frame in product(things, moment.frames))
    return Choice("None of these.", AllOf(tuple(away)))


def _whole_things(clip: ShownScene, things: Sequence[NamedObject]) -> list[NamedObject]:
    """Return the objects without parts and wholes of earlier objects, since these would not be separate choices."""
    whole_things: list[NamedObject] = []
    for thing in dict.fromkeys(things):
        if not any(clip.scene.is_part_of_other(thing.id, other.id) for other in whole_things):
            whole_things.append(thing)
    return whole_things


def hand_of_object(clip: ShownScene) -> Iterator[QuestionCandidate]:
    """HOA: the hand that is on one of two objects."""
    for moment in clip.moments():
        for use in clip.uses_at(*moment.frames):
            thing = name_object(clip.scene, use.thing, moment.frames, TOUCHES)
            others = clip.visible_things(clip.used_things, *moment.frames, barred=TOUCHES)
            for other in clip.unnamed_things(moment, others):
                things = [thing, other]
                is_named = use.thing not in clip.unnamed_things(moment, [use.thing])
                if is_named or other == use.thing or clip.scene.is_part_of_other(other.id, use.thing.id):
                    continue
                right = _touch_choice(moment.on_all, use.side, thing)
                choices = [_touch_choice(moment.on_any, side, thing) for side, thing in product(SIDES, things)]
                arguments = f"HOA{moment.wording}", moment.slots, right, choices, moment.frames, things
                event = clip.touch_key(use.side, thing, moment.frames[0])
                yield clip.candidate(*arguments, given=moment.given, event=event)
    for frame in clip.frames:
        yield from _hands_of_objects(clip, frame)


def _hands_of_objects(clip: ShownScene, frame: int) -> Iterator[QuestionCandidate]:
    by_side = [[use.thing for use in clip.uses_at(frame) if use.side == side] for side in SIDES]
    for left, right in product(*by_side):
        others = clip.visible_things(clip.used_things, frame, barred=TOUCHES) if left == right else [right]
        for second_thing in others:
            things = [name_object(clip.scene, thing, [frame], TOUCHES) for thing in (left, second_thing)]
            if left == second_thing or clip.scene.is_part_of_other(left.id, second_thing.id):
                continue
            choices = [_both_hands_choice(frame, *pair) for pair in product(things, repeat=2)]
            right_choice = choices[0] if left == right else choices[1]
            arguments = "HOA", {"time": clip.time(frame)}, right_choice, choices, [frame], things
            keys = clip.touch_key("left", left, frame), clip.touch_key("right", right, frame)
            event = f"{object_questions.HANDS[True, True]} {left.id}" if left == right else FACTS.join(keys)
            yield clip.candidate(*arguments, event=event)


def _both_hands_choice(frame: int, left: NamedObject, right: NamedObject) -> Choice:
    text = f"both hands are touching the {left.name}" if left == right else ""
    text = text or f"{touch_text('left', left)}, and {touch_text('right', right)}"
    return Choice(sentence(text), AllOf((Touches("left", left.id, frame), Touches("right", right.id, frame))))


def _touch_choice(combine: Callable[[Callable[[int], Statement]], Statement], side: Side, thing: NamedObject) -> Choice:
    return Choice(sentence(touch_text(side, thing)), combine(partial(Touches, side, thing.id)))


def state_in_use(clip: ShownScene) -> Iterator[QuestionCandidate]:
    """MSP: the state of an object that hands work with, and whether a hand is on the object."""
    for frame in clip.frames:
        for used_thing, side in product(clip.used_things, SIDES):
            thing = name_object(clip.scene, used_thing, [frame], TOUCHES)
            is_on = Touches(side, thing.id, frame).truth(clip.scene) is True
            for current, other in _alternatives(clip, thing, frame):
                choice = partial(_state_choice, clip, side, frame, current._replace(thing=thing))
                slots = {"time": clip.time(frame), "thing": thing.name, "side": side}
                choices = [choice(value, touching) for value in (current.value, other) for touching in (True, False)]
                arguments = "MSP", slots, choice(current.value, is_on), choices, [frame], [thing]
                event = f"{thing.id} {current.value} {side if is_on else 'away'}"
                yield clip.candidate(*arguments, event=event)


def _alternatives(clip: ShownScene, thing: NamedObject, frame: int) -> Iterator[tuple[ValueSpan, str]]:
    """Yield pairs of an object's value at a frame and another value that it has at another time."""
    spans = [span for span in clip.scene.values if span.thing == thing]
    for current in spans:
        if current.start <= frame < current.end:
            others = dict.fromkeys(s.value for s in spans if s.type == current.type and s.value != current.value)
            yield from ((current, value) for value in others)


def _state_choice(clip: ShownScene, side: Side, frame: int, current: ValueSpan, value: str, touches: bool) -> Choice:
    touch = (Touches if touches else AwayFrom)(side, current.thing.id, frame)
    hand_text = f"and the {side} hand is {'' if touches else 'not '}touching it"
    text = f"The {current.thing.name} is {clip.words.state(value, current.thing.category)}, {hand_text}."
    return Choice(text, AllOf((HasValue(current.thing.id, current.type, value, frame), touch)))


def when_it_changed(clip: ShownScene) -> Iterator[QuestionCandidate]:
    """SR: the time until which an object was in its former state."""
    for before, after in clip.scene.changes:
        first, last = (clip.words.state(span.value, span.thing.category) for span in (before, after))
        for row, number in clip.intervals(after.start):
            # The question names no moment, so a description must fit at all moments.
            is_clear = clip.scene.is_unique(before.thing, row[number])
            thing = before.thing if is_clear else name_object(clip.scene, before.thing, clip.frames)
            slots = {"thing": thing.name, "before": first, "after": last}
            change = before.thing.id, before.type, before.value, after.value
            choices = [Choice(clip.interval_text(start, end), Changes(*change, start, end + 1)) for start, end in row]
            arguments = "SR", slots, choices[number], choices, row[number], [thing]
            event = change_key(before, after)
            yield clip.candidate(*arguments, answer=f"interval {number}", event=event)


def change_key(before: ValueSpan, after: ValueSpan) -> str:
    """Return the facts that the time of a change tells: the change, and when the object was in both states."""
    states = (f"when {span.value} {span.thing.id}" for span in (before, after))
    return FACTS.join((f"{after.thing.id} from {after.start}", *states))


def order_of_contacts(clip: ShownScene) -> Iterator[QuestionCandidate]:
    """HOTR: the order of the hands' first contacts with three objects."""
    asked_pairs: list[tuple[str, ...]] = []
    for uses in combinations(clip.first_uses, 3):
        frames = [clip.first_uses[use] for use in uses]
        things = [
            use.thing
            if clip.scene.is_unique(use.thing, [frame])
            else name_object(clip.scene, use.thing, clip.frames, TOUCHES)
            for use, frame in zip(uses, frames, strict=True)
        ]
        couples = combinations(things, 2)
        if frames != sorted(set(frames)) or any(clip.scene.is_part_of_other(a.id, b.id) for a, b in couples):
            continue
        things_by_name = sorted(things, key=lambda thing: thing.name)
        orders = [_order_choice(frames[-1], order) for order in permutations(things_by_name)]
        right = _order_choice(frames[-1], things)
        # The wrong orders do not reveal the right order, since any three of them are equally likely.
        random.Random(content_seed("orders", clip.scene.video_id, right.text)).shuffle(orders)  # noqa: S311
        names = [f"the {thing.name}" for thing in things_by_name]
        slots, ids = {"names": f"{names[0]}, {names[1]} and {names[2]}"}, tuple(thing.id for thing in things)
        answer = " ".join(str(things_by_name.index(thing)) for thing in things)
        candidate = clip.candidate("HOTR", slots, right, orders, frames, answer=answer)
        unique = tuple(
            Unique(thing.id, (frame,), thing.description) for thing, frame in zip(things, frames, strict=True)
        )
        pairs = list(combinations(ids, 2))
        # Two pairs ask for the same order if they are equal up to parts and wholes.
        is_asked = any(
            all(a == b or clip.scene.is_part_of_other(a, b) for a, b in zip(pair, other, strict=True))
            for pair, other in product(pairs, asked_pairs)
        )
        if not is_asked and all(row.truth(clip.scene) for row in (right.statement, *unique)):
            asked_pairs += pairs
            yield msgspec.structs.replace(candidate, given=unique, objects=ids, event=" ".join(sorted(ids)))


def _order_choice(until: int, things: Sequence[NamedObject]) -> Choice:
    names = ", then ".join(f"the {thing.name}" for thing in things)
    return Choice(sentence(names), Precedes(tuple(thing.id for thing in things), until))


def next_state(clip: ShownScene) -> Iterator[QuestionCandidate]:
    """NSA: the next change of state, that is, the object and its new value."""
    recorded_values = [span for change in clip.scene.changes for span in change]
    distinct_values: list[ValueSpan] = []
    for span in [*recorded_values, *chain.from_iterable(map(clip.possible_values, recorded_values))]:
        others = (other for other in distinct_values if (other.thing, other.type) == (span.thing, span.type))
        if not any(clip.scene.domain.relation_of(span.type, span.value, other.value) == "synonym" for other in others):
            distinct_values.append(span)
    since = 0
    for _, after in clip.scene.changes:
        moments = clip.moments_around(after.start)
        for frame in clip.frames:
            if moments is None or not since <= frame <= moments[0]:
                continue
            things = clip.visible_things(clip.by_use, frame, moments[1], barred={"action"})
            called = {thing: thing.name for thing in things}
            changed = name_object(clip.scene, after.thing, (frame, moments[1]), {"action"})
            right, *choices = (
                Choice(
                    f"The {called.get(span.thing, changed.name)} is "
                    f"{clip.words.state(span.value, span.thing.category)}.",
                    NextState(span.thing.id, span.type, span.value, frame, moments[1]),
                )
                for span in (after, *(span for span in distinct_values if span.thing in things))
            )
            arguments = "NSA", {"time": clip.time(frame)}, right, choices, [frame, moments[1]], [changed]
            yield clip.candidate(*arguments, event=f"{after.thing.id} from {after.start}")
        since = after.start


def next_action(clip: ShownScene) -> Iterator[QuestionCandidate]:
    """NAA: the next action, which is in progress at the next shown moment."""
    actions = clip.actions
    for frame, until in pairwise(clip.frames):
        following = next((action for action in actions if action.start > frame), None)
        if following is None or following.start > until:
            continue
        noun, start = following.noun, following.start
        nearest = sorted(actions, key=lambda action: (action.noun != noun, abs(action.start - start)))
        hands = [Seen(hand, until) for use in clip.uses_at(until)[:1] if (hand := clip.scene.hand_id(use.side))]
        event = f"{following.name} from {following.start}"
        for start_moment in _starting_moments(clip, frame):
            right, *choices = (
                Choice(sentence(clip.phrase(name)), NextAction(name, start_moment.frames[0], until))
                for name in (following.name, *(action.name for action in nearest))
                if clip.phrase(name) != start_moment.slots.get("do")  # which is still done after its beginning
            )
            arguments = f"NAA{start_moment.wording}", start_moment.slots, right, choices, [frame, until]
            yield clip.candidate(*arguments, event=event, given=(*hands, *start_moment.given))


def _starting_moments(clip: ShownScene, frame: int) -> Iterator[Moment]:
    """Yield a moment by its time, and by the last action that begins before it if no other action has its name."""
    yield Moment((frame,), "", {"time": clip.time(frame)})
    before = [action for action in clip.actions if action.start <= frame]
    if before and frame < before[-1].end:
        only = OnlyDuring(*before[-1])
        if only.truth(clip.scene):
            yield Moment((before[-1].start,), " order", {"do": clip.phrase(before[-1].name)}, (only,))


def cause_of_change(clip: ShownScene) -> Iterator[QuestionCandidate]:
    """LCOI: the action that caused a change between two moments, and the change. Each choice is true at some time."""
    outcomes = [
        (action.name, before, after)
        for before, after in clip.scene.changes
        for action in causes_of(clip.scene, after.start, clip.words.causes.get(after.value, ()))
        # "Closes the knob" does not make the wand closed.
        if after.value != action.verb or clip.scene.domain.same_noun(action.noun, after.thing.noun)
    ]
    for name, before, after in outcomes:
        moments = clip.moments_around(after.start)
        if moments is None:
            continue
        choice = partial(_cause_choice, clip, *moments)
        thing = name_object(clip.scene, after.thing, moments, {"action"})
        choices = []
        for other_name, first, last in outcomes:
            other = name_object(clip.scene, last.thing, moments, {"action"})
            if is_told_apart(clip.scene, other, moments):
                choices.append(choice(other_name, first, last._replace(thing=other)))
        slots = {"start": clip.time(moments[0]), "end": clip.time(moments[1])}
        event = f"{after.thing.id} from {after.start}"
        right = choice(name, before, after._replace(thing=thing))
        yield clip.candidate("LCOI", slots, right, choices, moments, [thing], event=event)


def _cause_choice(clip: ShownScene, start: int, end: int, name: str, before: ValueSpan, after: ValueSpan) -> Choice:
    verbs = clip.words.causes.get(after.value, ())
    values = before.type, before.value, after.value
    first, last = (clip.words.state(span.value, span.thing.category) for span in (before, after))
    # Otherwise "to open" and "is open" would make the same claim twice.
    is_named = bool(noun_of(name)) and clip.scene.domain.same_noun(noun_of(name), after.thing.noun)
    is_implied = is_named and any(word.startswith(verb_of(name)) for word in last.split())
    change = f"and the {after.thing.name} goes from {first} to {last}"
    text = f"The person {third_person(clip.phrase(name))}, {f'which was {first} until then' if is_implied else change}."
    return Choice(text, BringsAbout(name, after.thing.id, *values, start, end + 1, verbs))


def progress(clip: ShownScene) -> Iterator[QuestionCandidate]:
    """PR: the current step, or the time at which the work passed from one step to the next."""
    names = dict.fromkeys(step.name for step in clip.steps)
    for frame in clip.frames:
        for name in dict.fromkeys(step.name for step in clip.steps if step.start <= frame < step.end):
            right, *choices = (Choice(sentence(clip.phrase(n)), InStep(n, frame)) for n in (name, *names))
            arguments = "PR step", {"time": clip.time(frame)}, right, choices, [frame]
            yield clip.candidate(*arguments, event=object_questions.step_key(name))
    for first, second in (pair for pair in pairwise(clip.scene.steps) if all(step.name for step in pair)):
        slots = {"first": clip.phrase(first.name), "second": clip.phrase(second.name)}
        for row, number in clip.intervals(second.start):
            choices = [
                Choice(clip.interval_text(start, end), AllOf((InStep(first.name, start), InStep(second.name, end))))
                for start, end in row
            ]
            passage = "PR passage", slots, choices[number], choices, row[number]
            event = f"from {first.name}{FACTS}to {second.name}"
            yield clip.candidate(*passage, answer=f"interval {number}", event=event)


def hands_over_time(clip: ShownScene) -> Iterator[QuestionCandidate]:
    """HGC: the object that a hand is on at one moment, and the object at a later moment.

    Each choice has one of two objects at each of the moments.
    """
    for (start, before), (end, after) in combinations(((f, use) for f in clip.frames for use in clip.uses_at(f)), 2):
        if start == end:
            continue
        is_same = before.thing == after.thing
        first, last = (name_object(clip.scene, use.thing, (start, end), TOUCHES) for use in (before, after))
        for other in clip.visible_things(clip.used_things, start, end, barred=TOUCHES) if is_same else [last]:
            things = [first, other]
            if other == first or clip.scene.is_part_of_other(other.id, before.thing.id):
                continue
            choice = partial(_two_touches_choice, (start, before), (end, after))
            choices = [choice(*pair) for pair in product(things, repeat=2)]
            slots = {"first": clip.time(start), "second": clip.time(end), "side": before.side}
            wording = "HGC one" if before.side == after.side else "HGC two"
            slots |= {} if before.side == after.side else {"other": after.side}
            right, answer = choice(first, last), "the same" if is_same else "another"
            touches = clip.touch_key(before.side, first, start), clip.touch_key(after.side, last, end)
            arguments = wording, slots, right, choices, [start, end], things
            yield clip.candidate(*arguments, answer=answer, event=" ".join(sorted({*touches})))


def _two_touches_choice(
    first: tuple[int, HandUse], second: tuple[int, HandUse], before: NamedObject, after: NamedObject
) -> Choice:
    touches = tuple(Touches(use.side, thing.id, frame) for (frame, use), thing in ((first, before), (second, after)))
    text = f"the {before.name} both times" if before == after else f"first the {before.name}, then the {after.name}"
    return Choice(sentence(text), AllOf(touches))


QUESTIONS: Mapping[str, Sequence[Callable[[ShownScene], Iterator[QuestionCandidate]]]] = {
    "AOG": (active_object, object_questions.colour_in_hand),
    "HOA": (hand_of_object, object_questions.hands_on_object),
    "MSP": (state_in_use,),
    "SR": (when_it_changed, object_questions.state_before),
    "LVR": (object_questions.place_before, place_questions.direction_to_other, place_questions.moment_at_place),
    "HOTR": (order_of_contacts, object_questions.time_of_touch),
    "NSA": (next_state,),
    "NAA": (next_action, object_questions.moment_before_action),
    "LCOI": (cause_of_change,),
    "PR": (progress, object_questions.moment_of_step, object_questions.moment_of_action),
    "HGC": (hands_over_time, object_questions.moment_of_touch),
    "GOT": (
        object_questions.tracked_object,
        object_questions.state_of_tracked_object,
        place_questions.direction_of_move,
    ),
}
"""The questions of each subtask."""
