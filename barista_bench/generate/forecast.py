"""Estimate, without writing files, how many questions of each family a release gives, and how to get more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from barista_bench.core.settings import check_settings
from barista_bench.generate.candidates import DECIDED, DIVISIBLE, REPEATED, TOO_FEW, UNPROVED
from barista_bench.generate.generator import families_of, pool_candidates
from barista_bench.generate.handyvqa.statements import ClearlyNamed, HandAtWork, Masked, NothingElseTouched
from barista_bench.generate.settings import GenerateSettings
from barista_bench.generate.statements import OnlyDuring, Seen, Statement, Touches, Unique
from barista_bench.generate.tog_bench.statements import (
    BroughtAbout,
    Fillable,
    Handled,
    NoneInView,
    NotParts,
    Trackable,
    Unmistakable,
)
from barista_bench.generate.vista.clips import TOO_LONG, TOO_SHORT
from barista_bench.generate.vista.statements import AloneInView, AsLeft, Continues, HandsAtWork, NothingInside
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.domain_draft import lacking_lines

LARGEST = 3
"""Maximum number of reasons in the list."""
_TELL_APART = "record which hand holds it, what it is on or in, or a `color` or `type` that others of its name lack"
_SEE_HANDS = "draw masks of the hands wherever they are in view, and record what they touch"
REMEDIES = {
    Unique.unmet: _TELL_APART,
    ClearlyNamed.unmet: _TELL_APART,
    Unmistakable.unmet: _TELL_APART,
    OnlyDuring.unmet: "name activities by what is done, and to what",
    Touches.unmet: _SEE_HANDS,
    BroughtAbout.unmet: "record the touch that causes it",
    NoneInView.unmet: "annotate clips without it",
    NotParts.unmet: "nothing: a question asks for only one of them",
    NothingInside.unmet: "nothing: it is not empty",
    Continues.unmet: "record states and places on all frames on which they hold, without gaps",
    AsLeft.unmet: "annotate clips in which things stay as they are for longer",
    AloneInView.unmet: "annotate clips in which only one of its kind is in view",
    Seen.unmet: "draw its mask, and that of the hands, on all frames on which they are in view",
    Trackable.unmet: "draw its mask on all frames on which it is in view",
    Masked.unmet: "draw its mask on all frames on which it is in view",
    HandsAtWork.unmet: _SEE_HANDS,
    HandAtWork.unmet: _SEE_HANDS,
    NothingElseTouched.unmet: "record every touch of the hands",
    Handled.unmet: "record the touch, or list its name under `singular` in the domain file",
    Fillable.unmet: "annotate clips with one such thing",
    Statement.unmet: "record what it assumes",
    UNPROVED: "record states, places and touches on all frames on which they hold, without gaps",
    TOO_FEW: "annotate more of what is in view: things, their states and places, activities and steps",
    DIVISIBLE: "nothing; if the stuff is one piece, remove its noun from `divisible` in the domain file",
    TOO_SHORT: "record activities from their first frame to their last",
    TOO_LONG: "split the activity, or raise `lengths: {action_max: ...}` in the domain file",
}
"""The remedies for reasons, by the beginning of the reason's text."""


class Obstacle(NamedTuple):
    """A frequent reason why candidates cannot be asked, the number of candidates, and the remedy."""

    reason: str
    candidates: int
    remedy: str


class Forecast(NamedTuple):
    """Predicted items by family and subtask, obstacles, missing lines of the domain file, and lost videos.

    The largest obstacles come first.
    """

    items: dict[str, dict[str, int]]
    obstacles: list[Obstacle]
    domain_lines: list[str]
    lost_videos: dict[str, str]

    def lines(self) -> list[str]:
        """Return the forecast as lines of text."""
        lines = []
        for family, by_subtask in self.items.items():
            parts = ", ".join(f"{count} {subtask}" for subtask, count in by_subtask.items() if count)
            lines.append(f"{family}: {sum(by_subtask.values())} items{f' ({parts})' if parts else ''}")
        lines += [f"lost: {video_id}: {problem}" for video_id, problem in self.lost_videos.items()]
        lines += ["what most candidates wait for:"] if self.obstacles else []
        lines += [f"  {row.candidates} x {row.reason}. Fix: {row.remedy}" for row in self.obstacles]
        if self.domain_lines:
            lines += ["the domain file lacks these lines:", *(f"  {line}" for line in self.domain_lines)]
        return lines


def forecast(source: str | Path, families: Sequence[str], **settings: Any) -> Forecast:  # noqa: ANN401
    """Predict the result of `generate` with the same arguments, and how to get more questions. No file is written.

    Raises:
        ConfigError: a family is unknown, the domain file is invalid, or a setting cannot be used.
    """
    chosen = check_settings(GenerateSettings, {**settings, "source": source, "families": tuple(families)})
    graph = SceneGraph(source)
    loaded_domain, by_name = families_of(chosen.families, chosen.domain, chosen.difficulty)
    pool = pool_candidates(graph, by_name, chosen.per_subtask, chosen.seed, chosen.num_proc, progress=chosen.progress)
    items = {}
    for name, family in by_name.items():
        sampled = family.items(pool.candidates[name], chosen.per_subtask, chosen.seed, chosen.ceiling).items
        counts = Counter(item.candidate.subtask for item in sampled)
        items[name] = {subtask: counts[subtask] for subtask in family.subtasks}
    reasons: Counter[str] = Counter()
    for tally in pool.tallies.values():
        for (_, reason), count in tally.items():
            reasons[reason] += count if reason not in (DECIDED, REPEATED) and not reason.startswith("it is ") else 0
    largest = sorted((row for row in reasons.items() if row[1]), key=lambda row: (-row[1], row[0]))[:LARGEST]
    obstacles = [Obstacle(reason, count, remedy_of(reason)) for reason, count in largest]
    return Forecast(items, obstacles, lacking_lines(pool.words, loaded_domain), pool.lost_videos)


def remedy_of(reason: str) -> str:
    """Return the remedy for a reason why candidates cannot be asked."""
    reason = reason.removeprefix("an action: ")
    return next(remedy for start, remedy in REMEDIES.items() if reason.startswith(start))
