"""The section "Why it fails": a signed bar for each model and task, and the diagnosis in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barista_bench.diagnosis.records import Diagnosis, causes, sentences

WIDTH = 360
"""Size of a bar's drawing, in drawing units; zero is in the middle, and the ends are -1 and 1."""
_FILLS = {
    "objects": "#0f766e",
    "states": "#b45309",
    "relations": "#6d28d9",
    "activities": "#be185d",
    "moment": "#1d4ed8",
}
_TEXT, _REMAINDER = "#b91c1c", "#8a8a8a"


class Part(NamedTuple):
    """A piece of a bar, starting at `x`: gains are right of zero, losses left."""

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
    """Return the page's data for each diagnosis; Holm's correction is over all of them."""
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
    """Return the loss without aids as parts that add up to it: levels, effect of any text, and the rest with all aids.

    The parts are drawn end to end from zero to either side.
    """
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
