"""Prepare the section "Why it fails". Each model and task has a signed bar, and its findings in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from barista_bench.aids.levels import LEVELS
from barista_bench.diagnosis.records import Diagnosis, adjusted_p_values
from barista_bench.diagnosis.sentences import finding_sentences, headline_sentence
from barista_bench.tables import Column, Table, words

WIDTH = 360
"""Width of a bar in SVG units. The middle stands for 0, the ends for -1 and 1."""
MISSING = "missing with all facts"
"""Name of the part that no aid explains."""
_TEXT, _REMAINDER = "#b91c1c", "#8a8a8a"


class Part(NamedTuple):
    """A part of a bar, from `x` to `x + width`. Positive values are drawn right of zero, negative values left."""

    name: str
    value: float
    x: float
    width: float
    fill: str

    @property
    def signed(self) -> str:
        sign = "" if self.name == MISSING else "+"
        return f"{self.value:{sign}.2f}".replace("-", "\N{MINUS SIGN}")


class Why(NamedTuple):
    """The section's data for one model and task."""

    benchmark: str
    heading: str
    facts: str
    parts: tuple[Part, ...]
    lead: str
    sentences: tuple[str, ...]


def why_it_fails(diagnoses: Sequence[Diagnosis]) -> tuple[Why, ...]:
    """Return the section's data for each diagnosis, with Holm's correction over all diagnoses."""
    return tuple(
        Why(
            benchmark=each.benchmark,
            heading=each.subject,
            facts=f"{each.examples} examples of {each.videos} videos, {words(each.metric)}",
            parts=_parts(each),
            lead=headline_sentence(each, adjusted),
            sentences=tuple(finding_sentences(each, adjusted)),
        )
        for each, adjusted in zip(diagnoses, adjusted_p_values(diagnoses), strict=True)
    )


def why_table(diagnoses: Sequence[Diagnosis]) -> Table:
    """Return the bars as a drawn table, with a bar per model and task and a row per part."""
    bars = [{name: value for name, value, _ in _values(each)} for each in diagnoses]
    names = dict.fromkeys(name for bar in bars for name in bar)
    columns = (Column("part", "fraction of the score", numeric=False), *(Column(each.subject) for each in diagnoses))
    table = Table.of("Why it fails", columns, [(name, *(bar.get(name) for bar in bars)) for name in names])
    return replace(table, drawn="stack")


def _values(diagnosis: Diagnosis) -> list[tuple[str, float, str]]:
    """Return the name, value and colour of each part. Values add up to the score that is missing without aids.

    The parts are each level's share, the effect of any addition, and the score that is still missing with all aids.
    """
    named: list[tuple[str, float | None, str]] = [
        (level, told.share.value, LEVELS[level].fill) for level, told in diagnosis.levels.items()
    ]
    named.append(("any addition", diagnosis.text.value, _TEXT))
    named.append((MISSING, diagnosis.remainder.value, _REMAINDER))
    return [(name, value, fill) for name, value, fill in named if value is not None]


def _parts(diagnosis: Diagnosis) -> tuple[Part, ...]:
    """Return the parts of a bar. They are drawn end to end, from zero to either side."""
    right = left = WIDTH / 2
    parts = []
    for name, value, fill in _values(diagnosis):
        width = abs(value) * WIDTH / 2
        left -= width if value < 0 else 0
        parts.append(Part(name, value, round(left if value < 0 else right, 2), round(width, 2), fill))
        right += width if value > 0 else 0
    return tuple(parts)
