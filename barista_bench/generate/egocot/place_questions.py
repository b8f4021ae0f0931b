"""EgoCoT-Bench's questions about places that need no hands: directions in the picture, and places at other objects."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations

import msgspec

from barista_bench.generate.candidates import FACTS, Choice, QuestionCandidate
from barista_bench.generate.egocot.moments import ShownScene, sentence
from barista_bench.generate.egocot.object_questions import which_moment
from barista_bench.generate.egocot.statements import DIRECTIONS, LiesTowards, direction_between
from barista_bench.generate.nearby import place_words
from barista_bench.generate.spans import NamedObject
from barista_bench.generate.statements import Located, Seen, Unique


def direction_to_other(clip: ShownScene) -> Iterator[QuestionCandidate]:
    """LVR: the direction of an object from another object that it does not overlap. Hands work with both.

    The name of an object that no hand touches could mean a thing that is not annotated.
    """
    for frame in clip.frames:
        for thing, other in combinations(clip.visible_things(clip.used_things, frame, barred={"side", "place"}), 2):
            if not clip.scene.is_part_of_other(thing.id, other.id):
                slots = {"time": clip.time(frame), "thing": thing.name, "other": other.name}
                yield from _directions(clip, "LVR direction", slots, (thing, frame), (other, frame))


def direction_of_move(clip: ShownScene) -> Iterator[QuestionCandidate]:
    """GOT: the direction of an object in the picture from its place at an earlier moment. The camera may move too."""
    for since, frame in combinations(clip.frames, 2):
        for thing in clip.visible_things(clip.used_things, since, frame, barred={"side", "place"}):
            slots = {"since": clip.time(since), "time": clip.time(frame), "thing": thing.name}
            yield from _directions(clip, "GOT move", slots, (thing, frame), (thing, since))


def _directions(
    clip: ShownScene, wording: str, slots: dict[str, str], here: tuple[NamedObject, int], there: tuple[NamedObject, int]
) -> Iterator[QuestionCandidate]:
    """Yield the question for the direction of an object at a frame from an object at another frame, if it is clear."""
    (thing, frame), (other, since) = here, there
    direction = direction_between(clip.scene, thing.id, frame, other.id, since)
    if direction is not None:
        row = next(row for row in DIRECTIONS if direction in row)
        right, *choices = (
            Choice(sentence(words), LiesTowards(thing.id, frame, words, other.id, since)) for words in (direction, *row)
        )
        event = f"{thing.id} {other.id} {direction}"
        if since != frame:  # a turn of the camera moves many objects: it is asked once
            event += f"{FACTS}{since} {frame} {direction}"
        yield clip.candidate(
            wording, slots, right, choices, [frame, since], list(dict.fromkeys((thing, other))), event=event
        )


def moment_at_place(clip: ShownScene) -> Iterator[QuestionCandidate]:
    """LVR: the moment at which an object is in a place at another object."""
    for thing, predicate, other in dict.fromkeys((s.thing, s.predicate, s.other) for s in clip.scene.places):
        words = clip.scene.domain.places.get(predicate)
        if words is None or words.is_part or words.words.endswith("ing"):
            continue
        slots = {"place": f"{place_words(clip.scene, predicate, other.id)} the {other.name}"}
        claim, event = partial(Located, thing.id, predicate, other.id), f"{predicate} {other.id}"
        for candidate in which_moment(clip, "LVR moment", slots, claim, event, thing, {"place"}):
            given = Seen(other.id, candidate.frames[0]), Unique(other.id, candidate.frames)
            yield msgspec.structs.replace(candidate, given=(*candidate.given, *given))
