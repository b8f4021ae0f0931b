"""The audit of a set of choice questions as one page that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from barista_bench.generate.audit import MOST_NAMED, TaskAudit
from barista_bench.generate.shortcuts import Guesser
from barista_bench.reporting.html import content_policy, own_template, page_environment

LEVEL = 0.05
"""p-value, corrected, below which a guesser does better than chance."""
_GUESSERS: dict[Guesser, str] = {
    "text": "From the texts",
    "prior": "From the usual answer",
    "form": "From the wording",
    "difficulty": "From the level",
}
_STYLE = """
svg.share { width: 9rem; height: 0.7rem; display: block; }
svg.share .track { fill: var(--panel); }
svg.share .value { fill: var(--blue); }
svg.share .mark { stroke: var(--orange); stroke-width: 1.5; }
"""


class AblatedRun(NamedTuple):
    """A scored run over the audited set; `score` is its primary figure, 0 to 1."""

    task: str
    model: str
    score: float


def verdict(audits: Sequence[TaskAudit]) -> str:
    """The sentence that the page begins with."""
    guessed = [audit.task for audit in audits if any(result.p_adjusted < LEVEL for result in audit.guessers)]
    unknown = [audit.task for audit in audits if not audit.guessers]
    parts = []
    if guessed:
        parts.append(f"{', '.join(guessed)} can be guessed better than by chance without looking at the video.")
    elif len(unknown) < len(audits):
        parts.append("No task can be guessed better than by chance without looking at the video.")
    if unknown:
        parts.append(f"Of {', '.join(unknown)} that is not known: a single video gives nothing to learn from.")
    return " ".join(parts)


def audit_page(title: str, audits: Sequence[TaskAudit], runs: Sequence[AblatedRun] = ()) -> str:
    """The page as HTML, with its styles inside and no script."""
    style = own_template("report.css") + _STYLE
    guessers_used = {result.guesser for audit in audits for result in audit.guessers} or set(_GUESSERS)
    return (
        page_environment()
        .get_template("audit.html.j2")
        .render(
            title=title,
            verdict=verdict(audits),
            audits=audits,
            guessers={name: title for name, title in _GUESSERS.items() if name in guessers_used},
            runs=runs,
            level=LEVEL,
            most=MOST_NAMED,
            style=Markup(style),  # noqa: S704  (our own file)
            policy=content_policy(style),
        )
    )
