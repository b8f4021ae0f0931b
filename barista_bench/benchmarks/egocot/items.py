"""The taxonomy of EgoCoT-Bench, a checked question with its annotations, and the columns of its example.

Times are in seconds. Boxes are [x0, y0, x1, y1] in pixels of the displayed media. The twelve subtasks are described in
our own words (arXiv 2605.19559, "Task Definition").
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from barista_bench.benchmarks.kinds.choice import LetteredChoice
from barista_bench.core.example import Inputs, Int64, Metadata, PixelBox, Target, TracedEvidence, TypedFields

_SEPARATORS = re.compile(r"[\W_]+")


class Subtask(NamedTuple):
    """`code` and `group` are the paper's abbreviations. `name` is the value of `sub_category_en`."""

    code: str
    group: str
    name: str
    asks: str


GROUPS = MappingProxyType(
    {
        "EGP": "Egocentric Grounding & Perception",
        "STR": "Spatio-Temporal Retrospection",
        "PCI": "Predictive & Causal Inference",
        "HGR": "High-level Grounded Reasoning",
    }
)
SUBTASKS: tuple[Subtask, ...] = (
    Subtask("AOG", "EGP", "Active Object Grounding", "what is being looked at, touched or handled now"),
    Subtask("HOA", "EGP", "Hand-Object Association", "which hand is on which object now"),
    Subtask("MSP", "EGP", "Manipulation State Perception", "what state the handled object is in now"),
    Subtask("SR", "STR", "State Retrospection", "what state an object was in before"),
    Subtask("LVR", "STR", "Location / Visibility Retrospection", "where an object was before, and whether in view"),
    Subtask("HOTR", "STR", "Hand-Object Temporal Retrospection", "in what order hands took hold of objects"),
    Subtask("NSA", "PCI", "Next State Anticipation", "what state an object is in next"),
    Subtask("NAA", "PCI", "Next Action Anticipation", "what is done next"),
    Subtask("LCOI", "PCI", "Local Cause-Outcome Inference", "what just done brought about what is seen"),
    Subtask("PR", "HGR", "Progress Reasoning", "how far the work has got"),
    Subtask("HGC", "HGR", "Hand-Object Grounded CoT", "what follows from hands, times and places together"),
    Subtask("GOT", "HGR", "Goal-Oriented Object Tracking", "which object serves the purpose, wherever it moves"),
)
"""Subtasks in the order of the paper's tables."""
GROUP_SUBTASKS = MappingProxyType({group: tuple(s for s in SUBTASKS if s.group == group) for group in GROUPS})
BY_CODE = MappingProxyType({subtask.code: subtask for subtask in SUBTASKS})


def _fold(name: str) -> str:
    return " ".join(_SEPARATORS.sub(" ", name.casefold()).split())


_BY_NAME = {_fold(text): subtask for subtask in SUBTASKS for text in (subtask.name, subtask.code)}
_GROUP_BY_NAME = {_fold(text): code for code, name in GROUPS.items() for text in (name, code, name.replace("&", "and"))}


def subtask_called(name: str) -> Subtask | None:
    """Return the subtask of a name or abbreviation, ignoring case and punctuation; None for an unknown name."""
    return _BY_NAME.get(_fold(name))


def group_called(name: str) -> str | None:
    """Return the abbreviation of a group, given its name or abbreviation; None for an unknown name."""
    return _GROUP_BY_NAME.get(_fold(name))


Split: TypeAlias = Literal["dev", "test"]
GraphPredicate: TypeAlias = Literal["touches", "apart from", "is", "does", "causes", "precedes"]
"""Kinds of facts in `evidence.graph`: a contact or its absence, a state, an action, a cause, an order."""


class TargetObject(TypedFields):
    """An object that the question is about. Boxes refer to `object_id`, which is empty if the file has none."""

    object_id: str
    label: str


class TimedBox(TypedFields):
    """The box of one object at one time."""

    object_id: str
    time: float
    box: PixelBox


class DatedRelation(TypedFields):
    """A relation: `subject` does or is `predicate` to `object` from `start` to `end`, both included.

    `start` and `end` are None for an undated relation.
    """

    subject: str
    predicate: str
    object: str
    start: float | None
    end: float | None


class GraphFact(TypedFields):
    """A fact that the benchmark's schema cannot hold. It holds from `start` to `end` in seconds, both included.

    `holds` is True for a fact and False for an excluded fact. `text` states the fact in words, as if it were true.

    | predicate | subject | object |
    |---|---|---|
    | touches, apart from | a hand | a thing |
    | is | a thing | its state |
    | does | operator | an action or a step: `open the drawer` |
    | causes | an action | a thing and its state: `drawer is open` |
    | precedes | the first contact of a hand: `left hand on cup` | another, later contact |
    """

    subject: str
    predicate: str
    object: str
    start: float
    end: float
    holds: bool
    text: str


class ItemEvidence(TracedEvidence):
    """The annotators' evidence. Every field may be empty. Only generated releases have `graph_facts`."""

    object_ids: list[str] = msgspec.field(default_factory=list)
    objects: list[TargetObject] = msgspec.field(default_factory=list)
    timestamps: list[float] = msgspec.field(default_factory=list)
    focus_times: list[float] = msgspec.field(default_factory=list)
    boxes: list[TimedBox] = msgspec.field(default_factory=list)
    focused_boxes: list[TimedBox] = msgspec.field(default_factory=list)
    relations: list[DatedRelation] = msgspec.field(default_factory=list)
    graph_facts: list[GraphFact] = msgspec.field(default_factory=list)


class CotInputs(Inputs):
    """The inputs of a question. `times` are the times of the shown frames in seconds."""

    question: str
    choices: list[LetteredChoice]
    times: list[float]

    @property
    def texts(self) -> dict[str, str]:
        """Map letters to the texts of choices, in the order of the question."""
        return {choice.choice_id: choice.text for choice in self.choices}


class CotTarget(Target):
    """The right letter, or None if it is hidden, and the steps of the reference reasoning."""

    answer: str | None
    reasoning: list[str]


class CotMetadata(Metadata):
    """Sizes are in pixels, and 0 if the media are missing."""

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
    """A question with its reference.

    In the public test split the reference is hidden: `answer` is None and `reasoning` is empty.
    """

    qid: str
    media_id: str
    split: Split
    subtask: Subtask
    question: str
    choices: Mapping[str, str]
    answer: str | None
    reasoning: tuple[str, ...]
    evidence: ItemEvidence


def clock_text(seconds: float) -> str:
    """Return a time in the benchmark's format, `MM:SS.ss`.

    >>> clock_text(62.5), clock_text(1.0), clock_text(59.999)
    ('01:02.50', '00:01.00', '01:00.00')
    """
    hundredths = math.floor(max(0.0, seconds) * 100 + 0.5)
    minutes, remainder = divmod(hundredths, 6000)
    return f"{minutes:02d}:{remainder // 100:02d}.{remainder % 100:02d}"
