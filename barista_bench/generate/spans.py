"""The records of a video, over frames [start, end): uses by hands, values, places and actions; and the names of its
objects: a "tray", the "red cup", the "lid of the jar".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias, TypeVar

from barista_bench.scene_graph import SceneObject, VideoGraph
from barista_bench.scene_graph.domain import Domain, Side
from barista_bench.scene_graph.graph_words import KIND

COLOUR = "color"
OF = " of the "
"""Stands before what a thing belongs to."""

Related = Mapping[str, Collection[str]]
"""Object id to the ids of other objects."""


def names_of(video: VideoGraph, domain: Domain, wholes: Related, owners: Related) -> dict[SceneObject, str]:
    """Names of the objects that have one, hands apart, in lower case.

    Before a name that several share stands a colour that it does not say already, unless all of these have it, and
    behind one that several share even so what the thing belongs to. So it does behind a part's bare category: what is
    around may have such parts too (a handle), annotated or not.

    Args:
        wholes: what objects are parts of.
        owners: what they belong to.
    """
    kinds, colours = _constant_values(video, KIND), _constant_values(video, COLOUR)
    plain_names: dict[SceneObject, str] = {}
    for item in video.objects:
        kind, category = kinds.get(item.id, ""), item.category.lower()
        is_better = category in domain.vague or domain.same_noun(kind, category)
        name = kind.lower() if kind and is_better else category
        name = domain.names.get(name, name)
        if name != "unknown" and domain.side(item.category) is None:
            plain_names[item] = name
    names = dict(plain_names)
    colours_of: dict[str, set[str]] = {}
    for item, name in plain_names.items():
        colours_of.setdefault(name, set()).add(colours.get(item.id, "").lower())
    for item, name in _namesakes(plain_names):
        colour = colours.get(item.id, "").lower()
        names[item] = name if colour in name or len(colours_of[name]) == 1 else f"{colour} {name}"
    parts = [(item, name) for item, name in plain_names.items() if item.id in wholes and name == item.category.lower()]
    by_id = {item.id: name for item, name in names.items()}
    for item, name in (*_namesakes(names), *parts):
        owner_names = [by_id[owner] for owner in by_id if owner in owners.get(item.id, ())]
        names[item] = f"{name}{OF}{owner_names[0]}" if len(owner_names) == 1 else name
    return names


def _constant_values(video: VideoGraph, attribute_type: str) -> dict[str, str]:
    """Object id to its value of an attribute; without those whose value changes."""
    values_of: dict[str, set[str]] = {}
    for attribute in video.attributes():
        if attribute.type == attribute_type:
            values_of.setdefault(attribute.object.id, set()).add(attribute.value)
    return {object_id: values.pop() for object_id, values in values_of.items() if len(values) == 1}


def _namesakes(names: Mapping[SceneObject, str]) -> list[tuple[SceneObject, str]]:
    """Objects whose name another has too, each with it."""
    times = Counter(names.values())
    return [(item, name) for item, name in names.items() if times[name] > 1]


SIDES: tuple[Side, ...] = ("left", "right")
LabelledSpan: TypeAlias = tuple[str, int, int]
"""A value, or the like, over frames [start, end)."""


class NamedObject(NamedTuple):
    """An object as people call it: `name` is its category, what it is a kind of, or either with its colour.

    Where that could mean another object too, `name` may be a description ("lemon in the left hand") of what then is its
    `plain_name`. Whatever it is called, it is the same object.
    """

    id: str
    name: str
    category: str
    plain_name: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedObject) and self.id == other.id

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def noun(self) -> str:
        """The name without what the thing belongs to, and without what else tells it from others: of "lid of the jar",
        "lid"."""
        return (self.plain_name or self.name).partition(OF)[0]

    @property
    def description(self) -> str:
        """The name where it is a description; else empty."""
        return self.name if self.plain_name else ""


class HandUse(NamedTuple):
    """One hand on one thing over frames [start, end), holes included.

    `contacts` are the recorded (value, start, end) in it, by time; `begins` whether the video shows that the hand is
    not on the thing just before.
    """

    side: Side
    thing: NamedObject
    start: int
    end: int
    contacts: tuple[LabelledSpan, ...]
    begins: bool


class ValueSpan(NamedTuple):
    """A value of one of a thing's attributes over frames [start, end), holes included."""

    thing: NamedObject
    type: str
    value: str
    start: int
    end: int


class PlaceSpan(NamedTuple):
    """A spatial relation over frames [start, end), holes included."""

    thing: NamedObject
    predicate: str
    other: NamedObject
    start: int
    end: int


class ActionSpan(NamedTuple):
    """An activity or a process step over frames [start, end); `name` as the graph has it, "Verb noun"."""

    name: str
    start: int
    end: int

    @property
    def verb(self) -> str:
        return verb_of(self.name)

    @property
    def noun(self) -> str:
        return noun_of(self.name)


def verb_of(name: str) -> str:
    """The verb of an activity or step, "Verb noun", in lower case."""
    return name.partition(" ")[0].lower()


def noun_of(name: str) -> str:
    return name.partition(" ")[2].lower()


SpanT = TypeVar("SpanT", HandUse, ValueSpan, PlaceSpan, ActionSpan)


def overlapping(spans: Iterable[SpanT], start: int, end: int) -> list[SpanT]:
    """Spans with a frame in [start, end)."""
    return [span for span in spans if span.start < end and span.end > start]
