"""A question that could be asked, and what decides whether it may be."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from barista_bench.generate.scene import Scene
from barista_bench.generate.statements import Statement

Fields = dict[str, Any]
ALIKE = 0.9
"""Similarity of two texts, letter by letter, from which on they are no two choices."""

DECIDED = "decided"
"""In a tally: what can be asked."""
DIVISIBLE = "parts of what it is about may be in several places"
REPEATED = "asks about what another question asks about"
"""Why what can be asked is not."""


class Choice(NamedTuple):
    """One answer, and what it says of the scene."""

    text: str
    statement: Statement


class QuestionCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """A question about one video.

    Args:
        subtask: of its family.
        video_id: whose graph decides it.
        question: text; an instruction where the family has no questions.
        right: every right answer.
        wrong: answers that may be offered beside, the most plausible first; more than are needed.
        given: what must hold for the question to be asked at all: what it speaks of is to be seen.
        span: frames [start, stop) that are shown.
        frames: moments that the question is about.
        objects: ids of what it is about.
        answer: what the answer is, for the balance of the set; by default the text of the right ones.
        event: what happens that is asked about: of one event a subtask asks once. By default what is said of `objects`
            by the right answers.
        extra: what the family writes beside, JSON values.
    """

    subtask: str
    video_id: str
    question: str
    right: tuple[Choice, ...]
    wrong: tuple[Choice, ...] = ()
    given: tuple[Statement, ...] = ()
    span: tuple[int, int]
    frames: tuple[int, ...]
    objects: tuple[str, ...] = ()
    answer: str = ""
    event: str = ""
    extra: Fields = {}

    @property
    def answer_class(self) -> str:
        return self.answer or self.right_text

    @property
    def right_text(self) -> str:
        return "; ".join(choice.text for choice in self.right)

    @property
    def event_key(self) -> tuple[str, ...]:
        """The same for two candidates of one video that ask about one event."""
        return (self.subtask, self.event) if self.event else (self.subtask, self.right_text, *self.objects)


class Decided(NamedTuple):
    """A candidate whose wrong answers all are excluded; or, instead, why it cannot be asked."""

    candidate: QuestionCandidate | None
    reason: str = ""


def decide(candidate: QuestionCandidate, scene: Scene, wrong_needed: int) -> Decided:
    """Prove a candidate: what is given and right holds, and enough of the wrong answers are excluded.

    Args:
        wrong_needed: how many wrong answers the question takes.
    """
    if any(
        scene.things[name].noun.endswith(scene.domain.divisible) for name in candidate.objects if name in scene.things
    ):
        return Decided(None, DIVISIBLE)
    for statement in candidate.given:
        if statement.truth(scene) is not True:
            return Decided(None, statement.unmet)
    if any(choice.statement.truth(scene) is not True for choice in candidate.right):
        return Decided(None, "the graph does not prove the answer")
    wrong = _distinct(candidate, [choice for choice in candidate.wrong if choice.statement.truth(scene) is False])
    if len(wrong) < wrong_needed:
        return Decided(None, "too few answers that the graph excludes")
    return Decided(msgspec.structs.replace(candidate, wrong=wrong))


def _distinct(candidate: QuestionCandidate, wrong: Sequence[Choice]) -> tuple[Choice, ...]:
    """Wrong answers that nobody can take for a right one or for each other."""
    kept: list[Choice] = []
    for choice in wrong:
        if not any(alike(choice.text, other.text) for other in (*candidate.right, *kept)):
            kept.append(choice)
    return tuple(kept)


def alike(first: str, second: str) -> bool:
    """Whether two texts are the same to a reader: but for case, articles, stops, or the odd letter in the same words.

    >>> alike("The red cup.", "red cup"), alike("left hand", "right hand"), alike("colour", "color")
    (True, False, True)
    """
    a, b = _plain(first), _plain(second)
    if a == b:
        return True
    return len(a.split()) == len(b.split()) == 1 and SequenceMatcher(None, a, b).ratio() >= ALIKE


@lru_cache(maxsize=2**14)
def _plain(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", re.sub(r"(?i)\b(the|an?)\b", " ", text).casefold()))


class Tally:
    """How many candidates a subtask had, and why the others could not be asked."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()

    def add(self, subtask: str, reason: str) -> None:
        self.counts[subtask, reason] += 1

    def move(self, subtask: str, before: str, after: str, count: int) -> None:
        """Count some of its candidates under another reason."""
        self.counts[subtask, before] -= count
        self.counts[subtask, after] += count

    def merge(self, other: Tally) -> None:
        self.counts.update(other.counts)

    def reasons(self, subtask: str) -> dict[str, int]:
        """Reason to number of candidates, the most frequent first."""
        rows = [(reason, count) for (name, reason), count in self.counts.items() if name == subtask]
        return dict(sorted(rows, key=lambda row: (-row[1], row[0])))
