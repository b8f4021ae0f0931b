"""EgoCoT-Bench's questions about one object, and about the moment of an event.

They ask about hands on one object, its colour, state and place, and about moments. A graph with one or two objects
decides them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import product, zip_longest

import msgspec

from barista_bench.core.example import content_seed
from barista_bench.generate.candidates import FACTS, Choice, QuestionCandidate
from barista_bench.generate.descriptions import TOUCHES, Basis, name_object
from barista_bench.generate.egocot.moments import DISTRACTORS, ShownScene, sentence
from barista_bench.generate.egocot.statements import PLACES, AwayFrom, InPart, InStep, NextAction, Place, part_of_frame
from barista_bench.generate.spans import COLOUR, SIDES, NamedObject, ValueSpan
from barista_bench.generate.statements import AllOf, Does, HasValue, Statement, Touches, Unique

HANDS = {(True, True): "Both hands.", (True, False): "Only the left hand.", (False, True): "Only the right hand."}
NEITHER = "Neither hand."


def colour_in_hand(clip: ShownScene) -> Iterator[QuestionCandidate]:
    """AOG: the colour of the only object that a hand is on."""
    colours = [group[0] for groups in _dimensions(clip, COLOUR) for group in groups]
    seen_colours = [span.value for span in clip.scene.values if span.type == COLOUR]
    for frame, side in product(clip.frames, SIDES):
        things = {use.thing for use in clip.uses_at(frame) if use.side == side}
        for span in clip.scene.values if len(things) == 1 else ():
            is_shown = span.type == COLOUR and span.thing in things and span.start <= frame < span.end
            if is_shown and span.value.lower() not in span.thing.name:  # other questions use the name
                right, *choices = (
                    Choice(sentence(value), HasValue(span.thing.id, COLOUR, value, frame))
                    for value in dict.fromkeys((span.value, *seen_colours, *colours))
                )
                given, slots = [Touches(side, span.thing.id, frame)], {"time": clip.time(frame), "side": side}
                arguments = "AOG colour", slots, right, choices, [frame], [span.thing]
                yield clip.candidate(*arguments, given=given, is_named=False, event=f"colour {span.thing.id}")


def hands_on_object(clip: ShownScene) -> Iterator[QuestionCandidate]:
    """HOA: which of the hands are on one object."""
    for frame, used_thing in product(clip.frames, clip.used_things):
        thing = name_object(clip.scene, used_thing, [frame], TOUCHES)
        choices = [_hands_choice(thing, frame, *touching) for touching in product((True, False), repeat=2)]
        right = next((choice for choice in choices if choice.statement.truth(clip.scene)), choices[0])
        arguments = "HOA hands", {"time": clip.time(frame), "thing": thing.name}, right, choices, [frame], [thing]
        sides = [side for side in SIDES if side in right.text]
        event = clip.touch_key(sides[0], thing, frame) if sides else f"{right.text} {thing.id}"
        yield clip.candidate(*arguments, answer=right.text, event=event)


def _hands_choice(thing: NamedObject, frame: int, *touching: bool) -> Choice:
    parts = [
        (Touches if is_on else AwayFrom)(side, thing.id, frame) for side, is_on in zip(SIDES, touching, strict=True)
    ]
    return Choice(HANDS.get((touching[0], touching[1]), NEITHER), AllOf(tuple(parts)))


def state_before(clip: ShownScene) -> Iterator[QuestionCandidate]:
    """SR: the state of an object at a moment, or the moment at which the object was in a state."""
    for current in clip.scene.values:
        values = _states_to_choose_from(clip, current)
        if len(values) > DISTRACTORS:
            for frame in _frames_of(clip, current):
                thing = name_object(clip.scene, current.thing, [frame])
                right, *choices = (_state_choice(clip, current, value, frame) for value in values)
                arguments = (
                    "SR state",
                    {"time": clip.time(frame), "thing": thing.name},
                    right,
                    choices,
                    [frame],
                    [thing],
                )
                yield clip.candidate(*arguments, event=f"when {current.value} {thing.id}")
        if any(current in change for change in clip.scene.changes):
            state = clip.words.state(current.value, current.thing.category)
            claim = partial(HasValue, current.thing.id, current.type, current.value)
            for candidate in which_moment(
                clip, "SR moment", {"state": state}, claim, f"when {current.value}", current.thing
            ):
                # Its wrong moments tell when the object had another value.
                facts = candidate.event, f"when {current.type} {current.thing.id}"
                yield msgspec.structs.replace(candidate, event=FACTS.join(facts))


def state_of_tracked_object(clip: ShownScene) -> Iterator[QuestionCandidate]:
    """GOT: the state, at one moment, of the object that a hand works with at another moment."""
    for role_frame, side in product(clip.frames, SIDES):
        in_hand = {use.thing for use in clip.uses_at(role_frame) if use.side == side}
        for current in clip.scene.values if len(in_hand) == 1 else ():
            values = _states_to_choose_from(clip, current) if current.thing in in_hand else []
            for frame in _frames_of(clip, current) if values else ():
                if frame != role_frame:
                    right, *choices = (_state_choice(clip, current, value, frame) for value in values)
                    slots = {"side": side, "role": clip.time(role_frame), "time": clip.time(frame)}
                    arguments = "GOT state", slots, right, choices, [role_frame, frame], [current.thing]
                    given = [Touches(side, current.thing.id, role_frame)]
                    event = f"when {current.value} {current.thing.id}"
                    yield clip.candidate(*arguments, given=given, is_named=False, event=event)


def _frames_of(clip: ShownScene, current: ValueSpan) -> list[int]:
    return [frame for frame in clip.frames if current.start <= frame < current.end]


def _dimensions(clip: ShownScene, attribute_type: str) -> Sequence[tuple[tuple[str, ...], ...]]:
    """Return the dimensions of an attribute type, or none if the domain lacks the type."""
    words = clip.scene.domain.attributes.get(attribute_type)
    return words.groups if words else ()


def _states_to_choose_from(clip: ShownScene, current: ValueSpan) -> list[str]:
    """Return a value and other values of its dimension that the object can have, or none if the value never changes.

    The object can have the values that it has in the video. If the domain lists two of these for a category, the object
    can have all values of that category.
    """
    domain = clip.scene.domain
    dimensions = _dimensions(clip, current.type) if current.type != COLOUR else ()
    groups = next((groups for groups in dimensions if any(current.value in group for group in groups)), ())
    values = {span.value for span in clip.scene.values_of(current.thing.id, current.type)}
    possible = {group for group in groups if values & {*group}}
    if len(possible) < 2:
        return []
    for _ in groups:  # a cup may get a bowl's values, and through these a tray's
        for listed in domain.families.get("vista", {}).get("states", {}).values():
            of_category = {group for group in groups if {*group} & {*listed}}
            possible |= of_category if len(of_category & possible) > 1 else set()
    return [current.value, *(group[0] for group in groups if group in possible and current.value not in group)]


def _state_choice(clip: ShownScene, current: ValueSpan, value: str, frame: int) -> Choice:
    text = sentence(clip.words.state(value, current.thing.category))
    return Choice(text, HasValue(current.thing.id, current.type, value, frame))


def moment_of_touch(clip: ShownScene) -> Iterator[QuestionCandidate]:
    """HGC: the moment at which a hand is on an object."""
    for thing, side in product(clip.used_things, SIDES):
        claim = partial(Touches, side, thing.id)
        for candidate in which_moment(clip, "HGC moment", {"side": side}, claim, side, thing):
            yield msgspec.structs.replace(candidate, event=clip.touch_key(side, thing, candidate.frames[0]))


def time_of_touch(clip: ShownScene) -> Iterator[QuestionCandidate]:
    """HOTR: the interval in which a hand begins to touch an object, or stops touching it."""
    for use, change in product(clip.scene.uses, ("start", "end")):
        side, thing = use.side, name_object(clip.scene, use.thing, clip.frames, TOUCHES)
        given = [Unique(thing.id, tuple(clip.frames), thing.description)]  # the question names no moment
        uses = [other for other in clip.scene.uses if other.side == side]
        alike = [u for u in uses if u.thing.id == thing.id or clip.scene.is_part_of_other(u.thing.id, thing.id)]
        for row, number in clip.intervals(getattr(use, change)):
            # A choice is decided by its two moments. A touch between them would make a wrong choice right.
            if any(row[0][0] < getattr(other, change) <= row[-1][1] for other in alike if other != use):
                continue
            choices = []
            for first, last in row:
                away, on = (first, last) if change == "start" else (last, first)
                claims = AwayFrom(side, thing.id, away), Touches(side, thing.id, on)
                choices.append(Choice(clip.interval_text(first, last), AllOf(claims)))
            arguments = f"HOTR {change}", {"side": side, "thing": thing.name}, choices[number], choices, row[number]
            event = f"{clip.touch_key(side, thing, use.start)} {change}"
            yield clip.candidate(*arguments, [thing], answer=f"interval {number}", event=event, given=given)


def moment_of_step(clip: ShownScene) -> Iterator[QuestionCandidate]:
    """PR: the moment at which a step is under way."""
    for name in dict.fromkeys(step.name for step in clip.steps):
        claim = partial(InStep, name)
        yield from which_moment(clip, "PR moment", {"step": clip.phrase(name)}, claim, step_key(name))


def step_key(name: str) -> str:
    """Return the facts of a step's time: its beginning and its end, of which a passage to the next step tells one."""
    return f"to {name}{FACTS}from {name}"


