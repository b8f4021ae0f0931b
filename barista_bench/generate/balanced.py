"""Which of a subtask's candidates are asked: by balance over videos, answers and words.

Each word stands in distractors in proportion to the right ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from barista_bench.generate.candidates import Choice, QuestionCandidate, sample

SLACK = 3.0
"""A word may stand this many times, and the square root of its due, more or less often in distractors than is due."""
SPARE = 4
"""Candidates looked at for each that is asked for, at the most."""
AT_ONCE = 40
"""Candidates, in the order of `sample`, of which one is chosen as the next."""

DistractorsNeeded = Callable[[QuestionCandidate], int]
Words = Callable[[QuestionCandidate, Choice], Sequence[str]]
Counts = NDArray[np.int64]


class _Offer(NamedTuple):
    """A candidate as counts of words: of its right choices, (words,), and of each wrong one, (choices, words)."""

    candidate: QuestionCandidate
    right: Counts
    distractors: Counts
    needed: int


class _Addition(NamedTuple):
    """The balance of the set with one more candidate, whose distractors are those of indices `chosen`."""

    cost: int
    chosen: tuple[int, ...]
    stands: Counts


def sample_balanced(
    candidates: Sequence[QuestionCandidate], size: int, seed: int, distractors_needed: DistractorsNeeded, words: Words
) -> list[QuestionCandidate]:
    """At most `size` candidates, each with just the distractors that it needs; no word tells right from wrong.

    A word is due in distractors as often as it stands in right ones, times the distractors that the set has for
    each right one. Candidates are taken as `sample` orders them, but of the next few the one first whose answer was
    sampled least and that keeps all words nearest to their due; one that would bring a word out of proportion is left
    out. Sums are of whole numbers: the same on any machine.

    Args:
        words: of a candidate and one of its choices, what a reader could go by.
    """
    waiting = _offers(sample(candidates, SPARE * size, seed), distractors_needed, words)
    sampled: list[QuestionCandidate] = []
    answers: Counter[str] = Counter()
    balance = _Balance(waiting[0].right.size if waiting else 0)
    first = 0
    while first < len(waiting) and len(sampled) < size:
        near = range(first, min(first + AT_ONCE, len(waiting)))
        additions = [
            (answers[waiting[at].candidate.answer_class], addition.cost, at, addition)
            for at in near
            if (addition := balance.with_(waiting[at]))
        ]
        if not additions:
            first += AT_ONCE
            continue
        *_, at, addition = min(additions, key=lambda row: row[:3])
        offer = waiting.pop(at)
        answers[offer.candidate.answer_class] += 1
        balance.add(offer, addition)
        sampled.append(
            msgspec.structs.replace(
                offer.candidate, distractors=tuple(offer.candidate.distractors[i] for i in addition.chosen)
            )
        )
        first = 0
    return sampled


def _offers(
    candidates: Sequence[QuestionCandidate], distractors_needed: DistractorsNeeded, words: Words
) -> list[_Offer]:
    index: dict[str, int] = {}
    for candidate in candidates:
        for choice in (*candidate.right, *candidate.distractors):
            for word in words(candidate, choice):
                index.setdefault(word, len(index))

    def counts(candidate: QuestionCandidate, choices: Sequence[Choice]) -> Counts:
        table = np.zeros((len(choices), len(index)), dtype=np.int64)
        for row, choice in enumerate(choices):
            table[row, [index[word] for word in words(candidate, choice)]] = 1
        return table

    return [
        _Offer(c, counts(c, c.right).sum(axis=0), counts(c, c.distractors), distractors_needed(c)) for c in candidates
    ]


class _Balance:
    """How often each word stands in the right and in the distractors of a set that grows."""

    def __init__(self, words: int) -> None:
        self.rights = np.zeros(words, dtype=np.int64)
        self.stands = np.zeros(words, dtype=np.int64)
        self.correct_choices = 0
        self.distractors = 0

    def with_(self, offer: _Offer) -> _Addition | None:
        """The set with one more candidate; None where a word would be out of proportion."""
        per = self.correct_choices + len(offer.candidate.right)
        due = (self.rights + offer.right) * (self.distractors + offer.needed)  # times `per`, to stay whole
        # What a word costs grows with the square of how far it is off, and falls with how much is due to it.
        weight = 2**30 // (due + 4 * per)
        stands = self.stands.copy()
        chosen: list[int] = []
        for _ in range(offer.needed):
            cost = offer.distractors @ ((2 * (stands * per - due) + per) * weight)
            cost[chosen] = np.iinfo(np.int64).max
            chosen.append(int(np.argmin(cost)))  # of equal ones the more plausible
            stands += offer.distractors[chosen[-1]]
        off = stands * per - due
        if np.any(np.abs(off) / per > SLACK + np.sqrt(due / per)):
            return None
        return _Addition(int(np.sum(off // per * off * weight)), tuple(chosen), stands)

    def add(self, offer: _Offer, addition: _Addition) -> None:
        self.rights += offer.right
        self.stands = addition.stands
        self.correct_choices += len(offer.candidate.right)
        self.distractors += offer.needed
