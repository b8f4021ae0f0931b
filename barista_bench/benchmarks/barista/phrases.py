"""Phrases that single out objects of one category on one frame: colours, category, one relation (upstream.md 1.5).

For example `white coffee cup held by the left hand`. The template words are ours; which phrase is built, and which
objects it then means, follows the release.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barista_bench.scene_graph import SceneObject, VideoGraph
from barista_bench.scene_graph.video_graph import UNNAMED

NO_COLOR = "skin"
"""A `color` value that is no colour: hands are not told apart by it."""

AS_SOURCE = {
    "under": "under",
    "on": "on",
    "inside": "inside",
    "contains": "containing",
    "attached to": "attached to",
    "part of": "that is part of",
    "pulls": "pulling",
    "pushes": "pushing",
    "presses": "pressing",
    "holds": "holding",
    "touches": "touching",
    "turns": "turning",
}
"""Relation value to words for its source, followed by `the <category of the target>`."""
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
"""The same for its target. under, on, attached to and part of are told from the source's side only, as released."""


class Link(NamedTuple):
    """A relation that one object has on a frame, seen from that object; `row` is its place in the file."""

    value: str
    other: SceneObject
    from_source: bool
    row: int

    @property
    def words(self) -> str | None:
        """For example `held by the left hand`; None where the release has no template."""
        if self.other.category.casefold() == UNNAMED:
            return None
        words = (AS_SOURCE if self.from_source else AS_TARGET).get(self.value)
        return words and f"{words} the {self.other.category}"


@dataclass(frozen=True, slots=True)
class Seen:
    """One object on one frame; `number` is its index in `VideoGraph.objects`.

    `colors` maps each colour that a phrase may use to the row of the attribute that states it.
    """

    object: SceneObject
    number: int
    colors: Mapping[str, int]
    links: Sequence[Link]

    @property
    def has_tellable(self) -> bool:
        return any(link.words for link in self.links)

    def tellable(self) -> list[Link]:
        """Links with a template, in an order that the order of the file does not change."""
        return sorted(
            (link for link in self.links if link.words),
            key=lambda link: (link.value, link.from_source, link.other.category, link.other.id, link.row),
        )


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase, the link that it uses, and all objects that it means."""

    text: str
    link: Link | None
    truth: tuple[Seen, ...]

    def is_told(self, own: Link) -> bool:
        """Whether a link fits the phrase: same value and same category at the other end. Direction does not count."""
        return _alike(own, self.link)


@dataclass(frozen=True, slots=True)
class Subject:
    """The object of a category that there is most to say of, what can be said, and all objects of the category."""

    described: Seen
    links: tuple[Link, ...]
    group: tuple[Seen, ...]

    def phrase(self, choice: int) -> Phrase:
        """The phrase with the link at `choice`; without a link where there are none."""
        link = self.links[choice] if self.links else None
        colors = self.described.colors.keys()
        words = [*sorted(colors), self.described.object.category]
        if link and link.words:
            words.append(link.words)
        truth = (
            seen
            for seen in self.group
            if seen.colors.keys() == colors and (not link or any(_alike(own, link) for own in seen.links))
        )
        return Phrase(" ".join(words), link, tuple(truth))


def _alike(own: Link, link: Link | None) -> bool:
    return link is not None and own.value == link.value and own.other.category == link.other.category


def is_color(value: str, category: str) -> bool:
    """Whether a phrase may name this colour: `skin` says nothing, and `milk` of a milk carton says it twice.

    >>> is_color("red", "button"), is_color("skin", "left hand"), is_color("milk", "milk carton")
    (True, False, False)
    """
    return value.casefold() != NO_COLOR and value.casefold() not in category.casefold()


def subject_of(group: Sequence[Seen]) -> Subject | None:
    """What to ask for in one category on one frame; None where its name is all that there is to say.

    `group` holds the category's objects in the order of the file. The object described is the one that has a
    relation to tell and, among those, the most colours; of equals the first.
    """
    described = max(group, key=lambda seen: (seen.has_tellable, len(seen.colors)))
    links = tuple(described.tellable())
    return Subject(described, links, tuple(group)) if links or described.colors else None


def link_ends(video: VideoGraph, position: int) -> tuple[tuple[int, Link], tuple[int, Link]]:
    """A relation range as each of its ends sees it: object index and link."""
    table = video.relations_table
    source, target = int(table.source[position]), int(table.target[position])
    _, value, _, _, row = table.entry(position)
    return (source, Link(value, video.objects[target], True, row)), (
        target,
        Link(value, video.objects[source], False, row),
    )


def links_of(video: VideoGraph, positions: Sequence[int]) -> dict[int, list[Link]]:
    """Object index to its relations; a record counts once, even if two of its ranges overlap."""
    table = video.relations_table
    links: dict[int, list[Link]] = defaultdict(list)
    for position in {int(table.row[i]): i for i in positions}.values():
        for number, link in link_ends(video, position):
            links[number].append(link)
    return links


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
