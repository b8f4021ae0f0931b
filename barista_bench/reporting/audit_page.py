"""Show the audit of a set of choice questions as one self-contained page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from barista_bench.generate.audit import MOST_NAMED, GuesserResult, TaskAudit
from barista_bench.reporting.html import content_policy, own_template, page_environment

ALPHA = 0.05
"""Corrected p-value below which a guess counts as better than chance."""
_GUESSERS: dict[str, tuple[str, str]] = {
    "place": ("the usual place", "the least usual place"),
    "length": ("the longest choice", "the shortest choice"),
    "overlap": ("the most words of the question", "the fewest words of the question"),
    "offered": ("the choice that is offered most often", "the choice that is offered least often"),
    "offered_in_video": (
        "the choice that is offered most often in the video",
        "the one offered least often in the video",
    ),
    "prior": ("the usual answer of the other videos", "the least usual answer of the other videos"),
    "half": ("the usual answer of half of the videos", "the least usual answer of half of the videos"),
    "same_video": ("the usual answer of the same video", "the least usual answer of the same video"),
    "form": ("the usual answer to the wording", "the least usual answer to the wording"),
    "difficulty": ("the usual answer at the level", "the least usual answer at the level"),
    "text": ("the most likely text", "the least likely text"),
}
"""The choice that each guesser takes, and the choice that its opposite takes."""
_STYLE = """
svg.share { width: 9rem; height: 0.7rem; display: block; }
svg.share .track { fill: var(--panel); }
svg.share .value { fill: var(--blue); }
svg.share .mark { stroke: var(--orange); stroke-width: 1.5; }
"""


class AblatedRun(NamedTuple):
    """A scored run over the audited set. `score` is its primary score, from 0 to 1."""

    task: str
    model: str
    score: float


def verdict(audits: Sequence[TaskAudit]) -> str:
    """Return the first sentence of the page."""
    guessed = [audit.task for audit in audits if audit.best.p_adjusted < ALPHA]
    if guessed:
        return f"{', '.join(guessed)} can be guessed better than by chance without looking at the video."
    return "No task can be guessed better than by chance without looking at the video."


def name_guess(result: GuesserResult) -> str:
    """Describe the choice that a guesser takes."""
    return _GUESSERS[result.guesser][result.guesses.opposite]


def audit_page(title: str, audits: Sequence[TaskAudit], runs: Sequence[AblatedRun] = ()) -> str:
    """Return the page as HTML, with inline styles and without scripts."""
    style = own_template("report.css") + _STYLE
    return (
        page_environment()
        .get_template("audit.html.j2")
        .render(
            title=title,
            verdict=verdict(audits),
            audits=audits,
            name_guess=name_guess,
            runs=runs,
            level=ALPHA,
            most=MOST_NAMED,
            style=Markup(style),  # noqa: S704  (our own file)
            policy=content_policy(style),
        )
    )
