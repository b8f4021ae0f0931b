"""Which of all that can be asked is asked: by balance over videos, answers and the places of choices."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

import msgspec

from barista_bench.core.example import content_seed
from barista_bench.generate.candidates import DECIDED, REPEATED, Choice, QuestionCandidate, Tally


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A sampled question as it is asked.

    Args:
        id: in its family.
        choices: in the order asked; empty where the family offers none.
        correct: indices of the right ones.
    """

    id: str
    candidate: QuestionCandidate
    choices: tuple[Choice, ...] = ()
    correct: tuple[int, ...] = ()


def by_video(items: Iterable[Item]) -> Iterator[tuple[str, list[Item]]]:
    """(video id, its items in the order given), so that each graph is read once."""
    ordered = sorted(items, key=lambda item: item.candidate.video_id)
    return ((video_id, list(rows)) for video_id, rows in groupby(ordered, key=lambda item: item.candidate.video_id))


def once_an_event(candidates: Iterable[QuestionCandidate], seed: int, tally: Tally) -> list[QuestionCandidate]:
    """Of one video's candidates that ask about the same event one, by seed; the others are counted as `REPEATED`."""
    by_event: dict[tuple[str, ...], QuestionCandidate] = {}
    for candidate in candidates:
        other = by_event.get(candidate.event_key)
        if other is not None:
            tally.update({(candidate.subtask, DECIDED): -1, (candidate.subtask, REPEATED): 1})
        if other is None or _key(candidate, seed) < _key(other, seed):
            by_event[candidate.event_key] = candidate
    return list(by_event.values())


def thin(candidates: Iterable[QuestionCandidate], most: int, seed: int) -> list[QuestionCandidate]:
    """At most `most` of one video's candidates of each subtask, by turns of their answers, then of their questions.

    A video keeps no more than it could be asked for, so that memory is bounded by the set and not by the videos.
    """
    by_subtask: dict[str, list[QuestionCandidate]] = defaultdict(list)
    for candidate in candidates:
        by_subtask[candidate.subtask].append(candidate)
    return [kept for rows in by_subtask.values() for kept in _in_turns(rows, seed)[:most]]


def sample(candidates: Sequence[QuestionCandidate], size: int, seed: int) -> list[QuestionCandidate]:
    """At most `size` of one subtask's candidates: the video and the answer sampled least so far come next.

    The order of `candidates` does not matter.
    """
    waiting = list(enumerate(_in_turns(candidates, seed)))
    videos: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    sampled: list[QuestionCandidate] = []
    while waiting and len(sampled) < size:
        keys = [(answers[c.answer_class], videos[c.video_id], rank) for rank, c in waiting]
        _, best = waiting.pop(keys.index(min(keys)))
        videos[best.video_id] += 1
        answers[best.answer_class] += 1
        sampled.append(best)
    return sampled


def _in_turns(candidates: Sequence[QuestionCandidate], seed: int) -> list[QuestionCandidate]:
    """The first of each answer, then the second of each, ...; within an answer in seeded order."""
    order: dict[str, list[QuestionCandidate]] = defaultdict(list)
    for candidate in sorted(candidates, key=lambda c: _key(c, seed)):
        order[candidate.answer_class].append(candidate)
    ranked = [(at, _key(c, seed), c) for rows in order.values() for at, c in enumerate(rows)]
    return [candidate for _, _, candidate in sorted(ranked, key=lambda row: row[:2])]


def _key(candidate: QuestionCandidate, seed: int) -> int:
    return content_seed(
        "draw",
        seed,
        candidate.subtask,
        candidate.video_id,
        candidate.question,
        *candidate.frames,
        candidate.answer_class,
    )


def with_choices(
    sampled: Sequence[QuestionCandidate], prefix: str, distractors_needed: Callable[[QuestionCandidate], int], seed: int
) -> list[Item]:
    """Items with their distractors and letters.

    A choice is sampled as wrong in proportion to how often it is right in the subtask, so that how often it stands
    there says nothing; the right one takes each place equally often.

    Args:
        prefix: of ids, which count from 0 within it.
        distractors_needed: how many distractors a candidate takes.
    """
    balance = Counter(
        choice.text for candidate in sampled for choice in candidate.right * distractors_needed(candidate)
    )
    positions = [at % (distractors_needed(candidate) + 1) for at, candidate in enumerate(sampled)]
    random.Random(content_seed("places", seed, prefix)).shuffle(positions)  # noqa: S311
    items = []
    for at, (candidate, position) in enumerate(zip(sampled, positions, strict=True)):
        distractors: list[Choice] = []
        pool = list(candidate.distractors)
        while len(distractors) < distractors_needed(candidate):
            # Ties go to the more plausible, which stands first.
            best = max(range(len(pool)), key=lambda i: (balance[pool[i].text], -i))
            distractors.append(pool.pop(best))
            balance[distractors[-1].text] -= 1
        items.append(_placed(f"{prefix}_{at:05d}", candidate, distractors, position, seed))
    return items


def _placed(item_id: str, candidate: QuestionCandidate, distractors: list[Choice], position: int, seed: int) -> Item:
    """An item whose right choice, if there is one, stands at `position`; several right ones stand anywhere."""
    rng = random.Random(_key(candidate, seed))  # noqa: S311
    choices = list(distractors)
    if len(candidate.right) == 1:
        rng.shuffle(choices)
        choices.insert(position, candidate.right[0])
    else:
        choices += candidate.right
        rng.shuffle(choices)
    correct = tuple(i for i, choice in enumerate(choices) if choice in candidate.right)
    return Item(id=item_id, candidate=candidate, choices=tuple(choices), correct=correct)