def moment_of_action(clip: ShownScene) -> Iterator[QuestionCandidate]:
    """PR: the moment at which an action is in progress. An action that fills a step is the same event as the step."""
    steps = {(step.start, step.end) for step in clip.steps}
    filling = {action.name for action in clip.actions if (action.start, action.end) in steps}
    for name in dict.fromkeys(action.name for action in clip.actions if action.name not in filling):
        slots = {"doing": clip.participle_phrase(name)}
        yield from which_moment(clip, "PR action", slots, partial(Does, name), f"when {name}")


def moment_before_action(clip: ShownScene) -> Iterator[QuestionCandidate]:
    """NAA: the moment after which an action is the next one that begins."""
    following = {frame: next((a for a in clip.actions if a.start > frame), None) for frame in clip.frames}

    def claim(name: str, frame: int) -> Statement:
        start = action.start if (action := following[frame]) else frame
        until = next((other for other in clip.frames if other > start + clip.scene.margin), frame)
        return NextAction(name, frame, until)

    for name in dict.fromkeys(action.name for action in clip.actions):
        slots = {"do": clip.phrase(name)}
        for candidate in which_moment(clip, "NAA moment", slots, partial(claim, name), f"before {name}"):
            if action := following[candidate.frames[0]]:
                yield msgspec.structs.replace(candidate, event=f"{name} from {action.start}")


