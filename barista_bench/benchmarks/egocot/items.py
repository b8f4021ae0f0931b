"""One question of the benchmark with its annotations, as everything here uses it: checked, times in seconds.

Boxes are (x0, y0, x1, y1) in pixels of the media as they are shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from barista_bench.benchmarks.egocot.taxonomy import Subtask

Split: TypeAlias = Literal["dev", "test"]
SPLITS: tuple[Split, ...] = ("dev", "test")
Corners: TypeAlias = "tuple[float, float, float, float]"


class TargetObject(NamedTuple):
    """`object_id` is what boxes refer to; empty where the file gives none."""

    object_id: str
    label: str


class TimedBox(NamedTuple):
    """One object at one time, in seconds."""

    object_id: str
    time: float
    box: Corners


class TimedRelation(NamedTuple):
    """`subject` does or is `predicate` to `object` from `start` to `end` seconds, both included; None: undated."""

    subject: str
    predicate: str
    object: str
    start: float | None
    end: float | None


@dataclass(frozen=True, slots=True)
class ItemEvidence:
    """What the annotators point at; all of it may be empty. Times are in seconds."""

    objects: tuple[TargetObject, ...] = ()
    timestamps: tuple[float, ...] = ()
    boxes: tuple[TimedBox, ...] = ()
    relations: tuple[TimedRelation, ...] = ()
    focus_times: tuple[float, ...] = ()
    focused_boxes: tuple[TimedBox, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
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
