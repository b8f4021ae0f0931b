"""How words, names and truths relate, for proofs from a raw annotation file."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tests.generate.raw_video import DOMAIN, SIDES, RawVideo

Said = Mapping[str, Any]
Truth = bool | None


def function_of(said: Said) -> str:
    """The name of the function for a kind of statement: `hand_is_on` for `HandIsOn`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", said["says"]).lower()


def both(*truths: Truth) -> Truth:
    return False if False in truths else None if None in truths else True


# How words relate, from the domain file


def exclusive_values(kind: str, first: str, second: str) -> bool:
    words = DOMAIN["attributes"].get(kind, {})
    if any({first, second} == set(pair) for pair in words.get("compatible", ())):
        return False
    for dimension in words.get("dimensions", ()):
        at = [n for value in (first, second) for n, entry in enumerate(dimension) if value in _entry(entry)]
        if len(at) == 2:
            return at[0] != at[1]
    return False


def same_value(kind: str, first: str, second: str) -> bool:
    dimensions = DOMAIN["attributes"].get(kind, {}).get("dimensions", ())
    return first == second or any({first, second} <= set(_entry(e)) for d in dimensions for e in d)


def _entry(entry: Any) -> list[str]:
    return [entry] if isinstance(entry, str) else list(entry)


def exclusive_words(section: str, first: str, second: str) -> bool:
    words = DOMAIN[section]
    return second in words.get(first, {}).get("excludes", ()) or first in words.get(second, {}).get("excludes", ())


def other_action(video: RawVideo, said: str, recorded: str, frame: int) -> bool:
    """Whether the recorded object cannot have the stated name."""
    (verb, _, noun), (verb_2, _, noun_2) = said.lower().partition(" "), recorded.lower().partition(" ")
    contacts = {words["do"] for words in DOMAIN["contacts"].values()}
    if verb in contacts and any(
        same_noun(noun, name)
        for side in SIDES
        for item in video.category
        if video.near(video.touching(side, item), frame, frame + 1)
        for name in video.labels(item)
    ):
        return False
    if verb == verb_2:
        return not same_noun(noun, noun_2)
    return not same_verb(verb, verb_2)


def same_verb(first: str, second: str) -> bool:
    if [first, second] in DOMAIN["opposites"] or [second, first] in DOMAIN["opposites"]:
        return False
    return first == second or any(first in group and second in group for group in DOMAIN["verbs"])


def same_noun(first: str, second: str) -> bool:
    def fits(group: list[str], name: str) -> bool:
        return any(name == word or name.endswith(f" {word}") for word in group)

    same = first == second or not (first and second) or first.endswith(f" {second}") or second.endswith(f" {first}")
    return same or any(fits(group, first) and fits(group, second) for group in DOMAIN["nouns"])


# Visible things


def could_mean(video: RawVideo, name: str, item: str) -> bool:
    """Whether `name` can mean an object: it is one of the object's names, or the end of one."""
    return any(label == name or label.endswith(f" {name}") for label in video.labels(item))


def unique(video: RawVideo, name: str, item: str, frames: Iterable[int]) -> bool:
    """`name`, as a text has it, with or without the whole that it belongs to."""
    head, _, owner = name.partition(" of the ")
    for other in set(video.category) - {item} - video.is_hand:
        if could_mean(video, head, other) and any(video.on(other, frame) for frame in frames):
            if not owner:
                return False
            wholes = [w for w in video.category if (other, w) in video.places and could_mean(video, owner, w)]
            if wholes:
                return False
    return True
