"""A question that could be asked, and what decides whether it may be."""

from __future__ import annotations

import re
from collections import Counter
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
Tally = Counter[tuple[str, str]]
"""(subtask, reason) to how many of its candidates are `DECIDED`, or could not be asked for that reason."""


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
        distractors: answers that may be offered beside, the most plausible first; more than are needed.
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
    distractors: tuple[Choice, ...] = ()
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


def decide(candidate: QuestionCandidate, scene: Scene, distractors_needed: int) -> QuestionCandidate | str:
    """Prove a candidate: what is given and right holds, and enough of the wrong answers are excluded.

    Args:
        distractors_needed: how many wrong answers the question takes.

    Returns:
        It with those wrong answers that are excluded, and that nobody can take for a right one or for each other; or
        why it cannot be asked.
    """
    nouns = [scene.things[name].noun for name in candidate.objects if name in scene.things]
    if any(noun.endswith(scene.domain.divisible) for noun in nouns):
        return DIVISIBLE
    for statement in candidate.given:
        if statement.truth(scene) is not True:
            return statement.unmet
    if any(choice.statement.truth(scene) is not True for choice in candidate.right):
        return "the graph does not prove the answer"
    distractors: list[Choice] = []
    for choice in candidate.distractors:
        is_excluded = choice.statement.truth(scene) is False
        if is_excluded and not any(alike(choice.text, other.text) for other in (*candidate.right, *distractors)):
            distractors.append(choice)
    if len(distractors) < distractors_needed:
        return "too few answers that the graph excludes"
    return msgspec.structs.replace(candidate, distractors=tuple(distractors))


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


def reasons_of(subtask: str, tally: Tally) -> dict[str, int]:
    """Reason to number of candidates, the most frequent first."""
    rows = [(reason, count) for (name, reason), count in tally.items() if name == subtask]
    return dict(sorted(rows, key=lambda row: (-row[1], row[0])))
