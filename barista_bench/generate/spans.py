"""The records of a video over frames [start, end), and the names of its objects.

Records are uses by hands, values, places and actions. Examples of names are "tray", "red cup" and "lid of the jar".
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
"""The text before the owner in a name."""

Related = Mapping[str, Collection[str]]
"""Maps an object's id to the ids of other objects."""


def names_of(video: VideoGraph, domain: Domain, wholes: Related, owners: Related) -> dict[SceneObject, str]:
    """Return the names, in lower case, of all objects that have a name, except hands.

    If several objects share a name, the colour precedes it. The colour is left out if the name contains it or all these
    objects have it. If the name is still shared, the owner follows it. The owner also follows the name of a part whose
    name is only its category (a handle). Other objects in view may have such parts, annotated or not.

    Args:
        wholes: the objects that each object is a part of.
        owners: the objects that each object belongs to.
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
    values_of: dict[str, set[str]] = {}
    for attribute in video.attributes():
        if attribute.type == attribute_type:
            values_of.setdefault(attribute.object.id, set()).add(attribute.value)
    return {object_id: values.pop() for object_id, values in values_of.items() if len(values) == 1}


def _namesakes(names: Mapping[SceneObject, str]) -> list[tuple[SceneObject, str]]:
    """Return the objects that share their name with another object, each with this name."""
    times = Counter(names.values())
    return [(item, name) for item, name in names.items() if times[name] > 1]


SIDES: tuple[Side, ...] = ("left", "right")
LabelledSpan: TypeAlias = tuple[str, int, int]
"""A label, for example a value, that holds over frames [start, end)."""


class NamedObject(NamedTuple):
    """An object under the name that people use: its category or its type, with or without its colour.

    If this name is ambiguous, `name` may be a description ("lemon in the left hand"), and `plain_name` is the ambiguous
    name. Two objects with the same id are equal, even under different names.
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
        """Return the name without its owner and distinguishing words: "lid" for "lid of the jar"."""
        return (self.plain_name or self.name).partition(OF)[0]

    @property
    def description(self) -> str:
        """Return the name if it is a description, else an empty text."""
        return self.name if self.plain_name else ""


class HandUse(NamedTuple):
    """One hand on one object over frames [start, end), including gaps.

    `contacts` are the recorded contacts (value, start, end) by time. `begins` tells whether the video shows the hand
    off the object just before.
    """

    side: Side
    thing: NamedObject
    start: int
    end: int
    contacts: tuple[LabelledSpan, ...]
    begins: bool


class ValueSpan(NamedTuple):
    """A value of an object's attribute over frames [start, end), including gaps."""

    thing: NamedObject
    type: str
    value: str
    start: int
    end: int


class PlaceSpan(NamedTuple):
    """A spatial relation over frames [start, end), including gaps."""

    thing: NamedObject
    predicate: str
    other: NamedObject
    start: int
    end: int


class ActionSpan(NamedTuple):
    """An activity or a process step over frames [start, end). `name` is as in the graph, "Verb noun"."""

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
    """Return the verb, in lower case, of the name "Verb noun" of an activity or step."""
    return verb_and_noun(name)[0]


def noun_of(name: str) -> str:
    return verb_and_noun(name)[1]


SpanT = TypeVar("SpanT", HandUse, ValueSpan, PlaceSpan, ActionSpan)


def find_overlapping(spans: Iterable[SpanT], start: int, end: int) -> list[SpanT]:
    """Return the spans that have a frame in [start, end)."""
    return [span for span in spans if span.start < end and span.end > start]