def which_moment(
    clip: ShownScene,
    wording: str,
    slots: dict[str, str],
    claim: Callable[[int], Statement],
    event: str,
    thing: NamedObject | None = None,
    barred: Collection[Basis] = TOUCHES,
) -> Iterator[QuestionCandidate]:
    """Yield a shown moment at which a claim holds, with moments at which it does not hold as distractors.

    The object is visible at all these moments. The properties `barred` must not identify it.
    """
    frames = [frame for frame in clip.frames if thing is None or clip.scene.is_visible(thing.id, frame)]
    truths = {frame: claim(frame).truth(clip.scene) for frame in frames}
    wrong = [frame for frame, truth in truths.items() if truth is False]
    random.Random(content_seed("moments", clip.scene.video_id, event)).shuffle(wrong)  # noqa: S311
    # Only every second moment can be right, and distractors are of both kinds. So the other answers about a video do
    # not help to exclude moments, neither those that are right elsewhere nor those that never are.
    by_kind = [[frame for frame in wrong if clip.frames.index(frame) % 2 == odd] for odd in (0, 1)]
    wrong = [frame for pair in zip_longest(*by_kind) for frame in pair if frame is not None][:DISTRACTORS]
    for frame in (frame for frame, truth in truths.items() if truth and clip.frames.index(frame) % 2 == 0):
        shown: Sequence[int] = (frame, *wrong)
        things = [name_object(clip.scene, thing, shown, barred)] if thing else []
        right, *choices = (Choice(f"At {clip.time(index)}.", claim(index)) for index in shown)
        named_slots = slots | ({"thing": things[0].name} if things else {})
        arguments = wording, named_slots, right, choices, shown, things
        answer, event_key = f"moment {clip.frames.index(frame)}", f"{event} {thing.id}" if thing else event
        yield clip.candidate(*arguments, answer=answer, event=event_key)


def place_before(clip: ShownScene) -> Iterator[QuestionCandidate]:
    """LVR: the earlier place in the frame of an object that hands work with."""
    for used_thing, frame in product(clip.used_things, clip.frames):
        if part := part_of_frame(clip.scene, used_thing.id, frame):
            thing = name_object(clip.scene, used_thing, [frame], {"side"})
            slots = {"time": clip.time(frame), "thing": thing.name}
            right, *choices = _place_choices(thing, frame, part)
            yield clip.candidate("LVR", slots, right, choices, [frame], [thing], event=f"{thing.id} {part}")


def _place_choices(thing: NamedObject, frame: int, part: Place) -> list[Choice]:
    """Return the choice of the right part of the frame, and then the other parts that can be told from it."""
    others = next(row for row in PLACES if part in row)
    parts = dict.fromkeys((part, *others))
    return [Choice(f"In the {part}.", InPart(thing.id, part, frame)) for part in parts]


def tracked_object(clip: ShownScene) -> Iterator[QuestionCandidate]:
    """GOT: the place, at one moment, of the object that a hand works with at another moment.

    The question does not depend on the object's appearance.
    """
    for role_frame in clip.frames:
        for use in clip.uses_at(role_frame):
            in_hand = [other for other in clip.uses_at(role_frame) if other.side == use.side]
            for frame in clip.frames:
                part = part_of_frame(clip.scene, use.thing.id, frame)
                if frame != role_frame and part is not None and len(in_hand) == 1:
                    slots = {"side": use.side, "role": clip.time(role_frame), "time": clip.time(frame)}
                    right, *choices = _place_choices(use.thing, frame, part)
                    given = [Touches(use.side, use.thing.id, role_frame)]
                    arguments = "GOT", slots, right, choices, [role_frame, frame], [use.thing]
                    event = f"{use.thing.id} {part}"
                    yield clip.candidate(*arguments, given=given, is_named=False, event=event)
