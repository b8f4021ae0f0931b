"""ViSTa's clips: at level 1 single ones, of one action, state or place, described beside others of their kind that they
do not show; above, sequences of one video's actions that could have happened as they are joined, and sets of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice, pairwise, zip_longest
from typing import Any, NamedTuple, TypeAlias

from barista_bench.generate.candidates import Choice, QuestionCandidate
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import NamedObject
from barista_bench.generate.statements import Changes, Located, Seen, Statement, moments_of
from barista_bench.generate.vista_statements import (
    AloneInView,
    AsLeft,
    Continues,
    Depicts,
    HandsAtWork,
    NothingInside,
    fits,
    taken_for,
    taken_in,
)
from barista_bench.generate.vista_words import VistaWords
from barista_bench.generate.wordings import Phrases, plain

Order: TypeAlias = tuple[int, ...]
"""Indices of clips, in the order in which they are joined."""
ASKED = "Which of these describes the clip?"
"""What people are asked who check a description; models are asked in the benchmark's own way."""
LARGEST_SET = 9
"""Descriptions of a general set; the release's have as many."""
PERMUTATIONS = 3
"""Orders of a permutation set, 2 at level 2."""
STEPS = 20_000
"""Clips that are tried to find a set's sequences, `TRIED` sequences at the most: in a long video there is no end."""
TRIED = 500


class ActionClip(NamedTuple):
    """Frames [start, end) that show one action and nothing of the one before it."""

    name: str
    start: int
    end: int


