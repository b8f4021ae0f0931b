"""Phrases that identify objects of one category on one frame by colours, category and one relation.

An example is `white coffee cup held by left hand`. The release's rule determines the phrase and its objects
(docs/upstream/barista.md, "Grounding"). The domain file determines the relations and their words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barista_bench.scene_graph import SceneObject, VideoGraph
from barista_bench.scene_graph.domain import PhraseRules
from barista_bench.scene_graph.video_graph import UNNAMED


class RelationKey(NamedTuple):
    """A relation that a phrase may name.

    `value` is in lower case. `words` are the relation's words in the phrase, such as `held by left hand`. `row` is the
    relation's row in the file.
    """

    value: str
    related: SceneObject
    words: str
    row: int

    def fits(self, other: RelationKey) -> bool:
        """Return True if a phrase with the other key includes an object with this key. Direction is ignored."""
        return self.value == other.value and self.related.category == other.related.category


@dataclass(frozen=True, slots=True)
class DescribedObject:
    """One annotation of an object on a frame. `position` is the annotation's position in the instances table.

    `colors` maps each usable colour to the row of its attribute. `keys` follow the order of the frame's relations; a
    relation that is stated twice appears twice.
    """

    object: SceneObject
    position: int
    colors: Mapping[str, int]
    keys: Sequence[RelationKey]


Phrase = tuple[str, RelationKey | None, list[DescribedObject]]
"""The text of a phrase, the key that the phrase names, and all annotations that the phrase describes."""


def make_phrase(group: Sequence[DescribedObject], choice: int) -> Phrase:
    """Return the phrase about one category on one frame.

    Args:
        group: the category's objects in the order of the file.
        choice: index of the described object's key that the phrase names; -1 if the object has no key.
    """
    subject = group[subject_index([len(item.keys) for item in group], [len(item.colors) for item in group])]
    key = subject.keys[choice] if choice >= 0 else None
    colors = subject.colors.keys()
    words = [*sorted(colors), subject.object.category, *([key.words] if key else [])]
    reference = [
        item
        for item in group
        if item.colors.keys() == colors and (key is None or any(item_key.fits(key) for item_key in item.keys))
    ]
    return " ".join(words), key, reference


def subject_index(keys: Sequence[int], colors: Sequence[int]) -> int:
    """Return the index of the described object.

    Objects with a key come first, then objects with more colours. At a tie, the first object wins.

    >>> subject_index([0, 2, 1], [3, 1, 1])
    1
    """
    return max(range(len(keys)), key=lambda number: (keys[number] > 0, colors[number]))


def is_color(value: str, category: str, rules: PhraseRules) -> bool:
    """Return True if a phrase may name this colour. `skin` is not informative, and `milk` only repeats `milk carton`.

    >>> rules = PhraseRules({}, {}, no_color=("skin",))
    >>> [is_color(*pair, rules) for pair in (("red", "button"), ("skin", "left hand"), ("Milk", "milk carton"))]
    [True, False, False]
    """
    return value not in rules.no_color and value.lower() not in category.lower()


def range_keys(video: VideoGraph, position: int, rules: PhraseRules) -> Iterator[tuple[int, RelationKey]]:
    """Yield (object index, key) for both ends of a relation range, the source first.

    An end has a key only if the phrase rules have words for the relation and the other end is named.
    """
    table = video.relations_table
    source, target = int(table.source[position]), int(table.target[position])
    _, stated_value, _, _, row = table.entry(position)
    value = " ".join(stated_value.lower().split())
    ends = ((source, target, rules.as_source), (target, source, rules.as_target))
    for number, other, words in ends:
        if value in words and (item := video.objects[other]).category != UNNAMED:
            yield number, RelationKey(value, item, f"{words[value]} {item.category}", row)
