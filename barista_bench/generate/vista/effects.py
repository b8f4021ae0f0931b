"""ViSTa's clips about effects: what changes its state, what is joined to what, and which of alike objects is which."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise, product

from barista_bench.generate.candidates import QuestionCandidate
from barista_bench.generate.nearby import is_located, moments_of
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import NamedObject, ValueSpan
from barista_bench.generate.statements import Changes, Located, Seen, Statement
from barista_bench.generate.vista.clips import ActionClip, Saying, VistaWords, clip_candidate, kind_name
from barista_bench.generate.vista.statements import AloneInView, LeftmostAtEnd, Unjoined, used_things

AROUND_S = 1.0
"""Seconds of a tracking clip before the first and after the last touch of its objects."""
MOST_TOUCHES = 3
"""Maximum number of touches in a tracking clip."""


def effect_candidates(scene: Scene, clips: Sequence[ActionClip], words: VistaWords) -> Iterator[QuestionCandidate]:
    """Yield clips of level 1 for sets about changes, joints and alike objects."""
    yield from _change_candidates(scene, clips, words)
    for clip in clips:
        yield from _joint_candidates(scene, clip)
    yield from _tracking_candidates(scene)


def _change_candidates(scene: Scene, clips: Sequence[ActionClip], words: VistaWords) -> Iterator[QuestionCandidate]:
    """Yield clips around changes of an object's state, and clips of actions with the object that may leave it as is."""
    for (subtask, by_kind), thing in product(words.changes.items(), scene.things.values()):
        kind = kind_name(scene, thing)
        values = by_kind.get(kind, {})
        spans = [span for span in scene.values_of(thing.id, "state") if span.value in values]
        for start, end in _windows(scene, thing, spans, clips):
            first, last = (_value_at(spans, frame) for frame in (start, end - 1))
            if first is None or last is None:
                continue
            sayings: list[Saying] = [
                (
                    {"thing": kind, "before": values[before], "after": "still " * (before == after) + values[after]},
                    Changes(thing.id, "state", before, after, start, end),
                )
                for before, after in dict.fromkeys(((first, last), *product(values, values)))
            ]
            given: list[Statement] = [Seen(thing.id, frame) for frame in moments_of(scene, start, end)]
            given.append(AloneInView(thing.id, kind, start, end))
            arguments = kind, "vista/change", sayings, (start, end), start, (), (thing.id,)
            yield clip_candidate(scene, subtask, *arguments, given)


def _windows(
    scene: Scene, thing: NamedObject, spans: Sequence[ValueSpan], clips: Sequence[ActionClip]
) -> Iterator[tuple[int, int]]:
    half = scene.frames_in(scene.domain.lengths.action_max / 2)
    for _, after in pairwise(spans):
        yield max(0, after.start - half), min(after.start + half, scene.frame_count)
    for clip in clips:
        used = {item.id for item in used_things(scene, clip.start, clip.end)}
        if spans and (thing.id in used or any(thing.id in scene.wholes.get(item, ()) for item in used)):
            yield clip.start, clip.end


def _value_at(spans: Sequence[ValueSpan], frame: int) -> str | None:
    return next((span.value for span in spans if span.start <= frame < span.end), None)


def _joint_candidates(scene: Scene, clip: ActionClip) -> Iterator[QuestionCandidate]:
    """Yield candidates about whether an object that hands use ends up joined to another object, or only beside it."""
    last, places = clip.end - 1, scene.domain.places
    used = used_things(scene, clip.start, clip.end)
    kinds = {thing.id: kind_name(scene, thing) for thing in scene.things.values()}
    times = Counter(kinds.values())
    pairs = dict.fromkeys((span.thing, span.predicate, span.other) for span in scene.places)
    for thing, predicate, other in pairs:
        known = places.get(predicate)
        if known is None or not known.belongs or known.is_part or thing not in used or times[kinds[other.id]] > 1:
            continue
        is_joined = is_located(scene, thing.id, predicate, other.id, last)
        joint, words = (thing.id, predicate, other.id, last), known.words
        sayings: list[Saying] = [
            ({"thing": kinds[thing.id], "joined": joined, "other": kinds[other.id]}, statement)
            for joined, statement in ((words, Located(*joint)), (f"not {words}", Unjoined(*joint)))
        ]
        key = f"{kinds[thing.id]} {kinds[other.id]}"
        arguments = key, "vista/joined", sayings if is_joined else sayings[::-1], (clip.start, clip.end), last
        objects = thing.id, other.id
        given = [Seen(item, last) for item in objects]
        yield clip_candidate(scene, "object_interaction", *arguments, (clip.name,), objects, given)


def _tracking_candidates(scene: Scene) -> Iterator[QuestionCandidate]:
    """Yield clips in which hands touch alike objects, about whether the leftmost object stays the leftmost."""
    alike: dict[str, list[NamedObject]] = defaultdict(list)
    for thing in scene.things.values():
        alike[thing.name].append(thing)
    around = scene.frames_in(AROUND_S)
    for things in alike.values():
        objects, kind = tuple(thing.id for thing in things), kind_name(scene, things[0])
        uses = [use for use in scene.uses if use.thing in things and len(things) > 1]
        for first, count in product(range(len(uses)), range(1, MOST_TOUCHES + 1)):
            touches = uses[first : first + count]
            start = max(0, touches[0].start - around)
            end = min(max(use.end for use in touches) + around, scene.frame_count)
            if len(touches) < count or end - start > scene.frames_in(MOST_TOUCHES * scene.domain.lengths.action_max):
                continue
            sayings: list[Saying] = [
                ({"thing": kind, "place": place}, LeftmostAtEnd(objects, kind, start, end, stays))
                for stays, place in ((True, "still the leftmost"), (False, "no longer the leftmost"))
            ]
            is_right = sayings[0][1].truth(scene)
            given = [Seen(item, frame) for item in objects for frame in (start, end - 1)]
            arguments = f"{kind} {len(things)}", "vista/leftmost", sayings if is_right else sayings[::-1], (start, end)
            yield clip_candidate(scene, "object_tracking", *arguments, start, (), objects, given)
