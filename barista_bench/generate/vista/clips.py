"""ViSTa's clips and sets.

At level 1, a clip shows one action, state or place. Its description competes with descriptions of the same kind that
the clip does not show. At higher levels, a video's actions are joined to sequences in orders that could have happened.
These sequences form sets.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice, pairwise, product, zip_longest
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from barista_bench.generate.candidates import Choice, QuestionCandidate
from barista_bench.generate.nearby import moments_of, place_words
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import NamedObject, noun_of, verb_of
from barista_bench.generate.statements import Changes, Located, Seen, Statement
from barista_bench.generate.vista.statements import (
    AloneInView,
    AsLeft,
    Continues,
    Depicts,
    HandsAtWork,
    NothingInside,
    is_fitting,
    possible_activities,
    used_things,
)
from barista_bench.generate.wordings import Phrases, Slots, plain_text
from barista_bench.scene_graph.domain import DomainRecord
from barista_bench.scene_graph.graph_words import PARTICLES, action_phrase, spoken_form

Order: TypeAlias = tuple[int, ...]
"""Indices of clips in the order in which they are joined."""
Saying: TypeAlias = tuple[Slots, Statement]
"""Words about a clip that fill a wording's slots, and the statement that they make."""
REVIEW_QUESTION = "Which of these describes the clip?"
"""The question for people who check a description. Models get the benchmark's question."""
LARGEST_SET = 9
"""Maximum number of descriptions in a general set. It is the number in the release."""
PERMUTATIONS = 3
"""Maximum number of orders in a permutation set. At level 2 there are 2 orders."""
PATHS_TRIED = 20_000
"""Maximum number of steps when searching a set's sequences, since a long video has too many clips."""
SEQUENCES_TRIED = 500
"""Maximum number of sequences among which a set's sequences are chosen."""
TOO_SHORT, TOO_LONG = "it has less than", "it lasts more than"
"""Beginnings of the reasons why an action cannot be shown."""
LEAST_STATE_S = 0.5
"""Minimum number of seconds of a clip that shows a state."""


class VistaWords(DomainRecord, frozen=True):
    """ViSTa's section of a domain file.

    Args:
        prompt: text about the videos for a generative model.
        example: an example answer to `prompt`.
        width: maximum number of pixels of a video's longer side.
        fps: frames per second of all videos.
        phrases: maps a verb of the graph's activities to a common phrase.
        nouns: maps a noun of the activities to a common phrase.
        opposites: pairs of verbs that reverse each other, by kind of set.
        objects: nouns of activities for objects that hands can treat in the same way.
        states: maps a category to the values that questions are about, each with its words.
        changes: as `states`, by subtask: the values between which an object of the category changes.
        hollow: values that mean that nothing is inside an object.
        contents: predicate of objects that are inside an object.
    """

    prompt: str
    example: str
    width: int
    fps: int
    phrases: dict[str, str]
    nouns: dict[str, str]
    opposites: dict[str, tuple[tuple[str, str], ...]]
    objects: tuple[str, ...]
    states: dict[str, dict[str, str]]
    hollow: tuple[str, ...]
    contents: str
    changes: dict[Literal["clean", "heat", "cool", "toggle", "slice"], dict[str, dict[str, str]]] = msgspec.field(
        default_factory=dict
    )

    @property
    def states_by_subtask(self) -> dict[str, dict[str, dict[str, str]]]:
        return {"on_v_off": self.states, "sliced_v_whole": self.changes.get("slice", {})}

    def action(self, name: str) -> str:
        """Return an activity "Verb noun" in words without a subject, such as "pick up the cup"."""
        verb, noun = verb_of(name), noun_of(name)
        return action_phrase(self.phrases.get(verb, spoken_form(verb)), self.nouns.get(noun, noun))

    def action_on_it(self, name: str) -> str:
        """Return an activity with "it" instead of its noun, such as "pick it up"."""
        first, _, particle = self.phrases.get(verb_of(name), spoken_form(verb_of(name))).partition(" ")
        return f"{first} it {particle}".strip() if particle in ("", *PARTICLES) else f"{first} {particle} it"


