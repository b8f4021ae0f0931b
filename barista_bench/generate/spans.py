"""The records of a video over frames [start, end): uses by hands, values, places and actions; and the objects' names.

Names are, for example, "tray", "red cup", "lid of the jar".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias, TypeVar

from barista_bench.scene_graph import SceneObject, VideoGraph
from barista_bench.scene_graph.domain import Domain, Side
from barista_bench.scene_graph.graph_words import KIND, verb_and_noun

COLOUR = "color"
OF = " of the "
"""Precedes the owner in a name."""

Related = Mapping[str, Collection[str]]
"""Object id to the ids of other objects."""


def names_of(video: VideoGraph, domain: Domain, wholes: Related, owners: Related) -> dict[SceneObject, str]:
    """Return names of the objects that have one, except hands, in lower case.

    If several objects share a name, it is preceded by the colour, unless it contains the colour or all of them have it.
    If it is still shared, it is followed by the owner. A part whose name is only its category also gets its owner,
    since other objects in view may have such parts too (a handle), annotated or not.

    Args:
        wholes: the objects that objects are parts of.
        owners: the objects that they belong to.
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
    """Return object id to its value of an attribute, without objects whose value changes."""
    values_of: dict[str, set[str]] = {}
    for attribute in video.attributes():
        if attribute.type == attribute_type:
            values_of.setdefault(attribute.object.id, set()).add(attribute.value)
    return {object_id: values.pop() for object_id, values in values_of.items() if len(values) == 1}


def _namesakes(names: Mapping[SceneObject, str]) -> list[tuple[SceneObject, str]]:
    """Return the objects that share a name, each with the others."""
    times = Counter(names.values())
    return [(item, name) for item, name in names.items() if times[name] > 1]


SIDES: tuple[Side, ...] = ("left", "right")
LabelledSpan: TypeAlias = tuple[str, int, int]
"""A label, for example a value, over frames [start, end)."""


class NamedObject(NamedTuple):
    """An object as people call it: `name` is its category or its type, or either with its colour.

    If that is ambiguous, `name` may be a description ("lemon in the left hand") of the object with this `plain_name`.
    Its identity does not depend on the name.
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
        """The name without owner and other distinguishing words: of "lid of the jar", "lid"."""
        return (self.plain_name or self.name).partition(OF)[0]

    @property
    def description(self) -> str:
        """The name if it is a description, else empty."""
        return self.name if self.plain_name else ""


class HandUse(NamedTuple):
    """One hand on one object over frames [start, end), gaps included.

    `contacts` are its recorded (value, start, end), by time; `begins` is whether the video shows the hand off the
    object just before.
    """

    side: Side
    thing: NamedObject
    start: int
    end: int
    contacts: tuple[LabelledSpan, ...]
    begins: bool


class ValueSpan(NamedTuple):
    """A value of an attribute of an object over frames [start, end), gaps included."""

    thing: NamedObject
    type: str
    value: str
    start: int
    end: int


class PlaceSpan(NamedTuple):
    """A spatial relation over frames [start, end), gaps included."""

    thing: NamedObject
    predicate: str
    other: NamedObject
    start: int
    end: int


class ActionSpan(NamedTuple):
    """An activity or a process step over frames [start, end); `name` as in the graph, "Verb noun"."""

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
    """Return the verb of an activity or step, "Verb noun", in lower case."""
    return verb_and_noun(name)[0]


def noun_of(name: str) -> str:
    return verb_and_noun(name)[1]


SpanT = TypeVar("SpanT", HandUse, ValueSpan, PlaceSpan, ActionSpan)


def find_overlapping(spans: Iterable[SpanT], start: int, end: int) -> list[SpanT]:
    """Return spans with a frame in [start, end)."""
    return [span for span in spans if span.start < end and span.end > start]
