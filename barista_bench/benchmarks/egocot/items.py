"""One question of the benchmark with its annotations, checked, and what the columns of its example hold.

Times are in seconds. Boxes are [x0, y0, x1, y1] in pixels of the media as they are shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from barista_bench.benchmarks.egocot.taxonomy import Subtask
from barista_bench.core.typed_fields import Int64, PixelBox, TypedFields

Split: TypeAlias = Literal["dev", "test"]
Corners: TypeAlias = "tuple[float, float, float, float]"
GraphPredicate: TypeAlias = Literal["touches", "apart from", "is", "does", "causes", "precedes"]
"""What a fact of `evidence.graph` says: a contact or that there is none, a state, an action, a cause, an order."""


class TargetObject(TypedFields):
    """`object_id` is what boxes refer to; empty where the file gives none."""

    object_id: str
    label: str


class TimedBox(TypedFields):
    """One object at one time."""

    object_id: str
    time: float
    box: PixelBox


class TimedRelation(TypedFields):
    """`subject` does or is `predicate` to `object` from `start` to `end`, both included; None: undated."""

    subject: str
    predicate: str
    object: str
    start: float | None
    end: float | None


class GraphFact(TypedFields):
    """A fact that the benchmark's schema has no place for, from `start` to `end`, both included, in seconds.

    `holds`: whether it is so, or excluded. `text`: the fact in words, as if it were so.

    | predicate | subject | object |
    |---|---|---|
    | touches, apart from | a hand | a thing |
    | is | a thing | its state |
    | does | operator | an action or a step: `open the drawer` |
    | causes | an action | a thing and its state: `drawer is open` |
    | precedes | the first contact of a hand: `left hand on cup` | another one, which comes later |
    """

    subject: str
    predicate: str
    object: str
    start: float
    end: float
    holds: bool
    text: str


class ItemEvidence(TypedFields):
    """What the annotators point at; all of it may be empty. `graph` is there in generated releases alone."""

    object_ids: list[str] = msgspec.field(default_factory=list)
    objects: list[TargetObject] = msgspec.field(default_factory=list)
    timestamps: list[float] = msgspec.field(default_factory=list)
    focus_times: list[float] = msgspec.field(default_factory=list)
    boxes: list[TimedBox] = msgspec.field(default_factory=list)
    focused_boxes: list[TimedBox] = msgspec.field(default_factory=list)
    relations: list[TimedRelation] = msgspec.field(default_factory=list)
    graph: list[GraphFact] = msgspec.field(default_factory=list)


class LetteredChoice(TypedFields):
    """`choice_id` is the letter."""

    choice_id: str
    text: str


class CotInputs(TypedFields):
    """`times` are those of the frames shown."""

    question: str
    choices: list[LetteredChoice]
    times: list[float]

    @property
    def texts(self) -> dict[str, str]:
        """Letter -> text, in the order asked."""
        return {choice.choice_id: choice.text for choice in self.choices}


class CotTarget(TypedFields):
    """The right letter, None where it is hidden, and the steps of the reference reasoning."""

    answer: str | None
    reasoning: list[str]


class CotMetadata(TypedFields):
    """Sizes in pixels; 0 where the media are not at hand."""

    split: str
    group: str
    subtask: str
    source: str
    frame_count: Int64
    width: Int64
    height: Int64
    fps: float
    seconds: float


class CotAnswer(TypedFields):
    """A prediction: a letter, and a rationale that may be empty."""

    answer: str
    reasoning: str


@dataclass(frozen=True, slots=True)
class CotItem:
    """`answer` is None and `reasoning` empty where they are hidden, as in the public test split."""

    qid: str
    media_id: str
    split: Split
    subtask: Subtask
    question: str
    choices: Mapping[str, str]
    answer: str | None
    reasoning: tuple[str, ...]
    evidence: ItemEvidence


def clock(seconds: float) -> str:
    """As the benchmark writes a time, `MM:SS.ss`.

    >>> clock(62.5), clock(1.0), clock(59.999)
    ('01:02.50', '00:01.00', '01:00.00')
    """
    hundredths = math.floor(max(0.0, seconds) * 100 + 0.5)
    minutes, rest = divmod(hundredths, 6000)
    return f"{minutes:02d}:{rest // 100:02d}.{rest % 100:02d}"