class Sequences:
    """Sequences that one video's actions can be joined to."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.clips: list[ActionClip] = []
        self.refused: list[str] = []
        """Why actions cannot be shown, each."""
        self._cut()

    def _cut(self) -> None:
        lengths, end = self.scene.domain.lengths, 0
        for action in self.scene.actions:
            clip = ActionClip(action.name, max(action.start, end), action.end)
            seconds = (clip.end - clip.start) / self.scene.fps
            if seconds < lengths.action_min:
                reason = f"it lasts less than {lengths.action_min:g} s"
            elif seconds > lengths.action_max:
                reason = f"it lasts more than {lengths.action_max:g} s"
            elif HandsAtWork(clip.start, clip.end).truth(self.scene) is not True:
                reason = HandsAtWork.unmet
            else:
                self.clips.append(clip)
                end = clip.end
                continue
            self.refused.append(reason)

    def joints(self, order: Order) -> tuple[Statement, ...]:
        """Conditions for the clips to be joined in this order."""
        joints = tuple(self.joint(a, b) for a, b in pairwise(order))
        return *joints, *(left for at in range(1, len(order)) for left in self._left(order[:at], order[at]))

    def is_possible(self, path: Order, at: int) -> bool:
        """Whether a clip can follow the clips of a path, which is possible itself."""
        if not path:
            return True
        return at in self.after[path[-1]] and all(left.truth(self.scene) for left in self._left(path, at))

    def _left(self, path: Order, at: int) -> Iterator[AsLeft]:
        """Conditions for a clip to follow a path: the things that it takes are as they were at every joint before."""
        for first, second in pairwise((*path, at)):
            yield AsLeft(tuple(sorted(self._taken[at])), self.clips[first].end - 1, self.clips[second].start)

    @cached_property
    def _taken(self) -> list[frozenset[str]]:
        """Ids of what hands use in each clip."""
        return [frozenset(thing.id for thing in taken_in(self.scene, clip.start, clip.end)) for clip in self.clips]

    def joint(self, first: int, second: int) -> Continues:
        return Continues(self.clips[first].end - 1, self.clips[second].start, self.clips[second].end)

    @cached_property
    def after(self) -> list[list[int]]:
        """For each clip those that can follow it, the ones that do so in the video first."""
        clips = range(len(self.clips))
        return [
            sorted(
                (b for b in clips if self.clips[a].name != self.clips[b].name and self.joint(a, b).truth(self.scene)),
                key=lambda b: (b - a) % len(clips),
            )
            for a in clips
        ]

    def says(self, order: Order, of: Order) -> Depicts:
        """That the clips `of` show what the clips `order` are called."""
        spans = tuple((self.clips[at].start, self.clips[at].end) for at in of)
        return Depicts(self._names(order), spans)

    def _names(self, order: Order) -> tuple[str, ...]:
        return tuple(self.clips[at].name for at in order)

    def runs(self, length: int) -> Iterator[Order]:
        """Clips that follow each other in the video, from each clip on."""
        for start in range(len(self.clips) - length + 1):
            order = tuple(range(start, start + length))
            if all(self.is_possible(order[:at], order[at]) for at in range(len(order))):
                yield order

    def general_set(self, base: Order) -> list[Order]:
        """The base, and sequences that share its first steps and then differ: all but the last one, all but the last
        two, and so on down to none; by turns, up to `LARGEST_SET`."""
        length = len(base)
        ways = [
            self._paths(base[:shared], length, set(base[shared : shared + 1])) for shared in range(length - 1, -1, -1)
        ]
        by_turns = (order for row in zip_longest(*ways) for order in row if order is not None)
        return self._apart([base], by_turns, LARGEST_SET)

    def permutation_sets(self, length: int) -> Iterator[list[Order]]:
        """Of each choice of clips that can be joined in some order, orders that cannot be taken for each other: the one
        that is nearest to the video's first."""
        orders: dict[frozenset[int], list[Order]] = defaultdict(list)
        for start in range(len(self.clips)):
            for order in islice(self._paths((start,), length, set()), TRIED):
                orders[frozenset(order)].append(order)
        for _, same in sorted(orders.items(), key=lambda row: sorted(row[0])):
            base, *others = sorted(same)
            yield self._apart([base], iter(others), min(length, PERMUTATIONS))

    def _paths(self, prefix: Order, length: int, barred: set[int]) -> Iterator[Order]:
        """Sequences that begin with `prefix` and go on with none of `barred`; each clip once."""
        steps = 0
        waiting = [prefix]
        while waiting and steps < STEPS:
            steps += 1
            path = waiting.pop()
            if len(path) == length:
                yield path
                continue
            following = self.after[path[-1]] if path else list(range(len(self.clips)))
            waiting += [
                (*path, at)
                for at in reversed(following)
                if at not in path and not (len(path) == len(prefix) and at in barred) and self.is_possible(path, at)
            ]

    def _apart(self, chosen: list[Order], offered: Iterator[Order], most: int) -> list[Order]:
        """Of what is offered, in turn, what cannot be taken for any sequence chosen before, nor those for it."""
        for order in islice(offered, TRIED):
            if len(chosen) == most:
                break
            if all(self._excludes(order, other) and self._excludes(other, order) for other in chosen):
                chosen.append(order)
        return chosen

    def _excludes(self, said: Order, shown: Order) -> bool:
        """Whether `Depicts` does: quickly, since it is asked of thousands."""
        clips = [self.clips[at] for at in shown]
        return not fits(self._names(said), clips, lambda name, clip: taken_for(self.scene, name, clip.start, clip.end))


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

    def slots(name: str) -> dict[str, Phrases]:
        return {"deeds": Phrases([words.action(scene.in_words(name))])}

    def say(name: str) -> Choice:
        return Choice(plain("vista/act", slots(name)), Depicts((name,), spans))

    return QuestionCandidate(
        subtask=subtask,
        video_id=scene.video_id,
        question=ASKED,
        right=(say(clip.name),),
        distractors=tuple(say(name) for name in others),
        span=spans[0],
        frames=(clip.start,),
        wording="vista/act",
        slots=slots(clip.name),
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

        def slots(predicate: str, thing: NamedObject, moved: NamedObject = span.thing) -> dict[str, str]:
            where = scene.domain.places[predicate].words
            return {"thing": kinds[moved.id], "where": where, "other": kinds[thing.id]}

        def say(predicate: str, thing: NamedObject, moved: NamedObject = span.thing) -> Choice:
            return Choice(plain("vista/place", slots(predicate, thing)), Located(moved.id, predicate, thing.id, last))

        yield QuestionCandidate(
            subtask="containers",
            video_id=scene.video_id,
            question=ASKED,
            right=(say(span.predicate, span.other),),
            distractors=tuple(say(*row) for row in distractors),
            given=(Seen(span.thing.id, last), Seen(span.other.id, last)),
            span=(clip.start, clip.end),
            frames=(last,),
            objects=(span.thing.id, span.other.id),
            wording="vista/place",
            slots=slots(span.predicate, span.other),
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

            def slots(value: str, thing: NamedObject = span.thing) -> dict[str, str]:
                kind = _kind(scene, thing)
                return {"thing": kind, "state": words.states[kind][value]}

            def say(value: str, start: int = start, end: int = end, thing: NamedObject = span.thing) -> Choice:
                text = plain("vista/state", slots(value, thing))
                return Choice(text, Changes(thing.id, "state", value, value, start, end))

            yield QuestionCandidate(
                subtask="on_v_off",
                video_id=scene.video_id,
                question=ASKED,
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
                wording="vista/state",
                slots=slots(span.value),
                extra=_of_set(kind, (start, end)),
            )


def _of_set(key: str, span: tuple[int, int], *actions: str) -> dict[str, Any]:
    """The words of a clip; it can be in sets of this key."""
    return {"set": key.replace(" ", "_"), "spans": [span], "shared": 1, "actions": actions}


def _kind(scene: Scene, thing: NamedObject) -> str:
    """The name of a thing in any video: without colours."""
    category = thing.category.lower()
    return thing.name if category in scene.domain.vague else category
