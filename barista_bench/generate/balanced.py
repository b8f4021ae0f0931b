"""Samples a subtask's candidates by balance over videos, answers and words: each word stands in distractors in
proportion to the right ones.
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
    """A candidate as counts of words: in its right choices, (words,), and in each wrong one, (choices, words)."""

    candidate: QuestionCandidate
    right: Counts
    distractors: Counts
    needed: int


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
    offers = _offers(sample(candidates, SPARE * size, seed), distractors_needed, words)
    sampled: list[QuestionCandidate] = []
    answers: Counter[str] = Counter()
    balance = _Balance(offers[0].right.size if offers else 0)
    first = 0
    while first < len(offers) and len(sampled) < size:
        additions = [
            (answers[offer.candidate.answer_class], addition, at)
            for at, offer in enumerate(offers[first : first + AT_ONCE], start=first)
            if (addition := balance.addition(offer))
        ]
        if not additions:
            first += AT_ONCE
            continue
        _, (_, chosen), at = min(additions, key=lambda row: (row[0], row[1][0], row[2]))
        offer = offers.pop(at)
        candidate = offer.candidate
        answers[candidate.answer_class] += 1
        balance.add(offer, chosen)
        distractors = tuple(candidate.distractors[number] for number in chosen)
        sampled.append(msgspec.structs.replace(candidate, distractors=distractors))
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

    def addition(self, offer: _Offer) -> tuple[int, list[int]] | None:
        """The cost of the set with one more candidate, and the indices of the distractors that cost the least; None
        where a word would be out of proportion."""
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
        return int(np.sum(off // per * off * weight)), chosen

    def add(self, offer: _Offer, chosen: Sequence[int]) -> None:
        self.rights += offer.right
        self.stands += offer.distractors[chosen].sum(axis=0)
        self.correct_choices += len(offer.candidate.right)
        self.distractors += offer.needed
