"""A set whose wording gives nothing away: what is right as often is wrong in proportion, or it is not asked."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import msgspec

from barista_bench.generate.candidates import Candidate, Choice
from barista_bench.generate.drawing import draw

SLACK = 2
"""How many times more often than in proportion a wording may stand as a wrong choice."""
LEAST = 0.75
"""Share of its proportion in which a wording stands as a wrong choice at least, but for `SLACK`."""

Wordings = Callable[[Candidate, Choice], tuple[str, ...]]
"""What a reader of a question and one of its choices could go by without a look at the video."""


def draw_balanced(
    candidates: Sequence[Candidate], size: int, seed: int, wrong_needed: Callable[[Candidate], int], wordings: Wordings
) -> list[Candidate]:
    """At most `size` candidates, each with as many wrong choices as it needs, in which no wording tells right from wrong.

    Each wording stands as a wrong choice in proportion to how often it is a right one, within `SLACK` and `LEAST`. What
    cannot be brought into proportion is left out.
    """
    kept = _in_proportion(draw(candidates, 2 * size, seed), wrong_needed, wordings)
    while len(kept) > size:
        kept = _in_proportion(draw(kept, size, seed), wrong_needed, wordings)
    chosen = _choose(kept, wrong_needed, wordings) if kept else []
    return [msgspec.structs.replace(candidate, wrong=wrong) for candidate, wrong in zip(kept, chosen, strict=True)]


def _in_proportion(
    candidates: list[Candidate], wrong_needed: Callable[[Candidate], int], wordings: Wordings
) -> list[Candidate]:
    """Candidates that are left when those furthest out of proportion have gone, step by step."""
    kept = candidates
    while kept:
        excess = _excesses(kept, _choose(kept, wrong_needed, wordings), wrong_needed, wordings)
        worst = max(excess)
        if worst <= 0:
            break
        # Some at once, lest large sets take long; all from the far end, so that near ones have their chance.
        leaving = sorted(range(len(kept)), key=lambda at: -excess[at])[: max(1, len(kept) // 50)]
        gone = {at for at in leaving if excess[at] > 0}
        kept = [candidate for at, candidate in enumerate(kept) if at not in gone]
    return kept


def _excesses(
    candidates: Sequence[Candidate],
    chosen: Sequence[tuple[Choice, ...]],
    wrong_needed: Callable[[Candidate], int],
    wordings: Wordings,
) -> list[float]:
    """For each candidate how far the worst of its wordings is out of proportion; not above 0 where all are in it."""
    due = _due(candidates, wrong_needed, wordings)
    stands = Counter(
        word
        for candidate, wrong in zip(candidates, chosen, strict=True)
        for choice in wrong
        for word in wordings(candidate, choice)
    )
    return [
        max(
            *(stands[w] - due[w] - SLACK for choice in wrong for w in wordings(candidate, choice)),
            *(due[w] * LEAST - SLACK - stands[w] for choice in candidate.right for w in wordings(candidate, choice)),
        )
        for candidate, wrong in zip(candidates, chosen, strict=True)
    ]


def _choose(
    candidates: Sequence[Candidate], wrong_needed: Callable[[Candidate], int], wordings: Wordings
) -> list[tuple[Choice, ...]]:
    """The wrong choices of each: of wordings that are furthest from their proportion; ties go to the more plausible."""
    due = _due(candidates, wrong_needed, wordings)
    chosen: dict[int, tuple[Choice, ...]] = {}
    for at in sorted(range(len(candidates)), key=lambda at: len(candidates[at].wrong)):
        candidate = candidates[at]
        pool = [(choice, wordings(candidate, choice)) for choice in candidate.wrong]
        wrong: list[Choice] = []
        for _ in range(wrong_needed(candidate)):
            best = max(range(len(pool)), key=lambda i: (min(due[word] for word in pool[i][1]), -i))
            choice, words = pool.pop(best)
            wrong.append(choice)
            for word in words:
                due[word] -= 1
        chosen[at] = tuple(wrong)
    return [chosen[at] for at in range(len(candidates))]


def _due(
    candidates: Sequence[Candidate], wrong_needed: Callable[[Candidate], int], wordings: Wordings
) -> defaultdict[str, float]:
    """How often each wording is to stand as a wrong choice."""
    rights = Counter(word for c in candidates for choice in c.right for word in wordings(c, choice))
    ratio = sum(map(wrong_needed, candidates)) / sum(len(candidate.right) for candidate in candidates)
    return defaultdict(float, {word: count * ratio for word, count in rights.items()})
