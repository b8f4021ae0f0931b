"""Phrases that single out objects of one category on one frame: colours, category, one relation.

For example `white coffee cup held by left hand`. Which phrase is built, and which objects it then means, is the
release's rule (docs/upstream/barista.md, "Grounding").
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barista_bench.scene_graph import SceneObject, VideoGraph
from barista_bench.scene_graph.video_graph import UNNAMED

NO_COLOR = "skin"
"""A `color` value that is no colour: it does not distinguish hands."""

AS_SOURCE = {
    "under": "under",
    "on": "on",
    "inside": "inside",
    "contains": "containing",
    "attached to": "attached to",
    "part of": "part of",
    "pulls": "pulling",
    "pushes": "pushing",
    "presses": "pressing",
    "holds": "holding",
    "touches": "touching",
    "turns": "turning",
}
"""Relation value to words for its source, followed by the category of the target."""
AS_TARGET = {
    "inside": "containing",
    "contains": "inside",
    "pulls": "pulled by",
    "pushes": "pushed by",
    "presses": "pressed by",
    "holds": "held by",
    "touches": "touched by",
    "turns": "turned by",
}
"""The same for its target. under, on, attached to and part of are named from the source's side only."""


class Key(NamedTuple):
    """A relation that a phrase may name: `value` in lower case; `row` is its place in the file."""

    value: str
    other: SceneObject
    as_source: bool
    row: int

    @property
    def words(self) -> str:
        """For example `held by left hand`."""
        return f"{(AS_SOURCE if self.as_source else AS_TARGET)[self.value]} {self.other.category}"

    def fits(self, other: Key) -> bool:
        """Whether an object with this key is meant by a phrase that uses the other one; direction does not count."""
        return self.value == other.value and self.other.category == other.other.category


@dataclass(frozen=True, slots=True)
class Described:
    """One annotation of an object on a frame; `position` is its own in the instances table.

    `colors` maps each colour that a phrase may use to the row of the attribute that states it; `keys` stand in the
    order of the frame's relations, a relation that is stated twice twice.
    """

    object: SceneObject
    position: int
    colors: Mapping[str, int]
    keys: Sequence[Key]


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase, the key that it names, and all annotations that it means."""

    text: str
    key: Key | None
    truth: tuple[Described, ...]


def make_phrase(group: Sequence[Described], choice: int) -> Phrase:
    """The phrase about one category on one frame.

    Args:
        group: the category's objects in the order of the file.
        choice: which key of the object described the phrase names; -1 where it has none.
    """
    subject = group[described_in([len(item.keys) for item in group], [len(item.colors) for item in group])]
    key = subject.keys[choice] if choice >= 0 else None
    colors = subject.colors.keys()
    words = [*sorted(colors), subject.object.category, *([key.words] if key else [])]
    truth = (
        item
        for item in group
        if item.colors.keys() == colors and (key is None or any(item_key.fits(key) for item_key in item.keys))
    )
    return Phrase(" ".join(words), key, tuple(truth))


def described_in(keys: Sequence[int], colors: Sequence[int]) -> int:
    """Which object of a category is described: one with a key, and of those the most colours; of equals the first.

    >>> described_in([0, 2, 1], [3, 1, 1])
    1
    """
    return max(range(len(keys)), key=lambda number: (keys[number] > 0, colors[number]))


def is_color(value: str, category: str) -> bool:
    """Whether a phrase may name this colour: `skin` says nothing, and `milk` of a milk carton says it twice.

    >>> is_color("red", "button"), is_color("skin", "left hand"), is_color("Milk", "milk carton")
    (True, False, False)
    """
    return value != NO_COLOR and value.lower() not in category.lower()


def range_keys(video: VideoGraph, position: int) -> Iterator[tuple[int, Key]]:
    """What a relation range adds to the keys of its ends: object index and key, the source first."""
    table = video.relations_table
    source, target = int(table.source[position]), int(table.target[position])
    _, stated, _, _, row = table.entry(position)
    value = " ".join(stated.lower().split())
    if value in AS_SOURCE and video.objects[target].category != UNNAMED:
        yield source, Key(value, video.objects[target], True, row)
    if value in AS_TARGET and video.objects[source].category != UNNAMED:
        yield target, Key(value, video.objects[source], False, row)


def keys_of(video: VideoGraph, positions: Sequence[int]) -> dict[int, list[Key]]:
    """Object index to its keys, of the relation ranges at `positions`, in their order."""
    keys: dict[int, list[Key]] = defaultdict(list)
    for position in positions:
        for number, key in range_keys(video, position):
            keys[number].append(key)
    return keys


def colors_of(video: VideoGraph, positions: Sequence[int]) -> dict[int, dict[str, int]]:
    """Object index to its usable colours, and the row that states each first."""
    table = video.attributes_table
    colors: dict[int, dict[str, int]] = defaultdict(dict)
    for position in positions:
        _, value, _, _, row = table.entry(position)
        source = int(table.source[position])
        if is_color(value, video.objects[source].category):
            colors[source].setdefault(value, row)
    return colors
