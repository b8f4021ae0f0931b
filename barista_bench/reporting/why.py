"""The section "Why it fails": a signed bar a model and task, and what its diagnosis says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barista_bench.diagnosis.records import Diagnosis, causes, sentences

WIDTH = 360
"""Of a bar's drawing, in its own units; zero stands in the middle, and the ends are -1 and 1."""
_FILLS = {
    "objects": "#0f766e",
    "states": "#b45309",
    "relations": "#6d28d9",
    "activities": "#be185d",
    "moment": "#1d4ed8",
}
_TEXT, _REMAINDER = "#b91c1c", "#8a8a8a"


class Part(NamedTuple):
    """A piece of a bar, from `x` on; what gains stands right of zero, what costs left of it."""

    name: str
    value: float
    x: float
    width: float
    fill: str


class Why(NamedTuple):
    """One model in one task."""

    heading: str
    facts: str
    parts: tuple[Part, ...]
    sentences: tuple[str, ...]


def why_it_fails(diagnoses: Sequence[Diagnosis]) -> tuple[Why, ...]:
    """What the page shows of each diagnosis; Holm's correction is over all of them."""
    adjusted = causes(diagnoses)
    return tuple(
        Why(
            heading=f"{each.model}: {each.task}",
            facts=f"{each.examples} examples of {each.videos} videos, {each.figure}, design {each.design}",
            parts=_parts(each),
            sentences=tuple(sentences(each, adjusted)),
        )
        for each in diagnoses
    )


def _parts(diagnosis: Diagnosis) -> tuple[Part, ...]:
    """What is missing without aids, in parts that add up to it, laid end to end from zero to either side: the shares of
    the levels, what any text changes, and the remainder with all aids."""
    named: list[tuple[str, float | None, str]] = [
        (level, told.share.value, _FILLS[level]) for level, told in diagnosis.levels.items()
    ]
    named.append(("any text", diagnosis.text.value, _TEXT))
    named.append((diagnosis.remainder_name, diagnosis.remainder.value, _REMAINDER))
    right = left = WIDTH / 2
    parts = []
    for name, value, fill in named:
        if value is None:
            continue
        width = abs(value) * WIDTH / 2
        left -= width if value < 0 else 0
        parts.append(Part(name, value, round(left if value < 0 else right, 2), round(width, 2), fill))
        right += width if value > 0 else 0
    return tuple(parts)
