"""Prepare the section "Why it fails". Each model and task has a signed bar, and its findings in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from barista_bench.aids.levels import LEVELS
from barista_bench.core.model_names import GUESSES
from barista_bench.diagnosis.estimates import format_short
from barista_bench.diagnosis.records import Diagnosis, adjusted_p_values
from barista_bench.diagnosis.sentences import Guess, finding_sentences, headline_sentence
from barista_bench.reporting.aided import DiagnosisFolders, labelled_diagnoses
from barista_bench.reporting.report import Section
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
        sign = "+" if round(self.value, 2) > 0 and self.name != MISSING else ""
        return f"{sign}{format_short(self.value)}".replace("-", "\N{MINUS SIGN}")


class Why(NamedTuple):
    """The section's data for one model and task. `address` is the address of the task on the page."""

    benchmark: str
    address: str
    model: str
    heading: str
    facts: str
    parts: tuple[Part, ...]
    lead: str
    sentences: tuple[str, ...]


class PlacedDiagnosis(NamedTuple):
    """A diagnosis, and the section of the run to which it belongs."""

    diagnosis: Diagnosis
    section: Section


def placed_diagnoses(sections: Sequence[Section], diagnosed: DiagnosisFolders) -> list[PlacedDiagnosis]:
    """Read the diagnoses that belong to the runs of the sections."""
    return [
        PlacedDiagnosis(diagnosis, section)
        for section in sections
        for label, run in section.standing.runs.items()
        for diagnosis in labelled_diagnoses(run, label, diagnosed)
    ]


def why_it_fails(diagnoses: Sequence[PlacedDiagnosis]) -> tuple[Why, ...]:
    """Return the section's data for each diagnosis, with Holm's correction over all diagnoses."""
    adjusted_values = adjusted_p_values([each.diagnosis for each in diagnoses])
    return tuple(
        Why(
            benchmark=each.benchmark,
            address=section.address,
            model=each.model,
            heading=each.subject,
            facts=_facts(each),
            parts=_parts(each),
            lead=headline_sentence(each, adjusted, guess),
            sentences=tuple(finding_sentences(each, adjusted, guess)),
        )
        for (each, section), adjusted in zip(diagnoses, adjusted_values, strict=True)
        for guess in [_best_guess(each, section)]
    )


def _facts(diagnosis: Diagnosis) -> str:
    """Return the numbers of examples and videos, and why examples are left out."""
    total = diagnosis.examples + sum(diagnosis.left_out.values())
    counts = f"{diagnosis.examples} of {total} examples" if diagnosis.left_out else f"{total} examples"
    reasons = (f"; left out: {count} ({why})" for why, count in diagnosis.left_out.items())
    return f"{counts} of {diagnosis.videos} videos{''.join(reasons)}"


def _best_guess(diagnosis: Diagnosis, section: Section) -> Guess | None:
    """Return the best baseline that guesses among the other runs of a section, if there is one."""
    guesses = [
        Guess(words(label), metric.mean, run.results.dataset.examples)
        for label, run in section.standing.runs.items()
        if label != diagnosis.model
        and run.results.model.name in GUESSES
        and (metric := run.results.metrics.get(diagnosis.metric))
    ]
    return max(guesses, key=lambda guess: guess.score, default=None)


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
