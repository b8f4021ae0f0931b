"""ViSTa's level 1: one clip, one action, state or place; described beside others of its kind that it does not show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from barista_bench.generate.candidates import Choice, QuestionCandidate
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import NamedObject
from barista_bench.generate.statements import Changes, Located, Seen, moments_of
from barista_bench.generate.vista_sequences import ActionClip
from barista_bench.generate.vista_statements import AloneInView, Depicts, NothingInside, taken_in
from barista_bench.generate.vista_words import VistaWords


def foundation_candidates(scene: Scene, clips: Sequence[ActionClip], words: VistaWords) -> Iterator[QuestionCandidate]:
    """Clips of level 1, `extra` with the key of the sets that a clip can be in."""
    for clip in clips:
        yield _of_object(scene, clip, words)
        yield from _of_opposites(scene, clip, words)
        yield from _of_places(scene, clip, words)
    yield from _of_states(scene, words)


def _of_object(scene: Scene, clip: ActionClip, words: VistaWords) -> QuestionCandidate:
    """Which of many things an action is done to."""
    verb, _, noun = clip.name.partition(" ")
    others = [f"{verb} {other}" for other in words.objects if other != noun.lower()]
    return _action(scene, clip, words, "objects", verb.lower(), others)


def _of_opposites(scene: Scene, clip: ActionClip, words: VistaWords) -> Iterator[QuestionCandidate]:
    """Whether a thing is picked up or put down, opened or closed."""
    verb, _, noun = clip.name.partition(" ")
    for subtask, pairs in words.opposites.items():
        opposites = [pair[1 - pair.index(verb.lower())].capitalize() for pair in pairs if verb.lower() in pair]
        if opposites:
            yield _action(scene, clip, words, subtask, noun.lower(), [f"{opposite} {noun}" for opposite in opposites])


def _action(
    scene: Scene, clip: ActionClip, words: VistaWords, subtask: str, key: str, others: Sequence[str]
) -> QuestionCandidate:
    spans = ((clip.start, clip.end),)

    def say(name: str) -> Choice:
        return Choice(f"The person {words.action(scene.in_words(name))}.", Depicts((name,), spans))

    return QuestionCandidate(
        subtask=subtask,
        video_id=scene.video_id,
        question=words.prompt,
        right=(say(clip.name),),
        distractors=tuple(say(name) for name in others),
        span=spans[0],
        frames=(clip.start,),
        extra=_of_set(key, spans[0], clip.name),
    )


def _of_places(scene: Scene, clip: ActionClip, words: VistaWords) -> Iterator[QuestionCandidate]:
    """Where the thing ends up that hands move."""
    last = clip.end - 1
    used = taken_in(scene, clip.start, clip.end)
    kinds = {thing.id: _kind(scene, thing) for thing in scene.things.values()}
    for span in scene.places:
        # Relations are recorded in both directions: the thing that is put somewhere is the one that hands have moved.
        if not (clip.start < span.start < clip.end and span.thing in used and span.other not in used):
            continue
        others = [thing for thing in scene.things.values() if kinds[thing.id] != kinds[span.thing.id]]
        distractors = [
            (predicate, thing)
            for predicate, relation in scene.domain.places.items()
            if not relation.is_part and relation.inverse != words.contents
            for thing in others
            if list(kinds.values()).count(kinds[thing.id]) == 1
        ]

        def say(predicate: str, thing: NamedObject, moved: NamedObject = span.thing) -> Choice:
            where = scene.domain.places[predicate].words
            text = f"The {kinds[moved.id]} ends up {where} the {kinds[thing.id]}."
            return Choice(text, Located(moved.id, predicate, thing.id, last))

        yield QuestionCandidate(
            subtask="containers",
            video_id=scene.video_id,
            question=clip.name,
            right=(say(span.predicate, span.other),),
            distractors=tuple(say(*row) for row in distractors),
            given=(Seen(span.thing.id, last), Seen(span.other.id, last)),
            span=(clip.start, clip.end),
            frames=(last,),
            objects=(span.thing.id, span.other.id),
            extra=_of_set(kinds[span.thing.id], (clip.start, clip.end), clip.name),
        )


def _of_states(scene: Scene, words: VistaWords) -> Iterator[QuestionCandidate]:
    """In which state a thing is, in clips half as long as an action may be."""
    length = scene.frames(scene.domain.lengths.action_max / 2)
    for span in scene.values:
        kind = _kind(scene, span.thing)
        values = words.states.get(kind, {})
        if span.type != "state" or span.value not in values:
            continue
        first, stop = span.start + scene.margin, span.end - scene.margin
        for start in range(first, stop, length):
            end = min(start + length, stop)
            if end - start < scene.frames(scene.domain.lengths.action_min):
                continue

            def say(value: str, start: int = start, end: int = end, thing: NamedObject = span.thing) -> Choice:
                text = f"The {_kind(scene, thing)} is {words.states[_kind(scene, thing)][value]}."
                return Choice(text, Changes(thing.id, "state", value, value, start, end))

            yield QuestionCandidate(
                subtask="on_v_off",
                video_id=scene.video_id,
                question=kind,
                right=(say(span.value),),
                distractors=tuple(say(value) for value in values if value != span.value),
                given=(
                    *(Seen(span.thing.id, frame) for frame in moments_of(scene, start, end)),
                    AloneInView(span.thing.id, kind, start, end),
                    *([NothingInside(span.thing.id, words.contents, start, end)] if span.value in words.hollow else []),
                ),
                span=(start, end),
                frames=(start,),
                objects=(span.thing.id,),
                extra=_of_set(kind, (start, end)),
            )


def _of_set(key: str, span: tuple[int, int], *actions: str) -> dict[str, Any]:
    """The words of a clip; it can be in sets of this key."""
    return {"set": key.replace(" ", "_"), "spans": [span], "shared": 1, "actions": actions}


def _kind(scene: Scene, thing: NamedObject) -> str:
    """The name of a thing in any video: without colours."""
    category = thing.category.lower()
    return thing.name if category in scene.domain.vague else category