class ActionClip(NamedTuple):
    """Frames [start, end) that show one action and nothing of the action before it."""

    name: str
    start: int
    end: int


class Sequences:
    """The sequences to which one video's actions can be joined."""

    def __init__(self, scene: Scene, fps: float) -> None:
        self.scene = scene
        self.fewest_frames = scene.frames_of_action(fps)
        self.clips: list[ActionClip] = []
        self.refusals: list[str] = []
        """The reason for each action that cannot be shown."""
        self._cut_clips()

    def _cut_clips(self) -> None:
        lengths, end = self.scene.domain.lengths, 0
        for action in self.scene.actions:
            clip = ActionClip(action.name, max(action.start, end), action.end)
            seconds = (clip.end - clip.start) / self.scene.fps
            if not action.name:
                reason = "it has no name"
            elif clip.end - clip.start < self.fewest_frames:
                reason = f"{TOO_SHORT} {self.fewest_frames} frames of its own"
            elif seconds > lengths.action_max:
                reason = f"{TOO_LONG} {lengths.action_max:g} s"
            elif HandsAtWork(clip.start, clip.end).truth(self.scene) is not True:
                reason = HandsAtWork.unmet
            else:
                self.clips.append(clip)
                end = clip.end
                continue
            self.refusals.append(reason)

    def joints(self, order: Order) -> tuple[Statement, ...]:
        """Return the conditions under which the clips can be joined in this order."""
        joints = (self.joint(a, b) for a, b in pairwise(order))
        as_left = (self._as_left_conditions(order[:index], order[index]) for index in range(1, len(order)))
        return *joints, *chain.from_iterable(as_left)

    def is_possible(self, path: Order, index: int) -> bool:
        """Return whether a clip can follow the clips of a path that is possible itself."""
        is_next = not path or index in self.followers[path[-1]]
        return is_next and all(condition.truth(self.scene) for condition in self._as_left_conditions(path, index))

    def _as_left_conditions(self, path: Order, index: int) -> Iterator[AsLeft]:
        """Yield the conditions for a clip to follow a path: at every joint, the clip's objects do not change."""
        for first, second in pairwise((*path, index)):
            yield AsLeft(tuple(sorted(self._used_ids[index])), self.clips[first].end - 1, self.clips[second].start)

    @cached_property
    def _used_ids(self) -> list[frozenset[str]]:
        """Return the ids of the objects that hands use in each clip."""
        return [frozenset(thing.id for thing in used_things(self.scene, clip.start, clip.end)) for clip in self.clips]

    def joint(self, first: int, second: int) -> Continues:
        return Continues(self.clips[first].end - 1, self.clips[second].start, self.clips[second].end)

    @cached_property
    def followers(self) -> list[list[int]]:
        """Return, for each clip, the clips that can follow it. Clips that come later in the video are first."""
        clips = range(len(self.clips))
        return [
            sorted(
                (b for b in clips if self.clips[a].name != self.clips[b].name and self.joint(a, b).truth(self.scene)),
                key=lambda b: (b - a) % len(clips),
            )
            for a in clips
        ]

    def depiction(self, order: Order, shown_order: Order) -> Depicts:
        """Return the statement that the clips `shown_order` show the actions of the clips `order`."""
        spans = tuple((self.clips[index].start, self.clips[index].end) for index in shown_order)
        return Depicts(self._action_names(order), spans)

    def _action_names(self, order: Order) -> tuple[str, ...]:
        return tuple(self.clips[index].name for index in order)

    def orders(self, length: int) -> Iterator[Order]:
        """Yield each order of `length` clips that follow each other in the video."""
        for start in range(len(self.clips) - length + 1):
            order = tuple(range(start, start + length))
            if all(self.is_possible(order[:index], order[index]) for index in range(len(order))):
                yield order

    def general_set(self, base: Order, used: Collection[Order] = ()) -> list[Order]:
        """Return the base and sequences that share their first steps with it and then differ.

        In turn, they share all but the last step, all but the last two steps, and so on down to no step. A set has at
        most `LARGEST_SET` sequences, and none of the sequences that are `used` in another set.
        """
        branches = [self._paths(base[:index], len(base), {base[index]}) for index in reversed(range(len(base)))]
        by_turns = (order for row in zip_longest(*branches) for order in row if order and order not in used)
        return self._distinct_orders([base], by_turns, LARGEST_SET)

    def permutation_sets(self, length: int) -> Iterator[list[Order]]:
        """Yield, for each choice of clips, the possible orders that cannot be confused with each other.

        The order that is nearest to the video's order comes first.
        """
        orders: dict[frozenset[int], list[Order]] = defaultdict(list)
        for start in range(len(self.clips)):
            for order in islice(self._paths((start,), length, set()), SEQUENCES_TRIED):
                orders[frozenset(order)].append(order)
        for _, same_clips in sorted(orders.items(), key=lambda row: sorted(row[0])):
            base, *others = sorted(same_clips)
            yield self._distinct_orders([base], iter(others), min(length, PERMUTATIONS))

    def _paths(self, prefix: Order, length: int, barred: set[int]) -> Iterator[Order]:
        """Yield sequences that begin with `prefix` and do not continue with any of `barred`. Each clip occurs once."""
        paths = [prefix]
        for _ in range(PATHS_TRIED):
            if not paths:
                return
            path = paths.pop()
            if len(path) == length:
                yield path
                continue
            following = self.followers[path[-1]] if path else list(range(len(self.clips)))
            paths += [
                (*path, index)
                for index in reversed(following)
                if index not in path
                and not (len(path) == len(prefix) and index in barred)
                and self.is_possible(path, index)
            ]

    def _distinct_orders(self, chosen: list[Order], orders: Iterator[Order], most: int) -> list[Order]:
        """Add orders, in turn, that cannot be confused with any chosen order in either direction, up to `most`."""
        for order in islice(orders, SEQUENCES_TRIED):
            if len(chosen) == most:
                break
            if all(self._is_excluded(order, other) and self._is_excluded(other, order) for other in chosen):
                chosen.append(order)
        return chosen

    def _is_excluded(self, order: Order, shown_order: Order) -> bool:
        """Return whether the clips shown exclude the words for `order`, as in `Depicts`.

        This function is fast, because it is called thousands of times.
        """
        spans = [(self.clips[index].start, self.clips[index].end) for index in shown_order]
        return not is_fitting(
            self._action_names(order), spans, lambda name, span: possible_activities(self.scene, name, *span)
        )


