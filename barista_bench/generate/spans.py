"""The records of a video, over frames [start, end): uses by hands, values, places and actions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias, TypeVar

from barista_bench.generate.naming import OF
from barista_bench.scene_graph.domain import Side

SIDES: tuple[Side, ...] = ("left", "right")
Labelled: TypeAlias = tuple[str, int, int]
"""A value, or the like, over frames [start, end)."""


class NamedObject(NamedTuple):
    """An object as people call it: `name` is its category, what it is a kind of, or either with its colour."""

    id: str
    name: str
    category: str

    @property
    def noun(self) -> str:
        """The name without what the thing belongs to: of "lid of the jar", "lid"."""
        return self.name.partition(OF)[0]


class HandUse(NamedTuple):
    """One hand on one thing over frames [start, end), holes included.

    `contacts` are the recorded (value, start, end) in it, by time; `begins` whether the video shows that the hand is
    not on the thing just before.
    """

    side: Side
    thing: NamedObject
    start: int
    end: int
    contacts: tuple[Labelled, ...]
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
        return self.name.partition(" ")[0].lower()

    @property
    def noun(self) -> str:
        return self.name.partition(" ")[2].lower()


SpanT = TypeVar("SpanT", HandUse, ValueSpan, PlaceSpan, ActionSpan)


def overlapping(spans: Iterable[SpanT], start: int, end: int) -> list[SpanT]:
    """Those with a frame in [start, end)."""
    return [span for span in spans if span.start < end and span.end > start]