def foundation_candidates(scene: Scene, clips: Sequence[ActionClip], words: VistaWords) -> Iterator[QuestionCandidate]:
    """Yield clips of level 1. `extra` has the key of the sets that a clip can be in."""
    for clip in clips:
        yield from _action_candidates(scene, clip, words)
        yield from _place_candidates(scene, clip, words)
    yield from _state_candidates(scene, words)


def _action_candidates(scene: Scene, clip: ActionClip, words: VistaWords) -> Iterator[QuestionCandidate]:
    """Yield candidates about the object of an action, and about which of two opposite actions it is (open, close)."""
    verb, noun = verb_of(clip.name), noun_of(clip.name)
    if not noun:
        return
    sets = [("objects", verb, [f"{verb} {other}" for other in words.objects if other != noun])]
    for subtask, pairs in words.opposites.items():
        opposites = [pair[1 - pair.index(verb.lower())].capitalize() for pair in pairs if verb in pair]
        if opposites:
            sets.append((subtask, noun, [f"{opposite} {noun}" for opposite in opposites]))
    span = clip.start, clip.end
    for subtask, key, other_actions in sets:
        sayings: list[Saying] = [
            ({"deeds": Phrases([words.action(scene.action_in_words(name))])}, Depicts((name,), (span,)))
            for name in (clip.name, *other_actions)
        ]
        yield clip_candidate(scene, subtask, key.lower(), "vista/act", sayings, span, clip.start, (clip.name,))


def _place_candidates(scene: Scene, clip: ActionClip, words: VistaWords) -> Iterator[QuestionCandidate]:
    """Yield candidates about the place where hands put an object."""
    clip_span, last = (clip.start, clip.end), clip.end - 1
    used = used_things(scene, *clip_span)
    kinds = {thing.id: kind_name(scene, thing) for thing in scene.things.values()}
    times = Counter(kinds.values())
    for span in scene.places:
        # Relations are recorded in both directions. The object that is put somewhere is the object that hands move.
        if not (clip.start < span.start < clip.end and span.thing in used and span.other not in used):
            continue
        kind = kinds[span.thing.id]
        other_ids = [other for other, name in kinds.items() if name != kind and times[name] == 1]
        places = scene.domain.places
        predicates = [name for name in places if not places[name].is_part and places[name].inverse != words.contents]
        sayings: list[Saying] = [
            (
                {"thing": kind, "where": place_words(scene, predicate, other), "other": kinds[other]},
                Located(span.thing.id, predicate, other, last),
            )
            for predicate, other in ((span.predicate, span.other.id), *product(predicates, other_ids))
        ]
        objects = span.thing.id, span.other.id
        arguments = kind, "vista/place", sayings, clip_span, last, (clip.name,), objects
        yield clip_candidate(scene, "containers", *arguments, [Seen(item, last) for item in objects])


def _state_candidates(scene: Scene, words: VistaWords) -> Iterator[QuestionCandidate]:
    """Yield candidates about the state of an object, in clips at most half as long as an action may be.

    The states of `sliced_v_whole` are the values between which slicing changes an object.
    """
    length = scene.frames_in(scene.domain.lengths.action_max / 2)
    for (subtask, states), span in product(words.states_by_subtask.items(), scene.values):
        kind, item = kind_name(scene, span.thing), span.thing.id
        values = states.get(kind, {})
        if span.type != "state" or span.value not in values:
            continue
        inside = range(span.start + scene.margin, span.end - scene.margin)
        settled = [frame for frame in inside if scene.is_settled(item, span.type, frame)] or [0]
        first, stop = settled[0], settled[-1] + 1
        for start in range(first, stop, length):
            end = min(start + length, stop)
            if end - start < scene.frames_in(LEAST_STATE_S):
                continue
            sayings: list[Saying] = [
                ({"thing": kind, "state": values[value]}, Changes(item, "state", value, value, start, end))
                for value in dict.fromkeys((span.value, *values))
            ]
            given: list[Statement] = [Seen(item, frame) for frame in moments_of(scene, start, end)]
            given.append(AloneInView(item, kind, start, end))
            if span.value in words.hollow:
                given.append(NothingInside(item, words.contents, start, end))
            arguments = kind, "vista/state", sayings, (start, end), start, (), (item,)
            yield clip_candidate(scene, subtask, *arguments, given)


def clip_candidate(
    scene: Scene,
    subtask: str,
    key: str,
    wording: str,
    sayings: Sequence[Saying],
    span: tuple[int, int],
    frame: int,
    actions: tuple[str, ...] = (),
    objects: tuple[str, ...] = (),
    given: Sequence[Statement] = (),
) -> QuestionCandidate:
    """Return a candidate with a clip that fits into the sets of a key. The first of `sayings` is right.

    A clip of an action is asked about once, by its action, its place or its effect.
    """
    right, *distractors = [Choice(plain_text(wording, slots), statement) for slots, statement in sayings]
    return QuestionCandidate(
        subtask=subtask,
        video_id=scene.video_id,
        question=REVIEW_QUESTION,
        right=(right,),
        distractors=tuple(distractors),
        given=tuple(given),
        span=span,
        frames=(frame,),
        objects=objects,
        wording=wording,
        slots=dict(sayings[0][0]),
        event=f"{actions[0]} from {span[0]}" if actions else "",
        topic="action" if actions else "",
        extra={"set": key.replace(" ", "_"), "spans": [span], "shared": 1, "actions": actions},
    )


def kind_name(scene: Scene, thing: NamedObject) -> str:
    """Return the name that an object has in any video, without colours."""
    category = thing.category.lower()
    return thing.name if category in scene.domain.vague else category
